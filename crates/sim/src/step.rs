//! Where a packet goes next: one word of a route.
//!
//! Nearly every step is a link, whose words are its number; the few others have a kind in their highest bits, so that the loop
//! tells the two apart with one comparison.

use bentpipe_scenario::LinkId;

/// A step of a route: a link if below [`FIRST_SPECIAL`], else what [`Special::of`] says.
pub(crate) type Step = u32;

/// Bits of a number; the kind stands above.
const NUMBER_BITS: u32 = 29;

/// Steps from here on are not links.
pub(crate) const FIRST_SPECIAL: Step = 1 << NUMBER_BITS;

/// Stands in the routes after the last link of each.
pub(crate) const ARRIVED: Step = Step::MAX;

const STATION: u32 = 1;
const LOOKUP: u32 = 2;
const DOOR: u32 = 3;
const BEHIND: u32 = 4;
const JUNCTION: u32 = 5;
const LANE: u32 = 6;

/// A step that is not a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// The packet passes a middlebox: index of its station.
    Station(u32),
    /// The node that it is at knows the way to this destination: its index among those of the wayfinder.
    Lookup(u32),
    /// The link before was the door of a shared channel.
    Door,
    /// A link to which all packets come from the one before, so that they are offered to it as soon as it is known when.
    Behind(LinkId),
    /// A junction, where packets gather for its link.
    Junction(u32),
    /// The way to a host from the last junction before it: packets wait until the host takes them.
    Lane(u32),
    /// The route ends.
    Arrived,
}

impl Special {
    /// What a step says that is not a link.
    pub fn of(step: Step) -> Self {
        let number = step & (FIRST_SPECIAL - 1);
        match step >> NUMBER_BITS {
            STATION => Self::Station(number),
            LOOKUP => Self::Lookup(number),
            DOOR => Self::Door,
            BEHIND => Self::Behind(number),
            JUNCTION => Self::Junction(number),
            LANE => Self::Lane(number),
            _ => Self::Arrived,
        }
    }

    /// The step that says this.
    pub fn step(self) -> Step {
        match self {
            Self::Station(number) => STATION << NUMBER_BITS | number,
            Self::Lookup(number) => LOOKUP << NUMBER_BITS | number,
            Self::Door => DOOR << NUMBER_BITS,
            Self::Behind(link) => BEHIND << NUMBER_BITS | link,
            Self::Junction(number) => JUNCTION << NUMBER_BITS | number,
            Self::Lane(number) => LANE << NUMBER_BITS | number,
            Self::Arrived => ARRIVED,
        }
    }
}

/// The link that a step is which is [`Special::Behind`] another.
#[inline(always)]
pub(crate) fn behind(step: Step) -> Option<LinkId> {
    (step >> NUMBER_BITS == BEHIND).then_some(step & (FIRST_SPECIAL - 1))
}

/// The junction that a step is.
#[inline(always)]
pub(crate) fn junction(step: Step) -> Option<u32> {
    (step >> NUMBER_BITS == JUNCTION).then_some(step & (FIRST_SPECIAL - 1))
}

/// The lane that a step is.
#[inline(always)]
pub(crate) fn lane(step: Step) -> Option<u32> {
    (step >> NUMBER_BITS == LANE).then_some(step & (FIRST_SPECIAL - 1))
}

/// The link that a step is, if it is one.
pub(crate) fn link(step: Step) -> Option<LinkId> {
    (step < FIRST_SPECIAL).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_step_says_what_it_was_made_of() {
        for special in [
            Special::Station(0),
            Special::Station(77),
            Special::Lookup(12_345),
            Special::Door,
            Special::Behind(5),
            Special::Junction(2),
            Special::Arrived,
        ] {
            assert!(special.step() >= FIRST_SPECIAL);
            assert_eq!((Special::of(special.step()), link(special.step())), (special, None));
        }
        assert_eq!(link(12), Some(12));
        let (behind_5, junction_2) = (Special::Behind(5).step(), Special::Junction(2).step());
        assert_eq!((behind(behind_5), junction(behind_5)), (Some(5), None));
        assert_eq!((behind(junction_2), junction(junction_2)), (None, Some(2)));
        assert_eq!((behind(ARRIVED), junction(ARRIVED)), (None, None));
    }
}
