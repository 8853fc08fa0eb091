//! Adaptive start: in its first slow start, a sender raises ssthresh to the window of its measured eligible rate.
//!
//! R. Wang, G. Pau, K. Yamada, M. Y. Sanadidi, M. Gerla, "TCP Startup Performance in Large Bandwidth Delay Networks", IEEE INFOCOM 2004.
//!
//! | paper              | here                     | unit     |
//! |--------------------|--------------------------|----------|
//! | `cwnd`, `ssthresh` | `Windows`                | segments |
//! | `ERE`              | the rate of `Astart::deliveries` | bytes/s |
//! | `BWE`              | `Astart::rounds`         | bytes/s  |
//! | `RTTmin`           | `Astart::base`           | time     |
//!
//! `papers/astart.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::Duration;
use serde::{Deserialize, Serialize};

use crate::parameters::{at_least_zero, fraction, positive};
pub use crate::parts::bandwidth::{Credit, RoundFilter};
use crate::parts::bandwidth::{PerRound, segments};
use crate::parts::deliveries::Deliveries;
use crate::parts::round_pipe::RoundPipe;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Rule, SENDER_ONLY,
    Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "astart",
    title: "while starting, the threshold rises to the window that the sender is measured to be eligible to",
    paper: "Wang, Pau, Yamada, Sanadidi, Gerla, IEEE INFOCOM",
    year: 2004,
    in_kernel: true,
    family: Family::Bandwidth,
    advice: "For long paths with short transfers and low error rates. Not for ten flows that need equal shares.",
    ..SENDER_ONLY
};

/// Parameters of Astart.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Interval of the eligible rate, in round-trip times. During the start it is also the interval of Westwood+'s samples.
    #[serde(deserialize_with = "fraction")]
    pub starting_share: f64,
    /// Smoothing of Westwood+'s samples. With every filter the first sample sets the estimate.
    pub filter: RoundFilter,
    /// Minimum interval of a Westwood+ sample after the start, in seconds.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_round_s: f64,
    /// Initial ssthresh in segments, unless the connection has one.
    #[serde(deserialize_with = "positive")]
    pub initial_ssthresh: f64,
    /// Measure minRTT anew after a timeout.
    pub forget_rtt_min: bool,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            starting_share: 0.25,
            filter: RoundFilter::Paper,
            least_round_s: 0.05,
            initial_ssthresh: 4.0,
            forget_rtt_min: true,
            credit: Credit::Whole,
        }
    }
}

impl Config {
    /// An Astart sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let given = Some(start.initial_ssthresh).filter(|ssthresh| ssthresh.is_finite());
        let ssthresh = given.unwrap_or(self.initial_ssthresh);
        Box::new(Classic::new(Windows { cwnd: start.initial_window, ssthresh }, Astart::new(*self)))
    }
}

/// Stage of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before the first loss: ssthresh follows the eligible rate.
    Starting,
    /// After the first loss: Westwood.
    Started,
}

/// Reno's growth below a rising ssthresh, and Westwood+'s window after a loss.
#[derive(Clone, Debug)]
pub struct Astart {
    config: Config,
    measured: RoundPipe,
    deliveries: Deliveries,
    stage: Stage,
}

impl Astart {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            deliveries: Deliveries::new(),
            measured: RoundPipe::new(config.credit, PerRound::new(config.filter, true)),
            stage: Stage::Starting,
        }
    }

    /// Computes `(ERE RTTmin) / seg_size`, the eligible window. It needs no smoothing: ssthresh keeps the maximum.
    fn eligible(&self, path: &Path) -> f64 {
        let recent = path.srtt.mul_f64(self.config.starting_share);
        segments(self.deliveries.rate(path.now, recent), self.measured.base.get(), path.mss)
    }
}

impl Rule for Astart {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        self.measured.on_event(event, path);
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let sample = match self.stage {
            Stage::Starting => path.srtt.mul_f64(self.config.starting_share),
            Stage::Started => path.srtt.max(Duration::from_secs_f64(self.config.least_round_s)),
        };
        let bytes = self.measured.on_ack(ack, path, sample);
        if self.stage == Stage::Starting {
            self.deliveries.add(path.now, bytes, path.srtt);
            windows.ssthresh = windows.ssthresh.max(self.eligible(path));
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        self.stage = Stage::Started;
        windows.reduce_to(self.measured.segments(path), loss.cause);
        if loss.cause == Cause::Timeout && self.config.forget_rtt_min {
            self.measured.base.forget();
        }
    }

