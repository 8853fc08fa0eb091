//! Data of `send`: the file, the peer's data, and the lines that resume a transfer.

use bentpipe_base::Duration;
use bentpipe_host::{Interest, Ready};
use sha2::Sha256;

use super::{Drain, Feed, Input, Output, PATIENCE, Progress, Report, Stream};
use crate::failure::Failure;
use crate::resume::Offer;
use crate::transfer_args::SendArgs;

/// Both directions of a connection of `send`.
pub struct Outgoing {
    feed: Feed,
    drain: Drain,
    /// True if the peer's data is wanted.
    pub wants_reply: bool,
    /// A file of which the peer may have a part, until this is known.
    offer: Option<Offer>,
    /// Why nothing of an offered file is sent.
    refusal: Option<String>,
    /// True if the peer verifies the file at the end.
    compares: bool,
    /// Number of bytes to send, if known.
    pub total: Option<u64>,
}

impl Outgoing {
    /// Opens the file to send, and that for the peer's data.
    pub fn open(args: &SendArgs) -> Result<Self, Failure> {
        let offer = args.file.as_deref().filter(|_| args.resume).map(Offer::of).transpose()?;
        let (input, total) = match args.zeros {
            _ if offer.is_some() => (Input::Later, None),
            Some(bytes) => (Input::Zeros(bytes), Some(bytes)),
            None => {
                let input = Input::open(args.file.as_deref().ok_or_else(no_file)?)?;
                let total = input.len();
                (input, total)
            }
        };
        let reply = args.reply.as_deref().map(Output::open).transpose()?;
        let reply = reply.or_else(|| args.resume.then(|| Output::Words(Vec::new())));
        let wants_reply = reply.is_some();
        let (mut feed, mut drain) = (Feed::new(input), Drain::new(reply.unwrap_or(Output::Nowhere)));
        if args.wire.sha256 && !args.resume {
            (feed.hash, drain.hash) = (Some(Sha256::default()), Some(Sha256::default()));
        }
        Ok(Self { feed, drain, wants_reply, offer, refusal: None, compares: args.resume, total })
    }

    /// Moves data that can be moved now. Once the peer's part of the file is known, sends the rest.
    pub fn pump(
        &mut self,
        stream: &mut impl Stream,
        ready: Ready,
        progress: &Progress,
    ) -> Result<(), Failure> {
        self.feed.pump(stream, ready.input)?;
        self.drain.pump(stream, ready.output)?;
        let Some(offer) = &mut self.offer else { return Ok(()) };
        let Some(rest) = offer.step(self.drain.words())? else { return Ok(()) };
        self.refusal = offer.refusal();
        progress.expect(rest.left());
        self.feed = Feed::new(Input::Rest(rest));
        self.offer = None;
        Ok(())
    }

    /// Returns the files to wait for, and the longest time. `is_readable` is true if the connection has data.
    pub fn interest(&self, is_readable: bool) -> (Interest<'_>, Duration) {
        let interest = Interest { input: self.feed.waits_for(), output: self.drain.waits_for(is_readable) };
        // Hashing of a file continues at once.
        let is_busy = self.offer.as_ref().is_some_and(Offer::is_busy);
        (interest, if is_busy { Duration::ZERO } else { PATIENCE })
    }

    /// True if all data read from the connection was written.
    pub fn has_written_all(&self) -> bool {
        self.drain.has_written_all()
    }

    /// Returns why nothing of the file is sent, once.
    pub fn take_refusal(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// Returns the reason if the peer does not have the same file after a regular end.
    pub fn verdict(&self) -> Option<String> {
        let verdict = || Offer::verdict(self.drain.words()).filter(|_| self.compares);
        self.refusal.clone().or_else(verdict)
    }

    /// Adds the requested digests to a report.
    pub fn sign(&self, report: Report) -> Report {
        report.with_digests(&self.feed, &self.drain)
    }

    /// Gives the file of the peer's data its name.
    pub fn finish(self) -> Result<(), Failure> {
        self.drain.finish()
    }
}

fn no_file() -> Failure {
    Failure::Request("found no FILE, accepted: a path, `-` for standard input, or --zeros BYTES".into())
}
