//! BBR version 1: the maximum delivery rate and minRTT model the path, and the model sets rate and window.
//!
//! N. Cardwell, Y. Cheng, S. Hassas Yeganeh, V. Jacobson, "BBR Congestion Control",
//! draft-cardwell-iccrg-bbr-congestion-control-00, 2017; N. Cardwell et al., "BBR: Congestion-Based Congestion Control",
//! ACM Queue 14(5), 2016.
//!
//! | draft                    | here                           | unit        |
//! |--------------------------|--------------------------------|-------------|
//! | `BBR.BtlBw`              | `Bbr::bottleneck`              | bytes / s   |
//! | `BBR.RTprop`, its stamp  | `Bbr::rtprop`, `rtprop_at`     | time        |
//! | `BBR.pacing_gain`        | `Bbr::pacing_gain`             | -           |
//! | `BBR.cwnd_gain`          | `Bbr::cwnd_gain`               | -           |
//! | `BBR.round_count`        | `DeliveryRound::count`         | round trips |
//! | `BBR.filled_pipe`        | `Bbr::filled_pipe`             | -           |
//! | `BBR.full_bw`            | `Plateau`                      | bytes / s   |
//! | `BBR.cycle_index`, `cycle_stamp` | `State::ProbeBandwidth` | -, time    |
//! | `BBR.packet_conservation` | `Recovery::Conserving`        | -           |
//! | `BBR.prior_cwnd`         | `Bbr::prior_cwnd`              | segments    |
//! | `BBR.target_cwnd`        | `Bbr::inflight`                | segments    |
//! | `BBR.send_quantum`       | `Bbr::send_quantum`            | segments    |
//!
//! `bbr/cycle.rs` has the state machine, `bbr/control.rs` rate and window. `bbr/linux.rs` adds the profile `linux`, `bbr/leo.rs` and
//! `bbr/reconfiguration.rs` the additions of LeoCC.

mod control;
mod cycle;
mod leo;
mod linux;
mod reconfiguration;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use serde::{Deserialize, Serialize};

pub use self::leo::Arithmetic;
use self::leo::Leo;
pub(super) use self::leo::LeoConfig;
use self::linux::{Acked, Aggregation, Counted, Policer, Sign};
use crate::parameters::{fraction, positive};
use crate::parts::plateau::Plateau;
use crate::parts::windowed::WindowedMax;
use crate::rounds::DeliveryRound;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Feedback, Loss, Path,
    RateSample, Requirements, SENDER_ONLY, Spacing, Start, Timeout, Undo, WindowState, state,
};

/// Variant of version 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The Internet draft.
    #[default]
    Draft,
    /// The Linux kernel module. It adds room for aggregated ACKs, a rate 1 % lower, and detection of a policer's rate. It ignores
    /// bandwidth samples of the first flight, and a timeout ends a round.
    Linux,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "bbr",
    title: "models the path by its delivery rate and round-trip time, and paces by the model (version 1)",
    paper: "draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue 14(5)",
    year: 2017,
    family: Family::Model,
    advice: "For any error rate on an unshared link. Not for small queues shared with loss-based senders, which it leaves almost nothing.",
    ..SENDER_ONLY
};

/// Parameters of BBR version 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Startup gain of rate and window, 2 / ln 2: the smallest gain that doubles the rate per round trip (section 4.3.2.1).
    #[serde(deserialize_with = "positive")]
    pub startup_gain: f64,
    /// Gain of the rate in Drain (section 4.3.3).
    #[serde(deserialize_with = "fraction")]
    pub drain_gain: f64,
    /// Gain of the window while probing for bandwidth (section 4.3.4.3).
    #[serde(deserialize_with = "positive")]
    pub cwnd_gain: f64,
    /// Length of the bandwidth filter in rounds (section 4.1.1.3).
    pub bandwidth_rounds: u32,
    /// Length of the RTprop filter in seconds (section 4.1.2.3).
    #[serde(deserialize_with = "positive")]
    pub rtprop_window_s: f64,
    /// Duration of ProbeRTT in seconds: a small window to measure the round-trip time anew (section 4.3.5).
    #[serde(deserialize_with = "positive")]
    pub probe_rtt_s: f64,
    /// Minimum window in segments, also the window of ProbeRTT (section 4.2.3.3).
    #[serde(deserialize_with = "positive")]
    pub min_window: f64,
    /// Variant of version 1.
    pub profile: Profile,
}

