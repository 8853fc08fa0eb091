//! CUBIC: the window is a cubic function of the time since the last loss, independent of the round-trip time.
//!
//! RFC 9438, Xu, Ha, Rhee, Goel, Eggert, "CUBIC for Fast and Long-Distance Networks", 2023.
//!
//! | RFC 9438        | here                  | unit             |
//! |-----------------|-----------------------|------------------|
//! | `C`             | [`Config::c`]         | segments / s³    |
//! | `β_cubic`       | [`Config::beta`]      | -                |
//! | `α_cubic`       | `reno_alpha`          | segments / RTT   |
//! | `W_max`         | `w_max`, `Curve::w_max` | segments       |
//! | `cwnd_prior`    | `cwnd_prior`          | segments         |
//! | `t_epoch`, `t`  | `Stage::elapsed_s`    | s                |
//! | `K`             | `Curve::k_s`          | s                |
//! | `W_cubic(t)`    | `Curve::window`       | segments         |
//! | `W_est`         | `Stage::w_est`        | segments         |
//!
//! `papers/cubic.md` lists the deviations from the RFC.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::hystart::HyStart;
use crate::parameters::{fraction, positive};
use crate::{
    Ack, Cause, Classic, CongestionControl, Entry, Family, Loss, Path, Rule, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "cubic",
    title: "the window is a cubic function of the time since the last loss",
    paper: "RFC 9438 (Xu, Ha, Rhee, Goel, Eggert)",
    year: 2023,
    family: Family::Loss,
    advice: "For long paths without errors, where it regains its window sooner than Reno. At 1 % loss its goodput stays low.",
    ..SENDER_ONLY
};

/// `C` and `β_cubic` of RFC 9438 (section 5.1, section 4.6).
pub(crate) const C: f64 = 0.4;
pub(crate) const BETA: f64 = 0.7;

/// Parameters of CUBIC.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `C`: aggressiveness in segments per second cubed (section 5.1).
    #[serde(deserialize_with = "positive")]
    pub c: f64,
    /// Factor of the window after a loss (section 4.6).
    #[serde(deserialize_with = "fraction")]
    pub beta: f64,
    /// Release bandwidth faster if the window at this loss is smaller than at the last one (section 4.7).
    pub fast_convergence: bool,
    /// End the first slow start by HyStart++ (section 4.10).
    pub hystart: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { c: C, beta: BETA, fast_convergence: true, hystart: true }
    }
}

impl Config {
    /// A CUBIC sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Cubic::new(*self, start.paced)))
    }
}

/// The window as a function of time (RFC 9438, Figure 1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    c: f64,
    /// Window of the plateau, in segments.
    pub w_max: f64,
    /// Time of the plateau.
    k_s: f64,
}

impl Curve {
    /// Section 4.2: makes the curve through `cwnd` at time 0 with its plateau at `w_max`.
    pub fn new(cwnd: f64, w_max: f64, c: f64) -> Self {
        // A window beyond W_max is the plateau itself: K = 0 (as after a timeout, section 4.8).
        let w_max = w_max.max(cwnd);
        Self { c, w_max, k_s: libm::cbrt((w_max - cwnd) / c) } // Figure 2
    }

    /// Makes the curve reach its plateau `divisor` times sooner (SaTCP).
    fn hasten(&mut self, divisor: f64) {
        self.k_s /= divisor;
    }

    /// Returns the window of the cubic function, `W_cubic(t)`.
    pub fn window(&self, t: f64) -> f64 {
        let from_plateau = t - self.k_s;
        self.c * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

/// Section 4.7, Figure 6: plateau of the next curve after a loss at `cwnd`. If `cwnd` is below the last plateau, the new one is
/// lower, to release bandwidth.
pub(crate) fn next_w_max(cwnd: f64, w_max: f64, beta: f64) -> f64 {
    if cwnd < w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd }
}

/// A stage of congestion avoidance: from its first ACK to the next loss.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// `t`: time in this stage, without the times in which the sender had nothing to send (section 5.8).
    elapsed_s: f64,
    /// Arrival time of the last ACK; `elapsed_s` continues from it.
    last_ack: Instant,
    curve: Curve,
    /// Reno's window at this time.
    w_est: f64,
}

