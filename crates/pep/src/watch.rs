//! Metrics, health and the connections that exist, over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::error::Error;
use crate::relay::Message;
use crate::shared::{Inbox, Shared};

/// How long the relays have for telling their connections.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves until the process ends.
pub(crate) fn serve(
    address: SocketAddr,
    shared: Arc<Shared>,
    relays: Vec<Arc<Inbox<Message>>>,
) -> Result<(), Error> {
    let server = Server::http(address)
        .map_err(|error| Error::Request(format!("watch.listen: cannot listen at {address}: {error}")))?;
    let work = move || {
        for request in server.incoming_requests() {
            // A client that goes away does not need its answer.
            let _ = answer(request, &shared, &relays);
        }
    };
    thread::Builder::new()
        .name("watch".into())
        .spawn(work)
        .map(drop)
        .map_err(Error::at("cannot start a thread"))
}

fn answer(request: Request, shared: &Shared, relays: &[Arc<Inbox<Message>>]) -> std::io::Result<()> {
    let (status, kind, body) = match (request.method(), request.url()) {
        (Method::Get, "/metrics") => {
            (200, "application/openmetrics-text; version=1.0.0; charset=utf-8", shared.metrics.text())
        }
        (Method::Get, "/health") => (200, "application/json", health(shared)),
        (Method::Get, "/connections") => (200, "application/json", connections(relays)),
        (Method::Get, _) => (404, "text/plain", "found here: /metrics, /health, /connections\n".to_owned()),
        _ => (405, "text/plain", "only GET\n".to_owned()),
    };
    let header = Header::from_bytes("Content-Type", kind).expect("a header of plain letters");
    request.respond(Response::from_string(body).with_status_code(status).with_header(header))
}

fn health(shared: &Shared) -> String {
    let bypass = shared.bypass().map(|reason| reason.word());
    serde_json::json!({
        "state": if bypass.is_some() { "bypassing" } else { "proxying" },
        "bypassing_because": bypass,
        "connections": shared.active.load(Ordering::Relaxed),
        "most_connections": shared.most_connections(),
        "version": env!("CARGO_PKG_VERSION"),
    })
    .to_string()
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
