//! Replies to probes from receivers that do not know probes: the report of a duplicate (RFC 2883) with the range of a probe.
//!
//! The echoed timestamp tells nothing: it stays at that of the last segment in sequence. What counts are ranges, not ACKs: a receiver
//! may merge neighbouring probes into one report, but reports each repetition of one range.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, ProbeTag, SackRange};
use bentpipe_cc::ProbeRequest;

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    range: SackRange,
    tag: ProbeTag,
    at: Instant,
}

/// Probes on their way, oldest first, and those of the last ACK that were answered.
#[derive(Debug, Default)]
pub(super) struct Unreplied {
    asked: VecDeque<Asked>,
    answered: Vec<ProbeTag>,
    /// A copy of what lies beyond a hole that has to wait, and until when.
    held: Option<ProbeRequest>,
    spaced_until: Instant,
    /// Smoothed round trip of probes; the echoed timestamps tell nothing of it.
    rtt: Option<Duration>,
}

/// Least time between two copies of what lies beyond a hole: of those that come faster receivers report only the last (Linux holds such
/// ACKs for up to 1 ms, `tcp_comp_sack_delay_ns`).
const SPACING: Duration = Duration::from_micros(1100);

/// Probes remembered at one time.
const MOST: usize = 4096;

impl Unreplied {
    /// A probe of what lies beyond a hole may leave now; otherwise it is kept until [`held_until`](Self::held_until).
    pub fn may_copy_beyond_hole(&mut self, request: ProbeRequest, now: Instant) -> bool {
        let may = now >= self.spaced_until;
        if may {
            self.spaced_until = now + SPACING;
        } else {
            self.held = Some(request);
        }
        may
    }

    /// When the probe that waits may leave; never if none does.
    pub fn held_until(&self) -> Instant {
        if self.held.is_some() { self.spaced_until } else { Instant::FAR_FUTURE }
    }

    /// The probe that waits.
    pub fn take_held(&mut self) -> Option<ProbeRequest> {
        self.held.take()
    }

    /// Smoothed round trip of probes.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// A probe with data leaves.
    pub fn ask(&mut self, range: SackRange, tag: ProbeTag, at: Instant) {
        if self.asked.len() == MOST {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { range, tag, at });
    }

    /// The peer reports that it has `range` twice. True if that answers probes: exactly that range, or several that make it up. Probes
    /// older than `patience` were lost, or filled a hole.
    pub fn report(&mut self, range: SackRange, now: Instant, patience: Duration) -> bool {
        while self.asked.front().is_some_and(|asked| now.since(asked.at) > patience) {
            self.asked.pop_front();
        }
        if let Some(at) = self.asked.iter().position(|asked| asked.range == range) {
            self.answer(at, now);
            return true;
        }
        let mut from = range.start;
        while let Some(at) =
            self.asked.iter().position(|asked| asked.range.start == from && asked.range.end <= range.end)
        {
            from = self.asked[at].range.end;
            self.answer(at, now);
        }
        from > range.start
    }

    fn answer(&mut self, at: usize, now: Instant) {
        let Some(asked) = self.asked.remove(at) else { return };
        self.answered.push(asked.tag);
        let rtt = now.since(asked.at);
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8));
    }

    /// Tags of the probes that the last report answered, one after another.
    pub fn next_answered(&mut self) -> Option<ProbeTag> {
        self.answered.pop()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.asked.capacity() * size_of::<Asked>()
            + self.answered.capacity() * size_of::<ProbeTag>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(4);

    fn range(start: u64, end: u64) -> SackRange {
        SackRange { start, end }
    }

    /// How many probes a report answers.
    fn answers(unreplied: &mut Unreplied, range: SackRange, at: Instant) -> usize {
        let any = unreplied.report(range, at, PATIENCE);
        let count = std::iter::from_fn(|| unreplied.next_answered()).count();
        assert_eq!(any, count > 0);
        count
    }

    #[test]
    fn each_repetition_of_a_range_answers_one_probe() {
        let mut unreplied = Unreplied::default();
        (0..3).for_each(|_| unreplied.ask(range(1, 1001), ProbeTag(1), Instant::ZERO));
        for expected in [1, 1, 1, 0] {
            assert_eq!(answers(&mut unreplied, range(1, 1001), Instant::ZERO), expected);
        }
    }

    /// A duplicate of three segments gives one report of all three.
    #[test]
    fn a_merged_report_answers_all_that_it_covers() {
        let mut unreplied = Unreplied::default();
        for start in [2001, 1, 1001, 5001] {
            unreplied.ask(range(start, start + 1000), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(answers(&mut unreplied, range(1, 3001), Instant::ZERO), 3);
        assert_eq!(answers(&mut unreplied, range(1, 3001), Instant::ZERO), 0);
        assert_eq!(answers(&mut unreplied, range(4001, 6001), Instant::ZERO), 0, "no probe begins there");
        assert_eq!(answers(&mut unreplied, range(5001, 6001), Instant::ZERO), 1);
    }

    #[test]
    fn other_duplicates_and_old_probes_answer_nothing() {
        let mut unreplied = Unreplied::default();
        unreplied.ask(range(1, 1001), ProbeTag(1), Instant::ZERO);
        assert_eq!(answers(&mut unreplied, range(1001, 2001), Instant::ZERO), 0);
        assert_eq!(answers(&mut unreplied, range(1, 1001), Instant::ZERO + Duration::from_secs(5)), 0);
    }

    #[test]
    fn the_round_trip_of_probes_is_measured_from_their_departure() {
        let mut unreplied = Unreplied::default();
        assert_eq!(unreplied.rtt(), None);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for n in 0..2 {
            unreplied.ask(range(1, 1001), ProbeTag(1), at(100 * n));
        }
        // The same range: the older probe is answered first.
        unreplied.report(range(1, 1001), at(550), PATIENCE);
        assert_eq!(unreplied.rtt(), Some(Duration::from_millis(550)));
        unreplied.report(range(1, 1001), at(730), PATIENCE);
        assert_eq!(unreplied.rtt(), Some(Duration::from_millis(560)));
    }

    #[test]
    fn copies_beyond_a_hole_keep_their_distance() {
        use bentpipe_cc::ProbeKind;
        let mut unreplied = Unreplied::default();
        let request = |tag| ProbeRequest { kind: ProbeKind::Newest, tag: ProbeTag(tag) };
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        assert!(unreplied.may_copy_beyond_hole(request(1), at(0)));
        assert!(!unreplied.may_copy_beyond_hole(request(2), at(10)));
        assert_eq!(unreplied.held_until(), at(1100));
        assert_eq!(unreplied.take_held(), Some(request(2)));
        assert_eq!(unreplied.held_until(), Instant::FAR_FUTURE);
        assert!(unreplied.may_copy_beyond_hole(request(2), at(1100)));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut unreplied = Unreplied::default();
        for start in 0..10_000 {
            unreplied.ask(range(start, start + 1), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(answers(&mut unreplied, range(0, 10_000), Instant::ZERO), 0, "its beginning is forgotten");
        assert_eq!(answers(&mut unreplied, range(9_999, 10_000), Instant::ZERO), 1);
        assert!(unreplied.heap_bytes() < 1 << 18);
    }
}
