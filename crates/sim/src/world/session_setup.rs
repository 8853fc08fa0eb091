//! Placement of the agents of a flow at its nodes, and the routes between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_scenario::{
    FlowGroup, LinkId, Name, NodeId, NodeKind, Scenario, Topology, Traffic, Transport, initial,
};
use bentpipe_tcp::ReceiveWindow;
use bentpipe_transports::dtn::{self, Contacts, Convergence, Hop};
use bentpipe_transports::petra::{self, Layer, Place, RelayConfig};
use bentpipe_transports::{Agent, Config, admission, sctp, stp, tfrc};

use crate::BuildError;
use crate::app::flow::Flow;
use crate::app::session::{Binding, Session, Way};
use crate::packet::agent::Port;
use crate::world::quic_ends;
use crate::world::{World, receiver_config};

impl World {
    /// The session of flow `index` of a group, if its transport needs one.
    pub fn session(
        &mut self,
        topology: &mut Topology<'_>,
        (group, index): (&FlowGroup, u32),
        flow: &Flow,
    ) -> Result<Option<Box<Session>>, BuildError> {
        let config = Config {
            packet_bytes: group.sender.mss,
            initial_window: group.sender.sender.initial_window.segments(group.sender.mss),
            window: (group.receiver.receiver.receive_window.limit() / u64::from(group.sender.mss)).max(1)
                as u32,
        };
        let paths = 1 + u8::from(group.second_path.is_some());
        let pair = match group.transport {
            Transport::Tcp | Transport::Udp => return Ok(None),
            Transport::Dtn => return self.chain(topology, group, (config, flow)).map(Some),
            Transport::Petra => return self.relays(topology, group, flow).map(Some),
            Transport::Tfrc => {
                let law = if let Algorithm::Tfrc(law) = &group.sender.sender.cc {
                    *law
                } else {
                    Default::default()
                };
                let (header, is_greedy) = (group.header_bytes, group.traffic == Traffic::Bulk);
                let sender = tfrc::Sender::new(law, (group.sender.mss, header), is_greedy, flow.start);
                [Agent::TfrcSender(sender), Agent::TfrcReceiver(Box::new(tfrc::Receiver::new(header)))]
            }
            Transport::Admission => [
                Agent::AdmissionSender(admission::Sender::new(config, group.options.admission, flow.start)),
                Agent::AdmissionReceiver(admission::Receiver::default()),
            ],
            Transport::Stp => [
                Agent::StpSender(stp::Sender::new(config, group.options.stp)),
                Agent::StpReceiver(stp::Receiver::new(config)),
            ],
            Transport::Sctp => [
                Agent::SctpSender(sctp::Sender::new(config, group.options.sctp, paths)),
                Agent::SctpReceiver(sctp::Receiver::new(config)),
            ],
            Transport::Quic => quic_ends::pair(group, flow)?,
        };
        let second = self.second_path(topology, (group, index), flow)?;
        let bindings = pair.into_iter().enumerate().map(|(side, agent)| {
            let to = 1 - side as u8;
            let way =
                |(port, routes): (u8, [u32; 2])| Way { route: routes[side], to: Port { agent: to, port } };
            let ways = [Some((0, flow.routes)), second.map(|routes| (1, routes))];
            Binding { agent, node: flow.nodes[side], ways: ways.map(|port| port.map(way)) }
        });
        Ok(Some(Box::new(Session { bindings: bindings.collect() })))
    }

    /// Returns the positions of the routes of the second path, forward and back, if there is one. A port of one end leads to the same
    /// port of the other.
    fn second_path(
        &mut self,
        topology: &mut Topology<'_>,
        (group, index): (&FlowGroup, u32),
        flow: &Flow,
    ) -> Result<Option<[u32; 2]>, BuildError> {
        let Some(via) = &group.second_path else { return Ok(None) };
        let via = topology.group(|| format!("flow.{}", group.name), via)?;
        let via = via.start + index % via.len() as u32;
        let [from, to] = flow.nodes;
        Ok(Some([
            self.network.add_way(topology, flow.name(group), &[from, via, to])?,
            self.network.add_way(topology, flow.name(group), &[to, via, from])?,
        ]))
    }

