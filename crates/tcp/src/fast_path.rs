//! Which fast paths of header prediction are open.

bitflags::bitflags! {
    /// The fast paths that are open in the present state of the connection.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct FastPath: u16 {
        /// The rest has been worked out.
        const KNOWN = 0x01;
        /// To take arrivals.
        const ARRIVALS = 0x02;
        /// To take data.
        const DATA = 0x04;
        /// To find that nothing may leave.
        const REST = 0x08;
        /// To send data.
        const DEPARTURES = 0x10;
        /// Nothing but the window holds data back.
        const WINDOW_ONLY = 0x20;
        /// Every arrival is acknowledged at once.
        const ACK_EACH = 0x40;
        /// No algorithm wants to be woken.
        const WAKELESS = 0x80;
        /// To take data behind what came before them, while something else is missing.
        const BEYOND = 0x100;
    }
}
