//! Packets ahead of the clock.
//!
//! A first-in-first-out link decides on a packet when it comes, by what it knows of those before it. So where all packets of a link
//! come from one other, nobody need wait until a packet is there: it is followed from link to link at once. Where the packets of
//! several links meet, in front of the queue of another, they gather and go on in the order of their arrival, many at a time: that is
//! early enough as long as none of them would be through yet. Those that are through are kept by the junction until they are at
//! their hosts. A packet then takes one event at the end of its way, and a share of one at each junction.
//!
//! Where only hosts lie between the junctions, hosts run ahead as well ([`islands`](crate::islands)).
//!
//! Every link still sees the same packets, at the same times, in the same order as if each arrival were an event of its own; worlds
//! that somebody watches run like that.

use bentpipe_base::{Duration, Instant, prefetch};
use bentpipe_net::{Link, Passing};
use bentpipe_scenario::LinkId;

use crate::arena::NO_LANE;
use crate::gathering::Gathering;
use crate::islands::CoastId;
use crate::procession::{Arrival, Procession};
use crate::simulation::{FAR, NEAR, Simulation};
use crate::step::{ARRIVED, Special, Step, behind, junction, lane, link};
use crate::ticket::{Marks, Ticket};
use crate::wheel::{Class, Tie};
use crate::witness::Witness;

/// So many packets are let through when the junction has another reason to be woken, so that they are still in the cache.
const MANY: usize = 256;

/// Letting packets through a junction brings the network up to date.
const GOES_THROUGH: Tie = Tie { class: Class::Network, salt: 0 };

/// Where the packets of several links meet that all go on over the same one.
#[derive(Debug)]
pub(crate) struct Junction {
    /// The link that they go on over.
    pub link: LinkId,
    /// Nothing that comes to the link at a time is through it sooner than so long after that.
    pub foresight: Duration,
    /// Where it leads, if hosts are ahead of the clock.
    pub coast: CoastId,
    inbox: Procession,
    /// The same where hosts are ahead of the clock.
    pub gathering: Gathering,
    /// Packets that are through the link and all behind it, until they are at their hosts.
    outbox: Procession,
}

impl Junction {
    /// When something is to be done here, and its place among what happens then: a packet that is at its host then has that of its last
    /// link, as if that had an event of its own. Those that are to go through come before.
    #[inline(always)]
    fn next_event(&self) -> (Instant, Tie) {
        let (arrives, goes_through) = (self.outbox.first(), self.inbox.first_at() + self.foresight);
        if arrives.0 < goes_through { arrives } else { (goes_through, GOES_THROUGH) }
    }

    /// Packets on their way to hosts.
    pub fn packets_inside(&self) -> usize {
        self.inbox.len() + self.outbox.len() + self.gathering.len()
    }
}

/// Where the packets of a link come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Nowhere,
    /// From this link alone, of which it is known in advance what leaves it when.
    One(LinkId),
    /// From several of that kind.
    Several,
    /// Also from elsewhere.
    Elsewhere,
}

impl Source {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, other) => other,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            _ if self == other => self,
            _ => Self::Several,
        }
    }
}

/// Finds where packets can run ahead and marks it in the routes, which must be all that packets follow; the junctions among them.
pub(crate) fn find_junctions(links: &[Link<Ticket>], routes: &mut [Step]) -> Vec<Junction> {
    let mut sources = vec![Source::Nowhere; links.len()];
    let mut before = ARRIVED;
    for &step in &*routes {
        if let Some(id) = link(step) {
            let source = match link(before) {
                Some(before) if links[before as usize].is_foreseeable() => Source::One(before),
                _ => Source::Elsewhere,
            };
            sources[id as usize] = sources[id as usize].or(source);
        }
        before = step;
    }
    let mut junctions = Vec::new();
    let mut steps: Vec<Step> = (0..links.len() as LinkId).collect();
    for (id, (state, source)) in links.iter().zip(sources).enumerate() {
        let (link, foresight) = (id as LinkId, state.foresight());
        match source {
            _ if !state.is_first_in_first_out() => {}
            Source::One(_) => steps[id] = Special::Behind(link).step(),
            Source::Several if !foresight.is_zero() => {
                steps[id] = Special::Junction(junctions.len() as u32).step();
                let (inbox, outbox) = Default::default();
                junctions.push(Junction {
                    link,
                    foresight,
                    coast: 0,
                    inbox,
                    gathering: Gathering::new(),
                    outbox,
                });
            }
            _ => {}
        }
    }
    for step in routes {
        *step = link(*step).map_or(*step, |link| steps[link as usize]);
    }
    junctions
}

