use std::collections::VecDeque;

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit};
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// First in, first out; an arrival at a full queue drops the oldest packets until it fits.
#[derive(Clone, Debug)]
pub(crate) struct DropFront<P> {
    limit: Limit,
    packets: VecDeque<P>,
    backlog: Backlog,
}

impl<P: Packet> DropFront<P> {
    pub fn new(limit: Limit) -> Self {
        Self { limit, packets: VecDeque::new(), backlog: Backlog::default() }
    }

    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        let size = packet.size();
        if !self.limit.has_room(Backlog::default(), size) {
            return ledger.refuse(packet, DropCause::Queue, now);
        }
        while !self.limit.has_room(self.backlog, size) {
            let Some(oldest) = self.dequeue() else { break };
            ledger.drop_packet(oldest, DropCause::Queue, now);
        }
        self.backlog.add(size);
        self.packets.push_back(packet);
        Verdict::Accepted
    }

    /// Returns the next packet to send; `None` only if the queue is empty.
    pub fn dequeue(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}
