//! What the proxy installs in the packet filter, and how the proxy removes it again.
//!
//! The kernel forwards everything that these rules do not name, and the rules of the administrator decide first. The hook `forward` looks at a SYN
//! after them, when the device for the way out is known. A SYN that belongs to a class, and can be split, is reported to the proxy and dropped
//! there. The proxy puts the SYN back over the loopback device, and `tproxy` gives it to the listening socket. Any other packet is delivered to this
//! machine only if `socket transparent` finds its connection.
//!
//! SYNs are dropped only while the proxy runs: a policy route leads into its TUN device, and disappears with the device.
//!
//! Both halves of a connection have the same addresses and ports. Connection tracking has a zone of its own for the half of the clients, and another
//! for the packets that leave on the other half. So the packet filter of the administrator sees both halves as established connections, and the half
//! over the satellite can pass a NAT.

use std::fmt::Write;

use bentpipe_scenario::deployment::{
    Class, Datapath, Deployment, Interfaces, Opener, Opening, Prefix, Quic, Side, Split,
};
use bentpipe_system::{NFT, nft};

use crate::conditions::{self, Packets, joined, names};
use crate::early_demux;
use crate::engine;
use crate::error::Error;
use crate::marks::{Kind, Marks, OPENERS};
use crate::metrics::Reason;
use crate::queue;
use crate::routes;
use crate::sight;
use crate::slot::Slot;
use crate::sockets::{self, PASSING, Ports};
use crate::udp;
use crate::unkept;

/// Zones of connection tracking (chosen): of halves on the side of the clients, and of what leaves over the satellite.
pub(crate) const ZONE_CLIENTS: u16 = 0x6270;
const ZONE_SATELLITE: u16 = 0x6271;
/// Priority of the last chain before the routing decision (chosen: behind all that have names).
pub(crate) const LATE: u16 = 1000;
/// Matches SYNs that open a connection.
const SYN: &str = "tcp flags & (fin|syn|rst|ack) == syn";
/// Matches packets of connections that exist: ICMP errors (1, 58), and segments of TCP (6). Numbers, because names need /etc/protocols.
const OF_CONNECTIONS: [&str; 2] = ["meta l4proto { 1, 58 }", "tcp flags & (fin|syn|rst|ack) != syn"];

/// The proxy to which the rules lead: its slot, and its listening sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub slot: Slot,
    pub ports: Ports,
}

impl Target {
    /// For rules that are shown or checked, but not installed.
    const NONE: Self = Self { slot: Slot(0), ports: Ports { v4: 1, v6: Some(1) } };
}

fn word(opener: Opener) -> &'static str {
    match opener {
        Opener::Clients => "clients",
        Opener::Satellite => "satellite",
    }
}

/// SYNs that cannot be split, by the reason that is counted.
const UNSPLIT: [(Reason, &[&str]); 6] = [
    // The destination was translated, or a helper reads the connection: both are settings of the administrator.
    (Reason::Translated, &["ct status dnat"]),
    // Bit 13 of the status (IPS_HELPER), for which nft has no word. `ct helper` is the helper of the expected connection's master.
    (Reason::Helper, &["ct status & 0x2000 == 0x2000"]),
    // TCP MD5, TCP-AO, TCP-ENO and alternate checksums are agreements between the ends.
    (
        Reason::Signed,
        &["tcp option 19 exists", "tcp option 29 exists", "tcp option 69 exists", "tcp option 14 exists"],
    ),
    (Reason::Ipsec, &["meta secpath exists", "rt ipsec exists"]),
    // IP options are for routers on the path. A TTL near its ends counts routers (traceroute) or proves that there are none (RFC 5082).
    (Reason::Options, &["ip hdrlength > 5", "ip6 nexthdr != 6"]),
    (Reason::Ttl, &["ip ttl < 16", "ip ttl >= 250", "ip6 hoplimit < 16", "ip6 hoplimit >= 250"]),
];

