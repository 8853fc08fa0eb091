//! The receiving half: reassembly, acknowledgements, SACK blocks, advertised window.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Flags, Instant, ProbeTag, SackBlocks, SackRange, Segment, Snack};

use crate::{Config, DelayedAck, ReceiveWindow};

/// Replies owed to probes at one time; probes beyond this within one drain get no answer of their own.
const MAX_PROBE_REPLIES: usize = 256;

/// Ranges that may be held out of order whatever they hold, bytes of the window for each further one, and the most in any case: putting one
/// among the others takes time that grows with their number.
const MANY_RANGES: usize = 64;
const BYTES_PER_RANGE: u64 = 1024;
const MOST_RANGES: usize = 8192;

/// Assumed size of the peer's full segments before one was seen: smaller segments may just be short writes of its application.
const LEAST_FULL: u32 = 536;

/// In place of the window in the last ACK, before the first one.
const NEVER_ADVERTISED: u32 = u32::MAX;

/// Result of an arriving segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Extended the in-order stream.
    InOrder,
    /// Kept for later: something before it is missing.
    OutOfOrder,
    /// Held nothing new.
    Duplicate,
    /// Beyond the window that was advertised, or one range too many.
    OutsideWindow,
}

/// How soon an ACK must leave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum AckDue {
    #[default]
    No,
    /// When the timer says or data leaves.
    Delayed,
    Now,
}

/// The ACK and the D-SACK that are due, set aside while replies to probes leave.
pub(crate) struct Owed {
    due: AckDue,
    unacked_bytes: u32,
    dsack: Option<SackRange>,
}

/// State of the receiving half.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next sequence number expected.
    pub nxt: u64,
    /// Everything below was handed to the application.
    read_to: u64,
    /// Right edge as the peer understood it: the scale rounds up, by less than one unit, and never more than once.
    granted: u64,
    /// Right edge of the window as meant.
    edge: u64,
    /// Receive buffer in bytes.
    buffer: u64,
    /// Widest window advertised.
    widest: u64,
    /// `nxt` of the last ACK sent, and the window in it.
    last_ack: u64,
    advertised: u32,
    /// Timestamp to echo (RFC 7323 section 4.3).
    pub ts_recent: u32,
    /// Payload bytes received in order since the last ACK.
    unacked_bytes: u32,
    /// Payload bytes of the peer's full segments as far as seen, and of its last segment.
    peer_mss: u16,
    last_len: u16,
    /// Segments still to be acknowledged at once.
    quick: u16,
    /// Ranges that changed since the last ACK.
    unreported: u8,
    due: AckDue,
    /// Something went missing since this was last asked.
    opened_hole: bool,
    /// Window scale that this end announced.
    pub scale: u8,
    /// A congestion mark arrived and the sender has not yet confirmed a reduction.
    pub ecn_echo: bool,
    /// The reassembly queue may hold something to report: nearly always it does not, and need not be looked at for each ACK.
    may_report: bool,
    /// Once something arrived out of order or twice.
    queue: Option<Box<ReassemblyQueue>>,
    /// Tags of the probes to answer.
    #[expect(
        clippy::box_collection,
        reason = "most connections have none: a pointer keeps the others small"
    )]
    probes: Option<Box<VecDeque<ProbeTag>>>,
    /// Only of a best-effort connection.
    gaps: Option<Box<Gaps>>,
    /// Position of the peer's FIN, once known.
    fin_at: Option<u64>,
    tuning: Tuning,
}

/// The reassembly queue: which ranges arrived out of order, and what is to be reported of them and of duplicates.
#[derive(Debug, Default)]
struct ReassemblyQueue {
    /// Ranges held above `nxt`, in order, disjoint and not touching.
    ranges: VecDeque<SackRange>,
    /// Ranges as last reported, most recent first (RFC 2018 section 4).
    recent: [SackRange; 4],
    /// Duplicate to report once (RFC 2883).
    dsack: Option<SackRange>,
}

