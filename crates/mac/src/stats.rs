use bentpipe_base::Duration;
use serde::Serialize;

/// What a shared medium counts, over all its terminals.
///
/// A burst is what a terminal sends at once: a slot's worth of pieces of packets, or a whole packet of pure Aloha. Copies of
/// CRDSA count as one burst. A burst sent again counts again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MediumStats {
    /// Packets that terminals were given to send, accepted or not.
    pub offered_packets: u64,
    /// Bytes of them, without what the medium adds.
    pub offered_bytes: u64,
    /// Packets that got through the medium; errors may still have hit them.
    pub carried_packets: u64,
    /// Bytes of them, without what the medium adds.
    pub carried_bytes: u64,
    /// Transmissions.
    pub bursts_sent: u64,
    /// Transmissions lost in a collision.
    pub bursts_collided: u64,
    /// Packets given up after too many collisions.
    pub given_up_packets: u64,
    /// Requests for slots that were sent.
    pub requests_sent: u64,
    /// Requests for slots that met another one and were lost.
    pub requests_collided: u64,
    /// Requests for slots that errors hit.
    pub requests_lost: u64,
    /// Slots that terminals had asked for, whether used or not.
    pub demand_slots: u64,
    /// Slots used that nobody had asked for.
    pub free_slots_used: u64,
    /// Sum over the packets carried: from the arrival at the terminal to the end of the transmission that completed it.
    pub access_delay_sum: Duration,
}

impl MediumStats {
    /// Mean time from the arrival of a packet at its terminal to the end of the transmission that completed it; none before the first.
    pub fn mean_access_delay(&self) -> Option<Duration> {
        (self.carried_packets > 0).then(|| self.access_delay_sum / self.carried_packets)
    }
}
