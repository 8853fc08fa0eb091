//! One direction of a connection: bytes between its two halves.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendFlags, send};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::bucket::Gate;

/// Bytes that a pipe holds, and that are moved at a time (chosen).
const PIPE: usize = 1 << 20;
/// Most empty pipes that a thread keeps (chosen).
const KEPT: usize = 64;
/// Bytes of one direction before the next connection has its turn (chosen).
const TURN: usize = 4 * PIPE;
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

/// Bytes that a buffer in memory holds (chosen).
const MEMORY: usize = 64 << 10;

/// A pipe: pages go through it from socket to socket without being copied.
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
    /// Counts this pipe as one of those that are permitted.
    _permit: Arc<()>,
}

/// A buffer in memory, for when no more descriptors are permitted. Bytes in it are copied.
struct Memory {
    bytes: Box<[u8]>,
    held: Range<usize>,
}

/// Buffer between two sockets.
enum Buffer {
    Pipe(Pipe),
    Memory(Memory),
}

/// The empty pipes of a thread, and how many pipes are permitted.
pub(crate) struct Pipes {
    empty: Vec<Pipe>,
    /// The fewest empty pipes since the last call of [`close_unneeded`](Self::close_unneeded): as many were not needed.
    unneeded: usize,
    permit: Arc<()>,
    most: usize,
}

impl Pipes {
    /// Permits `most` pipes at a time.
    pub fn new(most: usize) -> Self {
        Self { empty: Vec::new(), unneeded: 0, permit: Arc::new(()), most }
    }

    /// Closes the pipes that have been empty since the last call, so that a proxy at rest holds no descriptors that it does not need.
    pub fn close_unneeded(&mut self) {
        self.empty.truncate(self.empty.len() - self.unneeded);
        self.unneeded = self.empty.len();
    }

    /// True if an empty pipe is kept.
    pub fn keeps_some(&self) -> bool {
        !self.empty.is_empty()
    }

    fn take(&mut self) -> Buffer {
        let pipe = self.empty.pop();
        self.unneeded = self.unneeded.min(self.empty.len());
        let pipe = pipe.or_else(|| self.make());
        let memory = || Memory { bytes: vec![0; MEMORY].into(), held: 0..0 };
        pipe.map_or_else(|| Buffer::Memory(memory()), Buffer::Pipe)
    }

    /// Makes a pipe; `None` if no more are permitted.
    fn make(&self) -> Option<Pipe> {
        if Arc::strong_count(&self.permit) > self.most {
            return None;
        }
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
        // A smaller pipe works as well. Users without privileges get 16 MiB of pipes in all.
        let _ = fcntl_setpipe_size(&write, PIPE);
        Some(Pipe { read, write, held: 0, _permit: Arc::clone(&self.permit) })
    }

    fn put(&mut self, buffer: Buffer) {
        if let Buffer::Pipe(pipe) = buffer
            && self.empty.len() < KEPT
        {
            self.empty.push(pipe);
        }
    }
}

impl Buffer {
    fn held(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.held,
            Self::Memory(memory) => memory.held.len(),
        }
    }

    /// Takes bytes from a socket. Returns how many; zero at the end of the stream.
    fn fill(&mut self, from: impl AsFd) -> Result<usize, Errno> {
        match self {
            Self::Pipe(pipe) => {
                let room = PIPE - pipe.held;
                let bytes = retry_on_intr(|| splice(&from, None, &pipe.write, None, room, FLAGS))?;
                pipe.held += bytes;
                Ok(bytes)
            }
            Self::Memory(Memory { bytes, held }) if held.start == held.end => {
                let bytes = retry_on_intr(|| rustix::io::read(&from, &mut bytes[..]))?;
                *held = 0..bytes;
                Ok(bytes)
            }
            Self::Memory(_) => Err(Errno::AGAIN),
        }
    }

    /// Writes at most `most` of the held bytes to a socket. Returns their number.
    fn empty(&mut self, to: impl AsFd, most: usize) -> Result<usize, Errno> {
        match self {
            Self::Pipe(pipe) => {
                let bytes = retry_on_intr(|| splice(&pipe.read, None, &to, None, most, FLAGS))?;
                pipe.held -= bytes;
                Ok(bytes)
            }
            Self::Memory(Memory { bytes, held }) => {
                let now = held.start..held.start + most;
                let sent = retry_on_intr(|| send(&to, &bytes[now.clone()], SendFlags::NOSIGNAL))?;
                held.start += sent;
                Ok(sent)
            }
        }
    }
}

/// Readiness of a half, as far as known.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ready {
    /// True if there may be something to read.
    pub readable: bool,
    /// True if there may be room to write.
    pub writable: bool,
    /// The half has failed: nothing more can be written to it.
    pub broken: bool,
}

