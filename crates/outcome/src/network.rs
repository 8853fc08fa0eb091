//! Results of links, nodes and shared channels.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::is_zero;

/// Result of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkOutcome {
    /// `link` or `link.index`.
    pub name: String,
    /// Direction of the link: `forward` or `reverse`.
    pub direction: &'static str,
    /// Packets that reached the far end.
    pub delivered_packets: u64,
    /// Normal-priority packets refused or dropped by the queue.
    pub dropped_by_queue: u64,
    /// Packets lost by transmission errors and outages.
    pub dropped_by_error: u64,
    /// Low-priority packets refused or pushed out by the queue.
    pub dropped_low_priority: u64,
    /// Parity packets sent, on a link with packet-level FEC.
    #[serde(skip_serializing_if = "is_zero")]
    pub parity_packets: u64,
    /// Packets that arrived because parity restored them.
    #[serde(skip_serializing_if = "is_zero")]
    pub repaired_packets: u64,
    /// Fraction of the time in which the transmitter was busy.
    pub utilisation: f64,
    /// Mean time that a transmitted packet waited in the queue; absent without any, and for members of a shared channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_delay_ms: Option<f64>,
    /// Packets that the transmitter took from the queue.
    #[serde(skip)]
    pub transmitted_packets: u64,
    /// Idle times of the transmitter between two packets; absent without any, and for members of a shared channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapOutcome>,
}

/// Transmission gaps: idle times between two packets that are long enough for another packet.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct GapOutcome {
    /// Number of gaps.
    pub count: u64,
    /// Mean length in ms.
    pub mean_ms: f64,
    /// Standard deviation of the lengths in ms.
    pub deviation_ms: f64,
    /// Maximum length in ms.
    pub longest_ms: f64,
    /// Total length over the simulated time.
    pub share: f64,
}

/// Result of a node that does more than forward.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct NodeOutcome {
    /// Name of the node: `node`, or `node.index` in a group.
    pub name: String,
    /// Kind of the node, as in the scenario.
    pub kind: &'static str,
    /// Counters, keyed by name.
    pub counters: BTreeMap<&'static str, u64>,
}

/// Result of a channel shared by the links of a group.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MediumOutcome {
    /// Name of the link group.
    pub name: String,
    /// Direction of the link: `forward` or `reverse`.
    pub direction: &'static str,
    /// Medium-access scheme of the channel.
    pub kind: &'static str,
    /// Packets offered to terminals.
    pub offered_packets: u64,
    /// Offered bits per second, without the medium's overhead.
    pub offered_bps: f64,
    /// Packets that got through; errors may still have hit them.
    pub carried_packets: u64,
    /// Carried bits per second, without the medium's overhead.
    pub carried_bps: f64,
    /// Transmissions, retransmissions included; the copies of CRDSA count as one.
    pub bursts_sent: u64,
    /// Transmissions lost by collisions.
    pub bursts_collided: u64,
    /// Packets given up after too many collisions.
    pub given_up_packets: u64,
    /// Slot requests sent.
    pub requests_sent: u64,
    /// Requests lost by collisions.
    pub requests_collided: u64,
    /// Requests lost by transmission errors.
    pub requests_lost: u64,
    /// Number of requested slots.
    pub demand_slots: u64,
    /// Slots used without a request.
    pub free_slots_used: u64,
    /// Mean time from a packet's arrival at its terminal to the end of its last transmission; null before the first.
    pub mean_access_delay_ms: Option<f64>,
}
