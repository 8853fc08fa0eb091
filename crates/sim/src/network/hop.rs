//! Next place of a packet: one word of a route.
//!
//! Nearly every hop is a link, written as its number. Other hops have their kind in the highest bits, so one comparison distinguishes
//! the two.

use bentpipe_scenario::{LinkId, NodeId};

/// A hop of a route: a link if below [`FIRST_SPECIAL`], otherwise decoded by [`Special::of`].
pub(crate) type Hop = u32;

/// Bits of a number; the kind is in the bits above.
const NUMBER_BITS: u32 = 29;

/// Hops from here on are not links.
pub(crate) const FIRST_SPECIAL: Hop = 1 << NUMBER_BITS;

/// End of a route, after its last link.
pub(crate) const ARRIVED: Hop = Hop::MAX;

const MIDDLEBOX: u32 = 1;
const LOOKUP: u32 = 2;
const MEDIUM_PORT: u32 = 3;
const CHAINED: u32 = 4;
const SHARED_LINK: u32 = 5;
const CHANNEL: u32 = 6;

/// A hop that is not a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// The packet passes a middlebox: its index.
    Middlebox(u32),
    /// Index of a destination in the routing table, which has the next hop.
    Lookup(u32),
    /// The link before leads into a shared medium.
    MediumPort,
    /// A link whose packets all come from the previous one, so that they are offered ahead of time.
    Chained(LinkId),
    /// A shared link: its index.
    SharedLink(u32),
    /// An input channel of a process: its index.
    Channel(u32),
    /// The route ends.
    Arrived,
}

impl Special {
    /// Decodes a hop that is not a link.
    pub fn of(hop: Hop) -> Self {
        let number = hop & (FIRST_SPECIAL - 1);
        match hop >> NUMBER_BITS {
            MIDDLEBOX => Self::Middlebox(number),
            LOOKUP => Self::Lookup(number),
            MEDIUM_PORT => Self::MediumPort,
            CHAINED => Self::Chained(number),
            SHARED_LINK => Self::SharedLink(number),
            CHANNEL => Self::Channel(number),
            _ => Self::Arrived,
        }
    }

    /// The hop that says this.
    pub fn hop(self) -> Hop {
        match self {
            Self::Middlebox(number) => MIDDLEBOX << NUMBER_BITS | number,
            Self::Lookup(number) => LOOKUP << NUMBER_BITS | number,
            Self::MediumPort => MEDIUM_PORT << NUMBER_BITS,
            Self::Chained(link) => CHAINED << NUMBER_BITS | link,
            Self::SharedLink(number) => SHARED_LINK << NUMBER_BITS | number,
            Self::Channel(number) => CHANNEL << NUMBER_BITS | number,
            Self::Arrived => ARRIVED,
        }
    }
}

/// A node at which a packet is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    pub node: NodeId,
    /// The middlebox of the node has had it.
    pub served: bool,
}

/// The link that a hop is which is [`Special::Chained`] another.
#[inline(always)]
pub(crate) fn chained(hop: Hop) -> Option<LinkId> {
    (hop >> NUMBER_BITS == CHAINED).then_some(hop & (FIRST_SPECIAL - 1))
}

/// The shared link that a hop is.
#[inline(always)]
pub(crate) fn shared_link(hop: Hop) -> Option<u32> {
    (hop >> NUMBER_BITS == SHARED_LINK).then_some(hop & (FIRST_SPECIAL - 1))
}

/// The channel that a hop is.
#[inline(always)]
pub(crate) fn channel(hop: Hop) -> Option<u32> {
    (hop >> NUMBER_BITS == CHANNEL).then_some(hop & (FIRST_SPECIAL - 1))
}

/// Hop whose next link the routing table has, for a destination.
#[inline(always)]
pub(crate) fn lookup(hop: Hop) -> Option<u32> {
    (hop >> NUMBER_BITS == LOOKUP).then_some(hop & (FIRST_SPECIAL - 1))
}

/// The link that a hop is, if it is one.
pub(crate) fn link(hop: Hop) -> Option<LinkId> {
    (hop < FIRST_SPECIAL).then_some(hop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_hop_says_what_it_was_made_of() {
        for special in [
            Special::Middlebox(0),
            Special::Middlebox(77),
            Special::Lookup(12_345),
            Special::MediumPort,
            Special::Chained(5),
            Special::SharedLink(2),
            Special::Arrived,
        ] {
            assert!(special.hop() >= FIRST_SPECIAL);
            assert_eq!((Special::of(special.hop()), link(special.hop())), (special, None));
        }
        assert_eq!(link(12), Some(12));
        let (behind_5, shared_link_2) = (Special::Chained(5).hop(), Special::SharedLink(2).hop());
        assert_eq!((chained(behind_5), shared_link(behind_5)), (Some(5), None));
        assert_eq!((chained(shared_link_2), shared_link(shared_link_2)), (None, Some(2)));
        assert_eq!((chained(ARRIVED), shared_link(ARRIVED)), (None, None));
    }
}
