//! Recovery episodes: start, transmissions, end, and detection of spurious ones.

use bentpipe_base::{Duration, Flags, Instant, Segment, precedes};
use bentpipe_cc::prr::{Prr, PrrAck};
use bentpipe_cc::{Accounting, Cause, Loss, Undo};
use bentpipe_trace::Event;

use super::episode::{Episode, TimeoutCheck};
use super::reductions::Reductions;
use super::scoreboard::{Mark, Progress};
use super::{Abilities, Ecn, Sender};
use crate::context::Context;
use crate::timestamp::clock_ms;
use crate::{Config, Recovery, Restore, SpuriousTimeout};

/// Counts of the ACK or timer that detected a loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEvidence {
    /// Segments newly marked lost.
    pub lost: u32,
    /// Segments newly delivered.
    pub arrived: u32,
    /// True if the ACK echoed a congestion mark.
    pub marked: bool,
}

/// Duplicate ACKs that classical fast recovery adds to the window at its start (RFC 5681 section 3.2 step 3).
const INITIAL_INFLATION: f64 = 3.0;

impl Sender {
    /// Retransmits segments of more than `len` bytes, which exceeded the path MTU.
    pub fn repeat_larger(&mut self, len: u32) {
        if self.board.mark_larger_lost(len) {
            self.extra.forced = 1;
        }
    }

    /// Counts duplicates without SACK. Returns true if an episode begins.
    pub(super) fn count_duplicate(&mut self, cx: &Context) -> bool {
        if self.algorithm.has(Abilities::PROBES)
            && self.algorithm.cc.prober().is_some_and(|prober| prober.distrusts_duplicates())
        {
            return false;
        }
        self.duplicates += 1;
        match self.episode {
            Episode::Open => {
                let recover_point = self.reductions.as_ref().map_or(0, |reductions| reductions.recover_point);
                self.duplicates == cx.config.dup_thresh && self.una > recover_point
            }
            Episode::Recovery { .. } => {
                self.inflate(1.0);
                false
            }
            Episode::Loss { .. } => false,
        }
    }

    /// Inflates the window classically, unless the algorithm inflates its own.
    fn inflate(&mut self, segments: f64) {
        if self.algorithm.accounting != Accounting::Outstanding {
            self.inflation += segments;
        }
    }

    /// Returns the state of past reductions.
    pub(super) fn reductions(&mut self) -> &mut Reductions {
        self.reductions.get_or_insert_default()
    }

    /// Handles the acknowledgement of new data: of the segments sent by limited transmit, only those still beyond the window
    /// count.
    pub(super) fn forget_limited(&mut self) {
        let beyond = self.board.outstanding().saturating_sub(self.window());
        let reported = self.board.sacked() > 0;
        if let Some(reductions) = &mut self.reductions {
            reductions.limited = if reported { reductions.limited.min(beyond) } else { 0 };
        }
    }

    /// Enters fast recovery: a loss is proven, the window is reduced once, and the first lost segment leaves at once.
    #[cold]
    pub(super) fn enter_recovery(&mut self, cx: &mut Context, found: LossEvidence) {
        let sack = self.recovery.uses_sack();
        if !sack {
            self.board.mark_lost(self.board.front_index());
        }
        let path = self.path(cx.now);
        if let Some(outstanding_probes) = &mut self.outstanding_probes {
            outstanding_probes.lose(self.rtt.srtt);
        }
        let flight_at_loss = self.board.in_flight() + found.lost.max(1);
        let flight = self.board.outstanding() - self.board.sacked() + found.arrived;
        let reductions = *self.reductions();
        let loss = Loss {
            cause: Cause::Loss,
            lost: self.board.lost(),
            // Segments sent by limited transmit do not count (RFC 5681 section 3.2 step 2).
            outstanding: self.board.outstanding().saturating_sub(reductions.limited),
            in_flight: flight_at_loss,
            validated: self.validated(cx.config),
        };
        // One reduction per window of data, by a mark or by a loss (RFC 3168 section 6.1.2).
        let reduced = self.una < reductions.marked_until && self.algorithm.accounting == Accounting::Pipe;
        if !reduced {
            self.algorithm.cc.on_loss(&loss, &path);
        }
        self.ecn.reduce();
        self.episode = Episode::Recovery { recover: self.nxt, early_from: self.board.front_index() };
        let nxt = self.nxt;
        let reductions = self.reductions();
        reductions.lose(nxt);
        reductions.limited = 0;
        reductions.prr = Prr::begin(flight.into(), 0);
        let marked = found.marked || reduced;
        self.watch_reduction(cx.config.undo && !marked);
        self.extra.forced = 1;
        if !sack {
            self.inflate(INITIAL_INFLATION);
        }
        self.forget_tail_probe();
        self.arm_retransmission(cx);
        cx.stats.rare().recoveries += 1;
        cx.trace(Event::RecoveryEntered);
    }

