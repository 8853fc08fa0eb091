//! Routes that change over time. Every node knows its next hop to every destination; changes take effect at once.

use std::iter::successors;
use std::sync::Arc;

use bentpipe_base::{Components, Instant};

use crate::members::{LinkId, NodeId};
use crate::model::Routing;
use crate::sky::InFlight;
use crate::topology::{Graph, NOWHERE, THROUGH_SKY, Topology, Tree};
use sky::Sky;

mod sky;

/// Current next hops of all nodes, and the times of their changes.
#[derive(Clone, Debug)]
pub struct RoutingTable {
    graph: Arc<Graph>,
    destinations: Vec<NodeId>,
    /// Next hops, indexed by destination.
    trees: Vec<Tree>,
    /// Number of each destination in the plan of the constellation.
    planned: Vec<Option<u32>>,
    /// Paths through the constellation.
    sky: Option<Sky>,
    /// True for links in outage.
    out: Vec<bool>,
    changes: Vec<Change>,
    /// Number of changes that have happened.
    done: usize,
}

/// Start or end of a link's outage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Change {
    at: Instant,
    link: LinkId,
    out: bool,
}

impl RoutingTable {
    /// Makes the table of a world with a constellation or with routes around outages. It has no destinations yet.
    pub fn new(topology: &Topology<'_>, routing: Routing) -> Self {
        let mut changes = match routing {
            Routing::Fixed => Vec::new(),
            Routing::AvoidOutages => outages(topology),
        };
        changes.sort_unstable();
        Self {
            graph: topology.graph.clone(),
            destinations: Vec::new(),
            trees: Vec::new(),
            planned: Vec::new(),
            sky: topology.sky.as_ref().map(|plan| Sky::new(plan.clone(), topology)),
            out: vec![false; topology.link_count()],
            changes,
            done: 0,
        }
    }

    /// Returns the number of a destination, which is added if it is new.
    pub fn destination(&mut self, node: NodeId) -> u32 {
        let known = self.destinations.iter().position(|known| *known == node);
        let number = known.unwrap_or_else(|| {
            self.destinations.push(node);
            let tree = self.graph.tree(node, |_| true);
            // Outages on the ground do not change the ends at which packets leave the constellation.
            self.planned.push(self.sky.as_ref().and_then(|sky| sky.destination(&tree.landings)));
            let is_new = self.done == 0;
            let around = || self.graph.tree(node, |link| !self.out[link as usize]);
            self.trees.push(if is_new { tree } else { around() });
            self.destinations.len() - 1
        });
        number as u32
    }

    /// Returns the number of destinations.
    pub fn destination_count(&self) -> u32 {
        self.destinations.len() as u32
    }

    /// Returns the node that a link leads to.
    pub fn head(&self, link: LinkId) -> NodeId {
        self.graph.hop(link).to
    }

    /// Returns the time of the next change; [`Instant::FAR_FUTURE`] if there is none.
    pub fn next_change(&self) -> Instant {
        let outage = self.changes.get(self.done).map_or(Instant::FAR_FUTURE, |change| change.at);
        outage.min(self.sky.as_ref().map_or(Instant::FAR_FUTURE, Sky::next_moment))
    }

    /// Applies all changes up to `now`.
    pub fn change(&mut self, now: Instant) {
        if let Some(sky) = &mut self.sky {
            sky.turn(now);
        }
        let before = self.done;
        while let Some(change) = self.changes.get(self.done).filter(|change| change.at <= now) {
            self.out[change.link as usize] = change.out;
            self.done += 1;
        }
        if self.done > before {
            for (destination, tree) in self.destinations.iter().zip(&mut self.trees) {
                *tree = self.graph.tree(*destination, |link| !self.out[link as usize]);
            }
        }
    }

    /// Returns the links given up since the last call, and the treatment of the packets on them.
    pub fn given_up(&mut self) -> (Vec<LinkId>, InFlight) {
        let nothing = (Vec::new(), InFlight::Rerouted);
        self.sky.as_mut().map_or(nothing, |sky| (sky.take_given_up(), sky.in_flight()))
    }

    /// Returns the next hop at a node for packets to a destination.
    #[inline]
    pub fn next(&self, destination: u32, node: NodeId) -> NextHop {
        let tree = &self.trees[destination as usize];
        let next = match (tree.next_hops[node as usize], &self.sky, self.planned[destination as usize]) {
            _ if self.destinations[destination as usize] == node => return NextHop::Here,
            // The constellation's table covers the satellites.
            (NOWHERE | THROUGH_SKY, Some(sky), Some(planned)) => sky.next_hop(planned, node),
            (NOWHERE | THROUGH_SKY, ..) => NOWHERE,
            (next, ..) => next,
        };
        if next == NOWHERE { NextHop::None } else { NextHop::Link(next) }
    }