    /// Agents of the bundle layer at both ends of a flow and at the bundle routers between them.
    fn chain(
        &mut self,
        topology: &mut Topology<'_>,
        group: &FlowGroup,
        (config, flow): (Config, &Flow),
    ) -> Result<Box<Session>, BuildError> {
        let router =
            |kind: &NodeKind| if let NodeKind::BundleRouter(config) = kind { Some(*config) } else { None };
        let stops = stops(topology, flow.nodes, router);
        let is_fixed = self.network.routes.table.is_none();
        let (last, policy) = (stops.len() - 1, group.options.dtn);
        let pairs = stops.windows(2).map(|pair| (pair[0].0, pair[1].0));
        let tcp: Vec<_> = match policy.convergence {
            Convergence::Tcp => pairs.map(|ends| self.over_tcp(group, ends, None)).collect(),
            Convergence::Ltp | Convergence::Udp => Vec::new(),
        };
        let mut bindings = Vec::new();
        for (place, &(node, router)) in stops.iter().enumerate() {
            let mut hops = [None, None];
            let neighbours = [place.checked_sub(1), (place < last).then_some(place + 1)];
            for (port, neighbour) in neighbours.into_iter().enumerate() {
                let Some(neighbour) = neighbour else { continue };
                let hop = hop(topology, (node, stops[neighbour].0), is_fixed, policy.rate);
                let hop = hop.ok_or_else(|| BuildError::Traffic {
                    flow: group.name.clone(),
                    what: "bundles need a rate where no link is known",
                })?;
                // The agent before a hop is at its near end.
                let end = tcp.get(place.min(neighbour)).map(|ends| ends[usize::from(port == 0)].clone());
                let tcp = end.map(|config| dtn::Tcp { config, header_bytes: group.header_bytes });
                hops[port] = Some(Hop { tcp, ..hop });
            }
            let ways = self.ways_between(topology, flow.name(group), &stops, place)?;
            let stop = dtn::Stop { place: place as u8, last: last as u8, router };
            let agent = Agent::Dtn(Box::new(dtn::Node::new(config, policy, stop, hops)));
            bindings.push(Binding { agent, node, ways });
        }
        Ok(Box::new(Session { bindings }))
    }

    /// The pairs of neighbouring relay entities that flows of PETRA pass, with how many do: they share the rate between them.
    pub fn count_relayed(
        topology: &mut Topology<'_>,
        scenario: &Scenario,
    ) -> Result<BTreeMap<[NodeId; 2], u32>, BuildError> {
        let mut relayed = BTreeMap::new();
        for group in scenario.flows.iter().filter(|group| group.transport == Transport::Petra) {
            let user = || format!("flow.{}", group.name);
            let (from, to) = (topology.group(user, &group.from)?, topology.group(user, &group.to)?);
            for index in 0..group.count {
                let ends = [from.start + index % from.len() as u32, to.start + index % to.len() as u32];
                let stops = stops(topology, ends, relay_entity);
                for pair in stops[1..stops.len() - 1].windows(2) {
                    *relayed.entry([pair[0].0, pair[1].0]).or_default() += 1;
                }
            }
        }
        Ok(relayed)
    }
}

impl World {
    /// Agents of PETRA at both ends of a flow and at the relay entities between them.
    fn relays(
        &mut self,
        topology: &mut Topology<'_>,
        group: &FlowGroup,
        flow: &Flow,
    ) -> Result<Box<Session>, BuildError> {
        let (stops, options) = (stops(topology, flow.nodes, relay_entity), &group.options.petra);
        let mut hops = Vec::new();
        for pair in stops.windows(2) {
            let [near, far] = [pair[0].0, pair[1].0];
            let ways = [(near, far), (far, near)].map(|ends| hop(topology, ends, true, options.rate));
            let [Some(there), Some(back)] = ways else {
                let (flow, what) = (group.name.clone(), "relay entities need a rate where no link is known");
                return Err(BuildError::Traffic { flow, what });
            };
            hops.push([there, back]);
        }
        let buffer = buffer(&stops, &hops);
        let mut layers = Vec::new();
        for (place, pair) in stops.windows(2).enumerate() {
            let by_satellite = place > 0 && place + 2 < stops.len();
            layers.push(if by_satellite {
                let share = self.relayed.get(&[pair[0].0, pair[1].0]).copied();
                let packet_bytes = group.sender.mss;
                let packed = pair[1].1.buffer.unwrap_or(buffer);
                let window = (packed / u64::from(packet_bytes)).clamp(1, u64::from(u32::MAX)) as u32;
                hops[place].each_ref().map(|hop| {
                    let rate = options.rate.unwrap_or_else(|| part_of(hop.rate, share.unwrap_or(1)));
                    Layer::Stp { rate, packet_bytes, window }
                })
            } else {
                let is_relay = place + 2 < stops.len();
                let packed = is_relay.then(|| pair[1].1.buffer.unwrap_or(buffer));
                let ends = self.over_tcp(group, (pair[0].0, pair[1].0), packed);
                ends.map(|config| Layer::Tcp(config, group.header_bytes))
            });
        }
        let round_trip = hops.iter().map(|[there, _]| there.round_trip.as_nanos()).sum();
        let room = options.retention_bytes.unwrap_or(2 * buffer).max(u64::from(group.sender.mss));
        let mut bindings = Vec::new();
        let last = stops.len() - 1;
        for (place, &(node, relay)) in stops.iter().enumerate() {
            let role = match place {
                0 => Place::Source(group.sender.mss, room, Duration::from_nanos(round_trip)),
                _ if place == last => Place::Destination,
                _ => Place::Relay(relay, relay.buffer.unwrap_or(buffer)),
            };
            let back = place.checked_sub(1).map(|hop| layers[hop][1].clone());
            let onward = layers.get(place).map(|layers| layers[0].clone());
            let agent = Agent::Petra(Box::new(petra::Node::new(role, options, [back, onward])));
            let ways = self.ways_between(topology, flow.name(group), &stops, place)?;
            bindings.push(Binding { agent, node, ways });
        }
        Ok(Box::new(Session { bindings }))
    }