/// The window law of RFC 9438.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    hystart: HyStart,
    /// Plateau for the next stage; `None` before the first loss and after a timeout: the stage then begins on its plateau.
    w_max: Option<f64>,
    /// Window before the last reduction. Above it, the Reno-friendly window grows at Reno's own rate.
    cwnd_prior: f64,
    stage: Option<Stage>,
    /// Effect of a near handover (SaTCP); `None` for CUBIC.
    pub(super) handover: Option<Handover>,
}

/// Effect of a near handover on CUBIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handover {
    /// Divisor of `K` of a stage that begins now. A timeout keeps `W_max`.
    pub k_divisor: f64,
}

impl Cubic {
    /// Makes the rule in its initial state; `paced` is true if segments are paced.
    pub fn new(config: Config, paced: bool) -> Self {
        Self {
            config,
            hystart: HyStart::configured(config.hystart, paced),
            w_max: None,
            cwnd_prior: 0.0,
            stage: None,
            handover: None,
        }
    }

    /// `α_cubic` of section 4.3: with `β_cubic`, this additive increase yields Reno's average window. From `cwnd_prior` on, the
    /// increase is Reno's own.
    fn reno_alpha(&self, w_est: f64) -> f64 {
        if w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - self.config.beta) / (1.0 + self.config.beta) }
    }

    /// Section 4.6, Figure 5: the part of the flight kept after a loss. Segments sent by limited transmit beyond the window do
    /// not count (RFC 5681 section 3.2 (2)).
    fn survivors(&self, windows: &Windows, outstanding: u32) -> f64 {
        f64::from(outstanding).min(windows.cwnd) * self.config.beta
    }

    fn end_stage(&mut self, windows: &Windows) {
        self.cwnd_prior = windows.cwnd;
        self.stage = None;
        self.hystart.stop();
    }
}

impl Rule for Cubic {
    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.stage = None;
        self.hystart.grow(windows, ack, path);
        if !windows.in_slow_start() && self.cwnd_prior == 0.0 {
            self.cwnd_prior = windows.cwnd; // section 4.10: left slow start without a loss
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let cwnd = windows.cwnd;
        let mut stage = self.stage.unwrap_or_else(|| {
            let mut curve = Curve::new(cwnd, self.w_max.unwrap_or(cwnd), self.config.c);
            if let Some(handover) = self.handover {
                curve.hasten(handover.k_divisor);
            }
            Stage { elapsed_s: 0.0, last_ack: path.now, curve, w_est: cwnd }
        });
        let acked = f64::from(ack.acked);
        stage.w_est += self.reno_alpha(stage.w_est) * acked / cwnd; // Figure 4
        self.stage = Some(stage);
        if stage.curve.window(stage.elapsed_s) < stage.w_est {
            windows.cwnd = cwnd.max(stage.w_est); // section 4.3: Reno-friendly region
            return;
        }
        // Sections 4.2, 4.4, 4.5: the target is the curve's value one round trip ahead.
        let target = stage.curve.window(stage.elapsed_s + path.srtt_s()).clamp(cwnd, 1.5 * cwnd);
        windows.cwnd = (cwnd + acked * (target - cwnd) / cwnd).min(target);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        self.w_max = match self.w_max {
            _ if loss.cause == Cause::Timeout && self.handover.is_none() => None, // section 4.8: the next stage begins with K = 0
            Some(w_max) if self.config.fast_convergence => {
                Some(next_w_max(windows.cwnd, w_max, self.config.beta))
            }
            _ => Some(windows.cwnd),
        };
        self.end_stage(windows);
        windows.reduce_to(self.survivors(windows, loss.outstanding), loss.cause);
    }

