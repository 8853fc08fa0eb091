//! Agents of transports that are not TCP: packets between them travel like all others.
//!
//! A flow over such a transport has a party: its agents, a sender and a receiver, and the routes between their ports. A transport is added by its agents in the crate `transports`, its word in `scenario`, and its party here.

use bentpipe_base::{Instant, Segment};
use bentpipe_scenario::{FlowGroup, Transport};
use bentpipe_transports::{Agent, Config, Departure, Fragment, Message, Packet, Progress, sctp, stp};

use crate::arena::Slot;
use crate::simulation::Simulation;
use crate::station::Here;
use crate::step::FIRST_SPECIAL;
use crate::ticket::{Marks, Ticket};
use crate::traffic::Application;
use crate::witness::Witness;
use crate::world::FlowId;

/// As much as nobody ever sends.
const ENDLESS: u64 = u64::MAX / 8;

/// The agents of a flow.
#[derive(Debug)]
pub(crate) struct Party {
    /// The sender and the receiver. A port of the one leads to the same port of the other.
    agents: [Agent; 2],
    /// Where the routes of the second port begin, there and back, if there is one.
    second: Option<[u32; 2]>,
}

impl Party {
    /// The party of a flow, if its transport needs one.
    pub fn new(group: &FlowGroup) -> Option<Box<Self>> {
        let config = Config {
            packet_bytes: group.sender.mss,
            initial_window: group.sender.initial_window.segments(group.sender.mss),
            window: (group.receiver.receive_window.limit() / u64::from(group.sender.mss)).max(1) as u32,
        };
        let paths = 1 + u8::from(group.second_path.is_some());
        let agents = match group.transport {
            Transport::Tcp | Transport::Udp | Transport::Tfrc => return None,
            Transport::Stp => {
                [Agent::StpSender(stp::Sender::new(config)), Agent::StpReceiver(stp::Receiver::new(config))]
            }
            Transport::Sctp => [
                Agent::SctpSender(sctp::Sender::new(config, paths)),
                Agent::SctpReceiver(sctp::Receiver::new(config)),
            ],
        };
        Some(Box::new(Self { agents, second: None }))
    }

    /// The second path begins there, and its way back.
    pub fn add_path(&mut self, routes: [u32; 2]) {
        self.second = Some(routes);
    }

    fn next_timeout(&self) -> Instant {
        self.agents.iter().map(Agent::next_timeout).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// What the sender counted.
    pub fn sender(&self) -> Progress {
        self.agents[0].progress()
    }
}

impl<W: Witness> Simulation<W> {
    /// The time has come of a flow's source or of one of its agents.
    pub(crate) fn wake_party(&mut self, id: FlowId) {
        let now = self.now;
        self.supply(id);
        let agents = self.party(id).agents.len();
        for index in 0..agents {
            let agent = &mut self.party(id).agents[index];
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
        let mut write = |number, stream, bytes| party.agents[0].write(now, Message { number, stream, bytes });
        match &mut flow.application {
            Application::Feed(feed) => {
                while let Some((number, emission)) = feed.take_message(now, start) {
                    write(number, emission.stream, u64::from(emission.bytes));
                }
            }
            Application::File { bytes } if is_first => write(0, 0, *bytes),
            _ if is_first => write(0, 0, ENDLESS),
            _ => {}
        }
    }

    /// Sends what an agent wants to send, and hands over what it has for the application.
    fn serve_agent(&mut self, id: FlowId, index: usize) {
        let now = self.now;
        while let Some(departure) = self.party(id).agents[index].poll_transmit(now) {
            self.send_packet(id, index, departure);
        }
        while let Some(fragment) = self.party(id).agents[index].poll_delivery() {
            self.note_delivery(id, fragment);
        }
    }

    /// Sends a packet of an agent to the other.
    fn send_packet(&mut self, id: FlowId, from: usize, Departure { port, packet }: Departure) {
        let slot = self.arena.take();
        let size = packet.bytes();
        let mut marks = Marks::PLAIN | Marks::AGENT;
        marks.set(Marks::DATA, packet.is_data());
        let parcel = self.arena.get_mut(slot);
        (parcel.to, parcel.incarnation) = (id, 1 - from as u32);
        parcel.segment = Segment { seq: u64::from(port), ..Segment::default() };
        let second = self.party(id).second.filter(|_| port > 0);
        let flow = &self.flows[id as usize];
        let position = second.unwrap_or(flow.routes)[from];
        let label = flow.labels[from];
        let ticket = Ticket::new((slot, position), size, label, marks);
        let node = flow.nodes[from];
        self.put_packet(slot, packet);
        match self.routes[position as usize] {
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
        let (to, index, port) = (parcel.to, parcel.incarnation as usize, parcel.segment.seq as u8);
        self.arena.release(ticket.slot());
        let packet = self.packets[ticket.slot() as usize]
            .take()
            .expect("a packet of an agent is kept until it arrives");
        let agent = &mut self.party(to).agents[index];
        agent.handle_packet(now, port, &packet);
        let fresh = agent.progress().fresh_packets;
        let flow = &mut self.flows[to as usize];
        flow.counts.plain_packets = flow.counts.plain_packets.max(fresh);
        if let Some(feed) = flow.application.feed() {
            feed.handle_segments(now, flow.counts.plain_packets);
        }
        self.serve_agent(to, index);
        self.settle_party(to);
    }

    fn note_delivery(&mut self, id: FlowId, fragment: Fragment) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        flow.counts.plain_bytes += u64::from(fragment.bytes);
        if let Some(feed) = flow.application.feed().filter(|_| fragment.is_last) {
            feed.handle_message(now, fragment.message);
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
        flow.counts.aborted = flow.counts.aborted.or(progress.failed);
        let is_file = matches!(flow.application, Application::File { .. });
        if is_file && progress.all_acknowledged && flow.counts.completed == 0 {
            flow.counts.completed = 1;
            flow.counts.completion_sum = now.since(flow.counts.begun);
        }
        self.wheel.schedule(id, next);
    }
}