/// Where a packet goes ahead of the clock that is through a link.
#[derive(Clone, Copy)]
enum Onward {
    Link(LinkId),
    /// It gathers with others at a junction.
    Inbox(u32),
    /// It waits for its host.
    Lane(u32),
    /// It is at its host.
    Host,
}

impl<W: Witness> Simulation<W> {
    /// Offers a packet to a link at a time that may still come, and follows it as far as it is known what becomes of it. One that has
    /// been through a junction is kept there in the end.
    #[inline(always)]
    pub(crate) fn run_ahead(&mut self, place: (Instant, LinkId), ticket: Ticket, through: Option<u32>) {
        let Some((passing, link, onward)) = self.follow(place, ticket, through.is_some()) else { return };
        match (onward, through) {
            (Onward::Inbox(next), _) if !self.islands.is_empty() => {
                let Passing { at, packet: ticket } = passing;
                let salt = self.salt(link);
                let lane = lane(self.routes[ticket.position() + 1]).unwrap_or(NO_LANE);
                let arrival = Arrival { at, salt, lane, ticket };
                let junction = &mut self.junctions[next as usize];
                junction.gathering.push(arrival, &mut self.arena);
                if let Some(round) = self.islands.note_waiting(junction.coast, at) {
                    self.wheel.schedule(self.first_junction, round);
                }
            }
            (Onward::Inbox(next), _) => {
                let salt = self.salt(link);
                let junction = &mut self.junctions[next as usize];
                junction.inbox.push(passing, salt);
                self.wheel.schedule_as(self.first_junction + next, junction.next_event());
            }
            (Onward::Lane(lane), _) => self.islands.post(lane, passing, &mut self.arena),
            (_, Some(through)) => {
                let salt = self.salt(link);
                self.junctions[through as usize].outbox.push(passing, salt);
            }
            _ => unreachable!("only a packet that has been through a junction is followed to its host"),
        }
    }

    /// The same over the last links to a host: the packet, and the link that it arrives by, unless it stays on one.
    #[inline(always)]
    pub(crate) fn follow_to_host(
        &mut self,
        place: (Instant, LinkId),
        ticket: Ticket,
    ) -> Option<(Passing<Ticket>, LinkId)> {
        self.follow(place, ticket, true).map(|(passing, last, _)| (passing, last))
    }

    /// The salt of a link.
    #[inline(always)]
    fn salt(&self, link: LinkId) -> u32 {
        self.wheel.tie(self.first_link + link).salt
    }

    /// Offers a packet to a link behind which it is known to go to a lane.
    #[inline(always)]
    pub(crate) fn run_to_lane(&mut self, (at, link): (Instant, LinkId), ticket: Ticket, lane: u32) {
        let Some(mut passing) = self.links[link as usize].pass(at, ticket, self.until) else {
            return self.keep_on(link);
        };
        passing.packet.step_on();
        self.events += 1;
        self.islands.post(lane, passing, &mut self.arena);
    }

    /// A packet stays on a link, or is lost there.
    #[inline]
    fn keep_on(&mut self, link: LinkId) {
        self.wheel.schedule(self.first_link + link, self.links[link as usize].next_event());
        self.bury_dropped(link);
    }

