//! Undo of spurious reductions: nothing was lost, but segments or their ACKs were late.
//!
//! There are two kinds of evidence, as in Linux. The receiver reports each retransmission as a duplicate (D-SACK, RFC 3708). Or
//! the ACK that covers the first retransmission echoes an older timestamp (Eifel detection, RFC 3522). The reduction is then
//! undone (RFC 4015).

use bentpipe_base::{SackRange, Segment};
use bentpipe_cc::Undo;

use super::Sender;
use super::episode::Episode;
use super::scoreboard::Record;
use super::watch::Watch;
use crate::context::Context;
use crate::timestamp::clock_ms;

impl Sender {
    /// Handles a window reduction: its retransmissions are `watched`, and those of an earlier one no longer.
    pub(super) fn watch_reduction(&mut self, watched: bool) {
        let undo = watched.then(|| Watch::begin(self.una));
        self.reductions().undo = undo;
    }

    /// Stops watching, because the algorithm reduced the window for another reason: an undo would no longer match the watched
    /// reduction.
    pub(super) fn stop_watching(&mut self) {
        if let Some(reductions) = &mut self.reductions {
            reductions.undo = None;
        }
    }

    /// Records a retransmission.
    pub(super) fn watch_repair(&mut self, cx: &Context, record: Record) {
        if let Some(undo) = self.reductions.as_mut().and_then(|reductions| reductions.undo.as_mut()) {
            undo.note_repair(record.end(), clock_ms(cx.now));
        }
    }

    /// True if this ACK completes the proof that the reduction was spurious. `duplicate` is its reported duplicate; `marked` is
    /// true if it reports a mark.
    pub(super) fn proves_spurious(
        &mut self,
        segment: &Segment,
        duplicate: Option<SackRange>,
        marked: bool,
    ) -> bool {
        let (una, mss) = (self.una, u64::from(self.mss));
        let echo = segment.timestamps.filter(|_| self.timestamps).map(|(_, echo)| echo);
        let Some(reductions) = &mut self.reductions else { return false };
        let Some(undo) = &mut reductions.undo else { return false };
        if una > undo.until || marked {
            // The path is congested, even if segments were only late (RFC 4015 step 5).
            reductions.undo = None;
            return false;
        }
        duplicate.is_some_and(|range| undo.report(range, mss)) || undo.answers_original(una, echo)
    }

    /// Undoes the last reduction. Segments marked lost and not yet retransmitted count as in flight again.
    #[cold]
    pub(super) fn undo_reduction(&mut self, cx: &mut Context) {
        if matches!(self.episode, Episode::Loss { .. }) {
            self.rtt.reset_back_off();
            self.rtt.widen(self.told_srtt, &cx.config.sender.rto);
        }
        if !self.episode.is_open() {
            self.board.unmark_lost();
            self.leave_episode(cx);
            self.note_late_original();
        }
        // The reduced window has set the pacing rate since: the next segment would wait for most of a round trip.
        if let Some(pacer) = &mut self.pacer {
            pacer.forgive(cx.now);
        }
        let una = self.una;
        self.reductions().undone(una);
        self.ecn.settle();
        let path = self.path(cx.now);
        self.algorithm.cc.on_undo(Undo::Reduction, &path);
        cx.stats.rare().undone += 1;
        cx.trace(bentpipe_trace::Event::Undone);
    }
}
