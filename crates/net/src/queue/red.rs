//! RED: Floyd, Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993; the gentle variant is S. Floyd's recommendation of 2000.
//!
//! | symbol (section IV) | here |
//! |---|---|
//! | w_q, min_th, max_th, max_p | [`RedConfig`] |
//! | avg, count | `Red::average`, `Red::since_drop` |
//! | q_time, s | idle time and transmission time of a mean packet, given by the queue |
//! | p_b, p_a | the probability by the average alone, and after spreading the drops evenly |

use bentpipe_base::{Duration, Instant, Rng};

use super::backlog::{Backlog, Limit, Transmission};
use crate::error::{ConfigError, check_probability};

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Limit of queued packets; an arrival without room is always dropped.
    pub limit: Limit,
    /// Unit of the thresholds.
    pub unit: RedUnit,
    /// Average queue below which nothing is dropped (min_th), in `unit`.
    pub min_threshold: f64,
    /// Average queue from which everything is dropped (max_th); with `gentle`, twice this value. In `unit`.
    pub max_threshold: f64,
    /// Drop probability when the average reaches `max_threshold` (max_p).
    pub max_probability: f64,
    /// Weight of a new sample in the average (w_q), above 0, at most 1.
    pub weight: f64,
    /// Size on the wire of a typical packet in bytes, at least 1. During idle time the average decays by packets of this
    /// size. With [`RedUnit::Bytes`] a packet of this size meets the plain probability.
    pub mean_packet_bytes: u32,
    /// Let the probability rise from `max_probability` to 1 between `max_threshold` and twice that.
    pub gentle: bool,
    /// Mark ECN-capable packets instead of dropping them early.
    pub ecn: bool,
}

/// Unit of RED's queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RedUnit {
    /// Packets; every packet meets the same probability.
    #[default]
    Packets,
    /// Bytes; the probability is proportional to the packet size.
    Bytes,
}

impl Default for RedConfig {
    /// 50 packets, thresholds 5 and 15 packets, max_p 0.1, w_q 0.002, packets of 1000 bytes, gentle, no ECN.
    fn default() -> Self {
        Self {
            limit: Limit::Packets(50),
            unit: RedUnit::Packets,
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            mean_packet_bytes: 1000,
            gentle: true,
            ecn: false,
        }
    }
}

impl RedConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("limit")?;
        if !(self.min_threshold >= 0.0 && self.min_threshold.is_finite()) {
            return Err(ConfigError::new("min_threshold", self.min_threshold, "0 or more"));
        }
        if !(self.max_threshold > self.min_threshold && self.max_threshold.is_finite()) {
            return Err(ConfigError::new("max_threshold", self.max_threshold, "more than min_threshold"));
        }
        check_probability("max_probability", self.max_probability)?;
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(ConfigError::new("weight", self.weight, "above 0, at most 1"));
        }
        if self.mean_packet_bytes == 0 {
            return Err(ConfigError::new("mean_packet_bytes", 0, "at least 1"));
        }
        Ok(())
    }
}

/// Decision of RED on an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Early {
    Accept,
    /// Signal congestion: a mark suffices.
    Signal,
    Drop,
}

/// State of a RED gateway.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last drop or mark, the arriving one included; `None` while the average is below min_th.
    since_drop: Option<u32>,
    /// Latest transmission that has begun; of zero bytes before the first.
    transmission: Transmission,
    rng: Rng,
}

impl Red {
    pub fn new(config: RedConfig, rng: Rng) -> Self {
        Self { config, average: 0.0, since_drop: None, transmission: Transmission::default(), rng }
    }

    pub fn config(&self) -> &RedConfig {
        &self.config
    }

    /// Records the start of a transmission.
    pub fn note_transmission(&mut self, transmission: Transmission) {
        self.transmission = transmission;
    }

    /// Records that the transmitter sends parity until `end`.
    pub fn prolong(&mut self, end: Instant) {
        self.transmission.end = end;
    }

    /// Returns the transmission time of a mean packet, by the latest transmission; unknown before the first.
    pub fn mean_packet_time(&self) -> Option<Duration> {
        let Transmission { start, end, size } = self.transmission;
        let per_byte = end.since(start).as_secs_f64() / f64::from(size);
        let packet_time = per_byte * f64::from(self.config.mean_packet_bytes);
        (size > 0).then(|| Duration::from_secs_f64(packet_time))
    }

    /// Adds a sample of the queue at an arrival during busy time.
    pub fn sample(&mut self, backlog: Backlog) {
        let queue = match self.config.unit {
            RedUnit::Packets => f64::from(backlog.packets),
            RedUnit::Bytes => backlog.bytes as f64,
        };
        self.average += self.config.weight * (queue - self.average);
    }

    /// Decays the average at an arrival after an idle time of several mean packets.
    pub fn age(&mut self, idle: Duration, packet_time: Duration) {
        if !packet_time.is_zero() {
            let packets = idle.as_secs_f64() / packet_time.as_secs_f64();
            self.average *= libm::pow(1.0 - self.config.weight, packets);
        }
    }