/// Holes of a best-effort receiver: the one that it waits for, and those that it skipped.
#[derive(Debug)]
struct Gaps {
    /// `nxt` when the present hole was first seen there, and when that was.
    waits_at: u64,
    since: Instant,
    /// Those that the application has not been told of.
    unannounced: VecDeque<SackRange>,
    /// Bytes given up that were not read yet.
    unread: u64,
}

/// Auto-tuning of the receive buffer: twice what the reader takes in a round trip (dynamic right-sizing).
#[derive(Clone, Copy, Debug, Default)]
struct Tuning {
    since: Instant,
    read_at_since: u64,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        let buffer = match config.receive_window {
            ReceiveWindow::Fixed(bytes) => bytes,
            ReceiveWindow::Auto { initial, .. } => initial,
        };
        let limit = config.receive_window.limit();
        let scale = (0..14).find(|shift| (65_535_u64 << shift) >= limit).unwrap_or(14);
        let quick = match config.delayed_ack {
            DelayedAck::Off => 0,
            DelayedAck::On { quick, .. } => quick.min(u32::from(u16::MAX)) as u16,
        };
        Self {
            nxt: 0,
            read_to: 1,
            fin_at: None,
            queue: None,
            may_report: false,
            unreported: 0,
            due: AckDue::No,
            opened_hole: false,
            unacked_bytes: 0,
            peer_mss: config.mss.min(LEAST_FULL) as u16,
            last_len: 0,
            quick,
            edge: 0,
            granted: 0,
            widest: 0,
            buffer,
            scale: if config.window_scaling { scale } else { 0 },
            ts_recent: 0,
            last_ack: 0,
            advertised: NEVER_ADVERTISED,
            ecn_echo: false,
            probes: None,
            tuning: Tuning::default(),
            gaps: None,
        }
    }

    /// Best effort was agreed on: what is missing for long may be left out.
    pub fn accept_gaps(&mut self) {
        let waits_at = u64::MAX;
        let gaps = Gaps { waits_at, since: Instant::FAR_FUTURE, unannounced: VecDeque::new(), unread: 0 };
        self.gaps = Some(Box::new(gaps));
    }

    /// Notes since when something is missing.
    #[inline]
    pub fn watch_hole(&mut self, now: Instant) {
        let Some(gaps) = &mut self.gaps else { return };
        if self.queue.as_ref().is_none_or(|queue| queue.ranges.is_empty()) {
            gaps.waits_at = u64::MAX;
        } else if gaps.waits_at != self.nxt {
            (gaps.waits_at, gaps.since) = (self.nxt, now);
        }
    }

    /// Goes on behind a hole that is `patience` old; returns its bytes, zero if there is none.
    pub fn skip_hole(&mut self, now: Instant, patience: Duration) -> u64 {
        let (Some(gaps), Some(front)) =
            (&mut self.gaps, self.queue.as_ref().and_then(|queue| queue.ranges.front()))
        else {
            return 0;
        };
        if gaps.waits_at != self.nxt || now < gaps.since + patience {
            return 0;
        }
        let missing = SackRange { start: self.nxt, end: front.start };
        let bytes = missing.end - missing.start;
        gaps.unannounced.push_back(missing);
        gaps.unread += bytes;
        self.nxt = missing.end;
        self.absorb();
        self.watch_hole(now);
        bytes
    }

    /// The next hole that the application has not been told of.
    pub fn next_gap(&mut self) -> Option<SackRange> {
        self.gaps.as_mut()?.unannounced.pop_front()
    }

    /// How many of the `bytes` just read had arrived; the others were skipped.
    pub fn present(&mut self, bytes: u64) -> u64 {
        let Some(gaps) = &mut self.gaps else { return bytes };
        let absent = gaps.unread.min(bytes);
        gaps.unread -= absent;
        bytes - absent
    }

    /// The peer's SYN arrived.
    pub fn synchronise(&mut self) {
        self.nxt = 1;
        // A SYN of ours has granted a window already.
        self.edge = self.edge.max(1);
        self.granted = self.granted.max(1);
    }

    /// Bytes in order and not yet read.
    pub fn readable(&self) -> u64 {
        let end = if self.finished() { self.nxt - 1 } else { self.nxt };
        end.saturating_sub(self.read_to)
    }

    /// The peer's FIN and everything before it arrived.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.nxt > fin)
    }

    /// Right edge of the window as the peer knows it.
    pub fn granted_edge(&self) -> u64 {
        self.granted
    }

    /// Whether a segment with this timestamp and start updates the timestamp to echo (RFC 7323 section 4.3).
    pub fn note_timestamp(&mut self, value: u32, start: u64) {
        if start <= self.last_ack {
            self.ts_recent = value;
        }
    }

    /// Whether a segment begins inside the window, or no further below it than what may have been repeated.
    pub fn is_near_window(&self, segment: &Segment) -> bool {
        segment.seq <= self.granted.max(self.nxt) && segment.seq_end() + self.widest + 1 >= self.nxt
    }

    /// Reports a duplicate in the next ACK (RFC 2883).
    fn report_duplicate(&mut self, start: u64, end: u64) {
        self.queue().dsack = Some(SackRange { start, end });
    }

    /// Reports the first part of `[start, end)` that arrived before, if there is one (RFC 2883 section 4).
    fn report_overlap(&mut self, start: u64, end: u64) {
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
        }
    }

    /// Takes `[start, end)`; the FIN, if any, is the last sequence number of it. What lies beyond the window is cut off.
    pub fn take(&mut self, start: u64, end: u64, fin: bool) -> Arrival {
        if end <= self.nxt {
            self.report_duplicate(start, end);
            return Arrival::Duplicate;
        }
        // Nothing is taken into a closed window, also no probe of it (RFC 9293, section 3.10.7.4).
        let room = self.granted.min(self.fin_at.unwrap_or(u64::MAX));
        let data_end = end - u64::from(fin);
        // A FIN takes no room. One in the middle of data that arrived already is not believed.
        let likely = self.fin_at.map_or(data_end >= self.highest(), |at| at == data_end);
        let ends = fin && data_end <= room && likely;
        let end = if ends { end } else { data_end.min(room) };
        if start >= end {
            return Arrival::OutsideWindow;
        }
        if ends {
            self.fin_at = Some(data_end);
        }
        if end <= self.nxt {
            return Arrival::Duplicate;
        }
        self.report_overlap(start, end);
        if start <= self.nxt {
            self.nxt = end;
            self.absorb();
            return Arrival::InOrder;
        }
        self.keep(SackRange { start, end })
    }

    /// Whether it is known where the peer's stream ends.
    pub fn knows_end(&self) -> bool {
        self.fin_at.is_some()
    }

    /// Takes the next piece of the stream, which ends at `end` and was expected.
    #[inline]
    pub fn extend(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Whether something is missing, and what arrived last ends at `seq`, above all else.
    #[inline]
    pub fn continues_at(&self, seq: u64) -> bool {
        self.queue.as_ref().is_some_and(|queue| {
            let last = queue.ranges.back();
            last.is_some_and(|last| last.end == seq && *last == queue.recent[0])
        })
    }

    /// Takes the piece behind that, which ends at `end`.
    #[inline]
    pub fn extend_last(&mut self, end: u64) {
        let Some(ReassemblyQueue { ranges, recent, .. }) = self.queue.as_deref_mut() else { return };
        if let Some(last) = ranges.back_mut() {
            (last.end, recent[0].end) = (end, end);
            self.unreported = self.unreported.max(1);
        }
    }

    /// Something before what arrived is missing.
    #[inline]
    pub fn has_holes(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.ranges.is_empty())
    }

    fn queue(&mut self) -> &mut ReassemblyQueue {
        self.may_report = true;
        self.queue.get_or_insert_default()
    }

    /// End of everything that arrived.
    fn highest(&self) -> u64 {
        self.queue.as_ref().and_then(|queue| queue.ranges.back()).map_or(self.nxt, |last| last.end)
    }

    /// Moves `nxt` over the ranges that it reached.
    fn absorb(&mut self) {
        let Some(ReassemblyQueue { ranges, .. }) = self.queue.as_deref_mut() else { return };
        while let Some(front) = ranges.front() {
            if front.start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(front.end);
            ranges.pop_front();
        }
    }

    /// How many ranges may be held apart from each other: as many as a stream of segments that arrive by turns needs, and not one for
    /// each byte.
    fn most_ranges(&self, end: u64) -> usize {
        let span = self.highest().max(end) - self.nxt;
        (MANY_RANGES + (span / BYTES_PER_RANGE) as usize).min(MOST_RANGES)
    }

    /// Keeps a range above `nxt`, merged with what it touches. One that touches nothing is not taken if too many are held.
    fn keep(&mut self, new: SackRange) -> Arrival {
        let mut merged = new;
        let most = self.most_ranges(new.end);
        let ReassemblyQueue { ranges, .. } = self.queue();
        let full = ranges.len() >= most;
        match ranges.back_mut() {
            None => self.open_hole(new),
            Some(last) if last.end < new.start && full => return Arrival::OutsideWindow,
            Some(last) if last.end < new.start => self.open_hole(new),
            // The usual case while a hole is open: the next segment in sequence.
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

    /// Puts a range at the head of those reported; what it swallowed leaves the list.
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

    /// SACK blocks for the next ACK, at most `room`; reports a duplicate once, first.
    #[inline]
    pub fn sack_blocks(&mut self, room: usize, dsack: bool, blocks: &mut SackBlocks) {
        if let (true, Some(queue)) = (self.may_report, &mut self.queue) {
            if let Some(duplicate) = queue.dsack.take().filter(|_| dsack) {
                blocks.push(duplicate);
            }
            queue.list_ranges(room, self.nxt, blocks);
            self.may_report = !queue.ranges.is_empty();
        }
    }

    /// Whether the next ACK is full: of what arrives before it leaves something might never be reported. A duplicate is reported once, and of
    /// ranges as many as fit beside timestamps (RFC 2018 section 3).
    pub fn reports_are_full(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.dsack.is_some()) || self.unreported >= 3
    }

    /// Estimates how large the peer's full segments are: not always as large as ours. Two of the same size in a row that do not end a
    /// write of the application are full, and so is the largest.
    #[inline]
    fn estimate_peer_mss(&mut self, len: u32, pushed: bool) {
        let len = len.min(u32::from(u16::MAX)) as u16;
        if len >= self.peer_mss || (len == self.last_len && !pushed && len > 0) {
            self.peer_mss = len;
        }
        self.last_len = len;
    }

    /// Decides how soon the arrival of a segment is acknowledged; returns the delay if a timer must run.
    pub fn schedule_ack(
        &mut self,
        arrival: Arrival,
        segment: &Segment,
        mode: DelayedAck,
    ) -> Option<Duration> {
        self.estimate_peer_mss(segment.len, segment.flags.contains(Flags::PSH));
        let DelayedAck::On { every, timer, .. } = mode else {
            self.due = AckDue::Now;
            return None;
        };
        self.unacked_bytes = self.unacked_bytes.saturating_add(segment.len);
        let gap = arrival != Arrival::InOrder || self.has_holes() || self.finished();
        if gap {
            // After a hole the sender needs its ACKs quickly again.
            self.quick = self.quick.max(2);
        }
        let full = self.unacked_bytes >= every.saturating_mul(self.peer_mss.into());
        if gap || full || self.quick > 0 || timer.is_zero() {
            self.quick = self.quick.saturating_sub(1);
            self.due = AckDue::Now;
            return None;
        }
        let start = self.due == AckDue::No;
        self.due = AckDue::Delayed;
        start.then_some(timer)
    }

    /// The same where ACKs are paced: only a new hole is worth one at once.
    pub fn pace_ack(&mut self, arrival: Arrival, delay: Duration) -> Option<Duration> {
        let opened = std::mem::take(&mut self.opened_hole) && arrival == Arrival::OutOfOrder;
        if opened || self.finished() {
            self.due = AckDue::Now;
            return None;
        }
        let start = self.due == AckDue::No;
        self.due = self.due.max(AckDue::Delayed);
        start.then_some(delay)
    }

    /// A segment came that was acknowledged before: its sender may have missed ACKs, and gets the next ones at once.
    pub fn acknowledge_at_once(&mut self, mode: DelayedAck) {
        if let DelayedAck::On { after_duplicate, .. } = mode {
            // The ACK of the duplicate itself is one of them.
            let further = after_duplicate.min(u32::from(u16::MAX)).saturating_sub(1);
            self.quick = self.quick.max(further as u16);
        }
    }

    /// The holes in blocks of `unit` bytes, if there are any.
    pub fn snack(&self, unit: u32) -> Option<Snack> {
        let ranges = &self.queue.as_ref().filter(|queue| !queue.ranges.is_empty())?.ranges;
        Snack::describe(self.nxt, unit, ranges.iter().copied())
    }

    /// Another ACK must follow when the timer says.
    pub fn owe_ack(&mut self) {
        self.due = AckDue::Delayed;
    }

    /// A duplicate that came as a probe is no news to the sender.
    pub fn forget_duplicate(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.dsack = None;
        }
    }

    pub fn ack_now(&mut self) {
        self.due = AckDue::Now;
    }

    pub fn must_ack_now(&self) -> bool {
        self.due == AckDue::Now
    }

    /// Takes away what is owed beside replies to probes, which must not stand in for it: they are the first to be dropped.
    pub fn set_aside(&mut self) -> Owed {
        let dsack = self.queue.as_mut().and_then(|queue| queue.dsack.take());
        Owed { due: self.due, unacked_bytes: self.unacked_bytes, dsack }
    }

    pub fn owe_again(&mut self, owed: Owed) {
        self.due = owed.due;
        self.unacked_bytes = owed.unacked_bytes;
        if owed.dsack.is_some() {
            self.queue().dsack = owed.dsack;
        }
    }

    /// A probe arrived and wants its own answer.
    pub fn owe_probe_reply(&mut self, tag: ProbeTag) {
        let probes = self.probes.get_or_insert_default();
        if probes.len() < MAX_PROBE_REPLIES {
            probes.push_back(tag);
        }
    }

    pub fn owes_probe_reply(&self) -> bool {
        self.probes.as_ref().is_some_and(|probes| !probes.is_empty())
    }

    pub fn next_probe_reply(&mut self) -> Option<ProbeTag> {
        self.probes.as_mut()?.pop_front()
    }

    /// An ACK leaves: nothing is owed any more. Returns the window to advertise in bytes.
    pub fn acknowledged(&mut self, config: &Config) -> u32 {
        self.due = AckDue::No;
        self.unreported = 0;
        self.unacked_bytes = 0;
        // A host that only sends repeats the same acknowledgement.
        let again = self.last_ack == self.nxt
            && self.edge == self.read_to.saturating_add(self.buffer)
            && self.advertised != NEVER_ADVERTISED;
        if !again {
            self.last_ack = self.nxt;
            self.advertised = self.advertise(config);
        }
        self.advertised
    }

    /// Advances the right edge in worthwhile steps only (silly window avoidance, RFC 9293 section 3.8.6.2.2), never back.
    fn advertise(&mut self, config: &Config) -> u32 {
        let target = self.read_to.saturating_add(self.buffer);
        let step = u64::from(config.mss).min(self.buffer / 2);
        if target >= self.edge + step {
            self.edge = target;
        }
        let unit = (1_u64 << self.scale) - 1;
        let window = ((self.edge.saturating_sub(self.nxt) + unit) >> self.scale).min(65_535) << self.scale;
        self.grant(window)
    }

    fn grant(&mut self, window: u64) -> u32 {
        self.granted = self.granted.max(self.nxt.max(1) + window);
        self.widest = self.widest.max(window);
        window as u32
    }

    /// A SYN-ACK leaves, which acknowledges the peer's SYN.
    pub fn note_acknowledged(&mut self) {
        self.last_ack = self.nxt;
    }

    /// The window of a SYN: never scaled.
    pub fn syn_window(&mut self) -> u32 {
        let window = self.buffer.min(65_535);
        self.edge = self.nxt.max(1) + window;
        self.grant(window)
    }

    /// The application takes up to `limit` bytes. True if the window opened enough that the peer must be told.
    pub fn read(&mut self, limit: u64, config: &Config) -> (u64, bool) {
        let bytes = self.readable().min(limit);
        self.read_to += bytes;
        let advertised = self.edge.saturating_sub(self.nxt);
        let possible = self.read_to.saturating_add(self.buffer).saturating_sub(self.nxt);
        // Tell a peer that was nearly stopped; others learn it from the next ACK.
        let starved =
            advertised < u64::from(config.mss) && possible >= u64::from(config.mss).min(self.buffer / 2);
        (bytes, bytes > 0 && starved)
    }

    /// Grows an auto-tuned buffer once per round trip.
    pub fn tune(&mut self, now: Instant, rtt: Duration, config: &Config) {
        let ReceiveWindow::Auto { limit, .. } = config.receive_window else { return };
        if self.buffer >= limit || now.since(self.tuning.since) < rtt {
            return;
        }
        let taken = self.read_to - self.tuning.read_at_since;
        if self.tuning.read_at_since > 0 {
            // Twice the last round trip lets slow start double; the sum keeps one more window in reserve.
            self.buffer = self.buffer.max(taken.saturating_mul(4)).min(limit);
        }
        self.tuning = Tuning { since: now, read_at_since: self.read_to };
    }

    /// Bytes on the heap, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let queue = self.queue.as_ref();
        queue.map_or(0, |queue| size_of_val(&**queue) + queue.ranges.capacity() * size_of::<SackRange>())
            + self.probes.as_ref().map_or(0, |probes| probes.capacity() * size_of::<ProbeTag>())
    }
}

