//! `bentpipe receive`.

use std::path::Path;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Driver, Id, Interest, Ready};
use bentpipe_tcp::{Connection, Events};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::resume::Partial;
use crate::transfer::{self, Drain, End, Feed, Input, Output, PATIENCE, Progress, Report};
use crate::transfer_args::ReceiveArgs;

/// Time for which the peers' last segments are answered before the stack ends.
const FAREWELL: Duration = Duration::from_millis(300);

/// A connection that a peer opened.
struct Receiving {
    id: Id,
    begin: Instant,
    drain: Drain,
    feed: Feed,
    events: Events,
}

/// All open connections.
struct Server<'a> {
    args: &'a ReceiveArgs,
    /// Name of the algorithm.
    cc: &'static str,
    driver: Driver,
    output: Option<Output>,
    connections: Vec<Receiving>,
    reports: Vec<Report>,
    accepted: u64,
}

/// Accepts connections to PORT.
pub fn receive(args: &ReceiveArgs) -> Result<(), Failure> {
    let config = transfer::config(&args.wire, End::Receiver)?;
    let cc = config.sender.cc.name();
    let output = match &args.file {
        Some(file) if args.resume => Some(Output::Partial(Box::new(Partial::open(file)?))),
        Some(file) => Some(Output::open(file)?),
        None if args.discard || args.source.is_some() => None,
        None => Some(Output::open(Path::new("-"))?),
    };
    if output.is_some() && args.connections != 1 {
        let why = "one file takes one connection: --connections needs --discard or --source";
        return Err(Failure::Request(why.into()));
    }
    // Checks the input now, not at the first connection.
    args.answer.as_deref().map(Input::open).transpose()?;
    let interrupt = Interrupt::listen()?;
    let (mut driver, _claim) = transfer::driver(&args.wire)?;
    driver.stack.listen(args.port, Arc::new(config));
    for network in &args.wire.address {
        eprintln!("listening on {}", std::net::SocketAddr::new(network.own, args.port));
    }
    let (connections, reports) = (Vec::new(), Vec::new());
    let mut server = Server { args, cc, driver, output, connections, reports, accepted: 0 };
    server.run(&interrupt)?;
    server.finish(&interrupt)
}

