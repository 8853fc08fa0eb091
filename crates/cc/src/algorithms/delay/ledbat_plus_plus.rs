//! LEDBAT++: background transfers that keep a small queueing delay and yield to other flows.
//!
//! P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo, "LEDBAT++: Congestion Control for Background Traffic",
//! draft-irtf-iccrg-ledbat-plus-plus; S. Shalunov et al., "Low Extra Delay Background Transport (LEDBAT)", RFC 6817, 2012.
//!
//! | draft                 | here                              | unit     |
//! |-----------------------|-----------------------------------|----------|
//! | W                     | `Windows::cwnd`                   | segments |
//! | TARGET                | [`Config::target_s`]              | s        |
//! | base                  | `LedbatPlusPlus::base`            | time     |
//! | delay                 | `LedbatPlusPlus::delay`           | s        |
//! | GAIN                  | `gain`                            | -        |
//! | Constant (1)          | factor 1 in `change`              | -        |

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::parameters::{not_negative, positive};
use crate::parts::base_rtt::RecentRtt;
use crate::rounds::Round;
use crate::{
    Ack, Classic, CongestionControl, Entry, Family, Loss, Path, Phase, Rule, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "ledbat-plus-plus",
    title: "background transfers: a queueing delay of at most 60 ms, and slowdowns for a tenth of the time",
    paper: "Balasubramanian, Ertugay, Havey, Bagnulo, draft-irtf-iccrg-ledbat-plus-plus",
    year: 2026,
    family: Family::Delay,
    advice: "For background transfers, over queues of more than 60 ms: there other flows keep their rate. In a shorter queue it competes like Reno.",
    ..SENDER_ONLY
};

/// Parameters of LEDBAT++.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queueing delay in seconds above which the window shrinks.
    #[serde(deserialize_with = "positive")]
    pub target_s: f64,
    /// Length of the base round-trip time filter in seconds, because routes change; 0 never forgets.
    #[serde(deserialize_with = "not_negative")]
    pub base_rtt_window_s: f64,
}

impl Default for Config {
    /// 60 ms, and the ten minutes of RFC 6817.
    fn default() -> Self {
        Self { target_s: 0.06, base_rtt_window_s: 600.0 }
    }
}

impl Config {
    /// A LEDBAT++ sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, LedbatPlusPlus::new(*self)))
    }
}

/// Minimum window in segments, and the window of a slowdown.
const SMALLEST: f64 = 2.0;
/// Number of round-trip samples whose minimum is the current delay (`CURRENT_FILTER` of RFC 6817).
const CURRENT: usize = 4;
/// Time between two slowdowns, in lengths of the previous slowdown.
const WORK_PER_SLOWDOWN: u64 = 9;
/// Fraction of the target at which the initial slow start ends.
const EXIT: f64 = 0.75;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    /// Initial slow start.
    Initial,
    /// Between two slowdowns.
    Working { slowdown_at: Instant },
    /// Slowdown, with a window of two segments so that the queue empties.
    Frozen { since: Instant, until: Instant },
    /// Slow start at the end of a slowdown.
    Returning { since: Instant },
}

/// The window law of the draft.
#[derive(Clone, Copy, Debug)]
pub struct LedbatPlusPlus {
    config: Config,
    stage: Stage,
    base: RecentRtt,
    /// Latest round-trip samples, the youngest first; zero before the first ones.
    recent: [Duration; CURRENT],
    round: Round,
    gain: f64,
    /// Current queueing delay in seconds.
    delay: f64,
}