impl Default for Config {
    fn default() -> Self {
        let startup_gain = 2.0 / core::f64::consts::LN_2;
        Self {
            startup_gain,
            drain_gain: 1.0 / startup_gain,
            cwnd_gain: 2.0,
            bandwidth_rounds: 10,
            rtprop_window_s: 10.0,
            probe_rtt_s: 0.2,
            min_window: 4.0,
            profile: Profile::Draft,
        }
    }
}

impl Config {
    /// A BBR sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Bbr::new(*self, start))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth {
        index: usize,
        since: Instant,
    },
    /// Waiting until at most the minimum window is in flight.
    EmptyForRtt,
    /// Holding the minimum window until `until`, and at least for one round trip.
    ProbeRtt {
        until: Instant,
        round_done: bool,
    },
}

/// Effect of a loss on the window (section 4.2.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    None,
    /// First round of fast recovery: one segment leaves per delivered segment. It ends at `until` delivered bytes.
    Conserving {
        round: DeliveryRound,
    },
    /// The window grows by the delivered segments until the episode ends.
    Growing,
}

/// A BBR sender.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: Config,
    mss: f64,
    initial_window: f64,
    rng: Rng,
    state: State,
    recovery: Recovery,
    bandwidth: WindowedMax<f64>,
    rtprop: Duration,
    rtprop_at: Instant,
    round: DeliveryRound,
    plateau: Plateau,
    filled_pipe: bool,
    cwnd: f64,
    prior_cwnd: f64,
    /// Pacing rate in bytes per second.
    pacing: f64,
    idle_restart: bool,
    /// Delivered bytes before which samples are ignored for the bandwidth: ProbeRTT's small window limited them.
    limited_until: u64,
    /// State of Linux's variant; `None` unless [`Profile::Linux`] is set.
    linux: Option<Kernel>,
    /// State of LeoCC; `None` for BBR.
    leo: Option<Leo>,
}

/// State of [`Profile::Linux`].
#[derive(Clone, Copy, Debug, Default)]
struct Kernel {
    aggregation: Aggregation,
    policer: Policer,
    /// Segments marked lost since the connection began.
    lost: f64,
    /// True if a timeout ended the round.
    timed_out: bool,
}

/// Effect of one ACK on the model.
#[derive(Clone, Copy, Debug)]
struct Step {
    round_start: bool,
    app_limited: bool,
    /// Segments newly delivered.
    delivered: f64,
    /// In-flight segments before the ACK.
    prior_in_flight: f64,
    lost: f64,
    rtt: Option<Duration>,
}

