//! Copa: the target rate is inversely proportional to the queueing delay, and the window moves towards it.
//!
//! V. Arun, H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", USENIX NSDI 2018.
//!
//! | paper               | here                        | unit           |
//! |---------------------|-----------------------------|----------------|
//! | δ                   | `Copa::delta`, [`Config::delta`] | 1 / segment |
//! | RTTmin              | `Copa::min`                 | time           |
//! | RTTstanding         | `Copa::standing`            | time           |
//! | RTTmax              | `Copa::max`                 | time           |
//! | d_q                 | `Copa::queueing_delay_s`    | s              |
//! | λ_t = 1 / (δ d_q)   | `Copa::target`              | segments / s   |
//! | λ = cwnd / RTTstanding | `Copa::rate`             | segments / s   |
//! | v                   | `Velocity::v`               | -              |

use alloc::boxed::Box;
use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::parts::windowed::WindowedMax;
use crate::rounds::Round;
use crate::{
    Accounting, Ack, BackOff, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Requirements,
    SENDER_ONLY, Spacing, Start, Timeout, Undo, WindowState, Windows, state,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "copa",
    title: "steers the window to a rate that is the inverse of the queueing delay, and competes where it must",
    paper: "Arun, Balakrishnan, USENIX NSDI",
    year: 2018,
    in_kernel: true,
    family: Family::Delay,
    advice: "For links with errors, with RACK. With SACK its flows share the small queue badly, with RACK evenly. It displaces NewReno.",
    ..SENDER_ONLY
};

/// Parameters of Copa.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// δ of the default mode; about 1 / δ segments wait in the queue.
    #[serde(deserialize_with = "fraction")]
    pub delta: f64,
    /// Switch to competitive mode while other flows keep the queue full (section 2.2).
    pub competes: bool,
    /// Round trips within which the queue must be nearly empty at least once.
    #[serde(deserialize_with = "positive")]
    pub empty_rounds: f64,
    /// Fraction of the maximum queueing delay up to which the queue is nearly empty.
    #[serde(deserialize_with = "fraction")]
    pub nearly_empty: f64,
    /// Length of the RTTmin filter in seconds.
    #[serde(deserialize_with = "positive")]
    pub min_rtt_window_s: f64,
    /// Round trips with the window moving in the same direction after which the velocity doubles.
    pub steady_rounds: u32,
    /// Pacing rate in windows per RTTstanding.
    #[serde(deserialize_with = "positive")]
    pub pace_gain: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            delta: 0.5,
            competes: true,
            empty_rounds: 5.0,
            nearly_empty: 0.1,
            min_rtt_window_s: 10.0,
            steady_rounds: 3,
            pace_gain: 2.0,
        }
    }
}

impl Config {
    /// A Copa sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Copa::new(*self, start.initial_window))
    }
}

/// Minimum window in segments, except for the one segment after a timeout.
const SMALLEST: f64 = 2.0;
/// Length of the RTTmax filter in round trips.
const MAX_RTT_ROUNDS: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// δ is the configured value; losses are ignored.
    Default,
    /// 1 / δ grows by 1 per round trip and halves at a loss, as Reno's window does.
    Competitive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Up,
    Down,
}

/// Speed of the window's change, which rises while the window moves in the same direction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Velocity {
    v: f64,
    direction: Direction,
    /// Round trips in this direction.
    rounds: u32,
    /// Window at the time when the segments acknowledged now were sent.
    window_before: f64,
}

impl Velocity {
    /// Handles the end of a round trip (section 2.1 step 3).
    fn round(&mut self, window: f64, steady_rounds: u32) {
        let direction = if window > self.window_before { Direction::Up } else { Direction::Down };
        self.window_before = window;
        if direction == self.direction {
            self.rounds = self.rounds.saturating_add(1);
        } else {
            *self = Self { v: 1.0, direction, rounds: 0, ..*self };
        }
        if self.rounds >= steady_rounds {
            // The window never moves faster than in slow start, so a larger v has no effect.
            self.v = (2.0 * self.v).min(window.max(1.0));
        }
    }
}

