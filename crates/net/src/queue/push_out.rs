use std::collections::VecDeque;

use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit};
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// First in, first out with push-out: when it is full, a normal packet replaces the youngest low-priority
/// ones.
#[derive(Clone, Debug)]
pub(crate) struct PushOut<P> {
    limit: Limit,
    /// Queued packets in order; `None` for a packet that was pushed out.
    slots: VecDeque<Option<P>>,
    /// Number of slots that have left at the front, which is the number of the first slot.
    left: u64,
    /// Slot numbers of queued low-priority packets, oldest first.
    low: VecDeque<u64>,
    low_bytes: u64,
    backlog: Backlog,
}

impl<P: Packet> PushOut<P> {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            slots: VecDeque::new(),
            left: 0,
            low: VecDeque::new(),
            low_bytes: 0,
            backlog: Backlog::default(),
        }
    }

    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        let size = packet.size();
        if packet.low_priority() {
            if !self.limit.has_room(self.backlog, size) {
                return ledger.refuse(packet, DropCause::LowPriority, now);
            }
            self.low.push_back(self.left + self.slots.len() as u64);
            self.low_bytes += u64::from(size);
        } else if !self.make_room(size, now, ledger) {
            return ledger.refuse(packet, DropCause::Queue, now);
        }
        self.backlog.add(size);
        self.slots.push_back(Some(packet));
        Verdict::Accepted
    }

    /// Returns the next packet to send; `None` only if the queue is empty.
    pub fn dequeue(&mut self) -> Option<P> {
        loop {
            let slot = self.slots.pop_front()?;
            self.left += 1;
            if let Some(packet) = slot {
                if packet.low_priority() {
                    self.low.pop_front();
                    self.low_bytes -= u64::from(packet.size());
                }
                self.backlog.remove(packet.size());
                return Some(packet);
            }
        }
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Pushes out low-priority packets until `size` bytes fit; none if all of them together would not
    /// suffice.
    fn make_room(&mut self, size: u32, now: Instant, ledger: &mut Ledger<P>) -> bool {
        let ordinary = Backlog {
            packets: self.backlog.packets - self.low.len() as u32,
            bytes: self.backlog.bytes - self.low_bytes,
        };
        if !self.limit.has_room(ordinary, size) {
            return false;
        }
        while !self.limit.has_room(self.backlog, size) {
            let Some(victim) = self.take_youngest_low() else { return false };
            ledger.drop_packet(victim, DropCause::LowPriority, now);
        }
        true
    }

    fn take_youngest_low(&mut self) -> Option<P> {
        let number = self.low.pop_back()?;
        let victim = self.slots.get_mut((number - self.left) as usize)?.take()?;
        self.low_bytes -= u64::from(victim.size());
        self.backlog.remove(victim.size());
        Some(victim)
    }
}
