//! How the packets of the engine's connections come to it while all others stay with the kernel.
//!
//! For each thread of the engine, sets of the packet filter hold the addresses and ports of its connections, whose packets are routed into its
//! device. Packets update the sets: a SYN that the engine sends adds the addresses and ports of its answers, and the segment without any flag
//! that it sends when a connection is over removes them. So no connection needs a call of the packet filter, nor a privilege after the start.
//! An ICMP error belongs to the connection whose packet it quotes.
//!
//! When the process ends, its devices disappear, their routes with them, and everything is forwarded.

use std::fmt::Write;
use std::ops::Range;

use super::{device, mark};

/// First of the routing tables that lead into the devices.
const ROUTES: usize = 6280;
/// First of the numbers of their rules of policy routing.
const PRIORITY: usize = 6280;
/// Matches packets that have not been found to be of the engine's.
pub(crate) const OTHERS: &str = "meta mark & 0xffff00ff != 0x62700004 ";
/// Most threads of the engine of a proxy that there are rules for.
pub(crate) const MOST_THREADS: usize = 8;

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

/// Sets and chains for the proxy's table: for these threads, this many connections of each, and packets that arrive over the interfaces `satellite`.
///
/// Packets are found after addresses have been translated back (NAT), and SYNs of clients before the rules of the classes see them.
pub(crate) fn tables(threads: Range<usize>, connections: u32, satellite: &str) -> String {
    // Entries of connections that are over may stay for a moment.
    let size = u64::from(connections) * 2;
    let (mut sets, mut found, mut kept, mut entries) =
        (String::new(), String::new(), String::new(), String::new());
    for thread in threads {
        let (device, mark) = (device(thread), mark(thread));
        let _ = writeln!(entries, "    iifname \"{device}\" goto engine-{thread}");
        let _ = writeln!(kept, "  chain engine-{thread} {{");
        for Numbers { version, arriving, answers, errors, quoted, sent } in &VERSIONS {
            let (set, of_sent) =
                (format!("engine-{thread}-v{version}"), format!("engine-{thread}-sent-v{version}"));
            let to_engine = format!("meta mark set {mark:#x} accept");
            let _ = write!(
                sets,
                "  set {set} {{ typeof {arriving}; size {size}; flags dynamic; }}
  set {of_sent} {{ typeof {quoted}; size {size}; flags dynamic; }}
"
            );
            let _ = write!(
                found,
                "    {arriving} @{set} {to_engine}
    {errors} {quoted} @{of_sent} {to_engine}
"
            );
            let _ = write!(
                kept,
                "    meta nfproto ipv{version} tcp flags & syn == syn add @{of_sent} {{ {sent} }} add @{set} {{ {answers} }} accept
    meta nfproto ipv{version} tcp flags == 0x0 delete @{of_sent} {{ {sent} }} delete @{set} {{ {answers} }} drop
"
            );
        }
        // Reached if the set is full, or has no such entry.
        kept.push_str("    tcp flags & syn == syn drop\n    tcp flags == 0x0 drop\n  }\n");
    }
    format!(
        "{sets}  chain engine-found {{
{found}  }}
{kept}  chain engine-keeps {{
    type filter hook prerouting priority raw - 1; policy accept;
{entries}  }}
  chain engine-syns {{
    type filter hook prerouting priority raw - 2; policy accept;
    iifname {satellite} tcp flags & (fin|syn|rst|ack) == syn jump engine-found
  }}
  chain engine {{
    type filter hook prerouting priority dstnat + 1; policy accept;
    iifname {satellite} meta l4proto {{ 1, 6, 58 }} jump engine-found
  }}
"
    )
}

/// Lines for `ip -batch` that route the packets of connections into the devices.
pub(crate) fn add_routes(threads: Range<usize>) -> Vec<String> {
    let of = |thread: usize| {
        let (table, priority) = (ROUTES + thread, PRIORITY + thread);
        [
            format!("route replace default dev {} table {table}", device(thread)),
            format!("rule add priority {priority} fwmark {:#x} lookup {table}", mark(thread)),
        ]
    };
    threads.flat_map(of).collect()
}

/// Lines for `ip -force -batch` that remove these routes.
pub(crate) fn remove_routes(threads: Range<usize>) -> Vec<String> {
    let of = |thread: usize| {
        let (table, priority) = (ROUTES + thread, PRIORITY + thread);
        [format!("rule del priority {priority}"), format!("route flush table {table}")]
    };
    threads.flat_map(of).collect()
}
