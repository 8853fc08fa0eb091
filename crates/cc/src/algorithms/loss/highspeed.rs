//! HighSpeed TCP: a larger window grows faster, and loses a smaller fraction at a loss.
//!
//! RFC 3649, Floyd, "HighSpeed TCP for Large Congestion Windows", 2003. Limited slow start: RFC 3742, Floyd, 2004.
//!
//! | RFC 3649        | here                        | unit           |
//! |-----------------|-----------------------------|----------------|
//! | `w`             | `Windows::cwnd`             | segments       |
//! | `Low_Window`    | [`Config::low_window`]      | segments       |
//! | `High_Window`   | [`Config::high_window`]     | segments       |
//! | `High_Decrease` | [`Config::high_decrease`]   | -              |
//! | `a(w)`          | `Config::increase`          | segments / RTT |
//! | `b(w)`          | `Config::decrease`          | -              |
//! | `p(w)`          | `loss_rate`                 | losses / segment |
//! | `max_ssthresh` (RFC 3742) | [`Config::max_ssthresh`] | segments |
//!
//! `papers/highspeed.md` lists the deviations from the RFC.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Source of `a(w)` and `b(w)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The equations of section 5.
    #[default]
    Formula,
    /// The table of appendix B, as in kernels.
    Table,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "highspeed",
    title: "the larger the window, the faster it grows and the less a loss costs",
    paper: "RFC 3649 (Floyd)",
    year: 2003,
    in_kernel: true,
    family: Family::Loss,
    advice: "For windows of several hundred segments. Below 38 segments it equals Reno, so errors keep its goodput low.",
    ..SENDER_ONLY
};

/// Parameters of HighSpeed TCP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Equations or table.
    pub law: Law,
    /// Largest window with Reno's law (section 5). Has no effect with the table.
    #[serde(deserialize_with = "positive")]
    pub low_window: f64,
    /// Window at which a loss costs only `high_decrease` (section 5). Has no effect with the table.
    #[serde(deserialize_with = "positive")]
    pub high_window: f64,
    /// Fraction of the window lost at `high_window` (section 5). Has no effect with the table.
    #[serde(deserialize_with = "fraction")]
    pub high_decrease: f64,
    /// Use limited slow start (RFC 3742) beyond `max_ssthresh`: huge windows do not double.
    pub limited_slow_start: bool,
    /// Window in segments above which limited slow start slows the growth (RFC 3742 section 2).
    #[serde(deserialize_with = "positive")]
    pub max_ssthresh: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            law: Law::Formula,
            low_window: 38.0,
            high_window: 83_000.0,
            high_decrease: 0.1,
            limited_slow_start: false,
            max_ssthresh: 100.0,
        }
    }
}

/// Reno's decrease, valid for all windows up to `Low_Window`.
const LOW_DECREASE: f64 = 0.5;

/// Section 5, equation (3): the loss rate whose average window is `w`.
fn loss_rate(w: f64) -> f64 {
    0.078 / libm::pow(w, 1.2)
}

impl Config {
    /// A HighSpeed sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, HighSpeed::new(*self)))
    }

    /// `b(w)`: fraction of the window subtracted at a loss.
    fn decrease(&self, w: f64) -> f64 {
        match self.law {
            Law::Formula if w <= self.low_window => LOW_DECREASE,
            Law::Formula => {
                let low = libm::log(self.low_window);
                let position = (libm::log(w) - low) / (libm::log(self.high_window) - low);
                // Beyond High_Window the decrease is constant; likewise if both windows coincide or are swapped.
                let position = if position >= 0.0 { position.min(1.0) } else { 1.0 };
                LOW_DECREASE * (1.0 - position) + self.high_decrease * position
            }
            Law::Table => TABLE[row(w)].1,
        }
    }

    /// `a(w)`: growth in segments per round trip.
    fn increase(&self, w: f64) -> f64 {
        match self.law {
            Law::Formula if w <= self.low_window => 1.0,
            Law::Formula => {
                let b = self.decrease(w);
                (w * w * loss_rate(w) * 2.0 * b / (2.0 - b)).max(1.0)
            }
            Law::Table => (row(w) + 1) as f64,
        }
    }
}

