//! XCP and P-XCP routers: they write a rate change for the sender into each packet.
//!
//! D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", ACM SIGCOMM 2002, section
//! 3.5; names and intervals as in ns-2 (`xcpq.cc`). K. Zhou, K. L. Yeung, V. O. K. Li, "P-XCP: A Transport Layer Protocol for
//! Satellite IP Networks", IEEE GLOBECOM 2004, defines the effect of rate-limited senders.
//!
//! | paper, ns-2            | here                      | unit      |
//! |------------------------|---------------------------|-----------|
//! | φ, aggregate feedback  | `phi`                     | bytes / s |
//! | h, shuffled traffic    | `shuffled`                | bytes / s |
//! | S, spare bandwidth     | `capacity - y`            | bytes / s |
//! | Q, persistent queue    | `queue`                   | bytes     |
//! | ξp, ξn                 | `per_spacing`, `per_byte` | bytes / s per s, 1 / s |
//! | d, mean round trip     | `mean_rtt_s`              | s         |
//!
//! `papers/xcp.md` and `papers/p-xcp.md` list the deviations.

use bentpipe_base::{Duration, Extension, Instant};

use crate::{Passing, Verdict, XcpConfig};

/// Bounds of the control interval in seconds, and its value before the first RTT estimate.
const LEAST_INTERVAL_S: f64 = 0.001;
const LONGEST_RTT_S: f64 = 1.0;
const FIRST_RTT_S: f64 = 0.05;
/// Minimum time over which the queue is observed, in seconds.
const LEAST_WATCH_S: f64 = 0.002;
/// Limit of the rate-limited senders' fraction, which bounds the multiplication of the surplus.
const MOST_LIMITED: f64 = 0.9;

/// An XCP router.
#[derive(Clone, Debug)]
pub struct Xcp {
    config: XcpConfig,
    ports: Vec<Outlet>,
    told: u64,
}

/// Control state of one outgoing link.
#[derive(Clone, Debug)]
struct Outlet {
    link: u32,
    /// Capacity of the link in bytes per second.
    capacity: f64,
    interval: Interval,
    budget: Budget,
    mean_rtt_s: f64,
    /// Smoothed fraction of rate-limited senders.
    limited: f64,
    queue: Queue,
}

/// Arrivals of the present interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    began: Instant,
    ends: Instant,
    input_bytes: f64,
    sum_spacing: f64,
    /// Part of `sum_spacing` from rate-limited senders.
    sum_spacing_limited: f64,
    sum_rtt_by_spacing: f64,
}

/// Feedback to distribute within an interval, positive and negative.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Budget {
    positive: f64,
    negative: f64,
    per_spacing: f64,
    per_byte: f64,
}

/// Persistent queue: the part that does not drain within a round trip.
#[derive(Clone, Copy, Debug)]
struct Queue {
    persistent: f64,
    least: f64,
    /// Time and length at the last packet, which is included.
    latest: (Instant, f64),
    watched_until: Instant,
}

impl Queue {
    /// Returns the present queue, assuming no arrivals since the last packet.
    fn now(&self, now: Instant, capacity: f64) -> f64 {
        (self.latest.1 - capacity * now.since(self.latest.0).as_secs_f64()).max(0.0)
    }

    fn watch(&mut self, now: Instant, capacity: f64, mean_rtt_s: f64) {
        let waiting = self.now(now, capacity);
        self.least = self.least.min(waiting);
        if now >= self.watched_until {
            self.persistent = self.least;
            self.least = waiting;
            let span = LEAST_WATCH_S.max((mean_rtt_s - waiting / capacity) / 2.0);
            self.watched_until = now + Duration::from_secs_f64(span);
        }
    }
}

impl Interval {
    fn new(began: Instant, length_s: f64) -> Self {
        let ends = began + Duration::from_secs_f64(length_s);
        Self {
            began,
            ends,
            input_bytes: 0.0,
            sum_spacing: 0.0,
            sum_spacing_limited: 0.0,
            sum_rtt_by_spacing: 0.0,
        }
    }
}

impl Outlet {
    fn new(link: u32, now: Instant) -> Self {
        Self {
            link,
            capacity: 1.0,
            interval: Interval::new(now, FIRST_RTT_S),
            budget: Budget::default(),
            mean_rtt_s: FIRST_RTT_S,
            limited: 0.0,
            queue: Queue { persistent: 0.0, least: 0.0, latest: (now, 0.0), watched_until: now },
        }
    }

