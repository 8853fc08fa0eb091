//! Pacing of segments for any transport: a token bucket whose unit is time.

use bentpipe_base::{Duration, Instant, Rate};

/// Maximum lead over the rate after a pause. It allows coarse timers without large bursts.
const BURST: Duration = Duration::from_millis(1);

/// Maximum lateness of a wake-up that is made up for. It covers scheduling delays of a busy machine; a larger value would cause
/// bursts that overflow queues. Simulated timers are never late.
const LATENESS: Duration = Duration::from_millis(10);

/// Send time of the next segment. A transport asks [`ready_at`](Self::ready_at) before each segment. When the segment leaves, it
/// calls [`begin`](Self::begin) and [`sent`](Self::sent).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Time at which a line of this rate becomes idle.
    next: Instant,
    /// Segments that may still leave at once after the last one.
    credit: u32,
    /// Send time of the second segment of a pair whose first has left.
    second_at: Option<Instant>,
    /// Due time of a late wake-up. The time since then does not count as a pause.
    late_since: Option<Instant>,
}

impl Pacer {
    /// Returns the time at which a waiting segment may leave, not before `now`.
    #[inline]
    pub fn ready_at(&self, now: Instant) -> Instant {
        let ready = if self.credit > 0 { now } else { self.next };
        self.second_at.map_or(ready, |at| at.min(ready)).max(now)
    }

    /// Handles a wake-up at `now` for a segment that was due at `due`.
    pub fn wake(&mut self, now: Instant, due: Instant) {
        self.late_since = (due < now).then_some(due);
    }

    /// Records that no segment waits for the pacer any more.
    #[inline]
    pub fn rest(&mut self) {
        self.late_since = None;
    }

    /// Starts a segment. If `ready_at` delayed it, a new quantum of `quantum` segments begins.
    #[inline]
    pub fn begin(&mut self, quantum: u32) {
        self.credit = self.credit.checked_sub(1).unwrap_or_else(|| quantum.saturating_sub(1));
        self.end_pair();
    }

    /// Starts a segment at `now`: the second of a pair, or the first, which the second follows after `gap`.
    #[inline]
    pub fn begin_in_pair(&mut self, now: Instant, gap: Duration) {
        self.credit = 0;
        self.second_at = if self.second_at.is_some() { None } else { Some(now + gap) };
    }

    /// Handles an unpaced segment: it is the second of a pair that has begun.
    #[inline]
    pub fn end_pair(&mut self) {
        self.second_at = None;
    }

    /// True if the first segment of a pair has left without the second.
    #[inline]
    pub fn is_amid_pair(&self) -> bool {
        self.second_at.is_some()
    }

    /// Drops the delay caused by the last segments, whose rate was a mistake.
    pub fn forgive(&mut self, now: Instant) {
        self.next = self.next.min(now);
    }

    /// Records that `bytes` left at `now` at `rate`.
    #[inline]
    pub fn sent(&mut self, now: Instant, bytes: u32, rate: Rate) {
        let mut earliest = now - BURST.min(rate.time_for(2 * u64::from(bytes)));
        if let Some(due) = self.late_since {
            earliest = earliest.min(due.max(now - LATENESS));
        }
        self.next = self.next.max(earliest) + rate.time_for(u64::from(bytes));
    }
}

/// Usual factors of [`window_rate`] below and above ssthresh: those of Linux (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
pub const PACING_GAINS: (f64, f64) = (2.0, 1.2);

/// Returns the rate of `bytes` per smoothed RTT; `None` before the first sample.
#[inline]
pub fn window_rate(bytes: f64, srtt: Duration) -> Option<Rate> {
    let seconds = srtt.max(Duration::from_micros(1)).as_secs_f64();
    (!srtt.is_zero()).then(|| Rate::from_bytes_per_s(bytes / seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the gaps before each of eight segments of 1000 bytes, in milliseconds.
    fn gaps(rate: Rate, begin: impl Fn(&mut Pacer, Instant)) -> Vec<u64> {
        let mut pacer = Pacer::default();
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let next = |_| {
            let ready = pacer.ready_at(now);
            let gap = ready.since(now).as_nanos() / 1_000_000;
            now = ready;
            begin(&mut pacer, now);
            pacer.sent(now, 1000, rate);
            gap
        };
        (0..8).map(next).collect()
    }

    #[test]
    fn a_quantum_leaves_back_to_back_and_the_rate_is_kept() {
        let gaps = gaps(Rate::from_mbps(8), |pacer, _| pacer.begin(2));
        assert_eq!(gaps[4..], [2, 0, 2, 0], "pairs of 1 ms per segment: {gaps:?}");
    }

    #[test]
    fn the_second_of_a_pair_follows_after_the_gap_and_the_rate_is_kept() {
        let gap = Duration::from_millis(20);
        let gaps = gaps(Rate::from_bps(80_000), |pacer, now| pacer.begin_in_pair(now, gap));
        assert_eq!(gaps[4..], [180, 20, 180, 20], "pairs of 100 ms per segment: {gaps:?}");
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

    /// A real-time driver wakes the sender late; the sender still reaches its rate.
    #[test]
    fn late_wake_ups_are_made_up_for_and_pauses_are_not() {
        let mut pacer = Pacer::default();
        let rate = Rate::from_mbps(8);
        let start = Instant::ZERO + Duration::from_secs(1);
        let (mut now, mut sent) = (start, 0);
        let mut send_all = |pacer: &mut Pacer, now: Instant| {
            let before = sent;
            while pacer.ready_at(now) == now {
                pacer.sent(now, 1000, rate);
                sent += 1;
            }
            pacer.rest();
            sent - before
        };
        for _ in 0..100 {
            send_all(&mut pacer, now);
            let due = pacer.ready_at(now);
            now = due + Duration::from_millis(4);
            pacer.wake(now, due);
        }
        let millis = now.since(start).as_nanos() / 1_000_000;
        assert!(millis >= 490, "{millis}");
        pacer.rest();
        let burst = send_all(&mut pacer, now);
        assert!((1..=3).contains(&burst), "after a pause {burst} segments leave at once");
        now += Duration::from_secs(1);
        let due = pacer.ready_at(start);
        pacer.wake(now, due);
        let burst = send_all(&mut pacer, now);
        assert!((10..=11).contains(&burst), "after a second without a processor {burst}");
        assert!((490..=510).contains(&(sent as u64)), "{sent} in {millis} ms");
    }
}
