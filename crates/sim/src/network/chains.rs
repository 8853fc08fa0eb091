//! Packets over routes that change: from link to link without an event for each hop, until the routes change.
//!
//! Between two changes a packet to a destination takes the same links from every node. If all packets of a link come from one other
//! link, they arrive in the order in which they leave that one. So each packet is offered as soon as its arrival is known, as over a
//! [chained](crate::network::hop::Special::Chained) hop of a fixed route. No packet is followed beyond the next change: later packets
//! stay on their links, and are followed from there after the change.

use bentpipe_net::Link;
use bentpipe_scenario::{LinkId, NextHop, NodeId, RoutingTable};

use crate::network::source::Source;
use crate::packet::handle::PacketHandle;

/// Links over which packets may be followed until the routes change.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// Nodes at which packets start, and their destinations: two of each flow first. Empty if no packet is to be followed.
    pub origins: Vec<(NodeId, u32)>,
    /// For each link: true if all its packets come from one other link.
    chained: Vec<bool>,
    /// By link: the destination of the packets that were followed behind it last, and the link over which they went on.
    last: Vec<(u32, Option<LinkId>)>,
}

/// No destination.
const NOWHERE: u32 = u32::MAX;

impl Chains {
    /// Permits to offer packets ahead of time to these links.
    pub fn open(&mut self, chained: Vec<bool>) {
        self.last = vec![(NOWHERE, None); chained.len()];
        self.chained = chained;
    }

    /// The next link of a packet behind another, if packets may be offered to it ahead of time.
    #[inline(always)]
    pub fn next(
        &mut self,
        routing: &Option<RoutingTable>,
        destination: u32,
        behind: LinkId,
    ) -> Option<LinkId> {
        match self.known(destination, behind) {
            Some(next) => next,
            None => self.find_next(routing.as_ref()?, destination, behind),
        }
    }

    #[inline(never)]
    fn find_next(&mut self, routing: &RoutingTable, destination: u32, behind: LinkId) -> Option<LinkId> {
        let next = match routing.next(destination, routing.head(behind)) {
            NextHop::Link(next) if self.has(next) => Some(next),
            _ => None,
        };
        self.last[behind as usize] = (destination, next);
        next
    }

    /// Returns the next link of packets to a destination behind a link, if the last packet followed there had the same destination.
    #[inline(always)]
    fn known(&self, destination: u32, behind: LinkId) -> Option<Option<LinkId>> {
        if self.last.is_empty() {
            return Some(None);
        }
        let (last, next) = self.last[behind as usize];
        (last == destination).then_some(next)
    }

    /// Packets may be offered to this link ahead of time.
    fn has(&self, link: LinkId) -> bool {
        self.chained.get(link as usize).is_some_and(|chained| *chained)
    }

    /// Packets may be offered to no link ahead of time any more.
    pub fn clear(&mut self) {
        self.chained.clear();
        self.last.clear();
    }
}

/// Links from which the packets of each link come.
pub(crate) struct Survey<'a> {
    routing: &'a RoutingTable,
    links: &'a [Link<PacketHandle>],
    sources: Vec<Source>,
}

impl<'a> Survey<'a> {
    /// Nothing is known yet of the links of a world with these routes.
    pub fn new(routing: &'a RoutingTable, links: &'a [Link<PacketHandle>]) -> Self {
        Self { routing, links, sources: vec![Source::Nowhere; links.len()] }
    }

    /// Follows packets to a destination from a node, at which they arrived from this source.
    pub fn walk(&mut self, (node, destination): (NodeId, u32), mut source: Source) {
        for link in self.routing.way(destination, node) {
            let before = &mut self.sources[link as usize];
            *before = before.or(source);
            source = self.source(link);
        }
    }

    /// Returns the source of a link's packets.
    pub fn source(&self, link: LinkId) -> Source {
        if self.links[link as usize].is_foreseeable() { Source::One(link) } else { Source::Elsewhere }
    }

    /// True if all packets of a link come from one other link, and their fate is known at their arrival.
    pub fn is_chained(&self, link: LinkId) -> bool {
        let is_alone = matches!(self.sources[link as usize], Source::One(_));
        is_alone && self.links[link as usize].is_first_in_first_out()
    }

    /// Number of links over which packets were followed before they reach this one.
    pub fn depth(&self, mut link: LinkId) -> usize {
        let mut depth = 0;
        while let (true, Source::One(before)) = (self.is_chained(link), self.sources[link as usize])
            && depth < self.links.len()
        {
            (depth, link) = (depth + 1, before);
        }
        depth
    }
}
