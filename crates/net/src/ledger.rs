use std::collections::VecDeque;

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;
use serde::Serialize;

use crate::Packet;
use crate::queue::Backlog;

/// What a link counts. At any time
/// `enqueued_packets + duplicated_packets = delivered_packets + dropped_packets() + packets still inside`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// Packets offered to the link, accepted or not.
    pub enqueued_packets: u64,
    /// Bytes offered to the link, accepted or not.
    pub enqueued_bytes: u64,
    /// Packets that arrived, copies included.
    pub delivered_packets: u64,
    /// Bytes that arrived, copies included.
    pub delivered_bytes: u64,
    /// Second arrivals made by duplication.
    pub duplicated_packets: u64,
    /// Packets that arrived with a bit flipped. Those that have no bytes count as lost to errors.
    pub corrupted_packets: u64,
    /// Packets without room in the queue, or chosen by active queue management.
    pub dropped_by_queue: u64,
    /// Low-priority packets refused or pushed out.
    pub dropped_low_priority: u64,
    /// Packets lost to transmission errors.
    pub dropped_by_error: u64,
    /// Packets lost to an outage.
    pub dropped_by_outage: u64,
    /// Packets that a shared medium let not through; always zero on a link of its own.
    pub dropped_by_access: u64,
    /// Packets marked "congestion experienced" (RFC 3168).
    pub marked_packets: u64,
    /// Packets of parity sent, which are none of those above.
    pub parity_packets: u64,
    /// Packets that arrived because parity restored them.
    pub repaired_packets: u64,
    /// Most packets that waited at once.
    pub max_waiting_packets: u32,
    /// Most bytes that waited at once.
    pub max_waiting_bytes: u64,
}

impl LinkStats {
    /// Packets dropped for any cause.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_by_queue
            + self.dropped_low_priority
            + self.dropped_by_error
            + self.dropped_by_outage
            + self.dropped_by_access
    }

    /// Counts a packet that will not arrive.
    pub fn count_drop(&mut self, cause: DropCause) {
        let count = match cause {
            DropCause::Queue => &mut self.dropped_by_queue,
            DropCause::LowPriority => &mut self.dropped_low_priority,
            DropCause::Error => &mut self.dropped_by_error,
            DropCause::Outage => &mut self.dropped_by_outage,
            DropCause::Access => &mut self.dropped_by_access,
        };
        *count += 1;
    }
}

/// A packet that will not arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped<P> {
    /// The packet, to be released by the driver.
    pub packet: P,
    /// Why.
    pub cause: DropCause,
    /// When. This may lie before the time at which the link reported it: queues decide when the link is next touched.
    pub at: Instant,
}

/// The books of a link: its counters, and the dropped packets that the driver has not fetched yet.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<P> {
    /// Without the packets that passed.
    pub stats: LinkStats,
    /// Packets that were offered and arrived at once, and their bytes.
    passed_packets: u64,
    passed_bytes: u64,
    pub dropped: VecDeque<Dropped<P>>,
}

impl<P: Packet> Ledger<P> {
    pub fn new() -> Self {
        let stats = LinkStats::default();
        Self { stats, passed_packets: 0, passed_bytes: 0, dropped: VecDeque::new() }
    }

    /// All counters.
    pub fn stats(&self) -> LinkStats {
        LinkStats {
            enqueued_packets: self.stats.enqueued_packets + self.passed_packets,
            enqueued_bytes: self.stats.enqueued_bytes + self.passed_bytes,
            delivered_packets: self.stats.delivered_packets + self.passed_packets,
            delivered_bytes: self.stats.delivered_bytes + self.passed_bytes,
            ..self.stats
        }
    }

    /// Books a packet that is offered and known to arrive.
    #[inline]
    pub fn count_passage(&mut self, packet: &P) {
        self.passed_packets += 1;
        self.passed_bytes += u64::from(packet.size());
    }

    /// Books a dropped packet and keeps it for the driver.
    pub fn drop_packet(&mut self, packet: P, cause: DropCause, at: Instant) {
        self.stats.count_drop(cause);
        self.dropped.push_back(Dropped { packet, cause, at });
    }

    /// Books a packet that is offered.
    #[inline]
    pub fn count_offer(&mut self, packet: &P) {
        self.stats.enqueued_packets += 1;
        self.stats.enqueued_bytes += u64::from(packet.size());
    }

    /// Books an arrival at the far end.
    #[inline]
    pub fn count_delivery(&mut self, packet: &P) {
        self.stats.delivered_packets += 1;
        self.stats.delivered_bytes += u64::from(packet.size());
    }

    /// Books the backlog after an arrival.
    #[inline]
    pub fn note_backlog(&mut self, backlog: Backlog) {
        self.stats.max_waiting_packets = self.stats.max_waiting_packets.max(backlog.packets);
        self.stats.max_waiting_bytes = self.stats.max_waiting_bytes.max(backlog.bytes);
    }
}
