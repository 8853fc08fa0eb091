//! Queues in front of the transmitter.
//!
//! The packet in transmission does not wait: a queue of 50 packets holds 50 besides the one being sent. A packet that
//! meets an idle transmitter passes through the queue in no time, so it must fit the limit all the same.
//!
//! Two kinds: a [`Fifo`] decides when a packet arrives and then knows its departure, which needs no further event;
//! the others decide when the transmitter falls free, and hold the packets until then.

mod fifo;

use core::fmt;

pub(crate) use fifo::{Fifo, Turn};

use crate::ConfigError;

/// Name and meaning of every queue.
pub const QUEUES: &[(&str, &str)] = &[
    ("drop-tail", "first in, first out; an arrival without room is dropped"),
    ("threshold", "drop-tail, and low priority is refused when more than a threshold waits"),
];

/// The queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; an arrival without room is dropped, whatever its priority.
    DropTail {
        /// Room for waiting packets.
        limit: Limit,
    },
    /// Drop-tail that accepts a low-priority packet only if at most `low_priority_threshold` packets wait
    /// (discipline of the router in the Georgia Tech Network Simulator's TCP-Peach model, threshold 1).
    Threshold {
        /// Room for waiting packets.
        limit: Limit,
        /// Most packets waiting at which a low-priority packet is accepted (theta).
        low_priority_threshold: u32,
    },
}

impl Default for QueueConfig {
    /// Drop-tail with 50 packets, the buffer of the satellite TCP papers.
    fn default() -> Self {
        Self::DropTail { limit: Limit::Packets(50) }
    }
}

impl QueueConfig {
    /// Name of the queue in [`QUEUES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail { .. } => "drop-tail",
            Self::Threshold { .. } => "threshold",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail { limit } | Self::Threshold { limit, .. } => limit.validate("limit"),
        }
    }
}

/// Room for waiting packets; the packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets, at least 1.
    Packets(u32),
    /// So many bytes on the wire, at least 1; should exceed the largest packet, which never gets through otherwise.
    Bytes(u64),
}

impl Limit {
    /// True if `size` more bytes, one packet, fit beside what waits already.
    #[inline]
    pub(crate) fn has_room(self, backlog: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(packets) => backlog.packets < packets,
            Self::Bytes(bytes) => backlog.bytes + u64::from(size) <= bytes,
        }
    }

    fn validate(self, field: &str) -> Result<(), ConfigError> {
        match self {
            Self::Packets(0) => Err(ConfigError::new(field, self, "at least 1 packet")),
            Self::Bytes(0) => Err(ConfigError::new(field, self, "at least 1 byte")),
            Self::Packets(_) | Self::Bytes(_) => Ok(()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

/// What waits in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets waiting, without the one in transmission.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    #[inline]
    pub(crate) fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}
