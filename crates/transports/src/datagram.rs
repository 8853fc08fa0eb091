//! Ends of transports whose packets are UDP datagrams with real bytes. Their code is outside this crate.

use std::fmt::Debug;

use bentpipe_base::{Duration, Instant, WindowState};

use crate::outbox::{Fragment, Message};
use crate::{IP_HEADER, Progress};

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;

/// Options of a QUIC flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// True if connections continue an earlier one: data leaves with the first flight (0-RTT).
    pub resumes: bool,
    /// A connection without arrivals for this time ends; `None`: never.
    pub idle_timeout: Option<Duration>,
}

impl Default for Options {
    /// Returns new connections that end after 30 s without arrivals (RFC 9308, section 3.2).
    fn default() -> Self {
        Self { resumes: false, idle_timeout: Some(Duration::from_secs(30)) }
    }
}

/// A UDP datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// UDP payload.
    pub bytes: Vec<u8>,
    /// True if it carries data of the application.
    pub is_data: bool,
}

impl Datagram {
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER + UDP_HEADER + self.bytes.len() as u32
    }
}

/// Request of a client; each has a stream of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of the client, which the reply repeats.
    pub number: u32,
    /// Bytes of the request.
    pub bytes: u64,
    /// Bytes of the reply, at least one.
    pub reply: u64,
}

/// Answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// This number of bytes arrived in order.
    Arrived {
        /// Number of the request.
        number: u32,
        /// Bytes, at least one.
        bytes: u64,
    },
    /// The connection ended before the whole reply arrived.
    Failed {
        /// Number of the request.
        number: u32,
    },
}

/// One end of a transport over UDP; functions without a comment are those of [`crate::Agent`].
#[allow(missing_docs)]
pub trait DatagramEnd: Debug + Send {
    fn write(&mut self, now: Instant, message: Message);
    /// Sends a request and waits for its reply.
    fn ask(&mut self, now: Instant, request: Request);
    fn handle(&mut self, now: Instant, datagram: Datagram);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;
    fn poll_delivery(&mut self) -> Option<Fragment>;
    /// Returns the next event of a reply.
    fn poll_reply(&mut self) -> Option<Reply>;
    fn next_timeout(&self) -> Instant;
    fn progress(&self) -> Progress;
    /// Takes the last round-trip sample, with the smoothed round-trip time after it.
    fn take_rtt(&mut self) -> Option<(Duration, Duration)>;
    /// Returns the state of the congestion control if it has changed since the last call.
    fn take_window(&mut self) -> Option<WindowState>;
}
