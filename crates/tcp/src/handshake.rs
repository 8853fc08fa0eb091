//! What is known of a handshake until it is complete.

use bentpipe_base::{Instant, SynOptions};

/// State of the handshake, dropped when it is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    /// A SYN or SYN-ACK is due.
    pub due: bool,
    pub first_sent_at: Option<Instant>,
    pub sent_at: Instant,
    pub tries: u32,
    pub seed: u64,
    /// The peer's SYN asked for ECN.
    pub ecn: bool,
    /// The options of the peer's SYN.
    pub peer: Option<SynOptions>,
    /// The peer's SYN carried a timestamp.
    pub peer_timestamps: bool,
    /// What the peer's SYN carried.
    pub early: EarlyData,
}

/// Payload and FIN of the peer's SYN: they wait until the connection is established (RFC 9293 section 3.10.7.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlyData {
    /// Payload bytes.
    pub len: u32,
    pub fin: bool,
}

impl Handshake {
    pub fn new(seed: u64) -> Self {
        Self {
            due: false,
            first_sent_at: None,
            sent_at: Instant::ZERO,
            tries: 0,
            seed,
            ecn: false,
            peer: None,
            peer_timestamps: false,
            early: EarlyData::default(),
        }
    }
}
