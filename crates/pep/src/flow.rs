//! One direction of a connection: bytes on their way from one half to the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes that a pipe takes, and that are moved at a time.
const PIPE: usize = 1 << 20;
/// Pipes that a thread keeps for the next bytes.
const KEPT: usize = 64;
/// Bytes of one direction before the next connection has its turn.
const TURN: usize = 4 * PIPE;

/// A pipe: pages go through it from socket to socket without being copied.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Pipes that are empty.
#[derive(Default)]
pub(crate) struct Pipes {
    empty: Vec<Pipe>,
}

impl Pipes {
    fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.empty.pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // A smaller pipe works as well: the limit for users without privileges is 16 MiB in all.
        let _ = fcntl_setpipe_size(&write, PIPE);
        Ok(Pipe { read, write })
    }

    fn put(&mut self, pipe: Pipe) {
        if self.empty.len() < KEPT {
            self.empty.push(pipe);
        }
    }
}

/// What one half can do at the moment, as far as is known.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ready {
    /// There may be something to read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// The half has failed: nothing more can be written to it.
    pub broken: bool,
}

/// One direction.
#[derive(Default)]
pub(crate) struct Flow {
    /// Holds the bytes that have been read and not yet written; absent while there are none.
    pipe: Option<Pipe>,
    held: usize,
    end: End,
    /// Bytes that have been written.
    pub moved: u64,
}

/// How far the end of a direction has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum End {
    /// More may come.
    #[default]
    Open,
    /// The source has ended; bytes may still be held.
    Read,
    /// The end has been passed on.
    Passed,
}

/// What became of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The sockets must become ready first.
    Waits,
    /// There is more to do at once.
    GoesOn,
}

impl Flow {
    /// True once the end has been passed on.
    pub fn is_over(&self) -> bool {
        self.end == End::Passed
    }

    /// True if the source has ended and everything before that has been passed on.
    pub fn wants_end(&self) -> bool {
        self.end == End::Read && self.held == 0
    }

    /// Notes that the end has been passed on.
    pub fn pass_end(&mut self) {
        self.end = End::Passed;
    }

    /// Bytes held here.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Moves what can be moved, up to a fair share.
    ///
    /// # Errors
    /// Those of making a pipe. Errors of the halves are noted there.
    pub fn turn(
        &mut self,
        (source, from): (&mut Ready, impl AsFd),
        (sink, to): (&mut Ready, impl AsFd),
        pipes: &mut Pipes,
    ) -> io::Result<Turn> {
        let begin = self.moved;
        while self.moved - begin < TURN as u64 {
            let before = (self.held, self.moved);
            self.fill(source, from.as_fd(), pipes)?;
            self.empty(sink, to.as_fd());
            if sink.broken {
                self.held = 0;
                self.pipe = None;
                self.end = End::Passed;
                return Ok(Turn::Waits);
            }
            let idle = self.held == 0 && !(source.readable && self.end == End::Open);
            if idle || before == (self.held, self.moved) {
                self.release(pipes);
                return Ok(Turn::Waits);
            }
        }
        self.release(pipes);
        Ok(Turn::GoesOn)
    }

    fn fill(&mut self, source: &mut Ready, from: impl AsFd, pipes: &mut Pipes) -> io::Result<()> {
        if !source.readable || self.end != End::Open || self.held >= PIPE {
            return Ok(());
        }
        let pipe = match &mut self.pipe {
            Some(pipe) => pipe,
            none => none.insert(pipes.take()?),
        };
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let room = PIPE - self.held;
        match retry_on_intr(|| splice(&from, None, &pipe.write, None, room, flags)) {
            Ok(0) => self.end = End::Read,
            Ok(bytes) => self.held += bytes,
            // Either there is nothing to read or the pipe is full.
            Err(Errno::AGAIN) => source.readable = self.held > 0,
            Err(_) => {
                source.broken = true;
                self.end = End::Read;
            }
        }
        Ok(())
    }

    fn empty(&mut self, sink: &mut Ready, to: impl AsFd) {
        let Some(pipe) = &self.pipe else { return };
        if self.held == 0 || !sink.writable {
            return;
        }
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        match retry_on_intr(|| splice(&pipe.read, None, &to, None, self.held, flags)) {
            Ok(bytes) => {
                self.held -= bytes;
                self.moved += bytes as u64;
            }
            Err(Errno::AGAIN) => sink.writable = false,
            Err(_) => sink.broken = true,
        }
    }

    fn release(&mut self, pipes: &mut Pipes) {
        if self.held == 0
            && let Some(pipe) = self.pipe.take()
        {
            pipes.put(pipe);
        }
    }
}
