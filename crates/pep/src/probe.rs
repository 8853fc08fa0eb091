//! The probe: a connection through the path of proxied ones, before any client's connection is diverted.
//!
//! Rules of the administrator may drop what the proxy's sockets send and receive. So a probe makes both halves of a connection between two
//! addresses of hosts on both sides. The packets of the probe pass all rules and are dropped behind the last one. The TUN device of the proxy
//! injects the answers. If a rule drops a packet, the trace of the packet filter names the chain.

use std::fmt::Write;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bentpipe_base::Flags;
use bentpipe_host::Device;
use bentpipe_scenario::deployment::{Deployment, Opener, Side, interface_fits};
use bentpipe_system::{IP, NFT, nft};
use bentpipe_wire::{Datagram, Ends, Header, IpFields, Packet, Payload, VIRTIO_HEADER_LEN};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::engine;
use crate::error::Error;
use crate::marks::{Kind, Marks};
use crate::packet::Tuple;
use crate::routes;
use crate::rules;
use crate::sight::Manner;
use crate::sight::{Sight, Way};
use crate::slot::Slot;
use crate::sockets::{self, Listeners, Ports, RawSender};
use crate::unkept;

const TABLE: &str = "bentpipe-probe";
/// Group of nflog (chosen, behind those of the proxies).
const GROUP: u16 = 0x6280;
/// Ports of clients (chosen). Each probe has another one, because connection tracking remembers the last ones for a while.
const CLIENT_PORTS: std::ops::Range<u16> = 62_000..63_000;
/// Port of the server (chosen: the discard service).
const SERVER_PORT: u16 = 9;
/// Maximum time of a packet within this machine (chosen).
const PATIENCE: Duration = Duration::from_millis(500);

/// An obstacle for the proxy's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Obstacle {
    /// Packet of the probe that was dropped.
    step: Step,
    /// Over IPv4, or over IPv6.
    pub is_v4: bool,
    /// Place where a packet of the probe was dropped.
    pub what: String,
    /// The command that admits it.
    pub fix: String,
}

impl Obstacle {
    /// True if the obstacle drops only packets of the engine.
    pub fn is_of_engine(&self) -> bool {
        self.step == Step::Engine
    }
}

/// A step of the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The answer to the client's SYN.
    Answer,
    /// The acknowledgement of that by the client.
    Acknowledgement,
    /// The SYN to the server.
    Syn,
    /// The answer of the server.
    ServerAnswer,
    /// A packet from a TUN device, as those of the engine.
    Engine,
    /// No packet: rules would not translate the address of the SYN to the server.
    Translation,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Self::Answer => "the answer to a client's SYN",
            Self::Acknowledgement => "a client's packet for the proxy",
            Self::Syn => "the SYN that the proxy sends to a server",
            Self::ServerAnswer => "a server's packet for the proxy",
            Self::Engine => "a packet from the TUN device of the engine",
            Self::Translation => "the translation of addresses",
        }
    }
}

/// Sends a probe through the path of connections of clients, in both IP versions. Where an interface or a route is missing, nothing is probed.
///
/// # Errors
/// [`Error`] if the probe itself cannot be made.
pub(crate) fn probe(deployment: &Deployment, slot: Slot, device: &Device) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::from_iter(unkept::translating_by_arrival()?.map(untranslated));
    for is_v4 in [true, false] {
        let (Some(client), Some(server)) = (
            neighbour(&deployment.interfaces.clients, is_v4),
            neighbour(&deployment.interfaces.satellite, is_v4),
        ) else {
            continue;
        };
        let tuple = Tuple {
            client: SocketAddr::new(client, client_port()),
            server: SocketAddr::new(server, SERVER_PORT),
        };
        let probe = Probe { deployment, slot, device, tuple };
        let Some(step) = probe.pass(false)? else { continue };
        let trace = Trace::start();
        probe.pass(true)?;
        obstacles.push(obstacle(step, trace.and_then(Trace::verdict), Marks::of(deployment), tuple));
    }
    Ok(obstacles)
}

fn client_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let step = std::process::id().wrapping_add(NEXT.fetch_add(7, Ordering::Relaxed));
    CLIENT_PORTS.start + (step % CLIENT_PORTS.len() as u32) as u16
}

/// A connection between two addresses.
struct Probe<'a> {
    deployment: &'a Deployment,
    slot: Slot,
    device: &'a Device,
    tuple: Tuple,
}

