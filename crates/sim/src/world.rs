//! A world: everything that a scenario describes, set up and at rest at time zero.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_cc::{PathMemory, REGISTRY, ReceiverHalf};
use bentpipe_middlebox::Middlebox;
use bentpipe_net::Link;
use bentpipe_outcome::Delays;
use bentpipe_scenario::{
    Edge, FlowGroup, LEAST_QUIC_PACKET, LEAST_QUIC_WINDOW, LinkId, Name, NodeId, NodeKind, Reveals, Routing,
    RoutingTable, Scenario, Topology, Traffic, Transport,
};
use bentpipe_tcp::{Config, Connection, Reflection, Stats};
use bentpipe_traffic::mpeg::Style;
use bentpipe_traffic::{Application, Interest, Transfer, on_off};

use crate::BuildError;
use crate::app::application::{application, style};
use crate::app::session::Session;
use crate::engine::process::Timer;
use crate::host::proxy::{Proxy, Relay};
use crate::ids::{EndId, FlowId};
use crate::network::core::{MiddleboxNode, NetworkCore};
use crate::network::hop::{ARRIVED, Hop, Special, link};
use crate::network::medium::{Media, link_config, link_name};
use crate::packet::handle::{Label, PacketHandle};

/// Links, routes and flows.
#[derive(Debug)]
pub(crate) struct World {
    pub links: Vec<Link<PacketHandle>>,
    /// Salt of each link, all different, for simultaneous packets of several links.
    pub salts: Vec<u32>,
    /// All routes: each ends with [`ARRIVED`], or with twice the hop that asks the routing table.
    pub routes: Vec<Hop>,
    pub flows: Vec<Flow>,
    /// State that connections from one host to another share.
    memories: BTreeMap<(NodeId, NodeId), PathMemory>,
    pub core: NetworkCore,
    /// Flows of PETRA between neighbouring relay entities.
    pub relayed: BTreeMap<[NodeId; 2], u32>,
}

/// One end of a connection with its state in the network.
pub(crate) struct End {
    pub connection: Connection,
    /// Its timer, in a world of processes.
    pub timer: Timer,
    /// Position of its route.
    pub route: u32,
    /// Bytes of headers of its packets.
    pub header_bytes: u32,
    /// What queues know of the origin of its packets.
    pub label: Label,
    pub flow: FlowId,
    /// Leg of the end: the first leg of a flow has the number of the flow; see [`Leg`] for the others.
    pub leg_id: u32,
    /// Index of the delays that it counts: the group of its flow, or [`NOT_COUNTED`].
    pub delays: u32,
    /// Its counterpart on the other side of a proxy.
    pub relay: Relay,
    /// Number of earlier connections in this place; [`DEAD`] while its proxy is dead.
    pub incarnation: u32,
    /// Events that the application waits for.
    pub interest: Interest,
}

impl End {
    /// True if its application reads all data at once, and neither it nor a proxy depends on the time.
    #[inline]
    pub fn reads_at_once(&self) -> bool {
        self.relay == Relay::None && self.interest == Interest::Usual
    }
}

/// Index of no delays: those of an end inside the network.
pub(crate) const NOT_COUNTED: u32 = u32::MAX;

/// Incarnation of an end whose proxy is dead.
pub(crate) const DEAD: u32 = u32::MAX;

/// One flow: its application, its connection and its counters.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Index of its group in the scenario, and its own there.
    pub group: u32,
    pub index: u32,
    pub application: Application,
    /// Its transport protocol.
    pub transport: Transport,
    /// The agents of a transport that is not TCP and not plain packets.
    pub session: Option<Box<Session>>,
    /// Time of its start.
    pub start: Instant,
    pub header_bytes: u32,
    /// Information that nodes on the path have about its encrypted packets.
    pub reveals: Option<Reveals>,
    /// Positions of the routes of sender and receiver.
    pub routes: [u32; 2],
    /// The nodes of sender and receiver.
    pub nodes: [NodeId; 2],
    /// Labels of the packets of sender and receiver.
    pub labels: [Label; 2],
    /// Configuration of sender and receiver.
    pub configs: [Arc<Config>; 2],
    /// Feeds the algorithms of its connections.
    pub seeds: Rng,
    /// The sending end of its present connection.
    pub sender: Option<EndId>,
    /// Bytes that the application has for the present connection in all.
    pub wanted: u64,
    /// Bytes that it took.
    pub written: u64,
    /// Bytes whose completion was noted.
    pub noted: u64,
    /// True if a gateway on its path acknowledges data that has not arrived.
    pub spoofed: bool,
    /// Legs behind proxies, in the order from sender to receiver.
    pub onward: std::ops::Range<u32>,
    pub counts: Counts,
}

