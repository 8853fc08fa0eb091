//! TCP New Vegas: Vegas for long round trips, with paced pairs of segments and rapid window convergence.
//!
//! J. Sing, B. Soh, "TCP New Vegas: Improving the Performance of TCP Vegas Over High Latency Links", IEEE NCA 2005, and "TCP New
//! Vegas: Performance Evaluation and Validation", IEEE ISCC 2006.
//!
//! | paper                     | here                                | unit     |
//! |---------------------------|-------------------------------------|----------|
//! | α, β, γ                   | [`Config::alpha`], `beta`, `gamma`  | segments |
//! | Diff                      | `Measured::delta`                   | segments |
//! | pair                      | [`CongestionControl::spacing`]            | segments |
//! | gap between pairs, `2 RTT / W` | [`CongestionControl::spacing`]          | bytes / s |
//! | step of the convergence   | `Steps::size`                       | segments |
//!
//! It makes three changes to [Vegas](crate::vegas). *Pacing*: a burst of the sender does not look like a queue. *Packet pairing*:
//! a receiver that acknowledges every second segment replies at once, without its timer. *Rapid window convergence*: a slow start
//! that ended too early costs fewer round trips than one per segment.

use alloc::boxed::Box;

use bentpipe_base::{Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, not_negative, positive};
use crate::parts::epoch::{Epoch, Growth, Measured, SMALLEST, hold_between, leave_slow_start};
use crate::parts::fine_timeout::FineTimeout;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Entry, Family, Loss,
    Path, Phase, Priority, Requirements, Rule, SENDER_ONLY, Sent, Spacing, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "new-vegas",
    title: "Vegas for long round trips: spaced pairs of segments and rapid window convergence",
    paper: "Sing, Soh, ISCC 2006 and IEEE NCA",
    year: 2005,
    in_kernel: true,
    family: Family::Delay,
    advice: "For long round trips; its flows share equally. Senders that fill queues displace it.",
    ..SENDER_ONLY
};

/// Parameters of TCP New Vegas.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Grow while fewer segments than this are queued.
    #[serde(deserialize_with = "positive")]
    pub alpha: f64,
    /// Shrink while more segments than this are queued.
    #[serde(deserialize_with = "positive")]
    pub beta: f64,
    /// End slow start when more segments than this are queued.
    #[serde(deserialize_with = "positive")]
    pub gamma: f64,
    /// First step of the rapid convergence as a fraction of the window.
    #[serde(deserialize_with = "fraction")]
    pub convergence_share: f64,
    /// Growth factor of the convergence steps while the path has room. With 1 all steps are equal. With 2 they double until the
    /// path is full, then halve.
    #[serde(deserialize_with = "positive")]
    pub convergence_growth: f64,
    /// Maximum duration of the rapid convergence in round trips.
    pub convergence_rounds: u32,
    /// Segments sent back to back: 2 for pairs, 1 for pacing alone.
    pub pair: u32,
    /// Pacing rate in windows per round trip.
    #[serde(deserialize_with = "positive")]
    pub pace_gain: f64,
    /// Round-trip time that represents a round.
    pub delay: Delay,
    /// Length of the base round-trip time filter in seconds; 0 never forgets.
    #[serde(deserialize_with = "not_negative")]
    pub base_rtt_window_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            beta: 3.0,
            gamma: 1.0,
            convergence_share: 0.125,
            convergence_growth: 1.0,
            convergence_rounds: 16,
            pair: 2,
            pace_gain: 1.0,
            delay: Delay::Mean,
            base_rtt_window_s: 0.0,
        }
    }
}

/// Round-trip time that represents a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// Mean of the round-trip samples of a round.
    Mean,
    /// The minimum: variations by the frames of a TDMA channel do not look like a queue.
    Smallest,
}

impl Config {
    /// A New Vegas sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, NewVegas::new(*self)))
    }
}

/// Windows up to this size end slow start without rapid convergence: its steps would be single segments.
const TOO_SMALL_TO_CONVERGE: f64 = 4.0;