impl Bbr {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        Self {
            config,
            mss: f64::from(start.mss.max(1)),
            initial_window: start.initial_window,
            rng: Rng::stream(start.seed, "bbr"),
            state: State::Startup,
            recovery: Recovery::None,
            bandwidth: WindowedMax::new(u64::from(config.bandwidth_rounds)),
            rtprop: Duration::MAX,
            rtprop_at: Instant::ZERO,
            round: DeliveryRound::default(),
            plateau: Plateau::default(),
            filled_pipe: false,
            cwnd: start.initial_window,
            prior_cwnd: 0.0,
            pacing: 0.0,
            idle_restart: false,
            limited_until: 0,
            linux: (config.profile == Profile::Linux).then(Kernel::default),
            leo: None,
        }
    }

    /// Adds LeoCC's reactions to reconfigurations.
    pub(super) fn with_leo(self, config: LeoConfig) -> Self {
        Self { leo: Some(Leo::new(config)), ..self }
    }

    #[cfg(test)]
    pub(super) fn rtprop(&self) -> Duration {
        self.rtprop
    }

    /// Returns the rate that the model uses: the policer's or LeoCC's filtered rate if one is known.
    fn modelled(&self) -> f64 {
        if let Some(filtered) = self.filtered() {
            return filtered;
        }
        let policed = self.linux.as_ref().and_then(|linux| linux.policer.rate());
        policed.map_or_else(|| self.bottleneck(), |segments_per_s| segments_per_s * self.mss)
    }

    fn bottleneck(&self) -> f64 {
        self.bandwidth.get().unwrap_or(0.0)
    }

    fn is_policed(&self) -> bool {
        self.linux.as_ref().is_some_and(|linux| linux.policer.rate().is_some())
    }

    fn probes_rtt(&self) -> bool {
        matches!(self.state, State::EmptyForRtt | State::ProbeRtt { .. })
    }
}

/// The model of the path, section 4.1.
impl Bbr {
    fn update_model(&mut self, ack: &Ack, path: &Path) -> Step {
        let delivered = ack.delivered_bytes as f64 / self.mss;
        let lost = f64::from(ack.lost);
        let prior_in_flight = f64::from(path.in_flight) + delivered + lost;
        let rtt = ack.rtt;
        let mut step = Step { round_start: false, app_limited: true, delivered, prior_in_flight, lost, rtt };
        if let Some(sample) = &ack.rate {
            step.round_start = self.round.ends(sample.prior_delivered, path.delivered);
            step.app_limited = sample.app_limited || sample.prior_delivered < self.limited_until;
            if let Some(linux) = &mut self.linux {
                // The initial window limited the segments that left before the first ACK.
                step.app_limited |= sample.prior_delivered == 0;
                step.round_start |= core::mem::take(&mut linux.timed_out);
            }
            self.seek_policer(&step, path);
            self.follow_rate(sample.rate().bytes_per_s(), ack, &step);
            self.update_bottleneck(sample, step.app_limited);
        }
        step
    }

    /// Section 4.1.1.5: an application-limited sample counts only if it raises the estimate.
    fn update_bottleneck(&mut self, sample: &RateSample, app_limited: bool) {
        let rate = sample.rate().bytes_per_s();
        if rate >= self.bottleneck() || !app_limited {
            self.bandwidth.update(self.round.count, rate);
        }
    }

    /// Runs the kernel's long-term sampling for an ACK or a timeout.
    fn seek_policer(&mut self, step: &Step, path: &Path) {
        let (probes, mss) = (matches!(self.state, State::ProbeBandwidth { .. }), self.mss);
        // LeoCC has no detection of policers.
        let Some(linux) = self.linux.as_mut().filter(|_| self.leo.is_none()) else { return };
        linux.lost += step.lost;
        let counted = Counted { now: path.now, delivered: path.delivered as f64 / mss, lost: linux.lost };
        let Step { round_start, app_limited, lost, .. } = *step;
        let sign = Sign { counted, round_start, app_limited, losses: lost > 0.0 };
        if linux.policer.on_ack(sign, probes, mss) {
            self.enter_probe_bandwidth(path);
        }
    }

    /// Measures ACK aggregation.
    fn update_aggregation(&mut self, step: &Step, path: &Path) {
        let (rate, cwnd) = (self.modelled() / self.mss, self.cwnd);
        if let Some(linux) = &mut self.linux
            && step.delivered > 0.0
        {
            let acked = Acked { segments: step.delivered, round_start: step.round_start };
            linux.aggregation.on_ack(path.now, acked, rate, cwnd);
        }
    }

