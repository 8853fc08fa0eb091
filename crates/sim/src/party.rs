//! Agents of transports that are not TCP: packets between them travel like all others.
//!
//! A flow over such a transport has a party: its agents, a sender, a receiver, and perhaps some on the way, with the routes between their ports. A
//! transport is added by its agents in the crate `transports`, its word in `scenario`, and their seats in `seating.rs`.

use bentpipe_base::{Instant, Segment};
use bentpipe_scenario::NodeId;
use bentpipe_transports::{Agent, Departure, Fragment, Message, Packet, Progress, dtn, petra};

use crate::arena::{Parcel, Slot};
use crate::simulation::Simulation;
use crate::station::Here;
use crate::step::FIRST_SPECIAL;
use crate::ticket::{Marks, Ticket};
use crate::traffic::Application;
use crate::witness::Witness;
use crate::world::FlowId;

/// As much as nobody ever sends.
const ENDLESS: u64 = u64::MAX / 8;

/// The agents of a flow, in the order of the way from the sender to the receiver.
#[derive(Debug)]
pub(crate) struct Party {
    pub seats: Vec<Seat>,
}

/// An agent where it is.
#[derive(Debug)]
pub(crate) struct Seat {
    pub agent: Agent,
    pub node: NodeId,
    /// Where its ports lead.
    pub ways: [Option<Way>; 2],
}

/// The way from a port of an agent to a port of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Where the route begins.
    pub route: u32,
    /// Number of the other agent, and its port.
    pub to: (u8, u8),
}

impl Party {
    fn next_timeout(&self) -> Instant {
        self.seats.iter().map(|seat| seat.agent.next_timeout()).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// What the sender counted.
    pub fn sender(&self) -> Progress {
        self.seats[0].agent.progress()
    }

    /// What the receiver counted.
    fn receiver(&self) -> Progress {
        self.seats[self.seats.len() - 1].agent.progress()
    }

    /// What the agents of a bundle layer counted, with the nodes where they are; nothing for other transports.
    pub fn bundles(&self) -> impl Iterator<Item = (NodeId, dtn::Counters)> {
        self.seats.iter().filter_map(|seat| match &seat.agent {
            Agent::Dtn(node) => Some((seat.node, node.counters())),
            _ => None,
        })
    }

    /// What the agents of PETRA counted, with the nodes where they are; nothing for other transports.
    pub fn relays(&self) -> impl Iterator<Item = (NodeId, petra::Counters)> {
        self.seats.iter().filter_map(|seat| match &seat.agent {
            Agent::Petra(node) => Some((seat.node, node.counters())),
            _ => None,
        })
    }
}

impl<W: Witness> Simulation<W> {
    /// The time has come of a flow's source or of one of its agents.
    pub(crate) fn wake_party(&mut self, id: FlowId) {
        let now = self.now;
        self.supply(id);
        for index in 0..self.party(id).seats.len() {
            let agent = &mut self.party(id).seats[index].agent;
            if agent.next_timeout() <= now {
                agent.handle_timeout(now);
            }
            self.serve_agent(id, index);
        }
        self.settle_party(id);
    }

    fn party(&mut self, id: FlowId) -> &mut Party {
        self.flows[id as usize].party.as_mut().expect("only flows with a party come here")
    }

    /// Gives the sender what the application has for it.
    fn supply(&mut self, id: FlowId) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let (start, is_first) = (flow.start, flow.counts.begun == Instant::FAR_FUTURE);
        if is_first {
            flow.counts.begun = now;
        }
        let Some(party) = &mut flow.party else { return };
        let mut write =
            |number, stream, bytes| party.seats[0].agent.write(now, Message { number, stream, bytes });
        match &mut flow.application {
            Application::Feed(feed) => {
                while let Some((number, emission)) = feed.take_message(now, start) {
                    write(number, emission.stream, u64::from(emission.bytes));
                }
            }
            Application::File { bytes } if is_first => {
                write(0, 0, *bytes);
                party.seats[0].agent.finish(now);
            }
            _ if is_first => write(0, 0, ENDLESS),
            _ => {}
        }
    }