impl LedbatPlusPlus {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            stage: Stage::Initial,
            base: RecentRtt::new(config.base_rtt_window_s),
            recent: [Duration::ZERO; CURRENT],
            round: Round::default(),
            gain: 1.0,
            delay: 0.0,
        }
    }

    /// Updates base, delay and gain.
    fn measure(&mut self, ack: &Ack, path: &Path) {
        let Some(rtt) = ack.rtt else { return };
        self.base.observe(ack, path);
        self.recent.rotate_right(1);
        self.recent[0] = rtt;
        let base = self.base.get(path);
        let current = self.recent.iter().min().copied().unwrap_or_default();
        self.delay = current.saturating_sub(base).as_secs_f64();
        self.gain = gain(self.config.target_s, base);
    }

    /// Moves to the next stage if it is due (section 4.4 of the draft).
    fn advance(&mut self, windows: &mut Windows, path: &Path) {
        let now = path.now;
        match self.stage {
            Stage::Initial => {
                let full = self.delay > EXIT * self.config.target_s;
                if full || !windows.in_slow_start() {
                    windows.ssthresh = windows.ssthresh.min(windows.cwnd);
                    self.stage = Stage::Working { slowdown_at: now + path.srtt * 2 };
                }
            }
            Stage::Working { slowdown_at } if now >= slowdown_at => {
                windows.ssthresh = windows.threshold_to_restore();
                windows.cwnd = windows.cwnd.min(SMALLEST);
                self.stage = Stage::Frozen { since: now, until: now + path.srtt * 2 };
            }
            Stage::Frozen { since, until } if now >= until => self.stage = Stage::Returning { since },
            Stage::Returning { since } if !windows.in_slow_start() => {
                let slowdown_at = now + now.since(since) * WORK_PER_SLOWDOWN;
                self.stage = Stage::Working { slowdown_at };
            }
            Stage::Working { .. } | Stage::Frozen { .. } | Stage::Returning { .. } => {}
        }
    }

    /// Changes the window at the end of a round whose delay is above the target.
    fn shrink(&self, windows: &mut Windows) {
        let excess = self.delay / self.config.target_s - 1.0;
        windows.cwnd = (windows.cwnd + change(windows.cwnd, self.gain, excess)).max(SMALLEST);
        // Only the initial slow start, a timeout and a slowdown lead to slow start.
        windows.ssthresh = windows.ssthresh.min(windows.cwnd);
    }

    fn is_full(&self) -> bool {
        self.delay > self.config.target_s
    }

    fn is_frozen(&self) -> bool {
        matches!(self.stage, Stage::Frozen { .. })
    }
}

/// Returns GAIN: `1 / min(16, ceil(2 TARGET / base))` (section 4.1).
fn gain(target_s: f64, base: Duration) -> f64 {
    1.0 / libm::ceil(2.0 * target_s / base.as_secs_f64()).clamp(1.0, 16.0)
}

/// Returns the change of window `w` in a round trip with the delay `1 + excess` targets: `max(GAIN - W excess, -W / 2)`
/// (section 4.2).
fn change(w: f64, gain: f64, excess: f64) -> f64 {
    (gain - w * excess).max(-w / 2.0)
}

