//! What links, nodes and shared channels did.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::is_zero;

/// Result of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkOutcome {
    /// `link` or `link.index`.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Packets that reached the far end.
    pub delivered_packets: u64,
    /// Ordinary packets that the queue refused or dropped.
    pub dropped_by_queue: u64,
    /// Packets lost to transmission errors and outages.
    pub dropped_by_error: u64,
    /// Low-priority packets that a discipline refused or pushed out.
    pub dropped_low_priority: u64,
    /// Packets of parity sent, on a link with packet-level FEC.
    #[serde(skip_serializing_if = "is_zero")]
    pub parity_packets: u64,
    /// Packets that arrived because parity restored them.
    #[serde(skip_serializing_if = "is_zero")]
    pub repaired_packets: u64,
    /// Share of the time in which the transmitter was busy.
    pub utilisation: f64,
    /// When it was idle between two packets; absent for the members of a shared channel, and if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapOutcome>,
}

/// Transmission gaps: idle times between two packets in which another would have found room.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct GapOutcome {
    /// How many.
    pub count: u64,
    /// Their mean length.
    pub mean_ms: f64,
    /// Standard deviation of their lengths.
    pub deviation_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// All of them, over the simulated time.
    pub share: f64,
}

/// Result of one node that does more than forward.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct NodeOutcome {
    /// `node` or `node.index`.
    pub name: String,
    /// What it is, as the scenario calls it.
    pub kind: &'static str,
    /// What it counted, by name.
    pub counters: BTreeMap<&'static str, u64>,
}

/// Result of a channel that the links of a group share.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MediumOutcome {
    /// Link group.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Access scheme.
    pub kind: &'static str,
    /// Packets that terminals were given to send.
    pub offered_packets: u64,
    /// The same in bits a second, without what the medium adds.
    pub offered_bps: f64,
    /// Packets that got through; errors may still have hit them.
    pub carried_packets: u64,
    /// The same in bits a second, without what the medium adds.
    pub carried_bps: f64,
    /// Transmissions, repeated ones included; the copies of CRDSA count as one.
    pub bursts_sent: u64,
    /// Transmissions lost in a collision.
    pub bursts_collided: u64,
    /// Packets given up after too many collisions.
    pub given_up_packets: u64,
    /// Requests for slots.
    pub requests_sent: u64,
    /// Requests lost in a collision.
    pub requests_collided: u64,
    /// Requests lost to transmission errors.
    pub requests_lost: u64,
    /// Slots that were asked for.
    pub demand_slots: u64,
    /// Slots used that nobody had asked for.
    pub free_slots_used: u64,
    /// Mean time from a packet's arrival at its terminal to the end of the transmission that completed it; null before the first.
    pub mean_access_delay_ms: Option<f64>,
}
