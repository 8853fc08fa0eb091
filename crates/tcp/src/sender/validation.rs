//! Measurement of the used window (RFC 7661).

use bentpipe_base::{Duration, Instant};

/// `pipeACK`: maximum acknowledged per round trip recently (RFC 7661 section 4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// Start of the present sampling round trip, and the bytes delivered by then.
    since: Instant,
    delivered_since: u64,
    /// Bytes delivered in the previous and in the present sampling round trip.
    previous: u64,
    current: u64,
    /// Time since which the window is unused.
    unused_since: Option<Instant>,
}

impl Validation {
    /// Handles the bytes delivered since the connection began. A new sampling round trip begins after `round`.
    pub fn measure(&mut self, now: Instant, delivered: u64, round: Duration) {
        self.current = delivered - self.delivered_since;
        if now.since(self.since) >= round {
            self.previous = self.current;
            self.since = now;
            self.delivered_since = delivered;
        }
    }

    /// Returns `pipeACK` in segments of `mss` bytes.
    pub fn pipe_ack(&self, mss: u32) -> f64 {
        self.previous.max(self.current) as f64 / f64::from(mss)
    }

    /// Records that the window is used.
    pub fn note_used(&mut self) {
        self.unused_since = None;
    }

    /// Records that the window is unused. Returns true and starts a new period if it was unused for `period`.
    pub fn is_unused_for(&mut self, now: Instant, period: Duration) -> bool {
        let over = now.since(*self.unused_since.get_or_insert(now)) >= period;
        if over {
            self.unused_since = Some(now);
        }
        over
    }

    /// True if the window was unused at the last record.
    pub fn is_unused(&self) -> bool {
        self.unused_since.is_some()
    }
}
