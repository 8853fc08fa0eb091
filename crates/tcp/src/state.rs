//! State of a connection, and results of its handshake.

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
    /// True after the handshake and before the end of the connection.
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// True if the peer may still send data.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// True if data or a FIN of this end may still have to leave.
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// Form of the reports above the cumulative ACK, as agreed on in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reports {
    /// None: only the cumulative ACK.
    None,
    /// SACK: ranges that arrived (RFC 2018).
    Sack,
    /// SNACK: ranges that are missing (CCSDS 714.0).
    Snack,
}
