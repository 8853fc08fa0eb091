//! Best-effort receivers, which skip data that is missing for too long (CCSDS 714.0).

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, SackRange};

use super::Receiver;
use super::gaps::Gaps;

impl Receiver {
    /// Enables best effort: data missing for too long may be skipped.
    pub fn accept_gaps(&mut self) {
        let waits_at = u64::MAX;
        let gaps = Gaps { waits_at, since: Instant::FAR_FUTURE, unannounced: VecDeque::new(), unread: 0 };
        self.gaps = Some(Box::new(gaps));
    }

    /// Records the start time of the present hole.
    #[inline]
    pub fn watch_hole(&mut self, now: Instant) {
        let Some(gaps) = &mut self.gaps else { return };
        if self.queue.as_ref().is_none_or(|queue| queue.ranges.is_empty()) {
            gaps.waits_at = u64::MAX;
        } else if gaps.waits_at != self.nxt {
            (gaps.waits_at, gaps.since) = (self.nxt, now);
        }
    }

    /// Skips a hole that has been open for `patience`. Returns its bytes; zero if there is none.
    pub fn skip_hole(&mut self, now: Instant, patience: Duration) -> u64 {
        let (Some(gaps), Some(front)) =
            (&mut self.gaps, self.queue.as_ref().and_then(|queue| queue.ranges.front()))
        else {
            return 0;
        };
        if gaps.waits_at != self.nxt || now < gaps.since + patience {
            return 0;
        }
        let missing = SackRange { start: self.nxt, end: front.start };
        let bytes = missing.end - missing.start;
        gaps.unannounced.push_back(missing);
        gaps.unread += bytes;
        self.nxt = missing.end;
        self.absorb();
        self.watch_hole(now);
        bytes
    }

    /// Returns the next hole not yet reported to the application.
    pub fn next_gap(&mut self) -> Option<SackRange> {
        self.gaps.as_mut()?.unannounced.pop_front()
    }

    /// Returns the number of `bytes` just read that had arrived; the others were skipped.
    pub fn present(&mut self, bytes: u64) -> u64 {
        let Some(gaps) = &mut self.gaps else { return bytes };
        let absent = gaps.unread.min(bytes);
        gaps.unread -= absent;
        bytes - absent
    }
}
