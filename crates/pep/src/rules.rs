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
    Class, Datapath, Deployment, Interfaces, Match, Opener, Opening, Prefix, Side,
};

use crate::engine;
use crate::error::Error;
use crate::tool;

/// Name of the table of the packet filter.
pub(crate) const TABLE: &str = "bentpipe-pep";
/// Name of the TUN device that SYNs are routed into.
pub(crate) const DEVICE: &str = "bp-pep";

/// Mark of packets for sockets of the proxy.
const MARK_LOCAL: u32 = 0x6270_0001;
/// Mark of SYNs that wait for the server's answer.
const MARK_SYN: u32 = 0x6270_0002;
/// Mark of what the sockets of the proxy send.
pub(crate) const MARK_OURS: u32 = 0x6270_0003;

/// Routing table in which everything is local.
const LOCAL_ROUTES: u32 = 6271;
/// Routing table that leads into the TUN device.
const SYN_ROUTES: u32 = 6272;
/// Numbers of the policy-routing rules, before those of most administrators.
const PRIORITY: u32 = 6270;

/// Where the listening sockets are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ports {
    /// Port at 127.0.0.1.
    pub v4: u16,
    /// Port at ::1; none where there is no IPv6.
    pub v6: Option<u16>,
}

/// The rules of the packet filter as a script for `nft -f`.
fn plan(deployment: &Deployment, ports: Ports) -> String {
    let clients = names(&deployment.interfaces.clients);
    let satellite = names(&deployment.interfaces.satellite);
    let (syn, ours) = (
        "tcp flags & (fin|syn|rst|ack) == syn",
        "meta l4proto { tcp, icmp, ipv6-icmp } socket transparent 1",
    );
    let (local, wait, mark) = (hex(MARK_LOCAL), hex(MARK_SYN), hex(MARK_OURS));
    let (classes, deliver) = (classes(deployment), deliver(ports));
    let (engine, not_engine) = match engine::threads(deployment) {
        0 => Default::default(),
        threads => {
            let tables = engine::rules::tables(threads, deployment.limits.connections, &satellite);
            (tables, engine::rules::OTHERS)
        }
    };
    format!(
        "table inet {TABLE} {{
  chain deliver {{
{deliver}  }}
  chain wait {{
    meta mark set {wait} fib daddr . mark oifname \"{DEVICE}\" notrack accept
    meta mark set 0
  }}
  chain classes {{
{classes}  }}
  chain opening {{
    fib daddr type != unicast return
    ip6 saddr fe80::/10 return
    ip6 daddr fe80::/10 return
    jump classes
  }}
  chain clients {{
    type filter hook prerouting priority raw - 1; policy accept;
    iifname \"{DEVICE}\" {syn} goto deliver
    iifname {clients} {syn} jump opening
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
{engine}}}
"
    )
}

/// Replaces the rules of an earlier start in the same transaction.
pub(crate) fn replacing(plan: &str) -> String {
    format!("table inet {TABLE}\ndelete table inet {TABLE}\n{plan}")
}

/// Changes which SYNs are diverted and leaves connections alone: all of the classes, or none.
pub(crate) fn divert(deployment: Option<&Deployment>) -> String {
    let mut script = format!("flush chain inet {TABLE} classes\n");
    for rule in deployment.map(class_rules).unwrap_or_default() {
        let _ = writeln!(script, "add rule inet {TABLE} classes {rule}");
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
        let action = match (class.proxy, class.syn) {
            (false, _) => "accept",
            (true, Opening::Early) if !engine::answers(class) => "goto deliver",
            (true, _) => "goto wait",
        };
        let interfaces = names(interfaces);
        let conditions = conditions(&class.matches).into_iter();
        conditions
            .map(move |condition| format!("iifname {interfaces} {condition}{action}"))
            .collect::<Vec<_>>()
    };
    deployment.classes.iter().flat_map(rules).collect()
}

/// What a packet must be like: once for each IP version if addresses matter.
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

/// Without networks that lie in others: the packet filter refuses intervals that overlap.
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

