//! Scalable TCP: growth and reduction are proportional to the window. A recovery lasts the same number of round trips at
//! every rate.
//!
//! T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM SIGCOMM CCR 33(2), 2003.
//!
//! | paper          | here                       | unit               |
//! |----------------|----------------------------|--------------------|
//! | `cwnd`         | `Windows::cwnd`            | segments           |
//! | `a`            | [`Config::increase`]       | segments / segment acknowledged |
//! | `b`            | [`Config::decrease`]       | -                  |
//! | legacy window  | [`Config::legacy_window`]  | segments           |
//!
//! `papers/scalable.md` lists the deviations from the paper.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "scalable",
    title: "growth and reduction in proportion to the window: recovery in 13 round trips at every speed",
    paper: "Kelly, ACM SIGCOMM Computer Communication Review 33(2)",
    year: 2003,
    in_kernel: true,
    family: Family::Loss,
    advice: "For large windows that must recover fast after a loss. Not for links shared with Reno, from which it takes bandwidth.",
    ..SENDER_ONLY
};

/// Parameters of Scalable TCP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Segments added to the window for each segment acknowledged.
    #[serde(deserialize_with = "fraction")]
    pub increase: f64,
    /// Fraction of the window subtracted at a loss.
    #[serde(deserialize_with = "fraction")]
    pub decrease: f64,
    /// Largest window in segments with Reno's law; 1 disables Reno's law.
    #[serde(deserialize_with = "positive")]
    pub legacy_window: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { increase: 0.01, decrease: 0.125, legacy_window: 16.0 }
    }
}

impl Config {
    /// A Scalable sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Scalable { config: *self }))
    }
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct Scalable {
    config: Config,
}

impl Scalable {
    fn is_legacy(&self, windows: &Windows) -> bool {
        windows.cwnd <= self.config.legacy_window
    }
}

impl Rule for Scalable {
    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let per_segment = if self.is_legacy(windows) { 1.0 / windows.cwnd } else { self.config.increase };
        windows.cwnd += f64::from(ack.acked) * per_segment;
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        if loss.cause == Cause::Timeout {
            return windows.halve(loss);
        }
        // Segments sent by limited transmit beyond the window do not count (RFC 5681 section 3.2 step 2).
        let flight = f64::from(loss.outstanding).min(windows.cwnd);
        let share = if self.is_legacy(windows) { 0.5 } else { self.config.decrease };
        windows.reduce_to(flight * (1.0 - share), loss.cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn sender(cwnd: f64) -> Classic<Scalable> {
        Classic::new(Windows { cwnd, ssthresh: 2.0 }, Scalable { config: Config::default() })
    }

    #[test]
    fn a_round_trip_adds_one_percent_and_a_loss_takes_an_eighth() {
        let mut scalable = sender(400.0);
        scalable.on_ack(&fixture::ack(1), &fixture::path());
        assert!((scalable.window() - 400.01).abs() < 1e-9);
        scalable.on_ack(&fixture::ack(399), &fixture::path());
        assert!((scalable.window() - 404.0).abs() < 1e-9);
        let mut scalable = sender(400.0);
        scalable.on_loss(&fixture::loss(400), &fixture::path());
        assert_eq!(scalable.window(), 350.0);
    }

    #[test]
    fn the_old_window_is_back_after_13_4_round_trips_at_every_speed() {
        for before in [100.0, 1_000.0, 50_000.0_f64] {
            let mut scalable = sender(before);
            scalable.on_loss(&fixture::loss(before as u32), &fixture::path());
            let mut round_trips = 0.0;
            while scalable.window() < before {
                round_trips += 1.0 / scalable.window();
                scalable.on_ack(&fixture::ack(1), &fixture::path());
            }
            // ln(1 / 0.875) / ln(1.01) = 13.42 in steps of whole windows; ln(1 / 0.875) / 0.01 = 13.35 per ACK.
            assert!((round_trips - 13.4).abs() < 0.1, "{round_trips} at {before}");
        }
    }

    #[test]
    fn a_legacy_window_is_renos() {
        let mut scalable = sender(16.0);
        scalable.on_ack(&fixture::ack(1), &fixture::path());
        assert_eq!(scalable.window(), 16.0625);
        let mut scalable = sender(16.0);
        scalable.on_loss(&fixture::loss(16), &fixture::path());
        assert_eq!(scalable.window(), 8.0);
    }
}
