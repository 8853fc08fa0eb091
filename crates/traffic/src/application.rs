//! Applications of flows. They make decisions; a driver writes, sends and calls them.

use bentpipe_base::{Duration, Instant, Rate, Rng};

use crate::client_app::ClientApp;
use crate::outcome::ServiceOutcome;
use crate::source_app::SourceApp;
use crate::transfers::Transfer;

/// Application of one flow.
#[derive(Debug)]
pub enum Application {
    /// An unlimited amount of data.
    Bulk,
    /// A fixed number of bytes, then a close.
    File {
        /// Number of bytes.
        bytes: u64,
    },
    /// Pages: writes a page, waits for its acknowledgement and the reader's pause, and repeats.
    Pages(Pages),
    /// Packets without TCP.
    Cbr(Cbr),
    /// A source of messages at its own times.
    SourceApp(Box<SourceApp>),
    /// A client that sends requests to a server.
    ClientApp(Box<ClientApp>),
}

/// Events of its connections that an application needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Room to write, and the acknowledgement of all data.
    Usual,
    /// The above, and arrivals with their times.
    Arrivals,
    /// All events: it reads and writes at both ends.
    Everything,
}

/// Reader of pages.
#[derive(Debug)]
pub struct Pages {
    /// Bytes of a page.
    pub bytes: u64,
    /// True for a new connection per page.
    pub fresh_connection: bool,
    /// Pause of the reader after a page.
    pub rest: Rest,
}

/// Pause of a reader between two pages.
#[derive(Debug)]
pub enum Rest {
    /// A constant value.
    Fixed(Duration),
    /// Exponentially distributed; the mean and the random stream.
    Exponential(Box<(Duration, Rng)>),
}

/// Source of constant bit rate.
#[derive(Debug)]
pub struct Cbr {
    rate: Rate,
    packet_bytes: u32,
    sent: u64,
}

/// Fate of an application's packets and connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets sent for the first time, if the transport counts them.
    pub sent_packets: u64,
    /// Lost data packets; each transmission counts.
    pub lost_packets: u64,
    /// Connections that ended early.
    pub failed_connections: u64,
}

impl Application {
    /// Returns the source, if it is one.
    pub fn source_app(&mut self) -> Option<&mut SourceApp> {
        if let Self::SourceApp(app) = self { Some(app) } else { None }
    }

    /// Returns the client, if it is one.
    pub fn client_app(&mut self) -> Option<&mut ClientApp> {
        if let Self::ClientApp(app) = self { Some(app) } else { None }
    }

    /// Returns the events that it needs from its connections.
    pub fn interest(&self) -> Interest {
        match self {
            Self::SourceApp(_) => Interest::Arrivals,
            Self::ClientApp(_) => Interest::Everything,
            _ => Interest::Usual,
        }
    }

    /// True if it uses several connections in sequence, whose slots are reused.
    pub fn has_many_connections(&self) -> bool {
        matches!(self, Self::Pages(_) | Self::ClientApp(_))
    }

    /// True if its sending and receiving side interact only by packets. (Either end records a failed connection. An end that the
    /// other cannot inform fails for the same reason.)
    pub fn sides_are_apart(&self) -> bool {
        matches!(self, Self::Bulk | Self::Cbr(_))
    }

    /// Returns the quality of service up to `now`, if it is measured.
    pub fn service(&self, now: Instant, carried: Carried) -> ServiceOutcome {
        match self {
            Self::SourceApp(app) => app.service(now, (carried.sent_packets, carried.lost_packets)),
            Self::ClientApp(app) => app.client.service(now, carried.failed_connections),
            _ => ServiceOutcome::default(),
        }
    }

    /// Returns the complete pages and files of a client.
    pub fn transfers(&self) -> &[Transfer] {
        if let Self::ClientApp(app) = self { app.client.transfers() } else { &[] }
    }

    /// Returns the bytes after which it closes its connection; `None` if it continues.
    pub fn closes_after(&self) -> Option<u64> {
        match self {
            Self::File { bytes } => Some(*bytes),
            Self::Pages(pages) if pages.fresh_connection => Some(pages.bytes),
            _ => None,
        }
    }
}

impl Pages {
    /// Returns the pause before the next page.
    pub fn rest(&mut self) -> Duration {
        match &mut self.rest {
            Rest::Fixed(rest) => *rest,
            Rest::Exponential(dice) => {
                let (mean, rng) = dice.as_mut();
                Duration::from_secs_f64(rng.exponential(mean.as_secs_f64()))
            }
        }
    }
}

impl Cbr {
    /// Makes a source of packets of `packet_bytes` bytes, headers included, at a rate that includes headers.
    pub fn new(rate: Rate, packet_bytes: u32) -> Self {
        Self { rate, packet_bytes, sent: 0 }
    }

    /// Returns the packet size on the wire.
    pub fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// Records a packet that leaves. Returns the send time of the next one, for a flow that started at `start`.
    pub fn send(&mut self, start: Instant) -> Instant {
        self.sent += 1;
        // Computed from the start time, so that rounding errors do not accumulate.
        start + self.rate.time_for(self.sent.saturating_mul(u64::from(self.packet_bytes)))
    }

    /// Returns the number of packets sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_bit_rate_does_not_drift() {
        let mut cbr = Cbr::new(Rate::from_mbps(3), 1000);
        let last = (0..3_000).map(|_| cbr.send(Instant::ZERO)).last();
        assert_eq!(last, Some(Instant::ZERO + Duration::from_secs(8)));
    }
}
