//! Backlog of a queue, its limit, and scheduled transmissions.

use core::fmt;

use bentpipe_base::{Duration, Instant};

use crate::error::ConfigError;

/// Limit of queued packets; the packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This many packets, at least 1.
    Packets(u32),
    /// This many bytes on the wire, at least 1. It should exceed the largest packet, which would otherwise never
    /// pass.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `size` bytes on the wire fits in addition to `backlog`.
    #[inline]
    pub fn has_room(self, backlog: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(packets) => backlog.packets < packets,
            Self::Bytes(bytes) => backlog.bytes + u64::from(size) <= bytes,
        }
    }

    /// Checks that the limit allows at least one packet or byte; `field` is its name.
    ///
    /// # Errors
    /// If the limit is zero.
    pub fn validate(self, field: &str) -> Result<(), ConfigError> {
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

/// Content of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Queued packets, without the one in transmission.
    pub packets: u32,
    /// Queued bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Adds a packet of `size` bytes.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// Removes a packet of `size` bytes.
    #[inline]
    pub fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

/// The transmission of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transmission {
    pub start: Instant,
    pub end: Instant,
    /// Size on the wire in bytes.
    pub size: u32,
}

/// Scheduled transmissions that have not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbegun {
    pub backlog: Backlog,
    /// Total transmission time.
    pub time: Duration,
}
