//! Probes to receivers without probe support, and their replies: D-SACK reports (RFC 2883) with the range of a probe.
//!
//! The echoed timestamp does not identify a probe, because it belongs to the last in-sequence segment. Ranges are matched, not
//! ACKs: a receiver may merge adjacent probes into one report, but reports each repetition of a range.
//!
//! Replies also reveal support for low priority at the bottleneck: with support, almost no probe passes a queue so full that it
//! drops data.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, ProbeTag, SackRange};
use bentpipe_cc::ProbeRequest;

use crate::Stats;

/// An unanswered probe.
#[derive(Clone, Copy, Debug)]
struct OutstandingProbe {
    range: SackRange,
    tag: ProbeTag,
    at: Instant,
}

/// Unanswered probes, oldest first, and those answered by the last ACK.
#[derive(Debug, Default)]
pub(super) struct OutstandingProbes {
    probes: VecDeque<OutstandingProbe>,
    answered: Vec<ProbeTag>,
    /// Waiting probe that copies data beyond a hole; it may leave at `spaced_until`.
    held: Option<ProbeRequest>,
    spaced_until: Instant,
    /// Smoothed round trip of probes.
    rtt: Option<Duration>,
    /// Smoothed RTT of data at the last detection of a loss.
    rtt_at_loss: Duration,
    /// Number of replies to probes whose RTT was about `rtt_at_loss`.
    through_full_queue: u32,
}

/// Arrival of a report, and the state of the path then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    pub at: Instant,
    /// Age above which unanswered probes were lost, or filled a hole.
    pub patience: Duration,
    /// Minimum RTT of data so far.
    pub shortest: Duration,
}

/// Minimum interval between two copies of data beyond a hole. Receivers report only the last of faster ones (Linux delays such
/// ACKs by up to 1 ms, `tcp_comp_sack_delay_ns`).
const SPACING: Duration = Duration::from_micros(1100);

/// Queueing delays below the minimum RTT divided by this do not count as a queue (chosen).
const LEAST_QUEUE: u64 = 16;
/// Replies through full queues, and lost data segments, that [`OutstandingProbes::are_treated_as_data`] requires for a result
/// (chosen).
const ENOUGH_REPLIES: u32 = 32;
const ENOUGH_LOSSES: u64 = 3;

/// Maximum number of probes in memory (chosen: limits it to 256 KiB).
const MOST: usize = 4096;

impl OutstandingProbes {
    /// True if a probe that copies data beyond a hole may leave now; otherwise it waits until [`held_until`](Self::held_until).
    pub fn may_copy_beyond_hole(&mut self, request: ProbeRequest, now: Instant) -> bool {
        let may = now >= self.spaced_until;
        if may {
            self.spaced_until = now + SPACING;
        } else {
            self.held = Some(request);
        }
        may
    }

    /// Returns the time at which the waiting probe may leave; infinite if none waits.
    pub fn held_until(&self) -> Instant {
        if self.held.is_some() { self.spaced_until } else { Instant::FAR_FUTURE }
    }

    /// Takes the waiting probe.
    pub fn take_held(&mut self) -> Option<ProbeRequest> {
        self.held.take()
    }

    /// Returns the smoothed RTT of probes.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Records a departing probe with data.
    pub fn note_sent(&mut self, range: SackRange, tag: ProbeTag, at: Instant) {
        if self.probes.len() == MOST {
            self.probes.pop_front();
        }
        self.probes.push_back(OutstandingProbe { range, tag, at });
    }

    /// Handles a report that the peer received `range` twice. Returns true if it answers probes: exactly that range, or several
    /// that together cover it.
    pub fn report(&mut self, range: SackRange, reported: Reported) -> bool {
        while self.probes.front().is_some_and(|probe| reported.at.since(probe.at) > reported.patience) {
            self.probes.pop_front();
        }
        if let Some(at) = self.probes.iter().position(|probe| probe.range == range) {
            self.answer(at, reported);
            return true;
        }
        let mut from = range.start;
        while let Some(at) =
            self.probes.iter().position(|probe| probe.range.start == from && probe.range.end <= range.end)
        {
            from = self.probes[at].range.end;
            self.answer(at, reported);
        }
        from > range.start
    }

