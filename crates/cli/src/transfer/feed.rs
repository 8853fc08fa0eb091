//! Moves data from a file, a pipe, or a source of zeros into a connection.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{PIECE, STANDARD, Stream};
use crate::failure::Failure;
use crate::resume::{Rest, hex};

/// Source of the data.
pub enum Input {
    /// A file or a pipe.
    File(std::fs::File),
    /// A number of zeros.
    Zeros(u64),
    /// Nothing yet, because the source is not yet decided.
    Later,
    /// The rest of a file of which the peer has a part.
    Rest(Rest),
}

impl Input {
    /// Opens the file at this path, or standard input.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let unreadable = |error| Failure::Request(format!("cannot read {}: {error}", path.display()));
        if path.as_os_str() == STANDARD {
            let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
            return Ok(Self::File(stdin.into()));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Failure::Request(format!("cannot read {}: that is a directory", path.display())));
        }
        Ok(Self::File(file))
    }

    /// Returns the number of bytes, if known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.metadata().ok().filter(|metadata| metadata.is_file()).map(|m| m.len()),
            Self::Zeros(len) => Some(*len),
            Self::Rest(rest) => Some(rest.left()),
            Self::Later => None,
        }
    }

    /// Returns the descriptor to poll before reading; zeros need none.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(file) => Some(file.as_fd()),
            Self::Zeros(_) | Self::Later | Self::Rest(_) => None,
        }
    }

    /// Returns the next piece of at most `most` bytes; empty at the end.
    pub fn read(&mut self, into: &mut Vec<u8>, at_most: usize) -> io::Result<()> {
        into.resize(at_most, 0);
        let len = match self {
            Self::File(file) => file.read(into)?,
            Self::Zeros(left) => {
                let len = (*left).min(at_most as u64);
                *left -= len;
                into[..len as usize].fill(0);
                len as usize
            }
            Self::Rest(rest) => rest.read(into)?,
            Self::Later => 0,
        };
        into.truncate(len);
        Ok(())
    }
}

/// Minimum bytes per read.
const LEAST_PIECE: usize = 4 << 10;

/// Data between a source and a connection.
pub struct Feed {
    input: Input,
    piece: Vec<u8>,
    done: usize,
    ended: bool,
    closed: bool,
    /// Bytes that the connection accepted.
    pub bytes: u64,
    /// Digest of all sent data, if wanted.
    pub hash: Option<Sha256>,
}

impl Feed {
    /// Makes a feed of all data of `input`, followed by the end of the stream.
    pub fn new(input: Input) -> Self {
        Self { input, piece: Vec::new(), done: 0, ended: false, closed: false, bytes: 0, hash: None }
    }

    /// True if everything was read, and the stream is closed or will be.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the descriptor to poll; `None` while the connection has no buffer space.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        if self.ended || self.done < self.piece.len() { None } else { self.input.waits_for() }
    }

    /// Returns the SHA-256 of the sent data, if it was computed.
    pub fn digits(&self) -> Option<String> {
        match &self.input {
            Input::Rest(rest) => rest.digits(),
            _ => None,
        }
        .or_else(|| self.hash.clone().map(|hash| hex(&hash.finalize())))
    }

    /// Moves data that can be moved now.
    pub fn pump(&mut self, stream: &mut impl Stream, ready: bool) -> Result<(), Failure> {
        if matches!(self.input, Input::Later) {
            return Ok(());
        }
        let mut ready = ready || self.input.waits_for().is_none();
        let mut room = stream.room();
        loop {
            if self.done == self.piece.len() && !self.ended && ready {
                // Reads little more than the connection accepts.
                let at_most = room.clamp(LEAST_PIECE, PIECE);
                self.input
                    .read(&mut self.piece, at_most)
                    .map_err(|error| Failure::Work(format!("cannot read: {error}")))?;
                if let Some(hash) = &mut self.hash {
                    hash.update(&self.piece);
                }
                self.done = 0;
                self.ended = self.piece.is_empty();
                // A further read of a pipe could block.
                ready = self.input.len().is_some();
            }
            let rest = &self.piece[self.done..];
            let taken = stream.write(&rest[..rest.len().min(room)]);
            self.done += taken;
            room -= taken;
            self.bytes += taken as u64;
            if self.done < self.piece.len() || !ready || self.ended {
                break;
            }
        }
        if self.ended && !std::mem::replace(&mut self.closed, true) {
            stream.close();
        }
        // Many streams may wait for their peers, so none keeps an unused buffer.
        if self.piece.capacity() > 4 * LEAST_PIECE && self.piece.len() <= LEAST_PIECE {
            self.piece.shrink_to_fit();
        }
        Ok(())
    }
}