/// State of the rapid convergence.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Steps {
    /// Segments that the next round may add or subtract.
    size: f64,
    /// Rounds so far.
    rounds: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    SlowStart,
    /// Rapid window convergence.
    Converging(Steps),
    Avoidance,
}

/// Vegas with pacing, pairing and rapid convergence.
#[derive(Clone, Copy, Debug)]
pub struct NewVegas {
    config: Config,
    stage: Stage,
    epoch: Epoch,
    growth: Growth,
    fine_timeout: FineTimeout,
    /// Pacing rate per segment of the window in bytes per second; 0 before the first round-trip sample.
    bytes_per_s_per_segment: f64,
}

impl NewVegas {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            stage: Stage::SlowStart,
            epoch: Epoch::new(config.base_rtt_window_s),
            growth: Growth::Doubling,
            fine_timeout: FineTimeout::new(),
            bytes_per_s_per_segment: 0.0,
        }
    }

    /// Handles the end of a round.
    fn decide(&mut self, windows: &mut Windows, measured: &Measured) {
        let delta = match self.config.delay {
            Delay::Mean => measured.delta,
            Delay::Smallest => libm::floor(measured.queued(windows.cwnd) + 0.5),
        };
        self.growth = match self.stage {
            Stage::SlowStart if windows.in_slow_start() => self.slow_start_round(delta, windows),
            Stage::Converging(steps) => self.converge(steps, delta, windows),
            Stage::SlowStart | Stage::Avoidance => {
                self.stage = Stage::Avoidance;
                hold_between(self.config.alpha, self.config.beta, delta, windows)
            }
        };
    }

    /// Doubles in every round. Vegas doubles in every second round because of its bursts, and pacing removes them.
    fn slow_start_round(&mut self, delta: f64, windows: &mut Windows) -> Growth {
        if delta <= self.config.gamma {
            return Growth::Doubling;
        }
        let small = windows.cwnd <= TOO_SMALL_TO_CONVERGE;
        leave_slow_start(windows);
        let step = (self.config.convergence_share * windows.cwnd).max(1.0);
        self.stage =
            if small { Stage::Avoidance } else { Stage::Converging(Steps { size: step, rounds: 0 }) };
        Growth::None
    }

    /// Keeps the step size while the path has room, and halves it at each sign of a full path.
    fn converge(&mut self, steps: Steps, delta: f64, windows: &mut Windows) -> Growth {
        let grows = delta < self.config.alpha;
        if delta > self.config.beta {
            windows.cwnd = (windows.cwnd - steps.size).max(SMALLEST);
        }
        let size = if grows { steps.size * self.config.convergence_growth } else { steps.size / 2.0 };
        let rounds = steps.rounds + 1;
        let over = size < 1.0 || rounds >= self.config.convergence_rounds;
        self.stage = if over { Stage::Avoidance } else { Stage::Converging(Steps { size, rounds }) };
        if grows { Growth::PerSegment(steps.size / windows.cwnd) } else { Growth::None }
    }

    /// True if the ACK covers whole pairs: half a pair may have waited for the receiver's timer.
    fn is_undelayed(&self, ack: &Ack, path: &Path) -> bool {
        let pair = u64::from(self.config.pair.max(1));
        let covered = path.snd_una.saturating_sub(1) / u64::from(path.mss.max(1));
        ack.acked > 1 || covered.is_multiple_of(pair)
    }

    fn stop_growing(&mut self) {
        self.growth = Growth::None;
        if matches!(self.stage, Stage::Converging(_)) {
            self.stage = Stage::Avoidance;
        }
    }
}