/// The window law of RFC 3649.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    config: Config,
    /// Whole segments of the window for which `increase` was computed, and its `a(w)`.
    computed_for: f64,
    increase: f64,
}

impl HighSpeed {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self { config, computed_for: 0.0, increase: 1.0 }
    }

    /// `a(w)`, computed once per segment of growth: logarithms and powers are too slow for each ACK.
    fn increase(&mut self, w: f64) -> f64 {
        let whole = libm::floor(w);
        if whole != self.computed_for {
            (self.computed_for, self.increase) = (whole, self.config.increase(whole));
        }
        self.increase
    }
}

impl Rule for HighSpeed {
    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let held_back = self.config.limited_slow_start && windows.cwnd > self.config.max_ssthresh;
        let pace = if held_back {
            // RFC 3742 section 2: growth of at most max_ssthresh / 2 per round trip.
            libm::floor(windows.cwnd / (0.5 * self.config.max_ssthresh))
        } else {
            1.0
        };
        windows.cwnd += f64::from(ack.acked) / pace;
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        windows.cwnd += f64::from(ack.acked) * self.increase(windows.cwnd) / windows.cwnd;
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        if loss.cause == Cause::Timeout {
            return windows.halve(loss);
        }
        // Segments sent by limited transmit beyond the window do not count (RFC 5681 section 3.2 step 2).
        let flight = f64::from(loss.outstanding).min(windows.cwnd);
        windows.reduce_to(flight * (1.0 - self.config.decrease(windows.cwnd)), loss.cause);
    }
}

/// Appendix B: rows of `(w, b(w))`. The number of the first row with at least `w`, counted from 1, is `a(w)`.
#[rustfmt::skip]
const TABLE: [(f64, f64); 73] = [
    (38.0, 0.50), (118.0, 0.44), (221.0, 0.41), (347.0, 0.38), (495.0, 0.37), (663.0, 0.35), (851.0, 0.34),
    (1058.0, 0.33), (1284.0, 0.32), (1529.0, 0.31), (1793.0, 0.30), (2076.0, 0.29), (2378.0, 0.28), (2699.0, 0.28),
    (3039.0, 0.27), (3399.0, 0.27), (3778.0, 0.26), (4177.0, 0.26), (4596.0, 0.25), (5036.0, 0.25), (5497.0, 0.24),
    (5979.0, 0.24), (6483.0, 0.23), (7009.0, 0.23), (7558.0, 0.22), (8130.0, 0.22), (8726.0, 0.22), (9346.0, 0.21),
    (9991.0, 0.21), (10661.0, 0.21), (11358.0, 0.20), (12082.0, 0.20), (12834.0, 0.20), (13614.0, 0.19),
    (14424.0, 0.19), (15265.0, 0.19), (16137.0, 0.19), (17042.0, 0.18), (17981.0, 0.18), (18955.0, 0.18),
    (19965.0, 0.17), (21013.0, 0.17), (22101.0, 0.17), (23230.0, 0.17), (24402.0, 0.16), (25618.0, 0.16),
    (26881.0, 0.16), (28193.0, 0.16), (29557.0, 0.15), (30975.0, 0.15), (32450.0, 0.15), (33986.0, 0.15),
    (35586.0, 0.14), (37253.0, 0.14), (38992.0, 0.14), (40808.0, 0.14), (42707.0, 0.13), (44694.0, 0.13),
    (46776.0, 0.13), (48961.0, 0.13), (51258.0, 0.13), (53677.0, 0.12), (56230.0, 0.12), (58932.0, 0.12),
    (61799.0, 0.12), (64851.0, 0.11), (68113.0, 0.11), (71617.0, 0.11), (75401.0, 0.10), (79517.0, 0.10),
    (84035.0, 0.10), (89053.0, 0.10), (94717.0, 0.09),
];

