use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_net::{Backlog, Limit, LinkStats, Loss, Packet};

use crate::TerminalConfig;

/// A terminal: its queue, and the progress of the first packet.
#[derive(Clone, Debug)]
pub(crate) struct Terminal<P> {
    queue: VecDeque<Waiting<P>>,
    backlog: Backlog,
    limit: Limit,
    /// Bytes of the first packet that earlier bursts carried.
    head_carried: u32,
    pub loss: Option<Loss>,
    pub stats: LinkStats,
    /// Total transmission time.
    pub busy: Duration,
}

/// Packet in a terminal's queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<P> {
    pub packet: P,
    /// Arrival time.
    pub since: Instant,
}

/// Content of one transmission, from the head of the queue on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Burst {
    /// Packets whose last byte it carries.
    pub completes: u32,
    /// Carried bytes of the next packet, after the burst got through.
    pub head_carried: u32,
}

impl<P: Packet> Terminal<P> {
    /// Makes a terminal of a validated configuration; `rng` is its random stream for losses.
    pub fn new(config: &TerminalConfig, rng: Rng) -> Self {
        Self {
            queue: VecDeque::new(),
            backlog: Backlog::default(),
            limit: config.queue,
            head_carried: 0,
            loss: Loss::new(&config.loss, rng),
            stats: LinkStats::default(),
            busy: Duration::ZERO,
        }
    }

    /// Queues a packet, or returns it if the queue is full.
    pub fn admit(&mut self, now: Instant, packet: P) -> Result<(), P> {
        let size = packet.size();
        self.stats.enqueued_packets += 1;
        self.stats.enqueued_bytes += u64::from(size);
        if !self.limit.has_room(self.backlog, size) {
            return Err(packet);
        }
        self.backlog.add(size);
        self.queue.push_back(Waiting { packet, since: now });
        self.stats.max_waiting_packets = self.stats.max_waiting_packets.max(self.backlog.packets);
        self.stats.max_waiting_bytes = self.stats.max_waiting_bytes.max(self.backlog.bytes);
        Ok(())
    }

    /// Returns the queue, including packets of a pending burst.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the size on the wire of the first packet, if there is one.
    pub fn head_size(&self) -> Option<u32> {
        self.queue.front().map(|waiting| waiting.packet.size())
    }

    /// Returns a burst with as much of the queue as fits into `room` bytes; each piece has a header of `header` bytes.
    pub fn load(&self, room: u32, header: u32) -> Burst {
        let mut burst = Burst { completes: 0, head_carried: self.head_carried };
        let mut left = room;
        for waiting in &self.queue {
            if left <= header {
                break;
            }
            left -= header;
            let rest = waiting.packet.size().saturating_sub(burst.head_carried);
            if rest > left {
                burst.head_carried += left;
                break;
            }
            left -= rest;
            burst = Burst { completes: burst.completes + 1, head_carried: 0 };
        }
        burst
    }

    /// Returns the slots of `room` bytes to request for the queue, with one header per packet and per slot.
    pub fn slots_needed(&self, room: u32, header: u32) -> u64 {
        let bytes =
            self.backlog.bytes - u64::from(self.head_carried) + u64::from(header) * self.queue.len() as u64;
        bytes.div_ceil(u64::from(room - header))
    }

    /// Returns the next packet that leaves.
    pub fn pop(&mut self) -> Option<Waiting<P>> {
        let waiting = self.queue.pop_front()?;
        self.backlog.remove(waiting.packet.size());
        Some(waiting)
    }

    /// Sets the carried bytes of the first packet.
    pub fn set_head_carried(&mut self, bytes: u32) {
        self.head_carried = bytes;
    }
}
