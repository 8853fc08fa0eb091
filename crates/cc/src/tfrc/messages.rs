//! What sender and receiver of TFRC tell each other in the segments of a connection.

/// What the receiver says in each ACK, as [`Extension::Value`](bentpipe_base::Extension::Value).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Report {
    pub loss_event_rate: f32,
    /// Bytes per second over the last round trip.
    pub received: f32,
}

impl Report {
    pub fn to_value(self) -> u64 {
        u64::from(self.loss_event_rate.to_bits()) << 32 | u64::from(self.received.to_bits())
    }

    /// Numbers that no receiver of ours sends mean nothing.
    pub fn from_value(value: u64) -> Option<Self> {
        let loss_event_rate = f32::from_bits((value >> 32) as u32);
        let received = f32::from_bits(value as u32);
        let sane = (0.0..=1.0).contains(&loss_event_rate) && (0.0..1e15).contains(&received);
        (sane && received > 0.0).then_some(Self { loss_event_rate, received })
    }
}

/// What each segment says, as [`Extension::Value`](bentpipe_base::Extension::Value): its number, retransmissions counted anew, and the sender's round-trip time.
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
