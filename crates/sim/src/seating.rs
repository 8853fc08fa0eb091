//! Who sits where: the agents of a flow at its nodes, and the routes between them.

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_scenario::{FlowGroup, LinkId, NodeId, NodeKind, Topology, Traffic, Transport, initial};
use bentpipe_transports::dtn::{self, Contacts, Hop, RouterConfig};
use bentpipe_transports::{Agent, Config, sctp, stp, tfrc};

use crate::BuildError;
use crate::party::{Party, Seat, Way};
use crate::world::{Flow, World};

impl World {
    /// The party of flow `index` of a group, if its transport needs one.
    pub fn party(
        &mut self,
        topology: &mut Topology<'_>,
        (group, index): (&FlowGroup, u32),
        flow: &Flow,
    ) -> Result<Option<Box<Party>>, BuildError> {
        let config = Config {
            packet_bytes: group.sender.mss,
            initial_window: group.sender.initial_window.segments(group.sender.mss),
            window: (group.receiver.receive_window.limit() / u64::from(group.sender.mss)).max(1) as u32,
        };
        let paths = 1 + u8::from(group.second_path.is_some());
        let pair = match group.transport {
            Transport::Tcp | Transport::Udp => return Ok(None),
            Transport::Dtn => return self.chain(topology, group, (config, flow)).map(Some),
            Transport::Tfrc => {
                let law = if let Algorithm::Tfrc(law) = &group.sender.cc { *law } else { Default::default() };
                let (header, is_greedy) = (group.header_bytes, group.traffic == Traffic::Bulk);
                let sender = tfrc::Sender::new(law, (group.sender.mss, header), is_greedy, flow.start);
                [Agent::TfrcSender(sender), Agent::TfrcReceiver(Box::new(tfrc::Receiver::new(header)))]
            }
            Transport::Stp => [
                Agent::StpSender(stp::Sender::new(config, group.options.stp)),
                Agent::StpReceiver(stp::Receiver::new(config)),
            ],
            Transport::Sctp => [
                Agent::SctpSender(sctp::Sender::new(config, group.options.sctp, paths)),
                Agent::SctpReceiver(sctp::Receiver::new(config)),
            ],
        };
        let second = self.second_path(topology, (group, index), flow)?;
        let seats = pair.into_iter().enumerate().map(|(side, agent)| {
            let to = 1 - side as u8;
            let way = |(port, routes): (u8, [u32; 2])| Way { route: routes[side], to: (to, port) };
            let ways = [Some((0, flow.routes)), second.map(|routes| (1, routes))];
            Seat { agent, node: flow.nodes[side], ways: ways.map(|port| port.map(way)) }
        });
        Ok(Some(Box::new(Party { seats: seats.collect() })))
    }

    /// Where the routes of the second path begin, there and back, if there is one. A port of one end leads to the same port of the other.
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
            self.add_way(topology, &flow.name, &[from, via, to])?,
            self.add_way(topology, &flow.name, &[to, via, from])?,
        ]))
    }

    /// Agents of the bundle layer at both ends of a flow and at the bundle routers between them.
    fn chain(
        &mut self,
        topology: &mut Topology<'_>,
        group: &FlowGroup,
        (config, flow): (Config, &Flow),
    ) -> Result<Box<Party>, BuildError> {
        let stops = stops(topology, flow.nodes);
        let is_fixed = self.interior.wayfinder.is_none();
        let (last, policy) = (stops.len() - 1, group.options.dtn);
        let mut seats = Vec::new();
        for (place, &(node, router)) in stops.iter().enumerate() {
            let mut ways = [None; 2];
            let mut hops = [None, None];
            // Port 0 leads back to port 1 of the agent before, port 1 onward to port 0 of the next.
            let neighbours = [place.checked_sub(1), (place < last).then_some(place + 1)];
            for (port, neighbour) in neighbours.into_iter().enumerate() {
                let Some(neighbour) = neighbour else { continue };
                let to = stops[neighbour].0;
                let route = self.add_route(topology, &flow.name, (node, to))?;
                ways[port] = Some(Way { route, to: (neighbour as u8, 1 - port as u8) });
                let hop = hop(topology, (node, to), is_fixed, policy.rate);
                hops[port] = Some(hop.ok_or_else(|| BuildError::Traffic {
                    flow: group.name.clone(),
                    what: "bundles need a rate where no link is known",
                })?);
            }
            let node_config = (place as u8, last as u8, router);
            let agent = Agent::Dtn(Box::new(dtn::Node::new(config, policy, node_config, hops)));
            seats.push(Seat { agent, node, ways });
        }
        Ok(Box::new(Party { seats }))
    }
}

/// The ends of a flow and the bundle routers on its way, with what they keep. More than numbers go round are passed by.
fn stops(topology: &mut Topology<'_>, [from, to]: [NodeId; 2]) -> Vec<(NodeId, RouterConfig)> {
    let mut links = Vec::new();
    topology.route(from, to, &mut links);
    let passed = links.iter().map(|link| topology.graph.hops[*link as usize].to).filter(|node| *node != to);
    let routers = passed.filter_map(|node| match topology.nodes[node as usize].kind {
        NodeKind::BundleRouter(config) => Some((node, config)),
        _ => None,
    });
    let end = RouterConfig::default();
    let mut stops = vec![(from, end)];
    stops.extend(routers.take(usize::from(u8::MAX) - 1));
    stops.push((to, end));
    stops
}

/// What is known in advance of the way between two agents: contacts while all its links are up, if it does not change. Its rate is that of the
/// slowest link unless it is given; none if neither is known.
fn hop(
    topology: &mut Topology<'_>,
    (from, to): (NodeId, NodeId),
    is_fixed: bool,
    rate: Option<Rate>,
) -> Option<Hop> {
    let (mut there, mut back) = (Vec::new(), Vec::new());
    topology.route(from, to, &mut there);
    topology.route(to, from, &mut back);
    let outages = there.iter().flat_map(|link| &topology.links[*link as usize].config.outages.intervals);
    let gaps = outages.filter(|_| is_fixed).map(|outage| (outage.from, outage.to)).collect();
    let delay = |link: &LinkId| initial(&topology.links[*link as usize].config.delay_one_way);
    let round_trip = Duration::from_nanos(there.iter().chain(&back).map(delay).sum());
    let slowest = there.iter().map(|link| topology.rate(*link)).min_by_key(|rate| rate.bps());
    Some(Hop { contacts: Contacts::except(gaps), rate: rate.or(slowest)?, round_trip })
}