    fn answer(&mut self, at: usize, reported: Reported) {
        let Some(probe) = self.probes.remove(at) else { return };
        self.answered.push(probe.tag);
        let rtt = reported.at.since(probe.at);
        let (waited, full) = (rtt.saturating_sub(reported.shortest), self.full_queue(reported.shortest));
        // Probes that wait longer than data ever does met a bottleneck with low priority.
        if full.is_some_and(|full| waited >= full * 3 / 4 && waited <= full * 3 / 2) {
            self.through_full_queue += 1;
        }
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8));
    }

    /// Returns the queueing delay of data at its last loss. `None` if it is within the variation of round trips without a queue.
    fn full_queue(&self, shortest: Duration) -> Option<Duration> {
        let waited = self.rtt_at_loss.saturating_sub(shortest);
        (waited > shortest / LEAST_QUEUE).then_some(waited)
    }

    /// Handles a detected data loss after round trips of `srtt`.
    pub fn lose(&mut self, srtt: Duration) {
        self.rtt_at_loss = srtt;
    }

    /// True if probes pass queues that drop data, and are lost about as often as data: the bottleneck does not support low
    /// priority. Random errors also lose data, but at any queue length. Four times as many probe losses are allowed (chosen).
    pub fn are_treated_as_data(&self, stats: &Stats) -> bool {
        let unanswered =
            stats.probes_sent.saturating_sub(stats.probes_acked) as f64 / stats.probes_sent as f64;
        let lost = stats.retransmitted_segments as f64 / stats.sent_segments as f64;
        self.through_full_queue >= ENOUGH_REPLIES
            && stats.retransmitted_segments >= ENOUGH_LOSSES
            && unanswered <= 4.0 * lost
    }

    /// Returns the tags of the probes answered by the last report, one per call.
    pub fn next_answered(&mut self) -> Option<ProbeTag> {
        self.answered.pop()
    }

    /// Returns the heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.probes.capacity() * size_of::<OutstandingProbe>()
            + self.answered.capacity() * size_of::<ProbeTag>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(at: Instant) -> Reported {
        Reported { at, patience: Duration::from_secs(4), shortest: Duration::from_millis(500) }
    }

    fn range(start: u64, end: u64) -> SackRange {
        SackRange { start, end }
    }

    /// Returns the number of probes that a report answers.
    fn answers(outstanding_probes: &mut OutstandingProbes, range: SackRange, at: Instant) -> usize {
        let any = outstanding_probes.report(range, reported(at));
        let count = std::iter::from_fn(|| outstanding_probes.next_answered()).count();
        assert_eq!(any, count > 0);
        count
    }

    #[test]
    fn each_repetition_of_a_range_answers_one_probe() {
        let mut outstanding_probes = OutstandingProbes::default();
        (0..3).for_each(|_| outstanding_probes.note_sent(range(1, 1001), ProbeTag(1), Instant::ZERO));
        for expected in [1, 1, 1, 0] {
            assert_eq!(answers(&mut outstanding_probes, range(1, 1001), Instant::ZERO), expected);
        }
    }

    /// A duplicate of three segments causes one report of all three.
    #[test]
    fn a_merged_report_answers_all_that_it_covers() {
        let mut outstanding_probes = OutstandingProbes::default();
        for start in [2001, 1, 1001, 5001] {
            outstanding_probes.note_sent(range(start, start + 1000), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(answers(&mut outstanding_probes, range(1, 3001), Instant::ZERO), 3);
        assert_eq!(answers(&mut outstanding_probes, range(1, 3001), Instant::ZERO), 0);
        assert_eq!(
            answers(&mut outstanding_probes, range(4001, 6001), Instant::ZERO),
            0,
            "no probe begins there"
        );
        assert_eq!(answers(&mut outstanding_probes, range(5001, 6001), Instant::ZERO), 1);
    }

    #[test]
    fn other_duplicates_and_old_probes_answer_nothing() {
        let mut outstanding_probes = OutstandingProbes::default();
        outstanding_probes.note_sent(range(1, 1001), ProbeTag(1), Instant::ZERO);
        assert_eq!(answers(&mut outstanding_probes, range(1001, 2001), Instant::ZERO), 0);
        assert_eq!(
            answers(&mut outstanding_probes, range(1, 1001), Instant::ZERO + Duration::from_secs(5)),
            0
        );
    }

    #[test]
    fn the_round_trip_of_probes_is_measured_from_their_departure() {
        let mut outstanding_probes = OutstandingProbes::default();
        assert_eq!(outstanding_probes.rtt(), None);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for n in 0..2 {
            outstanding_probes.note_sent(range(1, 1001), ProbeTag(1), at(100 * n));
        }
        // The same range: the older probe is answered first.
        outstanding_probes.report(range(1, 1001), reported(at(550)));
        assert_eq!(outstanding_probes.rtt(), Some(Duration::from_millis(550)));
        outstanding_probes.report(range(1, 1001), reported(at(730)));
        assert_eq!(outstanding_probes.rtt(), Some(Duration::from_millis(560)));
    }

    #[test]
    fn copies_beyond_a_hole_keep_their_distance() {
        use bentpipe_cc::ProbeKind;
        let mut outstanding_probes = OutstandingProbes::default();
        let request = |tag| ProbeRequest { kind: ProbeKind::Newest, tag: ProbeTag(tag) };
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        assert!(outstanding_probes.may_copy_beyond_hole(request(1), at(0)));
        assert!(!outstanding_probes.may_copy_beyond_hole(request(2), at(10)));
        assert_eq!(outstanding_probes.held_until(), at(1100));
        assert_eq!(outstanding_probes.take_held(), Some(request(2)));
        assert_eq!(outstanding_probes.held_until(), Instant::FAR_FUTURE);
        assert!(outstanding_probes.may_copy_beyond_hole(request(2), at(1100)));
    }

    /// After a data loss at this round trip, 40 probes return after `probe_ms`.
    fn after_loss(at_loss_ms: u64, probe_ms: u64) -> OutstandingProbes {
        let mut outstanding_probes = OutstandingProbes::default();
        outstanding_probes.lose(Duration::from_millis(at_loss_ms));
        for nth in 0..40 {
            let at = Instant::ZERO + Duration::from_millis(nth);
            outstanding_probes.note_sent(range(nth, nth + 1), ProbeTag(1), at);
        }
        for nth in 0..40 {
            let at = Instant::ZERO + Duration::from_millis(nth + probe_ms);
            assert_eq!(answers(&mut outstanding_probes, range(nth, nth + 1), at), 1);
        }
        outstanding_probes
    }

    #[test]
    fn probes_that_pass_where_data_is_lost_have_no_low_priority() {
        let stats = |(probes_sent, probes_acked), (sent_segments, retransmitted_segments)| Stats {
            probes_sent,
            probes_acked,
            sent_segments,
            retransmitted_segments,
            ..Stats::default()
        };
        let treated_as_data = |outstanding_probes: &OutstandingProbes, probes, data| {
            outstanding_probes.are_treated_as_data(&stats(probes, data))
        };
        let full = after_loss(560, 560);
        assert!(treated_as_data(&full, (200, 190), (1000, 50)), "5 % of both");
        assert!(!treated_as_data(&full, (200, 100), (1000, 50)), "half of the probes, 5 % of data");
        assert!(!treated_as_data(&full, (200, 200), (1000, 2)), "hardly anything was lost");
        for (at_loss, probe, why) in [
            (510, 510, "random errors: data is lost though nothing waits"),
            (560, 520, "the queue was short when the probes passed"),
            (560, 800, "they waited until all data had left"),
        ] {
            assert!(!treated_as_data(&after_loss(at_loss, probe), (200, 190), (1000, 50)), "{why}");
        }
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut outstanding_probes = OutstandingProbes::default();
        for start in 0..10_000 {
            outstanding_probes.note_sent(range(start, start + 1), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(
            answers(&mut outstanding_probes, range(0, 10_000), Instant::ZERO),
            0,
            "its beginning is forgotten"
        );
        assert_eq!(answers(&mut outstanding_probes, range(9_999, 10_000), Instant::ZERO), 1);
        assert!(outstanding_probes.heap_bytes() < 1 << 18);
    }
}
