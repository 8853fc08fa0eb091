//! Routes: from hop to hop of a list, or as a table says that changes with time.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Link, Passing};
use bentpipe_scenario::{Graph, InFlight, LinkId, NodeId, RoutingTable};

use crate::network::chains::{Chains, Survey};
use crate::network::hop::{ARRIVED, Hop, Special, link, lookup};
use crate::network::source::Source;
use crate::packet::handle::PacketHandle;

/// All routes of a world.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The hops of all routes: each ends with [`ARRIVED`], or with twice the hop that asks the routing table.
    pub hops: Vec<Hop>,
    /// Ends of each link.
    pub graph: Arc<Graph>,
    /// The next hops, in a world in which they change.
    pub table: Option<RoutingTable>,
    /// Links over which packets may be followed until the routes change.
    pub chains: Chains,
    /// Nothing is followed ahead of time beyond this: the end, or the next change of the routes.
    pub horizon: Instant,
}

impl Routes {
    /// Node at the far end of a link.
    pub fn head(&self, link: LinkId) -> NodeId {
        self.graph.hop(link).to
    }

    /// The links of the route that begins at a position, as it is at the beginning for a packet at `node`.
    pub fn links_from(&self, position: u32, node: NodeId) -> Vec<LinkId> {
        let hops = &self.hops[position as usize..];
        let Some(table) = &self.table else {
            return hops.iter().take_while(|hop| **hop != ARRIVED).copied().filter_map(link).collect();
        };
        let Special::Lookup(destination) = Special::of(hops[0]) else {
            unreachable!("in a world whose routes change all are looked up")
        };
        table.way(destination, node).collect()
    }

    /// Permits to follow packets over routes that change. They start on these pairs of routes, at these nodes.
    pub fn set_origins(&mut self, pairs: impl Iterator<Item = ([u32; 2], [NodeId; 2])>) {
        let origin = |(route, node): (u32, NodeId)| Some((node, lookup(self.hops[route as usize])?));
        let origins = pairs.flat_map(|(routes, nodes)| routes.into_iter().zip(nodes));
        self.chains.origins = origins.filter_map(origin).collect();
    }

    /// The next link of a packet behind another, if packets may be offered to it ahead of time.
    #[inline(always)]
    pub fn chained_hop(&mut self, destination: u32, behind: LinkId) -> Option<LinkId> {
        self.chains.next(&self.table, destination, behind)
    }

    /// Time of the next change.
    pub fn next_change(&self) -> Instant {
        self.table.as_ref().map_or(Instant::FAR_FUTURE, RoutingTable::next_change)
    }

    /// Applies the routes that are valid from now on. Returns the links that end, and the fate of the packets on them.
    pub fn change(&mut self, now: Instant) -> (Vec<LinkId>, InFlight) {
        let table = self.table.as_mut().expect("only the routes of such a world change");
        table.change(now);
        // Packets on the way continue by events, until the new routes allow to follow packets again.
        self.chains.clear();
        table.given_up()
    }

    /// Links with packets and the destinations of these; all destinations if a link cannot distinguish them.
    pub fn remaining(&self, links: &[Link<PacketHandle>]) -> Vec<(LinkId, u32)> {
        let all = self.table.as_ref().map_or(0, RoutingTable::destination_count);
        let mut remaining = Vec::new();
        for (id, link) in (0..).zip(links).filter(|(_, link)| link.packets_inside() > 0) {
            let seen = || (0..).map_while(|ahead| link.in_flight(ahead));
            if seen().count() < link.packets_inside() {
                remaining.extend((0..all).map(|to| (id, to)));
            } else {
                remaining
                    .extend(seen().filter_map(|handle| Some((id, lookup(self.hops[handle.position()])?))));
            }
        }
        remaining.sort_unstable();
        remaining.dedup();
        remaining
    }

    /// Finds where packets may be followed until the routes change again, over links that `is_own` accepts. Returns the links whose
    /// packets, `remaining`, can be followed now: those further along a path first.
    pub fn find_chains(
        &mut self,
        links: &[Link<PacketHandle>],
        remaining: &[(LinkId, u32)],
        is_own: impl Fn(LinkId) -> bool,
        until: Instant,
    ) -> Vec<LinkId> {
        let Some(table) = self.table.as_ref().filter(|_| !self.chains.origins.is_empty()) else {
            return Vec::new();
        };
        let mut survey = Survey::new(table, links);
        for origin in &self.chains.origins {
            survey.walk(*origin, Source::Elsewhere);
        }
        for (id, destination) in remaining {
            survey.walk((table.head(*id), *destination), survey.source(*id));
        }
        // Packets further along a path reach the next element first.
        let mut used: Vec<LinkId> = remaining.iter().map(|(id, _)| *id).collect();
        used.dedup();
        used.sort_by_cached_key(|id| std::cmp::Reverse(survey.depth(*id)));
        let chained = (0..links.len() as LinkId).map(|id| is_own(id) && survey.is_chained(id)).collect();
        self.horizon = until.min(table.next_change() - Duration::from_nanos(1));
        self.chains.open(chained);
        used
    }