impl Server<'_> {
    fn run(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let progress = Progress::new(format!("Receiving on port {}", self.args.port), None);
        let wanted = if self.args.connections == 0 { u64::MAX } else { self.args.connections };
        let mut ready = Ready::default();
        let mut done_bytes = 0;
        loop {
            self.accept(wanted)?;
            self.note_events();
            for at in (0..self.connections.len()).rev() {
                if let Err(why) = self.pump(at, ready) {
                    self.give_up(at, &why.to_string());
                } else if let Some(report) = self.ended(at) {
                    done_bytes += report.received_bytes.max(report.sent_bytes);
                    self.conclude(at, report);
                }
            }
            let under_way = self.connections.iter().map(|c| c.drain.bytes.max(c.feed.bytes)).sum::<u64>();
            progress.show(done_bytes + under_way);
            if self.reports.len() as u64 >= wanted || interrupt.wanted() {
                return Ok(());
            }
            // Only a single connection can wait for its file.
            let interest = match self.connections.as_slice() {
                [only] => Interest { input: None, output: only.drain.waits_for(&self.driver, only.id) },
                _ => Interest::default(),
            };
            ready = self
                .driver
                .turn(PATIENCE, interest)
                .map_err(|error| Failure::Work(format!("the TUN device failed: {error}")))?;
        }
    }

    fn accept(&mut self, wanted: u64) -> Result<(), Failure> {
        while self.accepted < wanted {
            let Some(id) = self.driver.stack.accept(self.args.port) else { break };
            self.accepted += 1;
            let mut drain = Drain::new(self.output.take().unwrap_or(Output::Nowhere));
            // A side with data sends it; any other side closes when the peer does.
            let mut feed = Feed::new(match &self.args.answer {
                Some(file) => Input::open(file)?,
                None => Input::Zeros(self.args.source.unwrap_or(0)),
            });
            let begin = self.driver.now();
            if let Some(partial) = drain.partial() {
                // A new connection has buffer for a line.
                self.driver.stack.write(begin, id, partial.greeting().as_bytes());
            }
            if self.args.wire.sha256 && !self.args.resume {
                (drain.hash, feed.hash) = (Some(Sha256::new()), Some(Sha256::new()));
            }
            self.connections.push(Receiving { id, begin, drain, feed, events: Events::empty() });
        }
        Ok(())
    }

    fn note_events(&mut self) {
        while let Some((id, events)) = self.driver.stack.poll_event() {
            if let Some(connection) = self.connections.iter_mut().find(|c| c.id == id) {
                connection.events |= events;
            }
        }
    }

    fn pump(&mut self, at: usize, ready: Ready) -> Result<(), Failure> {
        let Receiving { id, drain, feed, events, .. } = &mut self.connections[at];
        drain.pump(&mut self.driver, *id, ready.output)?;
        let peer_done = events.contains(Events::PEER_CLOSED) && drain.is_empty(&self.driver, *id);
        if peer_done
            && !feed.has_ended()
            && let Some(word) = drain.partial().and_then(Partial::last_word)
        {
            self.driver.stack.write(self.driver.now(), *id, word.as_bytes());
        }
        if self.args.source.is_some() || self.args.answer.is_some() || peer_done {
            feed.pump(&mut self.driver, *id, true)?;
        }
        Ok(())
    }

    /// Prints the result of a finished connection.
    fn ended(&self, at: usize) -> Option<Report> {
        let connection = &self.connections[at];
        let state = self.driver.stack.connection(connection.id).map(Connection::state);
        let over =
            state.is_none_or(transfer::is_over) && connection.drain.is_empty(&self.driver, connection.id);
        if !over {
            return None;
        }
        let mut report = Report::of(&self.driver, connection.id, connection.begin, self.cc)?;
        if connection.events.contains(Events::RESET) {
            report.fail("connection reset by the peer");
        } else if connection.events.contains(Events::TIMED_OUT) {
            report.fail("the peer does not answer");
        }
        Some(report)
    }

    /// Resets a connection, so that the peer learns at once that nobody reads its data.
    fn give_up(&mut self, at: usize, why: &str) {
        let connection = &self.connections[at];
        let report = Report::of(&self.driver, connection.id, connection.begin, self.cc);
        self.driver.stack.abort(self.driver.now(), connection.id);
        self.driver.flush();
        if let Some(mut report) = report {
            report.fail(why);
            self.conclude(at, report);
        }
    }

    fn conclude(&mut self, at: usize, report: Report) {
        let connection = self.connections.swap_remove(at);
        self.driver.stack.release(connection.id);
        let mut report = report.with_digests(&connection.feed, &connection.drain);
        // The advice for a foreign part is in the error.
        let kept = connection.drain.partial().filter(|partial| !partial.is_foreign()).map(|partial| {
            let (have, total) = partial.progress();
            let all = total.map_or(String::new(), |total| format!(" of {total}"));
            format!(
                "; {have}{all} bytes are kept in {}; the same commands continue from there",
                partial.part().display()
            )
        });
        let is_whole = connection.drain.partial().is_none_or(|partial| partial.last_word().is_some());
        if report.complete
            && let Err(why) = connection.drain.finish()
        {
            report.fail(&why.to_string());
        }
        if let (Some(kept), false, Some(why)) = (kept, is_whole, report.error.clone()) {
            report.fail(&(why + &kept));
        }
        if !self.args.wire.json {
            report.tell();
        }
        self.reports.push(report);
    }

    fn finish(mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        for at in (0..self.connections.len()).rev() {
            self.give_up(at, "interrupted");
        }
        let until = self.driver.now() + FAREWELL;
        while self.driver.now() < until {
            let _ = self.driver.turn(until.since(self.driver.now()), Interest::default());
        }
        if self.args.wire.json {
            output::print_json(&self.reports)?;
        }
        let failed: Vec<_> = self.reports.iter().filter(|report| !report.complete).collect();
        let waited_in_vain = self.args.connections > 0 && (self.reports.len() as u64) < self.args.connections;
        match failed.as_slice() {
            [] => {}
            [one] => {
                let why = one.error.as_deref().unwrap_or_default();
                return Err(Failure::Work(format!("incomplete transfer from {}: {why}", one.peer)));
            }
            many => {
                let why = |report: &&Report| {
                    format!("\n  from {}: {}", report.peer, report.error.as_deref().unwrap_or_default())
                };
                let all: String = many.iter().map(why).collect();
                return Err(Failure::Work(format!("{} incomplete transfers:{all}", many.len())));
            }
        }
        if waited_in_vain && interrupt.wanted() {
            return Err(Failure::Work("interrupted before a transfer was complete".into()));
        }
        Ok(())
    }
}
