//! Processing of an arriving acknowledgement.

use bentpipe_base::{Duration, Instant, Probe, SackRange, Segment};
use bentpipe_cc::delivery_rate::Totals;
use bentpipe_cc::prr::PrrAck;
use bentpipe_cc::{Ack, EarlyRetransmit, Path, PeerProbes, Phase, ProbeReply, RateSample};
use bentpipe_trace::Event;

use super::findings::{AckField, Findings};
use super::outstanding_probes::Reported;
use super::rack::AckTiming;
use super::recovery::LossEvidence;
use super::rtt::Coverage;
use super::scoreboard::{Index, Mark, Progress};
use super::stream::Writer;
use super::{Abilities, Ecn, Limit, Sender};
use crate::context::Context;
use crate::timestamp::clock_ms;
use crate::{Config, Events, Recovery};

impl Sender {
    /// Handles the acknowledgement of a segment with the ACK flag.
    pub fn on_ack(&mut self, cx: &mut Context, segment: &Segment) -> AckField {
        if segment.ack > self.nxt || segment.ack + u64::from(self.peer.largest) < self.una {
            return AckField::Unacceptable;
        }
        if segment.ack < self.una && segment.sack.is_empty() {
            return AckField::Taken;
        }
        self.burst = 0;
        self.silence.unanswered = 0;
        let same_window = segment.window == self.peer.bytes;
        self.update_window(segment);
        let mut findings = self.take_reports(segment);
        self.take_probe_reports(cx, &mut findings);
        findings.duplicate &= same_window || segment.probe != Probe::No || !segment.sack.is_empty();
        self.measure(cx, &mut findings);
        if findings.advanced {
            self.silence.end_runs();
        }
        if let Some(rto_probe) = self.rto_probe {
            self.on_rto_probe_answer(cx, rto_probe, &findings);
        }
        self.update_control(cx, &findings);
        self.after_ack(cx, &findings);
        AckField::Taken
    }

