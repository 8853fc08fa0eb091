//! What became of flows.

use bentpipe_traffic::{CallOutcome, PlayerOutcome, StreamOutcome, TransferOutcome};
use serde::Serialize;

use crate::is_zero;

/// Result of one flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowOutcome {
    /// `group` or `group.index`.
    pub name: String,
    /// Flow group.
    pub group: String,
    /// Algorithm as the user named it.
    pub cc: String,
    /// Payload delivered in order, each byte once, over the simulated time.
    pub goodput_bps: f64,
    /// The same in full segments a second.
    pub goodput_segments_per_s: f64,
    /// Payload of all data packets that arrived, repeated ones included, over the simulated time.
    pub throughput_bps: f64,
    /// Time from the start until the goodput of each of ten seconds was within 10 % of their mean; null if it never was.
    pub convergence_s: Option<f64>,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Payload bytes that a best-effort receiver went on without.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_bytes: u64,
    /// Data segments sent, retransmissions included, probes not.
    pub sent_segments: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Replies to probes received.
    pub probes_acked: u64,
    /// Probes that reached the receiver with something new in them.
    pub probe_repairs: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
    /// Time from the start of the flow until all its data was acknowledged, behind proxies until all had arrived; null for a flow that
    /// does not end. Mean over the pages of a flow of pages.
    pub completion_s: Option<f64>,
    /// Why the connection ended before its time; null if it did not.
    pub aborted: Option<&'static str>,
    /// Of live video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamOutcome>,
    /// Of a telephone call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallOutcome>,
    /// Of a client that fetches pages or files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferOutcome>,
    /// Of a player of adaptive video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerOutcome>,
    /// What proxies or a spoofing gateway on the way made of it; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitOutcome>,
    /// Of a flow over DTN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundles: Option<BundleOutcome>,
    /// Of a flow over PETRA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedOutcome>,
}

/// What the upper layer of PETRA did for a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RelayedOutcome {
    /// Payload bytes that the source packed at most, because the destination had not confirmed them.
    pub most_kept_bytes: u64,
    /// Payload bytes that the source sent again from end to end.
    pub resent_bytes: u64,
    /// Payload bytes that the destination had already.
    pub duplicate_bytes: u64,
    /// Times that the source connected again because a relay entity was gone.
    pub reconnections: u64,
}

/// What became of the bundles of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct BundleOutcome {
    /// Bundles that the source made.
    pub made: u64,
    /// Those handed to the application at the destination, each once.
    pub delivered: u64,
    /// Mean time from when one of them was made until then; null before the first.
    pub mean_transfer_s: Option<f64>,
    /// Those of whose delivery the source knows.
    pub confirmed: u64,
    /// Mean time from when one of those was made until the source knew.
    pub mean_confirmation_s: Option<f64>,
}

/// A flow that proxies split into legs, or whose data a gateway acknowledges early. The counters of the flow itself are those of its sender, on the first leg, and of its
/// receiver, on the last.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SplitOutcome {
    /// Payload bytes that were acknowledged to the sender and had not reached the receiver at the end: held by proxies or
    /// a gateway, or lost with one that crashed.
    pub acked_undelivered_bytes: u64,
    /// The legs that begin at a proxy, in the order from sender to receiver.
    pub legs: Vec<LegOutcome>,
}

/// A leg of a flow that begins at a proxy.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LegOutcome {
    /// The flow and the proxy.
    pub name: String,
    /// Algorithm as the user named it.
    pub cc: String,
    /// Data segments sent, retransmissions included, probes not.
    pub sent_segments: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
}
