//! SaTPEP: windows on the satellite hop follow the link's utilisation instead of ACKs or losses.
//!
//! D. Velenis, D. Kalogeras, B. Maglaris, "SaTPEP: a TCP Performance Enhancing Proxy for Satellite Links", IFIP Networking 2002.
//!
//! This file holds the measurement and the window law. `spoofing` and `hop` hold, acknowledge and repair the data.
//! `papers/satpep.md` lists the reconstructed parts.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};

use crate::{Connection, Port, SatPepConfig};

/// Minimum window in segments; also the initial window unless the share of the link is larger.
const LEAST_WINDOW: f64 = 2.0;
const FIRST_WINDOW: f64 = 4.0;
/// Tolerated queue in front of the link, as a fraction of the BDP.
const TOLERATED_QUEUE: f64 = 0.5;
/// Assumed round-trip time before the first measurement.
const RTT_UNKNOWN: Duration = Duration::from_millis(550);

/// Utilisation of each outgoing link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meters(BTreeMap<u32, Meter>);

/// Measurement of an outgoing link in the present period.
#[derive(Clone, Debug)]
struct Meter {
    port: Port,
    bytes: u64,
    begun: Instant,
    /// Round-trip time that sets the length of the period.
    rtt: Duration,
    /// Connections that used this link in the present or previous period.
    active: BTreeMap<Connection, Instant>,
}

/// Result of a period.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Verdict {
    /// Used fraction of the capacity.
    pub used: f64,
    /// Capacity to distribute, in bytes per second.
    spare: f64,
    /// True if the queue exceeds the tolerated length.
    crowded: bool,
}

impl Verdict {
    fn new(config: &SatPepConfig, used: f64, capacity: f64, crowded: bool) -> Self {
        Self { used, spare: (config.utilisation - used).max(0.0) * capacity, crowded }
    }

    /// Returns the next window of a connection in segments. Spare capacity is divided among the `backlogged` connections.
    pub fn window(&self, config: &SatPepConfig, window: f64, share: Share) -> f64 {
        if self.crowded || self.used > 1.0 {
            return (window * config.utilisation / self.used.max(config.utilisation)).max(LEAST_WINDOW);
        }
        let Share { rtt, segment_bytes, backlogged } = share;
        let more = self.spare * rtt.as_secs_f64() / (segment_bytes * f64::from(backlogged.max(1)));
        window + more.min(window)
    }
}

/// Inputs for a connection's share of the spare capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub rtt: Duration,
    /// Bytes of a full segment on the wire.
    pub segment_bytes: f64,
    pub backlogged: u32,
}

/// A packet that leaves on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub connection: Connection,
    /// Round-trip time of the connection, if it is known.
    pub rtt: Option<Duration>,
    /// Bytes on the wire.
    pub bytes: u64,
}

impl Meters {
    /// Records a packet that leaves on a link.
    pub fn note(&mut self, now: Instant, port: Port, packet: Departure) {
        let Departure { connection, rtt, bytes } = packet;
        let meter = self.0.entry(port.link).or_insert_with(|| Meter {
            port,
            bytes: 0,
            begun: now,
            rtt: rtt.unwrap_or(RTT_UNKNOWN),
            active: BTreeMap::new(),
        });
        meter.port = port;
        meter.bytes += bytes;
        meter.rtt = rtt.unwrap_or(meter.rtt);
        meter.active.insert(connection, now);
    }

    /// Returns the initial window of a connection on a link: its share of the capacity.
    pub fn first_window(&self, port: &Port, rtt: Duration, segment_bytes: f64) -> f64 {
        let active = self.0.get(&port.link).map_or(0, |meter| meter.active.len());
        let share = port.rate.bps() as f64 / 8.0 * rtt.as_secs_f64() / (segment_bytes * (active + 1) as f64);
        share.max(FIRST_WINDOW)
    }

    pub fn next_timeout(&self) -> Instant {
        self.0.values().map(Meter::due).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Returns the links whose period has ended, with the result and their connections.
    pub fn judge(&mut self, now: Instant, config: &SatPepConfig) -> Vec<(Verdict, Vec<Connection>)> {
        let due = self.0.values_mut().filter(|meter| meter.due() <= now);
        due.map(|meter| (meter.judge(now, config), meter.active.keys().copied().collect())).collect()
    }
}

impl Meter {
    /// The period is a round trip, because transmissions repeat with it. Half of it would measure the pattern of bursts.
    fn period(&self) -> Duration {
        self.rtt.max(Duration::from_millis(1))
    }

    /// Returns the end of the period; none for an unused link.
    fn due(&self) -> Instant {
        if self.active.is_empty() { Instant::FAR_FUTURE } else { self.begun + self.period() }
    }

    fn judge(&mut self, now: Instant, config: &SatPepConfig) -> Verdict {
        let capacity = self.port.rate.bps() as f64 / 8.0;
        let used = self.bytes as f64 / (capacity * now.since(self.begun).as_secs_f64()).max(1.0);
        let tolerated = TOLERATED_QUEUE * capacity * self.rtt.as_secs_f64();
        let verdict = Verdict::new(config, used, capacity, self.port.waiting_bytes as f64 > tolerated);
        let silent_since = self.begun;
        self.active.retain(|_, heard| *heard >= silent_since);
        (self.bytes, self.begun) = (0, now);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 Mbit/s, 550 ms, segments of 1000 bytes, two connections with windows of 50.
    #[test]
    fn windows_double_until_the_spare_capacity_is_given_away() {
        let config = SatPepConfig::default();
        let share = Share { rtt: RTT_UNKNOWN, segment_bytes: 1000.0, backlogged: 2 };
        let used = |window: f64| 2.0 * window * 1000.0 / 0.55 / 625_000.0;
        let verdict = |window| Verdict::new(&config, used(window), 625_000.0, false);
        let first = verdict(50.0);
        assert!((first.used - 0.291).abs() < 1e-3 && (first.spare - 411_932.0).abs() < 1.0, "{first:?}");
        assert_eq!(first.window(&config, 50.0, share), 100.0);
        let second = verdict(100.0);
        assert!((second.spare - 230_114.0).abs() < 1.0, "{second:?}");
        let window = second.window(&config, 100.0, share);
        assert!((window - 163.3).abs() < 0.05 && (used(window) - 0.95).abs() < 1e-3, "{window}");
        // Above the capacity, windows shrink to the target divided by the utilisation.
        let above = Verdict::new(&config, 1.1, 625_000.0, false);
        assert!((above.window(&config, 100.0, share) - 86.36).abs() < 0.01);
        assert_eq!(above.window(&config, 2.0, share), 2.0);
    }
}
