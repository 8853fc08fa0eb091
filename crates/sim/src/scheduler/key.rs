//! The order of events: by time, then by class, then by a hash of the time and of the entity of the event.
//!
//! The order depends only on the world: not on the origin of an event, on the time of its scheduling, or on the partition of the world.

use bentpipe_base::Instant;

/// Number of an event target: whom an event concerns.
pub(crate) type EventTarget = u32;

/// Classes of events. Simultaneous events are executed in the order of their classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A measurement. It sees the world as it was before this time.
    Measurement,
    /// The network itself changes, or is brought up to date.
    Network,
    /// A packet arrives at the far end of a link.
    Arrival,
    /// Timer of a connection end, an application or a middlebox.
    Timer,
}

/// Order of events of the same time and class: the smaller value is first. Two entities with different salts never have the same value,
/// because the calculation is invertible.
///
/// Senders whose links are as fast as the bottleneck keep their phase, so their packets meet at a full queue again and again. Any fixed
/// order would always admit the same sender. Real links are never so exact, hence the time is part of the hash.
#[inline]
pub(crate) fn tie_break(time: Instant, salt: u32) -> u32 {
    let draw = (time.as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    let mixed = (salt ^ draw).wrapping_mul(0x85EB_CA6B);
    (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35)
}

/// Distinguishes the events of an entity from other events of the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tie {
    pub class: Class,
    /// Hash of the entity's name, so that a new entity does not change the order of the others.
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
    /// A key after every event.
    pub const NEVER: Self = Self { time: Instant::FAR_FUTURE, rank: u64::MAX, target: EventTarget::MAX };
}