impl Rule for NewVegas {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.epoch.establish(path);
            self.note_rate(path);
        }
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.fine_timeout.on_ack(ack, path);
        self.note_rate(path);
        if ack.acked > 0
            && let Some(measured) = self.epoch.on_ack(path)
            && ack.phase != Phase::Recovery
        {
            self.decide(windows, &measured);
        }
        if let Some(rtt) = ack.rtt.filter(|_| self.is_undelayed(ack, path)) {
            self.epoch.sample(rtt, path);
        }
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        self.growth.slow_start(windows, ack);
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        self.growth.avoid(windows, ack);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Timeout {
            self.fine_timeout.mark_cut(path);
            self.stage = Stage::SlowStart;
            self.growth = Growth::Doubling;
            windows.halve(loss);
            windows.cwnd = SMALLEST;
        } else {
            self.stop_growing();
            windows.reduce_to(self.fine_timeout.lost(windows, path), loss.cause);
        }
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        match self.stage {
            Stage::SlowStart if windows.in_slow_start() => "slow-start",
            Stage::Converging(_) => "rapid-convergence",
            Stage::SlowStart | Stage::Avoidance => "congestion-avoidance",
        }
    }
}

/// A window set by Vegas, sent in paced pairs.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<NewVegas>,
}

impl Sender {
    fn new(windows: Windows, rule: NewVegas) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_rto, on_undo, adopt, on_event, snapshot);

    /// Paces the present window over a round trip; a doubled window is paced over the next.
    fn spacing(&self) -> Spacing {
        let NewVegas { config, bytes_per_s_per_segment, .. } = &self.classic.rule;
        let rate = config.pace_gain * self.classic.windows.cwnd * bytes_per_s_per_segment;
        match rate > 0.0 {
            true => Spacing::At { rate: Rate::from_bytes_per_s(rate), quantum: config.pair.max(1) },
            false => Spacing::None,
        }
    }

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        self.classic.rule.fine_timeout.sent(sent);
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        Requirements { sent: true, pacing: true, ..Requirements::default() }
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        Some(self)
    }
}

impl Detector for Sender {
    fn early_retransmit(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        let Classic { windows, rule, .. } = &mut self.classic;
        let before = windows.cwnd;
        let doubt = rule.fine_timeout.early_retransmit(windows, oldest_sent, path);
        if windows.cwnd < before {
            rule.stop_growing();
        }
        doubt
    }
}

