//! Which fast paths of header prediction may be taken.

bitflags::bitflags! {
    /// The fast paths that the present state of the connection allows. Each flag allows one.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct FastPath: u16 {
        /// The other flags have been computed.
        const KNOWN = 0x01;
        /// A plain acknowledgement that arrives may take the fast path.
        const ARRIVALS = 0x02;
        /// The next data in sequence may take the fast path.
        const DATA = 0x04;
        /// The fast path may find that no segment leaves.
        const NO_DEPARTURE = 0x08;
        /// New data may leave by the fast path.
        const DEPARTURES = 0x10;
        /// Only the congestion window holds data back, so neither a pacer nor the algorithm is asked.
        const WINDOW_ONLY = 0x20;
        /// Every data segment that arrives is acknowledged at once.
        const ACK_EACH = 0x40;
        /// The algorithm has no wake-ups, and the connection is not traced.
        const WAKELESS = 0x80;
        /// Data that follow the highest range above a hole may take the fast path.
        const ABOVE_HOLE = 0x100;
    }
}
