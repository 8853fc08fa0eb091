//! Clients over a transport with one stream per request.

use bentpipe_traffic::{Act, Application};
use bentpipe_transports::datagram::{Reply, Request};

use crate::ids::FlowId;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;
use crate::simulation::session::CLIENT;

impl<M: Monitor> Simulation<M> {
    /// Runs a client at the time that it requested.
    pub(crate) fn run_client(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        let Application::ClientApp(app) = &mut self.applications.flows[id as usize].application else {
            return;
        };
        if app.client.next_timeout() <= now {
            app.client.handle_timeout(now);
        }
        self.send_requests(id);
    }

    /// Sends the requests of a client. Each has its stream, so opening and closing connections has no effect.
    fn send_requests(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        let flow = &mut self.applications.flows[id as usize];
        let (Application::ClientApp(app), Some(session)) = (&mut flow.application, &mut flow.session) else {
            return;
        };
        while let Some(act) = app.client.poll_act() {
            if let Act::Ask { connection: number, request: bytes, reply } = act {
                session.bindings[CLIENT].agent.ask(now, Request { number, bytes, reply });
            }
        }
    }

    /// Passes arrived bytes and failures to the client.
    pub(crate) fn note_replies(&mut self, id: FlowId) {
        let now = self.scheduler.now;
        while let Some(reply) = self.applications.session(id).bindings[CLIENT].agent.poll_reply() {
            let flow = &mut self.applications.flows[id as usize];
            let Application::ClientApp(app) = &mut flow.application else { return };
            match reply {
                Reply::Arrived { number, bytes } => {
                    app.client.handle_reply(now, number, bytes);
                    flow.counts.plain_bytes += bytes;
                }
                Reply::Failed { number } => {
                    app.client.handle_failure(now, number);
                    flow.counts.gone().failures += 1;
                }
            }
            self.send_requests(id);
        }
    }
}
