//! Use of connections by flows: open, write, complete, close, start again.

use std::sync::Arc;

use bentpipe_base::{Instant, Segment};
use bentpipe_check::HostEvent;
use bentpipe_scenario::Transport;
use bentpipe_tcp::{Connection, State};
use bentpipe_trace::Event;
use bentpipe_traffic::{Application, Interest};

use crate::host::end::{End, NOT_COUNTED};
use crate::host::proxy::Relay;
use crate::ids::{EndId, FlowId};
use crate::network::hop::Here;
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::scheduler::target::Target;
use crate::scheduler::timer::Timer;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Schedules a flow for a time or earlier; for now if the time has passed.
    pub(crate) fn wake_flow_at(&mut self, id: FlowId, at: Instant) {
        let at = at.max(self.scheduler.now);
        if self.processes.is_empty() {
            self.scheduler.schedule(Target::Flow(id), at);
        } else {
            self.processes.set_timer(id, at, self.scheduler.until);
        }
    }

    /// The timer of an application expires: it starts, or sends its next page or packet.
    pub(crate) fn wake(&mut self, id: FlowId) {
        let flow = &mut self.applications.flows[id as usize];
        if flow.session.is_some() {
            return self.wake_session(id);
        }
        match &mut flow.application {
            Application::Cbr(cbr) => {
                let size = cbr.packet_bytes();
                let next = cbr.send(flow.start);
                self.wake_flow_at(id, next);
                self.send_plain(id, size, 0);
            }
            Application::SourceApp(_) => self.send_from_source(id),
            Application::ClientApp(_) => self.call_client(id),
            Application::Bulk | Application::File { .. } => self.begin(id),
            Application::Pages(pages) => match flow.sender {
                Some(sender) if !pages.fresh_connection => {
                    flow.wanted += pages.bytes;
                    flow.counts.begun = self.scheduler.now;
                    self.write(id);
                    self.settle(sender);
                }
                _ => self.begin(id),
            },
        }
    }

    /// Opens the connection of a file, a page or all of a flow, and writes.
    pub(crate) fn begin(&mut self, id: FlowId) {
        self.applications.begin(id, self.scheduler.now);
        let sender = self.open(id, id);
        self.announce(sender, None);
        self.applications.flows[id as usize].sender = Some(sender);
        self.write(id);
        self.settle(sender);
    }

    /// A new pair of connection ends for a leg of a flow.
    pub(crate) fn open(&mut self, id: FlowId, leg_id: u32) -> EndId {
        // The RTT is that of the first leg, the delay of data that of the last.
        let counted = [leg_id == id, self.hosts.leg_after(id, leg_id).is_none()];
        let leg = self.hosts.later_leg(leg_id).map(|leg| &self.hosts.legs[leg]);
        let flow = &mut self.applications.flows[id as usize];
        let (nodes, routes, labels, configs) = match leg {
            None => (flow.nodes, flow.routes, flow.labels, &flow.configs),
            Some(leg) => (leg.nodes, leg.routes, leg.labels, &leg.configs),
        };
        let [sender, receiver] = configs.each_ref().map(Arc::clone);
        let (a, b) = (flow.seeds.bits(), flow.seeds.bits());
        let interest = flow.application.interest();
        let pair = if interest == Interest::Everything {
            // The client connects.
            [Connection::listen(sender, a), Connection::connect(receiver, b, self.scheduler.now)]
        } else {
            [Connection::connect(sender, a, self.scheduler.now), Connection::listen(receiver, b)]
        };
        let new = |(side, connection)| End {
            connection,
            timer: Timer::OFF,
            node: nodes[side],
            route: routes[side],
            header_bytes: flow.header_bytes,
            label: labels[side],
            flow: id,
            leg_id,
            delays: if counted[side] { flow.group } else { NOT_COUNTED },
            relay: Relay::None,
            incarnation: 0,
            interest,
        };
        let pair = pair.into_iter().enumerate().map(new);
        let first = match self.hosts.vacant.pop() {
            Some(first) => {
                for (id, new) in (first..).zip(pair) {
                    self.scheduler.replace_end(id, new.label.flow);
                    let end = &mut self.hosts.ends[id as usize];
                    *end = End { incarnation: end.incarnation, ..new };
                }
                first
            }
            None => {
                self.hosts.ends.extend(pair);
                if self.processes.is_empty() {
                    self.scheduler.add_ends(labels.map(|label| label.flow));
                } else {
                    let links = routes.map(|route| self.network.routes.hops[route as usize]);
                    self.processes.note_opened(id, self.hosts.ends.len() as EndId - 2, links);
                }
                self.hosts.ends.len() as EndId - 2
            }
        };
        if !self.hosts.is_direct(id) {
            self.prepare_relay(first);
        } else if self.applications.flows[id as usize].spoofed && interest != Interest::Everything {
            self.hosts.ends[first as usize + 1].relay = Relay::Last;
        }
        first
    }

    /// Reports a new pair of ends to the monitor. Its data arrives from the end `inward`, if there is one.
    pub(crate) fn announce(&mut self, first: EndId, inward: Option<EndId>) {
        let leg_id = self.hosts.ends[first as usize].leg_id;
        for end in [first, first + 1] {
            self.hosts.ends[end as usize].connection.set_tracing(self.monitor.traces(end));
            self.monitor.end(self.scheduler.key, end, HostEvent::Opened { leg_id, inward });
        }
    }

    /// Writes the flow's remaining data into the connection's send buffer, as far as it has room.
    pub(crate) fn write(&mut self, id: FlowId) {
        let flow = &mut self.applications.flows[id as usize];
        let Some(sender) = flow.sender else { return };
        let rest = flow.wanted - flow.written;
        if rest == 0 {
            return;
        }
        let connection = &mut self.hosts.ends[sender as usize].connection;
        if matches!(flow.application, Application::Bulk) {
            connection.write_endlessly(self.scheduler.now);
            flow.written = flow.wanted;
            self.monitor.end(self.scheduler.key, sender, HostEvent::Wrote(rest));
            return;
        }
        let taken = connection.write(self.scheduler.now, rest);
        flow.written += taken;
        self.monitor.end(self.scheduler.key, sender, HostEvent::Wrote(taken));
        if flow.application.closes_after() == Some(flow.written) {
            connection.close(self.scheduler.now);
        }
    }

    /// Everything written was acknowledged.
    pub(crate) fn note_completion(&mut self, id: FlowId, sender: EndId) {
        let flow = &mut self.applications.flows[id as usize];
        let acknowledged = self.hosts.ends[sender as usize].connection.acknowledged_bytes();
        let is_part = matches!(flow.application, Application::SourceApp(_));
        // Behind a proxy an acknowledgement does not mean that anything arrived.
        let is_true = self.hosts.is_direct(id) && !flow.spoofed;
        let is_all = acknowledged >= flow.wanted && is_true && !is_part;
        if flow.sender == Some(sender) && is_all {
            self.complete(id);
        }
    }

    /// All that a flow's present connection was given is at its receiver.
    pub(crate) fn complete(&mut self, id: FlowId) {
        if let Some(next) = self.applications.complete(id, self.scheduler.now) {
            self.wake_flow_at(id, next);
        }
    }

    /// The connection ended before its time.
    pub(crate) fn note_abort(&mut self, id: FlowId, end: EndId, reason: &'static str) {
        if let Some(next) = self.applications.abort(id, end & !1, reason, self.scheduler.now) {
            self.wake_flow_at(id, next);
        }
    }

    /// Removes a connection that is over at both ends, so that a flow of many pages needs few places.
    pub(crate) fn retire(&mut self, sender: EndId) {
        if !self.hosts.is_direct(self.hosts.ends[sender as usize].flow) {
            return self.retire_chain(sender);
        }
        let pair = [sender, sender + 1];
        let over = |end: &EndId| {
            matches!(self.hosts.ends[*end as usize].connection.state(), State::Closed | State::TimeWait)
        };
        let flow = &mut self.applications.flows[self.hosts.ends[sender as usize].flow as usize];
        if !flow.application.has_many_connections() || !pair.iter().all(over) {
            return;
        }
        for (side, end) in pair.into_iter().enumerate() {
            self.scheduler.cancel(Target::End(end));
            let end = &mut self.hosts.ends[end as usize];
            flow.counts.retire(side, &end.connection);
            end.incarnation += 1;
        }
        self.hosts.vacant.push(sender);
    }

    /// Sends a packet without TCP, of the message with this number.
    pub(crate) fn send_plain(&mut self, id: FlowId, size: u32, message: u64) {
        let flow = &self.applications.flows[id as usize];
        let segment = Segment { seq: message, len: size - flow.header_bytes, ..Segment::default() };
        let index = self.network.pool.put(&PacketContents {
            to: id,
            incarnation: 0,
            sent_at: self.scheduler.now,
            segment,
        });
        self.monitor.plain(self.scheduler.key, 2 * id, Event::Sent(segment));
        let marks = Marks::PLAIN | Marks::of(&segment);
        let handle = PacketHandle::new((index, flow.routes[0]), size, flow.labels[0], marks);
        let node = flow.nodes[0];
        self.go(handle, Here { node, served: true });
    }

    /// A source has something to send.
    fn send_from_source(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        let flow = &mut self.applications.flows[id as usize];
        let (start, transport, header) = (flow.start, flow.transport, flow.header_bytes);
        if transport == Transport::Tcp && flow.counts.begun == Instant::FAR_FUTURE {
            self.begin(id);
        }
        while let Some(app) = self.applications.source_app(id).filter(|app| start + app.due() <= now) {
            if transport == Transport::Tcp {
                app.take(now);
                let wanted = app.writable();
                self.applications.flows[id as usize].wanted = wanted;
                continue;
            }
            let Some((number, emission)) = app.take_message(now, start) else { break };
            let mut rest = emission.bytes;
            while rest > 0 {
                let part = rest.min(self.applications.flows[id as usize].configs[0].mss);
                rest -= part;
                self.send_plain(id, part + header, number);
                if let Some(app) = self.applications.source_app(id) {
                    app.note_packet();
                }
            }
        }
        if let Some(app) = self.applications.source_app(id) {
            let due = start + app.due();
            self.wake_flow_at(id, due);
        }
        if let Some(sender) = self.applications.flows[id as usize].sender {
            self.write(id);
            self.settle(sender);
        }
    }

    /// Notes that the receiving end of a source's connection read `bytes`.
    pub(crate) fn note_read(&mut self, end: EndId, bytes: u64) {
        let (now, flow) = (self.scheduler.now, self.hosts.ends[end as usize].flow);
        if let Some(app) = self.applications.source_app(flow) {
            app.handle_read(now, bytes);
        }
    }

    /// A segment arrived at an end of a source's connection.
    pub(crate) fn note_segment(&mut self, end: EndId) {
        let (now, flow) = (self.scheduler.now, self.hosts.ends[end as usize].flow);
        let stats = self.hosts.ends[end as usize].connection.stats();
        let fresh = stats.received_segments - stats.duplicate_segments;
        if let Some(app) = self.applications.source_app(flow).filter(|_| !end.is_multiple_of(2)) {
            app.handle_segments(now, fresh);
        }
    }
}
