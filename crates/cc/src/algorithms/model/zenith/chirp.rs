//! The first flight, which measures the rate of the path.

use bentpipe_base::{Duration, Instant};

/// Gaps of the first flight begin with at most this time and this share of a round trip, and shrink by this factor.
const FIRST_GAP_S: f64 = 0.0048;
const FIRST_GAP_RTT: f64 = 0.125;
const SHRINK: f64 = 0.6;
/// ACKs of the first flight that are evaluated.
const POINTS: usize = 16;
/// Segments whose arrivals tell the rate.
const TRAIN: f64 = 4.0;
/// Error of a delay, in seconds.
const NOISE_S: f64 = 0.001;

/// An ACK of the first flight.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    sent_s: f64,
    at_s: f64,
    /// Segments delivered so far, this ACK's included.
    delivered: f64,
}

/// The first flight. Its long gaps show whether packets of other flows come in between. The short gaps show the rate of the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chirp {
    points: [Point; POINTS],
    len: usize,
    delivered: f64,
    flight: f64,
    last_sent: Instant,
}

impl Chirp {
    pub fn new(flight: f64) -> Self {
        let points = [Point::default(); POINTS];
        Self { points, len: 0, delivered: 0.0, flight, last_sent: Instant::FAR_FUTURE }
    }

    /// Seconds between segment `index` of the connection and the next.
    pub fn gap_s(index: u32, rtt_s: f64) -> f64 {
        FIRST_GAP_S.min(FIRST_GAP_RTT * rtt_s) * libm::pow(SHRINK, f64::from(index.min(POINTS as u32)))
    }

    /// Segment `index` of the connection leaves.
    pub fn on_sent(&mut self, now: Instant, index: u32) {
        if f64::from(index) + 1.0 == self.flight {
            self.last_sent = now;
        }
    }

    /// Processes an ACK. Once the flight has arrived, returns the rate of an idle path in segments per second, or infinity if other flows use the path.
    pub fn on_ack(&mut self, now: Instant, rtt: Duration, segments: f64) -> Option<f64> {
        self.delivered += segments;
        let (at_s, sent) = (now.as_secs_f64(), now - rtt);
        // Segments that these ACKs release are paced by the ACKs, and do not have the gaps of the flight.
        if let Some(point) = self.points.get_mut(self.len).filter(|_| sent <= self.last_sent) {
            *point = Point { sent_s: at_s - rtt.as_secs_f64(), at_s, delivered: self.delivered };
            self.len += 1;
        }
        let arrived = self.delivered >= self.flight || sent >= self.last_sent;
        arrived.then(|| self.idle_rate().unwrap_or(f64::INFINITY))
    }

    fn idle_rate(&self) -> Option<f64> {
        let points = &self.points[..self.len];
        let last = points.last()?;
        let first = points.iter().rfind(|point| last.delivered - point.delivered >= TRAIN)?;
        let took_s = last.at_s - first.at_s;
        // Segments that arrive with the gaps with which they left were not spaced by the bottleneck.
        if took_s <= 1.2 * (last.sent_s - first.sent_s) {
            return None;
        }
        let rate = (last.delivered - first.delivered) / took_s;
        let mut delay_s = 0.0_f64;
        for pair in points.windows(2) {
            let served_s = (pair[1].delivered - pair[0].delivered) / rate;
            delay_s = (delay_s + served_s - (pair[1].sent_s - pair[0].sent_s)).max(0.0);
            let growth_s = (pair[1].at_s - pair[1].sent_s) - (points[0].at_s - points[0].sent_s);
            if growth_s - delay_s > NOISE_S + 0.5 / rate {
                return None;
            }
        }
        Some(rate)
    }
}