    /// True if PRR is in use. It is not if the algorithm sets its window in recovery itself, nor without SACK, where RFC 6582
    /// inflates and deflates the window.
    pub(super) fn reduces_proportionally(&self, config: &Config) -> bool {
        config.prr && self.algorithm.accounting == Accounting::Pipe && self.recovery.uses_sack()
    }

    /// Allows segments in proportion to the data that an ACK in fast recovery delivered.
    pub(super) fn allow_proportionally(&mut self, ack: PrrAck) {
        if matches!(self.episode, Episode::Recovery { .. }) {
            let (in_flight, ssthresh) = (self.board.in_flight().into(), self.algorithm.window() as u64);
            self.reductions().prr.on_ack(ack, in_flight, ssthresh);
        }
    }

    /// Updates the recovery episode for an ACK. Returns true if it ended the episode.
    pub(super) fn follow_episode(&mut self, cx: &mut Context, progress: &Progress, advanced: bool) -> bool {
        match &mut self.episode {
            Episode::Open => false,
            Episode::Recovery { recover, .. } => {
                let over = self.una >= *recover || (advanced && self.recovery == Recovery::Reno);
                if over {
                    self.leave_episode(cx);
                } else if advanced {
                    self.partial_ack(progress.acked);
                }
                over
            }
            Episode::Loss { recover, .. } => {
                let over = self.una >= *recover;
                if over {
                    self.leave_episode(cx);
                }
                over
            }
        }
    }

    #[cold]
    pub(super) fn leave_episode(&mut self, cx: &mut Context) {
        self.episode = Episode::Open;
        let nxt = self.nxt;
        if let Some(undo) = self.reductions.as_mut().and_then(|reductions| reductions.undo.as_mut()) {
            // D-SACKs about this episode may arrive until everything sent so far is acknowledged.
            undo.until = nxt;
        }
        self.inflation = 0.0;
        self.duplicates = 0;
        self.extra.end_episode();
        if let Some(rack) = &mut self.rack {
            rack.recovered();
        }
        cx.trace(Event::RecoveryLeft);
    }

    /// Handles a partial ACK, which shows that the front segment is lost. It is retransmitted at once without SACK, and also if
    /// the window counts everything outstanding.
    fn partial_ack(&mut self, acked: u32) {
        if !self.recovery.uses_sack() {
            // RFC 6582 section 3.2 step 3: deflates by the acknowledged segments, then adds one.
            self.inflation = (self.inflation - f64::from(acked)).max(0.0);
            self.inflate(1.0);
        } else if self.algorithm.accounting != Accounting::Outstanding {
            return;
        }
        if self.board.front().is_some_and(|front| !front.marks.intersects(Mark::SACKED | Mark::RETRANSMITTED))
        {
            self.board.mark_lost(self.board.front_index());
            self.extra.forced = 1;
        }
    }

    /// Checks if the last timeout was spurious.
    pub(super) fn check_timeout(&mut self, cx: &mut Context, progress: &Progress, segment: &Segment) {
        let Episode::Loss { recover, check } = self.episode else { return };
        let echo = segment.timestamps.map(|(_, echo)| echo);
        // The path is congested, whatever the cause of the timeout (RFC 4015 step 5).
        let marked = segment.flags.contains(Flags::ECE);
        let advanced = progress.acked > 0 || progress.delivered > 0 && progress.sacked == 0;
        let next = match check {
            TimeoutCheck::None => return,
            // F-RTO needs new data to decide (RFC 5682 section 2.1 step 2b).
            TimeoutCheck::AwaitFirst if advanced && self.una < recover && self.next_new(cx).is_ok() => {
                self.extra.prefer_new = 2;
                TimeoutCheck::AwaitSecond
            }
            TimeoutCheck::AwaitSecond
                if progress.original_delivered && progress.lowest_original < recover =>
            {
                return self.undo_reduction(cx);
            }
            TimeoutCheck::AwaitEcho(sent)
                if advanced && !marked && echo.is_some_and(|echo| precedes(echo, sent)) =>
            {
                return self.undo_reduction(cx);
            }
            TimeoutCheck::AwaitTiming(sent)
                if progress.acked > 0 && !marked && self.too_soon(cx.now.since(sent), cx.config) =>
            {
                return self.respond_as_enhanced(cx);
            }
            TimeoutCheck::AwaitEcho(_) if !advanced => return,
            TimeoutCheck::AwaitTiming(_) if progress.acked == 0 => return,
            _ => {
                // New data sent by F-RTO must not delay the repair.
                self.extra.forced = u32::from(check == TimeoutCheck::AwaitSecond);
                self.extra.prefer_new = 0;
                TimeoutCheck::None
            }
        };
        self.episode = Episode::Loss { recover, check: next };
    }

