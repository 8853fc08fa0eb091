//! Paths through a constellation: executes the precomputed plan of the scenario.

use std::sync::Arc;

use bentpipe_base::Instant;

use crate::members::{LinkId, NodeId};
use crate::sky::{InFlight, SkyPlan};
use crate::topology::{NOWHERE, Topology};

/// Current next hops of satellites and ground stations.
#[derive(Clone, Debug)]
pub struct Sky {
    plan: Arc<SkyPlan>,
    /// Nodes of the ground stations.
    stations: Vec<NodeId>,
    /// First satellite among the nodes, and first constellation link among the links.
    first_node: NodeId,
    first_link: LinkId,
    /// Next hops, indexed by the destination's ground station and by node.
    next_hops: Vec<Vec<LinkId>>,
    /// Number of executed moments.
    done: usize,
    given_up: Vec<LinkId>,
}

impl Sky {
    /// Makes the state at the beginning of a plan.
    pub fn new(plan: Arc<SkyPlan>, topology: &Topology<'_>) -> Self {
        let stations = topology.graph.stations.clone();
        let mut sky = Self {
            first_node: (topology.node_count() - plan.satellites.len()) as NodeId,
            first_link: topology.ground_link_count() as LinkId,
            next_hops: vec![vec![NOWHERE; topology.node_count()]; stations.len()],
            stations,
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
                let node = self.plan.node(turn.node, &self.stations, self.first_node);
                let link = turn.link.map_or(NOWHERE, |link| self.first_link + link);
                self.next_hops[turn.landing as usize][node as usize] = link;
            }
            let both = moment.given_up.iter().flat_map(|link| [2 * link, 2 * link + 1]);
            self.given_up.extend(both.map(|link| self.first_link + link));
            self.done += 1;
        }
    }

    /// Returns the link from a node towards a ground station; [`NOWHERE`] without a path.
    pub fn next_hop(&self, landing: u32, node: NodeId) -> LinkId {
        self.next_hops[landing as usize][node as usize]
    }

    /// Returns the link directions given up since the last call.
    pub fn take_given_up(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.given_up)
    }

    /// Returns the treatment of the packets on them.
    pub fn in_flight(&self) -> InFlight {
        self.plan.in_flight
    }
}
