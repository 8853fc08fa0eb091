//! Segments considered lost, and the order of their retransmission.

use bentpipe_base::{Instant, SackRange};

use super::record::{Mark, Record};
use super::steps::count_step;
use super::{Index, Scoreboard};

/// Verdict on a segment by its age (RFC 8985 section 6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgeVerdict {
    /// The segment is lost.
    Lost,
    /// Lost unless it arrives by this time.
    LostAt(Instant),
    /// Unknown, because no later segment has been delivered.
    Unknown,
}

impl Scoreboard {
    /// Marks every segment with `dup_thresh` SACKed segments above it as lost (RFC 6675 `IsLost`, counted in segments). Returns
    /// the number of newly lost ones.
    pub fn mark_lost_by_count(&mut self, dup_thresh: u32) -> u32 {
        let dup_thresh = dup_thresh.max(1);
        let before = self.lost;
        while let Some(record) = self.get(self.edge) {
            count_step();
            let here = u32::from(record.has(Mark::SACKED));
            if self.sacked_above_edge < dup_thresh + here {
                break;
            }
            // A retransmitted segment is not marked again: only time (RACK) shows that the retransmission was lost.
            if here == 0 && !record.has(Mark::LOST) {
                self.mark_lost(self.edge);
            }
            self.sacked_above_edge -= here;
            self.edge += 1;
        }
        self.lost - before
    }

    /// Marks every segment of a range as lost that is not SACKed and not `trusted` by its marks and last send time. Returns the
    /// number of newly lost ones.
    pub fn mark_range_lost(&mut self, range: SackRange, trusted: impl Fn(Mark, Instant) -> bool) -> u32 {
        let before = self.total_lost;
        let at = self.position(range.start);
        // SNACK reports use blocks, which may begin within a segment.
        let reaches_in = at > 0 && self.records.get(at - 1).is_some_and(|record| record.end() > range.start);
        let mut index = self.base + (at - usize::from(reaches_in)) as u64;
        while let Some(record) = self.get(index).filter(|record| record.start < range.end) {
            count_step();
            if !record.has(Mark::SACKED) && !trusted(record.marks, record.sent_at) {
                self.mark_lost(index);
            }
            index += 1;
        }
        self.total_lost.wrapping_sub(before)
    }

    /// Marks segments as lost by their age relative to the newest delivered one (RFC 8985 step 5), as `judge` decides. Returns the
    /// number of newly lost segments, and the time of the next check.
    pub fn mark_lost_by_time(&mut self, judge: impl Fn(&Record) -> AgeVerdict) -> (u32, Option<Instant>) {
        let mut newly = 0;
        let mut again: Option<Instant> = None;
        let mut later = |at: Instant| again = Some(again.map_or(at, |old: Instant| old.min(at)));
        self.time_cursor = self.time_cursor.max(self.base);
        while let Some(record) = self.get(self.time_cursor) {
            count_step();
            if !record.marks.intersects(Mark::SACKED | Mark::LOST | Mark::REPEATED) {
                match judge(record) {
                    AgeVerdict::Lost => {
                        self.mark_lost(self.time_cursor);
                        newly += 1;
                    }
                    AgeVerdict::LostAt(at) => {
                        later(at);
                        break;
                    }
                    AgeVerdict::Unknown => break,
                }
            }
            self.time_cursor += 1;
        }
        while let Some(&(index, order)) = self.repairs.as_ref().and_then(|repairs| repairs.in_flight.front())
        {
            let current = self.get(index).filter(|record| {
                record.order == order
                    && !record.has(Mark::SACKED)
                    && (record.has(Mark::RETRANSMITTED) || !record.has(Mark::LOST))
            });
            if let Some(record) = current {
                match judge(record) {
                    AgeVerdict::Lost => {
                        self.mark_lost(index);
                        newly += 1;
                    }
                    AgeVerdict::LostAt(at) => {
                        later(at);
                        break;
                    }
                    AgeVerdict::Unknown => break,
                }
            }
            if let Some(repairs) = &mut self.repairs {
                repairs.in_flight.pop_front();
            }
        }
        (newly, again)
    }

    /// Marks one segment lost, or its retransmission lost again.
    pub fn mark_lost(&mut self, index: Index) {
        let Some(offset) = index.checked_sub(self.base) else { return };
        let Some(record) = self.records.get_mut(offset as usize) else { return };
        if record.has(Mark::SACKED) {
            return;
        }
        if record.has(Mark::LOST) {
            if !record.has(Mark::RETRANSMITTED) {
                return;
            }
            record.marks.remove(Mark::RETRANSMITTED);
            self.retransmitted -= 1;
            self.repairs.get_or_insert_default().lost_again.push_back(index);
        } else {
            record.marks |= Mark::LOST;
            self.lost += 1;
            if !record.has(Mark::RETRANSMITTED) {
                self.repairs.get_or_insert_default().lost.push_back(index);
            }
        }
        self.total_lost = self.total_lost.wrapping_add(1);
    }

