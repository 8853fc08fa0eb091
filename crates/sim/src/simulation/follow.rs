//! Fast path: packets are followed from link to link without an event for each hop.
//!
//! A first-in-first-out link can decide about a packet when all earlier packets are known. So if all packets of a link come from one
//! other link, a packet is offered as soon as its arrival time is known, even if that is in the future. At a shared link, where packets
//! of several links meet, they wait in a world of [processes](crate::parallel::process). They are offered in batches in the order of
//! arrival, before the first of them could arrive at the far end. In other worlds each packet arrives at a shared link by an event.
//!
//! Every link sees the same packets, at the same times and in the same order, as if each arrival were an event.

use bentpipe_base::Instant;
use bentpipe_net::Passing;
use bentpipe_scenario::LinkId;

use crate::network::hop::{ARRIVED, chained, channel, lookup, shared_link};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::{NO_CHANNEL, Waiting};
use crate::parallel::share::Returned;
use crate::scheduler::key::EventKey;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

/// Next place of a packet behind a link.
#[derive(Clone, Copy)]
enum Onward {
    Link(LinkId),
    /// To a link given by the routing table; the packet stays at its hop.
    Lookup(LinkId),
    /// To a shared link.
    SharedLink(u32),
    /// To a channel of a process.
    Channel(u32),
    /// To its host.
    Host,
}

impl<M: Monitor> Simulation<M> {
    /// Returns the exchange of another share, if the packet belongs to that share.
    #[inline(always)]
    pub(crate) fn elsewhere(&mut self, handle: PacketHandle) -> Option<&mut Returned> {
        let share = self.share.as_mut()?;
        handle.share().map(|to| &mut share.returned.giving[to as usize])
    }

    /// Offers a packet to a link at a time that may be in the future, and follows it as far as its fate is known.
    #[inline(always)]
    pub(crate) fn run_ahead(&mut self, place: (Instant, LinkId), handle: PacketHandle) {
        match self.follow(place, handle, false) {
            None => {}
            Some((Passing { at, packet: handle }, link, Onward::SharedLink(next))) => {
                let salt_or_next = self.scheduler.salt(Target::Link(link));
                let channel = channel(self.network.routes.hops[handle.position() + 1]).unwrap_or(NO_CHANNEL);
                let packet = Waiting { at, handle, salt_or_next, channel };
                match self.elsewhere(handle) {
                    Some(returned) => returned.to_shared_links.push((next, packet)),
                    None => self.send_to_shared_link(next, packet),
                }
            }
            Some((passing, _, Onward::Channel(channel))) => self.post(channel, passing),
            Some(_) => unreachable!("only a process follows a packet to its host"),
        }
    }

    /// Follows a packet over the last links to a host. Returns the packet and its last link, unless it stays on a link.
    #[inline(always)]
    pub(crate) fn follow_to_host(
        &mut self,
        place: (Instant, LinkId),
        handle: PacketHandle,
    ) -> Option<(Passing<PacketHandle>, LinkId)> {
        self.follow(place, handle, true).map(|(passing, last, _)| (passing, last))
    }

    /// Offers a packet to a link that leads to a channel.
    #[inline(always)]
    pub(crate) fn run_to_channel(
        &mut self,
        (at, link): (Instant, LinkId),
        handle: PacketHandle,
        channel: u32,
    ) {
        let passing = self.network.links[link as usize].pass(at, handle, self.scheduler.until);
        self.note_offered(self.scheduler.key, link, handle);
        let Some(mut passing) = passing else {
            return self.keep_on(link, self.scheduler.key);
        };
        passing.packet.advance();
        self.scheduler.events += 1;
        self.post(channel, passing);
    }

    /// Adds a packet to a channel.
    #[inline(always)]
    fn post(&mut self, channel: u32, Passing { at, packet: handle }: Passing<PacketHandle>) {
        let packet = Waiting { at, handle, salt_or_next: 0, channel };
        match self.elsewhere(handle) {
            Some(returned) => returned.to_channels.push(packet),
            None => self.processes.post(packet, &mut self.network.pool),
        }
    }

    /// Adds a packet to a shared link of a world of processes.
    #[inline(always)]
    pub(crate) fn send_to_shared_link(&mut self, id: u32, packet: Waiting) {
        let shared_link = &mut self.processes.shared_links[id as usize];
        let group = shared_link.group;
        shared_link.batch.push(packet, &mut self.network.pool);
        if self.processes.note_message(group, packet.at) {
            self.schedule_window();
        }
    }

    /// A packet stays on a link, or is lost there.
    #[inline]
    fn keep_on(&mut self, link: LinkId, key: EventKey) {
        self.schedule_link(link);
        self.reclaim_dropped(link, key);
    }

    /// Follows a packet from link to link. Returns its next place and its last link, unless it stays on a link.
    #[inline(always)]
    fn follow(
        &mut self,
        (mut at, mut link): (Instant, LinkId),
        mut handle: PacketHandle,
        to_host: bool,
    ) -> Option<(Passing<PacketHandle>, LinkId, Onward)> {
        let mut key = self.scheduler.key;
        loop {
            let next = self.network.routes.hops[handle.position() + 1];
            let onward = if let Some(link) = chained(next) {
                Onward::Link(link)
            } else if let Some(shared_link) = shared_link(next) {
                Onward::SharedLink(shared_link)
            } else if let Some(channel) = channel(next) {
                Onward::Channel(channel)
            } else if to_host && next == ARRIVED {
                Onward::Host
            } else if let Some(link) =
                lookup(next).and_then(|destination| self.network.routes.chained_hop(destination, link))
            {
                Onward::Lookup(link)
            } else {
                self.network.links[link as usize].enqueue(at, handle);
                self.note_offered(key, link, handle);
                break;
            };
            let passing = self.network.links[link as usize].pass(at, handle, self.network.routes.horizon);
            self.note_offered(key, link, handle);
            let Some(mut passing) = passing else { break };
            self.scheduler.events += 1;
            if !matches!(onward, Onward::Lookup(_)) {
                passing.packet.advance();
            }
            let (Onward::Link(next) | Onward::Lookup(next)) = onward else {
                return Some((passing, link, onward));
            };
            if M::MONITORS {
                key = self.scheduler.key(passing.at, Target::Link(link));
                self.note_delivered(key, link, passing.packet);
            }
            (at, handle, link) = (passing.at, passing.packet, next);
        }
        self.keep_on(link, key);
        None
    }
}
