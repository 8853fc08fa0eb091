//! A typed and validated scenario, from which simulator and emulator build their worlds.

use std::borrow::Cow;
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_mac::Access;
use bentpipe_middlebox::MiddleboxConfig;
use bentpipe_net::LinkConfig;
use bentpipe_orbit::{Constellation, OrbitError, Satellite, Sky, Station};
use bentpipe_tcp::Recovery;
use bentpipe_traffic::{adaptive, browser, fetch, frames, mpeg, on_off, voice};
use bentpipe_transports::Options;
use bentpipe_transports::dtn::RouterConfig;
use bentpipe_transports::petra::RelayConfig;
use bentpipe_weather::{Modem, Weather};

use crate::error::Error;
use crate::series::Recordings;
use crate::sky::{ConstellationGroup, Position};
use crate::split::Split;

/// A world of nodes, links between them and flows over them.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of the file without its extension.
    pub name: String,
    /// Title for `bentpipe list scenarios`, in one line.
    pub title: String,
    /// Simulated time of the run.
    pub duration: Duration,
    /// Start of the measurement window, which lasts until the end.
    pub measure_from: Duration,
    /// Seed of all random streams, unless the command line sets another.
    pub seed: u64,
    /// Method of routing.
    pub routing: Routing,
    /// Constellations of satellites; at most one.
    pub constellations: Vec<ConstellationGroup>,
    /// Groups of hosts and routers.
    pub nodes: Vec<NodeGroup>,
    /// Groups of links.
    pub links: Vec<LinkGroup>,
    /// Groups of flows.
    pub flows: Vec<FlowGroup>,
    /// Values that depend on the seed.
    pub draws: Draws,
}

/// The scenario for each seed, where the seed chooses values; nothing if no value depends on the seed.
#[derive(Clone, Default)]
pub struct Draws(Option<Arc<ForSeed>>);

type ForSeed = dyn Fn(u64) -> Result<Scenario, Error> + Send + Sync;

impl Draws {
    pub(crate) fn by(for_seed: impl Fn(u64) -> Result<Scenario, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(for_seed)))
    }
}

impl PartialEq for Draws {
    /// Two scenarios are equal if their values are, whether these were drawn or written.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Draws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Draws" } else { "no draws" })
    }
}

impl Scenario {
    /// Returns the scenario with the values that `seed` chooses.
    ///
    /// # Errors
    /// [`Error::Mistakes`] if this seed chooses values that the scenario cannot have.
    pub fn for_seed(&self, seed: u64) -> Result<Cow<'_, Self>, Error> {
        match &self.draws.0 {
            Some(for_seed) if seed != self.seed => for_seed(seed).map(Cow::Owned),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// The flow group under comparison: the first that is not `fixed`, or else the first.
    pub fn compared_flow(&self) -> Option<&FlowGroup> {
        self.flows.iter().find(|group| !group.fixed).or(self.flows.first())
    }

    /// Sets this algorithm, a registered one or a user's own, for every flow group that is not `fixed`. The recovery is the
    /// scenario's default for algorithms whose name includes none.
    pub fn set_algorithm(&mut self, algorithm: Algorithm) {
        for flow in self.flows.iter_mut().filter(|flow| !flow.fixed) {
            flow.cc = algorithm.name().to_owned();
            flow.set_ends(algorithm.clone(), flow.default_recovery);
        }
    }

    /// Returns the ground stations in the order of the nodes.
    pub fn ground_stations(&self) -> Vec<Station> {
        let station = |node: &NodeGroup| match &node.kind {
            NodeKind::GroundStation(Position { place, way, outages, gateway }) => Some(Station {
                name: node.name.clone(),
                place: *place,
                way: way.clone(),
                outages: outages.iter().map(|outage| outage.from..outage.to).collect(),
                gateway: *gateway,
            }),
            _ => None,
        };
        self.nodes.iter().filter_map(station).collect()
    }

    /// Returns the nodes that are satellites, with the names of their satellites, in the order of the nodes.
    pub fn satellite_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Satellite(satellite) => Some((node.name.as_str(), satellite.as_str())),
            _ => None,
        })
    }

    /// Returns the satellites that end connections, in the order of the nodes.
    ///
    /// # Errors
    /// [`OrbitError::Impossible`] with a node's name for an unknown satellite, or one that another node has.
    pub fn satellite_hosts(&self, constellation: &Constellation) -> Result<Vec<Satellite>, OrbitError> {
        let mut hosts = Vec::new();
        for (node, satellite) in self.satellite_names() {
            let refused = |accepted| {
                let place = format!("{node}.satellite");
                Err(OrbitError::Impossible { place, found: format!("\"{satellite}\""), accepted })
            };
            let Some(host) = constellation.find(satellite) else {
                return refused(
                    "the name of a satellite that flies, its catalogue number, or its index from 0",
                );
            };
            if hosts.contains(&host) {
                return refused("a satellite of which no other node is the host");
            }
            hosts.push(host);
        }
        Ok(hosts)
    }

    /// Returns the view of a constellation at time zero. Ends of its paths are the ground stations, then the satellites that end
    /// connections.
    ///
    /// # Errors
    /// If a rule, a station or a satellite is invalid.
    pub fn sky<'a>(
        &self,
        group: &ConstellationGroup,
        constellation: &'a Constellation,
    ) -> Result<Sky<'a>, OrbitError> {
        let mut sky = group.sky(constellation, &self.ground_stations())?;
        for satellite in self.satellite_hosts(constellation)? {
            sky.add_satellite(satellite);
        }
        Ok(sky)
    }

    /// Makes a scenario with default values, of which only the name is known.
    pub(crate) fn unread(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: String::new(),
            duration: Duration::ZERO,
            measure_from: Duration::ZERO,
            seed: 1,
            routing: Routing::Fixed,
            constellations: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
            draws: Draws::default(),
        }
    }
}

