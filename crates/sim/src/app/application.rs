//! What the applications of flows do. They decide; the simulation writes, sends and wakes them.

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_scenario::{FlowGroup, Idle, Traffic};

use crate::app::client::ClientApp;
use crate::app::source::{Pattern, SourceApp};

/// The application of one flow.
#[derive(Debug)]
pub(crate) enum Application {
    /// Writes without end.
    Bulk,
    /// Writes so many bytes and closes.
    File { bytes: u64 },
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
pub(crate) enum Interest {
    /// Room to write, and when all was acknowledged.
    Usual,
    /// Also what arrives when.
    Arrivals,
    /// All of it: it reads and writes at both ends.
    Everything,
}

/// A reader of pages.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Bytes of a page.
    pub bytes: u64,
    /// Each page on a connection of its own.
    pub fresh_connection: bool,
    rest: Rest,
}

/// How long a reader rests between two pages.
#[derive(Debug)]
enum Rest {
    Fixed(Duration),
    /// Exponentially distributed with a mean; with its dice.
    Exponential(Box<(Duration, Rng)>),
}

/// A source of constant bit rate.
#[derive(Debug)]
pub(crate) struct Cbr {
    rate: Rate,
    /// Size of a packet on the wire.
    pub packet_bytes: u32,
    sent: u64,
}

impl Application {
    /// Of a flow called `name`; `pattern` is that of its group.
    pub fn new(group: &FlowGroup, pattern: &Pattern, (seed, name): (u64, &str)) -> Self {
        let rng = || Rng::stream(seed, &format!("flow.{name}.traffic"));
        if let Some(app) = SourceApp::new(group, pattern, rng()) {
            return Self::SourceApp(Box::new(app));
        }
        if let Some(app) = ClientApp::new(group, rng()) {
            return Self::ClientApp(Box::new(app));
        }
        match group.traffic {
            Traffic::File { bytes } => Self::File { bytes },
            Traffic::Pages { segments, idle, fresh_connection } => Self::Pages(Pages {
                bytes: u64::from(segments) * u64::from(group.sender.mss),
                fresh_connection,
                rest: match idle {
                    Idle::Fixed(rest) => Rest::Fixed(rest),
                    Idle::Exponential(mean) => {
                        let rng = Rng::stream(seed, &format!("flow.{name}.idle"));
                        Rest::Exponential(Box::new((mean, rng)))
                    }
                },
            }),
            Traffic::Cbr { rate, packet_bytes, .. } => Self::Cbr(Cbr { rate, packet_bytes, sent: 0 }),
            _ => Self::Bulk,
        }
    }

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
        let mut cbr = Cbr { rate: Rate::from_mbps(3), packet_bytes: 1000, sent: 0 };
        let last = (0..3_000).map(|_| cbr.send(Instant::ZERO)).last();
        assert_eq!(last, Some(Instant::ZERO + Duration::from_secs(8)));
    }
}
