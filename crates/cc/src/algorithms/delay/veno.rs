//! TCP Veno: Reno with Vegas's estimate of the queued segments, which distinguishes congestion from random loss.
//!
//! C. P. Fu, S. C. Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks", IEEE Journal on Selected Areas
//! in Communications 21(2), 2003.
//!
//! | paper     | here                  | unit     |
//! |-----------|-----------------------|----------|
//! | `cwnd`    | `Windows::cwnd`       | segments |
//! | `BaseRTT` | `Veno::base`          | time     |
//! | `RTT`     | `Veno::rtt`           | time     |
//! | `N`       | `Veno::backlog`       | segments |
//! | `β`       | [`Config::beta`]      | segments |
//! | 4/5       | [`Config::random_factor`] | -    |
//!
//! `papers/veno.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::Duration;
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, not_negative, positive};
use crate::parts::base_rtt::RecentRtt;
use crate::rounds::Round;
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Round-trip time for the backlog computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BacklogRtt {
    /// Minimum of the last round.
    #[default]
    RoundMinimum,
    /// Mean of the last round.
    RoundMean,
    /// Last RTT sample, as in Linux.
    LastSample,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "veno",
    title: "Reno that asks the queue whether a loss was congestion or noise",
    paper: "Fu, Liew, IEEE Journal on Selected Areas in Communications 21(2)",
    year: 2003,
    in_kernel: true,
    family: Family::Delay,
    advice: "For low error rates on a link shared with Reno, from which it takes little. High error rates still cost most of the goodput.",
    ..SENDER_ONLY
};

/// Parameters of Veno.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Backlog in segments from which the path counts as full.
    #[serde(deserialize_with = "positive")]
    pub beta: f64,
    /// Factor of the window after a loss while the path is not full.
    #[serde(deserialize_with = "fraction")]
    pub random_factor: f64,
    /// Factor of the window after a loss while the path is full.
    #[serde(deserialize_with = "fraction")]
    pub congestion_factor: f64,
    /// Number of round-trip samples before the backlog is used.
    pub min_samples: u32,
    /// Round-trip time for the backlog computation.
    pub backlog_rtt: BacklogRtt,
    /// Length of the minimum round-trip time filter in seconds, because routes change; 0 never forgets.
    #[serde(deserialize_with = "not_negative")]
    pub base_rtt_window_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 3.0,
            random_factor: 0.8,
            congestion_factor: 0.5,
            min_samples: 3,
            backlog_rtt: BacklogRtt::RoundMinimum,
            base_rtt_window_s: 0.0,
        }
    }
}

impl Config {
    /// A Veno sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Veno::new(*self)))
    }
}

/// Round-trip samples of one round.
#[derive(Clone, Copy, Debug)]
struct Samples {
    min: Duration,
    sum: Duration,
    count: u32,
}

impl Samples {
    const NONE: Self = Self { min: Duration::MAX, sum: Duration::ZERO, count: 0 };

    fn add(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        self.sum += rtt;
        self.count += 1;
    }
}

/// Effect of the next whole window of ACKs while the path is full: growth in every second round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Grow,
    Pause,
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct Veno {
    config: Config,
    base: RecentRtt,
    round: Round,
    samples: Samples,
    /// Number of samples of the whole connection.
    known: u32,
    /// Round-trip time of the last round, once there are enough samples (the paper's `RTT`).
    rtt: Option<Duration>,
    turn: Turn,
    /// Segments acknowledged since the last turn.
    acked: f64,
}

impl Veno {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        let (round, samples) = (Round::default(), Samples::NONE);
        let base = RecentRtt::new(config.base_rtt_window_s);
        Self { config, base, round, samples, known: 0, rtt: None, turn: Turn::Grow, acked: 0.0 }
    }

    /// `N = (cwnd / BaseRTT - cwnd / RTT) BaseRTT`; zero without enough samples.
    fn backlog(&self, windows: &Windows, path: &Path) -> f64 {
        let base = self.base.get(path);
        match self.rtt.filter(|rtt| *rtt > base) {
            Some(rtt) if self.known >= self.config.min_samples => {
                windows.cwnd * (1.0 - base.as_secs_f64() / rtt.as_secs_f64())
            }
            _ => 0.0,
        }
    }

    fn is_full(&self, windows: &Windows, path: &Path) -> bool {
        self.backlog(windows, path) >= self.config.beta
    }

    fn close_round(&mut self) {
        let Samples { min, sum, count } = core::mem::replace(&mut self.samples, Samples::NONE);
        if count > 0 {
            self.rtt = match self.config.backlog_rtt {
                BacklogRtt::RoundMinimum => Some(min),
                BacklogRtt::RoundMean => Some(sum / u64::from(count)),
                BacklogRtt::LastSample => self.rtt,
            };
        }
    }
}

