//! History of delivered bytes over the last round trips. It yields the delivery rate over any part of them.

use bentpipe_base::{Duration, Instant};

/// Number of points in the history. With [`SPACING`] they cover two round trips.
const POINTS: usize = 64;
/// Points per round trip.
const SPACING: u64 = 32;

/// A time, and the bytes delivered by then.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    bytes: u64,
}

/// Curve of bytes delivered over the last round trips. It is linear between near points, and a step at the later point
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deliveries {
    /// Ring of points.
    points: [Point; POINTS],
    newest: usize,
    spacing: Duration,
}

impl Deliveries {
    pub fn new() -> Self {
        Self { points: [Point { at: Instant::ZERO, bytes: 0 }; POINTS], newest: 0, spacing: Duration::ZERO }
    }

    /// Adds an ACK at `now` that reports `bytes`. The newest point moves forward until it is `rtt / SPACING` after the previous
    /// one; after silence it stays.
    pub fn add(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        self.spacing = rtt / SPACING;
        let newest = self.point(0);
        if newest.at.since(self.point(1).at) >= self.spacing || now.since(newest.at) > self.spacing {
            self.newest = (self.newest + 1) % POINTS;
        }
        self.points[self.newest] = Point { at: now, bytes: newest.bytes + bytes };
    }

    /// Returns the rate over the last `span`, in bytes per second.
    pub fn rate(&self, now: Instant, span: Duration) -> f64 {
        if span.is_zero() {
            0.0
        } else {
            (self.point(0).bytes - self.until(now - span)) as f64 / span.as_secs_f64()
        }
    }

    /// Returns the point that is `age` positions older than the newest.
    fn point(&self, age: usize) -> Point {
        self.points[(self.newest + POINTS - age) % POINTS]
    }

    /// Returns the bytes delivered by `at`, within the length of the history.
    fn until(&self, at: Instant) -> u64 {
        let mut younger = self.point(0);
        if younger.at <= at {
            return younger.bytes;
        }
        for age in 1..POINTS {
            let older = self.point(age);
            if older.at <= at {
                return self.between(older, younger, at);
            }
            younger = older;
        }
        younger.bytes
    }

    fn between(&self, older: Point, younger: Point, at: Instant) -> u64 {
        let gap = younger.at.since(older.at);
        if gap > self.spacing * 2 {
            return older.bytes;
        }
        let share = at.since(older.at).as_secs_f64() / gap.as_secs_f64();
        older.bytes + ((younger.bytes - older.bytes) as f64 * share) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::path_at;

    const RTT: Duration = Duration::from_millis(500);

    fn at(millis: u32) -> Instant {
        path_at(f64::from(millis) * 0.001).now
    }

    #[test]
    fn a_stream_is_remembered_for_two_round_trips() {
        let mut deliveries = Deliveries::new();
        for millis in 1..=1000 {
            deliveries.add(at(millis), 1, RTT);
        }
        for millis in [100_u32, 250, 500, 700, 990, 999, 1000] {
            let until = deliveries.until(at(millis));
            assert!(until.abs_diff(u64::from(millis)) <= 1, "{until} after {millis} ms");
        }
        assert!((deliveries.rate(at(1000), RTT / 4) - 1000.0).abs() < 10.0);
    }

    #[test]
    fn silence_delivers_nothing() {
        let mut deliveries = Deliveries::new();
        for millis in [1000, 1001, 1500, 1501] {
            deliveries.add(at(millis), 1000, RTT);
        }
        assert_eq!(deliveries.until(at(1400)), 2000);
        assert_eq!(deliveries.rate(at(1501), RTT / 4), 16_000.0, "a cluster of two in 125 ms");
        assert_eq!(deliveries.rate(at(1501), Duration::ZERO), 0.0);
    }
}
