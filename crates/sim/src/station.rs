//! Middleboxes at work: packets on their way are shown to them, and leave as they say.

use std::collections::HashMap;
use std::sync::Arc;

use bentpipe_base::{EcnField, Instant, Segment};
use bentpipe_middlebox::{Connection, Direction, Emission, Middlebox, Passing, Port, Spoilt, Verdict};
use bentpipe_scenario::{Graph, InFlight, LinkId, NodeId};

use crate::arena::Parcel;
use crate::media::Media;
use crate::pace::Pace;
use crate::proxy::{Leg, Proxy};
use crate::simulation::Simulation;
use crate::step::{Special, link};
use crate::ticket::{Marks, Ticket};
use crate::wayfinder::{Way, Wayfinder};
use crate::witness::{Crossing, Deed, Witness};
use crate::world::EndId;

/// A node with a middlebox.
#[derive(Debug)]
pub(crate) struct Station {
    pub name: String,
    pub kind: &'static str,
    pub node: NodeId,
    pub middlebox: Middlebox,
    /// Where the routes from here begin: to the receiving end of line `l` at `2 l`, to its sending end at `2 l + 1`.
    pub exits: Vec<u32>,
}

/// What packets meet between links.
#[derive(Debug, Default)]
pub(crate) struct Interior {
    pub stations: Vec<Station>,
    /// The station at each node, as far as there are any.
    pub stations_at: Vec<Option<u32>>,
    pub proxies: Vec<Proxy>,
    /// SYNs that proxies keep until the server has answered, by the ends that they are for.
    pub held: HashMap<EndId, Segment>,
    /// Legs of flows behind proxies.
    pub legs: Vec<Leg>,
    /// Knows the way, in a world in which it changes.
    pub wayfinder: Option<Wayfinder>,
    /// Channels that links share.
    pub media: Media,
    /// Where each link leads.
    pub graph: Arc<Graph>,
    /// How many ends are being settled by one that relays to them.
    pub nested: u32,
    /// Looks at the goodput of the flows.
    pub pace: Pace,
    /// Segments that a middlebox sends.
    pub emissions: Vec<Emission>,
}

impl Interior {
    /// Puts a station at its node.
    pub fn add(&mut self, station: Station) {
        let nodes = self.stations_at.len().max(station.node as usize + 1);
        self.stations_at.resize(nodes, None);
        self.stations_at[station.node as usize] = Some(self.stations.len() as u32);
        self.stations.push(station);
    }

    /// The station at a node.
    #[inline]
    pub fn station_at(&self, node: NodeId) -> Option<u32> {
        self.stations_at.get(node as usize).copied().flatten()
    }

    /// True if a gateway at the node acknowledges in the name of others.
    pub fn spoofs(&self, node: NodeId) -> bool {
        let station = self.station_at(node).map(|station| &self.stations[station as usize]);
        station.is_some_and(|station| matches!(station.middlebox, Middlebox::Spoofing(_)))
    }

    /// The node that a link leads to.
    pub fn head(&self, link: LinkId) -> NodeId {
        self.graph.hop(link).to
    }

    /// Packets meet nothing but links.
    pub fn is_empty(&self) -> bool {
        self.stations.is_empty() && self.wayfinder.is_none() && self.media.shared.is_empty()
    }
}

/// A node at which a packet is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    pub node: NodeId,
    /// The middlebox of the node has had it.
    pub served: bool,
}

impl<W: Witness> Simulation<W> {
    /// A packet that a link delivered goes on by something that is not a link.
    #[cold]
    pub(crate) fn pass_node(&mut self, link: LinkId, ticket: Ticket) {
        match self.interior.media.door(link) {
            Some(door) => self.enter_medium(door, ticket),
            None => self.reach_node(link, ticket),
        }
    }

