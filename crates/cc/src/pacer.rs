//! Spacing of segments at a rate, for any transport: a token bucket in time.

use bentpipe_base::{Duration, Instant, Rate};

/// How far a sender may run ahead of its rate after a pause: keeps timers coarse without making bursts.
const BURST: Duration = Duration::from_millis(1);

/// How much of a wake-up's lateness is made up for: what a busy machine makes a process wait for its turn. More would be a burst that
/// overflows queues. Simulated wake-ups are never late.
const LATENESS: Duration = Duration::from_millis(10);

/// When the next segment may leave. Before each segment a transport asks [`ready_at`](Self::ready_at); when it leaves, it calls
/// [`begin`](Self::begin) and [`sent`](Self::sent).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Time at which the line of this rate falls idle.
    next: Instant,
    /// Segments that may follow the last one at once.
    credit: u32,
    /// When the second segment of a pair may leave whose first has left.
    second_at: Option<Instant>,
    /// When the sender should have been woken up for the segment that waits, if that was too late: time that has passed since is no pause.
    late_since: Option<Instant>,
}

impl Pacer {
    /// Time at which the segment that is there may leave, at the earliest `now`.
    #[inline]
    pub fn ready_at(&self, now: Instant) -> Instant {
        let ready = if self.credit > 0 { now } else { self.next };
        self.second_at.map_or(ready, |at| at.min(ready)).max(now)
    }

    /// The sender wakes up at `now`, for a segment that was to leave at `due`.
    pub fn wake(&mut self, now: Instant, due: Instant) {
        self.late_since = (due < now).then_some(due);
    }

    /// All that this line held back has left, or something else holds it back.
    #[inline]
    pub fn rest(&mut self) {
        self.late_since = None;
    }

    /// A segment is about to leave: when `ready_at` made it wait, it begins a new quantum of so many segments.
    #[inline]
    pub fn begin(&mut self, quantum: u32) {
        self.credit = self.credit.checked_sub(1).unwrap_or_else(|| quantum.saturating_sub(1));
        self.end_pair();
    }

    /// A segment is about to leave at `now`: the second of a pair, or the first, which the second follows after `gap`.
    #[inline]
    pub fn begin_in_pair(&mut self, now: Instant, gap: Duration) {
        self.credit = 0;
        self.second_at = if self.second_at.is_some() { None } else { Some(now + gap) };
    }

    /// A segment leaves that is not spaced: it is the second of a pair, if one had begun.
    #[inline]
    pub fn end_pair(&mut self) {
        self.second_at = None;
    }

    /// Whether the first segment of a pair has left without the second.
    #[inline]
    pub fn is_amid_pair(&self) -> bool {
        self.second_at.is_some()
    }

    /// The rate of what left was a mistake: the next segment need not wait for it.
    pub fn forgive(&mut self, now: Instant) {
        self.next = self.next.min(now);
    }

    /// `bytes` left at `now` at a rate.
    #[inline]
    pub fn sent(&mut self, now: Instant, bytes: u32, rate: Rate) {
        let mut earliest = now - BURST.min(rate.time_for(2 * u64::from(bytes)));
        if let Some(due) = self.late_since {
            earliest = earliest.min(due.max(now - LATENESS));
        }
        self.next = self.next.max(earliest) + rate.time_for(u64::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps before each of eight segments of 1000 bytes, in milliseconds.
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

    /// A driver in real time wakes the sender up late; it still sends at its rate.
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
