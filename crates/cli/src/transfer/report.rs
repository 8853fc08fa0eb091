//! Report of a finished connection.

use std::fmt;

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Driver, Id};
use indicatif::DecimalBytes;
use serde::Serialize;

use super::{Drain, Feed};

/// Statistics of a connection: one element of the JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Address of the peer.
    pub peer: std::net::SocketAddr,
    /// Algorithm of this end.
    pub cc: &'static str,
    /// True if both streams ended regularly.
    pub complete: bool,
    /// Reason if not.
    pub error: Option<String>,
    /// Payload bytes that the peer acknowledged.
    pub sent_bytes: u64,
    /// Payload bytes that arrived in order.
    pub received_bytes: u64,
    /// Seconds from the start of the connection to the last byte.
    pub duration_s: f64,
    /// Goodput of the direction with more data.
    pub goodput_bps: f64,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// Counters of the transport.
    #[serde(flatten)]
    pub details: Details,
    /// SHA-256 of the sent data, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_sha256: Option<String>,
    /// SHA-256 of the received data, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_sha256: Option<String>,
}

/// Counters of one transport.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum Details {
    /// TCP.
    Tcp {
        /// Congestion window in segments at the end.
        cwnd_segments: f64,
        /// Data segments sent, retransmissions included.
        sent_segments: u64,
        /// Data segments retransmitted.
        retransmitted_segments: u64,
        /// Retransmission timeouts.
        timeouts: u64,
        /// Low-priority probes sent.
        probes_sent: u64,
        /// Replies to probes received.
        probes_acked: u64,
        /// Smoothed round-trip time of probes, if the peer answers them by D-SACK.
        probe_srtt_ms: Option<f64>,
        /// True if the bottleneck treats probes as data, because it has no low priority.
        probes_are_ordinary: bool,
        /// Received data segments without new data.
        duplicate_segments: u64,
    },
    /// QUIC.
    #[cfg(feature = "quic")]
    Quic {
        /// Congestion window in bytes at the end.
        cwnd_bytes: u64,
        /// Packets sent that the peer must acknowledge.
        sent_packets: u64,
        /// Packets declared lost.
        lost_packets: u64,
        /// Reductions of the window by losses or marks.
        congestion_events: u64,
    },
}

impl Report {
    /// Makes the report of connection `id`, which started at `begin`.
    pub fn of(driver: &Driver, id: Id, begin: Instant, cc: &'static str) -> Option<Self> {
        let connection = driver.stack.connection(id)?;
        let stats = connection.stats();
        let sent_bytes = connection.acknowledged_bytes();
        let duration_s = driver.now().since(begin).as_secs_f64();
        let bytes = sent_bytes.max(stats.delivered_bytes);
        Some(Self {
            peer: driver.stack.ends(id)?.remote,
            cc,
            complete: true,
            error: None,
            sent_bytes,
            received_bytes: stats.delivered_bytes,
            duration_s,
            goodput_bps: bytes as f64 * 8.0 / duration_s.max(1e-9),
            srtt_ms: connection.srtt().map(Duration::as_millis_f64),
            details: Details::Tcp {
                cwnd_segments: connection.window_state().cwnd,
                sent_segments: stats.sent_segments,
                retransmitted_segments: stats.retransmitted_segments,
                timeouts: stats.timeouts,
                probes_sent: stats.probes_sent,
                probes_acked: stats.probes_acked,
                probe_srtt_ms: connection.probe_srtt().map(Duration::as_millis_f64),
                probes_are_ordinary: connection.probes_are_ordinary(),
                duplicate_segments: stats.duplicate_segments,
            },
            sent_sha256: None,
            received_sha256: None,
        })
    }

    /// Adds the requested digests of both streams.
    pub fn with_digests(self, feed: &Feed, drain: &Drain) -> Self {
        Self { sent_sha256: feed.digits(), received_sha256: drain.digits(), ..self }
    }

    /// Marks the transfer as incomplete.
    pub fn fail(&mut self, why: &str) {
        self.complete = false;
        self.error = Some(why.to_owned());
    }

    /// Prints one line on standard error, because standard output may carry the data.
    pub fn tell(&self) {
        let rate = self.goodput_bps / 1e6;
        let rtt = self.srtt_ms.map_or(String::new(), |rtt| format!(", round trip {rtt:.1} ms"));
        if let Details::Tcp { probes_are_ordinary: true, .. } = self.details {
            eprintln!(
                "{}: probes passed full queues and were lost no more often than data: this path ignores low priority (DSCP LE), so replies prove nothing",
                self.peer
            );
        }
        eprintln!(
            "{}: sent {}, received {} in {:.3} s, {rate:.3} Mbit/s{rtt}, {}",
            self.peer,
            DecimalBytes(self.sent_bytes),
            DecimalBytes(self.received_bytes),
            self.duration_s,
            self.details,
        );
        for (what, digits) in [("sent", &self.sent_sha256), ("received", &self.received_sha256)] {
            if let Some(digits) = digits {
                eprintln!("{}: SHA-256 of the data {what}: {digits}", self.peer);
            }
        }
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                retransmitted_segments,
                sent_segments,
                timeouts,
                probes_sent,
                probes_acked,
                probe_srtt_ms,
                ..
            } => {
                write!(
                    f,
                    "{retransmitted_segments} of {sent_segments} segments retransmitted, {timeouts} timeouts"
                )?;
                if *probes_sent > 0 {
                    let rtt = probe_srtt_ms.map_or(String::new(), |rtt| format!(" after {rtt:.1} ms"));
                    write!(f, ", {probes_acked} of {probes_sent} probes answered{rtt}")?;
                }
                Ok(())
            }
            #[cfg(feature = "quic")]
            Self::Quic { sent_packets, lost_packets, congestion_events, .. } => write!(
                f,
                "{lost_packets} of {sent_packets} packets lost, {congestion_events} congestion events"
            ),
        }
    }
}
