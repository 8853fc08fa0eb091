//! TCP-J: the estimated available bandwidth (ABE), updated at each ACK, sets the window after a loss.
//!
//! N. Sato, M. Kunishi, F. Teraoka, "TCP-J: New Transport Protocol for Wireless Network Environments", Journal of IPSJ 43(12), 2002;
//! its formulas as given by H. Obata et al., "TCP-STAR", IEICE Transactions on Communications E89-B(6), 2006, numbered `STAR (n)`.
//!
//! | paper                | here                        | unit     |
//! |----------------------|-----------------------------|----------|
//! | `cwnd`, `ssthresh`   | `Windows`                   | segments |
//! | `d_k`                | `AckedCount::count`         | bytes    |
//! | `BW_sample(k)`, `BW_k` | `TcpJ::abe`               | bytes/s  |
//! | `α`                  | [`Config::smoothing`]       | -        |
//! | `RTT_min`            | `Path::min_rtt`             | time     |
//!
//! `papers/tcp-j.md` lists the deviations from the papers.

use alloc::boxed::Box;

use bentpipe_base::Duration;
use serde::{Deserialize, Serialize};

use crate::parameters::{at_least_zero, fraction};
pub use crate::parts::bandwidth::Credit;
use crate::parts::bandwidth::{Abe, AckedCount, segments};
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Rule, SENDER_ONLY,
    Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "tcp-j",
    title: "after a loss, the window that the available bandwidth fills, estimated ACK by ACK",
    paper: "Sato, Kunishi, Teraoka, Journal of IPSJ 43(12)",
    year: 2002,
    in_kernel: true,
    family: Family::Bandwidth,
    advice: "For errors, with an estimate from every ACK. Not for a small queue shared with NewReno, which it displaces.",
    ..SENDER_ONLY
};

/// Parameters of TCP-J.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of the old estimate at each sample.
    #[serde(deserialize_with = "fraction")]
    pub smoothing: f64,
    /// Minimum interval of a sample in seconds: closer ACKs are merged. Zero uses every ACK.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_gap_s: f64,
    /// A loss may also raise the window to the estimate.
    pub may_raise: bool,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
}

impl Default for Config {
    fn default() -> Self {
        Self { smoothing: 0.9, least_gap_s: 0.000_25, may_raise: false, credit: Credit::Whole }
    }
}

impl Config {
    /// A TCP-J sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, TcpJ::new(*self)))
    }
}

/// Reno's growth, and the estimated window after a loss.
#[derive(Clone, Debug)]
pub struct TcpJ {
    config: Config,
    count: AckedCount,
    abe: Abe,
}

impl TcpJ {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        let abe = Abe::new(config.smoothing, Duration::from_secs_f64(config.least_gap_s));
        Self { config, count: AckedCount::new(config.credit), abe }
    }

    /// `BW RTT_min / data segment size`: window that fills the available bandwidth.
    fn pipe(&self, path: &Path) -> f64 {
        segments(self.abe.rate(), path.min_rtt, path.mss)
    }
}

impl Rule for TcpJ {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => self.abe.begin(path.now),
            ConnectionEvent::Idle { .. } => self.abe.rest(),
            _ => {}
        }
    }

    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        let bytes = self.count.count(ack, path.mss);
        self.abe.on_ack(path.now, bytes);
    }

    /// STAR, Figure 1: in slow start only ssthresh changes.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let pipe = self.pipe(path).max(2.0);
        if loss.cause == Cause::Timeout {
            return windows.reduce_to(pipe, loss.cause);
        }
        if !windows.in_slow_start() {
            windows.cwnd = if self.config.may_raise { pipe } else { windows.cwnd.min(pipe) };
        }
        windows.ssthresh = pipe;
    }

    /// The estimate is kept.
    fn undo(&mut self, _before: Self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeout;
    use crate::fixture::{self, close};

    fn path_at(seconds: f64) -> Path {
        Path { min_rtt: Duration::from_millis(500), mss: 1448, ..fixture::path_at(seconds) }
    }

    /// Makes a sender that has measured 1 MB/s.
    fn tcp_j(cwnd: f64, ssthresh: f64, config: Config) -> Classic<TcpJ> {
        let rule = TcpJ::new(config);
        let abe = rule.abe.having(1e6);
        Classic::new(Windows { cwnd, ssthresh }, TcpJ { abe, ..rule })
    }

    #[test]
    fn a_loss_above_the_threshold_leaves_the_estimate_and_below_it_the_window() {
        let literal = Config { may_raise: true, ..Config::default() };
        for (cwnd, config, after) in [
            (100.0, Config::default(), 100.0),
            (432.0, Config::default(), 345.30),
            (300.0, Config::default(), 300.0),
            (300.0, literal, 345.30),
        ] {
            let mut sender = tcp_j(cwnd, 200.0, config);
            sender.on_loss(&fixture::loss(cwnd as u32), &path_at(1.0));
            assert!(close(sender.window(), after), "{} after {cwnd}", sender.window());
            assert!(close(sender.snapshot().ssthresh, 345.30));
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_estimate_as_threshold() {
        let mut sender = tcp_j(432.0, 200.0, Config::default());
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 432, answered: false }, &path_at(1.0));
        assert_eq!(sender.window(), 1.0);
        assert!(close(sender.snapshot().ssthresh, 345.30));
    }

    #[test]
    fn the_first_acks_of_a_ten_megabit_link_show_most_of_it() {
        let mut sender = Classic::new(Windows { cwnd: 2.0, ssthresh: 432.0 }, TcpJ::new(Config::default()));
        sender.on_event(ConnectionEvent::Established, &path_at(1.0));
        for (k, pipe) in (1_u32..).zip([20.83, 60.42, 96.04, 128.10, 156.96]) {
            let path = path_at(1.0 + 0.0012 * f64::from(k));
            sender.on_ack(&Ack { delivered_bytes: 1448, ..fixture::ack(1) }, &path);
            assert!((sender.rule.pipe(&path) - pipe).abs() < 0.01, "{}", sender.rule.pipe(&path));
        }
        for k in 6..=1000_u32 {
            let path = path_at(1.0 + 0.0012 * f64::from(k));
            sender.on_ack(&Ack { delivered_bytes: 1448, ..fixture::ack(1) }, &path);
        }
        assert!(close(sender.rule.pipe(&path_at(2.2)), 416.67));
    }

    #[test]
    fn an_idle_time_is_no_slow_path() {
        let mut sender = tcp_j(400.0, 200.0, Config::default());
        sender.on_event(ConnectionEvent::Idle { restart: 2.0 }, &path_at(60.0));
        sender.on_ack(&Ack { delivered_bytes: 1448, ..fixture::ack(1) }, &path_at(60.5));
        assert!(close(sender.rule.pipe(&path_at(60.5)), 345.30));
    }
}
