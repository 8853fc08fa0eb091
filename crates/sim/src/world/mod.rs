//! A world: everything that a scenario describes, set up and at rest at time zero.

pub(crate) mod bottlenecks;
#[cfg(feature = "quic")]
mod quic_ends;
#[cfg(not(feature = "quic"))]
#[path = "no_quic_ends.rs"]
mod quic_ends;
#[cfg(test)]
pub(crate) mod samples;
mod session_setup;
mod split;

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_cc::{PathMemory, REGISTRY, ReceiverHalf};
use bentpipe_scenario::{
    FlowGroup, LEAST_QUIC_PACKET, LEAST_QUIC_WINDOW, LinkId, Name, NodeId, Scenario, Topology, Traffic,
    Transport,
};
use bentpipe_tcp::{Config, Reflection};
use bentpipe_traffic::on_off;

use crate::BuildError;
use crate::app::application::style;
use crate::app::flow::{Flow, Member};
use crate::app::state::Applications;
use crate::host::state::Hosts;
use crate::ids::FlowId;
use crate::network::state::Network;

/// Links, routes and flows.
pub(crate) struct World {
    pub network: Network,
    pub hosts: Hosts,
    pub applications: Applications,
    /// State that connections from one host to another share.
    memories: BTreeMap<(NodeId, NodeId), PathMemory>,
    /// Flows of PETRA between neighbouring relay entities.
    pub relayed: BTreeMap<[NodeId; 2], u32>,
}

impl World {
    /// The world of a scenario under a seed.
    pub fn new(scenario: &Scenario, topology: &mut Topology<'_>, seed: u64) -> Result<Self, BuildError> {
        let network = Network::new(scenario, topology, seed)?;
        let hosts = Hosts::new(topology);
        let applications = Applications::new(scenario);
        let relayed = Self::count_relayed(topology, scenario)?;
        let mut world = Self { network, hosts, applications, memories: BTreeMap::new(), relayed };
        for (index, group) in scenario.flows.iter().enumerate() {
            if scenario.flows[..index].iter().any(|other| other.name == group.name) {
                return Err(BuildError::Twice(group.name.clone()));
            }
            world.add_flows(topology, (index as u32, group), seed)?;
        }
        world.add_exits(topology, scenario)?;
        world.network.routes.hops.shrink_to_fit();
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
            let routes = [
                self.network.add_route(topology, &name, (from, to))?,
                self.network.add_route(topology, &name, (to, from))?,
            ];
            let [sender, receiver] = &configs;
            let configs = [self.remembering(sender, (from, to)), receiver.clone()];
            let member = Member { name: &name, seed, group_index, group, style: style.as_ref() };
            let flow = Flow::new(member, routes, [from, to], configs);
            let spoofed = self.is_spoofed(routes[0], from);
            let mut flow = Flow { index, spoofed, ..flow };
            flow.session = self.session(topology, (group, index), &flow)?;
            self.applications.flows.push(flow);
            self.hosts.legs_of.push(0..0);
            if group.transport == Transport::Tcp {
                self.split(topology, group)?;
            }
        }
        Ok(())
    }

    /// True if a gateway on a route acknowledges in the name of other hosts.
    fn is_spoofed(&self, route: u32, from: NodeId) -> bool {
        let passed = || {
            self.network.routes.links_from(route, from).into_iter().map(|link| self.network.routes.head(link))
        };
        !self.network.middleboxes.nodes.is_empty()
            && passed().any(|node| self.network.middleboxes.spoofs(node))
    }

    /// Gives every middlebox the ways from its node to the ends of every leg.
    fn add_exits(&mut self, topology: &mut Topology<'_>, scenario: &Scenario) -> Result<(), BuildError> {
        for middlebox in 0..self.network.middleboxes.nodes.len() {
            let node = self.network.middleboxes.nodes[middlebox].node;
            let of_flows =
                self.applications.flows.iter().map(|flow| (flow.name_in(scenario).to_string(), flow.nodes));
            let of_legs = self.hosts.legs.iter().map(|leg| (leg.name.clone(), leg.nodes));
            for (name, [from, to]) in of_flows.chain(of_legs).collect::<Vec<_>>() {
                for to in [to, from] {
                    let exit = self.network.add_route(topology, &name, (node, to))?;
                    self.network.middleboxes.nodes[middlebox].exits.push(exit);
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

    /// Returns the links on the path of a flow's data at the start.
    pub fn links_of(&self, id: FlowId) -> Vec<LinkId> {
        let flow = &self.applications.flows[id as usize];
        let onward = self
            .hosts
            .later_legs(id)
            .iter()
            .flat_map(|leg| self.network.routes.links_from(leg.routes[0], leg.nodes[0]));
        self.network.routes.links_from(flow.routes[0], flow.nodes[0]).into_iter().chain(onward).collect()
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