/// The rules of the packet filter as a script for `nft -f`. `before` is the value of `tcp_early_demux` before any proxy ran.
fn plan(deployment: &Deployment, target: Target, before: &str) -> String {
    let (slot, marks) = (target.slot, Marks::of(deployment));
    let threads = engine::range(slot, engine::threads(deployment));
    let Interfaces { clients, satellite } = &deployment.interfaces;
    let (clients, satellite) = (names(clients), names(satellite));
    let connections = deployment.limits.connections;
    let engine = engine::rules::Rules::new(threads, marks, &satellite);
    format!(
        "table inet {table} {{
{counters}{of_udp}  set alive {{ type ifname; size 256; flags dynamic; }}
{sets}{chains}{deciding}{udp}{raw}{late}{outgoing}{marker}}}
",
        table = slot.table(),
        counters = UNSPLIT.map(|(reason, _)| format!("  counter {} {{ }}\n", counter(reason))).concat(),
        of_udp = udp::counters(deployment),
        udp = udp::chains(deployment),
        sets = engine.sets(connections),
        chains = engine.chains(),
        deciding = deciding(deployment, slot),
        raw = raw(&clients, &engine),
        late = late(deployment, target, marks, &engine),
        outgoing = outgoing(&deployment.interfaces, marks, slot),
        marker = early_demux::marker(before),
    )
}

/// Name of the counter of SYNs that are left alone for a reason.
fn counter(reason: Reason) -> String {
    format!("untouched-{}", reason.word())
}

/// Reasons for which SYNs are left alone, and names of their counters.
pub(crate) fn unsplit() -> impl Iterator<Item = (Reason, String)> {
    UNSPLIT.iter().map(|(reason, _)| (*reason, counter(*reason)))
}

/// The chains that decide which SYNs are split: after the chains `forward` of the administrator.
fn deciding(deployment: &Deployment, slot: Slot) -> String {
    let mut text = String::new();
    for opener in OPENERS {
        let _ = write!(
            text,
            "  chain take-{} {{
    ct state != {{ new, untracked }} return
    ct status confirmed return
",
            word(opener)
        );
        for (reason, conditions) in UNSPLIT {
            for condition in conditions {
                let _ = writeln!(text, "    {condition} counter name {} return", counter(reason));
            }
        }
        let _ = write!(
            text,
            "    log group {} queue-threshold 1 drop
  }}
",
            sight::group(slot, opener)
        );
    }
    let _ = write!(
        text,
        "  chain classes {{
{}  }}
  chain forwarded {{
    type filter hook forward priority filter + 1000; policy accept;
    iifname @alive {SYN} jump classes
  }}
",
        conditions::lines(&class_rules(deployment))
    );
    text
}

/// The chain before connection tracking: it sets the zones of packets that arrive.
fn raw(clients: &str, engine: &engine::rules::Rules<'_>) -> String {
    let mut text =
        "  chain arriving {\n    type filter hook prerouting priority raw - 1; policy accept;\n".to_owned();
    for condition in OF_CONNECTIONS {
        let _ = writeln!(
            text,
            "    iifname {clients} {condition} socket transparent 1 ct zone set {ZONE_CLIENTS} accept"
        );
    }
    text + &engine.leaving(ZONE_SATELLITE) + "  }\n"
}

/// The chains after those of the administrator, and before the routing decision. A filter of reverse paths there would not find the way back with a mark
/// of the proxy, nor that of a SYN that has its listening socket already.
fn late(deployment: &Deployment, target: Target, marks: Marks, engine: &engine::rules::Rules<'_>) -> String {
    let interfaces = &deployment.interfaces;
    let (slot, local) = (target.slot, marks.set(Kind::Local));
    let (clients, satellite) = (names(&interfaces.clients), names(&interfaces.satellite));
    let all: Vec<String> = interfaces.clients.iter().chain(&interfaces.satellite).cloned().collect();
    let put_back = OPENERS
        .map(|opener| format!("    iifname \"lo\" {} goto deliver\n", marks.is(Kind::PutBack(slot, opener))));
    let rules = format!(
        "    iifname {clients} ct zone {ZONE_CLIENTS} {local} accept
    iifname {clients} ct state invalid {other} socket transparent 1 {local} accept
{sent}{engine}    iifname {satellite} {icmp} socket transparent 1 {local} accept
    iifname {satellite} {other} socket transparent 1 {local} accept
    iifname {all} {SYN} {unmarked} jump look-alive
{quic}",
        all = names(&all),
        sent = engine.sent(),
        engine = engine.arriving(),
        unmarked = marks.is_none(),
        quic = udp::asking(deployment, marks),
        icmp = OF_CONNECTIONS[0],
        other = OF_CONNECTIONS[1],
    );
    format!(
        "  chain deliver {{
{listeners}  }}
  chain look-alive {{
    {alive}
    fib daddr . mark oifname != \"{device}\" delete @alive {{ meta iifname }}
    fib daddr . mark oifname \"{device}\" update @alive {{ meta iifname }}
    {unset}
  }}
  chain late {{
    type filter hook prerouting priority {LATE}; policy accept;
{put_back}{rules}  }}
",
        listeners = listeners(target.ports, marks),
        put_back = put_back.concat(),
        alive = marks.set(Kind::Alive(slot)),
        device = slot.device(),
        unset = marks.unset(),
    )
}

