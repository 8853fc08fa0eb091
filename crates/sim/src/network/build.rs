//! The network that a scenario describes, at rest.

use std::collections::HashSet;
use std::fmt::Display;

use bentpipe_base::Rng;
use bentpipe_middlebox::Middlebox;
use bentpipe_net::Link;
use bentpipe_scenario::{Edge, NodeId, NodeKind, Routing, RoutingTable, Scenario, Topology};

use crate::BuildError;
use crate::network::hop::{ARRIVED, Special};
use crate::network::medium::{Media, link_config, link_name};
use crate::network::middleboxes::MiddleboxNode;
use crate::network::state::Network;

impl Network {
    /// The network of a scenario under a seed, without routes.
    pub fn new(scenario: &Scenario, topology: &mut Topology<'_>, seed: u64) -> Result<Self, BuildError> {
        let mut network = Self::default();
        network.routes.graph = topology.graph.clone();
        network.add_links(topology, seed)?;
        let nodes = topology.nodes().enumerate();
        for (node, state) in nodes {
            if let NodeKind::Middlebox(config) = state.kind {
                network.middleboxes.add(MiddleboxNode {
                    name: state.name.to_string(),
                    kind: config.name(),
                    node: node as NodeId,
                    middlebox: Middlebox::new(config),
                    exits: Vec::new(),
                });
            }
        }
        network.routes.table = match scenario.routing {
            Routing::Fixed if topology.sky.is_none() => None,
            routing => Some(RoutingTable::new(topology, routing)),
        };
        Ok(network)
    }

    fn add_links(&mut self, topology: &Topology<'_>, seed: u64) -> Result<(), BuildError> {
        let refused = |edge: &Edge<'_>, error| BuildError::Link {
            link: edge.group.to_owned(),
            direction: edge.direction,
            error,
        };
        let count = topology.link_count();
        (self.links, self.salts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut taken = HashSet::with_capacity(count);
        for edge in topology.links() {
            let mut name = link_name(&edge);
            let link = Link::new(&link_config(&edge), seed, &name);
            self.links.push(link.map_err(|error| refused(&edge, error))?);
            name.push_str(".salt");
            let mut salt = Rng::stream(seed, &name).bits() as u32;
            while !taken.insert(salt) {
                salt = salt.wrapping_add(1);
            }
            self.salts.push(salt);
        }
        self.media =
            Media::new(topology, seed).map_err(|(link, error)| refused(&topology.link(link), error))?;
        Ok(())
    }

    /// Adds the shortest route between two nodes; returns its position.
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
        let begin = self.routes.hops.len() as u32;
        let mut links = Vec::new();
        for pair in stops.windows(2) {
            if !topology.route(pair[0], pair[1], &mut links) {
                let name = |node: NodeId| topology.node(node).name.to_string();
                let (from, to) = (name(pair[0]), name(pair[1]));
                return Err(BuildError::NoRoute { flow: flow.to_string(), from, to });
            }
        }
        if let (Some(routing), Some(&to)) = (&mut self.routes.table, stops.last()) {
            let lookup = Special::Lookup(routing.destination(to)).hop();
            self.routes.hops.extend([lookup, lookup]);
            return Ok(begin);
        }
        for link in links {
            self.routes.hops.push(link);
            self.routes.hops.extend(self.media.port(link).map(|_| Special::MediumPort.hop()));
            let node = self.routes.head(link);
            let middlebox = self.middleboxes.at(node);
            self.routes.hops.extend(middlebox.map(|middlebox| Special::Middlebox(middlebox).hop()));
        }
        self.routes.hops.push(ARRIVED);
        Ok(begin)
    }
}
