//! Results of a call for the driver: events, and departing segments.

bitflags::bitflags! {
    /// Events since the last query of the driver.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// The handshake is complete.
        const ESTABLISHED = 0x01;
        /// In-order data is readable.
        const READABLE = 0x02;
        /// The send buffer has room again.
        const WRITABLE = 0x04;
        /// All data written so far has been acknowledged.
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

/// Result of a request for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmit {
    /// No segment leaves.
    Nothing,
    /// A segment leaves, and no other before the next event.
    Last,
    /// A segment leaves; more may follow.
    More,
}
