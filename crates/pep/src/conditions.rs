//! Conditions of the packet filter for packets of a class.

use std::fmt::Write;

use bentpipe_scenario::deployment::{Class, Deployment, Interfaces, Match, Opener, Prefix, interface_fits};

/// Packets that conditions select.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packets {
    protocol: &'static str,
    /// True for packets of the server, false for those of the client.
    are_replies: bool,
}

impl Packets {
    pub const SYNS: Self = Self { protocol: "tcp", are_replies: false };
    pub const UDP: Self = Self { protocol: "udp", are_replies: false };
    pub const UDP_REPLIES: Self = Self { protocol: "udp", are_replies: true };

    /// True if these packets of a class go to the side of the clients.
    pub fn go_to_clients(self, class: &Class) -> bool {
        self.are_replies == (class.matches.opener == Opener::Clients)
    }

    /// Swaps two items for replies.
    fn turn<T>(self, items: [T; 2]) -> [T; 2] {
        let [first, second] = items;
        if self.are_replies { [second, first] } else { [first, second] }
    }
}

/// Returns the rules that apply the actions of classes to their packets. `action` gets the position of the class in the file.
pub(crate) fn rules(
    deployment: &Deployment,
    packets: Packets,
    action: impl Fn(usize, &Class) -> String,
) -> Vec<String> {
    let Interfaces { clients, satellite } = &deployment.interfaces;
    let mut rules = Vec::new();
    for (number, class) in deployment.classes.iter().enumerate() {
        let matches = &class.matches;
        let ends = match matches.opener {
            Opener::Clients => [names(clients), names(satellite)],
            Opener::Satellite => [names(satellite), names(clients)],
        };
        let [from, to] = packets.turn(ends);
        let [_, server_side] = packets.turn(["iifname", "oifname"]);
        let out = match matches.out.as_slice() {
            [] => String::new(),
            out => format!("{server_side} {} ", names(out)),
        };
        let action = action(number, class);
        for condition in of_match(matches, packets) {
            rules.push(format!("iifname {from} oifname {to} {out}{condition}{action}"));
        }
    }
    rules
}

/// Lines of a chain.
pub(crate) fn lines(rules: &[String]) -> String {
    rules.iter().map(|rule| format!("    {rule}\n")).collect()
}

/// Conditions on a packet of a class: one for each IP version if addresses matter.
fn of_match(matches: &Match, packets: Packets) -> Vec<String> {
    let Packets { protocol, .. } = packets;
    let [_, server_port] = packets.turn(["sport", "dport"]);
    let ports = match matches.ports.as_slice() {
        [] => String::new(),
        ports => format!("{protocol} {server_port} {{ {} }} ", joined(ports.iter())),
    };
    if matches.from.is_empty() && matches.to.is_empty() {
        return vec![if ports.is_empty() { format!("meta l4proto {protocol} ") } else { ports }];
    }
    let [from, to] = packets.turn(["saddr", "daddr"]);
    let of_version = |(family, is_v4): (&str, bool)| {
        let mut condition = String::new();
        for (key, networks) in [(from, &matches.from), (to, &matches.to)] {
            if networks.is_empty() {
                continue;
            }
            let fitting = networks.iter().filter(|network| network.address.is_ipv4() == is_v4);
            // The packet filter refuses overlapping intervals.
            let fitting = Prefix::minimal(&fitting.copied().collect::<Vec<_>>());
            fitting.first()?;
            let _ = write!(condition, "{family} {key} {{ {} }} ", joined(fitting.iter()));
        }
        Some(condition + &ports)
    };
    [("ip", true), ("ip6", false)].into_iter().filter_map(of_version).collect()
}

pub(crate) fn joined(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// A set of the packet filter, which must not contain a name twice.
pub(crate) fn names(interfaces: &[String]) -> String {
    let covered = |at: usize, name: &String| {
        interfaces.iter().enumerate().any(|(other, pattern)| {
            other != at && interface_fits(pattern, name) && (pattern != name || other < at)
        })
    };
    let kept = interfaces.iter().enumerate().filter(|(at, name)| !covered(*at, name));
    format!("{{ {} }}", joined(kept.map(|(_, name)| format!("\"{name}\""))))
}
