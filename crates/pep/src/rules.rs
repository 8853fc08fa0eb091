//! What is installed in the packet filter and in the routing tables, and how it is removed again.
//!
//! The kernel forwards everything that these rules do not name. A packet is delivered to this machine only where a transparent socket of the
//! proxy waits for it, so when the process ends, so does the diversion:
//!
//! * a SYN of a class with `syn = "early"` goes to the listening sockets by `tproxy`, which matches nothing when nobody listens;
//! * a SYN of a class with `syn = "server-first"` is routed into a TUN device, whose route disappears with its owner;
//! * any other packet is delivered here only if `socket transparent` finds its connection.
//!
//! Both halves of a connection have the same addresses and ports. Connection tracking would take them for one, so the half on the side of the
//! clients is not tracked; the half on the side of the satellite is, and can pass a NAT.

use std::fmt::Write;

use bentpipe_scenario::deployment::{
    Class, Datapath, Deployment, Interfaces, Match, Opener, Opening, Prefix, Side, Split,
};
use bentpipe_system::{NFT, ip, nft};

use crate::early_demux;
use crate::engine;
use crate::error::Error;
use crate::slot::Slot;
use crate::sockets::{MARK_OURS, Ports};

/// Mark of packets for sockets of a proxy.
const MARK_LOCAL: u32 = 0x6270_0001;
/// Mark of SYNs of clients that wait for the server's answer, in the first slot.
const MARK_SYN: u32 = 0x6270_0002;
/// Added to that for SYNs of hosts beyond the satellite.
const MARK_OF_SATELLITE: u32 = 0x10;
/// Added to that for each further slot.
const MARK_OF_SLOT: u32 = 0x100;

/// First number of the routing tables and policy-routing rules (chosen: the rules come before those of most administrators). Each slot has three: in
/// the first table all addresses are local, the others lead into its TUN devices.
const FIRST_ROUTES: u32 = 6270;
const ROUTES_OF_SLOT: u32 = 3;

/// On which side of the proxy connections are opened.
pub(crate) const OPENERS: [Opener; 2] = [Opener::Clients, Opener::Satellite];

/// The proxy to which the rules lead: its slot, and its listening sockets for connections of clients and of hosts beyond the satellite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub slot: Slot,
    pub ports: [Ports; 2],
}

impl Target {
    /// For rules that are shown or checked, but not installed.
    const NONE: Self = Self { slot: Slot(0), ports: [Ports { v4: 1, v6: Some(1) }; 2] };

    fn numbered(self) -> impl Iterator<Item = (Opener, Ports)> {
        OPENERS.into_iter().zip(self.ports)
    }
}

fn word(opener: Opener) -> &'static str {
    match opener {
        Opener::Clients => "clients",
        Opener::Satellite => "satellite",
    }
}

fn syn_mark(slot: Slot, opener: Opener) -> u32 {
    let of_satellite = if opener == Opener::Satellite { MARK_OF_SATELLITE } else { 0 };
    MARK_SYN + of_satellite + MARK_OF_SLOT * u32::from(slot.0)
}

