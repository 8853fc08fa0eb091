//! Metrics, health and the connections that exist, over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tiny_http::{Header, Method, Request, Response, Server};

use crate::counters;
use crate::error::Error;
use crate::relay::Message;
use crate::shared::{Inbox, Shared};

/// Maximum time for which the address may still be in use (chosen).
const RELEASE: Duration = Duration::from_secs(1);
/// Maximum time to wait for the reports of the relays (chosen).
const PATIENCE: Duration = Duration::from_secs(2);

/// A thread that answers requests. It ends, and its address is free, when this is dropped.
pub(crate) struct Watch {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to listen.
    pub fn serve(
        address: SocketAddr,
        shared: Arc<Shared>,
        relays: Vec<Arc<Inbox<Message>>>,
    ) -> Result<Self, Error> {
        let server = Arc::new(listen(address)?);
        let of_thread = Arc::clone(&server);
        let work = move || {
            for request in of_thread.incoming_requests() {
                // A client that has disconnected needs no answer.
                let _ = answer(request, &shared, &relays);
            }
        };
        let thread = thread::Builder::new().name("watch".into()).spawn(work);
        Ok(Self { server, thread: Some(thread.map_err(Error::at("cannot start a thread"))?) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// Listens at an address, which an older proxy may need a moment to free.
fn listen(address: SocketAddr) -> Result<Server, Error> {
    let begin = Instant::now();
    loop {
        match Server::http(address) {
            Ok(server) => return Ok(server),
            Err(error) if begin.elapsed() > RELEASE => {
                return Err(Error::Request(format!("watch.listen: cannot listen at {address}: {error}")));
            }
            Err(_) => thread::sleep(RELEASE / 20),
        }
    }
}

fn answer(request: Request, shared: &Shared, relays: &[Arc<Inbox<Message>>]) -> std::io::Result<()> {
    let (status, kind, body) = match (request.method(), request.url()) {
        (Method::Get, "/metrics") if accepts_open_metrics(&request) => {
            counters::collect(shared);
            (200, "application/openmetrics-text; version=1.0.0; charset=utf-8", shared.metrics.open_metrics())
        }
        (Method::Get, "/metrics") => {
            counters::collect(shared);
            (200, "text/plain; version=0.0.4; charset=utf-8", shared.metrics.text())
        }
        (Method::Get, "/health") => (200, "application/json", health(shared)),
        (Method::Get, "/connections") => (200, "application/json", connections(relays)),
        (Method::Get, "/udp") => (200, "application/json", udp(shared)),
        (Method::Get, _) => {
            (404, "text/plain", "found here: /metrics, /health, /connections, /udp\n".to_owned())
        }
        _ => (405, "text/plain", "only GET\n".to_owned()),
    };
    let header = Header::from_bytes("Content-Type", kind).expect("a header of plain letters");
    request.respond(Response::from_string(body).with_status_code(status).with_header(header))
}

/// True if the client requests OpenMetrics, as Prometheus does.
fn accepts_open_metrics(request: &Request) -> bool {
    let mut accepted = request.headers().iter().filter(|header| header.field.equiv("Accept"));
    accepted.any(|header| header.value.as_str().contains("application/openmetrics-text"))
}

fn health(shared: &Shared) -> String {
    let bypass = shared.bypass().map(|reason| reason.word());
    let (count, obstacles) = (shared.places.count(), shared.obstacles());
    serde_json::json!({
        "state": if bypass.is_some() { "bypassing" } else { "proxying" },
        "bypassing_because": bypass,
        "obstacles": obstacles,
        "connections": count.open,
        "half_open": count.half_open,
        "most_connections": shared.most_connections(),
        "version": env!("CARGO_PKG_VERSION"),
    })
    .to_string()
}

/// UDP of all classes, in the order of the configuration.
fn udp(shared: &Shared) -> String {
    counters::collect(shared);
    let deployment = shared.deployment();
    let all: Vec<_> = deployment.classes.iter().map(|class| shared.metrics.udp(&class.name)).collect();
    serde_json::to_string(&all).unwrap_or_else(|error| error.to_string())
}

fn connections(relays: &[Arc<Inbox<Message>>]) -> String {
    let (sender, receiver) = channel();
    for relay in relays {
        relay.send(Message::Report(sender.clone()));
    }
    drop(sender);
    let mut all = Vec::new();
    while let Ok(some) = receiver.recv_timeout(PATIENCE) {
        all.extend(some);
    }
    serde_json::to_string(&all).unwrap_or_else(|error| error.to_string())
}
