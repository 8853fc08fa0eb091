//! What the applications of flows do. They decide; the loop writes, sends and wakes them.

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_scenario::{FlowGroup, Idle, Traffic};

/// The application of one flow.
#[derive(Debug)]
pub(crate) enum Application {
    /// Writes without end.
    Bulk,
    /// Writes so many bytes and closes.
    File { bytes: u64 },
    /// Writes a page, waits for its acknowledgement, rests, and begins again.
    Pages(Pages),
    /// Sends packets without TCP.
    Cbr(Cbr),
}

/// A reader of pages.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Bytes of a page.
    pub bytes: u64,
    /// Each page on a connection of its own.
    pub fresh_connection: bool,
    idle: Idle,
    rng: Rng,
}

/// A source of constant bit rate.
#[derive(Debug)]
pub(crate) struct Cbr {
    rate: Rate,
    /// Size of a packet on the wire.
    pub packet_bytes: u32,
    sent: u64,
}

impl Application {
    /// Of a flow called `name`.
    pub fn new(group: &FlowGroup, seed: u64, name: &str) -> Self {
        match group.traffic {
            Traffic::Bulk => Self::Bulk,
            Traffic::File { bytes } => Self::File { bytes },
            Traffic::Pages { segments, idle, fresh_connection } => Self::Pages(Pages {
                bytes: u64::from(segments) * u64::from(group.sender.mss),
                fresh_connection,
                idle,
                rng: Rng::stream(seed, &format!("flow.{name}.idle")),
            }),
            Traffic::Cbr { rate, packet_bytes } => Self::Cbr(Cbr { rate, packet_bytes, sent: 0 }),
        }
    }

    /// Bytes after which the application closes its connection; none if it goes on.
    pub fn closes_after(&self) -> Option<u64> {
        match self {
            Self::File { bytes } => Some(*bytes),
            Self::Pages(pages) if pages.fresh_connection => Some(pages.bytes),
            _ => None,
        }
    }
}

impl Pages {
    /// How long the reader rests before the next page.
    pub fn rest(&mut self) -> Duration {
        match self.idle {
            Idle::Fixed(rest) => rest,
            Idle::Exponential(mean) => Duration::from_secs_f64(self.rng.exponential(mean.as_secs_f64())),
        }
    }
}

impl Cbr {
    /// Notes that a packet leaves; when the next one does, in a flow that started at `start`.
    pub fn send(&mut self, start: Instant) -> Instant {
        self.sent += 1;
        // From the start, so that rounding does not add up.
        start + self.rate.time_for(self.sent.saturating_mul(u64::from(self.packet_bytes)))
    }

    /// Packets sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_bit_rate_does_not_drift() {
        let mut cbr = Cbr { rate: Rate::from_mbps(3), packet_bytes: 1000, sent: 0 };
        let last = (0..3_000).map(|_| cbr.send(Instant::ZERO)).last();
        assert_eq!(last, Some(Instant::ZERO + Duration::from_secs(8)));
    }
}
