//! A scenario, typed and validated: what the simulator and the emulator build their worlds from.

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_mac::Access;
use bentpipe_middlebox::MiddleboxConfig;
use bentpipe_net::LinkConfig;
use bentpipe_orbit::Station;
use bentpipe_tcp::Recovery;
use bentpipe_traffic::{adaptive, browser, fetch, frames, mpeg, on_off, voice};
use bentpipe_transports::Options;
use bentpipe_transports::dtn::RouterConfig;
use bentpipe_transports::petra::RelayConfig;
use bentpipe_weather::{Modem, Weather};

use crate::series::Recordings;
use crate::sky::{ConstellationGroup, Position};
use crate::split::Split;

/// A world: its nodes, the links between them, the flows over them.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name: that of the file without its ending.
    pub name: String,
    /// One line for `bentpipe list scenarios`.
    pub title: String,
    /// Simulated time.
    pub duration: Duration,
    /// Seed of all random streams, unless the command line gives another.
    pub seed: u64,
    /// How packets are routed.
    pub routing: Routing,
    /// Constellations of satellites, at most one.
    pub constellations: Vec<ConstellationGroup>,
    /// Groups of hosts and routers.
    pub nodes: Vec<NodeGroup>,
    /// Groups of links.
    pub links: Vec<LinkGroup>,
    /// Groups of flows.
    pub flows: Vec<FlowGroup>,
}

impl Scenario {
    /// The flow group under comparison: the first that is not `fixed`, or else the first.
    pub fn compared_flow(&self) -> Option<&FlowGroup> {
        self.flows.iter().find(|group| !group.fixed).or(self.flows.first())
    }

    /// Gives every flow group that is not `fixed` this algorithm, be it a registered one or a user's own; the recovery
    /// is the one that the scenario gives to algorithms whose name brings none.
    pub fn set_algorithm(&mut self, algorithm: Algorithm) {
        for flow in self.flows.iter_mut().filter(|flow| !flow.fixed) {
            flow.cc = algorithm.name().to_owned();
            flow.set_ends(algorithm.clone(), flow.default_recovery);
        }
    }

    /// The ground stations, in the order of the nodes.
    pub fn ground_stations(&self) -> Vec<Station> {
        let station = |node: &NodeGroup| match node.kind {
            NodeKind::GroundStation(Position { latitude_deg, longitude_deg, gateway }) => {
                Some(Station { name: node.name.clone(), latitude_deg, longitude_deg, gateway })
            }
            _ => None,
        };
        self.nodes.iter().filter_map(station).collect()
    }

    /// A scenario of which only the name is known.
    pub(crate) fn unread(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: String::new(),
            duration: Duration::ZERO,
            seed: 1,
            routing: Routing::Fixed,
            constellations: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
        }
    }
}

/// The route of packets: the path with the fewest links, a path through a constellation counting as one, of these the one with the least
/// delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routing {
    /// The same from beginning to end, whether links are out or not.
    Fixed,
    /// Links that are out are avoided: every node knows when an outage begins or ends, and routes are looked up hop by hop.
    AvoidOutages,
}

/// Whether a node ends connections or only forwards.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// Ends connections.
    Host,
    /// Forwards packets.
    Router,
    /// Ends connections, forwards packets, and reaches other ground stations through a constellation.
    GroundStation(Position),
    /// Forwards packets and does something with them.
    Middlebox(MiddleboxConfig),
    /// Ends the TCP connections that pass it and opens others in their place (a split-connection PEP, RFC 3135 section 2.4);
    /// forwards other packets.
    Proxy(Box<ProxyConfig>),
    /// Keeps the bundles of flows over DTN that pass it until the next such node has them; forwards other packets.
    BundleRouter(RouterConfig),
    /// Passes on what flows over PETRA send, from one lower layer to the other; forwards other packets.
    RelayEntity(RelayConfig),
}

/// A split-connection proxy.
#[derive(Clone, PartialEq, Debug)]
pub struct ProxyConfig {
    /// What it does with a connection, in the words of the proxy on a real link.
    pub split: Split,
    /// When it connects onward if it answers SYNs at once.
    pub connect: Connect,
    /// When it crashes, with all that it keeps.
    pub dies_at: Option<Duration>,
    /// Its TCP, on both sides; the send buffer is that of `split`.
    pub tcp: Arc<bentpipe_tcp::Config>,
}

/// When a proxy opens the connection onward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connect {
    /// With the first segment of the connection that it accepts.
    Early,
    /// When that connection is established.
    Late,
}

impl NodeKind {
    /// True if the packets of others pass through the node.
    pub fn forwards(&self) -> bool {
        !matches!(self, Self::Host)
    }