/// Counters of a flow besides those of its connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Counters of former connections, if there are any; few flows have several.
    gone: Option<Box<Gone>>,
    /// Start of the present file or page; far in the past before the first.
    pub begun: Instant,
    /// Files or pages completed.
    pub completed: u64,
    /// Sum of the times that took.
    pub completion_sum: Duration,
    /// Each complete page of a flow of pages.
    pub pages: Vec<Transfer>,
    /// Data packets that links lost.
    pub lost_packets: u64,
    /// Plain packets that arrived, copies not counted.
    pub plain_packets: u64,
    /// Their payload.
    pub plain_bytes: u64,
}

impl Counts {
    /// Returns the counters of former connections.
    pub fn of_gone(&self) -> Gone {
        self.gone.as_deref().cloned().unwrap_or_default()
    }

    /// Returns the counters of former connections for changes.
    pub fn gone(&mut self) -> &mut Gone {
        self.gone.get_or_insert_default()
    }

    /// Bytes that their receivers delivered.
    pub fn gone_delivered_bytes(&self) -> u64 {
        self.gone.as_ref().map_or(0, |gone| gone.stats[1].delivered_bytes)
    }
}

/// Counters of former connections of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    /// Statistics of senders and of receivers.
    pub stats: [Stats; 2],
    /// Payload acknowledged to the senders.
    pub acknowledged: u64,
    /// Smoothed round-trip time of the last of them.
    pub srtt: Option<Duration>,
    /// Connections of a client that ended early.
    pub failures: u64,
    /// Reason for the early end of the connection.
    pub aborted: Option<&'static str>,
    /// True if a connection was established.
    pub connected: bool,
}

impl World {
    /// The world of a scenario under a seed.
    pub fn new(scenario: &Scenario, topology: &mut Topology<'_>, seed: u64) -> Result<Self, BuildError> {
        let refused = |edge: &Edge<'_>, error| BuildError::Link {
            link: edge.group.to_owned(),
            direction: edge.direction,
            error,
        };
        let count = topology.link_count();
        let (mut links, mut salts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut taken = HashSet::with_capacity(count);
        for edge in topology.links() {
            let mut name = link_name(&edge);
            let link = Link::new(&link_config(&edge), seed, &name);
            links.push(link.map_err(|error| refused(&edge, error))?);
            name.push_str(".salt");
            let mut salt = Rng::stream(seed, &name).bits() as u32;
            while !taken.insert(salt) {
                salt = salt.wrapping_add(1);
            }
            salts.push(salt);
        }
        let media =
            Media::new(topology, seed).map_err(|(link, error)| refused(&topology.link(link), error))?;
        let delays = vec![Delays::default(); scenario.flows.len()];
        let core = NetworkCore { media, delays, ..NetworkCore::new(scenario, topology) };
        let relayed = Self::count_relayed(topology, scenario)?;
        let (routes, memories) = Default::default();
        let count = scenario.flows.iter().map(|group| group.count as usize).sum();
        let flows = Vec::with_capacity(count);
        let mut world = Self { links, salts, routes, flows, core, memories, relayed };
        for (index, group) in scenario.flows.iter().enumerate() {
            if scenario.flows[..index].iter().any(|other| other.name == group.name) {
                return Err(BuildError::Twice(group.name.clone()));
            }
            world.add_flows(topology, (index as u32, group), seed)?;
        }
        world.add_exits(topology, scenario)?;
        world.routes.shrink_to_fit();
        topology.forget_trees();
        Ok(world)
    }

    fn add_flows(
        &mut self,
        topology: &mut Topology<'_>,
        (group_index, group): (u32, &FlowGroup),
        seed: u64,
    ) -> Result<(), BuildError> {
        check_traffic(group)?;
        let user = || format!("flow.{}", group.name);
        let (from, to) = (topology.group(user, &group.from)?, topology.group(user, &group.to)?);
        // Shared by the flows of the group.
        let style = style(group);
        let configs = [sender_config(group), receiver_config(group)];
        for index in 0..group.count {
            let name = Name::of_member(&group.name, index, group.count).to_string();
            let from = from.start + index % from.len() as u32;
            let to = to.start + index % to.len() as u32;
            if from == to {
                let node = topology.node(from).name.to_string();
                return Err(BuildError::Loop { flow: name, node });
            }
            let routes =
                [self.add_route(topology, &name, (from, to))?, self.add_route(topology, &name, (to, from))?];
            let [sender, receiver] = &configs;
            let configs = [self.remembering(sender, (from, to)), receiver.clone()];
            let member = Member { name: &name, seed, group_index, group, style: style.as_ref() };
            let flow = Flow::new(member, routes, [from, to], configs);
            let spoofed = self.is_spoofed(routes[0], from);
            let mut flow = Flow { index, spoofed, ..flow };
            flow.session = self.session(topology, (group, index), &flow)?;
            self.flows.push(flow);
            if group.transport == Transport::Tcp {
                self.split(topology, group)?;
            }
        }
        Ok(())
    }

