//! Path and state of a connection, as the engine measures them.

use bentpipe_base::{Duration, Instant};

use crate::memory::PathMemory;

/// Facts about a connection at the time of its establishment.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments; infinite if unset.
    pub initial_ssthresh: f64,
    /// True if segments are paced: the sender's own bursts then do not disturb round-trip samples.
    pub paced: bool,
    /// Seed of the algorithm's random numbers. Each connection has its own seed.
    pub seed: u64,
    /// State shared by the host's connections to this destination (RFC 9040), if the driver keeps it.
    pub memory: Option<PathMemory>,
}

/// State of the path at the time of a call, as measured by the engine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Time of the call.
    pub now: Instant,
    /// Payload bytes of a full segment: [`Start::mss`], for the connection's whole life. A transport whose path MTU changes counts on
    /// in segments of this size, so that windows and rates in bytes do not change.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Round-trip time variation (RFC 6298).
    pub rttvar: Duration,
    /// Smallest round-trip sample so far; [`Duration::MAX`] before the first.
    pub min_rtt: Duration,
    /// Retransmission timeout (RTO) without back-off.
    pub rto: Duration,
    /// In-flight segments (RFC 6675 `pipe`): outstanding segments, minus those SACKed or marked lost, plus retransmissions.
    pub in_flight: u32,
    /// Segments sent and not cumulatively acknowledged (RFC 5681 `FlightSize`). Probes are not counted.
    pub outstanding: u32,
    /// Receive window in whole segments.
    pub receive_window: u32,
    /// First unacknowledged sequence number.
    pub snd_una: u64,
    /// Next new sequence number.
    pub snd_nxt: u64,
    /// Bytes written by the application and not yet sent for the first time.
    pub unsent: u64,
    /// Payload bytes delivered to the receiver since the connection began, as reported by ACKs.
    pub delivered: u64,
    /// The peer's support for probes.
    pub peer_probes: PeerProbes,
    /// True if both ends agreed on ECN (RFC 3168): the sender then learns of marks set by routers.
    pub ecn: bool,
}

impl Path {
    /// Smoothed round-trip time in seconds; zero before the first sample.
    pub fn srtt_s(&self) -> f64 {
        self.srtt.as_secs_f64()
    }
}

/// The peer's support for probes, and the path's support for their low priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PeerProbes {
    /// The handshake did not say. The algorithm tests support during the connection, or sends no probes.
    #[default]
    Unknown,
    /// The peer agreed in the handshake to answer probes.
    Agreed,
    /// The peer answers probes, but the bottleneck treats probes like data. A reply then does not show free capacity: probes get
    /// through even when data is lost.
    Ordinary,
}
