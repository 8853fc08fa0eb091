use std::collections::VecDeque;

use bentpipe_base::Instant;

use super::backlog::Backlog;
use crate::packet::Packet;

/// First-in-first-out queue that records the arrival time of each packet.
#[derive(Clone, Debug)]
pub(crate) struct TimedFifo<P> {
    packets: VecDeque<Stamped<P>>,
    backlog: Backlog,
    largest: u32,
}

/// Packet with its arrival time at the queue.
#[derive(Clone, Debug)]
pub(crate) struct Stamped<P> {
    pub packet: P,
    pub arrived: Instant,
}

impl<P: Packet> TimedFifo<P> {
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), backlog: Backlog::default(), largest: 0 }
    }

    pub fn push(&mut self, arrived: Instant, packet: P) {
        self.largest = self.largest.max(packet.size());
        self.backlog.add(packet.size());
        self.packets.push_back(Stamped { packet, arrived });
    }

    pub fn pop(&mut self) -> Option<Stamped<P>> {
        let stamped = self.packets.pop_front()?;
        self.backlog.remove(stamped.packet.size());
        Some(stamped)
    }

    /// Returns the arrival time of the oldest packet.
    pub fn oldest(&self) -> Option<Instant> {
        self.packets.front().map(|stamped| stamped.arrived)
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns the size in bytes of the largest packet so far.
    pub fn largest(&self) -> u32 {
        self.largest
    }
}
