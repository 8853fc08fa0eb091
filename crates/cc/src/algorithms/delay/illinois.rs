//! TCP-Illinois: losses decide when the window falls, the queueing delay decides by how much it grows and falls.
//!
//! S. Liu, T. Başar, R. Srikant, "TCP-Illinois: A Loss- and Delay-Based Congestion Control Algorithm for High-Speed Networks",
//! Performance Evaluation 65(6-7), 2008.
//!
//! | paper              | here                          | unit           |
//! |--------------------|-------------------------------|----------------|
//! | `W`                | `Windows::cwnd`               | segments       |
//! | `d_a`              | mean RTT of the last round minus minRTT | s    |
//! | `d_m`              | `Illinois::max_rtt` minus minRTT | s           |
//! | `α(d_a)`           | `Illinois::alpha`             | segments / RTT |
//! | `β(d_a)`           | `Illinois::beta`              | -              |
//! | `η_1`, `η_2`, `η_3` | 0.01, 0.1 and 0.8            | -              |
//! | `W_thresh`, `θ`    | [`Config::window_threshold`], [`Config::theta`] | segments, rounds |
//!
//! `papers/illinois.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::Duration;
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::rounds::Round;
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "illinois",
    title: "losses decide when the window falls, the queueing delay by how much it grows and falls",
    paper: "Liu, Başar, Srikant, Performance Evaluation 65(6-7)",
    year: 2008,
    family: Family::Delay,
    advice: "For long paths with stable delay and few errors. Changes of the path's delay look like a queue and slow its growth.",
    ..SENDER_ONLY
};

/// Thresholds of the delay as fractions of the maximum: up to the first α is maximal, up to the second β is minimal, from the third on
/// β is maximal.
const THRESHOLDS: [f64; 3] = [0.01, 0.1, 0.8];

/// Parameters of TCP-Illinois.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Minimum growth in segments per round trip, at the maximum delay.
    #[serde(deserialize_with = "positive")]
    pub alpha_min: f64,
    /// Maximum growth in segments per round trip, without queueing delay.
    #[serde(deserialize_with = "positive")]
    pub alpha_max: f64,
    /// Minimum fraction of the window subtracted at a loss.
    #[serde(deserialize_with = "fraction")]
    pub beta_min: f64,
    /// Maximum fraction of the window subtracted at a loss.
    #[serde(deserialize_with = "fraction")]
    pub beta_max: f64,
    /// Window in segments below which Reno's law applies.
    #[serde(deserialize_with = "positive")]
    pub window_threshold: f64,
    /// Number of consecutive rounds with small delay before the growth returns to its maximum.
    pub theta: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha_min: 0.3,
            alpha_max: 10.0,
            beta_min: 0.125,
            beta_max: 0.5,
            window_threshold: 15.0,
            theta: 5,
        }
    }
}

impl Config {
    /// A TCP-Illinois sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Illinois::new(*self)))
    }
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct Illinois {
    config: Config,
    round: Round,
    /// Sum and number of the RTT samples of this round.
    sum: Duration,
    samples: u32,
    /// Largest RTT sample since the last timeout.
    max_rtt: Duration,
    /// Consecutive rounds with small delay, while α is below its maximum.
    low_rounds: u32,
    /// Growth in segments per round trip.
    alpha: f64,
    /// Fraction of the window subtracted at a loss.
    beta: f64,
}

impl Illinois {
    fn new(config: Config) -> Self {
        Self {
            config,
            round: Round::default(),
            sum: Duration::ZERO,
            samples: 0,
            max_rtt: Duration::ZERO,
            low_rounds: config.theta,
            alpha: config.alpha_max,
            beta: config.beta_max,
        }
    }

    /// Sets α and β from the mean delay of the round that ended.
    fn adapt(&mut self, min_rtt: Duration) {
        let mean_s = self.sum.as_secs_f64() / f64::from(self.samples);
        let above_min = |rtt_s: f64| (rtt_s - min_rtt.as_secs_f64()).max(0.0);
        let (delay_s, max_s) = (above_min(mean_s), above_min(self.max_rtt.as_secs_f64()));
        self.alpha = self.growth(delay_s, max_s);
        self.beta = self.reduction(delay_s, max_s);
        (self.sum, self.samples) = (Duration::ZERO, 0);
    }

    /// `f_1`: maximal up to the first threshold if that lasted for `theta` rounds, then a hyperbola down to the minimum.
    fn growth(&mut self, delay_s: f64, max_s: f64) -> f64 {
        let Config { alpha_min, alpha_max, theta, .. } = self.config;
        let low_s = THRESHOLDS[0] * max_s;
        if delay_s <= low_s {
            self.low_rounds = self.low_rounds.saturating_add(1);
            return if self.low_rounds >= theta { alpha_max } else { self.alpha };
        }
        self.low_rounds = 0;
        let span_s = (max_s - low_s) * alpha_min / (alpha_max - alpha_min);
        span_s * alpha_max / (span_s + delay_s - low_s)
    }

