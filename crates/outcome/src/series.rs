//! Time series of a run, for charts.

use serde::{Deserialize, Serialize};

/// Time series of a run, recorded on request for reports.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Series of each flow.
    pub flows: Vec<FlowSeries>,
    /// Series of each direction of a bottleneck or requested link.
    pub links: Vec<LinkSeries>,
}

/// Time series of one flow; each point is `(seconds, value)`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Name of the flow.
    pub name: String,
    /// Congestion window in segments.
    pub cwnd: Vec<(f64, f64)>,
    /// Slow-start threshold in segments; no points while it is infinite.
    pub ssthresh: Vec<(f64, f64)>,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: Vec<(f64, f64)>,
    /// Sequence number of first transmissions, in segments.
    pub sent: Vec<(f64, f64)>,
    /// Sequence number of retransmissions, in segments.
    pub retransmitted: Vec<(f64, f64)>,
    /// Cumulative acknowledgement, in segments.
    pub acked: Vec<(f64, f64)>,
}

/// Time series of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Name of the link and direction.
    pub name: String,
    /// Number of queued packets over time.
    pub queue_packets: Vec<(f64, f64)>,
    /// Times of drops, with the packets queued then.
    pub drops: Vec<(f64, f64)>,
}
