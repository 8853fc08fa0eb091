//! Acknowledgements and their delivery-rate samples.

use bentpipe_base::{Duration, Rate};

/// State of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Neither fast recovery nor a timeout is in progress.
    #[default]
    Open,
    /// Fast recovery: between the detection of a loss and the acknowledgement of everything sent before it.
    Recovery,
    /// Loss recovery after a retransmission timeout. It ends when everything sent before the timeout is acknowledged.
    Loss,
}

/// Delivery-rate sample of one ACK (draft-ietf-ccwg-bbr section 4.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSample {
    /// Bytes delivered over the sampling interval.
    pub delivered: u64,
    /// Length of the interval.
    pub interval: Duration,
    /// Bytes delivered in total when the newest acknowledged segment was sent. A new round trip starts when this value passes the
    /// mark of the last one.
    pub prior_delivered: u64,
    /// True if the application did not fill the window during the interval.
    pub app_limited: bool,
    /// Segments in flight when the newest acknowledged segment was sent.
    pub tx_in_flight: u32,
    /// Segments marked lost between the transmission of the newest acknowledged segment and now.
    pub lost: u32,
}

impl RateSample {
    /// Delivery rate over the sampling interval.
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_per_s(self.delivered as f64 / self.interval.as_secs_f64())
    }
}

/// An acknowledgement: one of new data, or a duplicate (`acked == 0`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// Segments newly acknowledged cumulatively; zero for a duplicate.
    pub acked: u32,
    /// Segments by which an ACK of new data counts for window growth: those newly known to have arrived, without earlier SACKed
    /// ones. It is 1 if the engine counts ACKs instead of segments.
    pub counted: u32,
    /// Segments newly reported by SACK.
    pub sacked: u32,
    /// Payload bytes newly known to have been delivered, cumulatively or by SACK.
    pub delivered_bytes: u64,
    /// Segments newly marked lost.
    pub lost: u32,
    /// Round-trip sample, chosen by Karn's rule or by timestamps.
    pub rtt: Option<Duration>,
    /// The peer's clock when it sent this ACK (RFC 7323 `TSval`), if timestamps were negotiated. Its unit is usually 1 ms; its
    /// origin is arbitrary.
    pub peer_clock: Option<u32>,
    /// Delivery-rate sample of the ACK.
    pub rate: Option<RateSample>,
    /// Recovery state on arrival of this ACK. The ACK that ends an episode still reports the episode's state.
    pub phase: Phase,
    /// True if this ACK ended the episode of `phase`.
    pub ends_episode: bool,
    /// True if the window limited the sender since the last ACK, not the application or the receiver. The window may grow only
    /// then.
    pub window_limited: bool,
    /// True if the peer echoed a congestion mark (RFC 3168 ECE, RFC 9768 ACE).
    pub ecn_echo: bool,
    /// Packets newly reported as marked, with Accurate ECN (RFC 9768); zero with classic ECN, whose echo has no number.
    pub marks: u32,
    /// True if the peer reported a duplicate arrival (RFC 2883).
    pub dsack: bool,
}
