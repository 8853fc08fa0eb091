//! Hops: the words of which routes consist.
//!
//! Nearly every hop is a link, written as its number. The others have their kind in the highest bits, so that one comparison tells the
//! two apart.

use bentpipe_scenario::{LinkId, NodeId};

/// A hop of a route: a link if below [`FIRST_SPECIAL`], else what [`Special::of`] says.
pub(crate) type Hop = u32;

/// Bits of the number of a hop; the bits above are its kind.
const NUMBER_BITS: u32 = 29;

/// Hops from here on are not links.
pub(crate) const FIRST_SPECIAL: Hop = 1 << NUMBER_BITS;

/// Stands in the routes after the last link of each.
pub(crate) const ARRIVED: Hop = Hop::MAX;

const MIDDLEBOX: u32 = 1;
const LOOKUP: u32 = 2;
const MEDIUM_PORT: u32 = 3;
const EXIT: u32 = 4;

/// A hop that is not a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// The packet passes a middlebox: its index.
    Middlebox(u32),
    /// The routing table knows the next hop to this destination: its index there.
    Lookup(u32),
    /// The link before leads into a shared medium.
    MediumPort,
    /// The packet leaves for another logical process: the index of its crossing.
    Exit(u32),
    /// The route ends.
    Arrived,
}

impl Special {
    /// What a hop says that is not a link.
    pub fn of(hop: Hop) -> Self {
        let number = hop & (FIRST_SPECIAL - 1);
        match hop >> NUMBER_BITS {
            MIDDLEBOX => Self::Middlebox(number),
            LOOKUP => Self::Lookup(number),
            MEDIUM_PORT => Self::MediumPort,
            EXIT => Self::Exit(number),
            _ => Self::Arrived,
        }
    }

    /// The hop that says this.
    pub fn hop(self) -> Hop {
        match self {
            Self::Middlebox(number) => MIDDLEBOX << NUMBER_BITS | number,
            Self::Lookup(number) => LOOKUP << NUMBER_BITS | number,
            Self::MediumPort => MEDIUM_PORT << NUMBER_BITS,
            Self::Exit(number) => EXIT << NUMBER_BITS | number,
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

/// The number of the destination whose next hop the routing table knows.
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
            Special::Exit(5),
            Special::Arrived,
        ] {
            assert!(special.hop() >= FIRST_SPECIAL);
            assert_eq!((Special::of(special.hop()), link(special.hop())), (special, None));
        }
        assert_eq!(link(12), Some(12));
    }
}
