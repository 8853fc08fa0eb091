//! Data of `receive`: the received file, the data sent in return, and the result.

use std::os::fd::BorrowedFd;
use std::path::Path;

use sha2::Sha256;

use super::{Drain, Feed, Input, Output, Report, Stream};
use crate::failure::Failure;
use crate::resume::Partial;
use crate::transfer_args::ReceiveArgs;

/// Both directions of a connection of `receive`.
pub struct Incoming {
    drain: Drain,
    feed: Feed,
    /// True if data is sent that does not depend on the received data.
    answers: bool,
    /// First line to the peer, until it is sent.
    greeting: Option<String>,
}

/// Opens the file for received data. Checks the arguments that belong to it.
pub fn open_output(args: &ReceiveArgs) -> Result<Option<Output>, Failure> {
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
    Ok(output)
}

impl Incoming {
    /// Begins a connection.
    pub fn begin(args: &ReceiveArgs, output: Option<Output>) -> Result<Self, Failure> {
        let mut drain = Drain::new(output.unwrap_or(Output::Nowhere));
        // A side with data sends it; any other side closes when the peer does.
        let mut feed = Feed::new(match &args.answer {
            Some(file) => Input::open(file)?,
            None => Input::Zeros(args.source.unwrap_or(0)),
        });
        if args.wire.sha256 && !args.resume {
            (drain.hash, feed.hash) = (Some(Sha256::default()), Some(Sha256::default()));
        }
        let greeting = drain.partial().map(Partial::greeting);
        let answers = args.source.is_some() || args.answer.is_some();
        Ok(Self { drain, feed, answers, greeting })
    }

    /// Moves data that can be moved now. `peer_done` returns true if all data of the peer was read from the connection.
    pub fn pump<S: Stream>(
        &mut self,
        stream: &mut S,
        is_ready: bool,
        peer_done: impl FnOnce(&S) -> bool,
    ) -> Result<(), Failure> {
        // A new connection has buffer for a line.
        if let Some(line) = self.greeting.take_if(|_| stream.room() > 0) {
            stream.write(line.as_bytes());
        }
        self.drain.pump(stream, is_ready)?;
        let peer_done = peer_done(stream) && self.drain.has_written_all();
        if peer_done
            && !self.feed.has_ended()
            && let Some(word) = self.drain.partial().and_then(Partial::last_word)
        {
            stream.write(word.as_bytes());
        }
        if self.answers || peer_done {
            self.feed.pump(stream, true)?;
        }
        Ok(())
    }

    /// Returns the descriptor to poll. `is_readable` is true if the connection has data.
    pub fn waits_for(&self, is_readable: bool) -> Option<BorrowedFd<'_>> {
        self.drain.waits_for(is_readable)
    }

    /// True if data is sent that does not depend on the received data.
    #[cfg(feature = "quic")]
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// True if all data read from the connection was written.
    pub fn has_written_all(&self) -> bool {
        self.drain.has_written_all()
    }

    /// Returns the bytes moved in the direction with more data.
    pub fn bytes(&self) -> u64 {
        self.drain.bytes.max(self.feed.bytes)
    }

    /// Ends the connection: a complete file gets its name, and the report its digests. Prints the report unless JSON is wanted.
    pub fn conclude(self, report: Report, args: &ReceiveArgs) -> Report {
        let mut report = report.with_digests(&self.feed, &self.drain);
        // The advice for a foreign part is in the error.
        let kept = self.drain.partial().filter(|partial| !partial.is_foreign()).map(|partial| {
            let (have, total) = partial.progress();
            let all = total.map_or(String::new(), |total| format!(" of {total}"));
            format!(
                "; {have}{all} bytes are kept in {}; the same commands continue from there",
                partial.part().display()
            )
        });
        let is_whole = self.drain.partial().is_none_or(|partial| partial.last_word().is_some());
        if report.complete
            && let Err(why) = self.drain.finish()
        {
            report.fail(&why.to_string());
        }
        if let (Some(kept), false, Some(why)) = (kept, is_whole, report.error.clone()) {
            report.fail(&(why + &kept));
        }
        if !args.wire.json {
            report.tell();
        }
        report
    }
}

/// Returns the result of all connections.
pub fn verdict(reports: &[Report], wanted: u64, is_interrupted: bool) -> Result<(), Failure> {
    let failed: Vec<_> = reports.iter().filter(|report| !report.complete).collect();
    let why = |report: &Report| report.error.clone().unwrap_or_default();
    match failed.as_slice() {
        [] if is_interrupted && (reports.len() as u64) < wanted => {
            Err(Failure::Work("interrupted before a transfer was complete".into()))
        }
        [] => Ok(()),
        [one] => Err(Failure::Work(format!("incomplete transfer from {}: {}", one.peer, why(one)))),
        many => {
            let all: String =
                many.iter().map(|report| format!("\n  from {}: {}", report.peer, why(report))).collect();
            Err(Failure::Work(format!("{} incomplete transfers:{all}", many.len())))
        }
    }
}
