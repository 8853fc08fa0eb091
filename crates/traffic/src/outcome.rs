//! How well applications were served, as results show it.

use serde::Serialize;

/// How the application of a flow was served, in its own terms: nothing for those that do not say.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceOutcome {
    /// Of live video.
    pub stream: Option<StreamOutcome>,
    /// Of a telephone call.
    pub call: Option<CallOutcome>,
    /// Of a client that fetches pages or files.
    pub transfers: Option<TransferOutcome>,
    /// Of a player of adaptive video.
    pub player: Option<PlayerOutcome>,
}

/// How live video arrived. The packets of the rates are those that the application sent, in full segments over TCP.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StreamOutcome {
    /// Frames sent.
    pub frames_sent: u64,
    /// Share of the frames whose time has come that were not complete when they were to be shown.
    pub frames_missed: f64,
    /// Packets that arrived soon enough after the one before, over packets sent.
    pub real_time_index: f64,
    /// Packets that arrived later than that, over packets sent.
    pub delayed_packets_rate: f64,
    /// Losses, each transmission counted, over packets sent.
    pub packet_drop_rate: f64,
}

/// How a call sounded.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct CallOutcome {
    /// Delay from the sound at one end until it is heard at the other.
    pub mouth_to_ear_ms: f64,
    /// Share of the packets that did not come in time to be played.
    pub lost: f64,
    /// The rating R of the E-model.
    pub rating: f64,
    /// The mean opinion score that it stands for.
    pub mos: f64,
}

/// How long transfers took, from the wish to the last byte.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TransferOutcome {
    /// Pages or files that arrived as a whole.
    pub completed: u64,
    /// Connections that ended before their time.
    pub failed_connections: u64,
    /// Mean in seconds; null without any, like all that follow.
    pub mean_s: Option<f64>,
    /// Median in seconds.
    pub median_s: Option<f64>,
    /// 95 of a hundred took no longer.
    pub p95_s: Option<f64>,
}

/// How an adaptive video was to watch.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct PlayerOutcome {
    /// Time until the picture moved; null if it never did.
    pub startup_s: Option<f64>,
    /// Times at which it stopped for want of data.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// That, over the time since the picture first moved.
    pub rebuffering_ratio: f64,
    /// Mean rate of the video fetched; null without any.
    pub mean_rate_bps: Option<f64>,
    /// Changes of quality.
    pub switches: u64,
}
