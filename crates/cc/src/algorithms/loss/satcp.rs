//! SaTCP: CUBIC that knows of handovers ahead. A loss near a handover does not cost it the window.
//!
//! X. Cao, X. Zhang, "SaTCP: Link-Layer Informed TCP Adaptation for Highly Dynamic LEO Satellite Networks", IEEE INFOCOM 2023.
//!
//! | paper and its source       | here                        | unit     |
//! |----------------------------|-----------------------------|----------|
//! | `cwnd`                     | `Windows::cwnd`             | segments |
//! | `K`                        | `Curve::k_s` of [`cubic`](super::cubic) | s |
//! | `T_earlier`                | [`Config::lead_s`]          | s        |
//! | inhibition                 | `SaTcp::inhibited_until`    | time     |
//! | error of the prediction    | [`Config::error`]           | factor   |
//!
//! `papers/satcp.md` lists the deviations from the source.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Notice, Rng};
use serde::{Deserialize, Serialize};

use super::cubic::{self, Cubic, Handover};
use crate::parameters::{not_negative, positive};
use crate::parts::grid::Grid;
use crate::{
    Ack, BackOff, Classic, CongestionControl, Entry, Family, Feedback, Loss, Path, Requirements, SENDER_ONLY,
    Start, Timeout, Undo, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "satcp",
    title: "CUBIC that regains its window nine times sooner after a loss near a handover",
    paper: "Cao, Zhang, IEEE INFOCOM",
    year: 2023,
    family: Family::Loss,
    advice: "For low orbits whose handover times the sender knows. Real congestion at a handover costs more losses and delay than with CUBIC.",
    in_kernel: true,
    ..SENDER_ONLY
};

/// Absolute error of predicted handover times in seconds, as probability and quantile, from two generations of orbital elements.
const ERRORS_S: [(f64, f64); 9] = [
    (0.0, 0.0),
    (0.05, 0.02),
    (0.25, 0.07),
    (0.5, 0.16),
    (0.75, 0.31),
    (0.9, 0.57),
    (0.95, 0.88),
    (0.99, 1.31),
    (1.0, 1.58),
];

/// Parameters of SaTCP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time between handovers in seconds; 0 if only notices of links report them.
    #[serde(deserialize_with = "not_negative")]
    pub period_s: f64,
    /// Time of the first handover in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub offset_s: f64,
    /// Time from the report to the predicted handover, in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub lead_s: f64,
    /// Time in seconds for which a report inhibits reductions.
    #[serde(deserialize_with = "not_negative")]
    pub inhibition_s: f64,
    /// Divisor of `K` near a handover.
    #[serde(deserialize_with = "positive")]
    pub k_divisor: f64,
    /// Factor of the measured errors of predicted times; 0 makes the prediction exact.
    #[serde(deserialize_with = "not_negative")]
    pub error: f64,
    /// Keep the window at a timeout near a handover.
    pub keep_cwnd_at_timeout: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            period_s: 15.0,
            offset_s: 12.0,
            lead_s: 0.5,
            inhibition_s: 2.3,
            k_divisor: 9.0,
            error: 1.0,
            keep_cwnd_at_timeout: false,
        }
    }
}

impl Config {
    /// A SaTCP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(SaTcp::new(*self, start))
    }
}

/// A SaTCP sender.
#[derive(Debug)]
pub struct SaTcp {
    config: Config,
    cubic: Classic<Cubic>,
    grid: Grid,
    rng: Rng,
    /// Time of the next report, and of the handover that it predicts.
    next: Option<(Instant, Instant)>,
    /// End of the inhibition by the latest report.
    inhibited_until: Instant,
}

impl SaTcp {
    fn new(config: Config, start: &Start) -> Self {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        let grid = Grid::new(config.period_s, config.offset_s);
        let mut sender = Self {
            config,
            cubic: Classic::new(windows, Cubic::new(cubic::Config::default(), start.paced)),
            grid,
            rng: Rng::stream(start.seed, "satcp"),
            next: None,
            inhibited_until: Instant::ZERO,
        };
        sender.next = sender.report_before(grid.next(Instant::ZERO));
        sender
    }

    /// Draws the time of the report of a handover.
    fn report_before(&mut self, handover: Option<Instant>) -> Option<(Instant, Instant)> {
        let handover = handover?;
        let error_s = self.config.error * error_s(self.rng.uniform());
        let late_s = if self.rng.chance(0.5) { error_s } else { -error_s } - self.config.lead_s;
        let report_s = handover.since(Instant::ZERO).as_secs_f64() + late_s;
        Some((Instant::ZERO + Duration::from_secs_f64(report_s.max(0.0)), handover))
    }

    /// Handles the reports up to `now`, and tells CUBIC whether a handover is near.
    fn follow_reports(&mut self, now: Instant) {
        while let Some((report, handover)) = self.next.filter(|(report, _)| *report <= now) {
            self.inhibit_from(report);
            let later = self.grid.next(handover + Duration::from_nanos(1));
            self.next = self.report_before(later);
        }
        let near = now <= self.inhibited_until;
        self.cubic.rule.handover = near.then_some(Handover { k_divisor: self.config.k_divisor });
    }