    /// A packet is at the node that a link leads to.
    pub(crate) fn reach_node(&mut self, link: LinkId, mut ticket: Ticket) {
        let node = self.interior.head(link);
        // The two steps of a route that is looked up are the same; the packet stays on the first.
        if matches!(Special::of(self.routes[ticket.position()]), Special::Lookup(_)) {
            ticket.step_back();
        }
        self.go(ticket, Here { node, served: false });
    }

    /// A packet at a node takes the step at its position, whatever that is.
    #[cold]
    pub(crate) fn go(&mut self, mut ticket: Ticket, here: Here) {
        let step = self.routes[ticket.position()];
        if let Some(link) = link(step) {
            return self.enqueue(link, ticket);
        }
        match Special::of(step) {
            Special::Arrived => self.arrive(ticket),
            Special::Door => unreachable!("a door is passed at the link before it"),
            Special::Behind(_) | Special::Junction(_) | Special::Lane(_) => {
                unreachable!("the link before passes packets on")
            }
            Special::Station(station) => {
                ticket.step_on();
                let onward = link(self.routes[ticket.position()]).expect("a station is followed by a link");
                if self.serve(station, &mut ticket, onward) {
                    self.enqueue(onward, ticket);
                }
            }
            Special::Lookup(destination) => self.look_up(destination, ticket, here),
        }
    }

    /// The node that a packet is at tells its way.
    fn look_up(&mut self, destination: u32, mut ticket: Ticket, here: Here) {
        let station = self.interior.station_at(here.node).filter(|_| !here.served);
        let wayfinder =
            self.interior.wayfinder.as_mut().expect("only a world whose routes change looks them up");
        match wayfinder.next(destination, here.node) {
            Way::Here => self.arrive(ticket),
            Way::None => {
                wayfinder.stranded += 1;
                self.arena.release(ticket.slot());
            }
            Way::Link(onward) => {
                if station.is_none_or(|station| self.serve(station, &mut ticket, onward)) {
                    self.enqueue(onward, ticket);
                }
            }
        }
    }

    /// Shows a packet to a middlebox; true if it goes on.
    fn serve(&mut self, station: u32, ticket: &mut Ticket, onward: LinkId) -> bool {
        let port = self.port(onward);
        let mut parcel = self.arena.get(ticket.slot());
        if ticket.has(Marks::CONGESTED) {
            parcel.segment.ecn = EcnField::Congested;
        }
        let plain = ticket.has(Marks::PLAIN);
        let forward = if plain { ticket.has(Marks::DATA) } else { parcel.to % 2 == 1 };
        let mut passing = Passing {
            connection: (!plain).then(|| connection(&parcel)),
            direction: if forward { Direction::Forward } else { Direction::Reverse },
            segment: &mut parcel.segment,
            size: ticket.size(),
            port,
        };
        let mut out = std::mem::take(&mut self.interior.emissions);
        let middlebox = &mut self.interior.stations[station as usize].middlebox;
        let verdict = middlebox.handle(self.now, &mut passing, &mut out);
        self.arena.replace(ticket.slot(), &parcel);
        if !plain {
            let kept = ticket.marks() & (Marks::CONGESTED | Marks::COPY);
            ticket.set_marks(kept | Marks::of(&parcel.segment));
        }
        self.send_for(station, &mut out);
        self.interior.emissions = out;
        if verdict == Verdict::Absorb {
            self.arena.release(ticket.slot());
        }
        verdict == Verdict::Forward
    }

    /// Shows what transmission errors have spoilt to the middlebox at the end of the link.
    pub(crate) fn show_spoilt(&mut self, link: LinkId, ticket: &Ticket) {
        let node = self.interior.head(link);
        let Some(station) = self.interior.station_at(node) else { return };
        // Of a plain packet `to` is no end.
        let parcel = self.arena.get(ticket.slot());
        if ticket.has(Marks::PLAIN) || self.ends[parcel.to as usize].incarnation != parcel.incarnation {
            return;
        }
        let forward = parcel.to % 2 == 1;
        let spoilt = Spoilt {
            connection: connection(&parcel),
            direction: if forward { Direction::Forward } else { Direction::Reverse },
            segment: &parcel.segment,
        };
        let mut out = std::mem::take(&mut self.interior.emissions);
        self.interior.stations[station as usize].middlebox.handle_spoilt(self.now, &spoilt, &mut out);
        self.send_for(station, &mut out);
        self.interior.emissions = out;
    }