    /// Returns the links from a node to a destination, by the present next hops.
    pub fn way(&self, destination: u32, from: NodeId) -> impl Iterator<Item = LinkId> {
        let next = move |node| match self.next(destination, node) {
            NextHop::Link(link) => Some(link),
            NextHop::Here | NextHop::None => None,
        };
        // Limit: no path uses a link twice.
        successors(next(from), move |link| next(self.head(*link))).take(self.out.len())
    }
}

impl RoutingTable {
    /// Groups flows that share a link at the same time before the end, directly or through other flows. Each flow has two
    /// consecutive `ways`: the node where its packets enter, and their destination. Afterwards the table is at the end time.
    pub fn find_together(&mut self, ways: &[(NodeId, u32)], end: Instant) -> Components {
        let mut together = Components::new((ways.len() / 2) as u32);
        loop {
            let mut users = vec![None; self.out.len()];
            for (id, ways) in (0..).zip(ways.chunks_exact(2)) {
                for link in ways.iter().flat_map(|(from, to)| self.way(*to, *from)) {
                    together.unite(*users[link as usize].get_or_insert(id), id);
                }
            }
            let next = self.next_change();
            if next > end {
                return together;
            }
            self.change(next);
        }
    }
}

/// Returns the starts and ends of the links' outages.
fn outages(topology: &Topology<'_>) -> Vec<Change> {
    let changes = topology.links().enumerate().flat_map(|(link, edge)| {
        let link = link as LinkId;
        edge.config.outages.intervals.iter().flat_map(move |outage| {
            [Change { at: outage.from, link, out: true }, Change { at: outage.to, link, out: false }]
        })
    });
    changes.collect()
}

/// Next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextHop {
    /// The packet is sent over this link.
    Link(LinkId),
    /// The node is the destination.
    Here,
    /// No path leads to the destination.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;
    use bentpipe_base::Duration;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    const DETOUR: &str = r#"
        duration = "1 s"
        [node.a]
        [node.b]
        [node.x]
        kind = "router"
        [node.y]
        kind = "router"
        [link.ax]
        between = ["a", "x"]
        rate = "1 Mbit/s"
        delay-one-way = "1 ms"
        [link.xb]
        between = ["x", "b"]
        rate = "1 Mbit/s"
        delay-one-way = "1 ms"
        outages = [["10 s", "20 s"]]
        [link.xy]
        between = ["x", "y"]
        rate = "1 Mbit/s"
        delay-one-way = "1 ms"
        [link.yb]
        between = ["y", "b"]
        rate = "1 Mbit/s"
        delay-one-way = "1 ms"
        [flow.bulk]
        from = "a"
        to = "b"
    "#;

    #[test]
    fn the_way_around_an_outage_lasts_as_long_as_the_outage() {
        let scenario = Draft::parse("detour.toml", DETOUR).and_then(|draft| draft.scenario()).unwrap();
        let topology = Topology::new(&scenario).unwrap();
        let mut routing = RoutingTable::new(&topology, Routing::AvoidOutages);
        let b = routing.destination(1);
        let x = 2;
        assert_eq!((routing.next(b, x), routing.next_change()), (NextHop::Link(2), at(10)));
        routing.change(at(10));
        assert_eq!((routing.next(b, x), routing.next_change()), (NextHop::Link(4), at(20)));
        routing.change(at(20));
        assert_eq!((routing.next(b, x), routing.next_change()), (NextHop::Link(2), Instant::FAR_FUTURE));
        assert_eq!(routing.next(b, 1), NextHop::Here);
    }

    /// The flow from x to b uses the link from y to b only during the outage.
    #[test]
    fn flows_are_together_that_ever_have_a_link_in_common() {
        let scenario = Draft::parse("detour.toml", DETOUR).and_then(|draft| draft.scenario()).unwrap();
        let topology = Topology::new(&scenario).unwrap();
        let mut routing = RoutingTable::new(&topology, Routing::AvoidOutages);
        let [a, b, x, y] = [0, 1, 2, 3].map(|node| (node, routing.destination(node)));
        let ways =
            |pairs: [_; 3]| pairs.map(|((from, _), (_, to)): ((NodeId, u32), (NodeId, u32))| (from, to));
        // Three flows, each with its reverse path: x to b, y to b, and a to x.
        let all = [ways([(x, b), (b, x), (y, b)]), ways([(b, y), (a, x), (x, a)])].concat();
        assert_eq!(routing.way(b.1, 0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(routing.clone().find_together(&all, at(9)).firsts(), [0, 1, 2]);
        assert_eq!(routing.find_together(&all, at(10)).firsts(), [0, 0, 2]);
    }
}
