use bentpipe_base::Duration;
use serde::Serialize;

/// Counters of a shared medium, over all its terminals.
///
/// A burst is one transmission of a terminal: a slot with pieces of packets, or a whole packet in pure Aloha. Copies in CRDSA
/// count as one burst. A retransmitted burst counts again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MediumStats {
    /// Packets offered to terminals, accepted or not.
    pub offered_packets: u64,
    /// Bytes of offered packets, without the medium's overhead.
    pub offered_bytes: u64,
    /// Packets that got through the medium; errors may still have hit them.
    pub carried_packets: u64,
    /// Bytes of carried packets, without the medium's overhead.
    pub carried_bytes: u64,
    /// Transmissions.
    pub bursts_sent: u64,
    /// Transmissions lost by collisions.
    pub bursts_collided: u64,
    /// Packets given up after too many collisions.
    pub given_up_packets: u64,
    /// Slot requests sent.
    pub requests_sent: u64,
    /// Slot requests lost by collisions.
    pub requests_collided: u64,
    /// Slot requests lost by errors.
    pub requests_lost: u64,
    /// Slots requested by terminals, used or not.
    pub demand_slots: u64,
    /// Slots used without a request.
    pub free_slots_used: u64,
    /// Sum over the carried packets of the time from arrival at the terminal to the end of the last transmission.
    pub access_delay_sum: Duration,
}

impl MediumStats {
    /// Returns the mean time from a packet's arrival at its terminal to the end of its last transmission; `None` before the
    /// first.
    pub fn mean_access_delay(&self) -> Option<Duration> {
        (self.carried_packets > 0).then(|| self.access_delay_sum / self.carried_packets)
    }
}
