//! What waits in a queue, how much may wait, and when it is sent.

use core::fmt;

use bentpipe_base::{Duration, Instant};

use crate::error::ConfigError;

/// Room for waiting packets; the packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets, at least 1.
    Packets(u32),
    /// So many bytes on the wire, at least 1; should exceed the largest packet, which never gets through otherwise.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `size` bytes on the wire may wait beside `backlog`.
    #[inline]
    pub fn has_room(self, backlog: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(packets) => backlog.packets < packets,
            Self::Bytes(bytes) => backlog.bytes + u64::from(size) <= bytes,
        }
    }

    /// Accepts room for at least one packet or byte, names `field` otherwise.
    ///
    /// # Errors
    /// If there is no room at all.
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

/// What waits in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets waiting, without the one in transmission.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// A packet of `size` bytes begins to wait.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// A packet of `size` bytes waits no longer.
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
    /// Bytes on the wire.
    pub size: u32,
}

/// Scheduled transmissions that have not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbegun {
    pub backlog: Backlog,
    /// Transmission time of all of them.
    pub time: Duration,
}
