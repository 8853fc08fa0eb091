//! How the packets of the engine's connections come to the engine while all others stay with the kernel.
//!
//! For each thread of the engine, sets of the packet filter hold the addresses and ports of the thread's connections.
//! Packets of these connections are routed into the thread's TUN device. Packets also update the sets:
//!
//! * a segment with SYN and FIN, which no TCP sends, adds a connection, and so does the engine's answer to a SYN;
//! * a segment without any flag, which the engine sends when a connection is over, removes the connection.
//!
//! So no connection needs a call of the packet filter, and the engine needs no privilege after the start.
//! An ICMP error belongs to the connection whose packet the error quotes.
//!
//! A map holds the marks of connections whose SYN had one. The segment that adds a connection has the mark as its sequence number.
//! The engine's packets get the mark of their connection before the routing decision, and have the mark of their thread until then.
//! So a filter of reverse paths that looks at the mark (`fib saddr . mark . iif oif`) finds the device over which a packet came.
//!
//! When the process ends, its devices and their routes disappear, and the kernel forwards everything.

use std::fmt::Write;
use std::ops::Range;

use super::device;
use crate::marks::{Kind, Marks};
use crate::routes::ENGINE_RULES;

/// First of the routing tables that lead into the devices.
const TABLES: usize = 6280;
/// Most threads of the engine of a proxy that there are rules for.
pub(crate) const MOST_THREADS: usize = 8;
/// Rules of policy routing of a thread.
const RULES_OF_THREAD: usize = 3;

/// Number of the routing table of a thread.
pub(crate) fn table(thread: usize) -> usize {
    TABLES + thread
}

/// Numbers of the rules of policy routing of a thread.
pub(crate) fn rules(thread: usize) -> [usize; RULES_OF_THREAD] {
    std::array::from_fn(|at| ENGINE_RULES + RULES_OF_THREAD * thread + at)
}

/// Expressions of the packet filter for the addresses and ports of a connection: in any packet (`own`), the type and the value of a
/// shorter key for it (`marked`: nft 1.0.6 writes the value of a map into its key where that is longer than 16 bytes), of the answers to a packet
/// that leaves (`answers`), in our packet that an ICMP error quotes (`quoted`), and at the same places in a packet that leaves (`sent`).
struct Numbers {
    version: &'static str,
    own: &'static str,
    marked: [&'static str; 2],
    answers: &'static str,
    errors: &'static str,
    quoted: &'static str,
    sent: &'static str,
}

const VERSIONS: [Numbers; 2] = [
    Numbers {
        version: "4",
        own: "ip saddr . tcp sport . ip daddr . tcp dport",
        marked: ["ip saddr . tcp sport . ip daddr . tcp dport"; 2],
        answers: "ip daddr . tcp dport . ip saddr . tcp sport",
        errors: "icmp type destination-unreachable",
        quoted: "@th,160,32 . @th,224,16 . @th,192,32 . @th,240,16",
        sent: "@nh,96,32 . @nh,160,16 . @nh,128,32 . @nh,176,16",
    },
    Numbers {
        version: "6",
        own: "ip6 saddr . tcp sport . ip6 daddr . tcp dport",
        marked: [
            "@th,0,32 . @nh,64,32 . @nh,192,32",
            "@th,0,32 . jhash ip6 saddr . ip6 daddr mod 0xffffffff seed 0x6270 . jhash ip6 saddr . ip6 daddr mod 0xffffffff seed 0x6271",
        ],
        answers: "ip6 daddr . tcp dport . ip6 saddr . tcp sport",
        errors: "icmpv6 type { destination-unreachable, packet-too-big }",
        quoted: "@th,128,128 . @th,384,16 . @th,256,128 . @th,400,16",
        sent: "@nh,64,128 . @nh,320,16 . @nh,192,128 . @nh,336,16",
    },
];

/// Sets, chains and rules for the proxy's table.
pub(crate) struct Rules<'a> {
    threads: Range<usize>,
    marks: Marks,
    /// The interfaces over which the packets of the connections arrive.
    satellite: &'a str,
}

impl<'a> Rules<'a> {
    pub fn new(threads: Range<usize>, marks: Marks, satellite: &'a str) -> Self {
        Self { threads, marks, satellite }
    }

    /// The sets, for this many connections of each thread.
    pub fn sets(&self, connections: u32) -> String {
        // Entries of connections that are over may stay for a moment.
        let size = u64::from(connections) * 2;
        let mut text = String::new();
        for thread in self.threads.clone() {
            for Numbers { version, own, quoted, marked: [marked, _], .. } in &VERSIONS {
                let _ = write!(
                    text,
                    "  set engine-{thread}-v{version} {{ typeof {own}; size {size}; flags dynamic; }}
  set engine-{thread}-sent-v{version} {{ typeof {quoted}; size {size}; flags dynamic; }}
  map engine-{thread}-mark-v{version} {{ typeof {marked} : meta mark; size {size}; flags dynamic; }}
"
                );
            }
        }
        text
    }

