//! Packets from link to link, and the nodes between.

use bentpipe_base::Instant;
use bentpipe_check::LinkActivity;
use bentpipe_net::Dropped;
use bentpipe_scenario::{LinkId, NextHop};
use bentpipe_trace::DropCause;

use crate::network::hop::{ARRIVED, FIRST_SPECIAL, Here, Special, link};
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::scheduler::key::EventKey;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Takes the packets that have reached the far end of a link.
    pub(crate) fn deliver(&mut self, link: LinkId) {
        loop {
            let state = &mut self.network.links[link as usize];
            let Some(arrival) = state.deliver(self.scheduler.now) else { break };
            let is_last = state.is_idle_until_after(self.scheduler.now);
            self.scheduler.events += 1;
            let mut handle = arrival.packet;
            if arrival.copy_follows {
                let copy = self.network.pool.duplicate(handle.index());
                let activity = LinkActivity::Copied { original: handle.index(), copy };
                self.monitor.link(self.scheduler.key, link, activity);
                if handle.has(Marks::AGENT) {
                    self.copy_packet(handle.index(), copy);
                }
                handle.set_index(copy);
                handle.mark(Marks::COPY);
            }
            self.note_delivered(self.scheduler.key, link, handle);
            handle.advance();
            let next = self.network.routes.hops[handle.position()];
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
        self.reclaim_dropped(link, self.scheduler.key);
        self.schedule_link(link);
    }

    /// Offers a packet to a link.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, id: LinkId, handle: PacketHandle) {
        self.run_ahead((self.scheduler.now, id), handle);
    }

    /// Schedules the next arrival at the far end of a link.
    #[inline(always)]
    pub(crate) fn schedule_link(&mut self, link: LinkId) {
        self.scheduler.schedule(Target::Link(link), self.network.links[link as usize].next_event());
    }

    /// Reports to the monitor that a packet was offered to a link at the time of an event.
    #[inline(always)]
    pub(crate) fn note_offered(&mut self, key: EventKey, link: LinkId, handle: PacketHandle) {
        if self.monitor.watches(link) {
            let (packet, backlog) =
                (self.network.seen(handle), self.network.links[link as usize].backlog(key.time));
            self.monitor.link(key, link, LinkActivity::Offered { packet, backlog });
        }
    }

    /// Reports to the monitor that a packet is at the far end of a link.
    #[inline(always)]
    pub(crate) fn note_delivered(&mut self, key: EventKey, link: LinkId, handle: PacketHandle) {
        if self.monitor.watches(link) {
            self.monitor.link(key, link, LinkActivity::Delivered(self.network.seen(handle)));
        }
    }

    /// A packet followed ahead of time reaches the next hop of its route at `at`. All its effects belong to the event of its arrival by
    /// the previous link.
    #[inline(always)]
    pub(crate) fn enter_arrival(&mut self, at: Instant, handle: PacketHandle) {
        if M::MONITORS {
            self.enter_arrival_by(at, self.link_before(handle), handle);
        }
    }

    /// Reports the arrival of a packet over a link that may be outside its route.
    #[inline(always)]
    pub(crate) fn enter_arrival_by(&mut self, at: Instant, link: LinkId, handle: PacketHandle) {
        if M::MONITORS {
            self.scheduler.key = self.scheduler.key(at, Target::Link(link));
            self.note_delivered(self.scheduler.key, link, handle);
        }
    }

    /// Returns the link by which a packet reached its next hop.
    fn link_before(&self, handle: PacketHandle) -> LinkId {
        let hop = self.network.routes.hops[handle.position() - 1];
        if let Some(link) = link(hop) {
            return link;
        }
        match Special::of(hop) {
            Special::Chained(link) => link,
            Special::SharedLink(id) => self.processes.shared_links[id as usize].link,
            Special::Channel(id) => self.processes.channels[id as usize].link,
            other => unreachable!("nothing is followed over {other:?}"),
        }
    }

    /// Releases the packets that a link dropped before an event.
    #[inline(always)]
    pub(crate) fn reclaim_dropped(&mut self, link: LinkId, key: EventKey) {
        if self.network.links[link as usize].has_dropped() {
            self.reclaim(link, key);
        }
    }

    #[inline(never)]
    pub(crate) fn reclaim(&mut self, link: LinkId, key: EventKey) {
        while let Some(dropped) = self.network.links[link as usize].poll_dropped() {
            let index = dropped.packet.index();
            if let Some(returned) = self.elsewhere(dropped.packet) {
                returned.lost.push(dropped.packet);
                continue;
            }
            if self.monitor.watches(link) {
                let Dropped { packet, cause, at } = dropped;
                let activity = LinkActivity::Lost { packet: self.network.seen(packet), cause, at };
                self.monitor.link(key, link, activity);
            }
            self.note_lost(&dropped.packet);
            if dropped.cause == DropCause::Error && !self.network.middleboxes.nodes.is_empty() {
                self.show_spoilt(link, &dropped.packet);
            }
            self.network.pool.release(index);
        }
    }

    /// A packet of a flow is lost.
    pub(crate) fn note_lost(&mut self, handle: &PacketHandle) {
        let (to, incarnation) = self.network.pool.address(handle.index());
        let flow = if handle.has(Marks::PLAIN) {
            to
        } else {
            let end = &self.hosts.ends[to as usize];
            if end.incarnation != incarnation {
                return;
            }
            end.flow
        };
        let is_data = handle.has(Marks::DATA);
        self.applications.flows[flow as usize].counts.lost_packets += u64::from(is_data);
    }

    /// Passes a delivered packet to an element that is not a link.
    #[cold]
    pub(crate) fn pass_node(&mut self, link: LinkId, handle: PacketHandle) {
        match self.network.media.port(link) {
            Some(port) => self.enter_medium(port, handle),
            None => self.reach_node(link, handle),
        }
    }

    /// Handles a packet at the node at the far end of a link.
    pub(crate) fn reach_node(&mut self, link: LinkId, mut handle: PacketHandle) {
        let node = self.network.routes.head(link);
        // The two hops of a route that is looked up are the same; the packet stays on the first.
        if matches!(Special::of(self.network.routes.hops[handle.position()]), Special::Lookup(_)) {
            handle.go_back();
        }
        self.go(handle, Here { node, served: false });
    }

    /// A packet at a node takes the next hop of its route.
    #[cold]
    pub(crate) fn go(&mut self, mut handle: PacketHandle, here: Here) {
        let hop = self.network.routes.hops[handle.position()];
        if let Some(link) = link(hop) {
            return self.enqueue(link, handle);
        }
        match Special::of(hop) {
            Special::Arrived => self.arrive(handle),
            Special::MediumPort => unreachable!("the link before leads into the medium"),
            Special::Chained(_) | Special::SharedLink(_) | Special::Channel(_) => {
                unreachable!("the link before passes packets on")
            }
            Special::Middlebox(id) => {
                handle.advance();
                let onward = link(self.network.routes.hops[handle.position()])
                    .expect("a middlebox is followed by a link");
                if self.serve(id, &mut handle, onward) {
                    self.enqueue(onward, handle);
                }
            }
            Special::Lookup(destination) => self.look_up(destination, handle, here),
        }
    }

    /// Asks the routing table of the packet's node for the next hop.
    pub(crate) fn look_up(&mut self, destination: u32, mut handle: PacketHandle, here: Here) {
        let middlebox = self.network.middleboxes.at(here.node).filter(|_| !here.served);
        let routing =
            self.network.routes.table.as_ref().expect("only a world whose routes change looks them up");
        let next = routing.next(destination, here.node);
        if let Some(share) = &mut self.share {
            let to = match next {
                NextHop::Link(onward) => share.owners[onward as usize],
                NextHop::Here | NextHop::None => handle.share().unwrap_or(share.number),
            };
            if to != share.number {
                return share.crossing.push((to, handle, here));
            }
        }
        match next {
            NextHop::Here => self.arrive(handle),
            NextHop::None => {
                self.network.stranded += 1;
                self.network.pool.release(handle.index());
            }
            NextHop::Link(onward) => {
                if middlebox.is_none_or(|id| self.serve(id, &mut handle, onward)) {
                    self.enqueue(onward, handle);
                }
            }
        }
    }

    /// Passes a packet to a shared channel through the port of its terminal.
    pub(crate) fn enter_medium(&mut self, (medium, terminal): (u32, u32), handle: PacketHandle) {
        self.network.media.shared[medium as usize].medium.enqueue(self.scheduler.now, terminal, handle);
        self.leave_medium(medium);
    }

    /// Takes the packets that have reached the far end of a shared channel.
    pub(crate) fn deliver_medium(&mut self, medium: u32) {
        loop {
            let shared = &mut self.network.media.shared[medium as usize];
            let Some((terminal, mut handle)) = shared.medium.deliver(self.scheduler.now) else { break };
            let link = shared.members[terminal as usize];
            if Special::of(self.network.routes.hops[handle.position()]) == Special::MediumPort {
                handle.advance();
            }
            self.reach_node(link, handle);
        }
        self.leave_medium(medium);
    }

    /// Everything that a shared channel decides until now, without a packet of it going on.
    pub(crate) fn settle_media(&mut self, now: Instant) {
        for medium in 0..self.network.media.shared.len() as u32 {
            self.network.media.shared[medium as usize].medium.settle(now);
            self.reclaim_from_medium(medium);
        }
    }

    fn leave_medium(&mut self, medium: u32) {
        self.reclaim_from_medium(medium);
        let next = self.network.media.shared[medium as usize].medium.next_event();
        let target = Target::Medium(medium);
        self.scheduler.schedule(target, next);
    }

    fn reclaim_from_medium(&mut self, medium: u32) {
        while let Some((_, dropped)) = self.network.media.shared[medium as usize].medium.poll_dropped() {
            self.network.pool.release(dropped.packet.index());
        }
    }
}
