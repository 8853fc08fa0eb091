//! Segments that leave: their spacing in time and their drop priority.

use bentpipe_base::{Duration, Rate};

/// A segment that just left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Sequence number of the first byte.
    pub seq: u64,
    /// Number of payload bytes in the segment.
    pub len: u32,
    /// True for a retransmission.
    pub retransmission: bool,
}

/// Drop priority of a data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Same priority as all other traffic.
    #[default]
    Normal,
    /// Low priority: a full queue drops this segment first.
    Low,
}

/// Spacing of segments in time (pacing).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// The algorithm sets no rate; a rate of zero means the same.
    #[default]
    None,
    /// Bursts of `quantum` segments at this rate.
    At {
        /// Rate of the payload.
        rate: Rate,
        /// Segments per burst. The pause after a burst keeps the average rate.
        quantum: u32,
    },
    /// Pairs at this rate, because a receiver delays the ACK of a lone segment (RFC 9293, section 3.8.6.3). The second segment
    /// leaves `gap` after the first, even if the window has room for only one.
    Pairs {
        /// Rate of the payload.
        rate: Rate,
        /// Time between the two segments of a pair.
        gap: Duration,
    },
    /// No data may leave, retransmissions included; probes may. The retransmission timer stops, and restarts when data may leave
    /// again.
    Withheld,
}

impl Spacing {
    /// Returns a spacing of single segments at `rate`, or none without a rate.
    pub fn at(rate: Option<Rate>) -> Self {
        rate.map_or(Self::None, |rate| Self::At { rate, quantum: 1 })
    }

    /// Returns the rate, if there is one.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::At { rate, .. } | Self::Pairs { rate, .. } => Some(rate),
            Self::None | Self::Withheld => None,
        }
    }
}