    /// True if connections can begin and end at the node.
    pub fn ends_connections(&self) -> bool {
        matches!(self, Self::Host | Self::GroundStation(_))
    }

    /// What the scenario calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Router => "router",
            Self::GroundStation(_) => "ground-station",
            Self::Middlebox(config) => config.name(),
            Self::Proxy(_) => "proxy",
            Self::BundleRouter(_) => "bundle-router",
            Self::RelayEntity(_) => "relay-entity",
        }
    }
}

/// `count` nodes of one kind: `name` if there is one, else `name.0`, `name.1` ...
#[derive(Clone, PartialEq, Debug)]
pub struct NodeGroup {
    /// Name of the group.
    pub name: String,
    /// What its members are.
    pub kind: NodeKind,
    /// How many, at least one.
    pub count: u32,
}

/// Duplex links between two node groups. Between groups of `n` and 1 nodes there are `n` links, between two groups of
/// `n` nodes there are `n`, one for each pair with the same index.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkGroup {
    /// Name of the group.
    pub name: String,
    /// Node group at the near end.
    pub from: String,
    /// Node group at the far end.
    pub to: String,
    /// From near to far.
    pub forward: LinkConfig,
    /// From far to near.
    pub reverse: LinkConfig,
    /// Modem, weather and medium: from near to far, and from far to near.
    pub radio: [Radio; 2],
}

/// The modem, the weather and the shared medium of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Radio {
    /// How the members of the group share one channel towards a single node; none if each has a channel of its own.
    pub medium: Option<Access>,
    /// The modem that turns weather into rate and losses; none if the scenario gives them itself.
    pub modem: Option<Modem>,
    /// The weather that the modem sees.
    pub weather: Weather,
    /// The files that schedules of this direction were read from.
    pub recordings: Recordings,
}

/// Flows of one kind. Flow `i` runs from node `i mod n` of `from` to node `i mod m` of `to`.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowGroup {
    /// Name of the group.
    pub name: String,
    /// Node group of the senders.
    pub from: String,
    /// Node group of the receivers.
    pub to: String,
    /// How many flows.
    pub count: u32,
    /// Kept as it is when `compare` or `--cc` changes the algorithm of the others.
    pub fixed: bool,
    /// Start of the first flow.
    pub start: Duration,
    /// Each flow starts at `start` plus a uniform draw from `[0, stagger)`.
    pub stagger: Duration,
    /// Algorithm with recovery as the user wrote it: `peach`, `newreno`, `hybla+sack`.
    pub cc: String,
    /// Recovery that goes with an algorithm whose name brings none.
    pub default_recovery: Recovery,
    /// Configuration of the sending end.
    pub sender: Arc<bentpipe_tcp::Config>,
    /// Configuration of the receiving end.
    pub receiver: Arc<bentpipe_tcp::Config>,
    /// Bytes of IP and TCP headers of every packet on the wire.
    pub header_bytes: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// What carries it.
    pub transport: Transport,
    /// Routers through which the second path of an SCTP association goes: that of flow `i` through member `i mod n`.
    pub second_path: Option<String>,
    /// What it chooses of transports that are not TCP.
    pub options: Options,
    /// Encapsulation of its packets from host to host.
    pub esp: Option<Esp>,
    /// Its receiving host has no half of an algorithm that wants one there.
    pub plain_receiver: bool,
}

/// IPsec's Encapsulating Security Payload around every packet of a flow, from host to host (RFC 4303): nodes on the way can neither read nor write
/// the header of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Esp {
    /// What the hosts reveal to nodes on the path in spite of it.
    pub reveals: Reveals,
    /// Bytes that the encapsulation adds to every packet.
    pub overhead_bytes: u32,
}

/// What nodes on the path may know of encrypted packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reveals {
    /// Where the packets come from and go to.
    Nothing,
    /// Which data an acknowledgement belongs to: each packet carries hash values of so many bytes to match them by.
    Hashes(u32),
    /// The same, by a table of connections and sequence numbers that the hosts fill in at the node; no packet grows.
    Mapping,
}

impl Esp {
    /// Bytes by which a packet grows.
    pub fn bytes_added(&self) -> u32 {
        match self.reveals {
            Reveals::Hashes(bytes) => self.overhead_bytes + bytes,
            Reveals::Nothing | Reveals::Mapping => self.overhead_bytes,
        }
    }
}

