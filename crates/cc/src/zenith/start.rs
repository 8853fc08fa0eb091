//! The start: the first flight measures the path, the second how busy it is.

use bentpipe_base::{Duration, Instant};

/// Gaps of the first flight shrink by this factor from segment to segment.
const SHRINK: f64 = 0.6;
/// Later gaps are as short as that of this segment, which is shorter than any bottleneck needs.
const MOST_SHRUNK: u32 = 16;
/// First gap of the first flight in seconds, and at most in round trips.
const FIRST_GAP_S: f64 = 0.0048;
const FIRST_GAP_RTT: f64 = 0.125;
/// Number of ACKs of the first flight that are evaluated.
const POINTS: usize = 16;
/// Segments over whose arrivals the capacity is measured.
const TRAIN: f64 = 4.0;
/// If the delay grows more than this, the path is not idle.
const NOISE_S: f64 = 0.001;
/// Segments of a group: with 32, what a file of 100 kB has left behind a receive window of 64 KiB waits for no gap.
const GROUP: u32 = 32;
/// Segments of the second flight at least: fewer tell too little.
pub(super) const LEAST_FLIGHT: f64 = 16.0;
/// Rate within a group, and of the whole second flight, in capacities.
const GROUP_RATE: f64 = 0.95;
pub(super) const FLIGHT_RATE: f64 = 0.4;
/// Gaps within groups that tell how busy the path is.
const GAPS: f64 = 20.0;

/// An ACK of the first flight.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    sent_s: f64,
    at_s: f64,
    /// Segments delivered so far, this ACK's included.
    delivered: f64,
}

/// The first flight: gaps that shrink. The slow ones show whether others' packets come in between, the last ones the rate at which
/// packets leave the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chirp {
    points: [Point; POINTS],
    len: usize,
    delivered: f64,
    /// Segments of the flight.
    pub flight: f64,
    /// When the last segment of the flight left.
    last_sent: Instant,
}

/// What the first flight tells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Finding {
    /// Not all ACKs have arrived yet.
    Waiting,
    /// No other flow uses the bottleneck, which serves so many segments a second.
    Idle(f64),
    /// Other flows use it, or the measurement failed.
    Unclear,
}

impl Chirp {
    pub fn new(flight: f64) -> Self {
        Self {
            points: [Point::default(); POINTS],
            len: 0,
            delivered: 0.0,
            flight,
            last_sent: Instant::FAR_FUTURE,
        }
    }

    /// Seconds between segment `index` of the connection and the next.
    pub fn gap_s(index: u32, rtt_s: f64) -> f64 {
        FIRST_GAP_S.min(FIRST_GAP_RTT * rtt_s) * libm::pow(SHRINK, f64::from(index.min(MOST_SHRUNK)))
    }

    /// Segment `index` of the connection leaves.
    pub fn on_sent(&mut self, now: Instant, index: u32) {
        if f64::from(index) + 1.0 == self.flight {
            self.last_sent = now;
        }
    }

    /// An ACK of so many segments.
    pub fn on_ack(&mut self, now: Instant, rtt: Duration, segments: f64) -> Finding {
        self.delivered += segments;
        let at_s = now.as_secs_f64();
        // What these ACKs let leave is sent as they come, and shows no gap of the flight.
        let of_flight = now - rtt <= self.last_sent;
        if let Some(point) = self.points.get_mut(self.len).filter(|_| of_flight) {
            *point = Point { sent_s: at_s - rtt.as_secs_f64(), at_s, delivered: self.delivered };
            self.len += 1;
        }
        if self.delivered >= self.flight || now - rtt >= self.last_sent {
            self.judge()
        } else {
            Finding::Waiting
        }
    }

    fn judge(&self) -> Finding {
        let points = &self.points[..self.len];
        let Some(last) = points.last() else { return Finding::Unclear };
        let train = |point: &Point| last.delivered - point.delivered >= TRAIN;
        let Some(first) = points.iter().rposition(train) else { return Finding::Unclear };
        let took_s = last.at_s - points[first].at_s;
        // Segments that arrive with the gaps with which they left were not spaced by the bottleneck.
        if took_s <= 1.2 * (last.sent_s - points[first].sent_s) || took_s <= 0.0 {
            return Finding::Unclear;
        }
        let capacity = if self.delivered < self.flight {
            median_rate(&points[first..])
        } else {
            (last.delivered - points[first].delivered) / took_s
        };
        let mut delay_s = 0.0_f64;
        let mut excess_s = 0.0_f64;
        for pair in points.windows(2) {
            let segments = pair[1].delivered - pair[0].delivered;
            delay_s = (delay_s + segments / capacity - (pair[1].sent_s - pair[0].sent_s)).max(0.0);
            let growth_s = (pair[1].at_s - pair[1].sent_s) - (points[0].at_s - points[0].sent_s);
            excess_s = excess_s.max(growth_s - delay_s);
        }
        if excess_s > NOISE_S + 0.5 / capacity { Finding::Unclear } else { Finding::Idle(capacity) }
    }
}

