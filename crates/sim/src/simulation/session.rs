//! Agents: the packets that they send, and the data that they deliver to the application.

use bentpipe_base::{Instant, Segment};
use bentpipe_trace::Event;
use bentpipe_traffic::Application;
use bentpipe_transports::{Departure, Fragment, Message, Packet};

use crate::app::session::Binding;
use crate::ids::{FlowId, PacketIndex};
use crate::network::hop::Here;
use crate::observe::monitor::Monitor;
use crate::packet::agent::{AgentPacket, Port};
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::simulation::Simulation;

/// Bytes of the IP header of packets between agents.
const IP_HEADER: u32 = 20;

/// Number of the agent of a client: the receiver.
pub(crate) const CLIENT: usize = 1;

/// More bytes than any flow sends.
const ENDLESS: u64 = u64::MAX / 8;

impl<M: Monitor> Simulation<M> {
    /// The timer of a flow's source or of one of its agents expires.
    pub(crate) fn wake_session(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        self.supply(id);
        self.run_client(id);
        for index in 0..self.applications.session(id).bindings.len() {
            let agent = &mut self.applications.session(id).bindings[index].agent;
            if agent.next_timeout() <= now {
                agent.handle_timeout(now);
            }
            self.serve_agent(id, index);
        }
        self.settle_session(id);
    }

    /// Passes the application's data to the sender.
    fn supply(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        let flow = &mut self.applications.flows[id as usize];
        let (start, is_first) = (flow.start, flow.counts.begun == Instant::FAR_FUTURE);
        if is_first {
            flow.counts.begun = now;
        }
        if let (true, Application::ClientApp(app)) = (is_first, &mut flow.application) {
            app.client.handle_timeout(now);
        }
        let Some(session) = &mut flow.session else { return };
        let mut write =
            |number, stream, bytes| session.bindings[0].agent.write(now, Message { number, stream, bytes });
        match &mut flow.application {
            Application::SourceApp(app) => {
                while let Some((number, emission)) = app.take_message(now, start) {
                    write(number, emission.stream, u64::from(emission.bytes));
                }
            }
            Application::File { bytes } if is_first => {
                write(0, 0, *bytes);
                session.bindings[0].agent.finish(now);
            }
            Application::Bulk if is_first => write(0, 0, ENDLESS),
            _ => {}
        }
    }

    /// Sends the packets of an agent, and delivers its data to the application.
    fn serve_agent(&mut self, id: FlowId, index: usize) {
        let now = self.scheduler.now;
        if index == CLIENT {
            self.note_replies(id);
        }
        while let Some(departure) = self.applications.session(id).bindings[index].agent.poll_transmit(now) {
            self.send_packet(id, index, departure);
        }
        while let Some(fragment) = self.applications.session(id).bindings[index].agent.poll_delivery() {
            self.note_delivery(id, fragment);
        }
    }

    /// Sends a packet of an agent to another.
    fn send_packet(&mut self, id: FlowId, from: usize, Departure { port, packet }: Departure) {
        let Binding { node, ways, .. } = &self.applications.session(id).bindings[from];
        let (node, way) = (*node, ways[usize::from(port)].expect("an agent sends by the ports that it has"));
        let size = packet.bytes();
        self.note_at_end((id, from), &packet, Event::Sent);
        let mut marks = Marks::PLAIN | Marks::AGENT;
        marks.set(Marks::DATA, packet.is_data());
        marks.set(Marks::LOW_PRIORITY, packet.has_low_priority());
        let packet_index = self.network.pool.put(&PacketContents { to: id, ..PacketContents::default() });
        let label =
            self.applications.flows[id as usize].labels[usize::from(usize::from(way.to.agent) < from)];
        let handle = PacketHandle::new((packet_index, way.route), size, label, marks);
        self.put_packet(packet_index, AgentPacket { packet, to: way.to });
        self.go(handle, Here { node, served: true });
    }

