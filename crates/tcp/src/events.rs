//! What a driver learns after a call: events, and whether a segment leaves.

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
        /// The peer reset the connection, or a router or host reported that it cannot be reached while it was being opened.
        const RESET = 0x40;
        /// The connection was given up: the peer does not answer.
        const TIMED_OUT = 0x80;
    }
}

/// Whether a segment leaves, and whether to ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmit {
    /// No segment leaves.
    Nothing,
    /// A segment leaves, and nothing more until something else happens.
    Last,
    /// A segment leaves; there may be more.
    More,
}