impl ReassemblyQueue {
    /// Adds the ranges that an ACK of everything before `nxt` reports, until there are `room` blocks.
    fn list_ranges(&self, room: usize, nxt: u64, blocks: &mut SackBlocks) {
        for &range in &self.recent {
            if range.start > nxt && blocks.len() < room {
                blocks.push(range);
            }
        }
    }
}

/// Puts a range at its place among `ranges`, merged with those that it touches.
fn merge_at(ranges: &mut VecDeque<SackRange>, at: usize, mut merged: SackRange) -> SackRange {
    while let Some(range) = ranges.get(at).copied().filter(|range| range.start <= merged.end) {
        merged = SackRange { start: merged.start.min(range.start), end: merged.end.max(range.end) };
        ranges.remove(at);
    }
    ranges.insert(at, merged);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        let config = Config { receive_window: ReceiveWindow::Fixed(100_000), ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.synchronise();
        receiver.acknowledged(&config);
        receiver
    }

    fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
        let mut blocks = SackBlocks::EMPTY;
        receiver.sack_blocks(4, true, &mut blocks);
        blocks.as_slice().iter().map(|block| (block.start, block.end)).collect()
    }

    /// Who takes several segments before it answers must know when to stop.
    #[test]
    fn an_ack_is_full_when_another_range_would_push_one_out() {
        let mut receiver = receiver();
        let config = Config::default();
        for (start, full) in [(1001, false), (2001, false), (4001, false), (5001, false), (7001, true)] {
            receiver.take(start, start + 1000, false);
            assert_eq!(receiver.reports_are_full(), full, "{start}");
        }
        receiver.acknowledged(&config);
        assert!(!receiver.reports_are_full());
        receiver.take(8001, 9001, false);
        receiver.take(9001, 10_001, false);
        assert!(!receiver.reports_are_full(), "one range, longer");
        receiver.take(1001, 2001, false);
        assert!(receiver.reports_are_full(), "a duplicate is told once");
    }

    /// RFC 2018 section 8, case 2 in spirit: every other segment is lost; the most recent block comes first.
    #[test]
    fn most_recent_block_first() {
        let mut receiver = receiver();
        for start in [1001, 3001, 5001] {
            assert_eq!(receiver.take(start, start + 1000, false), Arrival::OutOfOrder);
        }
        assert_eq!(blocks(&mut receiver), [(5001, 6001), (3001, 4001), (1001, 2001)]);
        assert_eq!(receiver.take(2001, 3001, false), Arrival::OutOfOrder);
        assert_eq!(blocks(&mut receiver), [(1001, 4001), (5001, 6001)]);
        assert_eq!(receiver.take(1, 1001, false), Arrival::InOrder);
        assert_eq!(receiver.nxt, 4001);
        assert_eq!(blocks(&mut receiver), [(5001, 6001)]);
    }

    /// The fast path beyond a hole does what the slow path does.
    #[test]
    fn what_goes_on_behind_the_last_arrival_is_reported_as_any_other() {
        let (mut long, mut short) = (receiver(), receiver());
        for receiver in [&mut long, &mut short] {
            for start in [1001, 5001, 2001, 8001] {
                receiver.take(start, start + 1000, false);
                assert_eq!(receiver.continues_at(start + 1000), start != 2001, "{start}");
            }
            assert!(!receiver.continues_at(3001) && !receiver.continues_at(8001));
        }
        assert_eq!(long.take(9001, 10_001, false), Arrival::OutOfOrder);
        short.extend_last(10_001);
        assert_eq!(blocks(&mut long), [(8001, 10_001), (1001, 3001), (5001, 6001)]);
        assert_eq!(blocks(&mut short), [(8001, 10_001), (1001, 3001), (5001, 6001)]);
        for receiver in [&mut long, &mut short] {
            assert!(receiver.continues_at(10_001));
            receiver.take(1, 1001, false);
            receiver.take(3001, 5001, false);
            receiver.take(6001, 8001, false);
            assert_eq!(receiver.nxt, 10_001);
        }
    }

    #[test]
    fn duplicates_are_reported_once() {
        let mut receiver = receiver();
        receiver.take(1, 1001, false);
        assert_eq!(receiver.take(1, 1001, false), Arrival::Duplicate);
        assert_eq!(blocks(&mut receiver), [(1, 1001)]);
        assert_eq!(blocks(&mut receiver), []);
    }

    #[test]
    fn the_fin_is_not_data() {
        let mut receiver = receiver();
        receiver.take(1, 502, true);
        assert!(receiver.finished());
        assert_eq!(receiver.readable(), 500);
    }

    #[test]
    fn the_right_edge_never_retreats() {
        let config = Config { receive_window: ReceiveWindow::Fixed(3000), mss: 1000, ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.synchronise();
        assert_eq!(receiver.acknowledged(&config), 3000);
        receiver.take(1, 3001, false);
        assert_eq!(receiver.acknowledged(&config), 0);
        assert_eq!(
            receiver.take(3001, 3002, false),
            Arrival::OutsideWindow,
            "a probe of a closed window is not taken"
        );
        let (bytes, tell) = receiver.read(3001, &config);
        assert_eq!((bytes, tell), (3000, true));
        assert_eq!(receiver.acknowledged(&config), 3000);
    }
}
