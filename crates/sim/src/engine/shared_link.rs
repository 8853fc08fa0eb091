//! Fast path: packets that are followed from link to link without an event for each hop.
//!
//! A first-in-first-out link decides on a packet when it comes, by what it knows of those before it. So where all packets of a link
//! come from one other, the packet is offered to it as soon as its arrival there is known, even if that lies in the future. Where
//! the packets of several links meet, in front of a shared link, they wait in a world of [processes](crate::engine::process) and are offered
//! in the order of their arrival, many at a time: that is early enough as long as none of them would be through yet. In other worlds each comes
//! to it by an event.
//!
//! Every link still sees the same packets, at the same times, in the same order as if each arrival were an event of its own.

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Link, Passing};
use bentpipe_scenario::LinkId;

use crate::engine::batch::{Arrival, Batch};
use crate::engine::key::EventKey;
use crate::engine::process::GroupId;
use crate::network::hop::{ARRIVED, Hop, Special, chained, channel, link, lookup, shared_link};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::NO_CHANNEL;
use crate::simulation::Simulation;

/// A link to which packets come from several others.
#[derive(Debug)]
pub(crate) struct SharedLink {
    pub link: LinkId,
    /// No packet is at the far end of the link sooner than so long after it came there.
    pub lookahead: Duration,
    /// The phase group that it leads to.
    pub group: GroupId,
    /// Packets that come to the link.
    pub batch: Batch,
}

/// Where the packets of a link come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Nowhere,
    /// From this link alone, of which it is known in advance what leaves it when.
    One(LinkId),
    /// From several of that kind.
    Several,
    /// Also from elsewhere.
    Elsewhere,
}

impl Source {
    /// From both.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, other) => other,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            _ if self == other => self,
            _ => Self::Several,
        }
    }
}

/// Finds where packets need no event for a hop and marks it in the routes, which must be all that packets follow; returns the shared links.
pub(crate) fn find_shared_links(links: &[Link<PacketHandle>], routes: &mut [Hop]) -> Vec<SharedLink> {
    let mut sources = vec![Source::Nowhere; links.len()];
    let mut before = ARRIVED;
    for &hop in &*routes {
        if let Some(id) = link(hop) {
            let source = match link(before) {
                Some(before) if links[before as usize].is_foreseeable() => Source::One(before),
                _ => Source::Elsewhere,
            };
            sources[id as usize] = sources[id as usize].or(source);
        }
        before = hop;
    }
    let mut shared_links = Vec::new();
    let mut hops: Vec<Hop> = (0..links.len() as LinkId).collect();
    for (id, (state, source)) in links.iter().zip(sources).enumerate() {
        let (link, lookahead) = (id as LinkId, state.lookahead());
        match source {
            _ if !state.is_first_in_first_out() => {}
            Source::One(_) => hops[id] = Special::Chained(link).hop(),
            Source::Several if !lookahead.is_zero() => {
                hops[id] = Special::SharedLink(shared_links.len() as u32).hop();
                shared_links.push(SharedLink { link, lookahead, group: 0, batch: Batch::new() });
            }
            _ => {}
        }
    }
    for hop in routes {
        *hop = link(*hop).map_or(*hop, |link| hops[link as usize]);
    }
    shared_links
}

/// Where a packet goes next that is through a link.
#[derive(Clone, Copy)]
enum Onward {
    Link(LinkId),
    /// To a link that the routing table knows; the packet stays on its hop.
    Lookup(LinkId),
    /// To a shared link.
    SharedLink(u32),
    /// To a channel of a process.
    Channel(u32),
    /// It arrives at its host.
    Host,
}

impl<M: Monitor> Simulation<M> {
    /// Offers a packet to a link at a time that may lie in the future, and follows it as far as it is known what becomes of it.
    #[inline(always)]
    pub(crate) fn run_ahead(&mut self, place: (Instant, LinkId), handle: PacketHandle) {
        match self.follow(place, handle, false) {
            None => {}
            Some((Passing { at, packet: handle }, link, Onward::SharedLink(next))) => {
                let salt = self.wheel.tie(self.targets.first_link + link).salt;
                let channel = channel(self.routes[handle.position() + 1]).unwrap_or(NO_CHANNEL);
                let arrival = Arrival { at, salt, channel, handle };
                match self.elsewhere(handle) {
                    Some(returned) => returned.to_shared_links.push((next, arrival)),
                    None => self.send_to_shared_link(next, arrival),
                }
            }
            Some((passing, _, Onward::Channel(channel))) => self.post(channel, passing),
            Some(_) => unreachable!("only a process follows a packet to its host"),
        }
    }