    /// Checks in Startup whether the bandwidth still grows (section 4.3.2.2).
    fn check_full_pipe(&mut self, step: &Step) {
        if !self.filled_pipe && step.round_start && !step.app_limited {
            self.plateau.round(self.bottleneck());
            self.filled_pipe = self.plateau.is_reached();
        }
    }

    /// Section 4.1.2.3. Returns true if the RTprop estimate has expired.
    fn update_rtprop(&mut self, ack: &Ack, path: &Path) -> bool {
        let window = Duration::from_secs_f64(self.config.rtprop_window_s);
        let expired = path.now > self.rtprop_at + window;
        if let Some(rtt) = ack.rtt.filter(|rtt| *rtt <= self.rtprop || expired) {
            self.rtprop = rtt;
            self.rtprop_at = path.now;
        }
        expired
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.follow_clock(path);
        let step = self.update_model(ack, path);
        self.update_aggregation(&step, path);
        self.check_cycle(&step, path);
        self.check_full_pipe(&step);
        self.check_drain(path);
        let expired = self.update_rtprop(ack, path);
        self.check_probe_rtt(expired, &step, path);
        self.follow_rtt(ack);
        self.set_pacing(self.pacing_gain());
        self.follow_recovery(ack);
        self.set_cwnd(&step, path);
    }

    /// Section 4.2.3.4. Version 1 ignores marks.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Mark {
            return;
        }
        self.save_cwnd();
        self.cwnd = f64::from(path.in_flight) + 1.0;
        let mut round = DeliveryRound::default();
        round.restart(path.delivered);
        self.recovery = Recovery::Conserving { round };
    }

    /// In the kernel, a timeout also ends a round with a loss and restarts the full-pipe test.
    fn on_rto(&mut self, _timeout: &Timeout, path: &Path) -> BackOff {
        self.save_cwnd();
        self.recovery = Recovery::Growing;
        self.cwnd = 1.0;
        if let Some(linux) = &mut self.linux {
            linux.timed_out = true;
            self.plateau = Plateau::default();
            let step = Step {
                round_start: true,
                app_limited: false,
                delivered: 0.0,
                prior_in_flight: f64::from(path.in_flight),
                lost: 1.0,
                rtt: None,
            };
            self.seek_policer(&step, path);
        }
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at((self.pacing > 0.0).then(|| Rate::from_bytes_per_s(self.pacing)))
    }

    fn on_undo(&mut self, _undo: Undo, _path: &Path) {
        self.recovery = Recovery::None;
        self.restore_cwnd();
        if let Some(linux) = &mut self.linux {
            linux.policer = Policer::default();
            self.plateau = Plateau::default();
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => self.begin(path),
            ConnectionEvent::Idle { .. } => self.restart_from_idle(path),
            _ => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBandwidth { .. } => "probe-bw",
            State::EmptyForRtt | State::ProbeRtt { .. } => "probe-rtt",
        };
        state(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        self.leo.is_some().then_some(self)
    }
}

impl Bbr {
    /// Sections 4.2.1 and 4.1.2: the first rate follows from the initial window and the handshake's round trip.
    fn begin(&mut self, path: &Path) {
        self.rtprop_at = path.now;
        if let Some(linux) = &mut self.linux {
            linux.aggregation.restart(path.now);
        }
        let srtt = if path.srtt.is_zero() {
            Duration::from_millis(1)
        } else {
            self.rtprop = path.srtt;
            path.srtt
        };
        self.pacing = self.config.startup_gain * self.initial_window * self.mss / srtt.as_secs_f64();
    }

    /// Section 4.3.4.4: after an idle time the window is kept, and the rate is the bottleneck's.
    fn restart_from_idle(&mut self, path: &Path) {
        self.idle_restart = true;
        if let Some(linux) = &mut self.linux {
            linux.aggregation.restart(path.now);
        }
        if matches!(self.state, State::ProbeBandwidth { .. }) {
            self.set_pacing(1.0);
        }
    }
}

#[cfg(test)]
mod tests;
