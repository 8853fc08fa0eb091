//! Packets from link to link, and what they meet at the nodes between them.

use bentpipe_base::Instant;
use bentpipe_net::Dropped;
use bentpipe_scenario::{LinkId, NextHop};
use bentpipe_trace::DropCause;

use crate::check::{LinkActivity, SeenPacket};
use crate::network::hop::{ARRIVED, FIRST_SPECIAL, Here, Special, link};
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Takes from a link what has reached its far end.
    pub(crate) fn deliver(&mut self, link: LinkId) {
        loop {
            let state = &mut self.links[link as usize];
            let Some(arrival) = state.deliver(self.now) else { break };
            let is_last = state.is_idle_until_after(self.now);
            self.events += 1;
            let mut handle = arrival.packet;
            if arrival.copy_follows {
                let copy = self.pool.duplicate(handle.index());
                let activity = LinkActivity::Copied { original: handle.index(), copy };
                self.monitor.link(self.now, link, activity);
                if handle.has(Marks::AGENT) {
                    self.copy_packet(handle.index(), copy);
                }
                handle.set_index(copy);
                handle.mark(Marks::COPY);
            }
            self.note_delivered(link, handle);
            handle.advance();
            let next = self.routes[handle.position()];
            if next == ARRIVED {
                self.arrive(handle);
            } else if next < FIRST_SPECIAL {
                self.enqueue(next, handle);
            } else {
                self.pass_node(link, handle);
            }
            if is_last {
                break;
            }
        }
        self.reclaim_dropped(link);
        self.queue.schedule(self.targets.first_link + link, self.links[link as usize].next_event());
    }

    /// Offers a packet to a link now.
    pub(crate) fn enqueue(&mut self, id: LinkId, handle: PacketHandle) {
        self.offer(self.now, id, handle);
    }

    /// A packet as a monitor is to see it.
    pub(crate) fn seen(&self, handle: PacketHandle) -> SeenPacket {
        let PacketContents { to, segment, .. } = self.pool.get(handle.index());
        let is_plain = handle.has(Marks::PLAIN);
        // Of a plain packet, or one to an agent on the way, the flow is known.
        let to_receiver = if handle.has(Marks::AGENT) {
            let packet = self.packets[handle.index() as usize].as_ref();
            packet.is_some_and(|packet| packet.to.agent > 0)
        } else {
            handle.has(Marks::DATA)
        };
        SeenPacket {
            number: handle.index(),
            bytes: handle.size(),
            to: if is_plain { 2 * to + u32::from(to_receiver) } else { to },
            is_copy: handle.has(Marks::COPY),
            segment: (!is_plain).then_some(segment),
        }
    }

    /// Tells the monitor that a packet was offered to a link.
    #[inline(always)]
    pub(crate) fn note_offered(&mut self, link: LinkId, handle: PacketHandle) {
        if self.monitor.watches(link) {
            let (packet, backlog) = (self.seen(handle), self.links[link as usize].backlog(self.now));
            self.monitor.link(self.now, link, LinkActivity::Offered { packet, backlog });
        }
    }

    /// Tells the monitor that a packet is at the far end of a link.
    #[inline(always)]
    fn note_delivered(&mut self, link: LinkId, handle: PacketHandle) {
        if self.monitor.watches(link) {
            self.monitor.link(self.now, link, LinkActivity::Delivered(self.seen(handle)));
        }
    }

    /// Releases what a link has dropped.
    pub(crate) fn reclaim_dropped(&mut self, link: LinkId) {
        while let Some(Dropped { packet, cause, at }) = self.links[link as usize].poll_dropped() {
            if self.monitor.watches(link) {
                let activity = LinkActivity::Lost { packet: self.seen(packet), cause, at };
                self.monitor.link(self.now, link, activity);
            }
            self.note_lost(&packet);
            if cause == DropCause::Error && !self.core.middleboxes.is_empty() {
                self.show_spoilt(link, &packet);
            }
            self.pool.release(packet.index());
        }
    }

    /// A packet of a flow is lost.
    pub(crate) fn note_lost(&mut self, handle: &PacketHandle) {
        let (to, incarnation) = self.pool.address(handle.index());
        let flow = if handle.has(Marks::PLAIN) {
            to
        } else {
            let end = &self.ends[to as usize];
            if end.incarnation != incarnation {
                return;
            }
            end.flow
        };
        let is_data = handle.has(Marks::DATA);
        self.flows[flow as usize].counts.lost_packets += u64::from(is_data);
    }

    /// A packet that a link delivered goes on by something that is not a link.
    #[cold]
    pub(crate) fn pass_node(&mut self, link: LinkId, handle: PacketHandle) {
        if let Special::Exit(crossing) = Special::of(self.routes[handle.position()]) {
            return self.exit(crossing, handle);
        }
        match self.core.media.port(link) {
            Some(port) => self.enter_medium(port, handle),
            None => self.reach_node(link, handle),
        }
    }

    /// A packet is at the node that a link leads to.
    pub(crate) fn reach_node(&mut self, link: LinkId, mut handle: PacketHandle) {
        let node = self.core.head(link);
        // The two hops of a route that is looked up are the same; the packet stays on the first.
        if matches!(Special::of(self.routes[handle.position()]), Special::Lookup(_)) {
            handle.go_back();
        }
        self.go(handle, Here { node, served: false });
    }

    /// A packet at a node takes the next hop of its route.
    #[cold]
    pub(crate) fn go(&mut self, mut handle: PacketHandle, here: Here) {
        let hop = self.routes[handle.position()];
        if let Some(link) = link(hop) {
            return self.enqueue(link, handle);
        }
        match Special::of(hop) {
            Special::Arrived => self.arrive(handle),
            Special::MediumPort => unreachable!("the link before leads into the medium"),
            Special::Exit(crossing) => self.exit(crossing, handle),
            Special::Middlebox(id) => {
                handle.advance();
                let onward = link(self.routes[handle.position()]).expect("a middlebox is followed by a link");
                if self.serve(id, &mut handle, onward) {
                    self.enqueue(onward, handle);
                }
            }
            Special::Lookup(destination) => self.look_up(destination, handle, here),
        }
    }

    /// The node that a packet is at tells its way.
    pub(crate) fn look_up(&mut self, destination: u32, mut handle: PacketHandle, here: Here) {
        let middlebox = self.core.middlebox_at(here.node).filter(|_| !here.served);
        let routing = self.core.routing.as_ref().expect("only a world whose routes change looks them up");
        let next = routing.next(destination, here.node);
        match next {
            NextHop::Here => self.arrive(handle),
            NextHop::None => {
                self.core.stranded += 1;
                self.pool.release(handle.index());
            }
            NextHop::Link(onward) => {
                if middlebox.is_none_or(|id| self.serve(id, &mut handle, onward)) {
                    self.enqueue(onward, handle);
                }
            }
        }
    }

    /// A packet comes to a shared channel through the port of its terminal.
    pub(crate) fn enter_medium(&mut self, (medium, terminal): (u32, u32), handle: PacketHandle) {
        self.core.media.shared[medium as usize].medium.enqueue(self.now, terminal, handle);
        self.leave_medium(medium);
    }

    /// Takes from a shared channel what has reached the far end.
    pub(crate) fn deliver_medium(&mut self, medium: u32) {
        loop {
            let shared = &mut self.core.media.shared[medium as usize];
            let Some((terminal, mut handle)) = shared.medium.deliver(self.now) else { break };
            let link = shared.members[terminal as usize];
            if Special::of(self.routes[handle.position()]) == Special::MediumPort {
                handle.advance();
            }
            self.reach_node(link, handle);
        }
        self.leave_medium(medium);
    }

    /// Everything that a shared channel decides until now, without a packet of it going on.
    pub(crate) fn settle_media(&mut self, now: Instant) {
        for medium in 0..self.core.media.shared.len() as u32 {
            self.core.media.shared[medium as usize].medium.settle(now);
            self.reclaim_from_medium(medium);
        }
    }

    fn leave_medium(&mut self, medium: u32) {
        self.reclaim_from_medium(medium);
        let next = self.core.media.shared[medium as usize].medium.next_event();
        let target = self.targets.first_medium + medium;
        self.queue.schedule(target, next);
    }

    fn reclaim_from_medium(&mut self, medium: u32) {
        while let Some((_, dropped)) = self.core.media.shared[medium as usize].medium.poll_dropped() {
            self.pool.release(dropped.packet.index());
        }
    }
}