/// The chains for what this machine sends: its packets get their zones, and SYNs that are put back keep their addresses and ports. The entry of connection
/// tracking of a connection that the proxy opens begins with the mark of its SYN: rules that restore marks from there (mwan3) would unset it otherwise.
pub(crate) fn outgoing(interfaces: &Interfaces, marks: Marks, slot: Slot) -> String {
    let (clients, satellite) = (names(&interfaces.clients), names(&interfaces.satellite));
    let [of_clients, of_satellite] = OPENERS.map(|opener| marks.is(Kind::PutBack(slot, opener)));
    let [unchanged_source, unchanged_destination] = ["snat", "dnat"].map(|statement| {
        let end = if statement == "snat" { "saddr" } else { "daddr" };
        let of_version = |(family, number): (&str, u8)| {
            [&of_clients, &of_satellite]
                .map(|is| {
                    format!("    meta nfproto ipv{number} {is} {statement} {family} to {family} {end}\n")
                })
                .concat()
        };
        [("ip", 4), ("ip6", 6)].map(of_version).concat()
    });
    format!(
        "  chain outgoing {{
    type filter hook output priority raw - 1; policy accept;
    meta priority {PASSING} meta priority set 0:0 accept
    meta priority {asking} {SYN} log group {asked} queue-threshold 1 drop
    meta priority {asking} meta priority set 0:0
    {of_clients} ct zone set {ZONE_CLIENTS} accept
    {of_satellite} accept
    oifname {clients} {ours} ct zone set {ZONE_CLIENTS} accept
    oifname {clients} fib saddr type != local ct zone set {ZONE_CLIENTS} accept
    oifname {satellite} fib saddr type != local ct original zone set {ZONE_SATELLITE}
  }}
  chain marked {{
    type filter hook output priority -199; policy accept;
    oifname {all} fib saddr type != local ct state new ct mark 0 ct mark set meta mark & {others:#x}
  }}
  chain unchanged-source {{
    type nat hook postrouting priority srcnat - 1; policy accept;
{unchanged_source}  }}
  chain unchanged-destination {{
    type nat hook output priority -101; policy accept;
{unchanged_destination}  }}
",
        all = names(&interfaces.clients.iter().chain(&interfaces.satellite).cloned().collect::<Vec<_>>()),
        others = !marks.bits(),
        ours = marks.is(Kind::Ours),
        asking = sockets::asking(slot),
        asked = sight::group_of_asked(slot),
    )
}

/// A script that diverts the SYNs of all classes of a configuration and refuses their QUIC, or neither. Connections that exist are not affected.
pub(crate) fn divert(slot: Slot, deployment: Option<&Deployment>) -> String {
    let table = slot.table();
    let mut script = String::new();
    let of = |rules: fn(&Deployment) -> Vec<String>| deployment.map(rules).unwrap_or_default();
    for (chain, rules) in [("classes", of(class_rules)), (udp::REFUSALS, of(udp::refusals))] {
        let _ = writeln!(script, "flush chain inet {table} {chain}");
        for rule in rules {
            let _ = writeln!(script, "add rule inet {table} {chain} {rule}");
        }
    }
    script
}

/// Delivers a SYN to the listening socket of its IP version.
pub(crate) fn listeners(ports: Ports, marks: Marks) -> String {
    let ours = marks.set(Kind::Ours);
    let mut text =
        format!("    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:{} {ours} accept\n", ports.v4);
    if let Some(port) = ports.v6 {
        let _ =
            writeln!(text, "    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:{port} {ours} accept");
    }
    text
}

