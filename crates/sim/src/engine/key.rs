//! The order of events: by time, then by class, then by a hash of the time and of the entity that the event concerns.
//!
//! It depends on what happens in the world and on nothing else: neither on who scheduled an event, nor on when that was, nor on how the world
//! is partitioned.

use bentpipe_base::Instant;

/// Number of an event target: whom an event concerns.
pub(crate) type EventTarget = u32;

/// What happens at the same time happens in the order of these classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Something is measured: it sees the world as it was before this time.
    Measurement,
    /// The network itself changes, or is brought up to date.
    Network,
    /// A packet arrives at the far end of a link.
    Arrival,
    /// The time has come that a connection end, an application or a middlebox waited for.
    Timer,
}

/// Decides between events of the same time and the same class: the smaller goes first. Of two entities with different salts it is never
/// equal, as every step of the calculation can be undone.
///
/// Senders whose links are as fast as the one behind them keep step with it, so that their packets meet at a full queue again and
/// again. Any fixed order would let the same one in each time; wires are never so exact. Hence the time goes into the hash.
#[inline]
pub(crate) fn tie_break(time: Instant, salt: u32) -> u32 {
    let draw = (time.as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    let mixed = (salt ^ draw).wrapping_mul(0x85EB_CA6B);
    (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35)
}

/// What distinguishes the events of an entity from others of the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tie {
    pub class: Class,
    /// Made of the name of the entity, so that the order of others does not change if it is added to a world.
    pub salt: u32,
}

impl Tie {
    /// The place among the events of a time.
    #[inline]
    pub fn rank(self, time: Instant) -> u64 {
        (self.class as u64) << 32 | u64::from(tie_break(time, self.salt))
    }

    /// The place of an event of a target.
    #[inline]
    pub fn key(self, time: Instant, target: EventTarget) -> EventKey {
        EventKey { time, rank: self.rank(time), target }
    }
}

/// The place of an event in the order of events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EventKey {
    pub time: Instant,
    /// See [`Tie::rank`].
    pub rank: u64,
    pub target: EventTarget,
}

impl EventKey {
    /// Comes after every event.
    pub const NEVER: Self = Self { time: Instant::FAR_FUTURE, rank: u64::MAX, target: EventTarget::MAX };
}
