//! SNACK: losses reported by the receiver (CCSDS 714.0-B-2).
//!
//! On a path without reordering a hole is a loss, so one report is enough. Only time shows that a retransmission was lost: a hole
//! is repaired once in 1.25 round trips, however often it is reported.

use bentpipe_base::{Instant, SackRange, Snack};

use super::Sender;
use super::scoreboard::{Mark, Progress};

/// Quarters of a round trip for which a retransmission is trusted (chosen: one round trip, plus 1/4 for its variation).
const PATIENCE_QUARTERS: u64 = 5;

impl Sender {
    /// Marks segments as delivered by a SNACK counted from `ack`.
    pub(super) fn take_held(&mut self, snack: &Snack, ack: u64, progress: &mut Progress) {
        let held = snack.runs(ack, self.mss).filter(|(_, held)| *held).map(|(range, _)| range);
        let before = (snack.offset > 0).then(|| {
            let end = ack + u64::from(snack.offset) * u64::from(self.mss);
            SackRange { start: ack, end }
        });
        for range in before.into_iter().chain(held).filter(|range| range.end <= self.nxt) {
            self.board.sack(SackRange { start: range.start.max(self.una), end: range.end }, progress);
        }
    }

    /// Marks segments missing in the report as lost, unless their repair is in flight. Returns the number of newly lost ones.
    pub(super) fn take_missing(&mut self, now: Instant, snack: &Snack, ack: u64) -> u32 {
        if ack < self.una {
            return 0;
        }
        let patience = self.rtt.srtt * PATIENCE_QUARTERS / 4;
        let trusted =
            |marks: Mark, sent_at: Instant| marks.contains(Mark::REPEATED) && now < sent_at + patience;
        let missing = snack.runs(ack, self.mss).filter(|(range, held)| !held && range.end <= self.nxt);
        missing.map(|(range, _)| self.board.mark_range_lost(range, trusted)).sum()
    }
}
