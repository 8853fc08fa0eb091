//! Spacing of segments: a token bucket in time.

use bentpipe_base::{Duration, Instant, Rate};

/// How far a sender may run ahead of its rate after a pause: keeps timers coarse without making bursts.
const BURST: Duration = Duration::from_millis(1);

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Time at which the line of this rate falls idle.
    next: Instant,
    /// Segments that may follow the last one at once.
    credit: u32,
}

impl Pacer {
    /// Time at which a segment may leave, at the earliest `now`.
    pub fn ready_at(&self, now: Instant) -> Instant {
        if self.credit > 0 { now } else { self.next.max(now) }
    }

    /// A segment is about to leave: when `ready_at` made it wait, it begins a new quantum of so many segments.
    pub fn begin(&mut self, quantum: u32) {
        self.credit = self.credit.checked_sub(1).unwrap_or_else(|| quantum.saturating_sub(1));
    }

    /// `bytes` left at `now` at a rate.
    pub fn sent(&mut self, now: Instant, bytes: u32, rate: Rate) {
        let earliest = now - BURST.min(rate.time_for(2 * u64::from(bytes)));
        self.next = self.next.max(earliest) + rate.time_for(u64::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_leaves_back_to_back_and_the_rate_is_kept() {
        let mut pacer = Pacer::default();
        let rate = Rate::from_mbps(8);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let mut gaps = Vec::new();
        for _ in 0..8 {
            let ready = pacer.ready_at(now);
            gaps.push(ready.since(now).as_nanos() / 1_000_000);
            now = ready;
            pacer.begin(2);
            pacer.sent(now, 1000, rate);
        }
        assert_eq!(gaps[4..], [2, 0, 2, 0], "pairs of 1 ms per segment: {gaps:?}");
    }

    #[test]
    fn segments_leave_at_the_rate() {
        let mut pacer = Pacer::default();
        let rate = Rate::from_mbps(8);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let start = now;
        for _ in 0..1000 {
            now = pacer.ready_at(now);
            pacer.sent(now, 1000, rate);
        }
        let took = now.since(start).as_secs_f64();
        assert!((0.996..=1.0).contains(&took), "{took}");
    }
}
