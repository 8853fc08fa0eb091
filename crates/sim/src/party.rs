//! Agents of transports that are not TCP: packets between them travel like all others.
//!
//! A flow over such a transport has a party: its agents, the first of them the sender and the last the receiver, and the routes between their
//! ports. A transport is added by its agents in the crate `transports`, its word in `scenario`, and its party here.

use bentpipe_base::{Instant, Segment};
use bentpipe_scenario::{FlowGroup, Transport};
use bentpipe_transports::{Agent, Config, Fragment, Message, Packet, Progress, stp};

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
    agents: Vec<Agent>,
    /// Where the packets of each agent go, by port.
    channels: Vec<Vec<Channel>>,
}

/// The way from a port of an agent to a port of another.
#[derive(Clone, Copy, Debug)]
struct Channel {
    /// The other agent, and its port.
    peer: u32,
    peer_port: u8,
    /// Which of the routes of the flow.
    route: usize,
}

impl Party {
    /// The party of a flow, if its transport needs one.
    pub fn new(group: &FlowGroup) -> Option<Box<Self>> {
        let config = Config {
            packet_bytes: group.sender.mss,
            initial_window: group.sender.initial_window.segments(group.sender.mss),
            window: (group.receiver.receive_window.limit() / u64::from(group.sender.mss)).max(1) as u32,
        };
        let agents = match group.transport {
            Transport::Tcp | Transport::Udp | Transport::Tfrc => return None,
            Transport::Stp => {
                vec![
                    Agent::StpSender(stp::Sender::new(config)),
                    Agent::StpReceiver(stp::Receiver::new(config)),
                ]
            }
        };
        let way = |peer, route| vec![Channel { peer, peer_port: 0, route }];
        Some(Box::new(Self { agents, channels: vec![way(1, 0), way(0, 1)] }))
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
            let channel = self.party(id).channels[index][usize::from(departure.port)];
            self.send_packet(id, channel, departure.packet);
        }
        while let Some(fragment) = self.party(id).agents[index].poll_delivery() {
            self.note_delivery(id, fragment);
        }
    }

    fn send_packet(&mut self, id: FlowId, channel: Channel, packet: Packet) {
        let slot = self.arena.take();
        let size = packet.bytes();
        let mut marks = Marks::PLAIN | Marks::AGENT;
        marks.set(Marks::DATA, packet.is_data());
        let parcel = self.arena.get_mut(slot);
        parcel.incarnation = channel.peer;
        parcel.segment = Segment { seq: u64::from(channel.peer_port), ..Segment::default() };
        let side = usize::from(channel.peer == 0);
        let flow = &self.flows[id as usize];
        let (position, label) = (flow.routes[channel.route], flow.labels[side]);
        let ticket = Ticket { slot, size, position, to: id, label, marks };
        let node = flow.nodes[side];
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
        let parcel = self.arena.get(ticket.slot);
        let (index, port) = (parcel.incarnation as usize, parcel.segment.seq as u8);
        self.arena.release(ticket.slot);
        let packet =
            self.packets[ticket.slot as usize].take().expect("a packet of an agent is kept until it arrives");
        let agent = &mut self.party(ticket.to).agents[index];
        agent.handle_packet(now, port, &packet);
        let fresh = agent.progress().fresh_packets;
        let flow = &mut self.flows[ticket.to as usize];
        flow.counts.plain_packets = flow.counts.plain_packets.max(fresh);
        if let Some(feed) = flow.application.feed() {
            feed.handle_segments(now, flow.counts.plain_packets);
        }
        self.serve_agent(ticket.to, index);
        self.settle_party(ticket.to);
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