    /// True if a gateway on a route acknowledges in the name of other hosts.
    fn is_spoofed(&self, route: u32, from: NodeId) -> bool {
        let passed = || self.links_from(route, from).into_iter().map(|link| self.core.head(link));
        !self.core.middleboxes.is_empty() && passed().any(|node| self.core.spoofs(node))
    }

    /// Gives every middlebox the ways from its node to the ends of every leg.
    fn add_exits(&mut self, topology: &mut Topology<'_>, scenario: &Scenario) -> Result<(), BuildError> {
        for middlebox in 0..self.core.middleboxes.len() {
            let node = self.core.middleboxes[middlebox].node;
            let of_flows = self.flows.iter().map(|flow| (flow.name_in(scenario).to_string(), flow.nodes));
            let of_legs = self.core.legs.iter().map(|leg| (leg.name.clone(), leg.nodes));
            for (name, [from, to]) in of_flows.chain(of_legs).collect::<Vec<_>>() {
                for to in [to, from] {
                    let exit = self.add_route(topology, &name, (node, to))?;
                    self.core.middleboxes[middlebox].exits.push(exit);
                }
            }
        }
        Ok(())
    }

    /// The configuration with the memory of the pair of hosts, if the algorithm has a use for it.
    pub fn remembering(&mut self, sender: &Arc<Config>, hosts: (NodeId, NodeId)) -> Arc<Config> {
        if !sender.remembers() || sender.sender.memory.is_some() {
            return sender.clone();
        }
        let memory = self.memories.entry(hosts).or_default().clone();
        Arc::new(Config::clone(sender).with(|config| config.sender.memory = Some(memory)))
    }

    pub fn add_route(
        &mut self,
        topology: &mut Topology<'_>,
        flow: impl Display,
        (from, to): (NodeId, NodeId),
    ) -> Result<u32, BuildError> {
        self.add_way(topology, flow, &[from, to])
    }

    /// The route from the first stop to the last by the shortest ways between them.
    pub fn add_way(
        &mut self,
        topology: &mut Topology<'_>,
        flow: impl Display,
        stops: &[NodeId],
    ) -> Result<u32, BuildError> {
        let begin = self.routes.len() as u32;
        let mut links = Vec::new();
        for pair in stops.windows(2) {
            if !topology.route(pair[0], pair[1], &mut links) {
                let name = |node: NodeId| topology.node(node).name.to_string();
                let (from, to) = (name(pair[0]), name(pair[1]));
                return Err(BuildError::NoRoute { flow: flow.to_string(), from, to });
            }
        }
        if let (Some(routing), Some(&to)) = (&mut self.core.routing, stops.last()) {
            let lookup = Special::Lookup(routing.destination(to)).hop();
            self.routes.extend([lookup, lookup]);
            return Ok(begin);
        }
        for link in links {
            self.routes.push(link);
            self.routes.extend(self.core.media.port(link).map(|_| Special::MediumPort.hop()));
            let node = self.core.head(link);
            let middlebox = self.core.middlebox_at(node);
            self.routes.extend(middlebox.map(|middlebox| Special::Middlebox(middlebox).hop()));
        }
        self.routes.push(ARRIVED);
        Ok(begin)
    }

    /// Returns the links on the path of a flow's data at the start.
    pub fn links_of(&self, flow: &Flow) -> Vec<LinkId> {
        let legs = &self.core.legs[flow.onward.start as usize..flow.onward.end as usize];
        let onward = legs.iter().flat_map(|leg| self.links_from(leg.routes[0], leg.nodes[0]));
        self.links_from(flow.routes[0], flow.nodes[0]).into_iter().chain(onward).collect()
    }

    /// The links of the route that begins at a position, as it is at the beginning for a packet at `node`.
    pub fn links_from(&self, position: u32, node: NodeId) -> Vec<LinkId> {
        let hops = &self.routes[position as usize..];
        let Some(routing) = &self.core.routing else {
            return hops.iter().take_while(|hop| **hop != ARRIVED).copied().filter_map(link).collect();
        };
        let Special::Lookup(destination) = Special::of(hops[0]) else {
            unreachable!("in a world whose routes change all are looked up")
        };
        routing.way(destination, node).collect()
    }
}

impl NetworkCore {
    fn new(scenario: &Scenario, topology: &Topology<'_>) -> Self {
        let mut core = Self { graph: topology.graph.clone(), ..Self::default() };
        for (node, state) in topology.nodes().enumerate() {
            if let NodeKind::Proxy(config) = state.kind {
                core.proxies.push(Proxy::new(state.name.to_string(), node as NodeId, config));
            }
            if let NodeKind::Middlebox(config) = state.kind {
                core.add(MiddleboxNode {
                    name: state.name.to_string(),
                    kind: config.name(),
                    node: node as NodeId,
                    middlebox: Middlebox::new(config),
                    exits: Vec::new(),
                });
            }
        }
        core.routing = match scenario.routing {
            Routing::Fixed if topology.sky.is_none() => None,
            routing => Some(RoutingTable::new(topology, routing)),
        };
        core
    }
}