/// Index of the first row with at least `w`; of the last row beyond the table.
fn row(w: f64) -> usize {
    TABLE.partition_point(|(reach, _)| *reach < w).min(TABLE.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn close(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * b.abs()
    }

    fn sender(cwnd: f64, config: Config) -> Classic<HighSpeed> {
        Classic::new(Windows { cwnd, ssthresh: 2.0 }, HighSpeed::new(config))
    }

    #[test]
    fn increase_and_decrease_follow_the_equations() {
        let config = Config::default();
        for (w, a, b) in
            [(38.0, 1.0, 0.5), (100.0, 1.801, 0.4497), (400.0, 4.381, 0.3775), (1058.0, 8.011, 0.3269)]
        {
            assert!(close(config.increase(w), a, 5e-4), "a({w}) = {}", config.increase(w));
            assert!(close(config.decrease(w), b, 5e-4), "b({w}) = {}", config.decrease(w));
        }
        assert!(close(config.increase(83_000.0), 70.7, 1e-3), "the RFC has 72, from an unrounded p(w)");
        assert!(close(config.decrease(1e6), 0.1, 1e-9));
    }

    #[test]
    fn the_table_agrees_with_the_equations() {
        let config = Config::default();
        for (i, (w, b)) in TABLE.iter().enumerate().skip(1) {
            assert!(close(config.increase(*w), (i + 1) as f64, 0.1), "a({w})");
            assert!((config.decrease(*w) - b).abs() < 0.011, "b({w})");
        }
        let table = Config { law: Law::Table, ..config };
        for (w, a, b) in
            [(10.0, 1.0, 0.5), (38.0, 1.0, 0.5), (39.0, 2.0, 0.44), (400.0, 5.0, 0.37), (1e6, 73.0, 0.09)]
        {
            assert_eq!((table.increase(w), table.decrease(w)), (a, b), "{w}");
        }
    }

    #[test]
    fn a_window_of_400_grows_by_a_of_400_and_falls_to_249() {
        let mut highspeed = sender(400.0, Config::default());
        highspeed.on_ack(&fixture::ack(1), &fixture::path());
        assert!(close(highspeed.window() - 400.0, 0.010953, 1e-4));
        let mut highspeed = sender(400.0, Config::default());
        highspeed.on_loss(&fixture::loss(400), &fixture::path());
        assert!(close(highspeed.window(), 249.0, 1e-4));
    }

    #[test]
    fn small_windows_are_renos() {
        let mut highspeed = sender(30.0, Config::default());
        highspeed.on_ack(&fixture::ack(1), &fixture::path());
        assert_eq!(highspeed.window(), 30.0 + 1.0 / 30.0);
        let mut highspeed = sender(30.0, Config::default());
        highspeed.on_loss(&fixture::loss(30), &fixture::path());
        assert_eq!(highspeed.window(), 15.0);
    }

    #[test]
    fn limited_slow_start_adds_at_most_half_of_max_ssthresh_per_round_trip() {
        let config = Config { limited_slow_start: true, ..Config::default() };
        let mut highspeed =
            Classic::new(Windows { cwnd: 90.0, ssthresh: f64::INFINITY }, HighSpeed::new(config));
        highspeed.on_ack(&fixture::ack(10), &fixture::path());
        assert_eq!(highspeed.window(), 100.0);
        highspeed.on_ack(&fixture::ack(1), &fixture::path());
        highspeed.on_ack(&fixture::ack(1), &fixture::path());
        assert_eq!(highspeed.window(), 101.5, "K = int(101 / 50)");
        let mut highspeed =
            Classic::new(Windows { cwnd: 400.0, ssthresh: f64::INFINITY }, HighSpeed::new(config));
        for _ in 0..400 {
            highspeed.on_ack(&fixture::ack(1), &fixture::path());
        }
        assert!(close(highspeed.window(), 450.0, 0.01), "{}", highspeed.window());
    }

    #[test]
    fn strange_windows_make_no_strange_shares() {
        let swapped = Config { low_window: 83_000.0, high_window: 38.0, ..Config::default() };
        let equal = Config { high_window: 38.0, ..Config::default() };
        for config in [swapped, equal] {
            for w in [1.0, 38.0, 39.0, 1000.0, 1e6] {
                assert!((0.1..=0.5).contains(&config.decrease(w)), "b({w}) = {}", config.decrease(w));
            }
        }
    }
}
