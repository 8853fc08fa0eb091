//! Every segment sent and not yet cumulatively acknowledged, and what is known of it.
//!
//! Records lie in a ring in sequence order. All operations are amortised O(1) per segment, whatever the window: a segment
//! is appended once, SACKed at most once between two losses, marked lost once per transmission and removed once; runs of
//! SACKed segments are skipped by pointers that shorten as they are followed; lost segments wait in queues, so that finding
//! the next one to retransmit never walks the window.

use std::collections::VecDeque;

use bentpipe_base::{Instant, SackRange, prefetch};

/// Index of a segment since the connection began; never reused.
pub(super) use bentpipe_cc::delivery_rate::Index;

/// A ring for so many segments is kept while nothing is outstanding.
const SMALL: usize = 8;

bitflags::bitflags! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(super) struct Mark: u8 {
        /// Reported by SACK.
        const SACKED = 0x01;
        /// Believed lost. Stays set while its retransmission is in flight.
        const LOST = 0x02;
        /// A retransmission is in flight.
        const RETRANSMITTED = 0x04;
        /// Sent more than once: no round-trip sample from it (Karn).
        const REPEATED = 0x08;
        /// Carries the FIN.
        const FIN = 0x10;
        /// A copy of it left as a probe: no round-trip sample either, but time still tells whether it was lost.
        const COPIED = 0x20;
        /// Which transmission arrived is not known.
        const AMBIGUOUS = Self::REPEATED.bits() | Self::COPIED.bits();
    }
}

/// One segment in the ring. 32 bytes: half a cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// First sequence number.
    pub start: u64,
    /// Time of the last transmission.
    pub sent_at: Instant,
    /// Sequence numbers occupied, the FIN's included.
    pub seq_len: u32,
    /// If SACKED: how many records to skip to reach one that may not be.
    skip: u32,
    pub marks: Mark,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.seq_len)
    }

    pub fn has(&self, mark: Mark) -> bool {
        self.marks.contains(mark)
    }
}

/// Changes that an ACK made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Segments cumulatively acknowledged.
    pub acked: u32,
    /// Segments newly SACKed.
    pub sacked: u32,
    /// Segments newly known to have arrived, one way or the other.
    pub arrived: u32,
    /// Sequence numbers newly known to have arrived.
    pub delivered: u64,
    /// The most recently sent segment among the newly delivered ones.
    pub newest: Option<Record>,
    /// Its index.
    pub newest_index: Index,
    /// A cumulatively acknowledged segment had been sent more than once.
    pub repeated_acked: bool,
    /// When the most recently sent of the newly delivered segments that were sent only once left, and where it ends.
    pub newest_original: Option<(Instant, u64)>,
    /// A newly delivered segment had been sent only once.
    pub original_delivered: bool,
    /// Lowest start among those.
    pub lowest_original: u64,
    /// Highest end among all newly delivered segments.
    pub highest: u64,
}

impl Progress {
    fn deliver(&mut self, record: &Record, index: Index) {
        self.delivered += u64::from(record.seq_len);
        self.arrived += 1;
        if !record.marks.intersects(Mark::AMBIGUOUS) {
            let first = !self.original_delivered;
            self.lowest_original = if first { record.start } else { self.lowest_original.min(record.start) };
            self.original_delivered = true;
            self.newest_original = self.newest_original.max(Some((record.sent_at, record.end())));
        }
        self.highest = self.highest.max(record.end());
        let newer = match &self.newest {
            Some(newest) => (record.sent_at, record.start) > (newest.sent_at, newest.start),
            None => true,
        };
        if newer {
            self.newest = Some(*record);
            self.newest_index = index;
        }
    }
}

