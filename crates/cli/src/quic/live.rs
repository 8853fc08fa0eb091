//! One connection, and its one stream.

use std::net::SocketAddr;
use std::time::Instant;

use bentpipe_quic::Control;
use bytes::Bytes;
use noq_proto::{
    Connection, ConnectionError, Dir, Event, FinishError, PathId, StreamEvent, StreamId, TransportErrorCode,
    VarInt, WriteError,
};

use crate::transfer::{Details, LEAST_UNSENT, MOST_UNSENT, Report, Stream};

/// Code of a connection that ended regularly, and of one that failed.
const DONE: VarInt = VarInt::from_u32(0);
const FAILED: VarInt = VarInt::from_u32(1);

/// First byte of the stream, from the end that opens it. Without data, the peer would not learn of the stream.
const OPENING: [u8; 1] = *b"B";

/// Reason for a peer that closed the connection before it had all data.
pub const TOO_SOON: &str = "the peer ended the connection before the transfer was complete";

/// Reason for a peer that does not answer.
pub const SILENT: &str = "the peer does not answer";

/// TLS alert for a missing common application protocol.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// End of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The peer closed it regularly.
    Done,
    /// The peer does not answer.
    Silent,
    /// The peer or the stack ended it.
    Failed(String),
    /// The two ends do not fit.
    Unfit(&'static str),
}

/// A connection. Its stream carries the bytes that TCP would carry.
pub struct Live {
    pub connection: Connection,
    pub control: Control,
    /// Name of the congestion control that runs.
    cc: &'static str,
    pub begin: Instant,
    /// Address of the peer at the start.
    peer: SocketAddr,
    stream: Option<StreamId>,
    /// True if the handshake is complete.
    pub is_established: bool,
    /// True if the stream may have data that was not read.
    is_readable: bool,
    /// True if the byte that opens the stream must be read before the data.
    awaits_opening: bool,
    /// True if all data of the peer was read.
    pub has_read_all: bool,
    is_writable: bool,
    /// True if the peer has acknowledged all data.
    is_acknowledged: bool,
    written: u64,
    read: u64,
    /// Largest number of bytes that the stack may hold unacknowledged.
    send_window: u64,
    pub end: Option<End>,
}

impl Live {
    /// Makes the connection to `peer`.
    pub fn new(connection: Connection, control: Control, peer: SocketAddr) -> Self {
        Self {
            cc: control
                .running(&connection)
                .expect("a new connection has a path with its congestion control"),
            connection,
            control,
            begin: Instant::now(),
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            stream: None,
            is_established: false,
            is_readable: false,
            awaits_opening: false,
            has_read_all: false,
            is_writable: true,
            is_acknowledged: false,
            written: 0,
            read: 0,
            send_window: 0,
            end: None,
        }
    }

