//! Packets over routes that change: from link to link without an event for each hop, until the routes change.
//!
//! Between two changes a packet to a destination takes the same links from every node. Where all packets of a link come from one other link,
//! they come in the order in which they leave that one, so each is offered as soon as its arrival is known, as over a
//! [chained](crate::network::hop::Special::Chained) hop of a fixed route. Nothing is followed beyond the next change: packets that arrive
//! later stay on their links, and are followed from there when the routes have changed.

use bentpipe_scenario::{LinkId, NodeId};

/// Where packets may be followed until the routes change.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// The nodes at which packets begin their way, and their destinations: two of each flow first. Empty if nothing is to be followed.
    pub origins: Vec<(NodeId, u32)>,
    /// By link: all its packets come from one other.
    chained: Vec<bool>,
    /// By link: the destination of the packets that were followed behind it last, and the link over which they went on.
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
