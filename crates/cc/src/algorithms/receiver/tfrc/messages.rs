//! Messages between sender and receiver of TFRC, carried in segments of the connection.

/// Report of the receiver in each ACK, as [`Extension::Value`](bentpipe_base::Extension::Value).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Report {
    pub loss_event_rate: f32,
    /// Receive rate over the last round trip, in bytes per second.
    pub received: f32,
}

impl Report {
    pub fn to_value(self) -> u64 {
        u64::from(self.loss_event_rate.to_bits()) << 32 | u64::from(self.received.to_bits())
    }

    /// Decodes a report; `None` for values that no valid receiver sends.
    pub fn from_value(value: u64) -> Option<Self> {
        let loss_event_rate = f32::from_bits((value >> 32) as u32);
        let received = f32::from_bits(value as u32);
        let sane = (0.0..=1.0).contains(&loss_event_rate) && (0.0..1e15).contains(&received);
        (sane && received > 0.0).then_some(Self { loss_event_rate, received })
    }
}

/// Stamp of each segment, as [`Extension::Value`](bentpipe_base::Extension::Value): its number (new for each retransmission) and
/// the sender's round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    pub number: u32,
    pub rtt_us: u32,
}

impl Stamp {
    pub fn to_value(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.rtt_us)
    }

    pub fn from_value(value: u64) -> Self {
        Self { number: (value >> 32) as u32, rtt_us: value as u32 }
    }
}