    /// Takes the packets off a link that go on over one to which they may be offered ahead of time: when they arrive, and that link.
    pub fn hand_over(
        &mut self,
        id: LinkId,
        link: &mut Link<PacketHandle>,
    ) -> Vec<(Passing<PacketHandle>, LinkId)> {
        if !link.is_foreseeable() {
            return Vec::new();
        }
        let mut onward = Vec::new();
        let passing = link.hand_over(self.horizon, |handle| {
            let destination = lookup(self.hops[handle.position()]);
            let next = destination.and_then(|to| self.chains.next(&self.table, to, id));
            onward.extend(next);
            next.is_some()
        });
        passing.into_iter().zip(onward).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::handle::{Label, Marks};
    use crate::world::World;
    use crate::world::samples::{TWO_PROXIES, build, world_of};
    use bentpipe_scenario::Draft;

    /// Cities under the satellites of Iridium, with links of 10 Mbit/s to the ground.
    fn under_satellites() -> World {
        let mut draft = Draft::load("leo-iridium").expect("it is built in");
        draft.set("constellation.iridium.ground.rate=10 Mbit/s").expect("it has such a key");
        build(&draft.scenario().expect("a scenario"))
    }

    #[test]
    fn a_fixed_route_is_its_links_in_order() {
        let world = world_of(TWO_PROXIES);
        let (routes, flow) = (&world.network.routes, &world.applications.flows[0]);
        let [way, back] = [0, 1].map(|side| routes.links_from(flow.routes[side], flow.nodes[side]));
        // The first leg ends at the first proxy.
        assert_eq!((way.len(), back.len()), (1, 1));
        assert_eq!((routes.head(way[0]), routes.head(back[0])), (flow.nodes[1], flow.nodes[0]));
        assert_eq!(routes.next_change(), Instant::FAR_FUTURE);
    }

    /// Between two changes a packet is followed from the ground to the ground, and after a change to where the table now says.
    #[test]
    fn packets_are_followed_over_changing_routes_until_the_next_change() {
        let world = under_satellites();
        let (mut network, flow) = (world.network, &world.applications.flows[0]);
        let way = network.routes.links_from(flow.routes[0], flow.nodes[0]);
        assert!(way.len() >= 2, "{way:?}");
        assert_eq!(way.last().map(|link| network.routes.head(*link)), Some(flow.nodes[1]));
        network.routes.set_origins([(flow.routes, flow.nodes)].into_iter());
        let until = Instant::ZERO + Duration::from_secs(60);
        let used = network.routes.find_chains(&network.links, &[], |_| true, until);
        assert!(used.is_empty(), "no packet is on its way");
        let to = lookup(network.routes.hops[flow.routes[0] as usize]).expect("it is looked up");
        for pair in way.windows(2) {
            assert_eq!(network.routes.chained_hop(to, pair[0]), Some(pair[1]));
        }
        let change = network.routes.next_change();
        assert_eq!(network.routes.horizon, until.min(change - Duration::from_nanos(1)));
        network.routes.change(change);
        assert_eq!(network.routes.chained_hop(to, way[0]), None, "nothing is known after a change");
    }

    /// A packet on a link remains there with its destination, and is handed over when its next link is known.
    #[test]
    fn a_packet_on_a_link_goes_on_over_the_next() {
        let world = under_satellites();
        let (mut network, flow) = (world.network, &world.applications.flows[0]);
        let way = network.routes.links_from(flow.routes[0], flow.nodes[0]);
        let handle = PacketHandle::new((0, flow.routes[0]), 1000, Label::default(), Marks::empty());
        network.links[way[0] as usize].enqueue(Instant::ZERO, handle);
        let to = lookup(network.routes.hops[flow.routes[0] as usize]).expect("it is looked up");
        let remaining = network.routes.remaining(&network.links);
        assert_eq!(remaining, [(way[0], to)]);
        network.routes.set_origins([(flow.routes, flow.nodes)].into_iter());
        let until = Instant::ZERO + Duration::from_secs(60);
        let used = network.routes.find_chains(&network.links, &remaining, |_| true, until);
        assert_eq!(used, [way[0]]);
        let handed_over = network.routes.hand_over(way[0], &mut network.links[way[0] as usize]);
        assert_eq!(handed_over.iter().map(|(_, onward)| *onward).collect::<Vec<_>>(), [way[1]]);
        // 0.8 ms of transmission, and between 2.6 and 11 ms to a satellite at 780 km or more.
        let at = handed_over[0].0.at.as_nanos();
        assert!((3_400_000..12_000_000).contains(&at), "{at}");
    }
}
