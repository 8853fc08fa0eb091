//! RACK: loss detection by time of transmission (RFC 8985).

use bentpipe_base::{Duration, Instant};

use super::Sender;
use super::scoreboard::{AgeVerdict, Mark, Progress};
use crate::Config;
use crate::arrival::is_older;
use crate::connection::clock_ms;

/// Rounds for which a wider reordering window is kept (RFC 8985 section 6.2 step 4).
const PERSIST: u32 = 16;

/// RACK's variables, by the names of RFC 8985.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// Transmission time and end of the newest delivered segment.
    xmit: Instant,
    end: u64,
    /// Its round-trip time.
    rtt: Duration,
    /// Highest sequence number delivered.
    fack: u64,
    reordering_seen: bool,
    /// Width of the reordering window in quarters of the smallest round trip.
    window_quarters: u64,
    persist: u32,
    /// The window was widened in the round that ends here.
    widened_until: u64,
    /// End of the tail loss probe in flight.
    pub tail_probe: Option<TailProbe>,
}

/// A tail loss probe in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// `snd_nxt` when it was sent.
    pub end: u64,
    /// It repeated old data instead of carrying new.
    pub retransmission: bool,
}

/// What tells whether an ACK may answer an original instead of its retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTiming {
    pub now: Instant,
    /// Smallest round trip; [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// The timestamp that the ACK echoes, in milliseconds.
    pub echo: Option<u32>,
}

impl AckTiming {
    /// RFC 8985 section 6.2 step 2: the echo is older than the repair, or the repair left less than any round trip ago.
    fn may_answer_original(&self, repaired_at: Instant) -> bool {
        let older = self.echo.is_some_and(|echo| is_older(echo, clock_ms(repaired_at)));
        let too_soon = self.min_rtt != Duration::MAX && self.now.since(repaired_at) < self.min_rtt;
        older || too_soon
    }
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            xmit: Instant::ZERO,
            end: 0,
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
    /// Steps 1 and 2: the newest delivery. A repair whose ACK may answer the original instead says nothing: then what was sent only
    /// once does.
    fn update(&mut self, progress: &Progress, seen: AckTiming) {
        let Some(newest) = &progress.newest else { return };
        let delivered =
            if newest.marks.intersects(Mark::AMBIGUOUS) && seen.may_answer_original(newest.sent_at) {
                let Some(original) = progress.newest_original else { return };
                original
            } else {
                (newest.sent_at, newest.end())
            };
        self.rtt = seen.now.since(delivered.0);
        if delivered > (self.xmit, self.end) {
            (self.xmit, self.end) = delivered;
        }
    }

    /// Whether a segment sent once at `sent_at` and ending at `end` is the newest delivered one.
    #[inline]
    pub fn is_newest(&self, sent_at: Instant, end: u64) -> bool {
        (sent_at, end) > (self.xmit, self.end)
    }

    /// Steps 1 to 3 for such a segment, delivered with everything from `lowest` on.
    #[inline]
    pub fn deliver(&mut self, rtt: Duration, (sent_at, lowest, end): (Instant, u64, u64)) {
        self.rtt = rtt;
        (self.xmit, self.end) = (sent_at, end);
        self.reordering_seen |= lowest < self.fack;
        self.fack = self.fack.max(end);
    }

    fn note_reordering(&mut self, progress: &Progress, highest: u64) {
        if progress.original_delivered && progress.lowest_original < self.fack {
            self.reordering_seen = true;
        }
        self.fack = self.fack.max(highest);
    }

    /// A D-SACK arrived: a retransmission was needless, so widen the window, once per round (step 4).
    fn widen(&mut self, una: u64, nxt: u64) {
        if una >= self.widened_until {
            self.window_quarters += 1;
            self.persist = PERSIST;
            self.widened_until = nxt;
        }
    }

    /// The ACK of what was sent again answered the original: the path reorders.
    pub fn saw_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Recovery ended: a wide window narrows after enough rounds.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_quarters = 1;
        }
    }
}

impl Sender {
    /// RACK's part of an ACK. Returns how many segments are newly lost.
    pub(super) fn rack_on_ack(
        &mut self,
        progress: &Progress,
        seen: AckTiming,
        dsack: bool,
        config: &Config,
    ) -> (u32, Option<Instant>) {
        let rack = self.rack.get_or_insert_default();
        if progress.newest.is_some() {
            rack.update(progress, seen);
            rack.note_reordering(progress, progress.highest);
        }
        if dsack {
            rack.widen(self.una, self.nxt);
        }
        self.rack_detect(seen.now, config)
    }

    /// A segment that was marked lost was only late.
    #[cold]
    pub(super) fn note_late_original(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.saw_reordering();
        }
    }

    /// Step 5: everything sent a reordering window before the newest delivery is lost.
    pub(super) fn rack_detect(&mut self, now: Instant, config: &Config) -> (u32, Option<Instant>) {
        let Some(Rack { xmit, end, rtt, .. }) =
            self.rack.as_deref().copied().filter(|rack| !rack.rtt.is_zero())
        else {
            return (0, None);
        };
        let wait = rtt + self.reordering_window(config);
        self.board.mark_lost_by_time(|sent_at, segment_end| {
            if (sent_at, segment_end) >= (xmit, end) {
                AgeVerdict::Unknown
            } else if now >= sent_at + wait {
                AgeVerdict::Lost
            } else {
                AgeVerdict::LostAt(sent_at + wait)
            }
        })
    }

    /// How long after its departure a segment is lost if something that left later has arrived. Before anything has, the smoothed round
    /// trip of the handshake stands for that of the newest delivery.
    pub(super) fn rack_window(&self, config: &Config) -> Duration {
        let rtt = self.rack.as_ref().map(|rack| rack.rtt).filter(|rtt| !rtt.is_zero());
        rtt.unwrap_or(self.rtt.srtt) + self.reordering_window(config)
    }

    fn reordering_window(&self, config: &Config) -> Duration {
        let proven = !self.episode.is_open() || self.board.sacked() >= config.dup_thresh;
        let Some(rack) = &self.rack else { return Duration::ZERO };
        if !rack.reordering_seen && proven {
            return Duration::ZERO;
        }
        let quarter = if self.rtt.min == Duration::MAX { Duration::ZERO } else { self.rtt.min / 4 };
        (quarter * rack.window_quarters).min(self.rtt.srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985, section 6.2, step 3: what is delivered below the highest number delivered was reordered, and that is not forgotten.
    #[test]
    fn reordering_is_seen_where_a_lower_number_arrives_later() {
        let mut rack = Rack::default();
        let mut deliver = |nanos, lowest, end| {
            rack.deliver(Duration::from_millis(100), (Instant::from_nanos(nanos), lowest, end));
            rack.reordering_seen
        };
        assert!(!deliver(1, 1, 5001));
        assert!(deliver(2, 1001, 3001));
        assert!(deliver(3, 5001, 6001));
    }
}
