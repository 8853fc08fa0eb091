//! Best-effort receivers, which skip data that have been missing for too long (CCSDS 714.0).

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, SackRange};

use super::Receiver;
use super::gaps::Gaps;

impl Receiver {
    /// Best effort was agreed on: data that are missing for long may be skipped.
    pub fn accept_gaps(&mut self) {
        let waits_at = u64::MAX;
        let gaps = Gaps { waits_at, since: Instant::FAR_FUTURE, unannounced: VecDeque::new(), unread: 0 };
        self.gaps = Some(Box::new(gaps));
    }

    /// Notes since when the present hole is open.
    #[inline]
    pub fn watch_hole(&mut self, now: Instant) {
        let Some(gaps) = &mut self.gaps else { return };
        if self.queue.as_ref().is_none_or(|queue| queue.ranges.is_empty()) {
            gaps.waits_at = u64::MAX;
        } else if gaps.waits_at != self.nxt {
            (gaps.waits_at, gaps.since) = (self.nxt, now);
        }
    }

    /// Skips a hole that has been open for `patience`; returns its bytes, zero if there is none.
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

    /// The next hole that the application has not been told of.
    pub fn next_gap(&mut self) -> Option<SackRange> {
        self.gaps.as_mut()?.unannounced.pop_front()
    }

    /// How many of the `bytes` just read had arrived; the others were skipped.
    pub fn present(&mut self, bytes: u64) -> u64 {
        let Some(gaps) = &mut self.gaps else { return bytes };
        let absent = gaps.unread.min(bytes);
        gaps.unread -= absent;
        bytes - absent
    }
}
