//! TCP Westwood+: Westwood with one bandwidth sample per round trip, which clustered ACKs do not inflate.
//!
//! L. A. Grieco, S. Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control", ACM
//! SIGCOMM CCR 34(2), 2004.
//!
//! | paper              | here                             | unit     |
//! |--------------------|----------------------------------|----------|
//! | `cwnd`, `ssthresh` | `Windows`                        | segments |
//! | `d_k`, `Δ_k`, `b_k` | bytes, length and sample of `PerRound` | bytes, time, bytes/s |
//! | `BWE`              | `RoundPipe::rounds`              | bytes/s  |
//! | `RTTmin`           | `WestwoodPlus::base`             | time     |
//!
//! `papers/westwood-plus.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::Duration;
use serde::{Deserialize, Serialize};

use crate::parameters::at_least_zero;
use crate::parts::bandwidth::PerRound;
pub use crate::parts::bandwidth::{Credit, RoundFilter};
use crate::parts::round_pipe::RoundPipe;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Phase, Rule,
    SENDER_ONLY, Start, Windows,
};

/// Reaction to a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The Linux kernel module: half the window during the recovery, then the BDP of the estimate at its end. After a timeout
    /// minRTT is measured anew.
    #[default]
    Linux,
    /// The paper: the estimated BDP at once.
    Paper,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "westwood-plus",
    title: "Westwood with one bandwidth sample per round trip, which clustered ACKs do not inflate",
    paper: "Grieco, Mascolo, ACM SIGCOMM Computer Communication Review 34(2)",
    year: 2004,
    in_kernel: true,
    family: Family::Bandwidth,
    advice: "For low error rates, also if ACKs arrive in clusters. It grows like Reno between losses, so high error rates still cost goodput.",
    ..SENDER_ONLY
};

/// Parameters of Westwood+.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Smoothing of samples. With `linux` the first sample sets the estimate.
    pub filter: RoundFilter,
    /// Minimum interval of a sample in seconds.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_round_s: f64,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
    /// Reaction to a loss.
    pub profile: Profile,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            filter: RoundFilter::Linux,
            least_round_s: 0.05,
            credit: Credit::Whole,
            profile: Profile::Linux,
        }
    }
}

impl Config {
    /// A Westwood+ sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, WestwoodPlus::new(*self)))
    }
}

/// Reno's growth, and the measured window after a loss.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    config: Config,
    measured: RoundPipe,
    /// Sequence number whose acknowledgement completes the kernel's reduction for a mark.
    marked_until: Option<u64>,
}

impl WestwoodPlus {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        let rounds = PerRound::new(config.filter, config.filter == RoundFilter::Linux);
        Self { config, measured: RoundPipe::new(config.credit, rounds), marked_until: None }
    }
}

impl Rule for WestwoodPlus {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        self.measured.on_event(event, path);
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let round = path.srtt.max(Duration::from_secs_f64(self.config.least_round_s));
        self.measured.on_ack(ack, path, round);
        let recovered = ack.ends_episode && ack.phase == Phase::Recovery;
        let unmarked = self.marked_until.is_some_and(|end| path.snd_una >= end) && ack.phase == Phase::Open;
        if self.config.profile == Profile::Linux && (recovered || unmarked) {
            let pipe = self.measured.segments(path).max(2.0);
            *windows = Windows { cwnd: pipe, ssthresh: pipe };
            self.marked_until = None;
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let (linux, timeout) = (self.config.profile == Profile::Linux, loss.cause == Cause::Timeout);
        let threshold = if linux && !timeout { windows.cwnd / 2.0 } else { self.measured.segments(path) };
        if linux {
            self.marked_until = (loss.cause == Cause::Mark).then_some(path.snd_nxt);
        }
        if linux && timeout {
            self.measured.base.forget();
        }
        windows.reduce_to(threshold, loss.cause);
    }