/// Segments a second between points, their median: where one of the flight is missing, one interval is too long.
fn median_rate(points: &[Point]) -> f64 {
    let mut rates = [f64::MAX; POINTS];
    for (rate, pair) in rates.iter_mut().zip(points.windows(2)) {
        *rate = (pair[1].delivered - pair[0].delivered) / (pair[1].at_s - pair[0].at_s).max(1e-6);
    }
    let rates = &mut rates[..points.len() - 1];
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// The second flight: groups a little below the capacity. How fast the delay grows within them is how much of it others use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// Segments a second.
    pub capacity: f64,
    /// Segments of the first flight. The second begins with what the ACKs of the first let leave.
    pub first: u32,
    since: Instant,
    previous: Option<(f64, f64)>,
    sent_s: f64,
    growth_s: f64,
}

impl Groups {
    pub fn new(capacity: f64, first: u32, since: Instant) -> Self {
        Self { capacity, first, since, previous: None, sent_s: 0.0, growth_s: 0.0 }
    }

    /// Seconds between segment `index` of the connection and the next.
    pub fn gap_s(&self, index: u32) -> f64 {
        let inside = 1.0 / (GROUP_RATE * self.capacity);
        if (index.wrapping_sub(self.first) + 1).is_multiple_of(GROUP) {
            f64::from(GROUP) / (FLIGHT_RATE * self.capacity) - f64::from(GROUP - 1) * inside
        } else {
            inside
        }
    }

    /// Share of the capacity that others use, once that is known.
    pub fn on_ack(&mut self, now: Instant, rtt: Duration) -> Option<f64> {
        if now - rtt < self.since {
            return None;
        }
        let rtt_s = rtt.as_secs_f64();
        let sent_s = now.as_secs_f64() - rtt_s;
        if let Some((sent_before_s, rtt_before_s)) = self.previous.replace((sent_s, rtt_s)) {
            let gap_s = sent_s - sent_before_s;
            if gap_s > 0.0 && gap_s * self.capacity < 4.0 {
                self.sent_s += gap_s;
                self.growth_s += rtt_s - rtt_before_s;
            }
        }
        let enough = self.sent_s * GROUP_RATE * self.capacity >= GAPS;
        enough.then(|| (self.growth_s / self.sent_s + 1.0 - GROUP_RATE).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::path_at;

    const RTT_S: f64 = 0.55;

    /// When each segment of a first flight is acknowledged, behind a queue in which so many others' segments arrive a second.
    fn flight(capacity: f64, others: f64) -> Finding {
        let mut chirp = Chirp::new(10.0);
        let (mut sent_s, mut queue_s, mut finding) = (1.0, 0.0_f64, Finding::Waiting);
        for index in 0..10 {
            queue_s += 1.0 / capacity;
            chirp.on_sent(path_at(sent_s).now, index);
            finding = chirp.on_ack(
                path_at(sent_s + RTT_S + queue_s).now,
                Duration::from_secs_f64(RTT_S + queue_s),
                1.0,
            );
            let gap_s = Chirp::gap_s(index, RTT_S);
            queue_s = (queue_s - gap_s * (1.0 - others / capacity)).max(0.0);
            sent_s += gap_s;
        }
        finding
    }

    #[test]
    fn the_first_flight_finds_the_rate_of_an_idle_path() {
        for capacity in [250.0, 1250.0, 2500.0] {
            let Finding::Idle(found) = flight(capacity, 0.0) else { panic!("{capacity} a second: not idle") };
            assert!((found / capacity - 1.0).abs() < 0.02, "{found} of {capacity}");
        }
    }

    /// The last segment is lost, and what the ACK of the first let leave is acknowledged a round trip later.
    #[test]
    fn what_leaves_after_the_first_flight_is_not_measured() {
        let mut chirp = Chirp::new(10.0);
        let (mut sent_s, mut finding) = (1.0, Finding::Waiting);
        for index in 0..10 {
            chirp.on_sent(path_at(sent_s).now, index);
            if index < 9 {
                let queued_s = f64::from(index) * 0.0048;
                let rtt_s = RTT_S + queued_s + 1.0 - sent_s;
                finding = chirp.on_ack(path_at(sent_s + rtt_s).now, Duration::from_secs_f64(rtt_s), 1.0);
            }
            sent_s += Chirp::gap_s(index, RTT_S);
        }
        assert_eq!(finding, Finding::Waiting);
        finding = chirp.on_ack(path_at(1.0 + 2.0 * RTT_S).now, Duration::from_secs_f64(RTT_S), 1.0);
        let Finding::Idle(found) = finding else { panic!("{finding:?}") };
        assert!((found * 0.0048 - 1.0).abs() < 0.02, "{found}");
    }

    #[test]
    fn a_full_path_is_not_idle() {
        assert_eq!(flight(1250.0, 1250.0), Finding::Unclear);
    }

    #[test]
    fn growth_within_groups_is_what_others_use() {
        for (others, share) in [(0.0, 0.0), (0.5, 0.5)] {
            let mut groups = Groups::new(1250.0, 10, path_at(1.0).now);
            let (mut sent_s, mut queue_s, mut found) = (1.0, 0.0_f64, None);
            for index in 10..60 {
                queue_s += 1.0 / 1250.0;
                let rtt = Duration::from_secs_f64(RTT_S + queue_s);
                found = found.or(groups.on_ack(path_at(sent_s + RTT_S + queue_s).now, rtt));
                let gap_s = groups.gap_s(index);
                queue_s = (queue_s - gap_s * (1.0 - others)).max(0.0);
                sent_s += gap_s;
            }
            let found = found.expect("fifty segments are enough");
            assert!((found - share).abs() < 0.1, "{found}, not {share}");
        }
    }
}
