//! `bentpipe send --transport quic`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_host::{Interest, Ready};
use noq_proto::ClientConfig;

use super::certificate::{self, Fingerprint, Pin};
use super::live::{self, Live};
use super::options::Options;
use super::qlog::Qlog;
use super::wire::Wire;
use super::{FAREWELL, socket_failed};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::remembered::Remembered;
use crate::send::REFUSED;
use crate::transfer::{self, Outgoing, Progress, Report};
use crate::transfer_args::SendArgs;

/// Time for the peer to end its direction after ours, if its data is not wanted.
const LINGER: Duration = Duration::from_secs(3);

/// Time for the last acknowledgement: QUIC delays it by at most 25 ms. It leaves before the close, because one packet may be lost.
const ACK_DELAY: Duration = Duration::from_millis(30);

/// A transfer in progress.
struct Sending {
    wire: Wire,
    data: Outgoing,
    pin: Arc<Pin>,
    /// Time at which the peer had acknowledged all data.
    acknowledged_at: Option<Instant>,
}

/// Sends a file to HOST:PORT.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    if args.trace.is_some() {
        let why = "found --trace with --transport quic, accepted: --qlog FILE";
        return Err(Failure::Request(why.into()));
    }
    let mut options = Options::of(&args.wire, transfer::End::Sender)?;
    let pin = Pin::new(fingerprint(args)?);
    let cc = args.wire.cc.as_deref().unwrap_or(transfer::USUAL);
    let qlog = args.qlog.as_deref().map(|path| Qlog::open(path, cc)).transpose()?;
    let data = Outgoing::open(args)?;
    let remote = resolve(&args.to)?;
    let remembered = match &args.remember {
        Some(_) if options.is_of_stack() => {
            let why = "--remember: found a congestion control of the QUIC stack, accepted: one of `bentpipe list cc`";
            return Err(Failure::Request(why.into()));
        }
        Some(path) => Some(Remembered::open(path, remote.ip(), &mut options.config)?),
        None => None,
    };
    let interrupt = Interrupt::listen()?;
    let control = options.control()?;
    let mut transport = options.transport(&control, remote);
    if let Some(qlog) = &qlog {
        transport.qlog_factory(qlog.factory()?);
    }
    let mut config = ClientConfig::new(Arc::new(certificate::client(pin.clone())));
    config.transport_config(Arc::new(transport));
    let unreachable =
        |error: &dyn std::fmt::Display| Failure::Missing(format!("cannot reach {remote}: {error}"));
    let mut wire = Wire::client(remote, options.most_payload()).map_err(|error| unreachable(&error))?;
    wire.connect(config, remote, control).map_err(|error| unreachable(&error))?;
    let progress = Progress::new(format!("Sending to {remote}"), data.total);
    let mut sending = Sending { wire, data, pin, acknowledged_at: None };
    let result = sending.run(&progress, &interrupt);
    drop(progress);
    let result = sending.finish(args, remembered, result);
    // The connection is gone, and with it the writer of its events.
    qlog.map_or(Ok(()), Qlog::finish)?;
    result
}

fn fingerprint(args: &SendArgs) -> Result<Fingerprint, Failure> {
    let text = args.fingerprint.as_deref().ok_or_else(|| {
        let accepted = "--fingerprint SHA256, which `bentpipe receive --transport quic` prints";
        Failure::Request(format!("found --transport quic without a certificate, accepted: {accepted}"))
    })?;
    text.parse().map_err(|why| Failure::Request(format!("--fingerprint: {why}")))
}

/// Returns the first address of the host.
fn resolve(to: &str) -> Result<SocketAddr, Failure> {
    let refused =
        |why: &dyn std::fmt::Display| Failure::Request(format!("found `{to}`, accepted: HOST:PORT ({why})"));
    let mut found = to.to_socket_addrs().map_err(|error| refused(&error))?;
    let remote = found.next().ok_or_else(|| refused(&"the host has no address"))?;
    // ::ffff:192.0.2.1 is 192.0.2.1 for its host.
    Ok(SocketAddr::new(remote.ip().to_canonical(), remote.port()))
}

