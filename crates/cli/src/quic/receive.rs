//! `bentpipe receive --transport quic`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_host::{Interest, Ready};
use noq_proto::ServerConfig;

use super::live;
use super::options::Options;
use super::wire::Wire;
use super::{FAREWELL, certificate, socket_failed};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::transfer::{self, Incoming, Output, PATIENCE, Progress, Report};
use crate::transfer_args::ReceiveArgs;

/// Handshakes that may be in progress. A sender of false handshakes does not prevent others within this number.
const MOST_HANDSHAKES: usize = 64;
/// Reason for a peer that comes after all wanted connections.
const BUSY: &str = "the receiver takes no more connections";

/// All open connections. `data` has the same order as the connections of `wire`; `None` during a handshake.
struct Server<'a> {
    args: &'a ReceiveArgs,
    options: Options,
    config: ServerConfig,
    wire: Wire,
    data: Vec<Option<Incoming>>,
    output: Option<Output>,
    reports: Vec<Report>,
    accepted: u64,
}

/// Accepts connections to PORT.
pub fn receive(args: &ReceiveArgs) -> Result<(), Failure> {
    let options = Options::of(&args.wire, transfer::End::Receiver)?;
    let output = transfer::open_output(args)?;
    let (crypto, fingerprint) = certificate::server(certificate::PROTOCOL)?;
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    let interrupt = Interrupt::listen()?;
    let wire = Wire::server(args.port, Arc::new(config.clone()), options.most_payload())
        .map_err(|error| Failure::Missing(format!("cannot listen on UDP port {}: {error}", args.port)))?;
    eprintln!("listening on UDP port {}", args.port);
    eprintln!("certificate: --fingerprint {fingerprint}");
    let (data, reports) = (Vec::new(), Vec::new());
    let mut server = Server { args, options, config, wire, data, output, reports, accepted: 0 };
    server.run(&interrupt)?;
    server.finish(&interrupt)
}

impl Server<'_> {
    fn wanted(&self) -> u64 {
        if self.args.connections == 0 { u64::MAX } else { self.args.connections }
    }

    fn run(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let progress = Progress::new(format!("Receiving on UDP port {}", self.args.port), None);
        let mut ready = Ready::default();
        let mut done_bytes = 0;
        loop {
            self.accept()?;
            for at in (0..self.data.len()).rev() {
                if let Err(why) = self.pump(at, ready) {
                    self.give_up(at, &why.to_string());
                } else if let Some(report) = self.ended(at) {
                    done_bytes += report.received_bytes.max(report.sent_bytes);
                    self.conclude(at, report, None);
                }
            }
            self.drop_lost_handshakes();
            let under_way = self.data.iter().flatten().map(Incoming::bytes).sum::<u64>();
            progress.show(done_bytes + under_way);
            if self.reports.len() as u64 >= self.wanted() || interrupt.wanted() {
                return Ok(());
            }
            // Only a single connection can wait for its file.
            let interest = match (self.data.as_slice(), self.wire.connections.as_slice()) {
                ([Some(data)], [(_, live)]) => {
                    Interest { input: None, output: data.waits_for(live.is_readable()) }
                }
                _ => Interest::default(),
            };
            ready =
                self.wire.turn(Duration::from_nanos(PATIENCE.as_nanos()), interest).map_err(socket_failed)?;
        }
    }

    /// Accepts handshakes, and begins the transfers of those that are complete.
    fn accept(&mut self) -> Result<(), Failure> {
        while let Some(incoming) = self.wire.incoming.pop_front() {
            let handshakes = self.data.iter().filter(|data| data.is_none()).count();
            if self.accepted >= self.wanted() || handshakes >= MOST_HANDSHAKES {
                self.wire.refuse(incoming);
                continue;
            }
            let control = self.options.control()?;
            let mut config = self.config.clone();
            let transport = self.options.transport(&control, incoming.remote_address());
            config.transport_config(Arc::new(transport));
            self.wire.accept(incoming, Arc::new(config), control);
            self.data.resize_with(self.wire.connections.len(), || None);
        }
        for at in (0..self.data.len()).rev() {
            if self.data[at].is_some() || !self.wire.connections[at].1.is_established {
                continue;
            }
            if self.accepted >= self.wanted() {
                self.wire.connections[at].1.close(Some(BUSY));
                self.remove(at);
                continue;
            }
            self.accepted += 1;
            self.data[at] = Some(Incoming::begin(self.args, self.output.take())?);
        }
        Ok(())
    }

    fn pump(&mut self, at: usize, ready: Ready) -> Result<(), Failure> {
        let Some(data) = &mut self.data[at] else { return Ok(()) };
        data.pump(&mut self.wire.connections[at].1, ready.output, |live| live.has_read_all)
    }

    /// Returns the report of a finished transfer.
    fn ended(&mut self, at: usize) -> Option<Report> {
        let data = self.data[at].as_ref()?;
        let live = &mut self.wire.connections[at].1;
        let has_all = live.has_read_all && data.has_written_all();
        match &live.end {
            // This end's stream is empty, and only its end is unconfirmed.
            Some(live::End::Done | live::End::Silent)
                if has_all && (live.is_acknowledged() || !data.answers()) =>
            {
                Some(live.report())
            }
            // A peer that reads data closes the connection itself, after the last of it.
            None if has_all && live.is_acknowledged() && !data.answers() => Some(live.report()),
            None => None,
            Some(end) => {
                let why = match end {
                    live::End::Done => live::TOO_SOON,
                    live::End::Silent => live::SILENT,
                    live::End::Failed(why) => why,
                    live::End::Unfit(why) => why,
                };
                let (why, mut report) = (why.to_owned(), live.report());
                report.fail(&why);
                Some(report)
            }
        }
    }

    /// Ends a connection, so that the peer learns at once that nobody reads its data.
    fn give_up(&mut self, at: usize, why: &str) {
        let mut report = self.wire.connections[at].1.report();
        report.fail(why);
        self.conclude(at, report, Some(why));
    }

    fn conclude(&mut self, at: usize, report: Report, why: Option<&str>) {
        self.wire.connections[at].1.close(why);
        if let Some(data) = self.remove(at) {
            self.reports.push(data.conclude(report, self.args));
        }
    }

    fn remove(&mut self, at: usize) -> Option<Incoming> {
        self.wire.remove(at);
        self.data.remove(at)
    }

    /// Removes connections that ended before they were established.
    fn drop_lost_handshakes(&mut self) {
        for at in (0..self.data.len()).rev() {
            let live = &self.wire.connections[at].1;
            if self.data[at].is_none() && !live.is_established && live.end.is_some() {
                self.remove(at);
            }
        }
    }

    fn finish(mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        for at in (0..self.data.len()).rev() {
            self.give_up(at, "interrupted");
        }
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            self.wire.turn(until - Instant::now(), Interest::default()).map_err(socket_failed)?;
        }
        if self.args.wire.json {
            output::print_json(&self.reports)?;
        }
        transfer::verdict(&self.reports, self.args.connections, interrupt.wanted())
    }
}
