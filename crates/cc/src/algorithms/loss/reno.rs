//! Reno's window law of RFC 5681, from which the other rules state their differences.
//!
//! The engine chooses the loss recovery independently: Reno's own, NewReno's, SACK or RACK-TLP.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::hystart::HyStart;
use crate::{Ack, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "reno",
    title: "Reno's window law: slow start, congestion avoidance, half on loss",
    paper: "RFC 5681 (Allman, Paxson, Blanton)",
    year: 2009,
    family: Family::Loss,
    advice: "The reference for all others, with the oldest recovery. Not for long paths with errors, where each loss costs minutes.",
    ..SENDER_ONLY
};

/// Parameters of Reno.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// End the first slow start by HyStart++ (RFC 9406) instead of by a loss.
    pub hystart: bool,
}

impl Config {
    /// A Reno sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Reno { hystart: HyStart::configured(self.hystart, start.paced) }))
    }
}

/// Growth by one segment per acknowledged segment in slow start, then one per window; half the window
/// after a loss.
#[derive(Clone, Debug)]
pub struct Reno {
    hystart: HyStart,
}

impl Rule for Reno {
    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.hystart.grow(windows, ack, path);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        self.hystart.stop();
        windows.reduce_to(f64::from(loss.outstanding) / 2.0, loss.cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, Timeout, Undo, fixture};

    fn reno(cwnd: f64, ssthresh: f64) -> Classic<Reno> {
        Classic::new(Windows { cwnd, ssthresh }, Reno { hystart: HyStart::off() })
    }

    #[test]
    fn slow_start_doubles_and_congestion_avoidance_adds_one_per_window() {
        let mut sender = reno(2.0, 8.0);
        for expected in [4.0, 8.0] {
            for _ in 0..expected as u32 / 2 {
                sender.on_ack(&fixture::ack(1), &fixture::path());
            }
            assert_eq!(sender.window(), expected);
        }
        sender.on_ack(&fixture::ack(2), &fixture::path());
        assert_eq!(sender.window(), 8.25, "two of eight segments, in one delayed ACK");
    }

    #[test]
    fn a_loss_halves_the_flight_and_recovery_freezes_the_window() {
        let mut sender = reno(30.0, 10.0);
        sender.on_loss(&fixture::loss(30), &fixture::path());
        sender.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(4) }, &fixture::path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (15.0, 15.0));
    }

    #[test]
    fn consecutive_timeouts_are_one_event() {
        let mut sender = reno(30.0, f64::INFINITY);
        for consecutive in 1..=3 {
            sender.on_rto(
                &Timeout { consecutive, outstanding: 30 / consecutive, answered: false },
                &fixture::path(),
            );
            assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, 15.0));
        }
    }

    #[test]
    fn what_the_application_did_not_use_does_not_grow() {
        let mut sender = reno(30.0, f64::INFINITY);
        sender.on_ack(&Ack { window_limited: false, ..fixture::ack(10) }, &fixture::path());
        assert_eq!(sender.window(), 30.0);
    }

    #[test]
    fn an_undo_restores_window_and_threshold() {
        let mut sender = reno(30.0, f64::INFINITY);
        sender.on_loss(&fixture::loss(30), &fixture::path());
        sender.on_undo(Undo::Reduction, &fixture::path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (30.0, f64::INFINITY));
    }

    /// RFC 9406 section 4.3: `L` limits the growth per ACK only without pacing, where a jump would be a
    /// burst.
    #[test]
    fn hystart_knows_whether_segments_are_spaced() {
        let grown = |paced| {
            let start = Start { paced, ..fixture::start(40.0) };
            let mut sender = Config { hystart: true }.build(&start);
            sender.on_ack(&fixture::ack(20), &fixture::path());
            sender.window()
        };
        assert_eq!((grown(false), grown(true)), (48.0, 60.0));
    }

    #[test]
    fn an_undo_keeps_a_window_that_has_grown_beyond() {
        let mut sender = reno(30.0, f64::INFINITY);
        sender.on_loss(&fixture::loss(30), &fixture::path());
        while sender.window() < 31.0 {
            sender.on_ack(&fixture::ack(1), &fixture::path());
        }
        let window = sender.window();
        sender.on_undo(Undo::Reduction, &fixture::path());
        assert_eq!(sender.window(), window);
    }
}