impl Probe<'_> {
    /// Makes the connection. Returns the step that failed, if one did.
    fn pass(&self, traced: bool) -> Result<Option<Step>, Error> {
        let marks = Marks::of(self.deployment);
        let listeners =
            Listeners::open(None, marks.value(Kind::Ours)).map_err(Error::at("a transparent socket"))?;
        if self.tuple.server.is_ipv6() && listeners.ports.v6.is_none() {
            return Ok(None);
        }
        nft(&self.table(listeners.ports, traced))?;
        let _installed = Installed;
        let sight = Sight::open(GROUP).map_err(Error::at("nflog"))?;
        let put_back = RawSender::marked(marks.value(Kind::PutBack(self.slot, Opener::Clients)));
        let put_back = put_back.map_err(Error::at("a raw socket"))?;
        let alive = marks.value(Kind::Alive(self.slot));
        let step = Path { probe: self, sight, put_back, listeners, alive }.walk();
        // Packets sent by the device have been read.
        let mut buffer = [0; 2048];
        while self.device.read(&mut buffer).is_ok() {}
        Ok(step)
    }

    /// Rules of policy routing by which the filter of reverse paths takes packets from `from` as coming by the device.
    fn arrival(&self, from: IpAddr, to: IpAddr) -> routes::Arrival {
        routes::Arrival::new(self.slot, Marks::of(self.deployment), from, to)
    }
}

/// The table of the probe, which is removed when this is dropped.
struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = nft(&format!("delete table inet {TABLE}\n"));
    }
}

impl Probe<'_> {
    fn table(&self, ports: Ports, traced: bool) -> String {
        let Self { deployment, slot, tuple, .. } = *self;
        let device = slot.device();
        let marks = Marks::of(deployment);
        let family = if tuple.client.is_ipv4() { "ip" } else { "ip6" };
        let (client, server) = (tuple.client.ip(), tuple.server.ip());
        let there = format!("{family} saddr {client} {family} daddr {server} tcp dport {SERVER_PORT}");
        let back = format!("{family} saddr {server} tcp sport {SERVER_PORT}");
        let trace = match traced {
        false => String::new(),
        true => ["prerouting", "output"]
            .map(|hook| {
                format!(
                    "  chain trace-{hook} {{\n    type filter hook {hook} priority -500; policy accept;\n    {there} meta nftrace set 1\n    {back} meta nftrace set 1\n  }}\n"
                )
            })
            .concat(),
    };
        let mut text =
            format!("table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{trace}");
        let _ = write!(
        text,
        "  chain arriving {{
    type filter hook prerouting priority raw - 2; policy accept;
    iifname \"{device}\" {there} tcp flags & psh == 0x0 ct zone set {zone}
    iifname \"{device}\" tcp flags & psh == psh {of_device}
  }}
  chain late {{
    type filter hook prerouting priority {late}; policy accept;
    iifname \"lo\" {put_back} {there} goto deliver
    iifname \"{device}\" tcp flags & psh == 0x0 {local}
    iifname \"{device}\" tcp flags & psh == psh {unset}
  }}
  chain deliver {{
{listeners}  }}
  chain last {{
    type filter hook postrouting priority 10000; policy accept;
    oifname \"{device}\" {there} log group {GROUP} queue-threshold 1 accept
    oifname != \"lo\" meta l4proto tcp {family} saddr {server} {family} daddr {client} tcp sport {SERVER_PORT} log group {GROUP} queue-threshold 1 drop
    oifname != \"lo\" meta l4proto tcp {family} daddr {server} tcp dport {SERVER_PORT} log group {GROUP} queue-threshold 1 drop
  }}
{outgoing}}}
",
        zone = rules::ZONE_CLIENTS,
        late = rules::LATE - 1,
        put_back = marks.is(Kind::PutBack(slot, Opener::Clients)),
        local = marks.set(Kind::Local),
        // The engine's packets also have a mark with a route into their device.
        of_device = marks.set(Kind::Alive(slot)),
        unset = marks.unset(),
        listeners = rules::listeners(ports, marks),
        outgoing = rules::outgoing(&deployment.interfaces, marks, slot),
    );
        text
    }
}

/// Requirements of a probe.
struct Path<'a> {
    probe: &'a Probe<'a>,
    sight: Sight,
    put_back: RawSender,
    listeners: Listeners,
    /// Mark of packets that leave by the device.
    alive: u32,
}

/// A packet that passed all rules.
struct Left {
    ends: Ends,
    sequence: u32,
}

