//! TCP Westwood: the measured delivery rate sets the window after a loss, instead of half the flight.
//!
//! C. Casetti, M. Gerla, S. Mascolo, M. Y. Sanadidi, R. Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless
//! Links", ACM MobiCom 2001.
//!
//! | paper           | here                          | unit     |
//! |-----------------|-------------------------------|----------|
//! | `cwnd`, `ssthresh` | `Windows`                  | segments |
//! | `b_k`           | the sample of `LowPass`       | bytes/s  |
//! | `BWE`           | `Westwood::filter`            | bytes/s  |
//! | `RTTmin`        | `Westwood::base`              | time     |
//! | `τ`             | [`Config::tau_s`]             | s        |
//! | `m`             | [`Config::m`]                 | -        |
//! | `accounted`     | `Westwood::count`             | segments |
//!
//! `papers/westwood.md` lists the deviations from the paper.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::parameters::{at_least_zero, not_negative, positive};
pub use crate::parts::bandwidth::Credit;
use crate::parts::bandwidth::{AckedCount, LowPass, segments};
use crate::parts::base_rtt::RecentRtt;
use crate::{
    Ack, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start,
    Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "westwood",
    title: "after a loss, the window that the stream of ACKs was measured to fill",
    paper: "Casetti, Gerla, Mascolo, Sanadidi, Wang, ACM MobiCom",
    year: 2001,
    family: Family::Bandwidth,
    advice: "For low and high error rates with a regular reverse path. If ACKs arrive in clusters, the estimate is too high.",
    ..SENDER_ONLY
};

/// Parameters of Westwood.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time constant of the filter in seconds.
    #[serde(deserialize_with = "positive")]
    pub tau_s: f64,
    /// A sample of zero is assumed for each `tau_s / m` without an ACK.
    #[serde(deserialize_with = "positive")]
    pub m: f64,
    /// A shorter remainder in seconds after such samples counts as a whole interval.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_remainder_s: f64,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
    /// Length of the minimum round-trip time filter in seconds, because routes change; 0 never forgets.
    #[serde(deserialize_with = "not_negative")]
    pub base_rtt_window_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { tau_s: 0.5, m: 2.0, least_remainder_s: 0.01, credit: Credit::Whole, base_rtt_window_s: 0.0 }
    }
}

impl Config {
    /// A Westwood sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Westwood::new(*self)))
    }
}

/// Reno's growth, and the measured window after a loss.
#[derive(Clone, Debug)]
pub struct Westwood {
    count: AckedCount,
    filter: LowPass,
    base: RecentRtt,
}

impl Westwood {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            count: AckedCount::new(config.credit),
            filter: LowPass::new(config.tau_s, config.m, config.least_remainder_s),
            base: RecentRtt::new(config.base_rtt_window_s),
        }
    }

    /// `BWE RTTmin / seg_size`: window that fills the path without a queue.
    fn pipe(&self, path: &Path) -> f64 {
        segments(self.filter.rate(), self.base.get(path), path.mss)
    }
}

impl Rule for Westwood {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.filter.begin(path.now);
        }
    }

    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        self.base.observe(ack, path);
        let bytes = self.count.count(ack, path.mss);
        self.filter.on_ack(path.now, bytes);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        windows.reduce_to(self.pipe(path), loss.cause);
    }

    /// The filter is kept.
    fn undo(&mut self, _before: Self) {}
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;

    use super::*;
    use crate::fixture::{self, close};
    use crate::{Timeout, Undo};

    fn path() -> Path {
        Path { min_rtt: Duration::from_millis(500), mss: 1448, ..fixture::path() }
    }

    /// Makes a sender that has measured 1 MB/s.
    fn westwood(cwnd: f64, ssthresh: f64) -> Classic<Westwood> {
        let config = Config::default();
        let filter = LowPass::new(config.tau_s, config.m, config.least_remainder_s).having(1e6);
        Classic::new(Windows { cwnd, ssthresh }, Westwood { filter, ..Westwood::new(config) })
    }

    #[test]
    fn a_loss_leaves_what_the_path_carries_and_never_raises_the_window() {
        for (cwnd, after) in [(432.0, 345.30), (200.0, 200.0)] {
            let mut sender = westwood(cwnd, 100.0);
            sender.on_loss(&fixture::loss(432), &path());
            assert!(
                close(sender.window(), after) && close(sender.snapshot().ssthresh, 345.30),
                "{}",
                sender.window()
            );
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_measured_threshold() {
        let mut sender = westwood(432.0, 100.0);
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 432, answered: false }, &path());
        assert_eq!(sender.window(), 1.0);
        assert!(close(sender.snapshot().ssthresh, 345.30));
    }

    #[test]
    fn a_loss_before_anything_was_measured_leaves_two_segments() {
        let mut sender =
            Classic::new(Windows { cwnd: 10.0, ssthresh: 64.0 }, Westwood::new(Config::default()));
        sender.on_loss(&fixture::loss(10), &Path { min_rtt: Duration::MAX, ..path() });
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (2.0, 2.0));
    }

    #[test]
    fn a_steady_stream_is_measured_and_a_mistake_does_not_lose_the_measurement() {
        let mut sender =
            Classic::new(Windows { cwnd: 100.0, ssthresh: 50.0 }, Westwood::new(Config::default()));
        sender.on_event(ConnectionEvent::Established, &Path { now: fixture::path_at(1.0).now, ..path() });
        for k in 1..=5000_u32 {
            let now = fixture::path_at(1.0 + 0.0012 * f64::from(k)).now;
            if k == 4900 {
                sender.on_loss(&fixture::loss(100), &Path { now, ..path() });
            }
            let ack = Ack { delivered_bytes: 1448, ..fixture::ack(1) };
            sender.on_ack(&ack, &Path { now, ..path() });
        }
        sender.on_undo(Undo::Reduction, &path());
        assert!(close(sender.rule.pipe(&path()), 416.67), "{}", sender.rule.pipe(&path()));
    }
}
