//! An association in the manner of SCTP (RFC 9260): several streams, each in order by itself, over two paths.
//!
//! Taken from SCTP are the handshake with its cookie, selective acknowledgements, a congestion window for each path, fast retransmission after three
//! misses, heartbeats, and failover. Fragments carry their place in their stream as in RFC 8260, and a path that times out is avoided at once as
//! RFC 7829 recommends (PFMR = 0) instead of after five timeouts. Data chunks are not bundled, heartbeats have
//! no jitter, and associations are not shut down.

mod chunk;
mod path;
mod receiver;
mod sender;

pub use chunk::Chunk;
pub use receiver::Receiver;
pub use sender::Sender;

/// What a flow chooses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Fragments are handed over as they come, whatever is missing before them in their stream (section 6.6).
    pub unordered: bool,
}

#[cfg(test)]
mod tests;
