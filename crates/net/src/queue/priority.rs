use bentpipe_base::Instant;
use bentpipe_trace::DropCause;

use std::collections::VecDeque;

use super::backlog::{Backlog, Limit};
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Two first-in-first-out queues; low priority is sent only while no normal packet is
/// queued.
#[derive(Clone, Debug)]
pub(crate) struct Priority<P> {
    room: Room,
    ordinary: Class<P>,
    low: Class<P>,
}

/// Division of the memory between both classes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// One limit for both; normal packets push out the youngest low-priority ones.
    Shared(Limit),
    /// A separate limit for each.
    Separate { ordinary: Limit, low: Limit },
}

#[derive(Clone, Debug)]
struct Class<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
}

impl<P: Packet> Class<P> {
    fn new() -> Self {
        Self { packets: VecDeque::new(), backlog: Backlog::default() }
    }

    fn push(&mut self, packet: P) {
        self.backlog.add(packet.size());
        self.packets.push_back(packet);
    }

    fn pop_oldest(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    fn pop_youngest(&mut self) -> Option<P> {
        let packet = self.packets.pop_back()?;
        self.backlog.remove(packet.size());
        Some(packet)
    }
}

impl<P: Packet> Priority<P> {
    pub fn new(room: Room) -> Self {
        Self { room, ordinary: Class::new(), low: Class::new() }
    }

    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        let size = packet.size();
        let (cause, has_room) = if packet.low_priority() {
            (DropCause::LowPriority, self.has_room_for_low(size))
        } else {
            (DropCause::Queue, self.make_room(size, now, ledger))
        };
        if !has_room {
            return ledger.refuse(packet, cause, now);
        }
        let class = if packet.low_priority() { &mut self.low } else { &mut self.ordinary };
        class.push(packet);
        Verdict::Accepted
    }

    /// Returns the next packet to send; `None` only if both queues are empty.
    pub fn dequeue(&mut self) -> Option<P> {
        self.ordinary.pop_oldest().or_else(|| self.low.pop_oldest())
    }

    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.ordinary.backlog.packets + self.low.backlog.packets,
            bytes: self.ordinary.backlog.bytes + self.low.backlog.bytes,
        }
    }

    fn has_room_for_low(&self, size: u32) -> bool {
        match self.room {
            Room::Shared(limit) => limit.has_room(self.backlog(), size),
            Room::Separate { low, .. } => low.has_room(self.low.backlog, size),
        }
    }

    /// Makes room for a normal packet if possible; pushes out nothing if it is not.
    fn make_room(&mut self, size: u32, now: Instant, ledger: &mut Ledger<P>) -> bool {
        let limit = match self.room {
            Room::Separate { ordinary, .. } => return ordinary.has_room(self.ordinary.backlog, size),
            Room::Shared(limit) => limit,
        };
        if !limit.has_room(self.ordinary.backlog, size) {
            return false;
        }
        while !limit.has_room(self.backlog(), size) {
            let Some(victim) = self.low.pop_youngest() else { return false };
            ledger.drop_packet(victim, DropCause::LowPriority, now);
        }
        true
    }
}