    /// Reports a packet of an agent at an end of the flow; agents between the ends report none.
    fn note_at_end(&mut self, (id, agent): (FlowId, usize), packet: &Packet, event: fn(Segment) -> Event) {
        let last = self.applications.session(id).bindings.len() - 1;
        if !M::MONITORS || (agent != 0 && agent != last) {
            return;
        }
        let low_priority = packet.has_low_priority();
        let segment = Segment { len: packet.bytes() - IP_HEADER, low_priority, ..Segment::default() };
        self.monitor.plain(self.scheduler.key, 2 * id + u32::from(agent == last), event(segment));
    }

    fn put_packet(&mut self, packet_index: PacketIndex, packet: AgentPacket) {
        let needed = self.network.agent_packets.len().max(packet_index as usize + 1);
        self.network.agent_packets.resize(needed, None);
        self.network.agent_packets[packet_index as usize] = Some(packet);
    }

    /// Duplication made a second packet of one.
    #[cold]
    pub(crate) fn copy_packet(&mut self, original: PacketIndex, copy: PacketIndex) {
        if let Some(packet) = self.network.agent_packets.get(original as usize).cloned().flatten() {
            self.put_packet(copy, packet);
        }
    }

    /// A packet arrived at an agent.
    #[cold]
    pub(crate) fn arrive_at_agent(&mut self, handle: PacketHandle) {
        let now = self.scheduler.now;
        let (id, _) = self.network.pool.address(handle.index());
        self.network.pool.release(handle.index());
        let AgentPacket { packet, to: Port { agent, port } } = self.network.agent_packets
            [handle.index() as usize]
            .take()
            .expect("a packet of an agent is packed until it arrives");
        let index = usize::from(agent);
        self.note_at_end((id, index), &packet, Event::Received);
        let session = self.applications.session(id);
        session.bindings[index].agent.handle_packet(now, port, packet);
        let fresh = session.receiver().fresh_packets;
        let flow = &mut self.applications.flows[id as usize];
        flow.counts.plain_packets = flow.counts.plain_packets.max(fresh);
        if let Some(app) = flow.application.source_app() {
            app.handle_segments(now, flow.counts.plain_packets);
        }
        self.serve_agent(id, index);
        if index == 0 {
            self.note_measured(id);
        }
        self.settle_session(id);
    }

    /// Counts the round-trip sample of a sender, and reports it and a change of the window.
    fn note_measured(&mut self, id: FlowId) {
        let agent = &mut self.applications.session(id).bindings[0].agent;
        let (rtt, window) = (agent.take_rtt(), if M::MONITORS { agent.take_window() } else { None });
        let group = self.applications.flows[id as usize].group;
        if let Some((sample, smoothed)) = rtt {
            let delays = &mut self.applications.delays[group as usize];
            delays.rtt.add(sample);
            delays.smoothed_rtt.add(smoothed);
            let event = Event::Rtt { sample_ns: sample.as_nanos(), srtt_ns: smoothed.as_nanos() };
            self.monitor.plain(self.scheduler.key, 2 * id, event);
        }
        if let Some(window) = window {
            self.monitor.plain(self.scheduler.key, 2 * id, Event::Window(window));
        }
    }

    fn note_delivery(&mut self, id: FlowId, fragment: Fragment) {
        let now = self.scheduler.now;
        let flow = &mut self.applications.flows[id as usize];
        flow.counts.plain_bytes += u64::from(fragment.bytes);
        if let Some(app) = flow.application.source_app() {
            app.handle_part(now, fragment.message, u64::from(fragment.bytes));
        }
    }

    /// Notes an end, and sets the timer.
    fn settle_session(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        let flow = &mut self.applications.flows[id as usize];
        let Some(session) = &flow.session else { return };
        let progress = session.sender();
        let mut next = session.next_timeout();
        next = match &flow.application {
            Application::SourceApp(app) => next.min(flow.start + app.due()),
            Application::ClientApp(app) => next.min(app.client.next_timeout()),
            _ => next,
        };
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