/// A member of a group of flows.
struct Member<'a> {
    name: &'a str,
    seed: u64,
    group_index: u32,
    group: &'a FlowGroup,
    /// Shared by the flows of the group.
    style: Option<&'a Style>,
}

impl Flow {
    fn new(member: Member<'_>, routes: [u32; 2], nodes: [NodeId; 2], configs: [Arc<Config>; 2]) -> Self {
        let Member { name, seed, group, style, .. } = member;
        let stream = |what| Rng::stream(seed, &format!("flow.{name}.{what}"));
        let stagger = group.stagger.mul_f64(stream("start").uniform());
        let start = Instant::ZERO + group.start + stagger;
        Self {
            application: application(group, style, (seed, name)),
            transport: group.transport,
            session: None,
            group: member.group_index,
            index: 0,
            start,
            header_bytes: group.headers_on_wire(),
            reveals: group.esp.map(|esp| esp.reveals),
            routes,
            nodes,
            labels: Label::pair(name, nodes),
            configs,
            seeds: stream("connection"),
            sender: None,
            wanted: 0,
            written: 0,
            noted: 0,
            spoofed: false,
            onward: 0..0,
            counts: Counts { begun: Instant::FAR_FUTURE, ..Counts::default() },
        }
    }

    /// Returns the name of the flow as a member of its group.
    pub fn name<'a>(&self, group: &'a FlowGroup) -> Name<'a> {
        Name::of_member(&group.name, self.index, group.count)
    }

    /// Returns the name of the flow among all flows of a scenario.
    pub fn name_in<'a>(&self, scenario: &'a Scenario) -> Name<'a> {
        self.name(&scenario.flows[self.group as usize])
    }
}

/// The configuration of a group's senders.
fn sender_config(group: &FlowGroup) -> Arc<Config> {
    match group.traffic {
        // An endless source never waits for room, which saves a call into the connection per ACK.
        Traffic::Bulk => {
            Arc::new((*group.sender).clone().with(|config| config.sender.send_buffer = u64::MAX / 4))
        }
        _ => group.sender.clone(),
    }
}

/// The configuration of a group's receivers.
pub(crate) fn receiver_config(group: &FlowGroup) -> Arc<Config> {
    if group.plain_receiver {
        return group.receiver.clone();
    }
    with_receiver_half(&group.receiver, &group.sender)
}

/// The configuration of a receiver with the receiver half that the algorithm of its sender asks for, if it has one.
pub(crate) fn with_receiver_half(receiver: &Arc<Config>, sender: &Config) -> Arc<Config> {
    let name = sender.sender.cc.name();
    let half = REGISTRY.iter().find(|entry| entry.name == name).and_then(|entry| entry.receiver);
    match half {
        Some(ReceiverHalf { number, build }) if receiver.receiver.reflection.is_none() => {
            let reflection = Some(Reflection { number, build });
            Arc::new((**receiver).clone().with(|config| config.receiver.reflection = reflection))
        }
        _ => receiver.clone(),
    }
}

fn check_traffic(group: &FlowGroup) -> Result<(), BuildError> {
    let refuse = |what| Err(BuildError::Traffic { flow: group.name.clone(), what });
    match group.traffic {
        _ if group.sender.mss == 0 || group.receiver.mss == 0 => refuse("a segment holds at least one byte"),
        _ if group.transport == Transport::Quic
            && group.sender.mss + group.header_bytes < LEAST_QUIC_PACKET =>
        {
            refuse("QUIC needs room for packets of 1228 bytes")
        }
        _ if group.transport == Transport::Quic
            && group.sender.sender.initial_window.segments(group.sender.mss) < LEAST_QUIC_WINDOW =>
        {
            refuse("QUIC needs an initial window of 10 segments")
        }
        Traffic::File { bytes: 0 } => refuse("a file holds at least one byte"),
        Traffic::Pages { bytes: 0, .. } => refuse("a page holds at least one byte"),
        Traffic::Cbr { rate, .. } if rate.bps() == 0 => refuse("the rate is zero"),
        Traffic::Cbr { packet_bytes, .. } | Traffic::OnOff(on_off::Config { packet_bytes, .. })
            if packet_bytes <= group.headers() =>
        {
            refuse("a packet is larger than its headers")
        }
        _ if !group.traffic.carriers().contains(&group.transport) => {
            refuse("this transport does not carry such traffic")
        }
        _ => Ok(()),
    }
}