/// The rules of the packet filter as a script for `nft -f`. `before` is the value of `tcp_early_demux` before any proxy ran.
fn plan(deployment: &Deployment, target: Target, before: &str) -> String {
    let clients = names(&deployment.interfaces.clients);
    let satellite = names(&deployment.interfaces.satellite);
    // Protocols by their numbers (ICMP, TCP, ICMPv6): names are known only where /etc/protocols is.
    let (syn, ours) =
        ("tcp flags & (fin|syn|rst|ack) == syn", "meta l4proto { 1, 6, 58 } socket transparent 1");
    let (local, mark) = (hex(MARK_LOCAL), hex(MARK_OURS));
    let (table, classes, not_engine) = (target.slot.table(), classes(deployment), engine::rules::OTHERS);
    let mut waiting = String::new();
    let mut returning = String::new();
    for (opener, ports) in target.numbered() {
        let (word, device, wait) =
            (word(opener), target.slot.device(opener), hex(syn_mark(target.slot, opener)));
        let deliver = deliver(ports);
        let _ = write!(
            waiting,
            "  chain deliver-{word} {{
{deliver}  }}
  chain wait-{word} {{
    meta mark set {wait} fib daddr . mark oifname \"{device}\" notrack accept
    meta mark set 0
  }}
"
        );
        let _ = writeln!(returning, "    iifname \"{device}\" {syn} goto deliver-{word}");
    }
    let engine = match engine::threads(deployment) {
        0 => String::new(),
        threads => {
            let range = engine::range(target.slot, threads);
            engine::rules::tables(range, deployment.limits.connections, &satellite)
        }
    };
    let marker = early_demux::marker(before);
    format!(
        "table inet {table} {{
{waiting}  chain classes {{
{classes}  }}
  chain opening {{
    fib daddr type != unicast return
    ip6 saddr fe80::/10 return
    ip6 daddr fe80::/10 return
    jump classes
  }}
  chain clients {{
    type filter hook prerouting priority raw - 1; policy accept;
{returning}    iifname {clients} {syn} jump opening
    iifname {clients} {ours} notrack meta mark set {local} accept
  }}
  chain satellite {{
    type filter hook prerouting priority mangle; policy accept;
    iifname {satellite} {not_engine}{syn} jump opening
    iifname {satellite} {ours} meta mark set {local} accept
  }}
  chain outgoing {{
    type filter hook output priority raw - 1; policy accept;
    oifname {clients} meta mark {mark} notrack
  }}
{marker}{engine}}}
"
    )
}

/// Replaces the rules that an earlier proxy has left in the slot, in the same transaction.
pub(crate) fn replacing(slot: Slot, plan: &str) -> String {
    let table = slot.table();
    format!("table inet {table}\ndelete table inet {table}\n{plan}")
}

/// A script that diverts the SYNs of all classes of a configuration, or none. Connections that exist are not affected.
pub(crate) fn divert(slot: Slot, deployment: Option<&Deployment>) -> String {
    let table = slot.table();
    let mut script = format!("flush chain inet {table} classes\n");
    for rule in deployment.map(class_rules).unwrap_or_default() {
        let _ = writeln!(script, "add rule inet {table} classes {rule}");
    }
    script
}

/// Delivers a SYN to the listening socket of its IP version. Where nobody listens, `tproxy` ends its rule and the packet goes on untouched.
fn deliver(ports: Ports) -> String {
    let local = hex(MARK_LOCAL);
    let mut text = format!(
        "    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:{} meta mark set {local} notrack accept\n",
        ports.v4
    );
    if let Some(port) = ports.v6 {
        let _ = writeln!(
            text,
            "    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:{port} meta mark set {local} notrack accept"
        );
    }
    text
}

fn classes(deployment: &Deployment) -> String {
    class_rules(deployment).iter().map(|rule| format!("    {rule}\n")).collect()
}

fn class_rules(deployment: &Deployment) -> Vec<String> {
    let rules = |class: &Class| {
        let interfaces = match class.matches.opener {
            Opener::Clients => &deployment.interfaces.clients,
            Opener::Satellite => &deployment.interfaces.satellite,
        };
        let action = match (class.proxy, class.split.syn) {
            (false, _) => "accept",
            (true, Opening::Early) if !engine::answers(class) => "goto deliver-",
            (true, _) => "goto wait-",
        };
        let action = match class.proxy {
            true => format!("{action}{}", word(class.matches.opener)),
            false => action.to_owned(),
        };
        let interfaces = names(interfaces);
        let conditions = conditions(&class.matches).into_iter();
        conditions
            .map(move |condition| format!("iifname {interfaces} {condition}{action}"))
            .collect::<Vec<_>>()
    };
    deployment.classes.iter().flat_map(rules).collect()
}