impl NewVegas {
    fn note_rate(&mut self, path: &Path) {
        if !path.srtt.is_zero() {
            self.bytes_per_s_per_segment = f64::from(path.mss) / path.srtt_s();
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;

    use super::*;
    use crate::fixture;

    fn measured(delta: f64) -> Measured {
        let rtt = Duration::from_millis(600);
        Measured { base: rtt, rtt, min_rtt: rtt, samples: 8, delta }
    }

    /// Runs a round with this `delta`, and the ACKs of one window after it.
    fn round(rule: &mut NewVegas, windows: &mut Windows, delta: f64) {
        rule.decide(windows, &measured(delta));
        let ack = Ack { acked: windows.cwnd as u32, ..fixture::ack(1) };
        if windows.in_slow_start() {
            rule.slow_start(windows, &ack, &fixture::path());
        } else {
            rule.avoid(windows, &ack, &fixture::path());
        }
    }

    #[test]
    fn pairs_share_the_round_trip() {
        let windows = Windows { cwnd: 20.0, ssthresh: f64::INFINITY };
        let mut sender = Sender::new(windows, NewVegas::new(Config::default()));
        let path = Path { srtt: Duration::from_millis(600), ..fixture::path() };
        sender.on_event(ConnectionEvent::Established, &path);
        let Spacing::At { rate, quantum } = sender.spacing() else { panic!("it is spaced") };
        let gap = rate.time_for(u64::from(quantum) * u64::from(fixture::MSS));
        assert!((gap.as_secs_f64() - 0.06).abs() < 1e-6, "10 pairs in 0.6 s: {gap}");
    }

    #[test]
    fn rapid_convergence_reaches_in_seven_rounds_what_takes_vegas_twenty_one() {
        let mut rule = NewVegas::new(Config::default());
        let mut windows = Windows { cwnd: 64.0, ssthresh: f64::INFINITY };
        round(&mut rule, &mut windows, 2.0);
        assert_eq!((windows.cwnd, rule.stage), (56.0, Stage::Converging(Steps { size: 7.0, rounds: 0 })));
        let rounds =
            [(0.0, 63.0), (0.0, 70.0), (0.0, 77.0), (2.0, 77.0), (0.0, 80.5), (5.0, 77.0), (2.0, 77.0)];
        for (i, (delta, window)) in rounds.into_iter().enumerate() {
            assert!(matches!(rule.stage, Stage::Converging(_)), "round {i}");
            round(&mut rule, &mut windows, delta);
            assert!((windows.cwnd - window).abs() < 0.05, "round {i}: {}", windows.cwnd);
        }
        assert_eq!(rule.stage, Stage::Avoidance);
    }

    /// From 56 with a first step of 7: 63, 77, 105. Equal steps would reach 77.
    #[test]
    fn steps_that_double_reach_a_far_window_in_half_the_rounds() {
        let mut rule = NewVegas::new(Config { convergence_growth: 2.0, ..Config::default() });
        let mut windows = Windows { cwnd: 64.0, ssthresh: f64::INFINITY };
        round(&mut rule, &mut windows, 2.0);
        for window in [63.0, 77.0, 105.0] {
            round(&mut rule, &mut windows, 0.0);
            assert!((windows.cwnd - window).abs() < 0.05, "{}", windows.cwnd);
        }
        // The window is too large: the last step is reverted and halved.
        round(&mut rule, &mut windows, 5.0);
        assert!((windows.cwnd - 49.0).abs() < 0.05, "{}", windows.cwnd);
    }

    #[test]
    fn slow_start_doubles_every_round() {
        let mut rule = NewVegas::new(Config::default());
        let mut windows = Windows { cwnd: 2.0, ssthresh: f64::INFINITY };
        for expected in [4.0, 8.0, 16.0] {
            round(&mut rule, &mut windows, 0.0);
            assert_eq!(windows.cwnd, expected);
        }
    }

    #[test]
    fn a_small_window_does_not_converge_rapidly() {
        let mut rule = NewVegas::new(Config::default());
        let mut windows = Windows { cwnd: 4.0, ssthresh: f64::INFINITY };
        round(&mut rule, &mut windows, 2.0);
        assert_eq!((windows.cwnd, rule.stage), (3.5, Stage::Avoidance));
    }

    #[test]
    fn convergence_ends_after_its_rounds() {
        let mut rule = NewVegas::new(Config { convergence_rounds: 2, ..Config::default() });
        let mut windows = Windows { cwnd: 64.0, ssthresh: f64::INFINITY };
        for _ in 0..3 {
            round(&mut rule, &mut windows, 2.0);
            windows.cwnd = 64.0;
        }
        assert_eq!(rule.stage, Stage::Avoidance);
    }

    #[test]
    fn a_loss_ends_the_convergence_and_takes_a_quarter() {
        let mut windows = Windows { cwnd: 64.0, ssthresh: 2.0 };
        let mut rule = NewVegas::new(Config::default());
        rule.stage = Stage::Converging(Steps { size: 7.0, rounds: 1 });
        let path = Path { snd_nxt: 64_001, receive_window: 1000, ..fixture::path_at(1.0) };
        rule.reduce(&mut windows, &fixture::loss(64), &path);
        assert_eq!(windows.cwnd, 48.0);
        assert_eq!(rule.stage, Stage::Avoidance);
    }

    #[test]
    fn the_first_of_a_pair_is_no_sample() {
        let rule = NewVegas::new(Config::default());
        let at = |segments: u64| Path { snd_una: 1 + segments * 1000, ..fixture::path() };
        assert!(!rule.is_undelayed(&fixture::ack(1), &at(3)));
        assert!(rule.is_undelayed(&fixture::ack(1), &at(4)));
        assert!(rule.is_undelayed(&fixture::ack(2), &at(5)), "the receiver did not wait for its timer");
    }
}
