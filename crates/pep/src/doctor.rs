//! Checks of the proxy's requirements on this machine, and the commands that install missing ones.

use std::fs;
use std::path::Path;

use bentpipe_scenario::deployment::{Datapath, Deployment, Interfaces, Quic, interface_fits};
use bentpipe_system::{IP, NFT};
use caps::{CapSet, Capability};
use nix::sys::resource::{Resource, getrlimit};

use crate::error::Error;
use crate::marks::Marks;
use crate::outside;
use crate::privileges;
use crate::probe::{self, Obstacle};
use crate::queue;
use crate::routes;
use crate::rules;
use crate::slot::{self, Slot};
use crate::sockets;
use crate::unkept;

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// As it should be.
    Ok,
    /// The proxy works, but perhaps not as well as it could.
    Warning,
    /// The proxy does not work.
    Missing,
}

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The result.
    pub state: State,
    /// The checked requirement and the result.
    pub what: String,
    /// The command that corrects it; empty if nothing is wrong.
    pub fix: String,
}

/// Largest bandwidth-delay product for which buffers should suffice: 50 Mbit/s over a geostationary satellite.
const PRODUCT: u64 = 4 << 20;
/// Descriptors that suffice for more than 10,000 connections (chosen).
const DESCRIPTORS: u64 = 65_536;

fn ok(what: impl Into<String>) -> Finding {
    Finding { state: State::Ok, what: what.into(), fix: String::new() }
}

fn judge(good: bool, otherwise: State, what: impl Into<String>, fix: impl Into<String>) -> Finding {
    if good { ok(what) } else { Finding { state: otherwise, what: what.into(), fix: fix.into() } }
}

/// Checks this machine, with the interfaces and algorithms of `deployment`.
pub fn examine(deployment: Option<&Deployment>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(programs());
    findings.extend(capabilities());
    findings.push(judge(
        Path::new("/dev/net/tun").exists(),
        State::Missing,
        "TUN device /dev/net/tun",
        "modprobe tun",
    ));
    findings.push(packet_filter());
    findings.extend(forwarding());
    findings.extend(settings());
    if let Some(deployment) = deployment {
        findings.extend(algorithms(deployment));
        findings.extend(interfaces(deployment));
        findings.extend(bridges());
        findings.extend(rules_of_others());
        findings.extend(answers_to_quic(deployment));
        findings.extend(queue(deployment));
        findings.extend(probe(deployment));
    }
    findings
}

/// Sends a probe through the path of proxied connections.
fn probe(deployment: &Deployment) -> Vec<Finding> {
    match try_probe(deployment) {
        Ok(obstacles) if obstacles.is_empty() => {
            vec![ok("packet filter of the administrator: a probe has passed")]
        }
        Ok(obstacles) => obstacles
            .into_iter()
            .map(|Obstacle { what, fix, .. }| judge(false, State::Missing, what, fix))
            .collect(),
        Err(error) => vec![judge(
            false,
            State::Warning,
            format!("packet filter of the administrator: no probe could be made: {error}"),
            "run it as root (sudo bentpipe pep doctor)",
        )],
    }
}

/// Reports rules that have another effect on a split connection.
fn rules_of_others() -> Option<Finding> {
    let count = unkept::on_this_machine().ok()?.len();
    let kinds = if count == 1 { "1 kind".to_owned() } else { format!("{count} kinds") };
    let what =
        format!("rules of the administrator: {kinds} of them mean something else for a split connection");
    (count > 0).then(|| judge(false, State::Warning, what, "bentpipe pep check FILE.toml names them"))
}

/// Reports that the rules of this router also see packets between ports of a bridge (`br_netfilter`).
fn bridges() -> Option<Finding> {
    let names = ["net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"];
    let on: Vec<&str> =
        names.into_iter().filter(|name| sysctl(name).is_some_and(|value| value != "0")).collect();
    let devices = fs::read_dir("/sys/class/net").ok()?.flatten();
    let are_bridges = devices.filter(|entry| entry.path().join("bridge").exists()).count();
    (are_bridges > 0 && !on.is_empty()).then(|| {
        judge(
            false,
            State::Warning,
            format!(
                "br_netfilter ({}): packets from port to port of a bridge pass the rules of the router, and are not split",
                on.join(", ")
            ),
            on.iter().map(|name| format!("sysctl -w {name}=0")).collect::<Vec<_>>().join("; "),
        )
    })
}

/// Bit of ICMP destination unreachable in `icmp_ratemask`.
const UNREACHABLE: u32 = 1 << 3;

