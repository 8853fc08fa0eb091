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
