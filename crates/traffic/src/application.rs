//! The applications of flows. They decide; a driver writes, sends and wakes them.

use bentpipe_base::{Duration, Instant, Rate, Rng};

use crate::client_app::ClientApp;
use crate::outcome::ServiceOutcome;
use crate::source_app::SourceApp;

/// The application of one flow.
#[derive(Debug)]
pub enum Application {
    /// Writes without end.
    Bulk,
    /// Writes so many bytes and closes.
    File {
        /// How many.
        bytes: u64,
    },
    /// Writes a page, waits for its acknowledgement, rests, and begins again.
    Pages(Pages),
    /// Sends packets without TCP.
    Cbr(Cbr),
    /// Sends messages at times of its own.
    SourceApp(Box<SourceApp>),
    /// Asks a server.
    ClientApp(Box<ClientApp>),
}

/// What an application wants to know of its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Room to write, and when all was acknowledged.
    Usual,
    /// Also what arrives when.
    Arrivals,
    /// All of it: it reads and writes at both ends.
    Everything,
}

/// A reader of pages.
#[derive(Debug)]
pub struct Pages {
    /// Bytes of a page.
    pub bytes: u64,
    /// Each page on a connection of its own.
    pub fresh_connection: bool,
    /// How long the reader rests after it.
    pub rest: Rest,
}

/// How long a reader rests between two pages.
#[derive(Debug)]
pub enum Rest {
    /// Always as long.
    Fixed(Duration),
    /// Exponentially distributed with a mean; with its dice.
    Exponential(Box<(Duration, Rng)>),
}

/// A source of constant bit rate.
#[derive(Debug)]
pub struct Cbr {
    rate: Rate,
    packet_bytes: u32,
    sent: u64,
}

/// What became of an application's packets and connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets that its transport sent for the first time, as far as that tells.
    pub sent_packets: u64,
    /// Data packets lost on the way, each transmission counted.
    pub lost_packets: u64,
    /// Connections that ended before their time.
    pub failed_connections: u64,
}

impl Application {
    /// The source, if it is one.
    pub fn source_app(&mut self) -> Option<&mut SourceApp> {
        if let Self::SourceApp(app) = self { Some(app) } else { None }
    }

    /// The client, if it is one.
    pub fn client_app(&mut self) -> Option<&mut ClientApp> {
        if let Self::ClientApp(app) = self { Some(app) } else { None }
    }

    /// What the ends of its connections must tell it.
    pub fn interest(&self) -> Interest {
        match self {
            Self::SourceApp(_) => Interest::Arrivals,
            Self::ClientApp(_) => Interest::Everything,
            _ => Interest::Usual,
        }
    }

    /// Uses one connection after the other, whose places are used again.
    pub fn has_many_connections(&self) -> bool {
        matches!(self, Self::Pages(_) | Self::ClientApp(_))
    }

    /// What happens at its sender and what happens at its receiver have nothing to do with each other but by packets. (A connection that
    /// fails is noted by whichever end it is; the one that does not hear of it from the other fails for the same reason.)
    pub fn sides_are_apart(&self) -> bool {
        matches!(self, Self::Bulk | Self::Cbr(_))
    }

    /// How it was served by now, if it says so.
    pub fn service(&self, now: Instant, carried: Carried) -> ServiceOutcome {
        match self {
            Self::SourceApp(app) => app.service(now, (carried.sent_packets, carried.lost_packets)),
            Self::ClientApp(app) => app.client.service(now, carried.failed_connections),
            _ => ServiceOutcome::default(),
        }
    }

    /// Bytes after which the application closes its connection; none if it goes on.
    pub fn closes_after(&self) -> Option<u64> {
        match self {
            Self::File { bytes } => Some(*bytes),
            Self::Pages(pages) if pages.fresh_connection => Some(pages.bytes),
            _ => None,
        }
    }
}

impl Pages {
    /// How long the reader rests before the next page.
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
    /// Packets of so many bytes, with their headers, at a rate that counts them as well.
    pub fn new(rate: Rate, packet_bytes: u32) -> Self {
        Self { rate, packet_bytes, sent: 0 }
    }

    /// Size of a packet on the wire.
    pub fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// Notes that a packet leaves; when the next one does, in a flow that started at `start`.
    pub fn send(&mut self, start: Instant) -> Instant {
        self.sent += 1;
        // From the start, so that rounding does not add up.
        start + self.rate.time_for(self.sent.saturating_mul(u64::from(self.packet_bytes)))
    }

    /// Packets sent.
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
