//! Ends of transports whose packets are UDP datagrams with real bytes. Their code is outside this crate.

use std::fmt::Debug;

use bentpipe_base::{Duration, Instant};

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
    pub bytes: Box<[u8]>,
    /// True if it carries data of the application.
    pub is_data: bool,
}

impl Datagram {
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER + UDP_HEADER + self.bytes.len() as u32
    }
}

/// One end of a transport over UDP; the functions are those of [`crate::Agent`].
pub trait DatagramEnd: Debug + Send {
    /// Queues a message at the sending end.
    fn write(&mut self, now: Instant, message: Message);
    /// Handles a datagram.
    fn handle(&mut self, now: Instant, datagram: &Datagram);
    /// Handles the time returned by `next_timeout`.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next datagram to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;
    /// Returns the next fragment for the application.
    fn poll_delivery(&mut self) -> Option<Fragment>;
    /// Returns the time of the next timeout.
    fn next_timeout(&self) -> Instant;
    /// Returns counters and state.
    fn progress(&self) -> Progress;
}