fn class_rules(deployment: &Deployment) -> Vec<String> {
    conditions::rules(deployment, Packets::SYNS, |_, class| match class.proxy {
        true => format!("goto take-{}", word(class.matches.opener)),
        false => "accept".to_owned(),
    })
}

/// Installs the rules of the packet filter in one transaction. Sets of connections and counters keep their contents. The classes divert
/// SYNs only if `diverting`.
pub(crate) fn install(
    deployment: &Deployment,
    target: Target,
    before: &str,
    diverting: bool,
) -> Result<(), Error> {
    let table = target.slot.table();
    let plan = plan(deployment, target, before);
    let classes = divert(target.slot, diverting.then_some(deployment));
    Ok(nft(&format!("table inet {table}\nflush table inet {table}\n{plan}{classes}"))?)
}

/// Describes the rules and their effect for a person. If possible, the packet filter checks them. Changes nothing.
///
/// # Errors
///
/// [`Error::Request`] if the packet filter would refuse them.
pub fn check(deployment: &Deployment) -> Result<String, Error> {
    // The ports are known only when the proxy runs.
    let plan = plan(deployment, Target::NONE, "1");
    let mut text = String::new();
    for class in &deployment.classes {
        let _ = writeln!(text, "# {}: {}", class.name, description(class));
    }
    text.push_str("# everything else: forwarded untouched\n#\n# rules of this machine that mean something else for a split connection:\n");
    match unkept::on_this_machine() {
        Ok(found) if found.is_empty() => text.push_str("# none\n"),
        Ok(found) => found.iter().for_each(|sentence| text += &format!("# {sentence}\n")),
        Err(error) => text += &format!("# not known: {error}\n"),
    }
    text.push_str("#\n# rules of the packet filter (the ports of tproxy are chosen at the start):\n");
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
    let classes = [Opening::Early, Opening::ServerFirst].map(|syn| Class {
        quic: Quic::Refuse,
        split: Split { syn, ..Split::default() },
        ..Class::default()
    });
    let interfaces = Interfaces { clients: vec!["clients".into()], satellite: vec!["satellite".into()] };
    let deployment = Deployment { interfaces, classes: classes.into(), ..Deployment::default() };
    plan(&deployment, Target::NONE, "1")
}

/// Describes the treatment of a class.
fn description(class: &Class) -> String {
    let quic = match class.quic {
        Quic::Forward => "",
        Quic::Refuse => "; new flows to UDP port 443 are refused",
    };
    treatment(class) + quic
}

/// Describes the treatment of the connections of a class.
fn treatment(class: &Class) -> String {
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
        let limit = side.rate_limit.map_or_else(String::new, |limit| format!(", at most {limit}"));
        let resumes = if side.careful_resume.is_some() { " with Careful Resume" } else { "" };
        format!("{} of {datapath}{resumes}{limit}", side.cc)
    };
    format!(
        "{which} are split, {when}; over the satellite {}, to the clients {}",
        side(&class.split.satellite),
        side(&class.split.clients)
    )
}

/// Removes the rules and routes of dead proxies, and keeps those of running ones. Returns the tables that were removed.
///
/// # Errors
///
/// [`Error`] if the packet filter cannot be changed.
pub fn clean() -> Result<Vec<&'static str>, Error> {
    let tables = NFT.run(&["list", "tables", "inet"], "")?;
    let is_there = |table: &&'static str| tables.lines().any(|line| line == format!("table inet {table}"));
    let gone: Vec<Slot> = Slot::all().filter(|slot| slot.holder().is_none()).collect();
    gone.iter().copied().try_for_each(remove)?;
    Ok(gone.into_iter().map(Slot::table).filter(is_there).collect())
}

/// The rules of a slot that are installed.
pub(crate) struct Installed(pub Slot);

impl Drop for Installed {
    fn drop(&mut self) {
        if let Err(error) = remove(self.0) {
            eprintln!(
                "bentpipe: the rules could not be removed: {error}; remove them with `bentpipe pep clean`"
            );
        }
    }
}

/// Removes everything that a proxy leaves for a slot.
pub(crate) fn remove(slot: Slot) -> Result<(), Error> {
    let before = early_demux::before(slot);
    let table = slot.table();
    nft(&format!("table inet {table}\ndelete table inet {table}\n"))?;
    routes::remove(slot);
    queue::remove(slot);
    early_demux::restore(before);
    Ok(())
}
