//! `bentpipe send`.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Driver, Id, Interest, Network, Ready, Unreachable};
use bentpipe_tcp::{Connection, Events, State};
use bentpipe_trace::{JsonLines, Record, Sink};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::quic;
use crate::reach;
use crate::remembered::Remembered;
use crate::transfer::{self, End, Outgoing, OverTcp, Progress, Report};
use crate::transfer_args::{SendArgs, Transport};

/// Time for the peer to close its direction after ours, if its data is not wanted.
const LINGER: Duration = Duration::from_secs(3);
/// Time for which the peer's last segment is answered before the stack ends.
const FAREWELL: Duration = Duration::from_millis(300);

/// Time without an answer to the SYN, repeated once by then, after which a hint is printed.
const SILENCE: Duration = Duration::from_millis(2500);
/// Meaning of a reset before the connection is established.
pub const REFUSED: &str = "the connection was refused: nothing listens on that port";

/// A transfer in progress.
struct Sending {
    driver: Driver,
    id: Id,
    begin: Instant,
    /// Name of the algorithm.
    cc: &'static str,
    trace: Option<Trace>,
    data: Outgoing,
    /// All events so far.
    events: Events,
    /// Hint for a peer that does not answer.
    silence: Option<String>,
    /// File with the capacities of paths.
    remembered: Option<Remembered>,
}

/// Writer of the connection's events.
struct Trace {
    target: Target,
    lines: JsonLines<Box<dyn Write + Send>, fn(u32) -> String>,
}

impl Trace {
    fn start(target: Target, driver: &mut Driver, id: Id) -> Result<Self, Failure> {
        driver.stack.trace(id);
        let name: fn(u32) -> String = |_| "sender".to_owned();
        Ok(Self { lines: JsonLines::new(target.events()?, name), target })
    }

    /// Writes the events since the last call; `begin` is the start of the connection.
    fn drain(&mut self, driver: &mut Driver, id: Id, begin: Instant) {
        while let Some((at, event)) = driver.stack.poll_trace(id) {
            self.lines.record(&Record { at: Instant::ZERO + at.since(begin), source: 0, event });
        }
    }

    fn finish(self) -> Result<(), Failure> {
        self.lines.finish().map_err(|error| Failure::Work(format!("cannot write {error}")))?;
        self.target.finish()
    }
}

/// Sends a file to HOST:PORT.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    match args.wire.transport {
        Transport::Tcp => over_tcp(args),
        Transport::Quic => quic::send(args),
    }
}

fn over_tcp(args: &SendArgs) -> Result<(), Failure> {
    let of_quic = [("--fingerprint", args.fingerprint.is_some()), ("--qlog", args.qlog.is_some())];
    if let Some((option, _)) = of_quic.iter().find(|(_, is_given)| *is_given) {
        let why = format!("found {option} without QUIC, accepted: {option} with --transport quic");
        return Err(Failure::Request(why));
    }
    let mut config = transfer::config(&args.wire, End::Sender)?;
    let cc = config.sender.cc.name();
    let trace = output::open(args.trace.as_ref(), Kind::Events)?;
    let data = Outgoing::open(args)?;
    let (ours, remote) = resolve(args)?;
    reach::check(&ours, remote.ip())?;
    let remembered = args.remember.as_deref();
    let remembered = remembered.map(|path| Remembered::open(path, remote.ip(), &mut config)).transpose()?;
    let interrupt = Interrupt::listen()?;
    let (mut driver, _claim) = transfer::driver(&args.wire)?;
    let begin = driver.now();
    let id = driver
        .stack
        .connect(begin, remote, config)
        .map_err(|why| Failure::Request(format!("cannot connect to {remote}: {why}")))?;
    let trace = trace.map(|target| Trace::start(target, &mut driver, id)).transpose()?;
    // The first packet must not wait for a full buffer.
    driver.flush();
    let progress = Progress::new(format!("Sending to {remote}"), data.total);
    let mut sending = Sending {
        driver,
        id,
        begin,
        cc,
        trace,
        data,
        events: Events::empty(),
        silence: reach::silence(&ours, remote.ip()),
        remembered,
    };
    let failure = sending.run(&progress, &interrupt).unwrap_or_else(|why| {
        sending.abort();
        Some(why.to_string())
    });
    drop(progress);
    sending.finish(args, failure)
}

/// Returns the first address of the host that the stack can reach, and the stack's network for it.
fn resolve(args: &SendArgs) -> Result<(Network, SocketAddr), Failure> {
    let found = args
        .to
        .to_socket_addrs()
        .map_err(|error| Failure::Request(format!("found `{}`, accepted: HOST:PORT ({error})", args.to)))?;
    let mut refused = None;
    for remote in found {
        // ::ffff:192.0.2.1 is 192.0.2.1 for its host.
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let ours = args.wire.address.iter().find(|network| network.own.is_ipv4() == remote.is_ipv4());
        match ours.map(|network| (network, network.check_reach(remote.ip()))) {
            Some((network, Ok(()))) => return Ok((*network, remote)),
            Some((network, Err(why))) => {
                refused.get_or_insert_with(|| out_of_reach(&args.to, (network, remote.ip()), why));
            }
            None => {}
        }
    }
    let none = || Failure::Request(format!("{} has no address of the IP version of --address", args.to));
    Err(refused.unwrap_or_else(none))
}