/// Checks that the kernel answers all packets of QUIC that are refused.
fn answers_to_quic(deployment: &Deployment) -> Option<Finding> {
    let mask: u32 = sysctl("net.ipv4.icmp_ratemask")?.parse().ok()?;
    let refuses = deployment.classes.iter().any(|class| class.quic == Quic::Refuse);
    refuses.then(|| {
        judge(
            mask & UNREACHABLE == 0,
            State::Warning,
            format!(
                "quic = \"refuse\": net.ipv4.icmp_ratemask = {mask} limits the answers to one client, so browsers wait for a timeout"
            ),
            format!("sysctl -w net.ipv4.icmp_ratemask={}", mask & !UNREACHABLE),
        )
    })
}

/// Tries the queue of the satellite interfaces at a device of its own.
fn queue(deployment: &Deployment) -> Option<Finding> {
    let queue = deployment.queue.as_ref()?;
    let what = "satellite-queue: FQ-CoDel of the kernel";
    let attempt = || {
        let (held, _other) = slot::hold(true)?;
        let _device = held.slot.open_device()?;
        queue::add(held.slot.device(), queue, held.slot)
    };
    Some(match attempt() {
        Ok(()) => ok(what),
        Err(error) => {
            judge(false, State::Warning, format!("{what}: {error}"), "modprobe sch_fq_codel sch_tbf")
        }
    })
}

/// Uses a slot for the moment. A proxy may run beside it.
fn try_probe(deployment: &Deployment) -> Result<Vec<Obstacle>, Error> {
    let (held, _other) = slot::hold(true)?;
    let device = held.slot.open_device()?;
    let _installed = rules::Installed(held.slot);
    let with_v6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
    routes::install(Marks::of(deployment), held.slot, with_v6, 0..0)?;
    probe::probe(deployment, held.slot, &device)
}

fn sysctl(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok().map(|value| value.trim().to_owned())
}

fn programs() -> Vec<Finding> {
    [(NFT, "--version"), (IP, "-V")]
        .map(|(program, flag)| match program.run(&[flag], "") {
            Ok(version) => ok(format!("program {}: {}", program.name, version.trim())),
            Err(_) => {
                let fix = format!("apt-get install {}", program.package);
                judge(false, State::Missing, format!("program {}", program.name), fix)
            }
        })
        .into()
}

fn capabilities() -> Vec<Finding> {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    let fix = "run it as root (sudo), or set AmbientCapabilities= in the systemd unit";
    let needed = privileges::NEEDED
        .map(|capability| judge(has(capability), State::Missing, format!("capability {capability}"), fix));
    let useful = Capability::CAP_SYS_RESOURCE;
    let rest =
        judge(has(useful), State::Warning, format!("capability {useful}, for more than 64 large pipes"), fix);
    needed.into_iter().chain([rest]).collect()
}

/// Checks that the kernel has all expressions of the rules.
fn packet_filter() -> Finding {
    let what = "packet filter: inet tables, tproxy, socket, fib, log, reject, zones of connection tracking";
    let fix = "a kernel with CONFIG_NFT_TPROXY, CONFIG_NFT_SOCKET, CONFIG_NFT_FIB_INET, CONFIG_NFT_CT, CONFIG_NFT_REJECT_INET, \
                CONFIG_NF_CONNTRACK_ZONES, CONFIG_NFT_LOG, CONFIG_NFT_NAT, CONFIG_NETFILTER_NETLINK_LOG (Debian's has them: \
                modprobe nft_tproxy nft_socket nft_fib_inet nft_ct nft_reject_inet nft_log nft_chain_nat nfnetlink_log)";
    if !caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap_or(false) {
        let unknown = format!("{what}: not known without the capability CAP_NET_ADMIN");
        return judge(false, State::Warning, unknown, "run it as root (sudo bentpipe pep doctor)");
    }
    match NFT.run(&["-c", "-f", "-"], &rules::sample()).map_err(Error::from) {
        Ok(_) => ok(what),
        Err(error) => judge(false, State::Missing, format!("{what}: {error}"), fix),
    }
}

fn forwarding() -> Vec<Finding> {
    let of = |name: &str, otherwise: State| {
        judge(
            sysctl(name).is_some_and(|value| value == "1"),
            otherwise,
            format!("forwarding: {name}"),
            format!("sysctl -w {name}=1"),
        )
    };
    let mut findings = vec![of("net.ipv4.ip_forward", State::Missing)];
    if sysctl("net.ipv6.conf.all.forwarding").is_some() {
        findings.push(of("net.ipv6.conf.all.forwarding", State::Warning));
    }
    findings
}