    /// Marks segments of more than `len` bytes as lost, unless they are SACKed. Returns true if there is any.
    pub fn mark_larger_lost(&mut self, len: u32) -> bool {
        let before = self.total_lost;
        for offset in 0..self.records.len() {
            let record = &self.records[offset];
            if record.seq_len - u32::from(record.has(Mark::FIN)) > len {
                self.mark_lost(self.base + offset as u64);
            }
        }
        self.total_lost != before
    }

    /// Marks everything not SACKed as lost, after a timeout. If the front is SACKed but not acknowledged, the receiver discarded
    /// data. Its reports are then dropped (RFC 2018 section 8).
    pub fn mark_all_lost(&mut self) {
        let reneged = self.front().is_some_and(|front| front.has(Mark::SACKED));
        self.forget();
        self.lost = 0;
        self.retransmitted = 0;
        for (offset, record) in self.records.iter_mut().enumerate() {
            if reneged {
                record.marks.remove(Mark::SACKED);
            }
            record.marks.remove(Mark::RETRANSMITTED | Mark::LOST);
            if !record.has(Mark::SACKED) {
                record.marks |= Mark::LOST;
                self.lost += 1;
                self.repairs.get_or_insert_default().lost.push_back(self.base + offset as u64);
            }
        }
        self.total_lost = self.total_lost.wrapping_add(self.lost);
        if reneged {
            self.sacked = 0;
            self.sacked_above_edge = 0;
        }
    }

    /// Marks the oldest segment and those sent at `by` or earlier as lost, after a timeout with RACK (RFC 8985 section 6.3). If
    /// the receiver discarded SACKed data, all segments are lost.
    pub fn mark_old_lost(&mut self, by: Instant) {
        if self.front().is_some_and(|front| front.has(Mark::SACKED)) {
            return self.mark_all_lost();
        }
        let repairs = self.repairs.get_or_insert_default();
        repairs.lost.clear();
        repairs.lost_again.clear();
        for (offset, record) in self.records.iter_mut().enumerate() {
            let due = !record.has(Mark::SACKED) && (offset == 0 || record.sent_at <= by);
            if due && (!record.has(Mark::LOST) || record.has(Mark::RETRANSMITTED)) {
                self.lost += u32::from(!record.has(Mark::LOST));
                self.retransmitted -= u32::from(record.has(Mark::RETRANSMITTED));
                record.marks.remove(Mark::RETRANSMITTED);
                record.marks |= Mark::LOST;
                self.total_lost = self.total_lost.wrapping_add(1);
            }
            if record.has(Mark::LOST) && !record.has(Mark::RETRANSMITTED) {
                repairs.lost.push_back(self.base + offset as u64);
            }
        }
    }

    /// Counts segments marked lost as in flight again, after a spurious loss or timeout.
    pub fn unmark_lost(&mut self) {
        for record in &mut self.records {
            self.lost -= u32::from(record.has(Mark::LOST));
            self.retransmitted -= u32::from(record.has(Mark::RETRANSMITTED));
            record.marks.remove(Mark::LOST | Mark::RETRANSMITTED);
        }
        if let Some(repairs) = &mut self.repairs {
            repairs.lost.clear();
            repairs.lost_again.clear();
        }
        self.edge = self.base;
        self.sacked_above_edge = self.sacked;
        self.time_cursor = self.base;
    }

    /// Returns the next lost segment to retransmit. Those lost twice come first, because the receiver has waited for them
    /// longest.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Index> {
        if self.lost == 0 { None } else { self.first_waiting() }
    }

    fn first_waiting(&mut self) -> Option<Index> {
        let Self { records, base, repairs, .. } = self;
        let repairs = repairs.as_deref_mut()?;
        let waits = |index: Index| {
            let record = index.checked_sub(*base).and_then(|offset| records.get(offset as usize));
            record.is_some_and(|record| record.has(Mark::LOST) && !record.has(Mark::RETRANSMITTED))
        };
        for queue in [&mut repairs.lost_again, &mut repairs.lost] {
            while let Some(&index) = queue.front() {
                if waits(index) {
                    return Some(index);
                }
                queue.pop_front();
            }
        }
        None
    }

    /// Returns the first segment that is neither SACKed nor retransmitted, at or after `from` and below the highest SACKed one:
    /// RFC 6675 `NextSeg` rule 3.
    pub fn next_unsacked_hole(&mut self, from: Index) -> Option<Index> {
        let mut at = (from.max(self.base) - self.base) as usize;
        loop {
            count_step();
            at = self.next_unsacked(at);
            let index = self.base + at as u64;
            if index >= self.sack_top {
                return None;
            }
            if !self.records.get(at)?.marks.intersects(Mark::AMBIGUOUS) {
                return Some(index);
            }
            at += 1;
        }
    }
}