impl Rule for Veno {
    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        self.base.observe(ack, path);
        if let Some(rtt) = ack.rtt {
            self.samples.add(rtt);
            self.known = self.known.saturating_add(1);
            if self.config.backlog_rtt == BacklogRtt::LastSample {
                self.rtt = Some(rtt);
            }
        }
        if self.round.ends(path) {
            self.close_round();
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let acked = f64::from(ack.acked);
        if !self.is_full(windows, path) {
            windows.cwnd += acked / windows.cwnd;
            return;
        }
        self.acked += acked;
        if self.acked >= windows.cwnd {
            self.acked = 0.0;
            self.turn = match self.turn {
                Turn::Grow => {
                    windows.cwnd += 1.0;
                    Turn::Pause
                }
                Turn::Pause => Turn::Grow,
            };
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Timeout {
            return windows.halve(loss);
        }
        // A mark is always congestion, whatever the queue.
        let congested = loss.cause == Cause::Mark || self.is_full(windows, path);
        let factor = if congested { self.config.congestion_factor } else { self.config.random_factor };
        // Segments sent by limited transmit beyond the window do not count (RFC 5681 section 3.2 step 2).
        windows.reduce_to(f64::from(loss.outstanding).min(windows.cwnd) * factor, loss.cause);
    }

    fn undo(&mut self, before: Self) {
        (self.turn, self.acked) = (before.turn, before.acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn path(base_ms: u64) -> Path {
        Path { min_rtt: Duration::from_millis(base_ms), ..fixture::path() }
    }

    /// Makes a sender of 100 segments that has seen rounds of `rtt_ms` over a base of 500 ms.
    fn veno(rtt_ms: u64) -> Classic<Veno> {
        let rule =
            Veno { known: 10, rtt: Some(Duration::from_millis(rtt_ms)), ..Veno::new(Config::default()) };
        Classic::new(Windows { cwnd: 100.0, ssthresh: 50.0 }, rule)
    }

    fn acknowledge(sender: &mut Classic<Veno>, segments: u32) {
        for _ in 0..segments {
            // snd_una does not change: the round continues.
            sender.on_ack(&fixture::ack(1), &Path { snd_una: 0, ..path(500) });
        }
    }

    #[test]
    fn a_short_queue_grows_by_one_per_round_trip_and_takes_a_loss_for_noise() {
        let mut sender = veno(510);
        assert!((sender.rule.backlog(&sender.windows, &path(500)) - 1.961).abs() < 1e-3);
        acknowledge(&mut sender, 100);
        assert!((sender.window() - 101.0).abs() < 0.01, "{}", sender.window());
        let mut sender = veno(510);
        sender.on_loss(&fixture::loss(100), &path(500));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (80.0, 80.0));
    }

    #[test]
    fn a_long_queue_grows_every_second_round_trip_and_takes_a_loss_for_congestion() {
        let mut sender = veno(520);
        assert!((sender.rule.backlog(&sender.windows, &path(500)) - 3.846).abs() < 1e-3);
        let windows = [100, 101, 101, 102].map(|segments| {
            acknowledge(&mut sender, segments);
            sender.window()
        });
        assert_eq!(windows, [101.0, 101.0, 102.0, 102.0]);
        let mut sender = veno(520);
        sender.on_loss(&fixture::loss(100), &path(500));
        assert_eq!(sender.window(), 50.0);
    }

    #[test]
    fn a_mark_is_congestion() {
        let mut sender = veno(500);
        sender.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(100) }, &path(500));
        assert_eq!(sender.window(), 50.0);
    }

    #[test]
    fn the_backlog_is_that_of_the_last_whole_round() {
        for (backlog_rtt, expected) in
            [(BacklogRtt::RoundMinimum, 520), (BacklogRtt::RoundMean, 530), (BacklogRtt::LastSample, 540)]
        {
            let rule = Veno::new(Config { backlog_rtt, ..Config::default() });
            let mut sender = Classic::new(Windows { cwnd: 100.0, ssthresh: 50.0 }, rule);
            for (snd_una, rtt_ms) in [(1001, 600), (2001, 520), (3001, 530), (6001, 540)] {
                let ack = Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) };
                sender.on_ack(&ack, &Path { snd_una, snd_nxt: snd_una + 4000, ..path(500) });
            }
            assert_eq!(sender.rule.rtt, Some(Duration::from_millis(expected)), "{backlog_rtt:?}");
        }
    }

    #[test]
    fn two_samples_prove_no_queue() {
        let windows = Windows { cwnd: 100.0, ssthresh: 50.0 };
        let rule =
            |known| Veno { known, rtt: Some(Duration::from_millis(600)), ..Veno::new(Config::default()) };
        assert_eq!(rule(2).backlog(&windows, &path(500)), 0.0);
        assert!(rule(3).backlog(&windows, &path(500)) > 16.0);
    }
}
