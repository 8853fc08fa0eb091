//! Clients in the world: their connections, and the server that answers them.
//!
//! The server stands at the near end of a flow and sends; the client at the far end opens connections and asks. As packets carry no payload,
//! the server learns what a request asks for from the client's own notes, when the whole request has arrived.

use std::collections::VecDeque;

use bentpipe_base::Rng;
use bentpipe_scenario::{FlowGroup, Traffic};
use bentpipe_tcp::Events;
use bentpipe_traffic::adaptive::Player;
use bentpipe_traffic::browser::Browser;
use bentpipe_traffic::fetch::Fetcher;
use bentpipe_traffic::{Act, Client};

use crate::host::proxy::Relay;
use crate::observe::monitor::{HostEvent, Monitor};
use crate::simulation::Simulation;
use crate::world::{EndId, FlowId};

/// A client and its connections.
#[derive(Debug)]
pub(crate) struct ClientApp {
    /// The client.
    pub client: Client,
    /// Its connections by their numbers.
    connections: Vec<Option<ClientConnection>>,
}

/// A connection of a client.
#[derive(Debug)]
struct ClientConnection {
    /// The server's end, once there is one behind all proxies, and the client's.
    ends: [Option<EndId>; 2],
    /// Requests that have not arrived as a whole: what is missing of each, and what it asks for.
    asked: VecDeque<(u64, u64)>,
    /// What server and client have yet to write.
    unwritten: [u64; 2],
}

impl ClientApp {
    /// The client of a flow whose group is one of clients; none if it is not.
    pub fn new(group: &FlowGroup, rng: Rng) -> Option<Self> {
        let client = match &group.traffic {
            Traffic::Web(config) => Client::Browser(Browser::new(*config, rng)),
            Traffic::Adaptive(config) => Client::Player(Player::new(config.clone())),
            Traffic::Ftp(config) => Client::Fetcher(Fetcher::new(*config, rng)),
            _ => return None,
        };
        Some(Self { client, connections: Vec::new() })
    }

    /// The number of the connection with this end.
    fn number_of(&self, end: EndId) -> Option<usize> {
        let side = (end % 2) as usize;
        self.connections
            .iter()
            .position(|state| state.as_ref().is_some_and(|state| state.ends[side] == Some(end)))
    }

    fn open(&mut self, number: u32, ends: [Option<EndId>; 2]) {
        let needed = self.connections.len().max(number as usize + 1);
        self.connections.resize_with(needed, || None);
        self.connections[number as usize] =
            Some(ClientConnection { ends, asked: VecDeque::new(), unwritten: [0; 2] });
    }

    fn state(&mut self, number: u32) -> Option<&mut ClientConnection> {
        self.connections.get_mut(number as usize)?.as_mut()
    }
}

impl ClientConnection {
    /// So many bytes of requests arrived; bytes of replies that are due.
    fn answer(&mut self, mut arrived: u64) -> u64 {
        let mut due = 0;
        while let Some((missing, reply)) = self.asked.front_mut() {
            let part = arrived.min(*missing);
            *missing -= part;
            arrived -= part;
            if *missing > 0 {
                break;
            }
            due += *reply;
            self.asked.pop_front();
        }
        due
    }
}

impl<M: Monitor> Simulation<M> {
    /// A client asked to be called, or begins.
    pub(crate) fn call_client(&mut self, id: FlowId) {
        let now = self.now;
        if let Some(app) = self.client_app_of(id) {
            app.client.handle_timeout(now);
        }
        self.serve_client(id, None);
    }

    fn client_app_of(&mut self, id: FlowId) -> Option<&mut ClientApp> {
        self.flows[id as usize].application.client_app()
    }