    /// Ends the interval and computes the feedback for the next one (sections 3.5.1 and 3.5.2 of the paper).
    fn control(&mut self, config: &XcpConfig, end: Instant) {
        let Interval { began, input_bytes, sum_spacing, sum_spacing_limited, sum_rtt_by_spacing, .. } =
            self.interval;
        let length_s = end.since(began).as_secs_f64();
        let y = input_bytes / length_s;
        self.mean_rtt_s = if sum_spacing > 0.0 { sum_rtt_by_spacing / sum_spacing } else { FIRST_RTT_S };
        let spare = self.capacity - y;
        let phi = config.alpha * spare - config.beta * self.queue.persistent / self.mean_rtt_s;
        let phi = if input_bytes > 0.0 { phi } else { 0.0 };
        let shuffled = (config.gamma * y - phi.abs()).max(0.0);
        let share =
            if sum_spacing > 0.0 { (sum_spacing_limited / sum_spacing).min(MOST_LIMITED) } else { 0.0 };
        self.limited = (self.limited + share) / 2.0;
        let offered = if config.compensates { compensated(phi, self.limited, spare) } else { phi };
        let budget = Budget {
            positive: offered.max(0.0) + shuffled,
            negative: (-phi).max(0.0) + shuffled,
            per_spacing: 0.0,
            per_byte: 0.0,
        };
        let over = |amount: f64, whole: f64| if whole > 0.0 { amount / whole } else { 0.0 };
        self.budget = Budget {
            per_spacing: over(budget.positive, sum_spacing),
            per_byte: over(budget.negative, input_bytes),
            ..budget
        };
        self.interval = Interval::new(end, self.mean_rtt_s.max(LEAST_INTERVAL_S));
    }

    /// Advances the state to `now`.
    fn advance(&mut self, config: &XcpConfig, now: Instant) {
        while now >= self.interval.ends {
            let idle = self.interval.input_bytes <= 0.0;
            // Consecutive idle intervals have the same result.
            let end = if idle { now } else { self.interval.ends };
            self.control(config, end);
        }
        self.queue.watch(now, self.capacity, self.mean_rtt_s);
    }

    /// Returns the feedback for a packet, at most its request (section 3.5.2).
    fn feedback(&mut self, spacing: f64, size: f64, asked: f64) -> f64 {
        let budget = &mut self.budget;
        let mut positive = budget.positive.min(budget.per_spacing * spacing);
        let mut negative = budget.negative.min(budget.per_byte * size);
        let offered = positive - negative;
        let given = if asked >= offered {
            offered
        } else {
            negative = budget.negative.min(negative + (offered - asked));
            positive = (asked + negative).max(0.0);
            asked
        };
        budget.positive = (budget.positive - positive).max(0.0);
        budget.negative = (budget.negative - negative).max(0.0);
        if budget.positive <= 0.0 {
            budget.per_spacing = 0.0;
        }
        if budget.negative <= 0.0 {
            budget.per_byte = 0.0;
        }
        given
    }
}

/// P-XCP: returns the feedback to offer to all senders, so that the unlimited ones can use all spare capacity. It is at most
/// `spare`.
fn compensated(phi: f64, limited: f64, spare: f64) -> f64 {
    if phi > 0.0 { (phi / (1.0 - limited)).min(spare) } else { phi }
}

impl Xcp {
    /// Makes a router without state.
    pub(crate) fn new(config: XcpConfig) -> Self {
        Self { config, ports: Vec::new(), told: 0 }
    }

