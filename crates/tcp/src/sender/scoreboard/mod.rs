//! Scoreboard: every segment sent and not cumulatively acknowledged, with its state.
//!
//! Records form a ring in sequence order. All operations are amortised O(1) per segment, whatever the window. A segment is
//! appended once, SACKed at most once between two losses, marked lost once per transmission, and removed once. Runs of SACKed
//! segments are skipped by pointers that shorten when followed. Lost segments wait in queues, so the next retransmission is found
//! without a walk over the window.

mod losses;
mod progress;
mod record;
mod repairs;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use bentpipe_cc::delivery_rate::Index;
pub(super) use losses::AgeVerdict;
pub(super) use progress::Progress;
pub(super) use record::{Mark, Record};

use std::collections::VecDeque;

use bentpipe_base::{Instant, SackRange};

use repairs::{Repairs, Report};
use steps::count_step;

/// Size in segments above which an idle ring's memory is freed (chosen: 256 bytes).
const SMALL: usize = 8;

/// Ring of records with its counters.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    /// Index of the front record.
    base: Index,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Highest index ever SACKed, plus one.
    sack_top: Index,
    /// Every segment below this index has at least `dup_thresh` SACKed segments above it.
    edge: Index,
    /// SACKed segments at or above `edge`.
    sacked_above_edge: u32,
    /// Present after a loss or a SACK block.
    repairs: Option<Box<Repairs>>,
    /// Index below which every first transmission was judged by time.
    time_cursor: Index,
    /// Number of the last transmission.
    order: u32,
    /// Segments marked lost since the connection began.
    pub total_lost: u32,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the segments sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.records.len() as u32
    }

    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the segments believed to be in flight (RFC 6675 `pipe`).
    pub fn in_flight(&self) -> u32 {
        debug_assert!(self.sacked + self.lost <= self.outstanding(), "a segment is SACKed or lost, not both");
        self.outstanding() + self.retransmitted - self.sacked - self.lost
    }

    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    pub fn front_index(&self) -> Index {
        self.base
    }

    /// Returns the index of the next new segment.
    pub fn next_index(&self) -> Index {
        self.base + self.records.len() as u64
    }

    pub fn back_index(&self) -> Option<Index> {
        (!self.records.is_empty()).then(|| self.base + self.records.len() as u64 - 1)
    }

    pub fn get(&self, index: Index) -> Option<&Record> {
        self.records.get(index.checked_sub(self.base)? as usize)
    }

    /// Adds a segment sent for the first time.
    #[inline]
    pub fn push(&mut self, mut record: Record) {
        debug_assert!(self.records.back().is_none_or(|last| last.end() == record.start));
        self.order = self.order.wrapping_add(1);
        record.order = self.order;
        self.records.push_back(record);
    }

    /// Makes an empty record for [`push`](Self::push).
    pub fn record(start: u64, seq_len: u32, sent_at: Instant) -> Record {
        Record { start, sent_at, seq_len, skip: 1, order: 0, marks: Mark::empty() }
    }

    /// Records a retransmission. An `early` one counts in the pipe in addition to the original, which is not known to be lost.
    pub fn retransmit(&mut self, index: Index, now: Instant, early: bool) {
        let Some(record) = self.records.get_mut((index - self.base) as usize) else { return };
        self.order = self.order.wrapping_add(1);
        (record.sent_at, record.order) = (now, self.order);
        if (early || record.has(Mark::LOST)) && !record.has(Mark::RETRANSMITTED) {
            record.marks |= Mark::RETRANSMITTED;
            self.retransmitted += 1;
        }
        record.marks |= Mark::REPEATED;
        let (base, repairs) = (self.base, self.repairs.get_or_insert_default());
        // RACK removes retransmissions when it judges them by time. Without RACK, acknowledged ones are removed here.
        while repairs.in_flight.front().is_some_and(|(index, _)| *index < base) {
            repairs.in_flight.pop_front();
        }
        repairs.in_flight.push_back((index, self.order));
    }

    /// Records that a probe copies a segment and may repair it: its round trip is ambiguous from now on. Returns its sequence
    /// number and payload length.
    pub fn copied(&mut self, index: Index) -> Option<(u64, u32)> {
        let record = self.records.get_mut(index.checked_sub(self.base)? as usize)?;
        record.marks |= Mark::COPIED;
        Some((record.start, record.seq_len - u32::from(record.has(Mark::FIN))))
    }

    /// Removes everything below `ack`, and trims a partly covered segment.
    pub fn advance(&mut self, ack: u64, progress: &mut Progress) {
        while let Some(front) = self.records.front() {
            if front.end() > ack {
                break;
            }
            let (record, index) = (*front, self.base);
            self.remove_front(&record);
            progress.acked += 1;
            progress.repeated_acked |= record.marks.intersects(Mark::AMBIGUOUS);
            if !record.has(Mark::SACKED) {
                progress.deliver(&record, index);
            }
        }
        if let Some(front) = self.records.front_mut().filter(|front| front.start < ack) {
            let cut = (ack - front.start) as u32;
            front.start = ack;
            front.seq_len -= cut;
            if !front.has(Mark::SACKED) {
                progress.delivered += u64::from(cut);
            }
        }
        if self.records.is_empty() {
            debug_assert!(
                self.is_plain() && self.sacked_above_edge == 0,
                "an empty scoreboard counts nothing"
            );
            self.forget();
        }
    }

    /// True if no segment is known to be lost or to have overtaken another.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.sacked | self.lost | self.retransmitted == 0
    }

    /// Returns the number of segments that end at or below `ack`, and the last of them. `None` if a segment extends across `ack`,
    /// or if any was SACKed, marked lost or sent more than once.
    #[inline]
    pub fn plain_below(&self, ack: u64) -> Option<(u32, &Record)> {
        if !self.is_plain() {
            return None;
        }
        let mut count = 0;
        loop {
            let record = self.records.get(count)?;
            count += 1;
            if !record.marks.is_empty() {
                return None;
            }
            if record.end() >= ack {
                return (record.end() == ack).then_some((count as u32, record));
            }
        }
    }

    /// Removes what [`plain_below`](Self::plain_below) counted.
    #[inline]
    pub fn remove_plain(&mut self, count: u32) {
        for _ in 0..count {
            self.records.pop_front();
        }
        self.base += u64::from(count);
        self.edge = self.edge.max(self.base);
        if self.records.is_empty() {
            self.forget();
        }
    }

    /// True if no retransmission is recorded, not even one that has arrived.
    #[inline]
    pub fn is_free_of_repairs(&self) -> bool {
        self.repairs.as_ref().is_none_or(|repairs| repairs.in_flight.is_empty())
    }

    fn remove_front(&mut self, record: &Record) {
        self.records.pop_front();
        if record.has(Mark::SACKED) {
            self.sacked -= 1;
            if self.base >= self.edge {
                self.sacked_above_edge -= 1;
            }
        }
        if record.has(Mark::LOST) {
            self.lost -= 1;
        }
        if record.has(Mark::RETRANSMITTED) {
            self.retransmitted -= 1;
        }
        self.base += 1;
        self.edge = self.edge.max(self.base);
    }

    /// Empties the queues, when nothing is outstanding or the reports are no longer believed.
    fn forget(&mut self) {
        if let Some(repairs) = &mut self.repairs {
            repairs.lost.clear();
            repairs.lost_again.clear();
            repairs.in_flight.clear();
            repairs.reports = Default::default();
        }
    }

    /// Frees the memory of a wide window when nothing is outstanding.
    pub fn release(&mut self) {
        self.repairs = None;
        if self.records.capacity() > SMALL {
            self.records = VecDeque::new();
        }
    }

    /// Handles one SACK block. Parts outside the outstanding data are ignored.
    pub fn sack(&mut self, block: SackRange, progress: &mut Progress) {
        let repairs = self.repairs.get_or_insert_default();
        let known = repairs.reports.iter().position(|report| report.range.start == block.start);
        let place = known.unwrap_or_else(|| repairs.oldest_report());
        let Report { range, next } = repairs.reports[place];
        if known.is_some() && block.end <= range.end {
            return;
        }
        let behind = known.and_then(|_| next.checked_sub(self.base));
        let at = behind.map_or_else(|| self.position(block.start), |at| at as usize);
        let next = self.base + self.sack_from(at, block.end, progress) as u64;
        if let Some(repairs) = &mut self.repairs {
            repairs.reports[place] = Report { range: block, next };
        }
    }

    /// Marks the records from a position on that end at or before `end` as SACKed. Returns the position after them.
    fn sack_from(&mut self, mut at: usize, end: u64, progress: &mut Progress) -> usize {
        loop {
            count_step();
            at = self.next_unsacked(at);
            let Some(record) = self.records.get_mut(at).filter(|record| record.end() <= end) else {
                return at;
            };
            let index = self.base + at as u64;
            progress.sacked += 1;
            progress.deliver(record, index);
            if record.has(Mark::LOST) {
                self.lost -= 1;
            }
            if record.has(Mark::RETRANSMITTED) {
                self.retransmitted -= 1;
            }
            record.marks.remove(Mark::LOST | Mark::RETRANSMITTED);
            record.marks |= Mark::SACKED;
            record.skip = 1;
            self.sacked += 1;
            self.sack_top = self.sack_top.max(index + 1);
            if index >= self.edge {
                self.sacked_above_edge += 1;
            }
            at += 1;
        }
    }

    /// Returns the position of the first record that starts at or after `seq`.
    fn position(&self, seq: u64) -> usize {
        let Some(front) = self.records.front() else { return 0 };
        if seq <= front.start {
            return 0;
        }
        // Most segments are full: the guess is usually right.
        let guess = ((seq - front.start) / u64::from(front.seq_len.max(1))) as usize;
        if self.records.get(guess).is_some_and(|record| record.start == seq) {
            return guess;
        }
        self.records.partition_point(|record| {
            count_step();
            record.start < seq
        })
    }

    /// Returns the first position at or after `at` that is not SACKed.
    fn next_unsacked(&mut self, mut at: usize) -> usize {
        while let Some(record) = self.records.get(at).filter(|record| record.has(Mark::SACKED)) {
            count_step();
            let skip = record.skip as usize;
            let beyond = match self.records.get(at + skip) {
                Some(next) if next.has(Mark::SACKED) => next.skip,
                _ => 0,
            };
            // Path halving: each walk shortens the pointers.
            self.records[at].skip += beyond;
            at += skip + beyond as usize;
        }
        at
    }

    /// Returns the memory of the ring and its queues in bytes, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let repairs = self.repairs.as_ref().map_or(0, |repairs| {
            size_of::<Repairs>()
                + (repairs.lost.capacity() + repairs.lost_again.capacity()) * size_of::<Index>()
                + repairs.in_flight.capacity() * size_of::<(Index, u32)>()
        });
        self.records.capacity() * size_of::<Record>() + repairs
    }
}
