//! One end of a TCP connection.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Segment, WindowState};
use bentpipe_trace::Event;

use crate::{Config, Stats};

bitflags::bitflags! {
    /// What happened since the driver last asked.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// The handshake is complete.
        const ESTABLISHED = 0x01;
        /// In-order data waits to be read.
        const READABLE = 0x02;
        /// The send buffer has room again.
        const WRITABLE = 0x04;
        /// Everything written so far has been acknowledged.
        const ALL_ACKED = 0x08;
        /// The peer will send no more data.
        const PEER_CLOSED = 0x10;
        /// The connection ended in order.
        const CLOSED = 0x20;
        /// The peer reset the connection.
        const RESET = 0x40;
        /// The connection was given up: the peer does not answer.
        const TIMED_OUT = 0x80;
    }
}

/// State of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of RFC 9293")]
pub enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// One end of a TCP connection. Order of calls:
///
/// 1. one of `handle_segment`, `handle_timeout`, `write`, `read`, `close`, `abort`;
/// 2. [`poll_transmit`](Self::poll_transmit) until it returns `None`;
/// 3. [`take_events`](Self::take_events);
/// 4. [`next_timeout`](Self::next_timeout).
pub struct Connection {
    config: Arc<Config>,
}

#[allow(unused_variables, missing_docs)]
impl Connection {
    /// Opens actively: the first `poll_transmit` gives the SYN. `seed` feeds algorithms that toss coins.
    pub fn connect(config: Arc<Config>, seed: u64, now: Instant) -> Self {
        Self { config }
    }
    /// Waits for a SYN.
    pub fn listen(config: Arc<Config>, seed: u64) -> Self {
        Self { config }
    }
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {}
    pub fn handle_timeout(&mut self, now: Instant) {}
    /// Takes up to `bytes` bytes from the application; returns how many fitted into the send buffer.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        0
    }
    /// Hands up to `limit` in-order bytes to the application and opens the receive window accordingly.
    pub fn read(&mut self, now: Instant, limit: u64) -> u64 {
        0
    }
    /// No more data will be written: sends a FIN after what is queued.
    pub fn close(&mut self, now: Instant) {}
    /// Gives up at once with a RST.
    pub fn abort(&mut self, now: Instant) {}
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        None
    }
    pub fn take_events(&mut self) -> Events {
        Events::empty()
    }
    pub fn next_timeout(&self) -> Instant {
        Instant::FAR_FUTURE
    }
    pub fn state(&self) -> State {
        State::Closed
    }
    pub fn stats(&self) -> &Stats {
        todo!()
    }
    /// Window, threshold and phase now.
    pub fn window_state(&self) -> WindowState {
        todo!()
    }
    pub fn srtt(&self) -> Option<Duration> {
        None
    }
    pub fn readable(&self) -> u64 {
        0
    }
    /// Turns the recording of events on; [`poll_trace`](Self::poll_trace) then returns them.
    pub fn set_tracing(&mut self, on: bool) {}
    /// Oldest unread event with its time.
    pub fn poll_trace(&mut self) -> Option<(Instant, Event)> {
        None
    }
}