impl Rule for LedbatPlusPlus {
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.measure(ack, path);
        let round_ends = self.round.ends(path);
        if ack.phase != Phase::Open {
            return;
        }
        self.advance(windows, path);
        let steady = matches!(self.stage, Stage::Working { .. }) && !windows.in_slow_start();
        if round_ends && steady && self.is_full() {
            self.shrink(windows);
        }
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        if !self.is_frozen() {
            windows.cwnd = (windows.cwnd + self.gain * f64::from(ack.acked)).min(windows.ssthresh);
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        if !self.is_frozen() && !self.is_full() {
            windows.cwnd += self.gain * f64::from(ack.acked) / windows.cwnd;
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        // In a slowdown the threshold is the window.
        let window = match self.stage {
            Stage::Frozen { .. } | Stage::Returning { .. } => windows.ssthresh,
            Stage::Initial | Stage::Working { .. } => windows.cwnd,
        };
        windows.reduce_to(window / 2.0, loss.cause);
        if self.stage == Stage::Initial {
            self.stage = Stage::Working { slowdown_at: path.now + path.srtt * 2 };
        }
    }

    /// The measurements stay.
    fn undo(&mut self, before: Self) {
        self.stage = before.stage;
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        match self.stage {
            Stage::Frozen { .. } | Stage::Returning { .. } => "slowdown",
            Stage::Initial | Stage::Working { .. } => windows.phase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A sender over a path of 20 ms, and the time in ms.
    struct Bench {
        sender: Classic<LedbatPlusPlus>,
        now: u64,
        acked: u64,
    }

    impl Bench {
        fn new(cwnd: f64, ssthresh: f64) -> Self {
            let rule = LedbatPlusPlus::new(Config::default());
            Self { sender: Classic::new(Windows { cwnd, ssthresh }, rule), now: 0, acked: 1 }
        }

        /// Delivers the ACKs of one window, as one, after a round trip with this queueing delay.
        fn round(&mut self, queue_ms: u64) -> f64 {
            let acked = self.sender.windows.cwnd as u32;
            self.now += 20 + queue_ms;
            self.acked += u64::from(acked);
            let path = Path {
                now: Instant::ZERO + MS(self.now),
                min_rtt: MS(20),
                srtt: MS(20),
                snd_una: self.acked,
                snd_nxt: self.acked,
                ..fixture::path()
            };
            self.sender.rule.recent = [MS(20 + queue_ms); CURRENT];
            let ack = Ack { rtt: Some(MS(20 + queue_ms)), ..fixture::ack(acked) };
            self.sender.on_ack(&ack, &path);
            self.sender.windows.cwnd
        }

        /// Skips the slowdowns.
        fn working(cwnd: f64) -> Self {
            let mut bench = Self::new(cwnd, cwnd);
            bench.sender.rule.stage = Stage::Working { slowdown_at: Instant::FAR_FUTURE };
            bench.sender.rule.base.observe(&Ack { rtt: Some(MS(20)), ..fixture::ack(1) }, &fixture::path());
            bench
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn the_gain_is_smaller_on_short_paths() {
        let of = |base_ms| 1.0 / gain(0.06, MS(base_ms));
        assert_eq!([1, 7, 8, 20, 60, 119, 120, 550].map(of), [16.0, 16.0, 15.0, 6.0, 2.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_delay_is_the_minimum_of_the_last_four_samples() {
        let mut rule = LedbatPlusPlus::new(Config::default());
        for (rtt_ms, delay) in
            [(20, 0.0), (110, 0.0), (90, 0.0), (120, 0.0), (130, 0.07), (140, 0.07), (150, 0.1)]
        {
            rule.measure(&Ack { rtt: Some(MS(rtt_ms)), ..fixture::ack(1) }, &fixture::path());
            close(rule.delay, delay);
        }
    }

    #[test]
    fn below_the_target_a_round_trip_adds_the_gain() {
        close(Bench::working(100.0).round(60), 100.0 + 1.0 / 6.0);
    }

    #[test]
    fn above_the_target_the_window_shrinks_by_the_excess_and_at_most_by_half() {
        close(Bench::working(100.0).round(66), 100.0 + 1.0 / 6.0 - 10.0);
        close(Bench::working(100.0).round(84), 100.0 + 1.0 / 6.0 - 40.0);
        close(Bench::working(100.0).round(90), 100.0 + 1.0 / 6.0 - 50.0);
        close(Bench::working(100.0).round(240), 50.0);
        close(Bench::working(3.0).round(240), 2.0);
    }

    #[test]
    fn the_initial_slow_start_grows_by_the_gain_and_ends_at_three_quarters_of_the_target() {
        let mut bench = Bench::new(12.0, f64::INFINITY);
        close(bench.round(0), 14.0);
        bench.round(45);
        assert_eq!(bench.sender.rule.stage, Stage::Initial);
        bench.round(46);
        assert_eq!(bench.sender.rule.stage, Stage::Working { slowdown_at: Instant::ZERO + MS(151 + 40) });
        assert!(!bench.sender.windows.in_slow_start());
    }

    #[test]
    fn a_slowdown_follows_slow_start_and_each_next_one_after_nine_times_its_length() {
        let mut bench = Bench::new(6.0, f64::INFINITY);
        bench.round(0);
        bench.round(46);
        assert!((bench.round(0) - 7.0).abs() < 0.5, "{}", bench.sender.windows.cwnd);
        let windows_before = bench.sender.windows.cwnd;
        bench.round(0);
        assert_eq!(
            bench.sender.rule.stage,
            Stage::Frozen { since: Instant::ZERO + MS(126), until: Instant::ZERO + MS(166) }
        );
        close(bench.round(0), 2.0);
        // Slow start with a gain of 1/6.
        close(bench.round(0), 2.0 + 2.0 / 6.0);
        while bench.sender.windows.in_slow_start() {
            bench.round(0);
        }
        close(bench.sender.windows.cwnd, windows_before);
        bench.round(0);
        let ended = Instant::ZERO + MS(bench.now);
        let slowdown_at = ended + MS(bench.now - 126) * 9;
        assert_eq!(bench.sender.rule.stage, Stage::Working { slowdown_at });
    }

    #[test]
    fn a_loss_in_a_slowdown_halves_the_window_before_it() {
        let mut bench = Bench::new(2.0, 40.0);
        let until = Instant::FAR_FUTURE;
        bench.sender.rule.stage = Stage::Frozen { since: Instant::ZERO, until };
        bench.sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!(bench.sender.windows, Windows { cwnd: 2.0, ssthresh: 20.0 });
    }
}
