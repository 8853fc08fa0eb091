//! Chained links: where all packets of a link come from one other link, they need no event between the two.
//!
//! A first-in-first-out link decides on a packet when it comes, by what it knows of those before it. So if all packets of a link come
//! from one other, a packet is offered to it as soon as its arrival there is known, even if that lies in the future. The link still sees the
//! same packets, at the same times, in the same order. Where routes change, no packet is offered ahead of the next change.

use bentpipe_net::Link;
use bentpipe_scenario::{LinkId, NodeId, RoutingTable};

use crate::packet::handle::PacketHandle;

/// Which links are chained.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// Where routes change: the nodes at which packets begin their way, and their destinations, two of each flow first.
    pub origins: Vec<(NodeId, u32)>,
    /// By link: all its packets come from one other. Empty if no link is offered packets ahead of time.
    chained: Vec<bool>,
    /// By link: the destination of the packets that went on behind it last, and the link over which they did.
    last: Vec<(u32, Option<LinkId>)>,
}

/// No destination.
const NOWHERE: u32 = u32::MAX;

impl Chains {
    /// These links may be offered packets ahead of time.
    pub fn open(&mut self, chained: Vec<bool>) {
        self.last = vec![(NOWHERE, None); chained.len()];
        self.chained = chained;
    }

    /// Packets may be offered to this link ahead of time.
    pub fn has(&self, link: LinkId) -> bool {
        self.chained.get(link as usize).is_some_and(|chained| *chained)
    }

    /// True if no packet is offered to a link ahead of time.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chained.is_empty()
    }

    /// Where packets to a destination go on behind a link, if the last ones that were followed there had the same destination.
    #[inline]
    pub fn known(&self, destination: u32, behind: LinkId) -> Option<Option<LinkId>> {
        let (last, next) = self.last[behind as usize];
        (last == destination).then_some(next)
    }

    /// Packets to a destination go on like this behind a link.
    pub fn learn(&mut self, destination: u32, behind: LinkId, next: Option<LinkId>) {
        self.last[behind as usize] = (destination, next);
    }

    /// Packets may be offered to no link ahead of time any more.
    pub fn clear(&mut self) {
        self.chained.clear();
        self.last.clear();
    }
}

/// Where the packets of a link come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Nowhere,
    /// From this link alone, or from the port with the next number but the number of links.
    One(u32),
    /// From several, or from elsewhere.
    Several,
}

impl Source {
    /// From both.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, other) => other,
            _ if self == other => self,
            _ => Self::Several,
        }
    }
}

/// The links from which packets come to links.
pub(crate) struct Survey<'a> {
    links: &'a [Link<PacketHandle>],
    sources: Vec<Source>,
}

impl<'a> Survey<'a> {
    /// No packets come to any of these links yet.
    pub fn new(links: &'a [Link<PacketHandle>]) -> Self {
        Self { links, sources: vec![Source::Nowhere; links.len()] }
    }

    /// Packets come to a link from a source.
    pub fn note(&mut self, link: LinkId, source: Source) {
        let before = &mut self.sources[link as usize];
        *before = before.or(source);
    }

    /// Packets to a destination are at a node, to which they came from this source.
    pub fn walk(&mut self, routing: &RoutingTable, (node, destination): (NodeId, u32), mut source: Source) {
        for link in routing.way(destination, node) {
            self.note(link, source);
            source = self.source(link);
        }
    }

    /// What packets come from that come over a link.
    pub fn source(&self, link: LinkId) -> Source {
        if self.links[link as usize].is_foreseeable() { Source::One(link) } else { Source::Several }
    }

    /// Whether all packets of a link come from one other, and what becomes of them is known when they come.
    fn is_chained(&self, link: LinkId) -> bool {
        let is_alone = matches!(self.sources[link as usize], Source::One(_));
        is_alone && self.links[link as usize].is_first_in_first_out()
    }

    /// How many links packets pass ahead of time before they come to this one.
    pub fn depth(&self, mut link: LinkId) -> usize {
        let mut depth = 0;
        while let (true, Source::One(before)) = (self.is_chained(link), self.sources[link as usize])
            && depth < self.links.len()
        {
            (depth, link) = (depth + 1, before);
        }
        depth
    }

    /// Of each link whether it is chained.
    pub fn chained(&self) -> Vec<bool> {
        (0..self.links.len() as LinkId).map(|link| self.is_chained(link)).collect()
    }
}
