//! The interface between the relay and the engine: a TCP stack in user space that terminates a half of a proxied connection in the kernel's place.
//!
//! A half of the kernel is a TCP socket, and the relay moves bytes between two sockets. A half of the engine has no descriptor.
//! The relay gives the engine the socket of the other half, and the engine moves the bytes in both directions, with back-pressure:
//!
//! * A FIN from the socket is sent to the far end, and a FIN from the far end to the socket. The other direction stays open.
//! * While its own buffer is full, the engine does not read from the socket. While the socket's buffer is full, the engine closes its receive window.
//! * When both directions have ended, the engine tells the relay, and the relay closes the socket.
//! * When one half has failed, the engine moves the earlier bytes to the other half. Then it resets its own half and tells the relay, which resets
//!   the socket.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_scenario::deployment::Split;

use crate::bucket::Gate;
use crate::sight::Manner;

/// One half of a proxied connection.
pub enum Half {
    /// A TCP socket: non-blocking, and closed on exec. It is shared with the engine that moves its bytes.
    Kernel(Arc<OwnedFd>),
    /// A connection of the engine.
    Engine(Arc<dyn Control>),
}

/// A half of the engine, as the relay controls it.
pub trait Control: Send + Sync {
    /// From now on a socket is source and sink of the bytes of this half.
    fn carry(&self, carriage: Carriage);

    /// Sends a RST to the far end and forgets the connection.
    fn abort(&self);

    /// State of the connection.
    fn telemetry(&self) -> Telemetry;

    /// Bytes that the engine has moved, and that it holds.
    fn carried(&self) -> Carried;
}

/// Information for the engine about the other half, which is a socket.
pub struct Carriage {
    /// The socket.
    pub socket: Arc<OwnedFd>,
    /// Called once, from any thread, when nothing more will be moved.
    pub on_end: OnEnd,
    /// Maximum time without progress of the engine's half with the bytes before a reset of the socket.
    pub reset_after: Duration,
    /// Shared rates from the socket to the engine, and in the opposite direction.
    pub(crate) gates: [Option<Gate>; 2],
}

/// Progress of the engine with the bytes between its half and the socket of the other half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Bytes from the socket into this half.
    pub sent: u64,
    /// Bytes from this half into the socket.
    pub received: u64,
    /// Bytes that are in its buffers.
    pub held: u64,
}

/// End of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Both directions ended by a FIN.
    Closed,
    /// A half has failed, or its far end has reset it.
    Reset,
}

/// Called at the end of a connection.
pub type OnEnd = Box<dyn FnOnce(Ending) + Send>;

/// State of the TCP connection of one half.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Telemetry {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Smallest round-trip time measured.
    pub rtt_min: Duration,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Payload bytes that the far end has acknowledged.
    pub acked_bytes: u64,
    /// Payload bytes received in order.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Delivery rate as the sender measures it, in bit/s.
    pub delivery_rate_bps: u64,
    /// Payload bytes that wait for being sent or acknowledged.
    pub queued_bytes: u64,
}

/// Request for a half of the engine.
#[derive(Clone, Debug)]
pub(crate) struct HalfRequest {
    /// Address and port of the client, which opened the connection.
    pub client: SocketAddr,
    /// Address and port of the server, to which it was opened.
    pub server: SocketAddr,
    /// Properties of the client's SYN.
    pub manner: Manner,
    /// Configuration of the connection.
    pub split: Split,
}

/// Opening of the engine's half.
pub enum Opening<'a> {
    /// With a SYN of its own in the client's name to the server: the server is on the engine's side.
    Active,
    /// By answering this SYN, a whole IP packet, in the server's name: the client is on the engine's side.
    Passive(&'a [u8]),
}

/// Reason why a half could not be established.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A RST answered the SYN: the client gets one as well.
    #[error("refused")]
    Refused,
    /// There is no route, or an ICMP error arrived: the client's SYN is forwarded untouched, so that the network reports the error.
    #[error("unreachable")]
    Unreachable,
    /// No answer: the client gets none either.
    #[error("no answer")]
    TimedOut,
    /// The engine has the connection already, so the SYN is a copy: it is returned to the kernel, which answers it.
    #[error("the connection exists")]
    Exists,
    /// The engine has no room: the client's SYN is forwarded untouched.
    #[error("no room for another connection")]
    Busy,
}

/// Called once, from any thread, when the half is established or has failed. Dropping it uncalled counts as [`Refusal::Busy`].
pub type Answer = Box<dyn FnOnce(Result<Half, Refusal>) + Send>;

/// A TCP stack that terminates halves in the kernel's place.
pub(crate) trait Engine: Send + Sync {
    /// Begins a half and returns at once.
    fn open(&self, request: &HalfRequest, opening: Opening<'_>, answer: Answer);

    /// Lets the packet filter direct the packets of all connections here again, after it has lost its sets.
    fn register(&self);
}
