//! An SCTP-like association (RFC 9260): several ordered streams over two paths.
//!
//! Implemented features of SCTP: handshake with cookie, SACK, a congestion window per path, fast retransmission after three
//! misses, heartbeats, failover. Fragments carry their position in their stream as in RFC 8260. A path is avoided at its first
//! timeout as RFC 7829 recommends (PFMR = 0), not after five. Data chunks are not bundled, heartbeats have no jitter, and
//! associations are not shut down.

mod chunk;
mod path;
mod receiver;
mod sender;

pub use chunk::Chunk;
pub use receiver::Receiver;
pub use sender::Sender;

/// Options of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// True to deliver fragments as they arrive, before missing earlier ones of their stream (section 6.6).
    pub unordered: bool,
}

#[cfg(test)]
mod tests;