    /// `f_2`: linear between the second and third threshold.
    fn reduction(&self, delay_s: f64, max_s: f64) -> f64 {
        let Config { beta_min, beta_max, .. } = self.config;
        let (low_s, high_s) = (THRESHOLDS[1] * max_s, THRESHOLDS[2] * max_s);
        if delay_s <= low_s {
            return beta_min;
        }
        let part = (delay_s - low_s) / (high_s - low_s);
        beta_min + (beta_max - beta_min) * part.min(1.0)
    }
}

impl Rule for Illinois {
    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let alpha = if windows.cwnd < self.config.window_threshold { 1.0 } else { self.alpha };
        windows.cwnd += alpha * f64::from(ack.acked) / windows.cwnd;
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        let is_small = windows.cwnd < self.config.window_threshold;
        let beta = if is_small || loss.cause == Cause::Timeout { 0.5 } else { self.beta };
        // Segments sent by limited transmit beyond the window do not count (RFC 5681 section 3.2 step 2).
        let flight = f64::from(loss.outstanding).min(windows.cwnd);
        windows.reduce_to(flight * (1.0 - beta), loss.cause);
        if loss.cause == Cause::Timeout {
            let fresh = Self::new(self.config);
            *self = Self { round: self.round, alpha: 1.0, beta: 0.5, low_rounds: 0, ..fresh };
        }
    }

    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        if let Some(rtt) = ack.rtt {
            self.sum += rtt;
            self.samples += 1;
            self.max_rtt = self.max_rtt.max(rtt);
        }
        if self.round.ends(path) && self.samples > 0 {
            self.adapt(path.min_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeout;
    use crate::fixture::{self, MSS, close};

    /// A sender of 100 segments whose RTT was 100 to 200 ms.
    fn sender() -> Classic<Illinois> {
        let mut rule = Illinois::new(Config::default());
        rule.max_rtt = Duration::from_millis(200);
        Classic::new(Windows { cwnd: 100.0, ssthresh: 2.0 }, rule)
    }

    /// A round of one ACK that measures `rtt_us`.
    fn round(sender: &mut Classic<Illinois>, number: u64, rtt_us: u64) {
        let una = 1 + number * u64::from(MSS);
        let path =
            Path { snd_una: una, snd_nxt: una, min_rtt: Duration::from_millis(100), ..fixture::path() };
        sender.on_ack(&Ack { rtt: Some(Duration::from_micros(rtt_us)), ..fixture::ack(1) }, &path);
    }

    #[test]
    fn growth_is_a_hyperbola_and_reduction_a_ramp_of_the_delay() {
        // Maximum delay 100 ms. κ_1 = 99 ms · 0.3 · 10 / 9.7, κ_2 = 99 ms · 0.3 / 9.7 - 1 ms.
        for (delay_us, alpha, beta) in
            [(100_000, 0.3, 0.5), (50_000, 0.588_12, 0.125 + 0.375 * 4.0 / 7.0), (10_000, 2.538_5, 0.125)]
        {
            let mut sender = sender();
            round(&mut sender, 1, 100_000 + delay_us);
            assert!(close(sender.rule.alpha, alpha), "{delay_us} us: {}", sender.rule.alpha);
            assert!(close(sender.rule.beta, beta), "{delay_us} us: {}", sender.rule.beta);
        }
    }

    #[test]
    fn the_growth_returns_to_its_maximum_after_five_rounds_with_small_delay() {
        let mut sender = sender();
        round(&mut sender, 1, 150_000);
        let slow = sender.rule.alpha;
        for number in 2..6 {
            round(&mut sender, number, 100_500);
            assert_eq!(sender.rule.alpha, slow, "round {number}");
        }
        round(&mut sender, 6, 100_500);
        assert_eq!(sender.rule.alpha, 10.0);
    }

    #[test]
    fn a_loss_with_an_empty_queue_takes_an_eighth_and_small_windows_are_renos() {
        let mut full = sender();
        round(&mut full, 1, 100_000);
        let window = full.window();
        full.on_loss(&fixture::loss(200), &fixture::path());
        assert!(close(full.window(), 0.875 * window));
        let mut small = sender();
        small.windows.cwnd = 10.0;
        round(&mut small, 1, 100_000);
        assert!(close(small.window(), 10.1));
        small.on_loss(&fixture::loss(100), &fixture::path());
        assert!(close(small.window(), 5.05));
    }

    #[test]
    fn a_timeout_forgets_the_delays() {
        let mut sender = sender();
        let timeout = Timeout { consecutive: 1, outstanding: 100, answered: false };
        sender.on_rto(&timeout, &fixture::path());
        assert_eq!((sender.windows.cwnd, sender.windows.ssthresh), (1.0, 50.0));
        assert_eq!((sender.rule.max_rtt, sender.rule.alpha), (Duration::ZERO, 1.0));
    }
}
