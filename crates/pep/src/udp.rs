//! UDP, which the kernel forwards: counters of each class, and the refusal of QUIC.
//!
//! A packet belongs to the class that a SYN with its addresses and ports would have. Connection tracking knows which end sent the first packet of
//! a flow: that end is the client.

use bentpipe_scenario::deployment::{Deployment, Quic};

use crate::conditions::{self, Packets, lines, names};
use crate::marks::Marks;

/// The chain that refuses QUIC. It is empty while connections are not split.
pub(crate) const REFUSALS: &str = "refuse-quic";
/// Packets to the port of HTTP/3.
const TO_QUIC: &str = "udp dport 443";
/// Names of the sides to which packets go, in metrics.
pub(crate) const SIDES: [&str; 2] = ["satellite", "clients"];

/// Name of the counter of packets of a class that go to a side.
pub(crate) fn forwarded(class: usize, side: &str) -> String {
    format!("udp-{side}-{class}")
}

/// Name of the counter of packets of a class that are refused.
pub(crate) fn refused(class: usize) -> String {
    format!("refused-quic-{class}")
}

/// Declares the counters.
pub(crate) fn counters(deployment: &Deployment) -> String {
    let of_class = |class: usize| {
        let [satellite, clients] = SIDES.map(|side| forwarded(class, side));
        [satellite, clients, refused(class)].map(|name| format!("  counter {name} {{ }}\n")).concat()
    };
    (0..deployment.classes.len()).map(of_class).collect()
}

/// Rules that refuse new flows of QUIC.
pub(crate) fn refusals(deployment: &Deployment) -> Vec<String> {
    if !refuses(deployment) {
        return Vec::new();
    }
    conditions::rules(deployment, Packets::UDP, |number, class| match class.quic {
        Quic::Refuse => format!("counter name {} reject with icmpx type port-unreachable", refused(number)),
        Quic::Forward => "return".to_owned(),
    })
}

fn refuses(deployment: &Deployment) -> bool {
    deployment.classes.iter().any(|class| class.quic == Quic::Refuse)
}

/// The rule before the routing decision that notes whether the proxy lives, if a class refuses QUIC.
pub(crate) fn asking(deployment: &Deployment, marks: Marks) -> String {
    let interfaces = &deployment.interfaces;
    let all: Vec<String> = interfaces.clients.iter().chain(&interfaces.satellite).cloned().collect();
    match refuses(deployment) {
        true => format!("    iifname {} {TO_QUIC} {} jump look-alive\n", names(&all), marks.is_none()),
        false => String::new(),
    }
}

/// The chains that refuse and count, after the chains `forward` of the administrator.
pub(crate) fn chains(deployment: &Deployment) -> String {
    let side_of = |packets: Packets| {
        let count = move |number, class: &_| {
            let side = SIDES[usize::from(packets.go_to_clients(class))];
            format!("counter name {} return", forwarded(number, side))
        };
        lines(&conditions::rules(deployment, packets, count))
    };
    format!(
        "  chain {REFUSALS} {{
{refusals}  }}
  chain count-udp {{
{requests}  }}
  chain count-udp-replies {{
{replies}  }}
  chain forwarded-udp {{
    type filter hook forward priority filter + 1000; policy accept;
    iifname @alive {TO_QUIC} ct state {{ new, untracked }} jump {REFUSALS}
    meta l4proto udp ct direction original goto count-udp
    meta l4proto udp ct direction reply goto count-udp-replies
  }}
",
        refusals = lines(&refusals(deployment)),
        requests = side_of(Packets::UDP),
        replies = side_of(Packets::UDP_REPLIES),
    )
}