    /// Decides on a packet by the average, after [`Red::sample`] or [`Red::age`].
    pub fn decide(&mut self, size: u32) -> Early {
        let Some(p_b) = self.probability() else {
            self.since_drop = None;
            return Early::Accept;
        };
        if p_b >= 1.0 {
            self.since_drop = Some(0);
            return Early::Drop;
        }
        let count = self.since_drop.map_or(0, |count| count.saturating_add(1));
        let p_b = match self.config.unit {
            RedUnit::Packets => p_b,
            RedUnit::Bytes => p_b * f64::from(size) / f64::from(self.config.mean_packet_bytes),
        };
        let accepted_share = 1.0 - f64::from(count) * p_b;
        let p_a = if accepted_share > 0.0 { p_b / accepted_share } else { 1.0 };
        if self.rng.chance(p_a) {
            self.since_drop = Some(0);
            return Early::Signal;
        }
        self.since_drop = Some(count);
        Early::Accept
    }

    /// Restarts the count after a drop for lack of room.
    pub fn note_overflow(&mut self) {
        self.since_drop = Some(0);
    }

    /// Returns p_b from the average; `None` below the lower threshold, 1 where everything is dropped.
    fn probability(&self) -> Option<f64> {
        let RedConfig { min_threshold: min, max_threshold: max, max_probability: max_p, gentle, .. } =
            self.config;
        if self.average < min {
            None
        } else if self.average < max {
            Some(max_p * (self.average - min) / (max - min))
        } else if gentle && self.average < 2.0 * max {
            Some(max_p + (1.0 - max_p) * (self.average - max) / max)
        } else {
            Some(1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(config: RedConfig) -> Red {
        Red::new(config, Rng::stream(1, "red"))
    }

    fn waiting(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1000 }
    }

    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        // Floyd & Jacobson, section VI: the average after L packets that raise the queue from 0 to L is L + 1 + ((1 -
        // w)^(L+1) - 1) / w.
        let mut red = red(RedConfig { weight: 0.001, ..RedConfig::default() });
        (0..=100).for_each(|packets| red.sample(waiting(packets)));
        let expected = 101.0 + (libm::pow(0.999, 101.0) - 1.0) / 0.001;
        assert!((red.average - expected).abs() < 1e-9, "{} {expected}", red.average);
    }

    #[test]
    fn idle_time_ages_the_average_as_that_many_empty_samples() {
        let mut idle = red(RedConfig { weight: 0.25, ..RedConfig::default() });
        idle.average = 8.0;
        let mut busy = idle.clone();
        idle.age(Duration::from_millis(3), Duration::from_millis(1));
        (0..3).for_each(|_| busy.sample(waiting(0)));
        assert!((idle.average - 8.0 * 0.421_875).abs() < 1e-12);
        assert!((idle.average - busy.average).abs() < 1e-12);
    }

    #[test]
    fn the_probability_is_a_line_between_the_thresholds_and_a_steeper_one_beyond() {
        let at = |average, gentle| {
            let mut red = red(RedConfig { gentle, ..RedConfig::default() });
            red.average = average;
            red.probability()
        };
        assert_eq!(at(4.999, true), None);
        assert_eq!(at(10.0, true), Some(0.05));
        assert_eq!(at(15.0, true), Some(0.1));
        assert!((at(22.5, true).unwrap() - 0.55).abs() < 1e-12);
        assert_eq!(at(30.0, true), Some(1.0));
        assert_eq!(at(15.0, false), Some(1.0));
    }

    #[test]
    fn drops_are_spread_evenly() {
        // The count of figure 2 is 1 for the first packet after a drop: with p_b = 0.05 the gaps are uniform from 1 to
        // 19.
        let mut red = red(RedConfig::default());
        red.average = 10.0;
        red.note_overflow();
        let (mut gap, mut gaps) = (0, Vec::new());
        while gaps.len() < 20_000 {
            gap += 1;
            if red.decide(1000) == Early::Signal {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = gaps.iter().sum::<i32>() as f64 / gaps.len() as f64;
        assert_eq!(gaps.iter().max(), Some(&19));
        assert!((mean - 10.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn in_bytes_a_small_packet_meets_a_small_probability() {
        let share = |size| {
            let mut red = red(RedConfig {
                unit: RedUnit::Bytes,
                min_threshold: 5_000.0,
                max_threshold: 15_000.0,
                ..RedConfig::default()
            });
            red.average = 10_000.0;
            (0..50_000).filter(|_| red.decide(size) == Early::Signal).count() as f64 / 50_000.0
        };
        // The mean gap is 1 / (2 p_b).
        assert!((share(1000) - 0.1).abs() < 0.005);
        assert!((share(40) - 0.004).abs() < 0.001);
    }
}
