/// What a link needs to know of a packet.
///
/// The simulator's packet is a small handle to a segment in its packet pool; the emulator's is a frame.
/// `Clone` is used for duplication only. Unless a packet says otherwise it is ordinary data of one flow without ECN.
pub trait Packet: Clone {
    /// Size on the wire in bytes, all headers included.
    fn size(&self) -> u32;

    /// True if queues with priorities may drop this packet in favour of others (DSCP LE, RFC 8622).
    fn low_priority(&self) -> bool {
        false
    }

    /// A number that is equal for all packets of one flow and direction; fair queues separate by it.
    fn flow(&self) -> u64 {
        0
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

    /// Sets "congestion experienced" (RFC 3168 section 5). Only called on ECN-capable packets.
    fn mark_congested(&mut self) {}

    /// Flips the bit with this number, counted modulo the bits of the packet. False, as here, if it has no bytes in which that would show.
    fn flip_bit(&mut self, number: u64) -> bool {
        let _ = number;
        false
    }
}
