//! Paths through a constellation: executes the precomputed plan of the scenario.

use std::sync::Arc;

use bentpipe_base::Instant;

use crate::members::{LinkId, NodeId};
use crate::sky::{Holder, InFlight, Landings, Onward, SkyNode, SkyPlan};
use crate::topology::{NOWHERE, Topology};

/// Current next hops of satellites, ground stations, and nodes that choose between ground stations.
#[derive(Clone, Debug)]
pub struct Sky {
    plan: Arc<SkyPlan>,
    /// Nodes that are ends of the constellation.
    ends: Vec<NodeId>,
    /// First satellite among the nodes, and first constellation link among the links.
    first_node: NodeId,
    first_link: LinkId,
    /// Next hops, indexed by the plan's destination and by node.
    next_hops: Vec<Vec<LinkId>>,
    /// Number of executed moments.
    done: usize,
    given_up: Vec<LinkId>,
}

impl Sky {
    /// Makes the state at the beginning of a plan.
    pub fn new(plan: Arc<SkyPlan>, topology: &Topology<'_>) -> Self {
        let ends = topology.graph.sky_ends.clone();
        let mut sky = Self {
            first_node: (topology.node_count() - plan.satellites.len()) as NodeId,
            first_link: topology.ground_link_count() as LinkId,
            next_hops: vec![vec![NOWHERE; topology.node_count()]; plan.destinations.len()],
            ends,
            plan,
            done: 0,
            given_up: Vec::new(),
        };
        sky.turn(Instant::ZERO);
        sky
    }

    /// Returns the time of the next change; [`Instant::FAR_FUTURE`] if there is none.
    pub fn next_moment(&self) -> Instant {
        self.plan.moments.get(self.done).map_or(Instant::FAR_FUTURE, |moment| moment.at)
    }

    /// Applies all changes up to `now`.
    pub fn turn(&mut self, now: Instant) {
        while let Some(moment) = self.plan.moments.get(self.done).filter(|moment| moment.at <= now) {
            for turn in &moment.turns {
                let node = match turn.node {
                    Holder::Ground(node) => node,
                    Holder::Satellite(satellite) => {
                        self.plan.node(SkyNode::Satellite(satellite), &self.ends, self.first_node)
                    }
                };
                let link = match turn.onward {
                    Some(Onward::Sky(link)) => self.first_link + link,
                    Some(Onward::Ground(link)) => link,
                    None => NOWHERE,
                };
                self.next_hops[turn.destination as usize][node as usize] = link;
            }
            let both = moment.given_up.iter().flat_map(|link| [2 * link, 2 * link + 1]);
            self.given_up.extend(both.map(|link| self.first_link + link));
            self.done += 1;
        }
    }

    /// Returns the plan's number of a destination; `None` if no packets were planned for it.
    pub fn destination(&self, landings: &Landings) -> Option<u32> {
        self.plan.destination(landings)
    }

    /// Returns the link from a node towards a destination of the plan; [`NOWHERE`] without a path.
    pub fn next_hop(&self, destination: u32, node: NodeId) -> LinkId {
        self.next_hops[destination as usize][node as usize]
    }

    /// Returns the link directions given up since the last call.
    pub fn take_given_up(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.given_up)
    }

    /// Returns the treatment of packets on links that are given up.
    pub fn in_flight(&self) -> InFlight {
        self.plan.in_flight
    }
}