/// Conditions on a packet of a class: one for each IP version if addresses matter.
fn conditions(matches: &Match) -> Vec<String> {
    let ports = match matches.ports.as_slice() {
        [] => String::new(),
        ports => format!("tcp dport {{ {} }} ", joined(ports.iter())),
    };
    if matches.from.is_empty() && matches.to.is_empty() {
        return vec![if ports.is_empty() { "meta l4proto tcp ".to_owned() } else { ports }];
    }
    let of_version = |(family, is_v4): (&str, bool)| {
        let mut condition = String::new();
        for (key, networks) in [("saddr", &matches.from), ("daddr", &matches.to)] {
            let fitting = || networks.iter().filter(|network| network.address.is_ipv4() == is_v4);
            if networks.is_empty() {
                continue;
            }
            fitting().next()?;
            let _ = write!(condition, "{family} {key} {{ {} }} ", joined(minimal(fitting())));
        }
        Some(condition + &ports)
    };
    [("ip", true), ("ip6", false)].into_iter().filter_map(of_version).collect()
}

/// Removes networks that lie in others, because the packet filter refuses overlapping intervals.
fn minimal<'a>(networks: impl Iterator<Item = &'a Prefix>) -> impl Iterator<Item = &'a Prefix> {
    let all: Vec<&Prefix> = networks.collect();
    let covered = |index: usize, network: &Prefix| {
        all.iter().enumerate().any(|(other, larger)| {
            other != index
                && larger.contains(network.address)
                && (larger.length < network.length || (larger.length == network.length && other < index))
        })
    };
    let kept: Vec<&Prefix> = all
        .iter()
        .enumerate()
        .filter(|(index, network)| !covered(*index, network))
        .map(|(_, network)| *network)
        .collect();
    kept.into_iter()
}

