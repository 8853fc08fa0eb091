//! The state of a connection, and what its handshake agrees on.

/// State of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of RFC 9293")]
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

impl State {
    /// The handshake is complete and the connection not yet over.
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// The peer may still send data.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Data or a FIN of ours may still have to leave.
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// How the two ends report what lies above the cumulative ACK, as agreed on in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reports {
    /// Not at all: only the cumulative ACK is known.
    None,
    /// The ranges that arrived (RFC 2018).
    Sack,
    /// The ranges that are missing (CCSDS 714.0).
    Snack,
}
