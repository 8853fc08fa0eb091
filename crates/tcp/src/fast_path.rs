//! Fast paths of header prediction, by the state of the connection.

bitflags::bitflags! {
    /// Fast paths allowed by the connection's present state, one per flag.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct FastPath: u16 {
        /// The other flags have been computed.
        const KNOWN = 0x01;
        /// An arriving plain acknowledgement may use the fast path.
        const ARRIVALS = 0x02;
        /// The next in-order data may use the fast path.
        const DATA = 0x04;
        /// The fast path may decide that no segment leaves.
        const NO_DEPARTURE = 0x08;
        /// New data may leave by the fast path.
        const DEPARTURES = 0x10;
        /// Only the congestion window limits the sender, so neither pacer nor algorithm is asked.
        const WINDOW_ONLY = 0x20;
        /// Every arriving data segment is acknowledged at once.
        const ACK_EACH = 0x40;
        /// The algorithm has no timer, and the connection is not traced.
        const WAKELESS = 0x80;
        /// Data that continues the highest range above a hole may use the fast path.
        const ABOVE_HOLE = 0x100;
    }
}
