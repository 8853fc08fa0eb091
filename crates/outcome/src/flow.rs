//! Results of flows.

use bentpipe_traffic::{CallOutcome, PlayerOutcome, StreamOutcome, Transfer, TransferOutcome};
use serde::Serialize;

use crate::is_zero;

/// Result of one flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowOutcome {
    /// `group` or `group.index`.
    pub name: String,
    /// Name of the flow group.
    pub group: String,
    /// Algorithm as named by the user.
    pub cc: String,
    /// Payload delivered in order, without duplicates, over the simulated time.
    pub goodput_bps: f64,
    /// Goodput in full segments per second.
    pub goodput_segments_per_s: f64,
    /// Payload of all data packets that arrived, duplicates included, over the simulated time.
    pub throughput_bps: f64,
    /// Time from the start to the first ten seconds whose goodputs all lie within 10 % of their mean; null if there were none.
    pub convergence_s: Option<f64>,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Payload bytes that a best-effort receiver skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_bytes: u64,
    /// Data segments sent, with retransmissions, without probes.
    pub sent_segments: u64,
    /// Data segments retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries, those of SYNs included.
    pub timeouts: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Replies to probes received.
    pub probes_acked: u64,
    /// Probes that brought new data to the receiver.
    pub probe_repairs: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
    /// Time from the start of the flow to the acknowledgement of all its data; behind proxies, to the arrival of all data. It is
    /// null for a flow without end, and the mean over the pages of a flow of pages.
    pub completion_s: Option<f64>,
    /// Reason for an early end of the connection, or for a flow without any connection; null without one.
    pub aborted: Option<&'static str>,
    /// Measures of live video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamOutcome>,
    /// Measures of a telephone call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallOutcome>,
    /// Measures of a client that fetches pages or files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferOutcome>,
    /// Each complete page or file of a flow of several, for tables of their own.
    #[serde(skip)]
    pub pages: Vec<Transfer>,
    /// Measures of a player of adaptive video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerOutcome>,
    /// Results of proxies or a spoofing gateway on the path; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitOutcome>,
    /// Bundles of a flow over DTN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundles: Option<BundleOutcome>,
    /// Upper layer of a flow over PETRA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedOutcome>,
}

/// Results of PETRA's upper layer for a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RelayedOutcome {
    /// Maximum payload bytes kept by the source because the destination had not confirmed them.
    pub most_kept_bytes: u64,
    /// Payload bytes that the source sent again end to end.
    pub resent_bytes: u64,
    /// Payload bytes that the destination received again.
    pub duplicate_bytes: u64,
    /// Reconnections of the source after the failure of a relay entity.
    pub reconnections: u64,
}

/// Bundles of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct BundleOutcome {
    /// Bundles created by the source.
    pub made: u64,
    /// Bundles delivered to the application at the destination, without duplicates.
    pub delivered: u64,
    /// Mean time from creation to delivery; null before the first delivery.
    pub mean_transfer_s: Option<f64>,
    /// Bundles whose delivery was confirmed to the source.
    pub confirmed: u64,
    /// Mean time from creation to confirmation.
    pub mean_confirmation_s: Option<f64>,
}

/// Result of a flow that proxies split into legs, or whose data a gateway acknowledges early. The flow's own counters are those
/// of its sender on the first leg and of its receiver on the last.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SplitOutcome {
    /// Payload bytes acknowledged to the sender that had not reached the receiver at the end. Proxies or a gateway held them, or
    /// lost them in a crash.
    pub acked_undelivered_bytes: u64,
    /// Data segments that the legs behind proxies sent, with retransmissions, without probes.
    pub sent_segments: u64,
    /// Data segments that these legs retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries of these legs.
    pub timeouts: u64,
    /// Low-priority probes that these legs sent.
    pub probes_sent: u64,
    /// Legs that begin at a proxy, in the order from sender to receiver.
    pub legs: Vec<LegOutcome>,
}

impl SplitOutcome {
    /// Adds up the counters of the legs.
    pub fn of(acked_undelivered_bytes: u64, legs: Vec<LegOutcome>) -> Self {
        let sum = |count: fn(&LegOutcome) -> u64| legs.iter().map(count).sum();
        Self {
            acked_undelivered_bytes,
            sent_segments: sum(|leg| leg.sent_segments),
            retransmitted_segments: sum(|leg| leg.retransmitted_segments),
            timeouts: sum(|leg| leg.timeouts),
            probes_sent: sum(|leg| leg.probes_sent),
            legs,
        }
    }
}

impl FlowOutcome {
    /// Returns a counter of the flow's sender plus that of the legs behind proxies.
    pub fn with_legs(&self, own: u64, of_legs: fn(&SplitOutcome) -> u64) -> u64 {
        own + self.split.as_ref().map_or(0, of_legs)
    }

    /// Returns the data segments sent by sender and legs.
    pub fn sent_on_all_legs(&self) -> u64 {
        self.with_legs(self.sent_segments, |split| split.sent_segments)
    }

    /// Returns the data segments retransmitted by sender and legs.
    pub fn retransmitted_on_all_legs(&self) -> u64 {
        self.with_legs(self.retransmitted_segments, |split| split.retransmitted_segments)
    }

    /// Returns the retransmission timer expiries of sender and legs.
    pub fn timeouts_on_all_legs(&self) -> u64 {
        self.with_legs(self.timeouts, |split| split.timeouts)
    }

    /// Returns the probes sent by sender and legs.
    pub fn probes_on_all_legs(&self) -> u64 {
        self.with_legs(self.probes_sent, |split| split.probes_sent)
    }
}

/// Leg of a flow that begins at a proxy.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LegOutcome {
    /// Name of the flow and of the proxy.
    pub name: String,
    /// Algorithm as named by the user.
    pub cc: String,
    /// Data segments sent, with retransmissions, without probes.
    pub sent_segments: u64,
    /// Data segments retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Smoothed round-trip time at the end; null before the first sample.
    pub srtt_ms: Option<f64>,
}