    /// Does what a client wants, then sets its timer. The end `settling` will be settled by the caller.
    fn serve_client(&mut self, id: FlowId, settling: Option<EndId>) {
        while let Some(act) = self.client_app_of(id).and_then(|app| app.client.poll_act()) {
            let (Act::Open { connection } | Act::Ask { connection, .. } | Act::Close { connection }) = act;
            if let Act::Open { .. } = act {
                let leg_id = self.leg_of_client(id);
                let first = self.open(id, leg_id);
                self.announce(first, None);
                let server = (leg_id == id).then_some(first);
                if let Some(app) = self.client_app_of(id) {
                    app.open(connection, [server, Some(first + 1)]);
                }
            }
            let Some(state) = self.client_app_of(id).and_then(|app| app.state(connection)) else {
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
                    self.ends[client_end as usize].connection.close(self.now);
                    if let Some(app) = self.client_app_of(id) {
                        app.connections[connection as usize] = None;
                    }
                }
            }
            if settling != Some(client_end) {
                self.settle(client_end);
            }
        }
        if let Some(app) = self.client_app_of(id) {
            let next = app.client.next_timeout();
            self.wake_flow_at(id, next);
        }
    }

    /// Writes what is to be written at one end of a connection, as far as it takes it.
    fn write_connection(&mut self, id: FlowId, number: u32, end: EndId) {
        let side = (end % 2) as usize;
        let Some(state) = self.client_app_of(id).and_then(|app| app.state(number)) else { return };
        let rest = state.unwritten[side];
        if rest == 0 {
            return;
        }
        let taken = self.ends[end as usize].connection.write(self.now, rest);
        self.monitor.end(self.key, end, HostEvent::Wrote(taken));
        if let Some(state) = self.client_app_of(id).and_then(|app| app.state(number)) {
            state.unwritten[side] -= taken;
        }
    }

    /// The chain of connections from a client has reached the server.
    pub(crate) fn meet_server(&mut self, id: FlowId, server: EndId, client: EndId) {
        let Some(app) = self.client_app_of(id) else { return };
        if let Some(number) = app.number_of(client)
            && let Some(state) = app.state(number as u32)
        {
            state.ends[0] = Some(server);
        }
    }

    /// As [`Simulation::react`] for the connections of clients.
    pub(crate) fn react_for_client(&mut self, end: EndId, events: Events) -> bool {
        let flow = self.ends[end as usize].flow;
        let is_server = end.is_multiple_of(2);
        let number = self.client_app_of(flow).and_then(|app| app.number_of(end));
        if events.contains(Events::READABLE) {
            let bytes = self.ends[end as usize].connection.read(self.now, u64::MAX);
            self.monitor.end(self.key, end, HostEvent::Read(bytes));
            if let Some(number) = number {
                self.note_bytes(flow, number as u32, (end, bytes));
            }
        }
        if let Some(number) = number.filter(|_| events.intersects(Events::ESTABLISHED | Events::WRITABLE)) {
            self.write_connection(flow, number as u32, end);
        }
        if is_server && events.contains(Events::PEER_CLOSED) {
            self.ends[end as usize].connection.close(self.now);
        }
        let failed = events.intersects(Events::RESET | Events::TIMED_OUT);
        if let Some(number) = number.filter(|_| failed) {
            self.fail_connection(flow, number as u32, end);
        }
        failed || events.contains(Events::CLOSED)
    }

    /// Bytes arrived at one end of a connection.
    fn note_bytes(&mut self, flow: FlowId, number: u32, (end, bytes): (EndId, u64)) {
        let now = self.now;
        let Some(app) = self.client_app_of(flow) else { return };
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

    /// A connection ended before its time. The other end is told at once: a user would wait, then load again.
    fn fail_connection(&mut self, flow: FlowId, number: u32, end: EndId) {
        let now = self.now;
        if let Some(app) = self.client_app_of(flow) {
            app.connections[number as usize] = None;
            app.client.handle_failure(now, number);
        }
        self.flows[flow as usize].counts.gone().failures += 1;
        self.ends[(end ^ 1) as usize].connection.abort(now);
        if let Relay::With(other) = self.ends[(end ^ 1) as usize].relay {
            self.ends[other as usize].connection.abort(now);
            self.settle(other);
        }
        self.settle(end ^ 1);
        self.serve_client(flow, Some(end));
    }
}
