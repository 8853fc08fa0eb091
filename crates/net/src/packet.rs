/// Properties of a packet that a link needs.
///
/// The simulator's packet is a small handle to a segment in its packet pool; the emulator's is a frame. `Clone` is used only for
/// duplication. By default a packet is ordinary data of one flow without ECN.
pub trait Packet: Clone {
    /// Returns the size on the wire in bytes, all headers included.
    fn size(&self) -> u32;

    /// True if priority queues may drop this packet first (DSCP LE, RFC 8622).
    fn low_priority(&self) -> bool {
        false
    }

    /// Returns a number that is equal for all packets of a flow and direction; fair queues separate flows by it.
    fn flow(&self) -> u64 {
        0
    }

    /// Returns numbers of the sending and of the receiving host; queues that are fair to hosts separate them by these.
    fn hosts(&self) -> [u64; 2] {
        [0; 2]
    }

    /// True if the packet carries payload; a loss model may spare the others (see [`LossConfig::data_only`]).
    ///
    /// [`LossConfig::data_only`]: crate::LossConfig::data_only
    fn is_data(&self) -> bool {
        true
    }

    /// True if the packet may be marked instead of dropped (RFC 3168 section 5: ECT or already CE).
    fn ecn_capable(&self) -> bool {
        false
    }

    /// True if the packet belongs to the low-latency queue of DualPI2 (RFC 9331 section 5.1: ECT(1) or CE).
    fn is_l4s(&self) -> bool {
        false
    }

    /// Sets "congestion experienced" (RFC 3168 section 5). Only called on ECN-capable packets.
    fn mark_congested(&mut self) {}

    /// Flips a bit, numbered modulo the bits of the packet. Returns false, as here, if the packet has no bytes.
    fn flip_bit(&mut self, number: u64) -> bool {
        let _ = number;
        false
    }
}