/// Segments that wait for retransmission, and retransmissions in flight. Stale indices are skipped.
#[derive(Debug, Default)]
struct Repairs {
    /// Lost segments waiting for their first retransmission, in sequence order.
    lost: VecDeque<Index>,
    /// Segments whose retransmission was lost, before the others.
    lost_again: VecDeque<Index>,
    /// Retransmissions in flight by time of transmission.
    in_flight: VecDeque<(Index, Instant)>,
    /// The SACK blocks that were new last.
    reports: [Report; 4],
    /// Times that one of them made room for another.
    replaced: usize,
}

impl Repairs {
    /// The place of the report that makes room for another.
    fn oldest_report(&mut self) -> usize {
        self.replaced += 1;
        self.replaced % self.reports.len()
    }
}

/// A SACK block that was taken. ACKs repeat them, most of them unchanged.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    range: SackRange,
    /// Index of the first segment that does not end in it.
    next: Index,
}

/// The ring and its counts.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    /// Index of the front record.
    base: Index,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Largest index ever SACKed, plus one.
    sack_top: Index,
    /// Every segment below has `dup_thresh` SACKed ones above it.
    edge: Index,
    /// SACKed segments at or above `edge`.
    sacked_above_edge: u32,
    /// Only after a loss or a SACK block.
    repairs: Option<Box<Repairs>>,
    /// Every original below was judged by time.
    time_cursor: Index,
    /// Segments marked lost since the connection began.
    pub total_lost: u32,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Segments sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.records.len() as u32
    }

    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments believed to be in the network (RFC 6675 `pipe`).
    pub fn in_flight(&self) -> u32 {
        self.outstanding() + self.retransmitted - self.sacked - self.lost
    }

    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    pub fn front_index(&self) -> Index {
        self.base
    }

    /// Index of the segment sent next.
    pub fn next_index(&self) -> Index {
        self.base + self.records.len() as u64
    }

    pub fn back_index(&self) -> Option<Index> {
        (!self.records.is_empty()).then(|| self.base + self.records.len() as u64 - 1)
    }

    pub fn get(&self, index: Index) -> Option<&Record> {
        self.records.get(index.checked_sub(self.base)? as usize)
    }

    /// A new segment was sent for the first time.
    #[inline]
    pub fn push(&mut self, record: Record) {
        debug_assert!(self.records.back().is_none_or(|last| last.end() == record.start));
        self.records.push_back(record);
    }

    /// An empty record for [`push`](Self::push).
    pub fn record(start: u64, seq_len: u32, sent_at: Instant) -> Record {
        Record { start, sent_at, seq_len, skip: 1, marks: Mark::empty() }
    }

    /// A segment leaves again. An `early` one counts in the pipe beside the original, which is not known to be lost.
    pub fn retransmit(&mut self, index: Index, now: Instant, early: bool) {
        let Some(record) = self.records.get_mut((index - self.base) as usize) else { return };
        record.sent_at = now;
        if (early || record.has(Mark::LOST)) && !record.has(Mark::RETRANSMITTED) {
            record.marks |= Mark::RETRANSMITTED;
            self.retransmitted += 1;
        }
        record.marks |= Mark::REPEATED;
        let (base, repairs) = (self.base, self.repairs.get_or_insert_default());
        // Only RACK asks for repairs by time: without it those that were acknowledged go here.
        while repairs.in_flight.front().is_some_and(|(index, _)| *index < base) {
            repairs.in_flight.pop_front();
        }
        repairs.in_flight.push_back((index, now));
    }

    /// A copy of a segment leaves as a probe, which may repair it: from now on its round trip is ambiguous. Returns its
    /// sequence number and payload length.
    pub fn copied(&mut self, index: Index) -> Option<(u64, u32)> {
        let record = self.records.get_mut(index.checked_sub(self.base)? as usize)?;
        record.marks |= Mark::COPIED;
        Some((record.start, record.seq_len - u32::from(record.has(Mark::FIN))))
    }

    /// Removes everything below `ack`, and trims a segment that it covers in part.
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
            self.forget();
        }
    }

    /// Asks for the memory of the oldest records and of the latest.
    #[inline]
    pub fn prefetch(&self) {
        let (older, newer) = self.records.as_slices();
        prefetch(&older[..older.len().min(4)]);
        if let Some(latest) = newer.last().or(older.last()) {
            prefetch(latest);
        }
    }

    /// Nothing is known to have overtaken another segment or to be lost.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.sacked | self.lost | self.retransmitted == 0
    }

    /// How many segments end at or below `ack`, and when the last of them left, if they end there and nothing special happened to them or
    /// is known of any other.
    #[inline]
    pub fn plain_below(&self, ack: u64) -> Option<(u32, Instant)> {
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
                return (record.end() == ack).then_some((count as u32, record.sent_at));
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

    /// No retransmission is remembered, not even one that has since arrived.
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

    /// Nothing is outstanding, or nothing that was reported is believed: the queues hold only stale entries.
    fn forget(&mut self) {
        if let Some(repairs) = &mut self.repairs {
            repairs.lost.clear();
            repairs.lost_again.clear();
            repairs.in_flight.clear();
            repairs.reports = Default::default();
        }
    }

    /// Nothing is outstanding, and may not be for long: gives the memory of a wide window back.
    pub fn release(&mut self) {
        self.repairs = None;
        if self.records.capacity() > SMALL {
            self.records = VecDeque::new();
        }
    }

    /// Takes one SACK block. Parts outside what is outstanding are ignored.
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

    /// Takes what lies at a position or behind and ends by `end` as reported. Returns the position behind it.
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

    /// Position of the first record that starts at or after `seq`.
    fn position(&self, seq: u64) -> usize {
        let Some(front) = self.records.front() else { return 0 };
        if seq <= front.start {
            return 0;
        }
        // Most segments are full: the guess is usually right at once.
        let guess = ((seq - front.start) / u64::from(front.seq_len.max(1))) as usize;
        if self.records.get(guess).is_some_and(|record| record.start == seq) {
            return guess;
        }
        self.records.partition_point(|record| {
            count_step();
            record.start < seq
        })
    }

    /// First position at or after `at` that is not SACKED.
    fn next_unsacked(&mut self, mut at: usize) -> usize {
        while let Some(record) = self.records.get(at).filter(|record| record.has(Mark::SACKED)) {
            count_step();
            let skip = record.skip as usize;
            let beyond = match self.records.get(at + skip) {
                Some(next) if next.has(Mark::SACKED) => next.skip,
                _ => 0,
            };
            // Path halving: each walk leaves shorter pointers behind.
            self.records[at].skip += beyond;
            at += skip + beyond as usize;
        }
        at
    }

    /// Marks every segment that has `dup_thresh` SACKed segments above it (RFC 6675 `IsLost`, counted in segments). Returns how
    /// many are newly lost.
    pub fn mark_lost_by_count(&mut self, dup_thresh: u32) -> u32 {
        let dup_thresh = dup_thresh.max(1);
        let before = self.lost;
        while let Some(record) = self.get(self.edge) {
            count_step();
            let here = u32::from(record.has(Mark::SACKED));
            if self.sacked_above_edge < dup_thresh + here {
                break;
            }
            // A retransmitted segment keeps its chance: only time (RACK) can tell that the retransmission was lost.
            if here == 0 && !record.has(Mark::LOST) {
                self.mark_lost(self.edge);
            }
            self.sacked_above_edge -= here;
            self.edge += 1;
        }
        self.lost - before
    }

    /// Marks every segment of a range that is not SACKed as lost, unless its marks and the time at which it left last let it be
    /// `trusted`. Returns how many are newly lost.
    pub fn mark_range_lost(&mut self, range: SackRange, trusted: impl Fn(Mark, Instant) -> bool) -> u32 {
        let before = self.total_lost;
        let at = self.position(range.start);
        // Reports count in blocks: one may begin within a segment.
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

    /// Marks what was sent so long before the newest delivered segment that it must be lost (RFC 8985 step 5).
    /// `is_lost(sent_at, end)` judges; returns how many are newly lost and when to look again.
    pub fn mark_lost_by_time(
        &mut self,
        judge: impl Fn(Instant, u64) -> AgeVerdict,
    ) -> (u32, Option<Instant>) {
        let mut newly = 0;
        let mut again: Option<Instant> = None;
        let mut later = |at: Instant| again = Some(again.map_or(at, |old: Instant| old.min(at)));
        self.time_cursor = self.time_cursor.max(self.base);
        while let Some(record) = self.get(self.time_cursor) {
            count_step();
            if !record.marks.intersects(Mark::SACKED | Mark::LOST | Mark::REPEATED) {
                match judge(record.sent_at, record.end()) {
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
        while let Some(&(index, sent_at)) =
            self.repairs.as_ref().and_then(|repairs| repairs.in_flight.front())
        {
            let current = self.get(index).filter(|record| {
                record.sent_at == sent_at
                    && !record.has(Mark::SACKED)
                    && (record.has(Mark::RETRANSMITTED) || !record.has(Mark::LOST))
            });
            if current.is_some() {
                // New data that left in the same instant may have left before this: only a later departure proves anything.
                match judge(sent_at, u64::MAX) {
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

    /// Marks what holds more than `len` bytes as lost, unless it is SACKed. True if there is any.
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

    /// After a timeout: everything not SACKed is lost. If the receiver discarded what it had SACKed (the front is SACKED
    /// and yet not acknowledged), its reports are forgotten too (RFC 2018 section 8).
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

    /// After a timeout where time tells losses: the oldest segment and what left at `by` or before is lost (RFC 8985 section 6.3). If the
    /// receiver discarded what it had SACKed, everything is.
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

    /// The timeout was none: what was marked lost and not sent again is in flight after all.
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

    /// The next lost segment to send again: those lost twice first, for they hold up the receiver longest.
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

    /// First segment that is not SACKED and not yet sent again, at or after `from` and below the highest SACKed one: RFC 6675
    /// `NextSeg` rule 3.
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

    /// Bytes held by the ring and its queues, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let repairs = self.repairs.as_ref().map_or(0, |repairs| {
            size_of::<Repairs>()
                + (repairs.lost.capacity() + repairs.lost_again.capacity()) * size_of::<Index>()
                + repairs.in_flight.capacity() * size_of::<(Index, Instant)>()
        });
        self.records.capacity() * size_of::<Record>() + repairs
    }
}

/// AgeVerdict on a segment by time (RFC 8985).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AgeVerdict {
    /// Lost.
    Lost,
    /// Lost unless it arrives by then.
    LostAt(Instant),
    /// Sent after the newest delivered one: nothing can be said.
    Unknown,
}

/// One turn of a loop that walks the window, for the test that they are few.
fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use bentpipe_base::{Rng, SackBlocks};

    use super::*;

    const MSS: u64 = 1000;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..segments {
            board.push(Scoreboard::record(1 + i * MSS, MSS as u32, Instant::from_nanos(i)));
        }
        board
    }

    fn block(first: u64, last: u64) -> SackRange {
        SackRange { start: 1 + first * MSS, end: 1 + (last + 1) * MSS }
    }

    #[test]
    fn three_sacked_above_make_a_loss() {
        let mut board = board(10);
        let mut progress = Progress::default();
        board.sack(block(1, 2), &mut progress);
        assert_eq!(board.mark_lost_by_count(3), 0);
        board.sack(block(1, 3), &mut progress);
        assert_eq!(board.mark_lost_by_count(3), 1);
        assert_eq!((progress.sacked, board.sacked(), board.lost()), (3, 3, 1));
        assert_eq!(board.in_flight(), 6);
        assert_eq!(board.next_lost(), Some(0));
        board.retransmit(0, Instant::from_nanos(99), false);
        assert_eq!((board.in_flight(), board.next_lost()), (7, None));
        board.advance(1 + 4 * MSS, &mut progress);
        assert_eq!((board.outstanding(), board.in_flight(), board.sacked(), board.lost()), (6, 6, 0, 0));
        assert!(progress.repeated_acked);
    }

    #[test]
    fn scattered_losses_below_the_third_highest_sack() {
        let mut board = board(20);
        let mut progress = Progress::default();
        for i in [1, 4, 7, 9] {
            board.sack(block(i, i), &mut progress);
        }
        // 7, 9 and 4 are the three highest: everything unSACKed below 4 is lost.
        assert_eq!(board.mark_lost_by_count(3), 3);
        let mut lost = vec![];
        while let Some(index) = board.next_lost() {
            board.retransmit(index, Instant::ZERO, false);
            lost.push(index);
        }
        assert_eq!(lost, [0, 2, 3]);
        assert_eq!(board.next_unsacked_hole(4), Some(5));
    }

    #[test]
    fn what_makes_a_board_plain() {
        let mut board = board(3);
        assert!(board.is_plain() && board.is_free_of_repairs());
        board.sack(block(2, 2), &mut Progress::default());
        assert_eq!(board.mark_range_lost(block(0, 0), |_, _| false), 1);
        assert!(!board.is_plain() && board.is_free_of_repairs(), "one SACKed and one lost");
        board.retransmit(0, Instant::from_nanos(99), false);
        assert!(!board.is_plain() && !board.is_free_of_repairs());
    }

    /// SNACK counts in blocks, which may begin within a segment.
    #[test]
    fn a_range_that_begins_within_a_segment_has_that_segment() {
        let mut board = board(4);
        let range = SackRange { start: 1501, end: 3001 };
        assert_eq!(board.mark_range_lost(range, |_, _| false), 2);
        assert_eq!((board.next_lost(), board.lost()), (Some(1), 2));
    }

    /// A retransmission that was reported lost and sent again is not judged by the time of its first departure.
    #[test]
    fn only_the_newest_retransmission_is_judged_by_time() {
        let mut board = board(1);
        for at in [100, 200] {
            assert_eq!(board.mark_range_lost(block(0, 0), |_, _| false), 1);
            board.retransmit(0, Instant::from_nanos(at), false);
        }
        let judge = |at: Instant, _| match at.as_nanos() {
            100 => AgeVerdict::Lost,
            _ => AgeVerdict::Unknown,
        };
        assert_eq!(board.mark_lost_by_time(judge), (0, None));
    }

    #[test]
    fn reports_make_room_in_turn() {
        let mut repairs = Repairs::default();
        let mut places = [0; 4].map(|_| repairs.oldest_report());
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn a_partial_ack_trims_the_front() {
        let mut board = board(2);
        let mut progress = Progress::default();
        board.advance(501, &mut progress);
        assert_eq!((progress.acked, progress.delivered), (0, 500));
        assert_eq!(board.front().unwrap().start, 501);
        board.advance(1 + 2 * MSS, &mut progress);
        assert_eq!((progress.acked, progress.delivered), (2, 2000));
        assert!(board.is_empty());
    }

    #[test]
    fn reneging_is_forgiven_after_a_timeout() {
        let mut board = board(4);
        let mut progress = Progress::default();
        board.sack(block(1, 1), &mut progress);
        board.advance(1 + MSS, &mut progress);
        board.mark_all_lost();
        assert_eq!((board.sacked(), board.lost(), board.in_flight()), (0, 3, 0));
        assert_eq!(board.next_lost(), Some(1));
    }

    /// A probe may have copied a segment and got lost as well: time judges the original nevertheless.
    #[test]
    fn a_copied_segment_is_still_lost_by_time() {
        let mut board = board(3);
        let mut progress = Progress::default();
        assert_eq!(board.copied(0), Some((1, 1000)));
        board.sack(block(1, 2), &mut progress);
        let (lost, _) =
            board.mark_lost_by_time(|_, end| if end < 3001 { AgeVerdict::Lost } else { AgeVerdict::Unknown });
        assert_eq!((lost, board.next_lost()), (1, Some(0)));
        board.retransmit(0, Instant::from_nanos(9), false);
        board.advance(3001, &mut progress);
        assert!(progress.repeated_acked);
    }

    /// RFC 8985 section 6.3: what left within the last round trip keeps its chance, the oldest does not; and it leaves first.
    #[test]
    fn a_timeout_spares_what_left_lately() {
        let mut board = board(6);
        let mut progress = Progress::default();
        let sent =
            |board: &Scoreboard, index| board.get(index).map_or(Instant::ZERO, |record| record.sent_at);
        board.mark_lost(2);
        board.sack(block(1, 1), &mut progress);
        board.retransmit(2, Instant::from_nanos(90), false);
        board.retransmit(0, Instant::from_nanos(90), false);
        let by = sent(&board, 4);
        board.mark_old_lost(by);
        let waiting: Vec<Index> = std::iter::from_fn(|| {
            let index = board.next_lost()?;
            board.retransmit(index, Instant::from_nanos(100), false);
            Some(index)
        })
        .collect();
        assert_eq!(waiting, [0, 3, 4], "1 is SACKed, 2 was repaired and 5 sent lately");
        assert_eq!((board.in_flight(), board.lost()), (5, 4));
    }

    /// Without RACK nobody asks for repairs by time; they are forgotten all the same.
    #[test]
    fn acknowledged_repairs_are_not_remembered() {
        let mut board = board(1);
        let mut progress = Progress::default();
        for at in 0..1000_u64 {
            let index = board.front_index();
            board.retransmit(index, Instant::from_nanos(at), false);
            let end = board.get(index).map_or(0, Record::end);
            board.push(Scoreboard::record(end, MSS as u32, Instant::from_nanos(at)));
            board.advance(end, &mut progress);
        }
        let remembered = board.repairs.as_ref().map_or(0, |repairs| repairs.in_flight.len());
        assert!(remembered <= 2, "{remembered}");
    }

    /// Rule 3 of RFC 6675 sends what may still be on its way: both count until one is known to be gone.
    #[test]
    fn an_early_retransmission_counts_beside_the_original() {
        let mut board = board(6);
        let mut progress = Progress::default();
        board.sack(block(1, 1), &mut progress);
        board.retransmit(0, Instant::from_nanos(9), true);
        assert_eq!(board.in_flight(), 6);
        board.sack(block(1, 3), &mut progress);
        assert_eq!((board.mark_lost_by_count(3), board.in_flight()), (1, 3), "the original is gone");
        assert_eq!(board.next_lost(), None, "and its successor on the way");
        board.unmark_lost();
        assert_eq!(board.in_flight(), 3);
        board.advance(6001, &mut progress);
        assert_eq!((board.in_flight(), progress.arrived), (0, 6));
    }

    /// The whole point: long runs of SACKed segments are not walked again.
    #[test]
    fn skips_shorten() {
        let mut board = board(10_000);
        let mut progress = Progress::default();
        // More beginnings than are remembered.
        for i in 1..10_000 {
            board.sack(block(1 + i % 7, i), &mut progress);
        }
        assert_eq!(board.sacked(), 9_999);
        board.next_unsacked(1);
        assert!(board.records[1].skip > 1_000);
    }

    /// ACKs repeat blocks, grown or not, and beginnings move up with the cumulative ACK: what is remembered of them leads nowhere else
    /// than their numbers.
    #[test]
    fn remembered_reports_change_nothing() {
        let mut rng = Rng::stream(1, "reports");
        let (mut one, mut other) = (board(300), board(300));
        let mut blocks = [block(0, 0); 6];
        for round in 0..2000 {
            let which = rng.below(6) as usize;
            let grown = blocks[which].end + rng.below(4) * 500;
            let first = rng.below(298);
            blocks[which] = match rng.below(4) {
                0 => block(first, first + rng.below(3)),
                1 => SackRange { start: blocks[which].start + 400, end: blocks[which].end + 400 },
                _ => SackRange { end: grown, ..blocks[which] },
            };
            let mut seen = [Progress::default(), Progress::default()];
            one.sack(blocks[which], &mut seen[0]);
            if let Some(repairs) = &mut other.repairs {
                repairs.reports = Default::default();
            }
            other.sack(blocks[which], &mut seen[1]);
            if round % 50 == 49 {
                let ack = one.front().map_or(0, |front| front.start) + 700;
                one.advance(ack, &mut seen[0]);
                other.advance(ack, &mut seen[1]);
            }
            assert_eq!(format!("{:?}", seen[0]), format!("{:?}", seen[1]), "round {round}");
            assert_eq!(one.in_flight(), other.in_flight());
        }
        assert!(one.sacked() > 100);
    }

    /// A window of 100,000 segments of which every hundredth is lost, and every ten-thousandth once more: the work for an
    /// ACK does not depend on the window.
    #[test]
    fn the_work_for_an_ack_does_not_grow_with_the_window() {
        for by_time in [false, true] {
            let mut few = steps_per_ack(1000, by_time);
            let many = steps_per_ack(100_000, by_time);
            few = few.max(4.0);
            assert!(many < 2.0 * few, "by time: {by_time}; {many} steps for an ACK, {few} in a small window");
        }
    }

    fn steps_per_ack(window: u32, by_time: bool) -> f64 {
        use crate::receiver::Receiver;
        use crate::{Config, ReceiveWindow};
        let config = Config { receive_window: ReceiveWindow::Fixed(1 << 29), ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.synchronise();
        receiver.acknowledged(&config);
        let mut board = Scoreboard::default();
        let mut path = VecDeque::new();
        let (mut sent, mut acks, mut tick, mut nxt) = (0_u64, 0_u64, 0_u64, 1_u64);
        STEPS.set(0);
        let segments = 3 * u64::from(window);
        while board.front().is_some() || sent < segments {
            while board.in_flight() < window {
                tick += 1;
                let now = Instant::from_nanos(tick);
                if let Some(index) = board.next_lost() {
                    let again = board.get(index).is_some_and(|record| record.has(Mark::REPEATED));
                    board.retransmit(index, now, false);
                    path.push_back((index, !by_time || again || index % 10_000 != 50));
                } else if sent < segments {
                    board.push(Scoreboard::record(1 + sent * MSS, MSS as u32, now));
                    path.push_back((sent, sent % 100 != 50));
                    sent += 1;
                } else {
                    break;
                }
            }
            let Some((index, arrives)) = path.pop_front() else { break };
            if !arrives {
                continue;
            }
            receiver.take(1 + index * MSS, 1 + (index + 1) * MSS, false);
            receiver.read(u64::MAX, &config);
            receiver.acknowledged(&config);
            let mut blocks = SackBlocks::EMPTY;
            receiver.sack_blocks(3, false, &mut blocks);
            acks += 1;
            let mut progress = Progress::default();
            blocks.as_slice().iter().for_each(|block| board.sack(*block, &mut progress));
            if receiver.nxt > nxt {
                nxt = receiver.nxt;
                board.advance(nxt, &mut progress);
            }
            if by_time {
                let newest = progress.newest.map(|newest| (newest.sent_at, newest.end()));
                board.mark_lost_by_time(|sent_at, end| match newest {
                    Some(newest) if (sent_at, end) < newest => AgeVerdict::Lost,
                    _ => AgeVerdict::Unknown,
                });
            } else {
                board.mark_lost_by_count(3);
            }
        }
        assert!(acks >= segments - segments / 100 - 200, "{acks} of {segments}");
        STEPS.get() as f64 / acks as f64
    }
}
