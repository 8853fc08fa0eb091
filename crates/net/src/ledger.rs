use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;
use serde::Serialize;

use crate::packet::Packet;
use crate::queue::backlog::Backlog;

/// Counters of a link. At any time `enqueued_packets + duplicated_packets = delivered_packets + dropped_packets() + packets still
/// inside`.
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
    /// Packets that arrived with a flipped bit. Those without bytes count as lost to errors.
    pub corrupted_packets: u64,
    /// Packets dropped for lack of room, or by active queue management.
    pub dropped_by_queue: u64,
    /// Low-priority packets refused or pushed out.
    pub dropped_low_priority: u64,
    /// Packets lost to transmission errors.
    pub dropped_by_error: u64,
    /// Packets lost to an outage.
    pub dropped_by_outage: u64,
    /// Packets lost by the access scheme of a shared medium; zero on other links.
    pub dropped_by_access: u64,
    /// Packets marked "congestion experienced" (RFC 3168).
    pub marked_packets: u64,
    /// Parity packets sent, not included above.
    pub parity_packets: u64,
    /// Packets that arrived because parity restored them.
    pub repaired_packets: u64,
    /// Maximum number of packets queued.
    pub max_waiting_packets: u32,
    /// Maximum number of bytes queued.
    pub max_waiting_bytes: u64,
    /// Sum of the times that packets waited in the queue.
    pub waited: Duration,
}

impl LinkStats {
    /// Returns the packets dropped for any cause.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_by_queue
            + self.dropped_low_priority
            + self.dropped_by_error
            + self.dropped_by_outage
            + self.dropped_by_access
    }

    /// Returns the mean time in the queue of a transmitted packet; `None` without any.
    pub fn mean_wait(&self) -> Option<Duration> {
        let sent = self.transmitted_packets();
        (sent > 0).then(|| self.waited / sent)
    }

    /// Returns the packets that the queue did not drop.
    pub fn transmitted_packets(&self) -> u64 {
        self.enqueued_packets - self.dropped_by_queue - self.dropped_low_priority
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

/// Decision of the queue on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet is queued or being sent. It may still be dropped later.
    Accepted,
    /// The packet was refused; [`Link::poll_dropped`](crate::Link::poll_dropped) returns it.
    Dropped(DropCause),
}

/// Packet that will not arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped<P> {
    /// The packet, which the driver must release.
    pub packet: P,
    /// Cause of the drop.
    pub cause: DropCause,
    /// Time of the drop. It may precede the report, because queues decide at the link's next call.
    pub at: Instant,
}

/// Counters of a link, and dropped packets that the driver has not fetched yet.
///
/// On most links of a world packets only pass. Their counters are stored here; the others are allocated at their first use.
#[derive(Clone, Debug)]
// The counters of passed packets are not adjacent. Otherwise one wide access would update them, which often spans two cache lines
// and is slower when all packets pass the same link.
#[repr(C)]
pub(crate) struct Ledger<P> {
    /// Packets that were offered and arrived at once.
    passed_packets: u64,
    /// Maximum backlog of the queue.
    most_waiting: Backlog,
    /// Bytes of the packets that passed.
    passed_bytes: u64,
    rest: Option<Box<Rest<P>>>,
    /// Sum of the times in the queue.
    waited: Duration,
    /// Time until which a queue with waiting packets has been observed.
    observed_until: Instant,
}

#[derive(Clone, Debug)]
struct Rest<P> {
    /// Other counters, without the packets that passed.
    stats: LinkStats,
    dropped: VecDeque<Dropped<P>>,
}

impl<P: Packet> Ledger<P> {
    pub fn new() -> Self {
        Self {
            passed_packets: 0,
            passed_bytes: 0,
            most_waiting: Backlog::default(),
            rest: None,
            waited: Duration::ZERO,
            observed_until: Instant::ZERO,
        }
    }

    /// Returns all counters.
    pub fn stats(&self) -> LinkStats {
        let rest = self.rest.as_ref().map_or_else(LinkStats::default, |rest| rest.stats);
        LinkStats {
            enqueued_packets: rest.enqueued_packets + self.passed_packets,
            enqueued_bytes: rest.enqueued_bytes + self.passed_bytes,
            delivered_packets: rest.delivered_packets + self.passed_packets,
            delivered_bytes: rest.delivered_bytes + self.passed_bytes,
            max_waiting_packets: self.most_waiting.packets,
            max_waiting_bytes: self.most_waiting.bytes,
            waited: self.waited,
            ..rest
        }
    }

    /// Returns the counters of packets that did not pass.
    #[inline]
    pub fn stats_mut(&mut self) -> &mut LinkStats {
        &mut self.rest().stats
    }

    #[inline]
    fn rest(&mut self) -> &mut Rest<P> {
        self.rest
            .get_or_insert_with(|| Box::new(Rest { stats: LinkStats::default(), dropped: VecDeque::new() }))
    }

    /// Returns the oldest dropped packet not yet fetched.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.rest.as_mut()?.dropped.pop_front()
    }

    /// True if there is a dropped packet to fetch.
    #[inline(always)]
    pub fn has_dropped(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.dropped.is_empty())
    }

    /// Counts an offered packet that is known to arrive.
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

    /// Marks a packet instead of dropping it, and counts the mark. Only for ECN-capable packets.
    pub fn mark(&mut self, packet: &mut P) {
        packet.mark_congested();
        self.stats_mut().marked_packets += 1;
    }

    /// Drops a packet that arrives at the queue.
    pub fn refuse(&mut self, packet: P, cause: DropCause, at: Instant) -> Verdict {
        self.drop_packet(packet, cause, at);
        Verdict::Dropped(cause)
    }

    /// Counts an offered packet.
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

    /// Records the time that a packet will wait.
    #[inline]
    pub fn note_wait(&mut self, wait: Duration) {
        self.waited += wait;
    }

    /// Records that `packets` packets waited from the previous call until `now`.
    #[inline]
    pub fn note_waiting(&mut self, packets: u32, now: Instant) {
        if packets > 0 {
            self.waited += now.since(self.observed_until) * u64::from(packets);
        }
        self.observed_until = now;
    }

    /// Records the backlog after an arrival.
    #[inline]
    pub fn note_backlog(&mut self, backlog: Backlog) {
        self.most_waiting.packets = self.most_waiting.packets.max(backlog.packets);
        self.most_waiting.bytes = self.most_waiting.bytes.max(backlog.bytes);
    }
}