    pub(crate) fn handle(&mut self, now: Instant, passing: &mut Passing<'_>) -> Verdict {
        let (port, size) = (passing.port, f64::from(passing.size));
        let place = self.ports.iter().position(|outlet| outlet.link == port.link).unwrap_or_else(|| {
            self.ports.push(Outlet::new(port.link, now));
            self.ports.len() - 1
        });
        let outlet = &mut self.ports[place];
        outlet.capacity = port.rate.bytes_per_s().max(1.0);
        outlet.advance(&self.config, now);
        outlet.queue.latest = (now, port.waiting_bytes as f64 + size);
        outlet.interval.input_bytes += size;
        let Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s, limited } = &mut passing.segment.extension
        else {
            return Verdict::Forward;
        };
        // In the reverse direction the field is an answer.
        if passing.segment.len == 0 {
            return Verdict::Forward;
        }
        if *rtt_s <= 0.0 || !spacing_s.is_finite() || !rtt_s.is_finite() {
            *delta_bytes_per_s = 0.0;
            return Verdict::Forward;
        }
        let spacing = f64::from(*spacing_s).clamp(0.0, LONGEST_RTT_S);
        outlet.interval.sum_spacing += spacing;
        outlet.interval.sum_spacing_limited += if *limited { spacing } else { 0.0 };
        outlet.interval.sum_rtt_by_spacing += f64::from(*rtt_s).min(LONGEST_RTT_S) * spacing;
        *delta_bytes_per_s = outlet.feedback(spacing, size, f64::from(*delta_bytes_per_s)) as f32;
        self.told += 1;
        Verdict::Forward
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("packets_told", self.told)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: f64 = 1.25e6;
    const RTT: f64 = 0.55;
    const ASKED: f64 = 1e24;

    /// Runs an interval in which flows of these rates sent packets of 1000 bytes, and its control.
    fn controlled(config: &XcpConfig, rates: &[f64], queue: f64) -> Outlet {
        let mut outlet = Outlet::new(0, Instant::ZERO);
        outlet.capacity = CAPACITY;
        outlet.queue.persistent = queue;
        outlet.interval = Interval::new(Instant::ZERO, RTT);
        for rate in rates {
            outlet.interval.input_bytes += rate * RTT;
            // For every flow, the sum of X is the length of the interval.
            outlet.interval.sum_spacing += RTT;
            outlet.interval.sum_rtt_by_spacing += RTT * RTT;
        }
        outlet.control(config, Instant::ZERO + Duration::from_secs_f64(RTT));
        outlet
    }

    /// Returns the total feedback to a flow of this rate in an interval.
    fn change(outlet: &Outlet, rate: f64) -> f64 {
        let mut outlet = outlet.clone();
        let packets = (rate * RTT / 1000.0).round() as u32;
        (0..packets).map(|_| outlet.feedback(1000.0 / rate, 1000.0, ASKED)).sum()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2e-3 * expected.abs(), "{found} against {expected}");
    }

    #[test]
    fn spare_bandwidth_is_given_in_equal_parts() {
        let outlet = controlled(&XcpConfig::default(), &[600e3, 400e3], 0.0);
        close(outlet.budget.per_spacing, 90_909.09);
        close(outlet.clone().feedback(1000.0 / 600e3, 1000.0, ASKED), 151.515);
        close(change(&outlet, 600e3), 50e3);
        close(change(&outlet, 400e3), 50e3);
    }

    #[test]
    fn a_full_link_moves_a_tenth_from_the_fast_to_the_slow() {
        let outlet = controlled(&XcpConfig::default(), &[700e3, 550e3], 0.0);
        close(change(&outlet, 700e3), -7_500.0);
        close(change(&outlet, 550e3), 7_500.0);
    }

    #[test]
    fn too_much_and_a_queue_take_from_both() {
        let outlet = controlled(&XcpConfig::default(), &[700e3, 650e3], 50e3);
        close(change(&outlet, 700e3), -32_772.7);
        close(change(&outlet, 650e3), -27_772.7);
    }

    /// Three of five senders use nothing. The other two may use all of the offered 250 kB/s.
    #[test]
    fn what_limited_senders_leave_is_offered_to_the_others() {
        close(compensated(1e5, 0.6, 2.5e5), 2.5e5);
        close(compensated(1e5, 0.3, 2.5e5), 142_857.1);
        // The feedback never exceeds the spare capacity, and negative feedback is not amplified.
        close(compensated(1e5, 0.9, 2.5e5), 2.5e5);
        close(compensated(-1e5, 0.9, -2.5e5), -1e5);
    }

    #[test]
    fn who_asks_for_less_gets_less() {
        let mut outlet = controlled(&XcpConfig::default(), &[600e3, 400e3], 0.0);
        let before = outlet.budget;
        close(outlet.feedback(1000.0 / 600e3, 1000.0, -50.0), -50.0);
        assert_eq!(outlet.budget.positive, before.positive);
    }
}
