//! TCP Jersey: routers warn of congestion. A loss without a warning is a transmission error; with one, the measured rate sets the
//! window.
//!
//! K. Xu, Y. Tian, N. Ansari, "TCP-Jersey for Wireless IP Communications", IEEE Journal on Selected Areas in Communications 22(4), 2004.
//!
//! | paper              | here                    | unit     |
//! |--------------------|-------------------------|----------|
//! | `cwnd`, `ssthresh` | `Windows`               | segments |
//! | `R_n`              | `Jersey::estimate`      | bytes/s  |
//! | `L_n`              | `AckedCount::count`     | bytes    |
//! | `t_n`              | `Path::now`             | time     |
//! | `K`, `T_w = K RTT` | [`Config::k`]           | -, time  |
//! | `ownd`             | `Jersey::optimal`       | segments |
//! | congestion warning (CW) | `Jersey::warnings` | -        |
//!
//! `papers/jersey.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::Instant;
use serde::{Deserialize, Serialize};

use crate::parameters::positive;
pub use crate::parts::bandwidth::Credit;
use crate::parts::bandwidth::{AckedCount, Sliding, segments};
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Rule, SENDER_ONLY,
    Start, Windows,
};

/// Round-trip time that is multiplied with the measured rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRtt {
    /// The smoothed RTT is multiplied with the measured rate.
    #[default]
    Smoothed,
    /// minRTT: the window then fills the path without a queue.
    Minimum,
}

/// Reaction to a loss before the first warning, when routers perhaps cannot warn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unwarned {
    /// Halve as Reno, unless both ends agreed on ECN: a host that enables ECN expects routers that warn.
    #[default]
    HalveWithoutEcn,
    /// Halve as Reno.
    Halve,
    /// Keep the window, as after any loss without a warning.
    Keep,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "jersey",
    title: "routers warn of congestion, so a loss without a warning is noise",
    paper: "Xu, Tian, Ansari, IEEE Journal on Selected Areas in Communications 22(4)",
    year: 2004,
    needs_routers: true,
    in_kernel: true,
    family: Family::Bandwidth,
    advice: "For routers that mark congestion, with ECN. Without marks, as here, it equals NewReno.",
    ..SENDER_ONLY
};

/// Parameters of Jersey.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Length of the estimator's window in round-trip times.
    #[serde(deserialize_with = "positive")]
    pub k: f64,
    /// Round-trip time that converts the rate into a window.
    pub window_rtt: WindowRtt,
    /// Reaction to a loss before the first warning.
    pub unwarned: Unwarned,
    /// Rate control may also raise the window to the measured one.
    pub may_raise: bool,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            k: 1.0,
            window_rtt: WindowRtt::Smoothed,
            unwarned: Unwarned::HalveWithoutEcn,
            may_raise: false,
            credit: Credit::Whole,
        }
    }
}

impl Config {
    /// A Jersey sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Jersey::new(*self)))
    }
}

/// Warnings received from routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Warnings {
    /// No warning: perhaps no router can warn.
    Never,
    /// Time of the last warning.
    Last(Instant),
}

/// Interpretation of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Congestion,
    Noise,
    Unknown,
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct Jersey {
    config: Config,
    count: AckedCount,
    estimate: Sliding,
    warnings: Warnings,
}

impl Jersey {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            count: AckedCount::new(config.credit),
            estimate: Sliding::new(config.k),
            warnings: Warnings::Never,
        }
    }

    /// Computes `ownd = R_n RTT / segment size`.
    fn optimal(&self, path: &Path) -> f64 {
        let rtt = match self.config.window_rtt {
            WindowRtt::Smoothed => path.srtt,
            WindowRtt::Minimum => path.min_rtt,
        };
        segments(self.estimate.rate(), rtt, path.mss)
    }

    /// A loss within one round trip after a warning is congestion.
    fn judge(&self, loss: &Loss, path: &Path) -> Verdict {
        match self.warnings {
            _ if loss.cause == Cause::Mark => Verdict::Congestion,
            Warnings::Last(at) if path.now.since(at) <= path.srtt => Verdict::Congestion,
            Warnings::Last(_) => Verdict::Noise,
            Warnings::Never => match self.config.unwarned {
                Unwarned::Keep => Verdict::Noise,
                Unwarned::HalveWithoutEcn if path.ecn => Verdict::Noise,
                Unwarned::HalveWithoutEcn | Unwarned::Halve => Verdict::Unknown,
            },
        }
    }
}

