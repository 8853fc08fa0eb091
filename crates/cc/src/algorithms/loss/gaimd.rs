//! GAIMD: AIMD with a smaller increase and a smaller decrease than Reno. It is friendly to Reno, and smoother.
//!
//! Y. R. Yang, S. S. Lam, "General AIMD Congestion Control", IEEE ICNP 2000.
//!
//! | paper  | here                  | unit     |
//! |--------|-----------------------|----------|
//! | `W`    | `Windows::cwnd`       | segments |
//! | `α`    | [`Config::increase`]  | segments / round trip |
//! | `β`    | [`Config::remains`]   | -        |
//!
//! `papers/gaimd.md` lists the deviations from the paper.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "gaimd",
    title: "Reno's law with smaller steps: a third of a segment up per round trip, an eighth down at a loss",
    paper: "Yang, Lam, IEEE ICNP",
    year: 2000,
    family: Family::Loss,
    advice: "For streams that need a smooth window. Its flows share equally, with Reno too. Over a long path it grows by 0.31 segments per round trip; a single flow without losses has less than half of Reno's goodput in five minutes.",
    ..SENDER_ONLY
};

/// Parameters of GAIMD. A pair is friendly to Reno if `α = 4 (1 - β²) / 3`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `α`: growth of the window in congestion avoidance, in segments per round trip.
    #[serde(deserialize_with = "positive")]
    pub increase: f64,
    /// `β`: factor of the window after a loss.
    #[serde(deserialize_with = "fraction")]
    pub remains: f64,
}

impl Default for Config {
    /// The pair recommended by the paper.
    fn default() -> Self {
        Self { increase: 0.31, remains: 0.875 }
    }
}

impl Config {
    /// A GAIMD sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Gaimd { config: *self }))
    }
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct Gaimd {
    config: Config,
}

impl Rule for Gaimd {
    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        windows.cwnd += self.config.increase * f64::from(ack.acked) / windows.cwnd;
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        // Slow start overshoots by up to the whole window, independent of the law above ssthresh: halve.
        if loss.cause == Cause::Timeout || windows.in_slow_start() {
            return windows.halve(loss);
        }
        let flight = f64::from(loss.outstanding).min(windows.cwnd);
        windows.reduce_to(flight * self.config.remains, loss.cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn sender(config: Config, cwnd: f64, ssthresh: f64) -> Classic<Gaimd> {
        Classic::new(Windows { cwnd, ssthresh }, Gaimd { config })
    }

    /// Section III: 4 (1 - 49/64) / 3 = 0.3125, in the paper 0.31; Reno is the pair (1, 1/2).
    #[test]
    fn the_recommended_pair_is_friendly_to_reno() {
        for (increase, remains) in [(0.31, 0.875), (1.0, 0.5)] {
            let friendly = 4.0 * (1.0 - remains * remains) / 3.0;
            assert!(f64::abs(friendly - increase) < 0.003, "{remains}: {friendly}");
        }
    }

    #[test]
    fn a_round_trip_adds_a_third_of_a_segment_and_a_loss_takes_an_eighth() {
        let mut sender = sender(Config::default(), 40.0, 20.0);
        sender.on_ack(&fixture::ack(40), &fixture::path());
        assert!((sender.window() - 40.31).abs() < 1e-9);
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!(sender.window(), 35.0);
    }

    #[test]
    fn slow_start_ends_at_half() {
        let mut sender = sender(Config::default(), 40.0, f64::INFINITY);
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!(sender.window(), 20.0);
    }
}