    /// The time of a middlebox has come.
    pub(crate) fn wake_station(&mut self, station: u32) {
        let middlebox = &mut self.interior.stations[station as usize].middlebox;
        let mut out = std::mem::take(&mut self.interior.emissions);
        if middlebox.next_timeout() <= self.now {
            middlebox.handle_timeout(self.now, &mut out);
        }
        self.send_for(station, &mut out);
        self.interior.emissions = out;
    }

    /// Sends what a middlebox wants to send, and sees to it that it is woken.
    fn send_for(&mut self, station: u32, out: &mut Vec<Emission>) {
        for emission in out.drain(..) {
            let forward = emission.direction == Direction::Forward;
            let to = 2 * (emission.connection.0 as u32) + u32::from(forward);
            let end = &self.ends[to as usize];
            if u64::from(end.incarnation) != emission.connection.0 >> 32 {
                // The connection is gone, and another one uses its place.
                continue;
            }
            let incarnation = end.incarnation;
            let slot = self.arena.put(&Parcel { to, incarnation, segment: emission.segment });
            let Station { node, exits, .. } = &self.interior.stations[station as usize];
            let exit = 2 * end.line + u32::from(!forward);
            let (size, label) = (end.header_bytes + emission.segment.len, self.ends[to as usize ^ 1].label);
            let place = (slot, exits[exit as usize]);
            let ticket = Ticket::new(place, size, label, Marks::of(&emission.segment));
            let here = Here { node: *node, served: true };
            self.witness.end(self.now, to ^ 1, Deed::Forged { slot, segment: &emission.segment });
            self.go(ticket, here);
        }
        let next = self.interior.stations[station as usize].middlebox.next_timeout();
        self.wheel.schedule(self.first_station + station, next);
    }

    fn port(&mut self, link: LinkId) -> Port {
        let (now, state) = (self.now, &mut self.links[link as usize]);
        let backlog = state.backlog(now);
        Port {
            link,
            rate: state.rate(now),
            delay_one_way: state.delay_one_way(now),
            waiting_bytes: backlog.bytes,
            waiting_packets: backlog.packets,
            out_until: state.out_until(now),
        }
    }

    /// The network itself changes at this time.
    pub(crate) fn change_routes(&mut self, now: Instant) {
        let Some(wayfinder) = &mut self.interior.wayfinder else { return };
        wayfinder.change(now);
        let (next, (given_up, in_flight)) = (wayfinder.next_change(), wayfinder.given_up());
        self.wheel.schedule(self.wayfinder, next);
        for link in given_up {
            self.give_up(link, in_flight);
        }
    }

    /// A link of the constellation is no more.
    fn give_up(&mut self, id: LinkId, in_flight: InFlight) {
        let now = self.now;
        // What arrives at this very time has arrived.
        self.deliver(id);
        match in_flight {
            InFlight::Lost => {
                self.links[id as usize].lose_everything(now);
                self.bury_dropped(id);
            }
            InFlight::Rerouted => {
                let waiting = self.links[id as usize].take_back_waiting(now);
                self.bury_dropped(id);
                let here = Here { node: self.interior.graph.hop(id).from, served: true };
                for ticket in waiting {
                    self.witness.link(now, id, Crossing::TakenBack { ticket: &ticket });
                    self.go(ticket, here);
                }
            }
        }
        self.wheel.schedule(self.first_link + id, self.links[id as usize].next_event());
    }
}

/// The connection of a packet to an end: the pair of ends, and which of those that use them one after the other.
fn connection(parcel: &Parcel) -> Connection {
    Connection(u64::from(parcel.incarnation) << 32 | u64::from(parcel.to >> 1))
}