impl Sending {
    fn live(&mut self) -> &mut Live {
        &mut self.wire.connections[0].1
    }

    /// Runs until the peer has everything.
    fn run(&mut self, progress: &Progress, interrupt: &Interrupt) -> Result<(), Failure> {
        let mut ready = Ready::default();
        loop {
            let live = &mut self.wire.connections[0].1;
            live.open();
            self.data.pump(live, ready, progress)?;
            progress.show(live.acknowledged());
            if let Some(result) = self.ended() {
                return result;
            }
            if interrupt.wanted() {
                return Err(Failure::Work("interrupted".into()));
            }
            let (interest, patience) = self.data.interest(self.wire.connections[0].1.is_readable());
            let patience = Duration::from_nanos(patience.as_nanos());
            ready = self.wire.turn(patience, interest).map_err(socket_failed)?;
        }
    }

    /// Returns the result once the transfer is over.
    fn ended(&mut self) -> Option<Result<(), Failure>> {
        let live = &self.wire.connections[0].1;
        let has_all = live.has_read_all && self.data.has_written_all();
        match &live.end {
            Some(live::End::Unfit(why)) => return Some(Err(Failure::Request((*why).to_owned()))),
            Some(live::End::Silent) => {
                let why = self.data.take_refusal().unwrap_or_else(|| live::SILENT.to_owned());
                return Some(Err(Failure::Work(why)));
            }
            Some(live::End::Failed(why)) => {
                let refusal = self.pin.refusal().map(Failure::Request);
                let why = self.data.take_refusal().unwrap_or_else(|| why.clone());
                return Some(Err(refusal.unwrap_or(Failure::Work(why))));
            }
            Some(live::End::Done) if !has_all => return Some(Err(Failure::Work(live::TOO_SOON.into()))),
            Some(live::End::Done) | None => {}
        }
        if self.wire.is_refused && !live.is_established {
            return Some(Err(Failure::Work(REFUSED.into())));
        }
        if !live.is_acknowledged() {
            return None;
        }
        let since = *self.acknowledged_at.get_or_insert_with(Instant::now);
        let has_lingered = !self.data.wants_reply && since.elapsed() > LINGER;
        (has_all || has_lingered).then(|| self.data.verdict().map_or(Ok(()), |why| Err(Failure::Work(why))))
    }

    /// Sends and receives packets for some time, unless the connection ends before.
    fn turn_for(&mut self, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.live().connection.is_drained() {
            self.wire.turn(until - Instant::now(), Interest::default()).map_err(socket_failed)?;
        }
        Ok(())
    }

    /// Ends the connection, and prints the result.
    fn finish(
        mut self,
        args: &SendArgs,
        remembered: Option<Remembered>,
        result: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let report = self.live().report();
        let begun = self.live().is_established;
        let mut report = self.data.sign(report);
        let why = result.as_ref().err().map(ToString::to_string);
        if let Some(why) = &why {
            report.fail(why);
        }
        if result.is_ok() {
            self.turn_for(ACK_DELAY)?;
        }
        self.live().close(why.as_deref());
        if result.is_ok() {
            self.turn_for(FAREWELL)?;
        }
        self.wire.flush();
        if result.is_ok() {
            self.data.finish()?;
            remembered.map_or(Ok(()), Remembered::save)?;
        }
        tell(args, &report, begun)?;
        let peer = report.peer;
        let at = |why| match begun {
            true => format!("incomplete transfer to {peer}: {why}"),
            false => format!("no connection to {peer}: {why}"),
        };
        result.map_err(|failure| match failure {
            Failure::Work(why) => Failure::Work(at(why)),
            Failure::Request(why) => Failure::Request(at(why)),
            Failure::Missing(why) => Failure::Missing(at(why)),
        })
    }
}

fn tell(args: &SendArgs, report: &Report, begun: bool) -> Result<(), Failure> {
    if args.wire.json {
        return output::print_json(report);
    }
    if begun {
        report.tell();
    }
    Ok(())
}
