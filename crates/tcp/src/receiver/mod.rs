//! The receiving half: reassembly, acknowledgements, SACK blocks, advertised window.

mod acks;
mod best_effort;
mod gaps;
mod out_of_order;
mod reassembly;
#[cfg(test)]
mod tests;
mod window;

use std::collections::VecDeque;

use bentpipe_base::{Instant, ProbeTag, SackRange, Segment};

use crate::{Config, DelayedAck, ReceiveWindow};
use gaps::Gaps;
use reassembly::ReassemblyQueue;

/// Assumed size of the peer's full segments before one was seen, the default of RFC 9293 section 3.7.1. Smaller segments may be short
/// writes of its application.
const LEAST_FULL: u32 = 536;

/// Stands for the window of the last ACK before the first ACK has left.
const NEVER_ADVERTISED: u32 = u32::MAX;

/// What an arriving segment held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The next data of the stream.
    InOrder,
    /// Data that wait until what is missing before them arrives.
    OutOfOrder,
    /// Nothing new.
    Duplicate,
    /// Nothing that is accepted: it lies beyond the advertised window, or would be one range too many.
    OutsideWindow,
}

/// How soon an ACK must leave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum AckDue {
    #[default]
    No,
    /// With the next data that leave, or when the timer expires.
    Delayed,
    Now,
}

/// State of the receiving half.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next sequence number expected.
    pub nxt: u64,
    /// Everything below was handed to the application.
    read_to: u64,
    /// Right edge as the peer computes it from the window field: less than one unit of the window scale beyond the one that is meant.
    granted: u64,
    /// Right edge of the window that is meant.
    edge: u64,
    /// Receive buffer in bytes.
    buffer: u64,
    /// Widest window advertised.
    widest: u64,
    /// `nxt` in the last ACK sent. `advertised` is the window in it.
    last_ack: u64,
    advertised: u32,
    /// Timestamp to echo (RFC 7323 section 4.3).
    pub ts_recent: u32,
    /// Payload bytes received in order since the last ACK.
    unacked_bytes: u32,
    /// Payload bytes of the peer's full segments as estimated. `last_len` are those of its last segment.
    peer_mss: u16,
    last_len: u16,
    /// Segments still to be acknowledged at once.
    quick: u16,
    /// Ranges that changed since the last ACK.
    unreported: u8,
    due: AckDue,
    /// A hole was opened since [`Receiver::pace_ack`] last asked.
    opened_hole: bool,
    /// Window scale that this end announced.
    pub scale: u8,
    /// A congestion mark arrived and the sender has not yet confirmed a reduction.
    pub ecn_echo: bool,
    /// The reassembly queue may hold something to report. Usually it does not, and is then not read for each ACK.
    may_report: bool,
    /// Present once a segment has arrived out of order or twice.
    queue: Option<Box<ReassemblyQueue>>,
    /// Tags of the probes to answer.
    #[expect(
        clippy::box_collection,
        reason = "most connections have none: a pointer keeps the others small"
    )]
    probes: Option<Box<VecDeque<ProbeTag>>>,
    /// Present if best effort was agreed on.
    gaps: Option<Box<Gaps>>,
    /// Position of the peer's FIN, once known.
    fin_at: Option<u64>,
    tuning: Tuning,
}

/// Auto-tuning of the receive buffer by what the application reads in a round trip (dynamic right-sizing).
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

    /// Updates the timestamp to echo by that of a segment, if the segment begins no later than the last ACK (RFC 7323 section 4.3).
    pub fn note_timestamp(&mut self, value: u32, start: u64) {
        if start <= self.last_ack {
            self.ts_recent = value;
        }
    }

    /// Whether a segment begins in the window, or below it by no more than the widest window: it may be a retransmission.
    pub fn is_near_window(&self, segment: &Segment) -> bool {
        segment.seq <= self.granted.max(self.nxt) && segment.seq_end() + self.widest + 1 >= self.nxt
    }

    /// Takes `[start, end)`; the FIN, if any, is its last sequence number. Data beyond the window are cut off.
    pub fn take(&mut self, start: u64, end: u64, fin: bool) -> Arrival {
        if end <= self.nxt {
            self.report_duplicate(start, end);
            return Arrival::Duplicate;
        }
        // A closed window takes nothing, not even a window probe (RFC 9293 section 3.10.7.4).
        let room = self.granted.min(self.fin_at.unwrap_or(u64::MAX));
        let data_end = end - u64::from(fin);
        // A FIN needs no room in the window. A FIN in the middle of data that have arrived is not believed.
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

    /// Takes the next data of the stream, which end at `end`.
    #[inline]
    pub fn extend(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Bytes on the heap, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let queue = self.queue.as_ref();
        queue.map_or(0, |queue| size_of_val(&**queue) + queue.ranges.capacity() * size_of::<SackRange>())
            + self.probes.as_ref().map_or(0, |probes| probes.capacity() * size_of::<ProbeTag>())
    }
}