impl FlowGroup {
    /// Gives both ends an algorithm and a recovery; a receiver with a recovery of its own keeps that.
    pub(crate) fn set_ends(&mut self, algorithm: Algorithm, recovery: Recovery) {
        let alike = self.receiver.recovery == self.sender.recovery;
        let sender = Arc::make_mut(&mut self.sender);
        sender.cc = algorithm.clone();
        sender.recovery = recovery;
        let receiver = Arc::make_mut(&mut self.receiver);
        receiver.cc = algorithm;
        if alike {
            receiver.recovery = recovery;
        }
    }

    /// Bytes of all headers of a packet on the wire, encapsulation included.
    pub fn headers_on_wire(&self) -> u32 {
        self.header_bytes + self.esp.map_or(0, |esp| esp.bytes_added())
    }
}

/// What carries the data of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A connection, or several.
    Tcp,
    /// Datagrams without retransmission and congestion control.
    Udp,
    /// Datagrams without retransmission at the rate that TCP would have (RFC 5348).
    Tfrc,
    /// Datagrams without retransmission, once low-priority probes have found room for them.
    Admission,
    /// The Satellite Transport Protocol.
    Stp,
    /// An association in the manner of SCTP.
    Sctp,
    /// Bundles from node to node.
    Dtn,
    /// PETRA: units from host to host over a lower layer for each hop between relay entities.
    Petra,
}

/// What the application of a flow sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// As much as TCP takes, without end.
    Bulk,
    /// So many bytes, then the connection closes.
    File {
        /// Payload bytes.
        bytes: u64,
    },
    /// A page again and again: the next begins an idle time after the last byte was acknowledged.
    Pages {
        /// Full segments per page.
        segments: u32,
        /// Time between the end of a page and the start of the next.
        idle: Idle,
        /// Each page on a fresh connection, or all on one.
        fresh_connection: bool,
    },
    /// Constant bit rate without congestion control: packets of `packet_bytes` on the wire.
    Cbr {
        /// Rate on the wire.
        rate: Rate,
        /// Packet size on the wire.
        packet_bytes: u32,
        /// How the packets follow each other.
        spacing: on_off::Spacing,
    },
    /// Bursts of constant bit rate and silences.
    OnOff(on_off::Config),
    /// Live video of a stochastic model.
    Video {
        /// The video.
        video: mpeg::Config,
        /// How it is sent and judged.
        stream: Streaming,
    },
    /// Live video of recorded frame sizes.
    Frames {
        /// File of the recording as the scenario names it.
        file: String,
        /// What the file holds.
        recording: frames::Recording,
        /// Frames a second.
        frames_per_s: f64,
        /// From the start again after the last frame.
        repeat: bool,
        /// How it is sent and judged.
        stream: Streaming,
    },
    /// One direction of a telephone call.
    Voice {
        /// Codec.
        codec: voice::Codec,
        /// Pauses are not sent.
        suppress_silence: bool,
        /// For how long the listener holds the first packet.
        jitter_buffer: Duration,
    },
    /// A reader of web pages at the far end: the near end is the server.
    Web(browser::Config),
    /// A player of adaptive video at the far end: the near end is the server.
    Adaptive(adaptive::Config),
    /// A fetcher of files at the far end: the near end is the server.
    Ftp(fetch::Config),
}

impl Traffic {
    /// What can carry it, the usual first.
    pub fn carriers(&self) -> &'static [Transport] {
        use Transport::{Admission, Dtn, Petra, Sctp, Stp, Tcp, Tfrc, Udp};
        match self {
            Self::Bulk => &[Tcp, Tfrc, Stp, Sctp, Dtn, Petra],
            Self::File { .. } => &[Tcp, Stp, Sctp, Dtn, Petra],
            Self::Pages { .. } | Self::Web(_) | Self::Adaptive(_) | Self::Ftp(_) => &[Tcp],
            Self::Video { .. } | Self::Frames { .. } => &[Tcp, Udp, Tfrc, Admission, Stp, Sctp, Dtn, Petra],
            Self::Cbr { .. } | Self::OnOff(_) => &[Udp, Tcp, Tfrc, Admission, Stp, Sctp, Dtn, Petra],
            Self::Voice { .. } => &[Udp, Admission],
        }
    }
}

/// How live video is sent and judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streaming {
    /// A frame is played so long after the first, and as much later, as it was sent after the first.
    pub playout_delay: Duration,
    /// A packet that comes later than this after the one before is delayed.
    pub threshold: Duration,
    /// Over TCP, the tail of a frame waits for the next to fill a segment.
    pub coalesce: bool,
}

impl Default for Streaming {
    /// A second of playout delay, 200 ms between packets, full segments.
    fn default() -> Self {
        Self { playout_delay: Duration::from_secs(1), threshold: Duration::from_millis(200), coalesce: true }
    }
}

/// Idle time between two pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Always the same.
    Fixed(Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}
