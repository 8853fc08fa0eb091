//! Clients: they open connections and send requests, which their server answers.

use bentpipe_check::HostEvent;
use bentpipe_tcp::Events;
use bentpipe_traffic::Act;

use crate::host::proxy::Relay;
use crate::ids::{EndId, FlowId};
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Starts a client, or runs it at the time that it requested.
    pub(crate) fn call_client(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        if let Some(app) = self.applications.client_app(id) {
            app.client.handle_timeout(now);
        }
        self.serve_client(id, None);
    }

    /// Executes the actions of a client, then sets its timer. The caller settles the end `settling`.
    fn serve_client(&mut self, id: FlowId, settling: Option<EndId>) {
        while let Some(act) = self.applications.client_app(id).and_then(|app| app.client.poll_act()) {
            let (Act::Open { connection } | Act::Ask { connection, .. } | Act::Close { connection }) = act;
            if let Act::Open { .. } = act {
                let leg_id = self.hosts.leg_of_client(id);
                let first = self.open(id, leg_id);
                self.announce(first, None);
                let server = (leg_id == id).then_some(first);
                if let Some(app) = self.applications.client_app(id) {
                    app.open(connection, [server, Some(first + 1)]);
                }
            }
            let Some(state) = self.applications.client_app(id).and_then(|app| app.state(connection)) else {
                continue;
            };
            let Some(client_end) = state.ends[1] else { continue };
            match act {
                Act::Open { .. } => {}
                Act::Ask { request, reply, .. } => {
                    state.asked.push_back((request, reply));
                    state.unwritten[1] += request;
                    self.write_connection(id, connection, client_end);
                }
                Act::Close { .. } => {
                    self.hosts.ends[client_end as usize].connection.close(self.scheduler.now);
                    if let Some(app) = self.applications.client_app(id) {
                        app.forget(connection);
                    }
                }
            }
            if settling != Some(client_end) {
                self.settle(client_end);
            }
        }
        if let Some(app) = self.applications.client_app(id) {
            let next = app.client.next_timeout();
            self.wake_flow_at(id, next);
        }
    }

    /// Writes pending data at one end of a connection, as far as its send buffer has room.
    fn write_connection(&mut self, id: FlowId, number: u32, end: EndId) {
        let side = (end % 2) as usize;
        let Some(state) = self.applications.client_app(id).and_then(|app| app.state(number)) else { return };
        let rest = state.unwritten[side];
        if rest == 0 {
            return;
        }
        let taken = self.hosts.ends[end as usize].connection.write(self.scheduler.now, rest);
        self.monitor.end(self.scheduler.key, end, HostEvent::Wrote(taken));
        if let Some(state) = self.applications.client_app(id).and_then(|app| app.state(number)) {
            state.unwritten[side] -= taken;
        }
    }

    /// The chain of connections from a client has reached the server.
    pub(crate) fn meet_server(&mut self, id: FlowId, server: EndId, client: EndId) {
        let Some(app) = self.applications.client_app(id) else { return };
        if let Some(number) = app.number_of(1, client)
            && let Some(state) = app.state(number)
        {
            state.ends[0] = Some(server);
        }
    }

    /// As [`Simulation::react`] for the connections of clients.
    pub(crate) fn react_for_client(&mut self, end: EndId, events: Events) -> bool {
        let flow = self.hosts.ends[end as usize].flow;
        let is_server = end.is_multiple_of(2);
        let number =
            self.applications.client_app(flow).and_then(|app| app.number_of((end % 2) as usize, end));
        if events.contains(Events::READABLE) {
            let bytes = self.hosts.ends[end as usize].connection.read(self.scheduler.now, u64::MAX);
            self.monitor.end(self.scheduler.key, end, HostEvent::Read(bytes));
            if let Some(number) = number {
                self.note_bytes(flow, number, (end, bytes));
            }
        }
        if let Some(number) = number.filter(|_| events.intersects(Events::ESTABLISHED | Events::WRITABLE)) {
            self.write_connection(flow, number, end);
        }
        if is_server && events.contains(Events::PEER_CLOSED) {
            self.hosts.ends[end as usize].connection.close(self.scheduler.now);
        }
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        if let Some(number) = number.filter(|_| failed) {
            self.fail_connection(flow, number, end);
        }
        failed || events.contains(Events::CLOSED)
    }

    /// Bytes arrived at one end of a connection.
    fn note_bytes(&mut self, flow: FlowId, number: u32, (end, bytes): (EndId, u64)) {
        let now = self.scheduler.now;
        let Some(app) = self.applications.client_app(flow) else { return };
        if end.is_multiple_of(2) {
            if let Some(state) = app.state(number) {
                state.unwritten[0] += state.answer(bytes);
            }
            self.write_connection(flow, number, end);
        } else {
            app.client.handle_reply(now, number, bytes);
            self.serve_client(flow, Some(end));
        }
    }

    /// Handles the early end of a connection. The other end ends at once: a user would wait, then load again.
    fn fail_connection(&mut self, flow: FlowId, number: u32, end: EndId) {
        let now = self.scheduler.now;
        if let Some(app) = self.applications.client_app(flow) {
            app.forget(number);
            app.client.handle_failure(now, number);
        }
        self.applications.flows[flow as usize].counts.gone().failures += 1;
        self.hosts.ends[(end ^ 1) as usize].connection.abort(now);
        if let Relay::With(other) = self.hosts.ends[(end ^ 1) as usize].relay {
            self.hosts.ends[other as usize].connection.abort(now);
            self.settle(other);
        }
        self.settle(end ^ 1);
        self.serve_client(flow, Some(end));
    }
}