/// A Copa sender.
#[derive(Clone, Debug)]
pub struct Copa {
    config: Config,
    cwnd: f64,
    slow_start: bool,
    mode: Mode,
    delta: f64,
    velocity: Velocity,
    round: Round,
    min: WindowedMax<Reverse<Duration>>,
    standing: WindowedMax<Reverse<Duration>>,
    max: WindowedMax<Duration>,
    nearly_empty_at: Instant,
    lost_in_round: bool,
    mss: f64,
    /// State before the last reduction.
    before: Option<Before>,
}

/// State that a loss or a timeout changes.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: f64,
    slow_start: bool,
    delta: f64,
    velocity: Velocity,
}

impl Copa {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, initial_window: f64) -> Self {
        let min_window = Duration::from_secs_f64(config.min_rtt_window_s).as_nanos();
        Self {
            config,
            cwnd: initial_window,
            slow_start: true,
            mode: Mode::Default,
            delta: config.delta,
            velocity: Velocity { v: 1.0, direction: Direction::Up, rounds: 0, window_before: initial_window },
            round: Round::default(),
            min: WindowedMax::new(min_window),
            standing: WindowedMax::new(0),
            max: WindowedMax::new(0),
            nearly_empty_at: Instant::ZERO,
            lost_in_round: false,
            mss: 0.0,
            before: None,
        }
    }

    /// Updates the three filters: RTTmin over ten seconds, RTTstanding over half a round trip, RTTmax over four.
    fn sample(&mut self, rtt: Duration, path: &Path) {
        let now = path.now.as_nanos();
        self.min.update(now, Reverse(rtt));
        self.standing.set_window((path.srtt / 2).as_nanos());
        self.standing.update(now, Reverse(rtt));
        self.max.set_window((path.srtt * MAX_RTT_ROUNDS).as_nanos());
        self.max.update(now, rtt);
        let (Some(Reverse(min)), Some(max)) = (self.min.get(), self.max.get()) else { return };
        if rtt <= min + max.saturating_sub(min).mul_f64(self.config.nearly_empty) {
            self.nearly_empty_at = path.now;
        }
    }

    fn standing_s(&self) -> Option<f64> {
        self.standing.get().map(|Reverse(rtt)| rtt.as_secs_f64()).filter(|rtt| *rtt > 0.0)
    }

    fn queueing_delay_s(&self) -> f64 {
        match (self.standing.get(), self.min.get()) {
            (Some(Reverse(standing)), Some(Reverse(min))) => standing.saturating_sub(min).as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Target rate λ_t; infinite without queueing delay.
    fn target(&self) -> f64 {
        1.0 / (self.delta * self.queueing_delay_s())
    }

    /// Returns the sending rate λ: one window per standing RTT.
    fn rate(&self) -> f64 {
        self.standing_s().map_or(0.0, |standing| self.cwnd / standing)
    }

    /// Handles one ACK (section 2.1 steps 1 and 2).
    fn steer(&mut self, acked: f64, window_limited: bool) {
        let up = self.rate() <= self.target();
        if self.slow_start && up {
            self.cwnd += if window_limited { acked } else { 0.0 };
            return;
        }
        self.slow_start = false;
        let step = (acked * self.velocity.v / (self.delta * self.cwnd)).min(acked);
        if !up {
            self.cwnd = (self.cwnd - step).max(SMALLEST);
        } else if window_limited {
            self.cwnd += step;
        }
    }

    fn remember(&mut self) {
        let Self { cwnd, slow_start, delta, velocity, .. } = *self;
        self.before = Some(Before { cwnd, slow_start, delta, velocity });
    }

    /// Updates velocity, mode and δ once per round trip.
    fn end_round(&mut self, path: &Path) {
        if self.slow_start {
            self.velocity.window_before = self.cwnd;
        } else {
            self.velocity.round(self.cwnd, self.config.steady_rounds);
        }
        let patience = path.srtt.mul_f64(self.config.empty_rounds);
        let crowded = path.now.since(self.nearly_empty_at) > patience;
        let before = self.mode;
        self.mode = if self.config.competes && crowded { Mode::Competitive } else { Mode::Default };
        let lost = core::mem::take(&mut self.lost_in_round);
        self.delta = match (before, self.mode) {
            (_, Mode::Default) => self.config.delta,
            (Mode::Competitive, Mode::Competitive) if !lost => 1.0 / (1.0 / self.delta + 1.0),
            _ => self.delta,
        };
    }
}

impl CongestionControl for Copa {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn adopt(&mut self, windows: Windows) {
        self.cwnd = windows.cwnd.max(SMALLEST);
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.mss = f64::from(path.mss);
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.sample(rtt, path);
        }
        if ack.acked > 0 && self.round.ends(path) {
            self.end_round(path);
        }
        let delivered = f64::from(ack.acked + ack.sacked);
        if delivered > 0.0 {
            self.steer(delivered, ack.window_limited);
        }
    }

    /// Section 2.2: a loss changes only δ of the competitive mode, to at most twice the default.
    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {
        self.remember();
        self.lost_in_round = true;
        if self.mode == Mode::Competitive {
            self.delta = (2.0 * self.delta).min(self.config.delta);
        }
    }

    fn on_rto(&mut self, timeout: &Timeout, _path: &Path) -> BackOff {
        if timeout.consecutive == 1 {
            self.remember();
        }
        self.cwnd = 1.0;
        self.slow_start = true;
        self.velocity = Velocity { v: 1.0, direction: Direction::Up, rounds: 0, window_before: 1.0 };
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        let bytes_per_s = self.config.pace_gain * self.rate() * self.mss;
        Spacing::at((bytes_per_s > 0.0).then(|| Rate::from_bytes_per_s(bytes_per_s)))
    }

    /// Keeps a window that has outgrown the one before the reduction.
    fn on_undo(&mut self, _undo: Undo, _path: &Path) {
        let Some(before) = self.before.take() else { return };
        self.lost_in_round = false;
        self.delta = self.delta.min(before.delta);
        if before.cwnd > self.cwnd {
            self.cwnd = before.cwnd;
            self.slow_start = before.slow_start;
            self.velocity = before.velocity;
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event != ConnectionEvent::Established {
            return;
        }
        self.mss = f64::from(path.mss);
        self.nearly_empty_at = path.now;
        if !path.srtt.is_zero() {
            self.sample(path.srtt, path);
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.mode {
            _ if self.slow_start => "slow-start",
            Mode::Default => "default",
            Mode::Competitive => "competitive",
        };
        state(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn copa(cwnd: f64) -> Copa {
        let mut copa = Copa::new(Config::default(), cwnd);
        copa.on_event(ConnectionEvent::Established, &fixture::path());
        copa.slow_start = false;
        copa
    }

    fn at(milliseconds: u64) -> Path {
        Path { now: Instant::ZERO + Duration::from_millis(milliseconds), snd_una: 0, ..fixture::path() }
    }

    fn ack(rtt_ms: u64) -> Ack {
        Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) }
    }

    #[test]
    fn the_target_is_the_inverse_of_the_queueing_delay() {
        // 10 ms of queueing: 1 / (0.5 * 0.01) = 200 segments per second, 112 segments in 0.56 s.
        for (cwnd, after) in [(100.0, 100.02), (112.5, 112.5 - 2.0 / 112.5)] {
            let mut copa = copa(cwnd);
            copa.on_ack(&ack(560), &at(1000));
            assert!((copa.target() - 200.0).abs() < 1e-6, "{}", copa.target());
            assert!((copa.window() - after).abs() < 1e-9, "{}", copa.window());
        }
    }

    #[test]
    fn an_empty_queue_has_no_limit() {
        let mut copa = copa(10_000.0);
        copa.on_ack(&ack(550), &at(1000));
        assert!(copa.target().is_infinite() && copa.window() > 10_000.0);
    }

    #[test]
    fn slow_start_doubles_until_the_rate_passes_the_target() {
        let mut copa = Copa::new(Config::default(), 10.0);
        copa.on_event(ConnectionEvent::Established, &fixture::path());
        for _ in 0..10 {
            copa.on_ack(&ack(550), &at(550));
        }
        assert_eq!((copa.window(), copa.snapshot().phase), (20.0, "slow-start"));
        copa.on_ack(&ack(750), &at(1200));
        assert_eq!(copa.snapshot().phase, "default", "20 / 0.75 s is more than 10 a second");
        assert!(copa.window() < 20.0);
    }

    #[test]
    fn velocity_doubles_after_three_round_trips_and_falls_with_the_direction() {
        let mut velocity = Velocity { v: 1.0, direction: Direction::Up, rounds: 0, window_before: 100.0 };
        let mut seen = [0.0; 7];
        for (slot, window) in seen.iter_mut().zip([101.0, 102.0, 103.0, 105.0, 109.0, 108.0, 107.0]) {
            velocity.round(window, 3);
            *slot = velocity.v;
        }
        assert_eq!(seen, [1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0]);
    }

    #[test]
    fn a_loss_means_nothing_in_the_default_mode() {
        let mut copa = copa(100.0);
        copa.on_loss(&fixture::loss(100), &at(0));
        assert_eq!((copa.window(), copa.delta), (100.0, 0.5));
    }

    #[test]
    fn a_timeout_that_was_none_gives_the_window_back() {
        let mut copa = copa(100.0);
        for consecutive in 1..=2 {
            let timeout = Timeout { consecutive, outstanding: 100, answered: false };
            copa.on_rto(&timeout, &at(0));
        }
        assert_eq!((copa.window(), copa.snapshot().phase), (1.0, "slow-start"));
        copa.on_undo(Undo::Reduction, &at(100));
        assert_eq!((copa.window(), copa.snapshot().phase), (100.0, "default"));
        copa.on_undo(Undo::Reduction, &at(200));
        assert_eq!(copa.window(), 100.0, "once");
    }

    /// Round trips of 700 ms whose delay never falls: RTTmax is 1 s, RTTmin 550 ms.
    fn crowd(copa: &mut Copa, from: u64, rounds: u64) {
        for round in from..from + rounds {
            let path = Path { snd_una: 1 + round * 10, snd_nxt: 1 + round * 10 + 5, ..at(round * 700) };
            copa.on_ack(&ack(1000), &path);
            copa.on_ack(&ack(900), &path);
        }
    }

    #[test]
    fn a_queue_that_never_empties_asks_for_competition() {
        let mut copa = copa(100.0);
        crowd(&mut copa, 1, 3);
        assert_eq!(copa.snapshot().phase, "default");
        crowd(&mut copa, 4, 4);
        assert_eq!(copa.snapshot().phase, "competitive");
        assert!(copa.delta < 0.5, "1 / delta grows by one a round trip");
        let before = copa.delta;
        copa.on_loss(&fixture::loss(100), &at(6000));
        assert_eq!(copa.delta, (2.0 * before).min(0.5));
    }

    #[test]
    fn an_empty_queue_ends_the_competition() {
        let mut copa = copa(100.0);
        crowd(&mut copa, 1, 8);
        copa.on_ack(&ack(555), &Path { snd_una: 1000, snd_nxt: 1010, ..at(6500) });
        copa.on_ack(&ack(555), &Path { snd_una: 1020, snd_nxt: 1030, ..at(7200) });
        assert_eq!((copa.snapshot().phase, copa.delta), ("default", 0.5));
    }

    #[test]
    fn segments_are_spaced_at_twice_the_rate() {
        let mut copa = copa(100.0);
        copa.on_ack(&ack(550), &at(1000));
        let expected = 2.0 * copa.window() * 1000.0 / 0.55;
        assert!((copa.spacing().rate().unwrap().bytes_per_s() - expected).abs() < 1.0);
    }
}
