//! How much of the window was used lately (RFC 7661).

use bentpipe_base::{Duration, Instant};

/// `pipeACK`: the most that was acknowledged in a round trip lately (RFC 7661 section 4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// Start of the present sampling round trip, and the bytes delivered until then.
    since: Instant,
    delivered_since: u64,
    /// Bytes delivered in the previous and in the present sampling round trip.
    previous: u64,
    current: u64,
    /// Since when the window has not been used.
    unused_since: Option<Instant>,
}

impl Validation {
    /// Takes the bytes delivered since the connection began. A new sampling round trip begins when the present one has lasted for `round`.
    pub fn measure(&mut self, now: Instant, delivered: u64, round: Duration) {
        self.current = delivered - self.delivered_since;
        if now.since(self.since) >= round {
            self.previous = self.current;
            self.since = now;
            self.delivered_since = delivered;
        }
    }

    /// `pipeACK` in segments of `mss` bytes.
    pub fn pipe_ack(&self, mss: u32) -> f64 {
        self.previous.max(self.current) as f64 / f64::from(mss)
    }

    /// The window is in use.
    pub fn note_used(&mut self) {
        self.unused_since = None;
    }

    /// The window is not in use. True, and a new period begins, if it has not been used for `period`.
    pub fn is_unused_for(&mut self, now: Instant, period: Duration) -> bool {
        let over = now.since(*self.unused_since.get_or_insert(now)) >= period;
        if over {
            self.unused_since = Some(now);
        }
        over
    }

    /// Whether the window was not in use last.
    pub fn is_unused(&self) -> bool {
        self.unused_since.is_some()
    }
}
