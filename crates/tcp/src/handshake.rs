//! State of a handshake until it is complete.

use bentpipe_base::{Instant, SynOptions};

use crate::accurate_ecn::Agreement;

/// Pending segments of the handshake, and the content of the peer's SYN. Dropped when the handshake is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    /// A SYN or SYN-ACK is due.
    due: bool,
    /// Time of the first SYN or SYN-ACK.
    pub first_sent_at: Option<Instant>,
    /// Retransmissions of the SYN or SYN-ACK.
    retries: u32,
    /// Seed of the algorithm.
    pub seed: u64,
    /// Agreement on ECN by the peer's SYN or SYN-ACK.
    pub ecn: Agreement,
    /// True if the peer repeated its SYN without ECN after one of Accurate ECN.
    pub plain_syn: bool,
    /// Options of the peer's SYN.
    pub peer: Option<SynOptions>,
    /// True if the peer's SYN carried a timestamp.
    pub peer_timestamps: bool,
    /// Data carried by the peer's SYN.
    pub early: EarlyData,
}

/// Payload and FIN of the peer's SYN, held until the connection is established (RFC 9293 section 3.10.7.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlyData {
    /// Number of payload bytes.
    pub len: u32,
    pub fin: bool,
}

impl Handshake {
    pub fn new(seed: u64) -> Self {
        Self {
            due: false,
            first_sent_at: None,
            retries: 0,
            seed,
            ecn: Agreement::Off,
            plain_syn: false,
            peer: None,
            peer_timestamps: false,
            early: EarlyData::default(),
        }
    }

    /// Requests a SYN or SYN-ACK.
    pub fn make_due(&mut self) {
        self.due = true;
    }

    /// Returns true once if a SYN or SYN-ACK is due, which then leaves at `now`.
    pub fn take_due(&mut self, now: Instant) -> bool {
        let due = std::mem::take(&mut self.due);
        if due {
            self.first_sent_at.get_or_insert(now);
        }
        due
    }

    /// Requests a repetition of the SYN or SYN-ACK. Returns false without a change if it was repeated `most`
    /// times.
    pub fn retry(&mut self, most: u32) -> bool {
        let may = self.retries < most;
        if may {
            self.retries += 1;
            self.due = true;
        }
        may
    }

    /// Returns the number of retransmissions of the SYN or SYN-ACK.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// True if the SYN or SYN-ACK was sent more than once.
    pub fn was_repeated(&self) -> bool {
        self.retries > 0
    }
}
