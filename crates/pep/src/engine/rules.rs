//! How the packets of the engine's connections come to it while all others stay with the kernel.
//!
//! For each thread of the engine, sets of the packet filter hold the four numbers of its connections: their packets are routed into its
//! device. The sets are kept by packets: a SYN that the engine sends adds the numbers of its answers, and the segment without any flag
//! that it sends for a connection that is over removes them. So no connection costs a call of the packet filter, and none
//! needs a privilege after the start. An error of a router (a packet was too large) belongs to the connection whose packet it quotes.
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

/// Where the four numbers lie: those of an arriving packet, those of the answers to a packet that leaves, and those of our packet that an error
/// of a router quotes, which are those of the answers at their places in a packet of ours.
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

/// Sets and chains to stand in the proxy's table: for so many threads, connections of each, and packets that come over these interfaces.
///
/// Packets are found after addresses have been translated back (NAT), and SYNs of clients before the rules of the classes see them.
pub(crate) fn tables(threads: Range<usize>, connections: u32, satellite: &str) -> String {
    // Numbers of connections that are over may stay for a moment.
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
        // A set that is full, or numbers that are not there.
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

/// What is to be fed to `ip -batch` to route what is found into the devices.
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

/// The same to remove all of that, with `-force`.
pub(crate) fn remove_routes(threads: Range<usize>) -> Vec<String> {
    let of = |thread: usize| {
        let (table, priority) = (ROUTES + thread, PRIORITY + thread);
        [format!("rule del priority {priority}"), format!("route flush table {table}")]
    };
    threads.flat_map(of).collect()
}
