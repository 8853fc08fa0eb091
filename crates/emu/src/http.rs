//! HTTP server for state and control of an emulation, for test suites.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bentpipe_scenario::Draft;
use serde_json::{Map, Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::error::Error;
use crate::path::{At, Override, Path};
use crate::shared::Shared;

/// Maximum size of a request's body in bytes.
const LARGEST_BODY: u64 = 64 * 1024;

/// Configuration of the HTTP server, and the scenario that it changes.
#[derive(Debug)]
pub struct Remote {
    /// Listening socket.
    pub listener: TcpListener,
    /// The scenario, which requests change.
    pub draft: Draft,
    /// Place of the command in the scenario.
    pub at: At,
    /// Overrides of a part of the scenario, with the name of the part. A request that changes the part replaces them.
    pub change: Option<(String, Override)>,
}

/// The HTTP server with its thread.
pub(crate) struct HttpServer {
    server: Arc<Server>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Starts the server.
    pub fn open(remote: Remote, path: Path, shared: Arc<Shared>) -> Result<Self, Error> {
        let failed = || Error::at("HTTP");
        let server = Server::from_listener(remote.listener, None)
            .map_err(|error| failed()(std::io::Error::other(error.to_string())))?;
        let server = Arc::new(server);
        let requests = Arc::clone(&server);
        let mut handler = Handler { draft: remote.draft, at: remote.at, change: remote.change, path, shared };
        let work = move || {
            for mut request in requests.incoming_requests() {
                let (status, document) = handler.answer(&mut request);
                let json =
                    Header::from_bytes("Content-Type", "application/json").expect("the header is valid");
                let body = Response::from_string(format!("{document:#}\n"));
                // A client that has disconnected needs no answer.
                let _ = request.respond(body.with_status_code(status).with_header(json));
            }
        };
        let thread = thread::Builder::new().name("http".into()).spawn(work).map_err(failed())?;
        Ok(Self { server, thread })
    }

    /// Stops the server.
    pub fn close(self) {
        self.server.unblock();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

struct Handler {
    draft: Draft,
    at: At,
    change: Option<(String, Override)>,
    path: Path,
    shared: Arc<Shared>,
}

/// Returns status code and document.
type Answer = (u16, Value);

fn refuse(status: u16, why: impl Into<String>) -> Answer {
    (status, json!({ "error": why.into() }))
}

impl Handler {
    fn answer(&mut self, request: &mut Request) -> Answer {
        match (request.method(), request.url()) {
            (Method::Get, "/") => self.state(),
            (Method::Get, "/scenario") => match self.draft.scenario() {
                Ok(scenario) => (200, json!({ "toml": scenario.to_toml() })),
                Err(error) => refuse(500, error.to_string()),
            },
            (Method::Patch | Method::Put, "/") => {
                let mut body = String::new();
                match request.as_reader().take(LARGEST_BODY).read_to_string(&mut body) {
                    Ok(_) => self.change(&body).unwrap_or_else(|answer| answer),
                    Err(error) => refuse(400, error.to_string()),
                }
            }
            (_, "/" | "/scenario") => refuse(405, "accepted: GET / and /scenario, PATCH or PUT /"),
            _ => refuse(404, "accepted: / and /scenario"),
        }
    }

    fn state(&self) -> Answer {
        match serde_json::to_value(self.shared.snapshot()) {
            Ok(state) => (200, state),
            Err(error) => refuse(500, error.to_string()),
        }
    }

    /// True if a key belongs to a part that is not emulated: flows, hosts, TCP, and links off the path.
    fn ignores(&self, key: &str) -> bool {
        let mut parts = key.split('.');
        // Outages repeat until the end of the scenario, so its duration has an effect.
        if key == "duration" {
            return false;
        }
        let (Some("link" | "constellation"), Some(part)) = (parts.next(), parts.next()) else { return true };
        // Links of a constellation do not end in an emulation.
        if parts.next() == Some("in-flight") {
            return true;
        }
        !self.path.up.iter().chain(&self.path.down).any(|hop| hop.group == part)
    }

    /// Applies `{ KEY: VALUE, ... }`: everything, or nothing after a mistake.
    fn change(&mut self, body: &str) -> Result<Answer, Answer> {
        let wrong = |why: String| refuse(400, why);
        let settings: Map<String, Value> = serde_json::from_str(body).map_err(|error| {
            wrong(format!("accepted: an object such as {{\"link.satellite.rate\": \"5 Mbit/s\"}}; {error}"))
        })?;
        let mut draft = self.draft.clone();
        for (key, value) in &settings {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(wrong(format!("{key}: accepted: a string, a number, true or false"))),
            };
            draft.set(&format!("{key}={value}")).map_err(|error| wrong(error.to_string()))?;
        }
        let scenario = draft.scenario().map_err(|error| wrong(error.to_string()))?;
        let mut path = Path::of(&scenario, self.at).map_err(|error| wrong(error.to_string()))?;
        path.seed = self.path.seed;
        let names = |part: &str| settings.keys().any(|key| key.split('.').nth(1) == Some(part));
        let change = self.change.clone().filter(|(part, _)| !names(part));
        if let Some((part, change)) = &change {
            path.change(part, change);
        }
        if let Some(key) = settings.keys().find(|key| self.ignores(key)) {
            return Err(wrong(format!(
                "{key}: found a key without effect on the path, accepted: keys of its links"
            )));
        }
        if !path.has_links_of(&self.path) {
            return Err(refuse(409, "the links of the path and its MTU cannot change while they are in use"));
        }
        if !self.shared.change(path.clone()) {
            return Err(refuse(503, "the emulation does not answer"));
        }
        (self.draft, self.path, self.change) = (draft, path, change);
        Ok((200, json!({ "changed": settings })))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpStream};
    use std::time::Duration;

    use bentpipe_base::Rng;

    use super::*;

    /// Valid requests, and some that are nearly valid.
    const KNOWN: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /scenario HTTP/1.0\r\n\r\n",
        "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\n{\"link.satellite.rate\": \"5 Mbit/s\"}",
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n",
        "POST /x?y=%zz HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "PATCH / HTTP/1.1\r\nContent-Length: 23\r\n\r\n{\"duration\": \"1e309 s\"}",
    ];

    fn exchange(address: std::net::SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("the port is open");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("five seconds are a timeout");
        // The server may refuse and close the connection before all is written.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn keys_without_effect_on_the_path_are_known() {
        let draft = Draft::load("leo-iridium").expect("the world is built in");
        let path = Path::of(&draft.scenario().expect("it is complete"), At::Receiver);
        let path = path.expect("it has a path");
        let shared = Arc::new(Shared::new().expect("an event descriptor"));
        let handler = Handler { draft, at: At::Receiver, change: None, path, shared };
        let ignored = |key| handler.ignores(&format!("constellation.iridium.{key}"));
        assert_eq!(
            ["between.rate", "ground.rate", "elevation-mask", "in-flight"].map(ignored),
            [false, false, false, true]
        );
        assert!(handler.ignores("tcp.mss") && handler.ignores("link.x.rate"));
    }

    /// After any bytes the next client gets an answer. `BENTPIPE_FUZZ=100` sends 100 times as many.
    #[test]
    fn made_up_requests_do_no_harm() {
        let times: u64 = std::env::var("BENTPIPE_FUZZ").map_or(1, |times| times.parse().expect("a number"));
        let draft = Draft::load("geo-single").expect("the world is built in");
        let scenario = draft.scenario().expect("it is complete");
        let path = Path::of(&scenario, At::Receiver).expect("it has a path");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        let remote = Remote { listener, draft, at: At::Receiver, change: None };
        let shared = Arc::new(Shared::new().expect("an event descriptor"));
        // Stub of the emulator that accepts every change.
        let emulator = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                while !shared.stopped() {
                    if let Some(change) = shared.take_change() {
                        let _ = change.done.send(());
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            })
        };
        let http_server = HttpServer::open(remote, path, Arc::clone(&shared)).expect("it answers");
        let mut rng = Rng::stream(1, "http");
        for round in 0..200 * times {
            let mut request = KNOWN[rng.below(KNOWN.len() as u64) as usize].as_bytes().to_vec();
            for _ in 0..rng.below(4) {
                let at = rng.below(request.len() as u64) as usize;
                match rng.below(4) {
                    0 => request[at] = rng.bits() as u8,
                    1 => drop(request.drain(at..)),
                    2 => request.insert(at, b"\r\n:{ 0\"\\"[rng.below(8) as usize]),
                    _ => request.extend_from_within(at..),
                }
                if request.is_empty() {
                    request.push(b'G');
                }
            }
            exchange(address, &request);
            if round % 50 == 0 {
                let answer = exchange(address, KNOWN[0].as_bytes());
                assert!(answer.starts_with("HTTP/1.1 200"), "after {round} requests: {answer}");
            }
        }
        let patched = exchange(address, KNOWN[2].as_bytes());
        assert!(patched.starts_with("HTTP/1.1 200"), "{patched}");
        http_server.close();
        shared.stop();
        emulator.join().expect("it ends");
    }
}