    /// Follows a packet from link to link: where it goes next and the link that it comes by, unless it stays on one.
    #[inline(always)]
    fn follow(
        &mut self,
        (mut at, mut link): (Instant, LinkId),
        mut ticket: Ticket,
        to_host: bool,
    ) -> Option<(Passing<Ticket>, LinkId, Onward)> {
        loop {
            let next = self.routes[ticket.position() + 1];
            let state = &mut self.links[link as usize];
            let onward = if let Some(link) = behind(next) {
                Onward::Link(link)
            } else if let Some(junction) = junction(next) {
                Onward::Inbox(junction)
            } else if let Some(lane) = lane(next) {
                Onward::Lane(lane)
            } else if to_host && next == ARRIVED {
                Onward::Host
            } else {
                state.enqueue(at, ticket);
                break;
            };
            let Some(mut passing) = state.pass(at, ticket, self.until) else { break };
            passing.packet.step_on();
            self.events += 1;
            match onward {
                Onward::Link(next) => (at, ticket, link) = (passing.at, passing.packet, next),
                _ => return Some((passing, link, onward)),
            }
        }
        self.keep_on(link);
        None
    }

    /// Lets the packets through that have come to a junction by `limit`.
    fn let_through(&mut self, id: u32, limit: Instant) {
        loop {
            let Junction { link, inbox, .. } = &mut self.junctions[id as usize];
            let link = *link;
            let Some((at, ticket)) = inbox.pop(limit) else { break };
            if let Some(upcoming) = inbox.upcoming(NEAR)
                && self.is_large()
            {
                self.prefetch_behind(upcoming);
            }
            self.run_ahead((at, link), ticket, Some(id));
        }
    }

    /// It is time that packets go through a junction, or that one which has been through arrives.
    pub(crate) fn happen_at_junction(&mut self, id: u32) {
        let junction = &self.junctions[id as usize];
        let is_time = junction.inbox.first_at() + junction.foresight <= self.now;
        if is_time || junction.inbox.len() >= MANY {
            // Of what comes at this very time not all may be known.
            self.let_through(id, self.now - Duration::from_nanos(1));
        }
        // What arrives at this very time has an event of its own, for something else may come before it, or between it and another.
        if !is_time && let Some((_, ticket)) = self.junctions[id as usize].outbox.pop(self.now) {
            if self.is_large() {
                self.fetch_along_outbox(id);
            }
            self.arrive(ticket);
        }
        self.wheel.schedule_as(self.first_junction + id, self.junctions[id as usize].next_event());
    }

    /// Asks for the memory of the link that a packet comes to behind the junction.
    #[inline]
    fn prefetch_behind(&self, ticket: Ticket) {
        if let Some(link) = behind(self.routes[ticket.position() + 1]) {
            prefetch(&self.links[link as usize]);
        }
    }

    /// Asks for the memory of packets that will be at their hosts: first for their contents, then for the hosts.
    #[inline]
    fn fetch_along_outbox(&self, id: u32) {
        let outbox = &self.junctions[id as usize].outbox;
        if let Some(ticket) = outbox.upcoming(NEAR).filter(|ticket| !ticket.has(Marks::PLAIN)) {
            self.prefetch_end(ticket);
        }
        if let Some(ticket) = outbox.upcoming(FAR) {
            self.arena.prefetch(ticket.slot());
        }
    }

    /// At the end, everything goes through that came before it.
    pub(crate) fn empty_junctions(&mut self) {
        while let Some(id) = self.junctions.iter().position(|junction| junction.gathering.len() > 0) {
            self.let_gathered_through(id as u32, self.until);
        }
        self.empty_lanes();
        while let Some(id) = self.junctions.iter().position(|junction| junction.inbox.len() > 0) {
            self.let_through(id as u32, self.until);
        }
    }
}
