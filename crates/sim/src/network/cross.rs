//! Packets that come from other logical processes, and packets that leave for them.

use bentpipe_base::Instant;

use crate::engine::message::{Entry, Message};
use crate::network::hop::{Special, link};
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// A packet will come in by a port.
    pub(crate) fn enter_port(&mut self, message: Message, entry: Entry) {
        let Message { at, handle, packet, .. } = message;
        let Entry { port, position, flow, side } = entry;
        let to = if handle.has(Marks::PLAIN) { flow } else { self.first_end_of(flow) + side };
        let handle = handle.at((self.pool.insert(packet.to_end(to)), position));
        match link(self.routes[position as usize]).filter(|link| self.core.chains.has(*link)) {
            Some(link) => {
                self.events += 1;
                self.offer(at, link, handle);
            }
            None => {
                self.ports[port as usize].coming.push_back((at, handle));
                self.queue.schedule(self.targets.first_port + port, at);
            }
        }
    }

    /// Takes from a port what has arrived.
    pub(crate) fn deliver_port(&mut self, port: u32) {
        while let Some((at, handle)) = self.ports[port as usize].coming.front().copied() {
            if at > self.now {
                return self.queue.schedule(self.targets.first_port + port, at);
            }
            self.ports[port as usize].coming.pop_front();
            self.events += 1;
            let hop = self.routes[handle.position()];
            match (link(hop), Special::of(hop)) {
                (Some(link), _) => self.enqueue(link, handle),
                (None, Special::Exit(crossing)) => self.exit(crossing, handle),
                (None, _) => self.arrive(handle),
            }
        }
    }

    /// A packet leaves for another logical process in the present event.
    pub(crate) fn exit(&mut self, crossing: u32, handle: PacketHandle) {
        self.send_message((self.now, self.key.rank), crossing, handle);
    }

    /// A packet leaves for another logical process in an event of this time and rank.
    pub(crate) fn send_message(&mut self, (at, rank): (Instant, u64), crossing: u32, handle: PacketHandle) {
        let packet = self.pool.take(handle.index());
        self.sent.push(Message { at, rank, crossing, handle, packet });
    }
}