impl Path<'_> {
    fn walk(mut self) -> Option<Step> {
        let Tuple { client, server } = self.probe.tuple;
        let (from_client, from_server) =
            (Ends { local: client, remote: server }, Ends { local: server, remote: client });
        // If it cannot be sent, nothing answers.
        let _ = self.put_back.send(&packet(from_client, Flags::SYN, [1000, 0]), server);
        let Some(answer) = self.wait_for_packet(server) else { return Some(Step::Answer) };
        let arrival = self.probe.arrival(client.ip(), server.ip());
        self.put_in(&packet(from_client, Flags::ACK, [1001, answer.sequence.wrapping_add(1)]));
        let Some(front) = self.accepted() else { return Some(Step::Acknowledgement) };
        drop(arrival);
        // A SYN that leaves by the interface is dropped before connection tracking knows of it. So another one leaves by the device.
        let first = self.dial(0)?;
        if self.wait_for_syn().is_none() {
            return Some(Step::Syn);
        }
        drop(first);
        let back = self.dial(self.alive)?;
        let Some(syn) = self.wait_for_syn() else { return Some(Step::Syn) };
        let arrival = self.probe.arrival(server.ip(), client.ip());
        let ends = Ends { remote: syn.ends.local, ..from_server };
        self.put_in(&packet(ends, Flags::SYN | Flags::ACK, [5000, syn.sequence.wrapping_add(1)]));
        if !connected(&back) {
            return Some(Step::ServerAnswer);
        }
        drop(arrival);
        // With `tcp_early_demux`, the kernel takes packets for the socket that it forwards otherwise.
        drop(front);
        if engine::threads(self.probe.deployment) > 0 {
            // The kernel has acknowledged the answer with a smaller number.
            let sequence = syn.sequence.wrapping_add(2);
            self.put_in(&packet(from_client, Flags::ACK | Flags::PSH, [sequence, 5001]));
            return match self.wait_for(|left| left.sequence == sequence) {
                Some(_) => None,
                None => Some(Step::Engine),
            };
        }
        None
    }

    fn dial(&self, mark: u32) -> Option<OwnedFd> {
        let manner = Manner { way: Way { mark, out: 0 }, ..Manner::default() };
        sockets::dial(self.probe.tuple, &Side::default(), None, manner).ok()
    }

    /// Waits for a packet from this end that has passed all rules.
    fn wait_for_packet(&mut self, from: SocketAddr) -> Option<Left> {
        self.wait_for(|left| left.ends.local == from)
    }

    /// Waits for a packet to the server, whose source may have been translated.
    fn wait_for_syn(&mut self) -> Option<Left> {
        let server = self.probe.tuple.server;
        self.wait_for(|left| left.ends.remote == server)
    }

    fn wait_for(&mut self, is_it: impl Fn(&Left) -> bool) -> Option<Left> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            wait(&self.sight, PollFlags::IN);
            let mut found = None;
            let read = self.sight.read(|packet, _| found = left(packet).filter(|left| is_it(left)));
            if read.is_ok() && found.is_some() {
                return found;
            }
        }
        None
    }

    fn put_in(&self, packet: &[u8]) {
        let mut whole = vec![0; VIRTIO_HEADER_LEN];
        whole.extend_from_slice(packet);
        // If it cannot be written, the probe gets no answer.
        let _ = self.probe.device.write(&whole);
    }

    fn accepted(&self) -> Option<sockets::Accepted> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let accepted = self.listeners.sockets.iter().find_map(|listener| sockets::accept(listener).ok());
            if accepted.is_some() {
                return accepted;
            }
            thread::sleep(PATIENCE / 100);
        }
        None
    }
}

fn connected(socket: &OwnedFd) -> bool {
    wait(socket, PollFlags::OUT) && rustix::net::getpeername(socket).is_ok()
}

/// True if it became ready in time.
fn wait(file: &impl AsFd, flags: PollFlags) -> bool {
    let patience = Timespec { tv_sec: 0, tv_nsec: PATIENCE.subsec_nanos().into() };
    poll(&mut [PollFd::new(file, flags)], Some(&patience)).is_ok_and(|ready| ready > 0)
}

fn packet(ends: Ends, flags: Flags, [seq, ack]: [u32; 2]) -> Vec<u8> {
    let tcp = Header { flags, seq, ack, window: 65_535, ..Header::default() };
    let mut bytes = Vec::with_capacity(80);
    Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Bytes(&[]) }.write_headers(&mut bytes);
    bytes
}

fn left(packet: &[u8]) -> Option<Left> {
    // Senders leave checksums to the network card, and this one may have left that of IP.
    let datagram = Datagram::read(packet).ok()?;
    let tcp = datagram.payload.get(..20)?;
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let ends = Ends {
        local: SocketAddr::new(datagram.source, port(0)),
        remote: SocketAddr::new(datagram.destination, port(2)),
    };
    Some(Left { ends, sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]) })
}

