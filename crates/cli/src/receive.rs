//! `bentpipe receive`.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Driver, Id, Interest, Ready};
use bentpipe_tcp::{Connection, Events};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::quic;
use crate::transfer::{self, End, Incoming, Output, OverTcp, PATIENCE, Progress, Report};
use crate::transfer_args::{ReceiveArgs, Transport};

/// Time for which the peers' last segments are answered before the stack ends.
const FAREWELL: Duration = Duration::from_millis(300);

/// A connection that a peer opened.
struct Receiving {
    id: Id,
    begin: Instant,
    data: Incoming,
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
    match args.wire.transport {
        Transport::Tcp => over_tcp(args),
        Transport::Quic => quic::receive(args),
    }
}

fn over_tcp(args: &ReceiveArgs) -> Result<(), Failure> {
    let config = transfer::config(&args.wire, End::Receiver)?;
    let cc = config.sender.cc.name();
    let output = transfer::open_output(args)?;
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
            let under_way = self.connections.iter().map(|c| c.data.bytes()).sum::<u64>();
            progress.show(done_bytes + under_way);
            if self.reports.len() as u64 >= wanted || interrupt.wanted() {
                return Ok(());
            }
            // Only a single connection can wait for its file.
            let interest = match self.connections.as_slice() {
                [only] => Interest {
                    input: None,
                    output: only.data.waits_for(transfer::is_readable(&self.driver, only.id)),
                },
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
            let data = Incoming::begin(self.args, self.output.take())?;
            let begin = self.driver.now();
            self.connections.push(Receiving { id, begin, data, events: Events::empty() });
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
        let Receiving { id, data, events, .. } = &mut self.connections[at];
        let mut stream = OverTcp { driver: &mut self.driver, id: *id };
        data.pump(&mut stream, ready.output, |stream| {
            events.contains(Events::PEER_CLOSED) && !transfer::is_readable(stream.driver, *id)
        })
    }

    /// Prints the result of a finished connection.
    fn ended(&self, at: usize) -> Option<Report> {
        let connection = &self.connections[at];
        let state = self.driver.stack.connection(connection.id).map(Connection::state);
        let is_drained =
            !transfer::is_readable(&self.driver, connection.id) && connection.data.has_written_all();
        if !(state.is_none_or(transfer::is_over) && is_drained) {
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
        let report = connection.data.conclude(report, self.args);
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
        transfer::verdict(&self.reports, self.args.connections, interrupt.wanted())
    }
}