    /// The chains that find and keep connections.
    pub fn chains(&self) -> String {
        let (mut found, mut kept) = (String::new(), String::new());
        for thread in self.threads.clone() {
            let _ = writeln!(kept, "  chain engine-{thread} {{");
            let to_engine = format!("{} accept", self.marks.set(Kind::Engine(thread)));
            for Numbers { version, own, marked: [_, marked], answers, errors, quoted, sent } in &VERSIONS {
                let (set, of_sent, marks) = (
                    format!("engine-{thread}-v{version}"),
                    format!("engine-{thread}-sent-v{version}"),
                    format!("engine-{thread}-mark-v{version}"),
                );
                let _ = write!(
                    found,
                    "    {own} @{set} {to_engine}
    {errors} {quoted} @{of_sent} {to_engine}
"
                );
                let _ = write!(
                    kept,
                    "    meta nfproto ipv{version} tcp flags & (fin|syn) == fin|syn tcp sequence != 0 update @{marks} {{ {marked} : @th,32,32 }}
    meta nfproto ipv{version} tcp flags == 0x0 delete @{marks} {{ {marked} : @th,32,32 }}
    meta nfproto ipv{version} tcp flags & (fin|syn) == fin|syn add @{of_sent} {{ {sent} }} add @{set} {{ {answers} }} drop
    meta nfproto ipv{version} tcp flags & syn == syn add @{of_sent} {{ {sent} }} add @{set} {{ {answers} }} accept
    meta nfproto ipv{version} tcp flags == 0x0 delete @{of_sent} {{ {sent} }} delete @{set} {{ {answers} }} drop
"
                );
            }
            // Reached if the set is full, or has no such entry.
            kept.push_str("    tcp flags & syn == syn drop\n    tcp flags == 0x0 drop\n  }\n");
            let _ = writeln!(kept, "  chain engine-sent-{thread} {{\n    {}", self.marks.unset());
            for Numbers { version, marked: [_, marked], .. } in &VERSIONS {
                let _ = writeln!(
                    kept,
                    "    meta nfproto ipv{version} meta mark set {marked} map @engine-{thread}-mark-v{version}"
                );
            }
            kept.push_str("  }\n");
        }
        match self.threads.is_empty() {
            true => String::new(),
            false => format!("  chain engine-found {{\n{found}  }}\n{kept}"),
        }
    }

    /// For the chain before connection tracking: packets that the engine sends are in this zone, and have the mark of their thread.
    pub fn leaving(&self, zone: u16) -> String {
        let of = |thread: usize| {
            let device = device(thread);
            format!(
                "    iifname \"{device}\" {} ct original zone set {zone}\n    iifname \"{device}\" goto engine-{thread}\n",
                self.marks.set(Kind::Engine(thread))
            )
        };
        self.threads.clone().map(of).collect()
    }

    /// For the chain before the routing decision: packets that the engine sends get the mark of their connection.
    pub fn sent(&self) -> String {
        let of = |thread: usize| format!("    iifname \"{}\" goto engine-sent-{thread}\n", device(thread));
        self.threads.clone().map(of).collect()
    }

    /// For the chain before the routing decision: finds packets of connections.
    pub fn arriving(&self) -> String {
        match self.threads.is_empty() {
            true => String::new(),
            false => {
                format!("    iifname {} meta l4proto {{ 1, 6, 58 }} jump engine-found\n", self.satellite)
            }
        }
    }
}

/// Lines for `ip -batch` that route the packets of connections into the devices.
pub(crate) fn add_routes(threads: Range<usize>, marks: Marks) -> Vec<String> {
    let of = |thread: usize| {
        let (device, table) = (device(thread), table(thread));
        let ([skip, find, end], mark) = (rules(thread), marks.selector(Kind::Engine(thread)));
        [
            format!("route replace default dev {device} table {table} proto kernel"),
            // A target for a jump; it matches nothing that the rule before does not match.
            format!("rule add priority {end} iif lo {mark} lookup {table} protocol kernel"),
            // With `src_valid_mark`, the filter of reverse paths looks for the route to the sender with the mark, as if from the device to which the packet goes.
            format!("rule add priority {skip} iif {device} {mark} goto {end} protocol kernel"),
            format!("rule add priority {find} {mark} lookup {table} protocol kernel"),
        ]
    };
    threads.flat_map(of).collect()
}

/// Lines for `ip -force -batch` that remove these routes.
pub(crate) fn remove_routes(threads: Range<usize>) -> Vec<String> {
    let of = |thread: usize| {
        let rules = rules(thread).map(|number| format!("rule del priority {number} protocol kernel"));
        rules.into_iter().chain([format!("route flush table {}", table(thread))])
    };
    threads.flat_map(of).collect()
}
