//! RACK: loss detection by time of transmission (RFC 8985).

use bentpipe_base::{Duration, Instant, precedes};

use super::rtt::RttEstimator;
use super::scoreboard::{Mark, Progress};
use crate::timestamp::clock_ms;

/// Number of recovery episodes for which a wider reordering window is kept (RFC 8985 section 6.2 step 4).
const PERSIST: u32 = 16;

/// RACK's variables, by the names of RFC 8985.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// Number of the newest delivered transmission. RFC 8985 compares `RACK.xmit_ts` and, of segments sent at the same time,
    /// `RACK.end_seq`. The number also orders a retransmission and new data sent at the same time.
    newest: u32,
    /// Round-trip time of the newest delivered segment; zero before the first.
    rtt: Duration,
    /// Highest sequence number delivered.
    fack: u64,
    reordering_seen: bool,
    /// Width of the reordering window in quarters of minRTT.
    window_quarters: u64,
    persist: u32,
    /// Sequence number whose acknowledgement ends the round trip in which the window was widened.
    widened_until: u64,
    /// Tail loss probe in flight.
    pub tail_probe: Option<TailProbe>,
}

/// A tail loss probe in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// `snd_nxt` when it was sent.
    pub end: u64,
    /// True if it repeated old data instead of carrying new.
    pub retransmission: bool,
}

/// Segments delivered by one ACK, each sent once and all at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Number of the transmission of the last.
    pub order: u32,
    /// First sequence number.
    pub lowest: u64,
    /// Sequence number after the last.
    pub end: u64,
}

/// Timing of an ACK, to detect that it answers an original instead of its retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTiming {
    pub now: Instant,
    /// minRTT; [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// Timestamp echoed by the ACK, in milliseconds.
    pub echo: Option<u32>,
}

impl AckTiming {
    /// RFC 8985 section 6.2 step 2: true if the echo is older than the repair, or the repair left less than minRTT ago.
    fn may_answer_original(&self, repaired_at: Instant) -> bool {
        let older = self.echo.is_some_and(|echo| precedes(echo, clock_ms(repaired_at)));
        let too_soon = self.min_rtt != Duration::MAX && self.now.since(repaired_at) < self.min_rtt;
        older || too_soon
    }
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: 0,
            rtt: Duration::ZERO,
            fack: 0,
            reordering_seen: false,
            window_quarters: 1,
            persist: 0,
            widened_until: 0,
            tail_probe: None,
        }
    }
}

impl Rack {
    /// Steps 1 and 2: handles the newest delivered segment. If that is a retransmission and the ACK may answer its original, the
    /// newest segment sent only once counts instead.
    pub fn update(&mut self, progress: &Progress, seen: AckTiming) {
        let Some(newest) = &progress.newest else { return };
        let (sent_at, order) =
            if newest.marks.intersects(Mark::AMBIGUOUS) && seen.may_answer_original(newest.sent_at) {
                let Some(original) = progress.newest_original else { return };
                original
            } else {
                (newest.sent_at, newest.order)
            };
        self.rtt = seen.now.since(sent_at);
        if self.is_newest(order) {
            self.newest = order;
        }
    }

    /// Returns the round-trip time of the newest delivered segment; `None` before the first.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.rtt).filter(|rtt| !rtt.is_zero())
    }

    /// True if a transmission after `order` has been delivered.
    #[inline]
    pub fn has_overtaken(&self, order: u32) -> bool {
        precedes(order, self.newest)
    }

    /// Step 4: returns the reordering window. Without reordering it is zero if losses are `proven` by other segments.
    pub fn reordering_window(&self, rtt: &RttEstimator, proven: bool) -> Duration {
        if !self.reordering_seen && proven {
            return Duration::ZERO;
        }
        let quarter = if rtt.min == Duration::MAX { Duration::ZERO } else { rtt.min / 4 };
        (quarter * self.window_quarters).min(rtt.srtt)
    }

    /// True if no transmission at or after `order` was delivered before.
    #[inline]
    pub fn is_newest(&self, order: u32) -> bool {
        precedes(self.newest, order)
    }

    /// Runs steps 1 to 3 for a delivery that ends with such a segment.
    #[inline]
    pub fn deliver(&mut self, rtt: Duration, delivery: Delivery) {
        let Delivery { order, lowest, end } = delivery;
        self.rtt = rtt;
        self.newest = order;
        self.reordering_seen |= lowest < self.fack;
        self.fack = self.fack.max(end);
    }

    pub fn note_reordering(&mut self, progress: &Progress, highest: u64) {
        if progress.original_delivered && progress.lowest_original < self.fack {
            self.reordering_seen = true;
        }
        self.fack = self.fack.max(highest);
    }

    /// Handles a D-SACK: a retransmission was needless, so the window is widened, once per round (step 4).
    pub fn widen(&mut self, una: u64, nxt: u64) {
        if una >= self.widened_until {
            self.window_quarters += 1;
            self.persist = PERSIST;
            self.widened_until = nxt;
        }
    }

    /// Records reordering: the ACK of a retransmitted segment answered the original.
    pub fn saw_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Handles the end of a recovery: a wide window narrows after enough rounds.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_quarters = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985, section 6.2, step 3: a delivery below the highest delivered number shows reordering, which is not forgotten.
    #[test]
    fn reordering_is_seen_where_a_lower_number_arrives_later() {
        let mut rack = Rack::default();
        let mut deliver = |order, lowest, end| {
            rack.deliver(Duration::from_millis(100), Delivery { order, lowest, end });
            rack.reordering_seen
        };
        assert!(!deliver(1, 1, 5001));
        assert!(deliver(2, 1001, 3001));
        assert!(deliver(3, 5001, 6001));
    }
}