/// Routing method. The route is the path with the fewest links; at a tie, the least delay decides. Packets cross a constellation
/// only if no path on the ground leads to their destination, on the path of least delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routing {
    /// Constant routes, regardless of outages.
    Fixed,
    /// Routes avoid links in outage. Every node knows at once when an outage begins or ends, and routes are looked up hop by hop.
    AvoidOutages,
}

/// Kind of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// A host, which ends connections.
    Host,
    /// A router, which forwards packets.
    Router,
    /// A ground station. It ends connections, forwards packets, and reaches other stations through a constellation.
    GroundStation(Position),
    /// A satellite of this name that ends connections.
    Satellite(String),
    /// A router that also processes packets.
    Middlebox(MiddleboxConfig),
    /// A split-connection PEP (RFC 3135 section 2.4). It terminates passing TCP connections and opens new ones; it forwards other
    /// packets.
    Proxy(Box<ProxyConfig>),
    /// A DTN node: it stores bundles of flows over DTN until the next such node has them. It forwards other packets.
    BundleRouter(RouterConfig),
    /// A PETRA relay: it relays units of flows over PETRA between two lower layers. It forwards other packets.
    RelayEntity(RelayConfig),
}

/// A split-connection proxy.
#[derive(Clone, PartialEq, Debug)]
pub struct ProxyConfig {
    /// Treatment of a connection, as in the configuration of the proxy on a real link.
    pub split: Split,
    /// Time of the onward connection if the proxy answers SYNs itself.
    pub connect: Connect,
    /// Time of a crash, which loses all state.
    pub dies_at: Option<Duration>,
    /// TCP configuration of both sides; the send buffer is that of `split`.
    pub tcp: Arc<bentpipe_tcp::Config>,
}

/// Time when a proxy opens the onward connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connect {
    /// On the first segment of the accepted connection.
    Early,
    /// When the accepted connection is established.
    Late,
}

impl NodeKind {
    /// True if the node forwards packets of other nodes.
    pub fn forwards(&self) -> bool {
        !matches!(self, Self::Host)
    }

    /// True if connections can begin or end at the node.
    pub fn ends_connections(&self) -> bool {
        matches!(self, Self::Host | Self::GroundStation(_) | Self::Satellite(_))
    }

    /// Returns the name of the kind in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Router => "router",
            Self::GroundStation(_) => "ground-station",
            Self::Satellite(_) => "satellite",
            Self::Middlebox(config) => config.name(),
            Self::Proxy(_) => "proxy",
            Self::BundleRouter(_) => "bundle-router",
            Self::RelayEntity(_) => "relay-entity",
        }
    }
}

/// `count` nodes of one kind: named `name` if there is one, else `name.0`, `name.1` ...
#[derive(Clone, PartialEq, Debug)]
pub struct NodeGroup {
    /// Name of the group.
    pub name: String,
    /// Kind of the group's nodes.
    pub kind: NodeKind,
    /// Number of members, at least one.
    pub count: u32,
}

