//! Reports of connections and of UDP, for the log, `pep status` and `pep top`.

use serde::{Deserialize, Serialize};

use crate::half::Telemetry;

/// UDP of a class since the proxy began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UdpReport {
    /// Name of the class.
    pub class: String,
    /// Packets and bytes forwarded to the satellite.
    pub to_satellite: UdpCount,
    /// Packets and bytes forwarded to the clients.
    pub to_clients: UdpCount,
    /// Packets to UDP port 443 that were refused.
    pub refused_packets: u64,
}

/// Packets, and their bytes with IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UdpCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A connection that exists or has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Number of the connection, unique while the proxy runs.
    pub id: u64,
    /// Seconds since 1970 at which it began.
    pub began_unix_s: f64,
    /// Seconds for which it has lasted.
    pub lasted_s: f64,
    /// Name of its class.
    pub class: String,
    /// Address and port of the client, which opened it.
    pub client: String,
    /// Address and port of the server.
    pub server: String,
    /// `open`, `closed` by both ends, or `reset`.
    pub state: String,
    /// The half towards the client.
    pub front: HalfReport,
    /// The half towards the server.
    pub back: HalfReport,
}

/// One half of a connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HalfReport {
    /// `satellite` or `clients`.
    pub side: String,
    /// Congestion control of the proxy's data to there.
    pub cc: String,
    /// Payload bytes sent there.
    pub sent_bytes: u64,
    /// Payload bytes from there that were passed on.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: f64,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Payload bytes waiting for being sent or acknowledged.
    pub queued_bytes: u64,
}

impl HalfReport {
    pub(crate) fn new(side: &str, cc: String, [sent, received]: [u64; 2], telemetry: &Telemetry) -> Self {
        Self {
            side: side.to_owned(),
            cc,
            sent_bytes: sent,
            received_bytes: received,
            retransmitted_segments: telemetry.retransmitted_segments,
            srtt_ms: telemetry.srtt.as_secs_f64() * 1e3,
            cwnd_segments: telemetry.cwnd,
            queued_bytes: telemetry.queued_bytes,
        }
    }
}
