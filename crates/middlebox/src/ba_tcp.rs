//! BA-TCP routers: they write the path's delay and the connection's bandwidth share into each packet.
//!
//! M. Gerla, W. Weng, R. Lo Cigno, "BA-TCP: A Bandwidth Aware TCP for Satellite Networks", IEEE ICCCN 1999.
//!
//! | paper | here                        | unit      |
//! |-------|-----------------------------|-----------|
//! | RTPD  | [`PathReport::propagation`] | time      |
//! | ABW   | [`PathReport::available`], `fair` | bytes / s |
//!
//! Only the abstract was available: `papers/ba-tcp.md` lists the reconstructed parts.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Extension, Instant, Rate};
use bentpipe_cc::ba_tcp::PathReport;

use crate::{BaTcpConfig, Connection, Direction, Passing, Verdict};

/// Minimum measurement interval in seconds.
const LEAST_INTERVAL_S: f64 = 0.1;
/// A connection that uses less than this fraction of its share in several consecutive intervals is limited elsewhere. Fewer
/// intervals would include connections that do not know their share yet.
const MODEST: f64 = 0.8;
const PATIENCE: u32 = 3;

/// A BA-TCP router.
#[derive(Clone, Debug)]
pub struct BaTcp {
    config: BaTcpConfig,
    outlets: Vec<Outlet>,
    told: u64,
}

/// Connections that share an outgoing link.
#[derive(Clone, Debug)]
struct Outlet {
    link: u32,
    /// Capacity to distribute, in bytes per second.
    capacity: f64,
    shares: BTreeMap<(Connection, bool), Share>,
    /// Bytes of non-TCP traffic in this interval.
    others: f64,
    began: Instant,
    interval_s: f64,
    /// Share of a connection in bytes per second.
    fair: f64,
    /// Queue seen by the last packet.
    waiting: f64,
}

/// Usage of a connection.
#[derive(Clone, Copy, Debug)]
struct Share {
    bytes: f64,
    heard: Instant,
    /// Consecutive intervals in which it used little.
    modest: u32,
}

/// Returns the max-min fair share. Connections in `limited` use at most these rates; `greedy` connections use their whole share.
fn max_min(capacity: f64, limited: &[f64], greedy: usize) -> f64 {
    let count = (limited.len() + greedy).max(1) as f64;
    let mut fair = capacity / count;
    loop {
        let modest = limited.iter().filter(|rate| **rate < fair);
        let (taken, left) = modest.fold((0.0, count), |(taken, left), rate| (taken + rate, left - 1.0));
        if left < 1.0 {
            return fair;
        }
        let next = (capacity - taken) / left;
        // The share only grows. The search ends when no further connection is below it.
        if next <= fair {
            return fair;
        }
        fair = next;
    }
}

impl Outlet {
    fn new(link: u32, now: Instant) -> Self {
        Self {
            link,
            capacity: 0.0,
            shares: BTreeMap::new(),
            others: 0.0,
            began: now,
            interval_s: LEAST_INTERVAL_S,
            fair: f64::INFINITY,
            waiting: 0.0,
        }
    }

    /// Ends the interval and computes new shares.
    fn divide(&mut self, now: Instant) {
        let length_s = now.since(self.began).as_secs_f64();
        let silent = Duration::from_secs_f64(2.0 * self.interval_s.max(length_s));
        self.shares.retain(|_, share| share.heard + silent > now);
        let free = self.capacity - self.waiting / length_s - self.others / length_s;
        let mut limited = Vec::new();
        for share in self.shares.values_mut() {
            let rate = share.bytes / length_s;
            share.modest = if rate < MODEST * self.fair { share.modest + 1 } else { 0 };
            if share.modest >= PATIENCE {
                limited.push(rate);
            }
            share.bytes = 0.0;
        }
        self.fair = max_min(free.max(0.0), &limited, self.shares.len() - limited.len());
        self.others = 0.0;
        self.began = now;
    }
}

impl BaTcp {
    /// Makes a router without state.
    pub(crate) fn new(config: BaTcpConfig) -> Self {
        Self { config, outlets: Vec::new(), told: 0 }
    }

    pub(crate) fn handle(&mut self, now: Instant, passing: &mut Passing<'_>) -> Verdict {
        let port = passing.port;
        let place = self.outlets.iter().position(|outlet| outlet.link == port.link).unwrap_or_else(|| {
            self.outlets.push(Outlet::new(port.link, now));
            self.outlets.len() - 1
        });
        let outlet = &mut self.outlets[place];
        outlet.capacity = self.config.utilisation * port.rate.bytes_per_s();
        if now.since(outlet.began).as_secs_f64() >= outlet.interval_s {
            outlet.divide(now);
        }
        outlet.waiting = port.waiting_bytes as f64;
        let Some(connection) = passing.connection else {
            outlet.others += f64::from(passing.size);
            return Verdict::Forward;
        };
        if passing.segment.len == 0 {
            return Verdict::Forward;
        }
        let before = outlet.shares.len();
        let key = (connection, passing.direction == Direction::Reverse);
        let share = outlet.shares.entry(key).or_insert(Share { bytes: 0.0, heard: now, modest: 0 });
        share.bytes += f64::from(passing.size);
        share.heard = now;
        if outlet.shares.len() > before {
            outlet.fair = outlet.fair.min(outlet.capacity / outlet.shares.len() as f64);
        }
        let fair = Rate::from_bytes_per_s(outlet.fair);
        if let Extension::Value(bits) = &mut passing.segment.extension {
            let mut report = PathReport::from_bits(*bits);
            report.hops = report.hops.saturating_add(1);
            report.propagation += port.delay_one_way * 2;
            report.available = report.available.min(fair);
            *bits = report.to_bits();
            outlet.interval_s = LEAST_INTERVAL_S.max(report.propagation.as_secs_f64());
            self.told += 1;
        }
        Verdict::Forward
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("packets_told", self.told)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::Segment;

    /// 95 % of 5 Mbit/s for three connections; one of them uses 50 kB/s.
    #[test]
    fn what_one_leaves_is_shared_by_the_others() {
        let capacity = 0.95 * 625_000.0;
        assert!((max_min(capacity, &[], 3) - 197_916.7).abs() < 0.1);
        assert!((max_min(capacity, &[50_000.0], 2) - 271_875.0).abs() < 0.1);
        // A connection above its share is not limited, and a single connection receives everything.
        assert!((max_min(capacity, &[400_000.0], 2) - 197_916.7).abs() < 0.1);
        assert!((max_min(capacity, &[], 1) - capacity).abs() < 0.1);
    }

    #[test]
    fn a_report_grows_by_the_way_and_shrinks_to_the_share() {
        let mut router = BaTcp::new(BaTcpConfig::default());
        let mut told = |connection| {
            let extension = Extension::Value(PathReport::blank().to_bits());
            let mut segment = Segment { len: 960, extension, ..Segment::default() };
            let mut passing = pass(&mut segment, Direction::Forward, 0);
            passing.connection = Some(Connection(connection));
            router.handle(at_ms(1), &mut passing);
            match segment.extension {
                Extension::Value(bits) => PathReport::from_bits(bits),
                other => panic!("{other:?}"),
            }
        };
        let report = told(1);
        assert_eq!((report.hops, report.propagation), (1, Duration::from_millis(20)));
        // 95 % of 1 Mbit/s, in steps of 512 bit/s.
        assert!((949_000..=950_000).contains(&report.available.bps()), "{report:?}");
        assert!((474_000..=475_000).contains(&told(2).available.bps()));
    }
}
