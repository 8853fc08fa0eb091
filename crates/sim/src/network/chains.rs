//! Packets over routes that change: from link to link without an event for each hop, until the routes change.
//!
//! Between two changes a packet to a destination takes the same links from every node. Where all packets of a link come from one other link,
//! they come in the order in which they leave that one, so each is offered as soon as its arrival is known, as over a
//! [chained](crate::network::hop::Special::Chained) hop of a fixed route. Nothing is followed beyond the next change: packets that arrive
//! later stay on their links, and are followed from there when the routes have changed.

use bentpipe_base::Duration;
use bentpipe_net::{Link, Passing};
use bentpipe_scenario::{LinkId, NodeId};

use crate::engine::shared_link::Source;
use crate::network::hop::{Hop, lookup};
use crate::network::routing::{RoutingTable, Way};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::simulation::Simulation;

/// Where packets may be followed until the routes change.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// The nodes at which packets begin their way, and their destinations. Empty if nothing is to be followed.
    origins: Vec<(NodeId, u32)>,
    /// By link: all its packets come from one other.
    chained: Vec<bool>,
    /// By link: the destination of the packets that were followed behind it last, and the link over which they went on.
    last: Vec<(u32, Option<LinkId>)>,
}

/// No destination.
const NOWHERE: u32 = u32::MAX;

impl Chains {
    /// For packets that begin their way at these nodes, to these destinations.
    pub fn new(mut origins: Vec<(NodeId, u32)>) -> Self {
        origins.sort_unstable();
        origins.dedup();
        Self { origins, ..Self::default() }
    }

    /// These links may be offered packets ahead of time.
    fn open(&mut self, chained: Vec<bool>) {
        self.last = vec![(NOWHERE, None); chained.len()];
        self.chained = chained;
    }

    /// Where packets to a destination go on behind a link, if the last ones that were followed there had the same destination.
    #[inline(always)]
    pub fn known(&self, destination: u32, behind: LinkId) -> Option<Option<LinkId>> {
        if self.last.is_empty() {
            return Some(None);
        }
        let (last, next) = self.last[behind as usize];
        (last == destination).then_some(next)
    }

    /// Packets to a destination go on like this behind a link.
    pub fn learn(&mut self, destination: u32, behind: LinkId, next: Option<LinkId>) {
        self.last[behind as usize] = (destination, next);
    }

    /// Packets may be offered to this link ahead of time.
    pub fn has(&self, link: LinkId) -> bool {
        self.chained.get(link as usize).is_some_and(|chained| *chained)
    }

    /// Packets may be offered to no link ahead of time any more.
    pub fn clear(&mut self) {
        self.chained.clear();
        self.last.clear();
    }
}

/// The links from which packets come to links.
struct Survey<'a> {
    routing: &'a RoutingTable,
    links: &'a [Link<PacketHandle>],
    sources: Vec<Source>,
}

impl Survey<'_> {
    /// Packets to a destination are at a node, to which they came from this source.
    fn walk(&mut self, (mut node, destination): (NodeId, u32), mut source: Source) {
        // No way leads over a link twice.
        for _ in 0..self.links.len() {
            let Way::Link(link) = self.routing.next(destination, node) else { return };
            let before = &mut self.sources[link as usize];
            *before = before.or(source);
            source = self.source(link);
            node = self.routing.head(link);
        }
    }

    /// What packets come from that come over a link.
    fn source(&self, link: LinkId) -> Source {
        if self.links[link as usize].is_foreseeable() { Source::One(link) } else { Source::Elsewhere }
    }

    /// Whether all packets of a link come from one other, and what becomes of them is known when they come.
    fn is_chained(&self, link: LinkId) -> bool {
        let is_alone = matches!(self.sources[link as usize], Source::One(_));
        is_alone && self.links[link as usize].is_first_in_first_out()
    }

    /// How many links packets were followed over before they come to this one.
    fn depth(&self, mut link: LinkId) -> usize {
        let mut depth = 0;
        while let (true, Source::One(before)) = (self.is_chained(link), self.sources[link as usize])
            && depth < self.links.len()
        {
            (depth, link) = (depth + 1, before);
        }
        depth
    }
}

/// The destinations of the packets on a link; all if the link cannot tell.
fn destinations(link: &Link<PacketHandle>, routes: &[Hop], all: u32) -> Vec<u32> {
    let seen = || (0..).map_while(|ahead| link.in_flight(ahead));
    if seen().count() < link.packets_inside() {
        return (0..all).collect();
    }
    let mut destinations: Vec<u32> = seen().filter_map(|handle| lookup(routes[handle.position()])).collect();
    destinations.sort_unstable();
    destinations.dedup();
    destinations
}

impl<M: Monitor> Simulation<M> {
    /// Finds where packets may be followed until the routes change again, and follows those that are on links now.
    pub(crate) fn find_chains(&mut self) {
        let Some(routing) = &self.core.routing else { return };
        if routing.chains.origins.is_empty() {
            return;
        }
        let (links, nothing) = (&self.links, vec![Source::Nowhere; self.links.len()]);
        let mut survey = Survey { routing, links, sources: nothing };
        for origin in &routing.chains.origins {
            survey.walk(*origin, Source::Elsewhere);
        }
        let is_used = |id: &LinkId| links[*id as usize].packets_inside() > 0;
        let mut used: Vec<LinkId> = (0..links.len() as LinkId).filter(is_used).collect();
        for id in &used {
            for destination in destinations(&links[*id as usize], &self.routes, routing.destination_count()) {
                survey.walk((routing.head(*id), destination), survey.source(*id));
            }
        }
        // Packets further along a way come first to whatever follows.
        used.sort_by_cached_key(|id| std::cmp::Reverse(survey.depth(*id)));
        let chained = (0..links.len() as LinkId).map(|id| survey.is_chained(id)).collect();
        self.horizon = self.until.min(routing.next_change() - Duration::from_nanos(1));
        if let Some(routing) = &mut self.core.routing {
            routing.chains.open(chained);
        }
        used.into_iter().for_each(|link| self.follow_from(link));
    }

    /// Follows the packets that are on a link and will go on over one to which they may be offered ahead of time.
    fn follow_from(&mut self, link: LinkId) {
        if !self.links[link as usize].is_foreseeable() {
            return;
        }
        let Self { links, routes, core, horizon, .. } = self;
        let mut onward = Vec::new();
        let passing = links[link as usize].hand_over(*horizon, |handle| {
            let destination = lookup(routes[handle.position()]);
            let next = destination.and_then(|destination| core.chained_hop(destination, link));
            onward.extend(next);
            next.is_some()
        });
        for (Passing { at, packet: handle }, onward) in passing.into_iter().zip(onward) {
            self.events += 1;
            self.enter_arrival_by(at, link, handle);
            self.run_ahead((at, onward), handle);
        }
    }
}
