//! Quality of service of applications, as shown in results.

use serde::Serialize;

/// Measures of a flow's application; absent for applications that define none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceOutcome {
    /// Live video.
    pub stream: Option<StreamOutcome>,
    /// Telephone call.
    pub call: Option<CallOutcome>,
    /// Client that fetches pages or files.
    pub transfers: Option<TransferOutcome>,
    /// Player of adaptive video.
    pub player: Option<PlayerOutcome>,
}

/// Measures of live video. Rates refer to the packets sent by the application, in full segments over TCP.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StreamOutcome {
    /// Frames sent.
    pub frames_sent: u64,
    /// Fraction of the due frames that were incomplete at their playout time.
    pub frames_missed: f64,
    /// Packets that arrived within the threshold after the previous one, over packets sent.
    pub real_time_index: f64,
    /// Packets that arrived later than that, over packets sent.
    pub delayed_packets_rate: f64,
    /// Lost transmissions over packets sent.
    pub packet_drop_rate: f64,
}

/// Measures of a call.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct CallOutcome {
    /// Mouth-to-ear delay in ms.
    pub mouth_to_ear_ms: f64,
    /// Fraction of the packets that arrived too late to be played, or never.
    pub lost: f64,
    /// Rating R of the E-model.
    pub rating: f64,
    /// Mean opinion score of that rating.
    pub mos: f64,
}

/// Measures of transfers, timed from the request to the last byte.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TransferOutcome {
    /// Pages or files that arrived completely.
    pub completed: u64,
    /// Connections that ended early.
    pub failed_connections: u64,
    /// Mean in seconds; null without transfers, as the values below.
    pub mean_s: Option<f64>,
    /// Median in seconds.
    pub median_s: Option<f64>,
    /// 95th percentile in seconds.
    pub p95_s: Option<f64>,
}

/// Measures of adaptive video.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct PlayerOutcome {
    /// Time to the start of the playback in seconds; null if it never started.
    pub startup_s: Option<f64>,
    /// Number of stalls.
    pub stalls: u64,
    /// Total duration of stalls in seconds.
    pub stalled_s: f64,
    /// Total duration of stalls over the time since the playback started.
    pub rebuffering_ratio: f64,
    /// Mean rate of the fetched video in bit/s; null without segments.
    pub mean_rate_bps: Option<f64>,
    /// Number of quality changes.
    pub switches: u64,
}
