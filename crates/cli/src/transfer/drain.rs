//! Moves data from a connection to a file, a pipe or nowhere.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{PIECE, STANDARD, Stream};
use crate::failure::Failure;
use crate::output::{Kind, Target};
use crate::resume::{Partial, hex};

/// Destination of received data.
pub enum Output {
    /// A file, which gets its name when complete, or a device.
    File(std::fs::File, Target),
    /// Standard output.
    Standard(std::fs::File),
    /// A file that resumes an interrupted transfer.
    Partial(Box<Partial>),
    /// A few lines that this program reads.
    Words(Vec<u8>),
    /// Nowhere.
    Nowhere,
}

impl Output {
    /// Opens a new file at this path, or standard output.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == STANDARD {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            return Ok(Self::Standard(stdout.map_err(|error| Failure::unwritable(path, &error))?.into()));
        }
        let target = Target::open(path, Kind::Data)?;
        Ok(Self::File(target.file()?, target))
    }

    /// Returns the descriptor to poll before writing.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(file, _) | Self::Standard(file) => Some(file.as_fd()),
            Self::Partial(_) | Self::Words(_) | Self::Nowhere => None,
        }
    }

    /// Returns the name for messages.
    fn name(&self) -> String {
        match self {
            Self::File(_, target) => target.path().display().to_string(),
            Self::Standard(_) => "standard output".to_owned(),
            Self::Partial(partial) => partial.part().display().to_string(),
            Self::Words(_) | Self::Nowhere => "nowhere".to_owned(),
        }
    }

    /// Gives a complete file its name.
    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(file, target) => {
                drop(file);
                target.finish()
            }
            Self::Partial(partial) => partial.finish(),
            Self::Standard(_) | Self::Words(_) | Self::Nowhere => Ok(()),
        }
    }

    /// Takes received data if this needs no waiting; returns false if the data must be written.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        match self {
            Self::Partial(partial) => partial.take(bytes).map(|()| true),
            Self::Words(words) if words.len() < MOST_WORDS => {
                words.extend(bytes);
                Ok(true)
            }
            Self::Words(_) => Err(Failure::Work(
                "the other end sends too many lines, accepted: --resume at both ends".into(),
            )),
            Self::Nowhere => Ok(true),
            Self::File(..) | Self::Standard(_) => Ok(false),
        }
    }
}

/// Longer than all lines of a file's receiver.
const MOST_WORDS: usize = 4096;

/// Data between a connection and its destination.
pub struct Drain {
    output: Output,
    piece: Vec<u8>,
    done: usize,
    /// Bytes written to the destination.
    pub bytes: u64,
    /// Digest of all received data, if wanted.
    pub hash: Option<Sha256>,
}

/// Bytes that a ready pipe accepts without blocking (POSIX `PIPE_BUF`).
const PIPE_PIECE: usize = 4096;

impl Drain {
    /// Makes a drain into `output`.
    pub fn new(output: Output) -> Self {
        Self { output, piece: Vec::new(), done: 0, bytes: 0, hash: None }
    }

    /// Returns the lines of the peer, if this program reads them.
    pub fn words(&self) -> &[u8] {
        match &self.output {
            Output::Words(words) => words,
            _ => &[],
        }
    }

    /// Returns the file that resumes a transfer, if it is one.
    pub fn partial(&self) -> Option<&Partial> {
        match &self.output {
            Output::Partial(partial) => Some(partial),
            _ => None,
        }
    }

    /// Returns the SHA-256 of the received data, if it was computed.
    pub fn digits(&self) -> Option<String> {
        let of_partial = self.partial().filter(|partial| partial.last_word().is_some()).map(Partial::digits);
        of_partial.or_else(|| self.hash.clone().map(|hash| hex(&hash.finalize())))
    }

    /// Returns the descriptor to poll; `None` while there is nothing to write. `is_readable` is true if the connection has data.
    pub fn waits_for(&self, is_readable: bool) -> Option<BorrowedFd<'_>> {
        if is_readable || !self.has_written_all() { self.output.waits_for() } else { None }
    }

    /// Moves data that can be moved now.
    pub fn pump(&mut self, stream: &mut impl Stream, ready: bool) -> Result<(), Failure> {
        if matches!(self.output, Output::Nowhere) && self.hash.is_none() {
            self.bytes += stream.discard();
            return Ok(());
        }
        if !matches!(self.output, Output::File(..) | Output::Standard(_)) {
            return self.keep(stream);
        }
        let name = || self.output.name();
        let (Output::File(file, _) | Output::Standard(file)) = &self.output else { return Ok(()) };
        let mut file = file;
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut ready = ready || regular;
        while ready {
            if self.done == self.piece.len() {
                self.piece.resize(PIECE, 0);
                let len = stream.read(&mut self.piece);
                self.piece.truncate(len);
                self.done = 0;
                if let Some(hash) = &mut self.hash {
                    hash.update(&self.piece);
                }
                if len == 0 {
                    break;
                }
            }
            let rest = &self.piece[self.done..];
            let at_most = if regular { rest.len() } else { rest.len().min(PIPE_PIECE) };
            let written = file
                .write(&rest[..at_most])
                .map_err(|error| Failure::Work(format!("cannot write {}: {error}", name())))?;
            self.done += written;
            self.bytes += written as u64;
            ready = regular;
        }
        Ok(())
    }

    /// Moves all received data that needs no waiting.
    fn keep(&mut self, stream: &mut impl Stream) -> Result<(), Failure> {
        self.piece.resize(PIECE, 0);
        loop {
            let len = stream.read(&mut self.piece);
            if len == 0 {
                self.piece.clear();
                self.done = 0;
                return Ok(());
            }
            if let Some(hash) = &mut self.hash {
                hash.update(&self.piece[..len]);
            }
            self.output.take(&self.piece[..len])?;
            self.bytes += len as u64;
        }
    }

    /// Gives the file of a complete stream its name; otherwise removes it.
    pub fn finish(self) -> Result<(), Failure> {
        self.output.finish()
    }

    /// True if all data read from the connection was written.
    pub fn has_written_all(&self) -> bool {
        self.done == self.piece.len()
    }
}