fn joined(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn names(interfaces: &[String]) -> String {
    format!("{{ {} }}", joined(interfaces.iter().map(|name| format!("\"{name}\""))))
}

fn hex(mark: u32) -> String {
    format!("{mark:#x}")
}

/// Installs the rules and routes; those that an earlier proxy has left in the slot are replaced.
pub(crate) fn install(deployment: &Deployment, target: Target, before: &str) -> Result<(), Error> {
    let slot = target.slot;
    nft(&replacing(slot, &plan(deployment, target, before)))?;
    for family in ["-4", "-6"].into_iter().filter(|family| *family == "-4" || target.ports[0].v6.is_some()) {
        remove_routes(slot, family);
        let [local, others @ ..] = numbers(slot);
        let mut lines = vec![
            format!("route replace local default dev lo table {local}"),
            format!("rule add priority {local} fwmark {} lookup {local}", hex(MARK_LOCAL)),
        ];
        for (opener, number) in OPENERS.into_iter().zip(others) {
            let (device, mark) = (slot.device(opener), hex(syn_mark(slot, opener)));
            lines.push(format!("route replace default dev {device} table {number}"));
            lines.push(format!("rule add priority {number} fwmark {mark} lookup {number}"));
        }
        lines.extend(engine::rules::add_routes(engine::range(slot, engine::threads(deployment))));
        ip(&[family], &lines)?;
    }
    Ok(())
}

/// Numbers of the routing tables and rules of a slot.
fn numbers(slot: Slot) -> [u32; ROUTES_OF_SLOT as usize] {
    let first = FIRST_ROUTES + ROUTES_OF_SLOT * u32::from(slot.0);
    std::array::from_fn(|at| first + at as u32)
}

/// Removes the routes of a slot. Errors are ignored, because some of them may not exist.
fn remove_routes(slot: Slot, family: &str) {
    let of_number = |number| [format!("rule del priority {number}"), format!("route flush table {number}")];
    let mut lines: Vec<String> = numbers(slot).into_iter().flat_map(of_number).collect();
    lines.extend(engine::rules::remove_routes(engine::range(slot, engine::rules::MOST_THREADS)));
    let _ = ip(&["-force", family], &lines);
}

/// Describes the rules and what they do, for a person to read. If possible, the packet filter checks them. Nothing is changed.
///
/// # Errors
/// [`Error::Request`] if the packet filter would refuse them.
pub fn check(deployment: &Deployment) -> Result<String, Error> {
    // The ports are known only when the proxy runs.
    let plan = plan(deployment, Target::NONE, "1");
    let mut text = String::new();
    for class in &deployment.classes {
        let _ = writeln!(text, "# {}: {}", class.name, description(class));
    }
    text.push_str("# whatever belongs to no class: forwarded untouched\n#\n# rules of the packet filter (the ports of tproxy are chosen at the start):\n");
    text.push_str(&plan);
    match NFT.run(&["-c", "-f", "-"], &plan).map_err(Error::from) {
        Ok(_) => {}
        Err(Error::Missing(why)) => {
            let _ = writeln!(text, "# not checked by the packet filter of this machine: {why}");
        }
        Err(error) => return Err(Error::Request(format!("the packet filter refuses the rules: {error}"))),
    }
    Ok(text)
}

/// Rules with all expressions that the proxy uses, to check that the packet filter knows them.
pub(crate) fn sample() -> String {
    let classes = [Opening::Early, Opening::ServerFirst]
        .map(|syn| Class { split: Split { syn, ..Split::default() }, ..Class::default() });
    let interfaces = Interfaces { clients: vec!["clients".into()], satellite: vec!["satellite".into()] };
    let deployment = Deployment { interfaces, classes: classes.into(), ..Deployment::default() };
    plan(&deployment, Target::NONE, "1")
}

/// Describes what happens to the connections of a class.
fn description(class: &Class) -> String {
    let matches = &class.matches;
    let who = match matches.opener {
        Opener::Clients => "clients",
        Opener::Satellite => "hosts beyond the satellite",
    };
    let ports = if matches.ports.is_empty() {
        "any port".to_owned()
    } else {
        format!("ports {}", joined(matches.ports.iter()))
    };
    let of = |networks: &[Prefix], word: &str| {
        if networks.is_empty() { String::new() } else { format!(" {word} {}", joined(networks.iter())) }
    };
    let which =
        format!("connections of {who}{} to {ports}{}", of(&matches.from, "from"), of(&matches.to, "at"));
    if !class.proxy {
        return format!("{which} are forwarded untouched");
    }
    let when = match class.split.syn {
        Opening::ServerFirst => "answered when the server has answered",
        Opening::Early => "answered at once",
    };
    let side = |side: &Side| {
        let datapath = match side.datapath {
            Datapath::Kernel => "the kernel",
            Datapath::Engine => "our engine",
        };
        let limit = side.rate_limit.map_or_else(String::new, |rate| format!(", at most {rate} each"));
        format!("{} of {datapath}{limit}", side.cc)
    };
    format!(
        "{which} are split, {when}; over the satellite {}, to the clients {}",
        side(&class.split.satellite),
        side(&class.split.clients)
    )
}

/// Removes the rules and routes of proxies that are gone. Those of running proxies stay.
///
/// # Errors
/// [`Error`] if the packet filter cannot be changed.
pub fn clean() -> Result<(), Error> {
    Slot::all().filter(|slot| slot.holder().is_none()).try_for_each(remove)
}

/// The same, except for the slot `own`, whose rules will be replaced.
pub(crate) fn clean_others(own: Slot) -> Result<(), Error> {
    Slot::all().filter(|slot| *slot != own && slot.holder().is_none()).try_for_each(remove)
}

/// Removes everything that `install` leaves for a slot.
pub(crate) fn remove(slot: Slot) -> Result<(), Error> {
    let before = early_demux::before(slot);
    nft(&replacing(slot, ""))?;
    ["-4", "-6"].into_iter().for_each(|family| remove_routes(slot, family));
    early_demux::restore(before);
    Ok(())
}