/// One end of a flow: a half of the kernel with its readiness.
pub(crate) struct FlowEnd<'a> {
    pub ready: &'a mut Ready,
    pub socket: BorrowedFd<'a>,
}

/// One direction.
#[derive(Default)]
pub(crate) struct Flow {
    /// Holds the bytes that have been read and not yet written; absent while there are none.
    buffer: Option<Buffer>,
    end: End,
    /// Bytes that have been written.
    pub moved: u64,
    /// The shared rate at which bytes are written, if there is one.
    gate: Option<Gate>,
}

/// State of the end of a direction.
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

/// Result of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The sockets must become ready first.
    Waits,
    /// Another turn follows at once.
    GoesOn,
    /// The shared rate allows more at this time.
    Until(Instant),
}

impl Flow {
    /// A direction whose bytes are written at a shared rate, if there is one.
    pub fn new(gate: Option<Gate>) -> Self {
        Self { gate, ..Self::default() }
    }

    /// Takes the shared rate out, for the engine.
    pub fn take_gate(&mut self) -> Option<Gate> {
        self.gate.take()
    }

    /// True once the end has been passed on.
    pub fn is_over(&self) -> bool {
        self.end == End::Passed
    }

    /// True while the source may send more.
    pub fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// True if the source has ended and everything before that has been passed on.
    pub fn wants_end(&self) -> bool {
        self.end == End::Read && self.held() == 0
    }

    /// Notes that the end has been passed on.
    pub fn pass_end(&mut self) {
        self.end = End::Passed;
    }

    /// Bytes held here.
    pub fn held(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::held)
    }

    /// Moves available bytes, up to a fair share. Errors of a half are noted in its [`Ready`].
    pub fn turn(&mut self, source: &mut FlowEnd, sink: &mut FlowEnd, pipes: &mut Pipes) -> Turn {
        let begin = self.moved;
        while self.moved - begin < TURN as u64 {
            let before = (self.held(), self.moved);
            self.fill(source, pipes);
            let later = self.empty(sink);
            if sink.ready.broken {
                self.buffer = None;
                self.end = End::Passed;
                return Turn::Waits;
            }
            let idle = self.held() == 0 && !(source.ready.readable && self.end == End::Open);
            if idle || before == (self.held(), self.moved) {
                self.release(pipes);
                return later.map_or(Turn::Waits, Turn::Until);
            }
        }
        self.release(pipes);
        Turn::GoesOn
    }

    fn fill(&mut self, source: &mut FlowEnd, pipes: &mut Pipes) {
        if !source.ready.readable || self.end != End::Open || self.held() >= PIPE {
            return;
        }
        let buffer = self.buffer.get_or_insert_with(|| pipes.take());
        match buffer.fill(source.socket) {
            Ok(0) => self.end = End::Read,
            Ok(_) => {}
            // Either there is nothing to read or the buffer is full.
            Err(Errno::AGAIN) => source.ready.readable = buffer.held() > 0,
            Err(_) => {
                source.ready.broken = true;
                self.end = End::Read;
            }
        }
    }

    /// Writes as many bytes as possible. Returns the time at which the shared rate allows more, if the rate is the limit.
    fn empty(&mut self, sink: &mut FlowEnd) -> Option<Instant> {
        let buffer = self.buffer.as_mut().filter(|buffer| buffer.held() > 0 && sink.ready.writable)?;
        let most = match &mut self.gate {
            None => buffer.held(),
            Some(gate) => match gate.allow(buffer.held(), Instant::now()) {
                Ok(bytes) => bytes,
                Err(later) => return Some(later),
            },
        };
        match buffer.empty(sink.socket, most) {
            Ok(bytes) => {
                self.moved += bytes as u64;
                if let Some(gate) = &mut self.gate {
                    gate.note_sent(bytes, Instant::now());
                }
            }
            Err(Errno::AGAIN) => sink.ready.writable = false,
            Err(_) => sink.ready.broken = true,
        }
        None
    }

    fn release(&mut self, pipes: &mut Pipes) {
        if let Some(buffer) = self.buffer.take_if(|buffer| buffer.held() == 0) {
            pipes.put(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_that_were_not_needed_are_closed_at_the_second_look() {
        let mut pipes = Pipes::new(8);
        let taken = [pipes.take(), pipes.take(), pipes.take()];
        taken.into_iter().for_each(|buffer| pipes.put(buffer));
        // All three were in use since the last look.
        pipes.close_unneeded();
        assert_eq!(pipes.empty.len(), 3);
        // One pipe suffices if bytes leave before the next turn.
        let one = pipes.take();
        pipes.put(one);
        pipes.close_unneeded();
        assert_eq!(pipes.empty.len(), 1);
        pipes.close_unneeded();
        assert!(!pipes.keeps_some());
        assert_eq!(Arc::strong_count(&pipes.permit), 1, "their permits have come back");
    }
}
