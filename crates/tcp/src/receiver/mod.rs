//! Receiving half: reassembly, acknowledgements, SACK blocks, advertised window.

mod acks;
mod best_effort;
mod gaps;
mod out_of_order;
mod reassembly;
#[cfg(test)]
mod tests;
mod window;

use std::collections::VecDeque;
use std::num::NonZeroU64;

use bentpipe_base::{Instant, ProbeTag, SackRange, Segment};

use crate::{Config, DelayedAck, ReceiveWindow};
use gaps::Gaps;
use reassembly::ReassemblyQueue;

/// Assumed full segment size of the peer before one was seen, by RFC 9293 section 3.7.1. Smaller segments may be short writes of
/// its application.
const LEAST_FULL: u32 = 536;

/// Placeholder for the window of the last ACK before the first ACK.
const NEVER_ADVERTISED: u32 = u32::MAX;

/// Content of an arriving segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Next data of the stream.
    InOrder,
    /// Data after a hole.
    OutOfOrder,
    /// Only data received before.
    Duplicate,
    /// Rejected data: beyond the advertised window, or one range too many.
    OutsideWindow,
}

/// Urgency of an ACK.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum AckDue {
    #[default]
    No,
    /// With the next departing data, or when the timer expires.
    Delayed,
    Now,
}

/// State of the receiving half.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next sequence number expected.
    pub nxt: u64,
    /// Position below which all data was delivered to the application.
    read_to: u64,
    /// Right edge as the peer computes it from the window field: less than one unit of the window scale beyond `edge`.
    granted: u64,
    /// Right edge of the intended window.
    edge: u64,
    /// Receive buffer in bytes.
    buffer: u64,
    /// Largest window advertised.
    widest: u64,
    /// `nxt` in the last ACK sent. `advertised` is the window in it.
    last_ack: u64,
    advertised: u32,
    /// Timestamp to echo (RFC 7323 section 4.3).
    pub ts_recent: u32,
    /// Payload bytes received in order since the last ACK.
    unacked_bytes: u32,
    /// Estimated payload bytes of the peer's full segments. `last_len` is the length of its last segment.
    peer_mss: u16,
    last_len: u16,
    /// Number of segments still to be acknowledged at once.
    quick: u16,
    /// Number of ranges that changed since the last ACK.
    unreported: u8,
    due: AckDue,
    /// True if a hole was opened since the last query of [`Receiver::pace_ack`].
    opened_hole: bool,
    /// Window scale that this end announced.
    pub scale: u8,
    /// True if the reassembly queue may hold something to report; usually false, so that it is not read for each ACK.
    may_report: bool,
    /// Present after a segment arrived out of order or twice.
    queue: Option<Box<ReassemblyQueue>>,
    /// Tags of the probes to answer.
    #[expect(
        clippy::box_collection,
        reason = "most connections have none: a pointer keeps the others small"
    )]
    probes: Option<Box<VecDeque<ProbeTag>>>,
    /// Present if best effort was agreed on.
    gaps: Option<Box<Gaps>>,
    /// Position of the peer's FIN, once known; it follows the SYN.
    fin_at: Option<NonZeroU64>,
    tuning: Tuning,
}

/// Auto-tuning of the receive buffer by the bytes read per round trip (dynamic right-sizing).
#[derive(Clone, Copy, Debug, Default)]
struct Tuning {
    since: Instant,
    read_at_since: u64,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        let buffer = match config.receiver.receive_window {
            ReceiveWindow::Fixed(bytes) => bytes,
            ReceiveWindow::Auto { initial, .. } => initial,
        };
        let limit = config.receiver.receive_window.limit();
        let scale = (0..14).find(|shift| (65_535_u64 << shift) >= limit).unwrap_or(14);
        let quick = match config.receiver.delayed_ack {
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
            probes: None,
            tuning: Tuning::default(),
            gaps: None,
        }
    }

    /// Handles the peer's SYN.
    pub fn synchronise(&mut self) {
        self.nxt = 1;
        // A SYN of this end has already granted a window.
        self.edge = self.edge.max(1);
        self.granted = self.granted.max(1);
    }

    /// Returns the unread in-order bytes.
    pub fn readable(&self) -> u64 {
        let end = if self.finished() { self.nxt - 1 } else { self.nxt };
        end.saturating_sub(self.read_to)
    }

    /// True if the peer's FIN and everything before it has arrived.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.nxt > fin.get())
    }

    /// Returns the right edge of the window as the peer knows it.
    pub fn granted_edge(&self) -> u64 {
        self.granted
    }

    /// Updates the timestamp to echo from a segment that begins no later than the last ACK (RFC 7323 section 4.3).
    pub fn note_timestamp(&mut self, value: u32, start: u64) {
        if start <= self.last_ack {
            self.ts_recent = value;
        }
    }

    /// True if a segment begins in the window, or below it by at most the largest window: it may be a retransmission.
    pub fn is_near_window(&self, segment: &Segment) -> bool {
        segment.seq <= self.granted.max(self.nxt) && segment.seq_end() + self.widest + 1 >= self.nxt
    }

    /// Handles data `[start, end)`; a FIN is its last sequence number. Data beyond the window is cut off.
    pub fn take(&mut self, start: u64, end: u64, fin: bool) -> Arrival {
        if end <= self.nxt {
            self.report_duplicate(start, end);
            return Arrival::Duplicate;
        }
        // A closed window accepts nothing, not even a window probe (RFC 9293 section 3.10.7.4).
        let room = self.granted.min(self.fin_at.map_or(u64::MAX, NonZeroU64::get));
        let data_end = end - u64::from(fin);
        // A FIN needs no room in the window. A FIN within data that has arrived is ignored.
        let likely = self.fin_at.map_or(data_end >= self.highest(), |at| at.get() == data_end);
        let ends = fin && data_end <= room && likely;
        let end = if ends { end } else { data_end.min(room) };
        if start >= end {
            return Arrival::OutsideWindow;
        }
        if ends {
            self.fin_at = NonZeroU64::new(data_end);
        }
        if end <= self.nxt {
            return Arrival::Duplicate;
        }
        self.report_overlap(start, end);
        if start <= self.nxt {
            self.nxt = end;
            self.absorb();
            self.check();
            return Arrival::InOrder;
        }
        let arrival = self.keep(SackRange { start, end });
        self.check();
        arrival
    }

    /// Invariants: the application has read no more than arrived, only a FIN may lie beyond the granted window, and a hole is
    /// before the first range of the queue.
    fn check(&self) {
        debug_assert!(self.read_to <= self.nxt, "read to {}, of {}", self.read_to, self.nxt);
        debug_assert!(
            self.nxt <= self.granted + u64::from(self.fin_at.is_some()),
            "beyond the granted window"
        );
        let first = self.queue.as_ref().and_then(|queue| queue.ranges.front());
        debug_assert!(first.is_none_or(|first| self.nxt < first.start), "no hole before {first:?}");
    }

    /// True if the end of the peer's stream is known.
    pub fn knows_end(&self) -> bool {
        self.fin_at.is_some()
    }

    /// Handles the next data of the stream, which ends at `end`.
    #[inline]
    pub fn extend(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Returns the heap memory in bytes, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let queue = self.queue.as_ref();
        queue.map_or(0, |queue| size_of_val(&**queue) + queue.ranges.capacity() * size_of::<SackRange>())
            + self.probes.as_ref().map_or(0, |probes| probes.capacity() * size_of::<ProbeTag>())
    }
}