impl Rule for Jersey {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => self.estimate.begin(path.now),
            ConnectionEvent::Idle { .. } => self.estimate.rest(),
            _ => {}
        }
    }

    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        if ack.ecn_echo {
            self.warnings = Warnings::Last(path.now);
        }
        let bytes = self.count.count(ack, path.mss);
        self.estimate.on_ack(bytes, path);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Timeout {
            return windows.reduce_to(self.optimal(path), loss.cause);
        }
        match self.judge(loss, path) {
            Verdict::Noise => {}
            Verdict::Congestion => {
                let optimal = self.optimal(path).max(2.0);
                windows.ssthresh = optimal;
                windows.cwnd = if self.config.may_raise { optimal } else { windows.cwnd.min(optimal) };
            }
            Verdict::Unknown => windows.halve(loss),
        }
        if loss.cause == Cause::Mark {
            self.warnings = Warnings::Last(path.now);
        }
    }

    /// The estimate and the routers' warnings are kept.
    fn undo(&mut self, _before: Self) {}
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;

    use super::*;
    use crate::Timeout;
    use crate::fixture::{self, close};

    fn path_at(seconds: f64) -> Path {
        let rtt = Duration::from_millis(500);
        Path { min_rtt: rtt, srtt: rtt, mss: 1448, ..fixture::path_at(seconds) }
    }

    /// Makes a sender with a window of 432 segments that has measured 1 MB/s.
    fn jersey(config: Config) -> Classic<Jersey> {
        let rule = Jersey::new(config);
        let estimate = rule.estimate.having(1e6);
        Classic::new(Windows { cwnd: 432.0, ssthresh: 200.0 }, Jersey { estimate, ..rule })
    }

    /// An ACK with a warning. It delivers nothing, so the estimate does not change.
    fn warning() -> Ack {
        Ack { ecn_echo: true, dsack: true, ..fixture::ack(0) }
    }

    #[test]
    fn a_loss_after_a_warning_leaves_the_measured_window() {
        let mut sender = jersey(Config::default());
        sender.on_ack(&warning(), &path_at(1.0));
        sender.on_loss(&fixture::loss(432), &path_at(1.4));
        assert!(
            close(sender.window(), 345.30) && close(sender.snapshot().ssthresh, 345.30),
            "{}",
            sender.window()
        );
    }

    #[test]
    fn a_loss_long_after_the_last_warning_is_noise() {
        let mut sender = jersey(Config::default());
        sender.on_ack(&warning(), &path_at(1.0));
        sender.on_loss(&fixture::loss(432), &path_at(1.6));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (432.0, 200.0));
    }

    #[test]
    fn a_warning_alone_leaves_the_measured_window() {
        let mut sender = jersey(Config::default());
        sender.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(432) }, &path_at(1.0));
        assert!(close(sender.window(), 345.30));
    }

    #[test]
    fn where_no_router_ever_warned_it_halves_unless_marks_were_agreed_on() {
        for (unwarned, without, with) in [
            (Unwarned::HalveWithoutEcn, 216.0, 432.0),
            (Unwarned::Halve, 216.0, 216.0),
            (Unwarned::Keep, 432.0, 432.0),
        ] {
            for (ecn, after) in [(false, without), (true, with)] {
                let mut sender = jersey(Config { unwarned, ..Config::default() });
                sender.on_loss(&fixture::loss(432), &Path { ecn, ..path_at(1.0) });
                assert_eq!(sender.window(), after, "{unwarned:?}, ECN {ecn}");
            }
        }
    }

    #[test]
    fn one_ack_moves_the_estimate_little() {
        let mut sender = jersey(Config::default());
        sender.on_event(ConnectionEvent::Established, &path_at(1.0));
        sender.on_ack(&Ack { delivered_bytes: 1448, ..fixture::ack(1) }, &path_at(1.0012));
        assert!((sender.rule.estimate.rate() - 1_000_494.8).abs() < 0.1);
        assert_eq!(sender.rule.optimal(&path_at(1.0012)).floor(), 345.0);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_measured_threshold() {
        let mut sender = jersey(Config { window_rtt: WindowRtt::Minimum, ..Config::default() });
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 432, answered: false }, &path_at(1.0));
        assert_eq!(sender.window(), 1.0);
        assert!(close(sender.snapshot().ssthresh, 345.30));
    }
}