    /// Handles all events of the stack.
    pub fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.is_established = true,
                Event::ConnectionLost { reason } => self.end = Some(End::of(reason)),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => self.accept(),
                Event::Stream(StreamEvent::Readable { id }) if self.stream == Some(id) => {
                    self.is_readable = true;
                }
                Event::Stream(StreamEvent::Writable { id }) if self.stream == Some(id) => {
                    self.is_writable = true;
                }
                Event::Stream(StreamEvent::Finished { id }) if self.stream == Some(id) => {
                    self.is_acknowledged = true;
                }
                _ => {}
            }
        }
        let window = self.connection.congestion_state(PathId::ZERO).map_or(0, |state| state.window());
        let wanted = window + window.clamp(LEAST_UNSENT, MOST_UNSENT);
        if wanted > self.send_window {
            self.send_window = wanted;
            self.connection.set_send_window(wanted);
        }
    }

    fn accept(&mut self) {
        if self.stream.is_none() {
            self.stream = self.connection.streams().accept(Dir::Bi);
            (self.is_readable, self.awaits_opening) = (true, true);
        }
    }

    /// Opens the stream, if the peer allows it now.
    pub fn open(&mut self) {
        if self.stream.is_some() || !self.is_established {
            return;
        }
        self.stream = self.connection.streams().open(Dir::Bi);
        if let Some(id) = self.stream {
            let written = self.connection.send_stream(id).write(&OPENING);
            debug_assert_eq!(written, Ok(OPENING.len()), "a new stream has room");
        }
    }

    /// True if the stream may have data that was not read.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// Closes the connection. The peer learns `why`, if it failed.
    pub fn close(&mut self, why: Option<&str>) {
        let now = Instant::now();
        if self.end.is_none() {
            self.control.close(now);
        }
        let code = if why.is_some() { FAILED } else { DONE };
        self.connection.close(now, code, Bytes::copy_from_slice(why.unwrap_or_default().as_bytes()));
    }

    /// True if the peer has acknowledged all data, or has closed the connection regularly.
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged || self.end == Some(End::Done)
    }

    /// Returns the bytes that the peer has acknowledged, or fewer: the stack holds at most `send_window` others.
    pub fn acknowledged(&self) -> u64 {
        if self.is_acknowledged() { self.written } else { self.written.saturating_sub(self.send_window) }
    }

    /// Makes the report.
    pub fn report(&mut self) -> Report {
        let stats = self.connection.path_stats(PathId::ZERO).unwrap_or_default();
        let duration_s = self.begin.elapsed().as_secs_f64();
        let (sent_bytes, received_bytes) = (self.acknowledged(), self.read);
        Report {
            peer: self.peer,
            cc: self.cc,
            complete: true,
            error: None,
            sent_bytes,
            received_bytes,
            duration_s,
            goodput_bps: sent_bytes.max(received_bytes) as f64 * 8.0 / duration_s.max(1e-9),
            srtt_ms: self.is_established.then_some(stats.rtt.as_secs_f64() * 1e3),
            details: Details::Quic {
                cwnd_bytes: stats.cwnd,
                sent_packets: stats.sent_packets,
                lost_packets: stats.lost_packets,
                congestion_events: stats.congestion_events,
            },
            sent_sha256: None,
            received_sha256: None,
        }
    }

    /// Gives the next piece of received data, of at most `at_most` bytes, to `take`. Returns false if there is none now.
    fn next_chunk(&mut self, at_most: usize, take: impl FnOnce(&[u8])) -> bool {
        let Some(id) = self.stream.filter(|_| self.is_readable) else { return false };
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            self.is_readable = false;
            return false;
        };
        if self.awaits_opening && matches!(chunks.next(OPENING.len()), Ok(Some(_))) {
            self.awaits_opening = false;
        }
        let next = chunks.next(at_most);
        // Credit for more data leaves with the next packets.
        let _ = chunks.finalize().should_transmit();
        match next {
            Ok(Some(chunk)) => {
                self.read += chunk.bytes.len() as u64;
                take(&chunk.bytes);
                true
            }
            Ok(None) => {
                (self.is_readable, self.has_read_all) = (false, true);
                false
            }
            Err(_) => {
                self.is_readable = false;
                false
            }
        }
    }
}

impl Stream for Live {
    fn room(&self) -> usize {
        if self.stream.is_some() && self.is_writable { self.send_window as usize } else { 0 }
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(id) = self.stream.filter(|_| self.is_writable && !bytes.is_empty()) else { return 0 };
        let written = match self.connection.send_stream(id).write(bytes) {
            Ok(written) => written,
            // Only this answer announces an event for the time at which there is room again.
            Err(WriteError::Blocked) => {
                self.is_writable = false;
                0
            }
            // The peer closes the connection with its reason, too.
            Err(WriteError::ClosedStream | WriteError::Stopped(_)) => 0,
        };
        self.written += written as u64;
        written
    }

    fn close(&mut self) {
        let Some(id) = self.stream else { return };
        match self.connection.send_stream(id).finish() {
            Ok(()) | Err(FinishError::ClosedStream | FinishError::Stopped(_)) => {}
        }
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let free = &mut into[done..];
            let mut taken = 0;
            if !self.next_chunk(free.len(), |bytes| {
                free[..bytes.len()].copy_from_slice(bytes);
                taken = bytes.len();
            }) {
                break;
            }
            done += taken;
        }
        done
    }

    fn discard(&mut self) -> u64 {
        let before = self.read;
        while self.next_chunk(usize::MAX, |_| {}) {}
        self.read - before
    }
}

impl End {
    fn of(reason: ConnectionError) -> Self {
        let no_protocol = TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL);
        match reason {
            ConnectionError::ApplicationClosed(close) if close.error_code == DONE => Self::Done,
            ConnectionError::ApplicationClosed(close) => {
                let why = String::from_utf8_lossy(&close.reason).into_owned();
                Self::Failed(format!("the peer ended the transfer: {why}"))
            }
            ConnectionError::VersionMismatch => {
                Self::Unfit("the peer has no version of QUIC in common with this program (it has version 1)")
            }
            ConnectionError::ConnectionClosed(close) if close.error_code == no_protocol => Self::Unfit(
                "the peer runs another protocol over QUIC, accepted: `bentpipe receive --transport quic`",
            ),
            ConnectionError::TransportError(error) if error.code == no_protocol => Self::Unfit(
                "the peer runs another protocol over QUIC, accepted: `bentpipe send --transport quic`",
            ),
            ConnectionError::TimedOut => Self::Silent,
            ConnectionError::Reset => Self::Failed("connection reset by the peer".to_owned()),
            other => Self::Failed(other.to_string()),
        }
    }
}
