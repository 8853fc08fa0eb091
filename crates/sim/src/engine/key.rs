//! The order of events: by time, then by class, then by a hash of the time and of the entity that the event concerns.
//!
//! The order does not depend on how a world is executed: not on which entity scheduled an event, nor when, nor on how the world is partitioned.

use bentpipe_base::Instant;

/// Number of the entity that an event concerns.
pub(crate) type EventTarget = u32;

/// Events of the same time are executed in the order of these classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A measurement: it sees the world as it was before this time.
    Measurement,
    /// The network itself changes, or is brought up to date.
    Network,
    /// A packet arrives at the far end of a link.
    Arrival,
    /// The timer of a connection end, an application or a middlebox expires.
    Timer,
}

/// Orders events of the same time and class: the smaller is executed first. Two entities with different salts never get the same
/// number, because each step of the calculation is invertible.
///
/// Senders whose links are as fast as the one behind them keep step with it, so that their packets meet at a full queue again and
/// again. A fixed order would admit the packet of the same sender each time. Therefore the time is part of the hash.
#[inline]
pub(crate) fn tie_break(time: Instant, salt: u32) -> u32 {
    let draw = (time.as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    let mixed = (salt ^ draw).wrapping_mul(0x85EB_CA6B);
    (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35)
}

/// Class and salt of an entity: they order its events among others of the same time.
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

    /// The key of an event of a target.
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