    fn inhibit_from(&mut self, report: Instant) {
        let end = report + Duration::from_secs_f64(self.config.inhibition_s);
        self.inhibited_until = self.inhibited_until.max(end);
    }
}

/// Returns the error with this probability of a smaller one.
fn error_s(probability: f64) -> f64 {
    let upper = ERRORS_S.partition_point(|(p, _)| *p <= probability).clamp(1, ERRORS_S.len() - 1);
    let ((p0, e0), (p1, e1)) = (ERRORS_S[upper - 1], ERRORS_S[upper]);
    e0 + (e1 - e0) * (probability - p0) / (p1 - p0)
}

impl CongestionControl for SaTcp {
    forward!(cubic: window, adopt, on_event, snapshot);

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.follow_reports(path.now);
        self.cubic.on_ack(ack, path);
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.follow_reports(path.now);
        self.cubic.on_loss(loss, path);
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        self.follow_reports(path.now);
        let cwnd = self.cubic.windows.cwnd;
        let back_off = self.cubic.on_rto(timeout, path);
        if self.config.keep_cwnd_at_timeout && self.cubic.rule.handover.is_some() {
            self.cubic.windows.cwnd = cwnd;
        }
        back_off
    }

    fn on_undo(&mut self, undo: Undo, path: &Path) {
        self.cubic.on_undo(undo, path);
        self.follow_reports(path.now);
    }

    fn requirements(&self) -> Requirements {
        self.cubic.requirements()
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }
}

impl Feedback for SaTcp {
    fn receiver(&self) -> u8 {
        0
    }

    /// A link reports that its handover has begun.
    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        if matches!(fields, Extension::Notice(Notice::Outage)) {
            self.inhibit_from(path.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, path_at};

    /// A sender of `cwnd` segments in congestion avoidance, with exact reports.
    fn sender(cwnd: f64) -> SaTcp {
        let config = Config { error: 0.0, ..Config::default() };
        let mut sender = SaTcp::new(config, &fixture::start(cwnd));
        sender.cubic.windows.ssthresh = 2.0;
        sender
    }

    /// Time in seconds from a loss at `at` until 95 % of the window are back. The RTT is 30 ms.
    fn time_to_regain(sender: &mut SaTcp, at: f64) -> f64 {
        let before = sender.window();
        sender.on_loss(&fixture::loss(before as u32), &path_at(at));
        time_to(sender, at, 0.95 * before)
    }

    /// Time in seconds from `at` until the window is `back`.
    fn time_to(sender: &mut SaTcp, at: f64, back: f64) -> f64 {
        let mut now = at;
        while sender.window() < back {
            let path = Path { srtt: Duration::from_millis(30), ..path_at(now) };
            sender.on_ack(&fixture::ack(1), &path);
            now += 0.03 / sender.window();
        }
        now - at
    }

    #[test]
    fn a_loss_near_a_handover_costs_two_round_trips_and_other_losses_seconds() {
        let near = time_to_regain(&mut sender(1000.0), 12.1);
        assert!(near < 0.06, "{near} s");
        // K = cbrt(300 / 0.4) = 9.09 s; the last 50 segments take 5 s.
        let far = time_to_regain(&mut sender(1000.0), 2.0);
        assert!((3.9..4.1).contains(&far), "{far} s");
    }

    #[test]
    fn reports_last_from_half_a_second_before_the_handover_for_2_3_s() {
        let mut sender = sender(100.0);
        for (at, near) in [(11.4, false), (11.6, true), (13.7, true), (13.9, false), (26.6, true)] {
            sender.follow_reports(path_at(at).now);
            assert_eq!(sender.cubic.rule.handover.is_some(), near, "{at} s");
        }
    }

    #[test]
    fn a_timeout_near_a_handover_keeps_the_plateau() {
        let timeout = Timeout { consecutive: 1, outstanding: 100, answered: false };
        let plateau = |at: f64| {
            let mut sender = sender(100.0);
            sender.on_rto(&timeout, &path_at(at));
            assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, 70.0));
            sender.cubic.windows.cwnd = 70.0;
            time_to(&mut sender, at, 95.0)
        };
        let (near, far) = (plateau(12.1), plateau(2.0));
        assert!(near < 0.1, "{near} s");
        assert!(far > 1.0, "{far} s");
    }

    #[test]
    fn a_notice_of_an_outage_is_a_report() {
        let mut sender = sender(1000.0);
        sender.on_feedback(&Extension::Notice(Notice::Outage), &path_at(2.0));
        let near = time_to_regain(&mut sender, 2.1);
        assert!(near < 0.06, "{near} s");
    }

    #[test]
    fn errors_have_the_measured_quantiles() {
        for (probability, error) in [(0.0, 0.0), (0.5, 0.16), (0.825, 0.44), (0.99, 1.31)] {
            assert!((error_s(probability) - error).abs() < 1e-9, "{probability}");
        }
    }
}