/// Installs the rules and routes; those of an earlier start are replaced.
pub(crate) fn install(deployment: &Deployment, ports: Ports) -> Result<(), Error> {
    tool::nft(&replacing(&plan(deployment, ports)))?;
    for family in families(ports) {
        remove_routes(family);
        tool::ip(
            &[family],
            &[
                format!("route replace local default dev lo table {LOCAL_ROUTES}"),
                format!("rule add priority {PRIORITY} fwmark {} lookup {LOCAL_ROUTES}", hex(MARK_LOCAL)),
                format!("route replace default dev {DEVICE} table {SYN_ROUTES}"),
                format!("rule add priority {} fwmark {} lookup {SYN_ROUTES}", PRIORITY + 1, hex(MARK_SYN)),
            ],
        )?;
        tool::ip(&[family], &engine::rules::add_routes(engine::threads(deployment)))?;
    }
    Ok(())
}

fn families(ports: Ports) -> impl Iterator<Item = &'static str> {
    ["-4"].into_iter().chain(ports.v6.map(|_| "-6"))
}

/// What is not there need not go.
fn remove_routes(family: &str) {
    let lines = [
        format!("rule del priority {PRIORITY}"),
        format!("rule del priority {}", PRIORITY + 1),
        format!("route flush table {LOCAL_ROUTES}"),
        format!("route flush table {SYN_ROUTES}"),
    ];
    let _ = tool::ip(&["-force", family], &lines);
    let _ = tool::ip(&["-force", family], &engine::rules::remove_routes());
}

/// What the rules will do and what they are, for a person to read. The packet filter checks them, if it is there and may be asked, and nothing
/// is changed.
///
/// # Errors
/// [`Error::Request`] if the packet filter would refuse them.
pub fn check(deployment: &Deployment) -> Result<String, Error> {
    // The proxy listens at whatever ports are free.
    let plan = plan(deployment, Ports { v4: 1, v6: Some(1) });
    let mut text = String::new();
    for class in &deployment.classes {
        let _ = writeln!(text, "# {}: {}", class.name, story(class));
    }
    text.push_str("# whatever belongs to no class: forwarded untouched\n#\n# rules of the packet filter (the ports of tproxy are chosen at the start):\n");
    text.push_str(&plan);
    match tool::run(("nft", "nftables"), &["-c", "-f", "-"], &plan) {
        Ok(_) => {}
        Err(Error::Missing(why)) => {
            let _ = writeln!(text, "# not checked by the packet filter of this machine: {why}");
        }
        Err(error) => return Err(Error::Request(format!("the packet filter refuses the rules: {error}"))),
    }
    Ok(text)
}

/// Rules with every expression that there can be, for asking the packet filter whether it knows them.
pub(crate) fn specimen() -> String {
    let classes = [Opening::Early, Opening::ServerFirst].map(|syn| Class { syn, ..Class::default() });
    let interfaces = Interfaces { clients: vec!["clients".into()], satellite: vec!["satellite".into()] };
    let deployment = Deployment { interfaces, classes: classes.into(), ..Deployment::default() };
    plan(&deployment, Ports { v4: 1, v6: Some(1) })
}

/// What happens to the connections of a class.
fn story(class: &Class) -> String {
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
    let when = match class.syn {
        Opening::ServerFirst => "answered when the server has answered",
        Opening::Early => "answered at once",
    };
    let side = |side: &Side| {
        let speaker = match side.datapath {
            Datapath::Kernel => "the kernel",
            Datapath::Engine => "our engine",
        };
        let limit = side.rate_limit.map_or_else(String::new, |rate| format!(", at most {rate} each"));
        format!("{} of {speaker}{limit}", side.cc)
    };
    format!(
        "{which} are split, {when}; over the satellite {}, to the clients {}",
        side(&class.satellite),
        side(&class.clients)
    )
}

/// Removes everything that `install` leaves in the packet filter and the routing tables, whoever installed it.
///
/// # Errors
/// [`Error`] if the packet filter cannot be changed.
pub fn clean() -> Result<(), Error> {
    tool::nft(&format!("table inet {TABLE}\ndelete table inet {TABLE}\n"))?;
    ["-4", "-6"].into_iter().for_each(remove_routes);
    Ok(())
}