    /// TCP between two nodes. If the far end is a relay entity, its receive buffer is as large as its store.
    fn over_tcp(
        &mut self,
        group: &FlowGroup,
        ends: (NodeId, NodeId),
        packed: Option<u64>,
    ) -> [Arc<bentpipe_tcp::Config>; 2] {
        // A unit whose bytes may be left out is none.
        let plain = |config: &Arc<bentpipe_tcp::Config>| {
            bentpipe_tcp::Config::clone(config).with(|config| config.receiver.best_effort = None)
        };
        let sender = self.remembering(&Arc::new(plain(&group.sender)), ends);
        let mut receiver = plain(&receiver_config(group));
        if let Some(packed) = packed.filter(|packed| *packed < receiver.receiver.receive_window.limit()) {
            receiver.receiver.receive_window = ReceiveWindow::Fixed(packed.max(u64::from(group.sender.mss)));
        }
        [sender, Arc::new(receiver)]
    }

    /// The ways from an agent to its neighbours. Port 0 leads back to port 1 of the one before, port 1 onward to port 0 of the next.
    fn ways_between<C>(
        &mut self,
        topology: &mut Topology<'_>,
        flow: Name<'_>,
        stops: &[(NodeId, C)],
        place: usize,
    ) -> Result<[Option<Way>; 2], BuildError> {
        let mut ways = [None; 2];
        let neighbours = [place.checked_sub(1), Some(place + 1).filter(|next| *next < stops.len())];
        for (port, neighbour) in neighbours.into_iter().enumerate() {
            let Some(neighbour) = neighbour else { continue };
            let route = self.network.add_route(topology, flow, (stops[place].0, stops[neighbour].0))?;
            ways[port] = Some(Way { route, to: Port { agent: neighbour as u8, port: 1 - port as u8 } });
        }
        Ok(ways)
    }
}

/// Default store of a relay entity, in bytes: for the longest hop between two relay entities, or for the longest hop of all.
fn buffer(stops: &[(NodeId, RelayConfig)], hops: &[[Hop; 2]]) -> u64 {
    let packed = |[there, _]: &[Hop; 2]| RelayConfig::default().buffer_bytes(there.rate, there.round_trip);
    let between = &hops[1..(stops.len() - 2).max(1)];
    let longest = |hops: &[[Hop; 2]]| hops.iter().map(packed).max();
    longest(between).or(longest(hops)).unwrap_or(1)
}

/// Returns an equal part of 99 % of a rate for each of `sharers`; 1 % is for polls and their answers.
fn part_of(rate: Rate, sharers: u32) -> Rate {
    Rate::from_bps((rate.bps() / 100 * 99 / u64::from(sharers)).max(1))
}

/// Returns the ends of a flow and the nodes of a kind on its path, with their configurations. Nodes beyond the largest number are
/// skipped.
fn stops<C: Default + Copy>(
    topology: &mut Topology<'_>,
    [from, to]: [NodeId; 2],
    of: impl Fn(&NodeKind) -> Option<C>,
) -> Vec<(NodeId, C)> {
    let mut links = Vec::new();
    topology.route(from, to, &mut links);
    let passed = links.iter().map(|link| topology.graph.hop(*link).to).filter(|node| *node != to);
    let routers = passed.filter_map(|node| of(topology.node(node).kind).map(|config| (node, config)));
    let end = C::default();
    let mut stops = vec![(from, end)];
    stops.extend(routers.take(usize::from(u8::MAX) - 1));
    stops.push((to, end));
    stops
}

/// The relay entity that a node is.
fn relay_entity(kind: &NodeKind) -> Option<RelayConfig> {
    if let NodeKind::RelayEntity(config) = kind { Some(*config) } else { None }
}

/// Returns contacts and rate of the hop between two agents. Contacts are the times in which all fixed links are up, or in which a
/// constellation has a path. Without a configured rate, the rate is that of the slowest link, or none if that is unknown.
fn hop(
    topology: &mut Topology<'_>,
    (from, to): (NodeId, NodeId),
    is_fixed: bool,
    rate: Option<Rate>,
) -> Option<Hop> {
    let (mut there, mut back) = (Vec::new(), Vec::new());
    topology.route(from, to, &mut there);
    topology.route(to, from, &mut back);
    let outages = there.iter().flat_map(|link| &topology.link(*link).config.outages.intervals);
    let mut gaps: Vec<_> = outages.filter(|_| is_fixed).map(|outage| (outage.from, outage.to)).collect();
    if let (Some(crossing), Some(plan)) = (topology.crossing(from, to), topology.sky.clone()) {
        gaps.extend(plan.gaps(&crossing));
    }
    let delay = |link: &LinkId| initial(&topology.link(*link).config.delay_one_way);
    let round_trip = Duration::from_nanos(there.iter().chain(&back).map(delay).sum());
    let slowest = there.iter().map(|link| topology.rate(*link)).min_by_key(|rate| rate.bps());
    Some(Hop { contacts: Contacts::except(gaps), rate: rate.or(slowest)?, round_trip, tcp: None })
}