/// Duplex links between two node groups. Groups of `n` and 1 nodes have `n` links. Two groups of `n` nodes have `n` links, one
/// per pair with the same index.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkGroup {
    /// Name of the group.
    pub name: String,
    /// Node group at the near end.
    pub from: String,
    /// Node group at the far end.
    pub to: String,
    /// Direction from near to far.
    pub forward: LinkConfig,
    /// Direction from far to near.
    pub reverse: LinkConfig,
    /// Modem, weather and medium of the forward and the reverse direction.
    pub radio: [Radio; 2],
}

/// Modem, weather and shared medium of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Radio {
    /// Access scheme by which the group's members share a channel towards one node; `None` for separate channels.
    pub medium: Option<Access>,
    /// Modem that converts weather into rate and losses; `None` if the scenario sets them directly.
    pub modem: Option<Modem>,
    /// Weather at the modem.
    pub weather: Weather,
    /// Files from which schedules of this direction were read.
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
    /// Number of flows.
    pub count: u32,
    /// True if `compare` and `--cc` do not change its algorithm.
    pub fixed: bool,
    /// Start of the first flow.
    pub start: Duration,
    /// Each flow starts at `start` plus a uniform draw from `[0, stagger)`.
    pub stagger: Duration,
    /// Algorithm with recovery as written by the user: `peach`, `newreno`, `hybla+sack`.
    pub cc: String,
    /// Recovery of algorithms whose name includes none.
    pub default_recovery: Recovery,
    /// Configuration of the sending end.
    pub sender: Arc<bentpipe_tcp::Config>,
    /// Configuration of the receiving end.
    pub receiver: Arc<bentpipe_tcp::Config>,
    /// Header bytes (IP and TCP) of every packet on the wire.
    pub header_bytes: u32,
    /// Header bytes (IP and UDP) of every packet of a flow over UDP.
    pub udp_header_bytes: u32,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Transport protocol of the flow.
    pub transport: Transport,
    /// Routers on the second path of an SCTP association: flow `i` uses member `i mod n`.
    pub second_path: Option<String>,
    /// Options of transports other than TCP.
    pub options: Options,
    /// IPsec encapsulation (ESP) of the flow's packets from host to host.
    pub esp: Option<Esp>,
    /// True if the receiving host lacks the receiver half of the algorithm.
    pub plain_receiver: bool,
}

/// ESP encapsulation of every packet of a flow from host to host (IPsec, RFC 4303). Nodes on the path can neither read nor write
/// the TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Esp {
    /// Information that the hosts reveal to nodes on the path.
    pub reveals: Reveals,
    /// Bytes that the encapsulation adds per packet.
    pub overhead_bytes: u32,
}

/// Information that nodes on the path have about encrypted packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reveals {
    /// Only the IP addresses are visible.
    Nothing,
    /// The data that an acknowledgement belongs to: each packet carries this many bytes of hash values for matching.
    Hashes(u32),
    /// The data that an acknowledgement belongs to, from a table of connections and sequence numbers that the hosts fill. Packets
    /// do not grow.
    Mapping,
}

impl Esp {
    /// Returns the additional bytes per packet.
    pub fn bytes_added(&self) -> u32 {
        match self.reveals {
            Reveals::Hashes(bytes) => self.overhead_bytes + bytes,
            Reveals::Nothing | Reveals::Mapping => self.overhead_bytes,
        }
    }
}

impl FlowGroup {
    /// Sets algorithm and recovery of both ends; a receiver's own recovery is kept.
    pub(crate) fn set_ends(&mut self, algorithm: Algorithm, recovery: Recovery) {
        let alike = self.receiver.sender.recovery == self.sender.sender.recovery;
        let sender = Arc::make_mut(&mut self.sender);
        sender.sender.cc = algorithm.clone();
        sender.sender.recovery = recovery;
        let receiver = Arc::make_mut(&mut self.receiver);
        receiver.sender.cc = algorithm;
        if alike {
            receiver.sender.recovery = recovery;
        }
    }

    /// Returns the bytes of the IP and transport headers of a packet.
    pub fn headers(&self) -> u32 {
        if self.transport == Transport::Udp { self.udp_header_bytes } else { self.header_bytes }
    }

    /// Returns the bytes of all headers of a packet on the wire, encapsulation included.
    pub fn headers_on_wire(&self) -> u32 {
        self.headers() + self.esp.map_or(0, |esp| esp.bytes_added())
    }
}

