//! Data received out of order: held ranges, reassembly and reports.

use bentpipe_base::SackRange;

use super::reassembly::{ReassemblyQueue, merge_at};
use super::{Arrival, Receiver};

/// Number of ranges always accepted, however small (chosen: enough for a stream whose segments alternate between two paths).
const MANY_RANGES: usize = 64;
/// Bytes of the window for each range beyond [`MANY_RANGES`] (chosen: less than a full segment).
const BYTES_PER_RANGE: u64 = 1024;
/// Maximum number of ranges (chosen): inserting a range takes time proportional to their number.
const MOST_RANGES: usize = 8192;

impl Receiver {
    /// Schedules the report of a duplicate in the next ACK (RFC 2883).
    pub(super) fn report_duplicate(&mut self, start: u64, end: u64) {
        self.queue().dsack = Some(SackRange { start, end });
    }

    /// Schedules the report of the first part of `[start, end)` that arrived before, if there is one. It leaves at once (RFC 2883
    /// section 4), even where other data would be acknowledged later.
    pub(super) fn report_overlap(&mut self, start: u64, end: u64) {
        let ranges = self.queue.as_ref().map(|queue| &queue.ranges).filter(|ranges| !ranges.is_empty());
        let overlap = if start < self.nxt {
            Some(SackRange { start, end: end.min(self.nxt) })
        } else {
            ranges.and_then(|ranges| {
                let held = ranges.get(ranges.partition_point(|range| range.end <= start))?;
                Some(SackRange { start: start.max(held.start), end: end.min(held.end) })
            })
        };
        if let Some(SackRange { start, end }) = overlap.filter(|overlap| overlap.start < overlap.end) {
            self.report_duplicate(start, end);
            self.quick = self.quick.max(1);
        }
    }

    /// True if a hole is open, and the last arrival is the highest range and ends at `seq`.
    #[inline]
    pub fn continues_at(&self, seq: u64) -> bool {
        self.queue.as_ref().is_some_and(|queue| {
            let last = queue.ranges.back();
            last.is_some_and(|last| last.end == seq && *last == queue.recent[0])
        })
    }

    /// Extends that range up to `end`.
    #[inline]
    pub fn extend_last(&mut self, end: u64) {
        let Some(ReassemblyQueue { ranges, recent, .. }) = self.queue.as_deref_mut() else { return };
        if let Some(last) = ranges.back_mut() {
            (last.end, recent[0].end) = (end, end);
            self.unreported = self.unreported.max(1);
        }
    }

    /// True if data is missing before other data that has arrived.
    #[inline]
    pub fn has_holes(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.ranges.is_empty())
    }

    pub(super) fn queue(&mut self) -> &mut ReassemblyQueue {
        self.may_report = true;
        self.queue.get_or_insert_default()
    }

    /// Returns the end of all received data.
    pub(super) fn highest(&self) -> u64 {
        self.queue.as_ref().and_then(|queue| queue.ranges.back()).map_or(self.nxt, |last| last.end)
    }

    /// Advances `nxt` over the ranges that it has reached.
    pub(super) fn absorb(&mut self) {
        let Some(ReassemblyQueue { ranges, .. }) = self.queue.as_deref_mut() else { return };
        while let Some(front) = ranges.front() {
            if front.start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(front.end);
            ranges.pop_front();
        }
    }

    /// Returns the maximum number of ranges if the highest ends at `end`. It is proportional to the window that they span, so
    /// that a peer cannot make one per byte.
    fn most_ranges(&self, end: u64) -> usize {
        let span = self.highest().max(end) - self.nxt;
        (MANY_RANGES + (span / BYTES_PER_RANGE) as usize).min(MOST_RANGES)
    }

    /// Stores a range above `nxt`, merged with adjacent ones. A separate range is rejected if too many are held.
    pub(super) fn keep(&mut self, new: SackRange) -> Arrival {
        let mut merged = new;
        let most = self.most_ranges(new.end);
        let ReassemblyQueue { ranges, .. } = self.queue();
        let full = ranges.len() >= most;
        match ranges.back_mut() {
            None => self.open_hole(new),
            Some(last) if last.end < new.start && full => return Arrival::OutsideWindow,
            Some(last) if last.end < new.start => self.open_hole(new),
            // Typical case while a hole is open: the next segment in sequence.
            Some(last) if last.end == new.start => {
                last.end = new.end;
                merged = *last;
            }
            Some(_) => {
                let at = ranges.partition_point(|range| range.end < new.start);
                let covering =
                    ranges.get(at).filter(|range| range.start <= new.start && new.end <= range.end).copied();
                if let Some(covering) = covering {
                    self.report(covering);
                    return Arrival::Duplicate;
                }
                if full && ranges.get(at).is_none_or(|range| range.start > new.end) {
                    return Arrival::OutsideWindow;
                }
                merged = merge_at(ranges, at, new);
            }
        }
        self.report(merged);
        Arrival::OutOfOrder
    }

    fn open_hole(&mut self, above: SackRange) {
        self.opened_hole = true;
        self.queue().ranges.push_back(above);
    }

    /// Puts a range at the head of the reports, and removes ranges contained in it.
    fn report(&mut self, range: SackRange) {
        let recent = &mut self.queue.get_or_insert_default().recent;
        let old = *recent;
        let again = range.start <= old[0].start && old[0].end <= range.end;
        if self.unreported == 0 || !again {
            self.unreported = self.unreported.saturating_add(1);
        }
        let others = old.iter().filter(|old| old.start < range.start || old.end > range.end);
        *recent = [SackRange::default(); 4];
        for (slot, reported) in recent.iter_mut().zip(core::iter::once(&range).chain(others)) {
            *slot = *reported;
        }
    }
}
