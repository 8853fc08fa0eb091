//! The interface between the relay and whoever speaks one half of a proxied connection.
//!
//! A half is a byte stream behind a non-blocking descriptor between which the relay moves bytes, in both directions and with
//! back-pressure. For the kernel it is the TCP socket itself. Another speaker (a TCP of our own in user space) hands the relay one end of a
//! `socketpair(AF_UNIX, SOCK_STREAM)` and keeps the other:
//!
//! * bytes that the relay writes are to be sent to the far end of the half; bytes from there are written for the relay to read;
//! * end of file (`shutdown` of the writing direction) is a FIN, in both directions, and the other direction stays open;
//! * a full socket buffer is back-pressure: the speaker stops reading, or closes its receive window;
//! * a reset cannot be told from a FIN on such a stream, so it goes through [`Control`]: the speaker first makes
//!   [`Control::was_reset`] true and then shuts its end down; the relay calls [`Control::abort`] and then closes its end.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_scenario::deployment::{Opener, Split};

/// One half of a proxied connection.
pub struct Half {
    /// The stream: non-blocking, and closed on exec.
    pub stream: OwnedFd,
    /// What the stream itself cannot say; none for a TCP socket of the kernel.
    pub control: Option<Arc<dyn Control>>,
}

/// What the relay tells a speaker, and asks it, beside the stream.
pub trait Control: Send + Sync {
    /// Sends a RST to the far end and forgets the connection. The relay closes the stream directly afterwards.
    fn abort(&self);

    /// True once the far end has reset the connection, or the speaker has given it up (timeout).
    fn was_reset(&self) -> bool;

    /// How the connection stands.
    fn telemetry(&self) -> Telemetry;
}

/// How the TCP connection of one half stands.
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

/// A half that is wanted.
#[derive(Clone, Debug)]
pub struct Call {
    /// Address and port of who opened the connection (the client).
    pub client: SocketAddr,
    /// Address and port that it asked for (the server).
    pub server: SocketAddr,
    /// On which side of the proxy the client stands.
    pub opener: Opener,
    /// Differentiated-services code point of the client's SYN, 0 to 63.
    pub dscp: u8,
    /// What the configuration says of the connection.
    pub split: Split,
}

/// How the speaker is to begin.
pub enum Opening<'a> {
    /// With a SYN of its own in the client's name to the server: the server is on the speaker's side.
    Active,
    /// By answering this SYN, a whole IP packet, in the server's name: the client is on the speaker's side.
    Passive(&'a [u8]),
}

/// Why there is no half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A RST answered the SYN: the client gets one as well.
    #[error("refused")]
    Refused,
    /// No route, or an ICMP error: the client's SYN is forwarded untouched, so that the network tells it what is wrong.
    #[error("unreachable")]
    Unreachable,
    /// No answer: the client gets none either.
    #[error("no answer")]
    TimedOut,
    /// The speaker has no room: the client's SYN is forwarded untouched.
    #[error("no room for another connection")]
    Busy,
}

/// Called once, from any thread, when the half is established or has failed. Dropping it uncalled counts as [`Refusal::Busy`].
pub type Answer = Box<dyn FnOnce(Result<Half, Refusal>) + Send>;

/// Who speaks halves of connections instead of the kernel.
pub trait Speaker: Send + Sync {
    /// Begins a half and returns at once.
    fn open(&self, call: &Call, opening: Opening<'_>, answer: Answer);
}