/// Transport protocol of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// One or several TCP connections.
    Tcp,
    /// UDP: datagrams without retransmission or congestion control.
    Udp,
    /// TFRC: datagrams without retransmission, at TCP's rate (RFC 5348).
    Tfrc,
    /// Datagrams without retransmission, admitted after low-priority probes found free capacity.
    Admission,
    /// Satellite Transport Protocol.
    Stp,
    /// An SCTP-like association.
    Sctp,
    /// DTN bundles from node to node.
    Dtn,
    /// PETRA: units from host to host, over a lower layer per hop between relay entities.
    Petra,
    /// A QUIC connection.
    Quic,
}

/// Traffic of a flow's application.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// An unlimited amount of data.
    Bulk,
    /// A file of fixed size, after which the connection closes.
    File {
        /// Number of payload bytes.
        bytes: u64,
    },
    /// Repeated pages. The next page begins an idle time after the last byte was acknowledged.
    Pages {
        /// Payload bytes of a page.
        bytes: u64,
        /// Time between the end of a page and the start of the next.
        idle: Idle,
        /// True for a new connection per page, false for one connection.
        fresh_connection: bool,
    },
    /// Constant bit rate without congestion control, in packets of `packet_bytes` on the wire.
    Cbr {
        /// Rate on the wire.
        rate: Rate,
        /// Packet size on the wire.
        packet_bytes: u32,
        /// Distribution of the packets' intervals.
        spacing: on_off::Spacing,
    },
    /// Bursts of constant bit rate, separated by silences.
    OnOff(on_off::Config),
    /// Live video from a stochastic model.
    Video {
        /// Parameters of the video source.
        video: mpeg::Config,
        /// Sending and evaluation of the video.
        stream: Streaming,
    },
    /// Live video from recorded frame sizes.
    Frames {
        /// Path of the recording in the scenario.
        file: String,
        /// Content of the file.
        recording: frames::Recording,
        /// Frames per second.
        frames_per_s: f64,
        /// True to restart after the last frame.
        repeat: bool,
        /// Sending and evaluation of the video.
        stream: Streaming,
    },
    /// One direction of a telephone call.
    Voice {
        /// Codec of the call.
        codec: voice::Codec,
        /// True if pauses are not sent.
        suppress_silence: bool,
        /// Time that the listener holds the first packet.
        jitter_buffer: Duration,
    },
    /// A web browser at the far end; the near end is the server.
    Web(browser::Config),
    /// An adaptive-video player at the far end; the near end is the server.
    Adaptive(adaptive::Config),
    /// A file client at the far end; the near end is the server.
    Ftp(fetch::Config),
}

impl Traffic {
    /// Returns the transports that can carry it, the default first.
    pub fn carriers(&self) -> &'static [Transport] {
        use Transport::{Admission, Dtn, Petra, Quic, Sctp, Stp, Tcp, Tfrc, Udp};
        match self {
            Self::Bulk => &[Tcp, Tfrc, Stp, Sctp, Dtn, Petra, Quic],
            Self::File { .. } => &[Tcp, Stp, Sctp, Dtn, Petra, Quic],
            Self::Pages { .. } => &[Tcp],
            Self::Web(_) | Self::Adaptive(_) | Self::Ftp(_) => &[Tcp, Quic],
            Self::Video { .. } | Self::Frames { .. } => {
                &[Tcp, Udp, Tfrc, Admission, Stp, Sctp, Dtn, Petra, Quic]
            }
            Self::Cbr { .. } | Self::OnOff(_) => &[Udp, Tcp, Tfrc, Admission, Stp, Sctp, Dtn, Petra, Quic],
            Self::Voice { .. } => &[Udp, Admission],
        }
    }
}

/// Sending and evaluation of live video.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streaming {
    /// Playout delay: the first frame is played this long after its arrival, later ones at their original intervals.
    pub playout_delay: Duration,
    /// Threshold of late packets: a packet that arrives later than this after the previous one counts as delayed.
    pub threshold: Duration,
    /// True if the last part of a frame waits for the next frame to fill a segment (over TCP).
    pub coalesce: bool,
}

impl Default for Streaming {
    /// Returns a playout delay of 1 s, a threshold of 200 ms and full segments.
    fn default() -> Self {
        Self { playout_delay: Duration::from_secs(1), threshold: Duration::from_millis(200), coalesce: true }
    }
}

/// Idle time between two pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// A constant value.
    Fixed(Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}