    /// The same over the last links to a host: the packet, and the link that it arrives by, unless it stays on one.
    #[inline(always)]
    pub(crate) fn follow_to_host(
        &mut self,
        place: (Instant, LinkId),
        handle: PacketHandle,
    ) -> Option<(Passing<PacketHandle>, LinkId)> {
        self.follow(place, handle, true).map(|(passing, last, _)| (passing, last))
    }

    /// Offers a packet to a link behind which it is known to go to a channel.
    #[inline(always)]
    pub(crate) fn run_to_channel(
        &mut self,
        (at, link): (Instant, LinkId),
        handle: PacketHandle,
        channel: u32,
    ) {
        let passing = self.links[link as usize].pass(at, handle, self.until);
        self.note_offered(self.key, link, handle);
        let Some(mut passing) = passing else {
            return self.keep_on(link, self.key);
        };
        passing.packet.advance();
        self.events += 1;
        self.post(channel, passing);
    }

    /// A packet comes to a channel.
    #[inline(always)]
    fn post(&mut self, channel: u32, passing: Passing<PacketHandle>) {
        match self.elsewhere(passing.packet) {
            Some(returned) => returned.to_channels.push((channel, passing)),
            None => self.processes.post(channel, passing, &mut self.pool),
        }
    }

    /// A packet comes to a shared link of a world of processes.
    #[inline(always)]
    pub(crate) fn send_to_shared_link(&mut self, id: u32, arrival: Arrival) {
        let shared_link = &mut self.shared_links[id as usize];
        shared_link.batch.push(arrival, &mut self.pool);
        if self.processes.note_message(shared_link.group, arrival.at) {
            self.schedule_window();
        }
    }

    /// A packet stays on a link, or is lost there.
    #[inline]
    fn keep_on(&mut self, link: LinkId, key: EventKey) {
        self.wheel.schedule(self.targets.first_link + link, self.links[link as usize].next_event());
        self.reclaim_dropped(link, key);
    }

    /// Follows a packet from link to link: where it goes next and the link that it comes by, unless it stays on one.
    #[inline(always)]
    fn follow(
        &mut self,
        (mut at, mut link): (Instant, LinkId),
        mut handle: PacketHandle,
        to_host: bool,
    ) -> Option<(Passing<PacketHandle>, LinkId, Onward)> {
        let mut key = self.key;
        loop {
            let next = self.routes[handle.position() + 1];
            let onward = if let Some(link) = chained(next) {
                Onward::Link(link)
            } else if let Some(shared_link) = shared_link(next) {
                Onward::SharedLink(shared_link)
            } else if let Some(channel) = channel(next) {
                Onward::Channel(channel)
            } else if to_host && next == ARRIVED {
                Onward::Host
            } else if let Some(link) =
                lookup(next).and_then(|destination| self.core.chained_hop(destination, link))
            {
                Onward::Lookup(link)
            } else {
                self.links[link as usize].enqueue(at, handle);
                self.note_offered(key, link, handle);
                break;
            };
            let passing = self.links[link as usize].pass(at, handle, self.horizon);
            self.note_offered(key, link, handle);
            let Some(mut passing) = passing else { break };
            self.events += 1;
            if !matches!(onward, Onward::Lookup(_)) {
                passing.packet.advance();
            }
            let (Onward::Link(next) | Onward::Lookup(next)) = onward else {
                return Some((passing, link, onward));
            };
            if M::MONITORS {
                key = self.wheel.key(passing.at, self.targets.first_link + link);
                self.note_delivered(key, link, passing.packet);
            }
            (at, handle, link) = (passing.at, passing.packet, next);
        }
        self.keep_on(link, key);
        None
    }
}