    /// Advances `t`. Time counts only between ACKs for which the window limits the sender (section 5.8). Without an ACK for a
    /// whole RTO and without a timeout, nothing was outstanding; that time does not count.
    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        if let Some(stage) = &mut self.stage {
            let silence = path.now.since(stage.last_ack);
            stage.last_ack = path.now;
            let counts = ack.window_limited && silence <= path.rto;
            stage.elapsed_s += if counts { silence } else { Duration::ZERO }.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, MSS, path_at};
    use crate::{BackOff, Phase, Timeout, Undo};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    fn cubic(cwnd: f64, config: Config) -> Classic<Cubic> {
        Classic::new(Windows { cwnd, ssthresh: 2.0 }, Cubic::new(config, false))
    }

    /// Acknowledges one window per round trip, evenly spaced, from `from` to `to` seconds.
    fn run(sender: &mut Classic<Cubic>, from: f64, to: f64) {
        let mut now = from;
        while now <= to {
            sender.on_ack(&fixture::ack(1), &path_at(now));
            now += path_at(now).srtt_s() / sender.window();
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_k_follows() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(0.0));
        assert!(close(sender.window(), 70.0));
        sender.on_ack(&fixture::ack(1), &path_at(1.0));
        let stage = sender.rule.stage.unwrap();
        assert!(close(stage.curve.k_s, libm::cbrt(30.0 / 0.4)), "Figure 2: 4.217 s");
        assert!(close(stage.curve.window(0.0), 70.0));
        assert!(close(stage.curve.window(stage.curve.k_s), 100.0));
    }