    /// Keeps the measurements made since the reduction.
    fn undo(&mut self, before: Self) {
        self.stage = before.stage;
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        match self.stage {
            Stage::Starting => "adaptive-start",
            Stage::Started => windows.phase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::{Timeout, fixture};

    fn path_at(seconds: f64) -> Path {
        let rtt = Duration::from_millis(500);
        Path { min_rtt: rtt, srtt: rtt, ..fixture::path_at(seconds) }
    }

    /// Makes a sender that has measured 500 kB/s over 500 ms.
    fn astart(cwnd: f64) -> Classic<Astart> {
        let mut rule = Astart::new(Config::default());
        rule.measured.base.sample(Duration::from_millis(500));
        rule.measured.rounds = rule.measured.rounds.having(500_000.0);
        Classic::new(Windows { cwnd, ssthresh: 64.0 }, rule)
    }

    /// Makes an ACK of one segment; `rate` bytes per second were delivered in the last 125 ms.
    fn recently(rate: u64) -> Ack {
        Ack { delivered_bytes: rate / 8, ..fixture::ack(1) }
    }

    #[test]
    fn the_threshold_rises_to_the_eligible_window_and_slow_start_goes_on() {
        for (rate, ssthresh, window) in
            [(150_000, 75.0, 65.0), (625_000, 312.5, 65.0), (100_000, 64.0, 64.0 + 1.0 / 64.0)]
        {
            let mut sender = astart(64.0);
            sender.on_ack(&recently(rate), &path_at(1.0));
            assert_eq!((sender.snapshot().ssthresh, sender.window()), (ssthresh, window));
        }
    }

    #[test]
    fn the_first_loss_ends_the_start_with_the_measured_window() {
        let mut sender = astart(400.0);
        sender.on_loss(&fixture::loss(400), &path_at(0.0));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (250.0, 250.0));
        sender.on_ack(&recently(900_000), &path_at(1.0));
        assert_eq!(sender.snapshot().ssthresh, 250.0, "the threshold no longer follows");
    }

    #[test]
    fn a_timeout_ends_the_start_and_forgets_the_route() {
        let mut sender = astart(400.0);
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 400, answered: false }, &path_at(0.0));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, 250.0));
        sender.on_ack(&Ack { rtt: Some(Duration::from_millis(600)), ..fixture::ack(1) }, &path_at(0.0));
        assert_eq!(sender.rule.measured.base.get(), Duration::from_millis(600));
        assert_eq!(sender.snapshot().phase, "slow-start");
    }

    /// Window and ssthresh after each round trip over 10 Mbit/s, 500 ms and an unlimited queue.
    fn start_up(config: Config) -> Vec<Windows> {
        let mut sender =
            Classic::new(Windows { cwnd: 4.0, ssthresh: config.initial_ssthresh }, Astart::new(config));
        sender.on_event(ConnectionEvent::Established, &path_at(0.0));
        let (mut now, mut link_free) = (0.0_f64, 0.0_f64);
        let mut acks: VecDeque<(f64, f64)> = VecDeque::new();
        let mut rounds = Vec::new();
        while now < 10.0 {
            while (acks.len() as f64) < sender.window().floor() {
                link_free = link_free.max(now) + 0.0008;
                acks.push_back((link_free + 0.5, now));
            }
            let Some((arrival, sent)) = acks.pop_front() else { break };
            now = arrival;
            let rtt = Duration::from_secs_f64(arrival - sent);
            sender.on_ack(&Ack { rtt: Some(rtt), ..fixture::ack(1) }, &Path { srtt: rtt, ..path_at(now) });
            if now >= 0.5 * (rounds.len() + 1) as f64 {
                rounds.push(sender.windows);
            }
        }
        rounds
    }

    #[test]
    fn the_start_fills_the_path_and_does_not_overshoot() {
        // The path holds 625 segments. A slow start without ssthresh would exceed 2000 segments after 5 s.
        let rounds = start_up(Config::default());
        let full = rounds.iter().position(|windows| windows.cwnd >= 600.0).expect("it fills the path");
        assert!(full < 12, "after {full} round trips");
        assert!(rounds.iter().all(|windows| windows.cwnd < 680.0 && windows.ssthresh < 1.02 * 625.0));
    }
}