    /// The estimate is kept.
    fn undo(&mut self, _before: Self) {
        self.marked_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeout;
    use crate::fixture::{self, close, path_at};

    const PAPER: Config = Config {
        filter: RoundFilter::Linux,
        least_round_s: 0.05,
        credit: Credit::Whole,
        profile: Profile::Paper,
    };

    fn path() -> Path {
        Path {
            min_rtt: Duration::from_millis(500),
            srtt: Duration::from_millis(500),
            mss: 1448,
            ..fixture::path()
        }
    }

    /// Makes a sender that has measured 1 MB/s over 500 ms.
    fn westwood_plus(cwnd: f64, config: Config) -> Classic<WestwoodPlus> {
        let mut rule = WestwoodPlus::new(config);
        rule.measured.rounds = rule.measured.rounds.having(1e6);
        rule.measured.base.sample(Duration::from_millis(500));
        Classic::new(Windows { cwnd, ssthresh: 100.0 }, rule)
    }

    #[test]
    fn a_loss_leaves_what_the_path_carries_and_never_raises_the_window() {
        for (cwnd, after) in [(432.0, 345.30), (200.0, 200.0)] {
            let mut sender = westwood_plus(cwnd, PAPER);
            sender.on_loss(&fixture::loss(432), &path());
            assert!(
                close(sender.window(), after) && close(sender.snapshot().ssthresh, 345.30),
                "{}",
                sender.window()
            );
        }
    }

    #[test]
    fn a_loss_after_four_round_trips_finds_an_estimate_far_too_small() {
        // Windows of 1, 2, 4, 8 segments: the paper's filter yields 4039.6 B/s, which is 1.4 segments; ssthresh is thus two.
        for (filter, pipe) in [(RoundFilter::Paper, 1.3949), (RoundFilter::Linux, 1.2273)] {
            let rule = WestwoodPlus::new(Config { filter, ..PAPER });
            let mut sender = Classic::new(Windows { cwnd: 1.0, ssthresh: f64::INFINITY }, rule);
            sender.on_event(ConnectionEvent::Established, &Path { now: path_at(0.0).now, ..path() });
            for (round, segments) in [1_u32, 2, 4, 8].into_iter().enumerate() {
                let now = path_at(0.5 * (round + 1) as f64).now;
                let ack = Ack { delivered_bytes: u64::from(segments * 1448), ..fixture::ack(segments) };
                sender.on_ack(&ack, &Path { now, ..path() });
            }
            assert!(
                close(sender.rule.measured.segments(&path()), pipe),
                "{}",
                sender.rule.measured.segments(&path())
            );
            sender.on_loss(&fixture::loss(16), &path());
            assert_eq!(sender.snapshot().ssthresh, 2.0);
        }
    }

    #[test]
    fn clusters_of_acks_do_not_inflate_the_estimate() {
        // 400 segments per round trip of 500 ms, acknowledged in two bursts.
        let mut sender = westwood_plus(400.0, Config::default());
        let mut now = 1.0;
        sender.on_event(ConnectionEvent::Established, &Path { now: path_at(now).now, ..path() });
        for _ in 0..100 {
            now += 0.25;
            for k in 0..200_u32 {
                let at = path_at(now + 10e-6 * f64::from(k)).now;
                let ack = Ack { delivered_bytes: 1448, ..fixture::ack(1) };
                sender.on_ack(&ack, &Path { now: at, ..path() });
            }
        }
        let pipe = sender.rule.measured.segments(&path());
        assert!((0.85..1.15).contains(&(pipe / 400.0)), "{pipe}");
    }

    /// Linux: `tcp_reno_ssthresh` at the detection of the loss, the estimate at the end of the reduction.
    #[test]
    fn linux_halves_while_it_recovers_and_then_takes_the_estimate() {
        let mut sender = westwood_plus(200.0, Config::default());
        sender.on_loss(&fixture::loss(200), &path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (100.0, 100.0));
        sender.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(10) }, &path());
        assert_eq!(sender.window(), 100.0);
        let last = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(10) };
        sender.on_ack(&last, &path());
        assert!(
            close(sender.window(), 345.30) && close(sender.snapshot().ssthresh, 345.30),
            "{}",
            sender.window()
        );
    }

    #[test]
    fn linux_does_the_same_for_a_mark_after_a_window_of_data() {
        let mut sender = westwood_plus(200.0, Config::default());
        let at = |snd_una| Path { snd_una, snd_nxt: 100_001, ..path() };
        sender.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(200) }, &at(1));
        sender.on_ack(&fixture::ack(1), &at(50_001));
        assert!(sender.window() < 101.0);
        sender.on_ack(&fixture::ack(1), &at(100_001));
        assert!((345.0..347.0).contains(&sender.window()), "{}", sender.window());
    }

    #[test]
    fn linux_forgets_the_old_route_after_a_timeout() {
        let mut sender = westwood_plus(432.0, Config::default());
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 432, answered: false }, &path());
        assert!(close(sender.snapshot().ssthresh, 345.30));
        let later = Ack { rtt: Some(Duration::from_millis(600)), ..fixture::ack(1) };
        sender.on_ack(&later, &path());
        assert_eq!(sender.rule.measured.base.get(), Duration::from_millis(600));
    }
}