    #[test]
    fn the_window_is_back_at_its_plateau_after_k_and_convex_beyond() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(0.0));
        run(&mut sender, 1.0, 1.0 + 4.217);
        assert!((sender.window() - 100.0).abs() < 0.5, "{}", sender.window());
        run(&mut sender, 5.22, 1.0 + 2.0 * 4.217);
        assert!((sender.window() - 130.0).abs() < 5.0, "{}", sender.window());
    }

    #[test]
    fn one_ack_moves_towards_the_curve_one_round_trip_ahead() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(0.0));
        sender.on_ack(&fixture::ack(1), &path_at(1.0)); // at t = 0 W_est exceeds the curve
        let cwnd = 70.0 + 3.0 * 0.3 / 1.7 / 70.0;
        assert!(close(sender.window(), cwnd));
        sender.on_ack(&fixture::ack(1), &path_at(1.1));
        let from_plateau = 0.1 + 0.55 - libm::cbrt(75.0);
        let target = 100.0 + 0.4 * from_plateau * from_plateau * from_plateau;
        assert!(close(sender.window(), cwnd + (target - cwnd) / cwnd));
    }

    #[test]
    fn a_terrestrial_path_follows_reno() {
        // Over 20 ms the cubic grows slower than Reno. W_est is 7 + 0.529 per window up to the old window, then +1 per window.
        let mut sender = cubic(10.0, Config::default());
        sender.on_loss(&fixture::loss(10), &path_at(0.0));
        let near = |now| Path { srtt: Duration::from_millis(20), ..path_at(now) };
        sender.on_ack(&fixture::ack(1), &near(0.02));
        assert!(close(sender.window(), 7.0 + 3.0 * 0.3 / 1.7 / 7.0));
        for i in 1..200 {
            sender.on_ack(&fixture::ack(1), &near(0.02 + f64::from(i) * 0.002));
        }
        assert!(sender.window() > 15.0, "faster than the plateau at 10: {}", sender.window());
    }

    #[test]
    fn fast_convergence_gives_way() {
        for (fast_convergence, w_max) in [(true, 80.0 * 0.85), (false, 80.0)] {
            let mut sender = cubic(100.0, Config { fast_convergence, ..Config::default() });
            sender.on_loss(&fixture::loss(100), &path_at(0.0));
            while sender.window() < 80.0 {
                sender.on_ack(&fixture::ack(1), &path_at(1.0));
            }
            sender.on_loss(&fixture::loss(80), &path_at(5.0));
            assert!((sender.rule.w_max.unwrap() - w_max).abs() < 0.1);
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_a_curve_without_plateau() {
        let mut sender = cubic(100.0, Config::default());
        let timeout = Timeout { consecutive: 1, outstanding: 100, answered: false };
        assert_eq!(sender.on_rto(&timeout, &path_at(0.0)), BackOff::Double);
        assert_eq!(sender.window(), 1.0);
        assert!(close(sender.snapshot().ssthresh, 70.0));
        sender.on_ack(&fixture::ack(69), &path_at(1.0));
        sender.on_ack(&fixture::ack(1), &path_at(1.1));
        let stage = sender.rule.stage.unwrap();
        assert_eq!((stage.curve.k_s, stage.curve.w_max), (0.0, 70.0));
    }

    #[test]
    fn a_spurious_loss_is_taken_back() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_ack(&fixture::ack(1), &path_at(0.0));
        let (window, elapsed) = (sender.window(), sender.rule.stage.unwrap().elapsed_s);
        sender.on_loss(&fixture::loss(100), &path_at(0.1));
        sender.on_undo(Undo::Reduction, &path_at(0.2));
        assert_eq!(sender.window(), window);
        assert_eq!(sender.rule.stage.unwrap().elapsed_s, elapsed);
    }

    #[test]
    fn time_without_data_does_not_count() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(0.0));
        let elapsed = |sender: &Classic<Cubic>| sender.rule.stage.unwrap().elapsed_s;
        sender.on_ack(&fixture::ack(1), &path_at(1.0));
        sender.on_ack(&fixture::ack(1), &path_at(1.5));
        assert!(close(elapsed(&sender), 0.5));
        sender.on_ack(&Ack { window_limited: false, ..fixture::ack(1) }, &path_at(2.0));
        assert!(close(elapsed(&sender), 0.5), "limited by the application");
        sender.on_ack(&fixture::ack(1), &path_at(2.25));
        assert!(close(elapsed(&sender), 0.75));
        sender.on_ack(&fixture::ack(1), &path_at(60.0));
        assert!(close(elapsed(&sender), 0.75), "idle");
    }

    #[test]
    fn recovery_freezes_the_window() {
        let mut sender = cubic(100.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(0.0));
        sender.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(5) }, &path_at(0.3));
        assert!(close(sender.window(), 70.0));
    }

    #[test]
    fn hystart_ends_slow_start_before_a_loss_does() {
        let mut sender = Classic::new(
            Windows { cwnd: 10.0, ssthresh: f64::INFINITY },
            Cubic::new(Config::default(), false),
        );
        let mut nxt = 10;
        for una in 1..2000_u64 {
            let path =
                Path { snd_una: 1 + una * u64::from(MSS), snd_nxt: 1 + nxt * u64::from(MSS), ..path_at(0.0) };
            // The queue grows by 2 ms per segment in flight.
            let rtt = Duration::from_millis(550 + 2 * (nxt - una));
            sender.on_ack(&Ack { rtt: Some(rtt), ..fixture::ack(1) }, &path);
            nxt = una + sender.window() as u64;
        }
        let Windows { cwnd, ssthresh } = sender.windows;
        assert!(ssthresh < 100.0 && cwnd >= ssthresh, "{cwnd} {ssthresh}");
        assert!(sender.rule.cwnd_prior > 0.0, "section 4.10");
    }

    #[test]
    fn unfit_parameters_are_refused() {
        use serde::de::IntoDeserializer;
        use serde::de::value::{Error, MapDeserializer};
        let read = |key: &'static str, value: f64| {
            Config::deserialize(
                MapDeserializer::<_, Error>::new([(key, value)].into_iter()).into_deserializer(),
            )
        };
        assert_eq!(read("c", 0.2).unwrap().c, 0.2);
        assert!(read("beta", 1.5).is_err());
        assert!(read("c", -1.0).is_err());
        assert!(read("gamma", 1.0).is_err());
    }
}
