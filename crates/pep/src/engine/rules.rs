//! How the packets of the engine's connections come to it while all others stay with the kernel.
//!
//! For each thread of the engine, sets of the packet filter hold the addresses and ports of its connections, whose packets are routed into its
//! device. Packets update the sets: a segment with SYN and FIN, which no TCP sends, adds the addresses and ports of a connection, and so does the
//! engine's answer to a SYN; the segment without any flag that it sends when a connection is over removes them. So no connection needs a call of the packet filter, nor a privilege after the start.
//! An ICMP error belongs to the connection whose packet it quotes.
//!
//! When the process ends, its devices disappear, their routes with them, and everything is forwarded.

use std::fmt::Write;
use std::ops::Range;

use super::device;
use crate::marks::{Kind, Marks};
use crate::routes::ENGINE_RULES;

/// First of the routing tables that lead into the devices.
const TABLES: usize = 6280;
/// Most threads of the engine of a proxy that there are rules for.
pub(crate) const MOST_THREADS: usize = 8;

/// Number of the routing table of a thread.
pub(crate) fn table(thread: usize) -> usize {
    TABLES + thread
}

/// Number of the rule of policy routing of a thread.
pub(crate) fn rule(thread: usize) -> usize {
    ENGINE_RULES + thread
}

/// Expressions of the packet filter for the addresses and ports of a connection: in a packet that arrives (`arriving`), of the answers to a packet
/// that leaves (`answers`), in our packet that an ICMP error quotes (`quoted`), and at the same places in a packet that leaves (`sent`).
struct Numbers {
    version: &'static str,
    arriving: &'static str,
    answers: &'static str,
    errors: &'static str,
    quoted: &'static str,
    sent: &'static str,
}

const VERSIONS: [Numbers; 2] = [
    Numbers {
        version: "4",
        arriving: "ip saddr . tcp sport . ip daddr . tcp dport",
        answers: "ip daddr . tcp dport . ip saddr . tcp sport",
        errors: "icmp type destination-unreachable",
        quoted: "@th,160,32 . @th,224,16 . @th,192,32 . @th,240,16",
        sent: "@nh,96,32 . @nh,160,16 . @nh,128,32 . @nh,176,16",
    },
    Numbers {
        version: "6",
        arriving: "ip6 saddr . tcp sport . ip6 daddr . tcp dport",
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
            for Numbers { version, arriving, quoted, .. } in &VERSIONS {
                let _ = write!(
                    text,
                    "  set engine-{thread}-v{version} {{ typeof {arriving}; size {size}; flags dynamic; }}
  set engine-{thread}-sent-v{version} {{ typeof {quoted}; size {size}; flags dynamic; }}
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
            for Numbers { version, arriving, answers, errors, quoted, sent } in &VERSIONS {
                let (set, of_sent) =
                    (format!("engine-{thread}-v{version}"), format!("engine-{thread}-sent-v{version}"));
                let _ = write!(
                    found,
                    "    {arriving} @{set} {to_engine}
    {errors} {quoted} @{of_sent} {to_engine}
"
                );
                let _ = write!(
                    kept,
                    "    meta nfproto ipv{version} tcp flags & (fin|syn) == fin|syn add @{of_sent} {{ {sent} }} add @{set} {{ {answers} }} drop
    meta nfproto ipv{version} tcp flags & syn == syn add @{of_sent} {{ {sent} }} add @{set} {{ {answers} }} accept
    meta nfproto ipv{version} tcp flags == 0x0 delete @{of_sent} {{ {sent} }} delete @{set} {{ {answers} }} drop
"
                );
            }
            // Reached if the set is full, or has no such entry.
            kept.push_str("    tcp flags & syn == syn drop\n    tcp flags == 0x0 drop\n  }\n");
        }
        match self.threads.is_empty() {
            true => String::new(),
            false => format!("  chain engine-found {{\n{found}  }}\n{kept}"),
        }
    }

    /// For the chain before connection tracking: packets that the engine sends are in this zone.
    pub fn leaving(&self, zone: u16) -> String {
        let of = |thread: usize| {
            let device = device(thread);
            format!(
                "    iifname \"{device}\" ct original zone set {zone}\n    iifname \"{device}\" goto engine-{thread}\n"
            )
        };
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
        let (table, rule) = (table(thread), rule(thread));
        [
            format!("route replace default dev {} table {table} proto kernel", device(thread)),
            format!(
                "rule add priority {rule} {} lookup {table} protocol kernel",
                marks.selector(Kind::Engine(thread))
            ),
        ]
    };
    threads.flat_map(of).collect()
}

/// Lines for `ip -force -batch` that remove these routes.
pub(crate) fn remove_routes(threads: Range<usize>) -> Vec<String> {
    let of = |thread: usize| {
        [
            format!("rule del priority {} protocol kernel", rule(thread)),
            format!("route flush table {}", table(thread)),
        ]
    };
    threads.flat_map(of).collect()
}