    /// Applies SACK blocks and the cumulative ACK to the scoreboard.
    fn take_reports<'a>(&mut self, segment: &'a Segment) -> Findings<'a> {
        let mut progress = Progress::default();
        let mut dsack = false;
        let blocks = segment.sack.as_slice();
        if let Some(first) = blocks.first() {
            let inside_second =
                blocks.get(1).is_some_and(|second| second.start <= first.start && first.end <= second.end);
            dsack = first.end <= segment.ack || inside_second;
            for block in blocks {
                if block.end > segment.ack.max(self.una) && block.end <= self.nxt && block.start < block.end {
                    let start = block.start.max(segment.ack).max(self.una);
                    self.board.sack(SackRange { start, end: block.end }, &mut progress);
                }
            }
        }
        if let Some(snack) = segment.sack.snack() {
            self.take_held(snack, segment.ack, &mut progress);
        }
        let advanced = segment.ack > self.una;
        if advanced {
            self.board.advance(segment.ack, &mut progress);
            self.una = segment.ack;
        }
        debug_assert_eq!(
            self.board.front().map_or(self.nxt, |front| front.start),
            self.una,
            "records begin at una"
        );
        let repeats = !advanced && segment.seq_len() == 0 && segment.ack == self.una;
        let duplicate = repeats && !self.board.is_empty();
        let repeats = repeats && segment.sack.is_empty();
        let marks = self.ecn.take_marks(segment.flags, progress.arrived);
        Findings { segment, progress, advanced, duplicate, repeats, dsack, marks, reported: false, rtt: None }
    }

    /// Treats a D-SACK with the range of a probe as its reply, if the peer did not agree on replies. It is then neither a sign of
    /// a needless retransmission, nor is the duplicate ACK a sign of loss.
    fn take_probe_reports(&mut self, cx: &Context, findings: &mut Findings) {
        let Some(first) = findings.segment.sack.as_slice().first().filter(|_| findings.dsack) else { return };
        let patience = self.rtt.rto(&cx.config.rto) + self.rtt.srtt * 2;
        if let Some(outstanding_probes) = &mut self.outstanding_probes {
            findings.reported =
                outstanding_probes.report(*first, Reported { at: cx.now, patience, shortest: self.rtt.min });
            findings.dsack &= !findings.reported;
        }
    }

    #[inline]
    pub(super) fn update_window(&mut self, segment: &Segment) {
        if segment.ack >= self.una {
            self.peer.update(segment, self.mss);
        }
    }

    /// Takes the round-trip sample and counts delivered bytes.
    fn measure(&mut self, cx: &mut Context, findings: &mut Findings) {
        let progress = &findings.progress;
        if progress.delivered > 0 {
            self.note_delivered(cx.now, progress.delivered);
        }
        let ambiguous = progress.repeated_acked && !self.recovery.uses_sack();
        findings.rtt = match &progress.newest {
            // Karn's rule: only segments sent once yield a sample.
            Some(newest) if !newest.marks.intersects(Mark::AMBIGUOUS) && !ambiguous => {
                Some(cx.now.since(newest.sent_at))
            }
            _ => findings.segment.timestamps.filter(|_| findings.advanced && self.timestamps).and_then(
                |(_, echo)| {
                    let age = clock_ms(cx.now).wrapping_sub(echo);
                    (echo != 0 && age < 1 << 24).then(|| Duration::from_millis(u64::from(age)))
                },
            ),
        };
        if let Some(rtt) = findings.rtt.filter(|rtt| !rtt.is_zero()) {
            let flight = self.board.outstanding() + progress.acked;
            self.rtt.sample(rtt, Coverage { acked: progress.arrived, flight }, &cx.config.rto);
            self.rtt.reset_back_off();
            cx.trace(Event::Rtt { sample_ns: rtt.as_nanos(), srtt_ns: self.rtt.srtt.as_nanos() });
        }
    }

    /// Finds losses, follows the recovery episode and calls the algorithm.
    fn update_control(&mut self, cx: &mut Context, findings: &Findings) {
        let segment = findings.segment;
        let reply = matches!(segment.probe, Probe::Reply(_)) || findings.reported;
        let news = findings.advanced || findings.progress.sacked > 0;
        let counts = findings.duplicate && !reply;
        let lost_before = self.board.total_lost;
        let phase_before = self.phase();
        // Nothing is retransmitted before the RTO probe is answered.
        let begins = self.rto_probe.is_none() && self.find_losses(cx, findings, counts);
        let newly_lost = self.board.total_lost.wrapping_sub(lost_before);
        let marked = findings.marks > 0;
        if begins && self.episode.is_open() {
            self.enter_recovery(
                cx,
                LossEvidence { lost: newly_lost, arrived: findings.progress.arrived, marked },
            );
        } else if marked {
            self.congestion_echo(cx, findings.progress.acked);
        }
        let began = phase_before == bentpipe_cc::Phase::Open && !self.episode.is_open();
        let phase = self.phase();
        if !began {
            self.check_reduction(cx, findings);
        }
        let safe = findings.advanced && newly_lost == 0;
        self.allow_proportionally(PrrAck { delivered: findings.progress.arrived.into(), safe, segment: 1 });
        let ends_episode = self.follow_episode(cx, &findings.progress, findings.advanced && !began);
        if findings.advanced {
            self.duplicates = 0;
            self.forget_limited();
        }
        let path = self.path(cx.now);
        self.hear_fields(segment, &path);
        let newest = findings.progress.newest.as_ref();
        let rate = newest.and_then(|newest| self.sample_rate(findings.progress.newest_index, newest.sent_at));
        self.forget_stamps();
        // An algorithm that withholds all data may have requested an ACK without new information.
        let answered = self.algorithm.withheld && findings.repeats && !reply;
        if news || counts || answered {
            let ack = Ack {
                acked: findings.progress.acked,
                counted: self.count_for_growth(cx.config, findings),
                sacked: findings.progress.sacked,
                delivered_bytes: findings.progress.delivered,
                lost: newly_lost,
                rtt: findings.rtt,
                peer_clock: self.peer_clock(segment),
                rate,
                phase,
                ends_episode,
                window_limited: self.limit == Limit::Window,
                ecn_echo: marked,
                marks: if self.ecn.is_accurate() { findings.marks } else { 0 },
                dsack: findings.dsack,
            };
            self.algorithm.cc.on_ack(&ack, &path);
        }
        if ends_episode && self.recovery.uses_sack() && self.board.lost() > 0 && self.episode.is_open() {
            // Segments sent during the episode were also lost: another episode begins.
            self.enter_recovery(cx, LossEvidence { marked, ..LossEvidence::default() });
        }
        self.take_replies(cx, findings, phase);
        if self.algorithm.has(Abilities::DETECTS) {
            let path = self.path(cx.now);
            self.ask_detector(&path);
        }
    }

    /// Returns the segments by which an ACK counts for growth. Segments SACKed earlier were counted then (as in Linux).
    fn count_for_growth(&self, config: &Config, findings: &Findings) -> u32 {
        let unmarked = match findings.marks {
            0 => findings.progress.arrived,
            marks if self.reacts_to_each_mark() => findings.progress.arrived.saturating_sub(marks),
            // An echoed mark allows no growth (RFC 3168 section 6.1.2).
            _ if self.ecn != Ecn::Off => 0,
            _ => findings.progress.arrived,
        };
        if findings.advanced { config.ack_counting.count(unmarked) } else { 0 }
    }

    /// Passes the fields of a segment to the algorithm, if that was agreed on.
    #[inline]
    fn hear_fields(&mut self, segment: &Segment, path: &Path) {
        if self.algorithm.exchanges_fields
            && let Some(feedback) = self.algorithm.cc.feedback()
        {
            feedback.on_feedback(&segment.extension, path);
        }
    }

    /// Reports the probes answered by a segment to the algorithm.
    #[inline]
    fn take_replies(&mut self, cx: &mut Context, findings: &Findings, phase: Phase) {
        let acked = findings.progress.acked;
        if let Probe::Reply(tag) = findings.segment.probe {
            let path = self.path(cx.now);
            self.probe_answered(cx, &ProbeReply { tag, acked, phase }, &path);
        }
        if findings.reported {
            self.take_probe_answers(cx, acked, phase);
        }
    }

    /// Returns the timestamp of a segment: its send time by the peer's clock.
    #[inline]
    pub(super) fn peer_clock(&self, segment: &Segment) -> Option<u32> {
        segment.timestamps.filter(|_| self.timestamps).map(|(value, _)| value)
    }

    /// Handles a report of duplicates that answers probes.
    #[cold]
    fn take_probe_answers(&mut self, cx: &mut Context, acked: u32, phase: Phase) {
        let path = self.path(cx.now);
        while let Some(tag) =
            self.outstanding_probes.as_mut().and_then(|outstanding_probes| outstanding_probes.next_answered())
        {
            self.probe_answered(cx, &ProbeReply { tag, acked, phase }, &path);
        }
        if self
            .outstanding_probes
            .as_ref()
            .is_some_and(|probes| probes.are_treated_as_data(&cx.stats.stats()))
        {
            self.peer_probes = PeerProbes::Ordinary;
        }
    }

    /// Undoes a reduction that this ACK proves spurious (RFC 4015).
    fn check_reduction(&mut self, cx: &mut Context, findings: &Findings) {
        let segment = findings.segment;
        let duplicate = segment.sack.as_slice().first().copied().filter(|_| findings.dsack);
        let marked = findings.marks > 0;
        if self.rto_probe.is_none() && self.proves_spurious(segment, duplicate, marked) {
            self.undo_reduction(cx);
        } else {
            self.check_timeout(cx, &findings.progress, segment);
        }
    }

    /// Counts newly delivered bytes.
    #[inline]
    pub(super) fn note_delivered(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        if let Some(rate) = &mut self.rate {
            rate.deliver(now, self.delivered);
        }
    }

    /// Returns the delivery rate sample of an ACK, if the algorithm uses it.
    #[inline]
    pub(super) fn sample_rate(&mut self, newest: Index, sent_at: Instant) -> Option<RateSample> {
        let totals = Totals { delivered: self.delivered, lost: self.board.total_lost };
        self.rate.as_mut()?.sample((newest, sent_at), self.rtt.min, totals)
    }

    /// Drops the delivery-rate stamps of acknowledged segments.
    #[inline]
    pub(super) fn forget_stamps(&mut self) {
        if let Some(rate) = &mut self.rate {
            rate.forget_below(self.board.front_index());
        }
    }

    #[cold]
    fn probe_answered(&mut self, cx: &mut Context, reply: &ProbeReply, path: &Path) {
        cx.stats.rare().probes_acked += 1;
        if let Some(prober) = self.algorithm.cc.prober() {
            prober.on_probe_acked(reply, path);
        }
    }

    /// Marks segments as lost by the recovery in use. Returns true if an episode begins.
    fn find_losses(&mut self, cx: &mut Context, findings: &Findings, counts: bool) -> bool {
        let segment = findings.segment;
        match self.recovery {
            Recovery::Snack => {
                segment.sack.snack().is_some_and(|snack| self.take_missing(cx.now, snack, segment.ack) > 0)
            }
            Recovery::Reno | Recovery::NewReno => counts && self.count_duplicate(cx),
            Recovery::Sack => {
                findings.progress.sacked > 0 && self.board.mark_lost_by_count(cx.config.dup_thresh) > 0
            }
            Recovery::Rack => {
                if findings.progress.newest.is_none() && !findings.dsack {
                    return false;
                }
                let echo = segment.timestamps.filter(|_| self.timestamps).map(|(_, echo)| echo);
                let seen = AckTiming { now: cx.now, min_rtt: self.rtt.min, echo };
                let (newly_lost, again) =
                    self.rack_on_ack(&findings.progress, seen, findings.dsack, cx.config);
                cx.timers.reorder = again.unwrap_or(Instant::FAR_FUTURE);
                newly_lost > 0
            }
        }
    }

    /// Marks segments as lost by the algorithm's own loss detection.
    pub(super) fn ask_detector(&mut self, path: &Path) {
        let (Some(front), Some(detector)) = (self.board.front(), self.algorithm.cc.detector()) else {
            return;
        };
        match detector.early_retransmit(front.sent_at, path) {
            EarlyRetransmit::None => {}
            EarlyRetransmit::Oldest => {
                self.board.mark_lost(self.board.front_index());
                self.extra.forced = 1;
            }
            EarlyRetransmit::Everything => self.board.mark_all_lost(),
        }
    }

    /// Sets timers and events after the algorithm's call.
    fn after_ack(&mut self, cx: &mut Context, findings: &Findings) {
        self.settle_tail_probe(cx, findings);
        if findings.advanced {
            self.after_progress(cx);
        } else if self.board.is_empty() {
            self.stop_timers(cx);
        } else if cx.config.rto.restart_on_sacks && self.arrived_before_oldest(findings) {
            self.arm_retransmission(cx);
        }
    }

    /// True if the newly SACKed data was sent before the last transmission of the oldest segment.
    fn arrived_before_oldest(&self, findings: &Findings) -> bool {
        let oldest = self.board.front();
        oldest
            .zip(findings.progress.newest_original)
            .is_some_and(|(oldest, (sent_at, _))| sent_at < oldest.sent_at)
    }

    /// Stops the retransmission timers, because nothing is outstanding.
    pub(super) fn stop_timers(&mut self, cx: &mut Context) {
        cx.timers.retransmit = Instant::FAR_FUTURE;
        cx.timers.reorder = Instant::FAR_FUTURE;
        self.silence.since = Instant::FAR_FUTURE;
    }

    /// Sets timers and events after new data were acknowledged.
    #[inline(always)]
    pub(super) fn after_progress(&mut self, cx: &mut Context) {
        if self.board.is_empty() {
            self.stop_timers(cx);
        } else {
            self.silence.since = cx.now;
            self.arm_retransmission(cx);
        }
        self.validate_window(cx.now, cx.config);
        if self.una == self.nxt && self.una >= self.stream.end {
            *cx.events |= Events::ALL_ACKED;
            self.board.release();
        }
        if self.stream.writer != Writer::Satisfied && self.stream.buffered(self.una) < cx.config.send_buffer {
            if self.stream.writer == Writer::Endless {
                let room = self.room(cx.config);
                self.stream.write(u64::MAX, room);
            } else {
                self.stream.writer = Writer::Satisfied;
                *cx.events |= Events::WRITABLE;
            }
        }
    }
}
