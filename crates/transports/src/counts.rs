use std::ops::AddAssign;

/// Counters of one end of a hop.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    /// Packets sent with payload, retransmissions included.
    pub sent_packets: u64,
    pub repeated_packets: u64,
    /// Packets received with new payload.
    pub fresh_packets: u64,
    pub timeouts: u64,
    /// Packets sent without payload.
    pub control_packets: u64,
    pub control_bytes: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        let Self { sent_packets, repeated_packets, fresh_packets, timeouts, control_packets, control_bytes } =
            self;
        *sent_packets += more.sent_packets;
        *repeated_packets += more.repeated_packets;
        *fresh_packets += more.fresh_packets;
        *timeouts += more.timeouts;
        *control_packets += more.control_packets;
        *control_bytes += more.control_bytes;
    }
}