/// Returns an address behind one of these interfaces that does not belong to this machine.
fn neighbour(patterns: &[String], is_v4: bool) -> Option<IpAddr> {
    let family = if is_v4 { "-4" } else { "-6" };
    let read = |arguments: &[&str]| -> Vec<Value> {
        let text = IP.run(arguments, "").unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    };
    let own: Vec<String> = read(&["-j", family, "addr", "show"])
        .iter()
        .flat_map(|link| link["addr_info"].as_array().cloned().unwrap_or_default())
        .filter_map(|address| address["local"].as_str().map(str::to_owned))
        .collect();
    let routes = read(&["-j", family, "route", "show", "table", "all"]);
    let fits = |route: &&Value| {
        let device = route["dev"].as_str().unwrap_or_default();
        route["type"].as_str().is_none_or(|kind| kind == "unicast")
            && patterns.iter().any(|pattern| interface_fits(pattern, device))
    };
    let address = |route: &Value| {
        let elsewhere = if is_v4 { "1.1.1.0/24" } else { "2606:4700:4700::/64" };
        let to = route["dst"].as_str().filter(|to| *to != "default").unwrap_or(elsewhere);
        let (network, length) = to.split_once('/').unwrap_or((to, "128"));
        let (network, length): (IpAddr, u32) = (network.parse().ok()?, length.parse().ok()?);
        // Returns an address that hosts rarely have; on point-to-point links, the address of the host.
        let host = (if is_v4 { 32u32 } else { 128 }).saturating_sub(length).min(16);
        let last = (1u32 << host) - 1;
        let candidate = |step: u32| {
            let offset = last.saturating_sub(step);
            match network {
                IpAddr::V4(address) => IpAddr::V4((address.to_bits() + offset).into()),
                IpAddr::V6(address) => IpAddr::V6((address.to_bits() + u128::from(offset)).into()),
            }
        };
        let is_v6_link_local =
            |address: &IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        let steps = if host == 0 { 0..1 } else { 1..8 };
        steps.map(candidate).find(|address| {
            !is_v6_link_local(address) && !address.is_multicast() && !own.contains(&address.to_string())
        })
    };
    routes.iter().filter(fits).find_map(address)
}

/// The trace of the packet filter.
struct Trace(Child);

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Trace {
    fn start() -> Option<Self> {
        let child = Command::new(NFT.name)
            .args(["monitor", "trace"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        // The trace needs some time to start.
        thread::sleep(PATIENCE / 3);
        child.ok().map(Self)
    }

    /// Family, table, chain and rule that dropped a packet.
    fn verdict(mut self) -> Option<(String, String)> {
        thread::sleep(PATIENCE / 3);
        let _ = self.0.kill();
        let mut text = String::new();
        self.0.stdout.take()?.read_to_string(&mut text).ok()?;
        let swallows = |line: &&str| {
            let dropped = ["verdict drop", "policy drop"].iter().any(|word| line.contains(word));
            (dropped || line.contains("reject")) && !line.contains(TABLE)
        };
        let line = text.lines().rfind(swallows)?;
        let words: Vec<&str> = line.split_whitespace().skip(3).collect();
        let (chain, rest) = words.split_at_checked(3)?;
        let what = match rest.first() {
            Some(&"policy") => "its policy".to_owned(),
            _ => format!("its {}", rest.join(" ")),
        };
        Some((chain.join(" "), what))
    }
}

fn obstacle(step: Step, verdict: Option<(String, String)>, marks: Marks, tuple: Tuple) -> Obstacle {
    let is_v4 = tuple.client.is_ipv4();
    let version = if is_v4 { "IPv4" } else { "IPv6" };
    let words = step.words();
    let admitted = match step {
        Step::Syn => "fib saddr type != local".to_owned(),
        Step::Engine => "iifname \"bp-*\"".to_owned(),
        _ => marks.is_any(),
    };
    let (by, fix) = match verdict {
        Some((chain, what)) => {
            (format!("by the chain {chain} ({what})"), format!("nft insert rule {chain} {admitted} accept"))
        }
        None => (
            "and the packet filter does not tell by which chain".to_owned(),
            format!("admit packets with `{admitted}` in the rules of iptables-legacy"),
        ),
    };
    let result = match step {
        Step::Engine => {
            format!(
                "connections of classes with datapath = \"engine\" are forwarded untouched over {version}"
            )
        }
        _ => "all connections are forwarded untouched".to_owned(),
    };
    Obstacle { step, is_v4, what: format!("{version}: {words} is dropped {by}; {result}"), fix }
}

/// Rules that translate what a client sends, but not what the proxy sends in its name.
fn untranslated(chain: String) -> Obstacle {
    Obstacle {
        step: Step::Translation,
        is_v4: true,
        what: format!(
            "the chain {chain} translates addresses by the interface of arrival, which packets of the proxy do not have; all connections are \
             forwarded untouched"
        ),
        fix: "write its rule with the addresses of the clients (ip saddr) instead of iifname".to_owned(),
    }
}

/// Describes obstacles for a person.
pub(crate) fn words(obstacles: &[Obstacle]) -> String {
    obstacles
        .iter()
        .map(|Obstacle { what, fix, .. }| format!("{what}; fix: {fix}"))
        .collect::<Vec<_>>()
        .join("\nbentpipe: ")
}