/// Returns the reason why packets from `network` cannot reach `to`, with an alternative.
fn out_of_reach(to: &str, (network, remote): (&Network, IpAddr), why: Unreachable) -> Failure {
    let accepted = match why {
        Unreachable::Own => {
            "another host; two stacks on one host need two networks (--address 10.105.0.6/30)".to_owned()
        }
        _ => format!(
            "a host that packets from {} reach; from there this host is {}, for servers that listen on all addresses and not only on loopback",
            network.own,
            network.kernel()
        ),
    };
    Failure::Request(format!("HOST:PORT: found `{to}` ({remote}): {why}; accepted: {accepted}"))
}

impl Sending {
    /// Runs until everything is acknowledged, or returns the reason of the failure.
    fn run(&mut self, progress: &Progress, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
        let mut ready = Ready::default();
        let mut acknowledged_at = None;
        loop {
            let mut stream = OverTcp { driver: &mut self.driver, id: self.id };
            self.data.pump(&mut stream, ready, progress)?;
            while let Some((_, events)) = self.driver.stack.poll_event() {
                self.events |= events;
            }
            if let Some(trace) = &mut self.trace {
                trace.drain(&mut self.driver, self.id, self.begin);
            }
            progress.show(self.acknowledged());
            self.mention_silence(progress);
            if let Some(why) = self.failure() {
                return Ok(self.data.take_refusal().or(Some(why)));
            }
            if interrupt.wanted() {
                self.abort();
                return Ok(Some("interrupted".into()));
            }
            let state = self.state();
            let is_readable = transfer::is_readable(&self.driver, self.id);
            if transfer::is_over(state) && !is_readable && self.data.has_written_all() {
                return Ok(self.data.verdict());
            }
            if state == State::FinWait2 && !self.data.wants_reply {
                let since = *acknowledged_at.get_or_insert(self.driver.now());
                if self.driver.now().since(since) > LINGER {
                    return Ok(None);
                }
            }
            let (interest, patience) = self.data.interest(is_readable);
            ready = self
                .driver
                .turn(patience, interest)
                .map_err(|error| Failure::Work(format!("the TUN device failed: {error}")))?;
        }
    }

    /// Resets the connection, so that the peer does not wait for missing data.
    fn abort(&mut self) {
        self.driver.stack.abort(self.driver.now(), self.id);
        self.driver.flush();
    }

    fn state(&self) -> State {
        self.driver.stack.connection(self.id).map_or(State::Closed, Connection::state)
    }

    fn acknowledged(&self) -> u64 {
        self.driver.stack.connection(self.id).map_or(0, Connection::acknowledged_bytes)
    }

    fn failure(&self) -> Option<String> {
        let established = self.events.contains(Events::ESTABLISHED);
        let why = if self.events.contains(Events::RESET) {
            if established { "connection reset by the peer" } else { REFUSED }
        } else if self.events.contains(Events::TIMED_OUT) {
            match self
                .driver
                .stack
                .connection(self.id)
                .is_some_and(|connection| connection.stats().path_errors > 0)
            {
                true => "the peer does not answer, and a router reported that it has no route to it",
                false => "the peer does not answer",
            }
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// Prints a hint once if no answer arrives.
    fn mention_silence(&mut self, progress: &Progress) {
        let silent = self.state() == State::SynSent && self.driver.now().since(self.begin) > SILENCE;
        if let Some(text) = self.silence.take_if(|_| silent) {
            progress.say(&text);
        }
    }

    /// Prints the result, and answers segments that the peer still repeats.
    fn finish(mut self, args: &SendArgs, failure: Option<String>) -> Result<(), Failure> {
        let report = Report::of(&self.driver, self.id, self.begin, self.cc);
        let report = report.ok_or_else(|| Failure::Work("the connection is gone".into()))?;
        let mut report = self.data.sign(report);
        if let Some(why) = &failure {
            report.fail(why);
        }
        let until = self.driver.now() + FAREWELL;
        while failure.is_none() && self.driver.now() < until {
            let _ = self.driver.turn(until.since(self.driver.now()), Interest::default());
        }
        self.trace.map_or(Ok(()), Trace::finish)?;
        if failure.is_none() {
            self.data.finish()?;
            self.remembered.map_or(Ok(()), Remembered::save)?;
        }
        let begun = self.events.contains(Events::ESTABLISHED);
        if args.wire.json {
            output::print_json(&report)?;
        } else if begun {
            report.tell();
        }
        match failure {
            None => Ok(()),
            Some(why) if begun => {
                Err(Failure::Work(format!("incomplete transfer to {}: {why}", report.peer)))
            }
            Some(why) => Err(Failure::Work(format!("no connection to {}: {why}", report.peer))),
        }
    }
}
