//! Packets over routes that change: from link to link without an event for each hop, until the routes change.
//!
//! Between two changes a packet to a destination takes the same links from every node. If all packets of a link come from one other
//! link, they arrive in the order in which they leave that one. So each packet is offered as soon as its arrival is known, as over a
//! [chained](crate::network::hop::Special::Chained) hop of a fixed route. No packet is followed beyond the next change: later packets
//! stay on their links, and are followed from there after the change.

use bentpipe_scenario::{LinkId, NodeId};

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

    /// Returns the next link of packets to a destination behind a link, if the last packet followed there had the same destination.
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