    /// Sends what an agent wants to send, and hands over what it has for the application.
    fn serve_agent(&mut self, id: FlowId, index: usize) {
        let now = self.now;
        while let Some(departure) = self.party(id).seats[index].agent.poll_transmit(now) {
            self.send_packet(id, index, departure);
        }
        while let Some(fragment) = self.party(id).seats[index].agent.poll_delivery() {
            self.note_delivery(id, fragment);
        }
    }

    /// Sends a packet of an agent to another.
    fn send_packet(&mut self, id: FlowId, from: usize, Departure { port, packet }: Departure) {
        let Seat { node, ways, .. } = &self.party(id).seats[from];
        let (node, way) = (*node, ways[usize::from(port)].expect("an agent sends by the ports that it has"));
        let (to, at) = way.to;
        let size = packet.bytes();
        let mut marks = Marks::PLAIN | Marks::AGENT;
        marks.set(Marks::DATA, packet.is_data());
        let segment = Segment { seq: u64::from(at), ..Segment::default() };
        let slot = self.arena.put(&Parcel { to: id, incarnation: u32::from(to), segment });
        let label = self.flows[id as usize].labels[usize::from(usize::from(to) < from)];
        let ticket = Ticket::new((slot, way.route), size, label, marks);
        self.put_packet(slot, packet);
        match self.routes[way.route as usize] {
            FIRST_SPECIAL.. => self.go(ticket, Here { node, served: true }),
            link => self.enqueue(link, ticket),
        }
    }

    fn put_packet(&mut self, slot: Slot, packet: Packet) {
        let needed = self.packets.len().max(slot as usize + 1);
        self.packets.resize(needed, None);
        self.packets[slot as usize] = Some(packet);
    }

    /// Duplication made a second packet of one.
    #[cold]
    pub(crate) fn copy_packet(&mut self, original: Slot, copy: Slot) {
        if let Some(packet) = self.packets.get(original as usize).cloned().flatten() {
            self.put_packet(copy, packet);
        }
    }

    /// A packet arrived at an agent.
    #[cold]
    pub(crate) fn arrive_at_agent(&mut self, ticket: Ticket) {
        let now = self.now;
        let parcel = self.arena.get(ticket.slot());
        let (id, index, port) = (parcel.to, parcel.incarnation as usize, parcel.segment.seq as u8);
        self.arena.release(ticket.slot());
        let packet = self.packets[ticket.slot() as usize]
            .take()
            .expect("a packet of an agent is kept until it arrives");
        let party = self.party(id);
        party.seats[index].agent.handle_packet(now, port, &packet);
        let fresh = party.receiver().fresh_packets;
        let flow = &mut self.flows[id as usize];
        flow.counts.plain_packets = flow.counts.plain_packets.max(fresh);
        if let Some(feed) = flow.application.feed() {
            feed.handle_segments(now, flow.counts.plain_packets);
        }
        self.serve_agent(id, index);
        self.settle_party(id);
    }

    fn note_delivery(&mut self, id: FlowId, fragment: Fragment) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        flow.counts.plain_bytes += u64::from(fragment.bytes);
        if let Some(feed) = flow.application.feed() {
            feed.handle_part(now, fragment.message, u64::from(fragment.bytes));
        }
    }

    /// Notes an end, and sets the timer.
    fn settle_party(&mut self, id: FlowId) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let Some(party) = &flow.party else { return };
        let progress = party.sender();
        let mut next = party.next_timeout();
        if let Application::Feed(feed) = &flow.application {
            next = next.min(flow.start + feed.due());
        }
        let is_file = matches!(flow.application, Application::File { .. });
        let incomplete = progress.incomplete.filter(|_| is_file);
        if let Some(reason) = progress.failed.or(incomplete) {
            flow.counts.gone().aborted.get_or_insert(reason);
        }
        if is_file && progress.all_acknowledged && flow.counts.completed == 0 {
            flow.counts.completed = 1;
            flow.counts.completion_sum = now.since(flow.counts.begun);
        }
        self.wake_flow_at(id, next);
    }
}
