//! Timing and content of ACKs: delayed and paced ACKs, SACK blocks, SNACK, replies to probes.

use bentpipe_base::{Duration, Flags, ProbeTag, SackBlocks, SackRange, Segment, Snack};

use super::{AckDue, Arrival, Receiver};
use crate::DelayedAck;

/// Maximum number of probes that wait for a reply (chosen: above the arrivals before a driver polls). Further ones get none.
const MAX_PROBE_REPLIES: usize = 256;

/// Pending ACK and D-SACK, set aside while replies to probes leave.
pub(crate) struct Owed {
    due: AckDue,
    unacked_bytes: u32,
    dsack: Option<SackRange>,
}

impl Receiver {
    /// Adds SACK blocks for the next ACK, at most `room`. A duplicate is reported once, as the first block.
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

    /// True if the next ACK has no room for a further range or duplicate. A duplicate is reported once, and with timestamps an
    /// ACK holds three ranges (RFC 2018 section 3). Excess reports could be lost forever.
    pub fn reports_are_full(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.dsack.is_some()) || self.unreported >= 3
    }

    /// Estimates the peer's full segment size, which may be below this end's. Two consecutive segments of equal size are full
    /// unless they end a write of the application. The largest segment is also full.
    #[inline]
    fn estimate_peer_mss(&mut self, len: u32, pushed: bool) {
        let len = len.min(u32::from(u16::MAX)) as u16;
        if len >= self.peer_mss || (len == self.last_len && !pushed && len > 0) {
            self.peer_mss = len;
        }
        self.last_len = len;
    }

    /// Decides the delay of a segment's acknowledgement. Returns it if a timer must run.
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
            // After a hole the sender needs its ACKs without delay again.
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

    /// As `schedule_ack` for paced ACKs: only a new hole and the end of the stream are acknowledged at once.
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

    /// Handles a segment that had been acknowledged: its sender may have missed ACKs, so the next segments are acknowledged at
    /// once.
    pub fn acknowledge_at_once(&mut self, mode: DelayedAck) {
        if let DelayedAck::On { after_duplicate, .. } = mode {
            // The ACK of the duplicate itself counts.
            let further = after_duplicate.min(u32::from(u16::MAX)).saturating_sub(1);
            self.quick = self.quick.max(further as u16);
        }
    }

    /// Returns the holes in blocks of `unit` bytes, if there are any.
    pub fn snack(&self, unit: u32) -> Option<Snack> {
        let ranges = &self.queue.as_ref().filter(|queue| !queue.ranges.is_empty())?.ranges;
        Snack::describe(self.nxt, unit, ranges.iter().copied())
    }

    /// Requests a further ACK when the timer expires.
    pub fn owe_ack(&mut self) {
        self.due = AckDue::Delayed;
    }

    /// Drops the report of the last duplicate, which was a probe.
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

    /// Sets the pending ACK and report aside while a reply to a probe leaves. Routers drop replies first, so the reply must not
    /// replace the ACK.
    pub fn set_aside(&mut self) -> Owed {
        let dsack = self.queue.as_mut().and_then(|queue| queue.dsack.take());
        Owed { due: self.due, unacked_bytes: self.unacked_bytes, dsack }
    }

    /// Restores the pending ACK and report.
    pub fn owe_again(&mut self, owed: Owed) {
        self.due = owed.due;
        self.unacked_bytes = owed.unacked_bytes;
        if owed.dsack.is_some() {
            self.queue().dsack = owed.dsack;
        }
    }

    /// Records a probe, which gets a separate reply.
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
}