fn settings() -> Vec<Finding> {
    let last =
        |name: &str| sysctl(name).and_then(|value| value.split_whitespace().next_back()?.parse::<u64>().ok());
    let mut findings = Vec::new();
    for (name, fix) in
        [("net.ipv4.tcp_rmem", "4096 131072 33554432"), ("net.ipv4.tcp_wmem", "4096 65536 33554432")]
    {
        let most = last(name).unwrap_or(0);
        findings.push(judge(
            most >= 2 * PRODUCT,
            State::Warning,
            format!("buffers: {name} up to {most} bytes (twice the bandwidth-delay product: {} for 50 Mbit/s over GEO)", 2 * PRODUCT),
            format!("sysctl -w {name}='{fix}'"),
        ));
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    findings.push(judge(
        hard >= DESCRIPTORS,
        State::Warning,
        format!("descriptors: {hard} (two for each connection, one with the engine)"),
        "ulimit -Hn 1048576, or LimitNOFILE= in the systemd unit",
    ));
    for name in ["net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog"] {
        let value = last(name).unwrap_or(0);
        findings.push(judge(
            value >= 4096,
            State::Warning,
            format!("bursts of new connections: {name} = {value}"),
            format!("sysctl -w {name}=16384"),
        ));
    }
    let tables = NFT.run(&["list", "tables", "inet"], "").unwrap_or_default();
    for slot in Slot::all() {
        let line = format!("table inet {}", slot.table());
        if tables.lines().any(|other| other == line) {
            findings.push(match slot.holder() {
                Some(_) => ok(format!("rules: {line} of a proxy that runs")),
                None => judge(
                    false,
                    State::Warning,
                    format!("rules: {line} of a proxy that was killed; no proxy runs"),
                    "bentpipe pep clean",
                ),
            });
        }
    }
    findings
}

fn algorithms(deployment: &Deployment) -> Vec<Finding> {
    let there_are = || sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let finding = |name: &str| match sockets::try_congestion_control(name) {
        Ok(()) => ok(format!("congestion control {name} of the kernel")),
        Err(error) => {
            let what =
                format!("congestion control {name} of the kernel: {error} (loaded are: {})", there_are());
            let fix = match name.strip_prefix("bp_") {
                Some(own) => format!("bentpipe kernel load {own}"),
                None => format!("modprobe tcp_{name}"),
            };
            judge(false, State::Missing, what, fix)
        }
    };
    kernel_algorithms(deployment).into_iter().map(finding).collect()
}

/// Congestion controls of Linux that a configuration names.
fn kernel_algorithms(deployment: &Deployment) -> Vec<&str> {
    let splits = deployment.classes.iter().filter(|class| class.proxy).map(|class| &class.split);
    let sides = splits.flat_map(|split| [&split.satellite, &split.clients]);
    let mut names: Vec<&str> =
        sides.filter(|side| side.datapath == Datapath::Kernel).filter_map(|side| side.kernel_cc()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Refuses a configuration with a congestion control that the kernel does not have, or that this process may not use.
pub(crate) fn refuse_missing_algorithms(deployment: &Deployment) -> Result<(), Error> {
    match algorithms(deployment).into_iter().find(|finding| finding.state == State::Missing) {
        Some(Finding { what, fix, .. }) => Err(Error::Missing(format!("{what}; it comes with: {fix}"))),
        None => Ok(()),
    }
}

fn interfaces(deployment: &Deployment) -> Vec<Finding> {
    let there_are: Vec<String> = fs::read_dir("/proc/sys/net/ipv4/conf")
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    let is_there = |pattern: &str| {
        there_are
            .iter()
            .any(|name| !matches!(name.as_str(), "all" | "default") && interface_fits(pattern, name))
    };
    let finding = |pattern: &String| {
        if let Some(bridge) = outside::bridge_of(pattern) {
            return judge(
                false,
                State::Missing,
                format!(
                    "interface {pattern} is a port of the bridge {bridge}: IP packets come over {bridge} and never over it"
                ),
                format!("write \"{bridge}\" in [interfaces]"),
            );
        }
        let mtu = sysctl(&format!("net/ipv6/conf/{pattern}/mtu"));
        let mtu = mtu.map_or_else(String::new, |mtu| format!(", MTU {mtu}"));
        let absent = if is_there(pattern) { "" } else { " is not there; the rules take it when it comes" };
        judge(
            absent.is_empty(),
            State::Missing,
            format!("interface {pattern}{mtu}{absent}"),
            "ip link (which ones are there), then [interfaces] in the configuration",
        )
    };
    let Interfaces { clients, satellite } = &deployment.interfaces;
    clients.iter().chain(satellite).map(finding).collect()
}

/// Says which interfaces of a configuration are missing or can never match.
pub(crate) fn warn_of_interfaces(deployment: &Deployment) {
    let findings = interfaces(deployment).into_iter().chain(bridges());
    for Finding { what, fix, .. } in findings.filter(|finding| finding.state != State::Ok) {
        eprintln!("bentpipe: {what}; fix: {fix}");
    }
}
