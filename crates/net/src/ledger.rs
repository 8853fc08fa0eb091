use std::collections::VecDeque;

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;
use serde::Serialize;

use crate::packet::Packet;
use crate::queue::backlog::Backlog;

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
    /// Packets lost to the access scheme of a shared medium; always zero on other links.
    pub dropped_by_access: u64,
    /// Packets marked "congestion experienced" (RFC 3168).
    pub marked_packets: u64,
    /// Parity packets sent, which are not counted above.
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

/// What the queue said to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits or is being sent. It may still be dropped later.
    Accepted,
    /// It was refused; [`Link::poll_dropped`](crate::Link::poll_dropped) hands it back.
    Dropped(DropCause),
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

/// The counters of a link, and the dropped packets that the driver has not fetched yet.
///
/// On most links of a world packets only pass. What is counted then lies here; the rest is allocated when it is first needed.
#[derive(Clone, Debug)]
// The counters of passed packets are not adjacent: they would be updated by one wide access, which on many links spans two cache lines
// and is slower where all packets pass the same link.
#[repr(C)]
pub(crate) struct Ledger<P> {
    /// Packets that were offered and arrived at once.
    passed_packets: u64,
    /// Most that waited at once.
    most_waiting: Backlog,
    /// Bytes of those that passed.
    passed_bytes: u64,
    rest: Option<Box<Rest<P>>>,
}

#[derive(Clone, Debug)]
struct Rest<P> {
    /// Without the packets that passed.
    stats: LinkStats,
    dropped: VecDeque<Dropped<P>>,
}

impl<P: Packet> Ledger<P> {
    pub fn new() -> Self {
        Self { passed_packets: 0, passed_bytes: 0, most_waiting: Backlog::default(), rest: None }
    }

    /// All counters.
    pub fn stats(&self) -> LinkStats {
        let rest = self.rest.as_ref().map_or_else(LinkStats::default, |rest| rest.stats);
        LinkStats {
            enqueued_packets: rest.enqueued_packets + self.passed_packets,
            enqueued_bytes: rest.enqueued_bytes + self.passed_bytes,
            delivered_packets: rest.delivered_packets + self.passed_packets,
            delivered_bytes: rest.delivered_bytes + self.passed_bytes,
            max_waiting_packets: self.most_waiting.packets,
            max_waiting_bytes: self.most_waiting.bytes,
            ..rest
        }
    }

    /// The counters of what did not pass.
    #[inline]
    pub fn stats_mut(&mut self) -> &mut LinkStats {
        &mut self.rest().stats
    }

    #[inline]
    fn rest(&mut self) -> &mut Rest<P> {
        self.rest
            .get_or_insert_with(|| Box::new(Rest { stats: LinkStats::default(), dropped: VecDeque::new() }))
    }

    /// The oldest dropped packet that was not fetched yet.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.rest.as_mut()?.dropped.pop_front()
    }

    /// Whether there is one.
    #[inline(always)]
    pub fn has_dropped(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.dropped.is_empty())
    }

    /// Counts a packet that is offered and known to arrive.
    #[inline]
    pub fn count_passage(&mut self, packet: &P) {
        self.passed_packets += 1;
        self.passed_bytes += u64::from(packet.size());
    }

    /// Counts a dropped packet and keeps it for the driver.
    pub fn drop_packet(&mut self, packet: P, cause: DropCause, at: Instant) {
        let rest = self.rest();
        rest.stats.count_drop(cause);
        rest.dropped.push_back(Dropped { packet, cause, at });
    }

    /// Drops a packet that arrives at the queue.
    pub fn refuse(&mut self, packet: P, cause: DropCause, at: Instant) -> Verdict {
        self.drop_packet(packet, cause, at);
        Verdict::Dropped(cause)
    }

    /// Counts a packet that is offered.
    #[inline]
    pub fn count_offer(&mut self, packet: &P) {
        let stats = self.stats_mut();
        stats.enqueued_packets += 1;
        stats.enqueued_bytes += u64::from(packet.size());
    }

    /// Counts an arrival at the far end.
    #[inline]
    pub fn count_delivery(&mut self, packet: &P) {
        let stats = self.stats_mut();
        stats.delivered_packets += 1;
        stats.delivered_bytes += u64::from(packet.size());
    }

    /// Notes the backlog after an arrival.
    #[inline]
    pub fn note_backlog(&mut self, backlog: Backlog) {
        self.most_waiting.packets = self.most_waiting.packets.max(backlog.packets);
        self.most_waiting.bytes = self.most_waiting.bytes.max(backlog.bytes);
    }
}