    /// True if an ACK that arrives `age` after the retransmission is too early to be its answer.
    fn too_soon(&self, age: Duration, config: &Config) -> bool {
        let SpuriousTimeout::Enhanced { fraction, .. } = config.spurious_timeout else { return false };
        self.rtt.min != Duration::MAX && age.as_secs_f64() < fraction * self.rtt.min.as_secs_f64()
    }

    /// Responds to a spurious timeout as Enhanced TCP.
    #[cold]
    fn respond_as_enhanced(&mut self, cx: &mut Context) {
        if matches!(cx.config.spurious_timeout, SpuriousTimeout::Enhanced { restore: Restore::Both, .. }) {
            return self.undo_reduction(cx);
        }
        if let Episode::Loss { check, .. } = &mut self.episode {
            *check = TimeoutCheck::None;
        }
        self.rtt.widen(self.told_srtt, &cx.config.rto);
        let path = self.path(cx.now);
        self.algorithm.cc.on_undo(Undo::Threshold, &path);
        cx.stats.rare().undone += 1;
        cx.trace(Event::Undone);
    }

    /// Returns the check for a timeout at `now`.
    pub(super) fn first_timeout_check(&self, cx: &Context) -> TimeoutCheck {
        // A timeout during recovery, or after another one, counts as real (RFC 5682 section 2.1 step 1).
        let fresh = self.episode.is_open() && self.silence.timeouts == 1;
        let several = self.board.outstanding() > 1;
        match cx.config.spurious_timeout {
            SpuriousTimeout::FRto if fresh && several => TimeoutCheck::AwaitFirst,
            SpuriousTimeout::Eifel if fresh && several && self.timestamps => {
                TimeoutCheck::AwaitEcho(clock_ms(cx.now))
            }
            SpuriousTimeout::Enhanced { .. } if fresh => TimeoutCheck::AwaitTiming(cx.now),
            _ => TimeoutCheck::None,
        }
    }

    /// Watches a timeout's reduction for an undo. A timeout in fast recovery counts as real; of several consecutive ones the
    /// first is watched.
    pub(super) fn watch_timeout(&mut self, cx: &Context) {
        let watched = cx.config.undo && cx.config.spurious_timeout == SpuriousTimeout::FRto;
        if !matches!(self.episode, Episode::Loss { .. }) || self.silence.timeouts == 1 {
            self.watch_reduction(watched && self.episode.is_open());
        }
    }

    /// Handles an echoed congestion mark: one reduction per window (RFC 3168 section 6.1.2), from the flight before this ACK,
    /// which acknowledged `acked` segments.
    #[cold]
    pub(super) fn congestion_echo(&mut self, cx: &mut Context, acked: u32) {
        let ecn_recover = self.reductions.as_ref().map_or(0, |reductions| reductions.ecn_recover);
        let reacts = self.ecn != Ecn::Off && !self.reacts_to_each_mark();
        if !reacts || !self.episode.is_open() || self.una <= ecn_recover {
            return;
        }
        self.ecn.reduce();
        let path = self.path(cx.now);
        let loss = Loss {
            cause: Cause::Mark,
            lost: 0,
            outstanding: self.board.outstanding() + acked,
            in_flight: self.board.in_flight() + acked,
            validated: self.validated(cx.config),
        };
        let before = self.algorithm.window();
        self.algorithm.cc.on_loss(&loss, &path);
        self.stop_watching();
        let (nxt, smaller) = (self.nxt, self.algorithm.window() < before);
        let reductions = self.reductions();
        reductions.ecn_recover = nxt;
        if smaller {
            reductions.marked_until = nxt;
        }
        cx.stats.rare().ecn_reductions += 1;
    }

    /// Handles the reordering timer: segments that have not arrived by now are lost.
    pub(crate) fn on_reorder_timer(&mut self, cx: &mut Context) {
        let (newly_lost, again) = self.rack_detect(cx.now, cx.config);
        cx.timers.reorder = again.unwrap_or(Instant::FAR_FUTURE);
        if newly_lost > 0 && self.episode.is_open() {
            self.enter_recovery(cx, LossEvidence { lost: newly_lost, ..LossEvidence::default() });
        }
    }
}
