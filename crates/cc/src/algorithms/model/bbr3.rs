//! BBR version 3: version 1's model of the path, with bounds learnt from losses.
//!
//! N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr-05, 2026.
//!
//! | draft                     | here                          | unit           |
//! |---------------------------|-------------------------------|----------------|
//! | `BBR.max_bw`              | `TwoCycles::max`              | bytes / s      |
//! | `BBR.bw`                  | `Bbr3::bandwidth`             | bytes / s      |
//! | `BBR.bw_shortterm`, `BBR.inflight_shortterm` | `Bounds`   | bytes / s, segments |
//! | `BBR.inflight_longterm`   | `Bbr3::longterm`              | segments       |
//! | `BBR.bw_latest`, `BBR.inflight_latest` | `Latest`         | bytes / s, segments |
//! | `BBR.loss_in_round`, `BBR.loss_round_delivered` | `Latest` | -, bytes      |
//! | `BBR.min_rtt`             | `RoundTrip::min`              | time           |
//! | `BBR.probe_rtt_min_delay` | `RoundTrip::recent`           | time           |
//! | `BBR.extra_acked`         | `Aggregation`                 | segments       |
//! | `BBR.full_bw`, `BBR.full_bw_now` | `Plateau`              | bytes / s      |
//! | `BBR.full_bw_reached`     | `Bbr3::filled`                | -              |
//! | `BBR.ack_phase`, `BBR.bw_probe_samples` | `AckPhase`, `Bbr3::probe_samples` | - |
//! | `BBR.probe_up_cnt`, `bw_probe_up_rounds`, `bw_probe_up_acks` | `Slope` | segments, rounds, segments |
//! | `BBR.cycle_stamp`, `bw_probe_wait`, `rounds_since_bw_probe` | `Cycle` | time, time, rounds |
//! | `BBR.prior_cwnd`          | `Bbr3::prior_cwnd`            | segments       |
//! | `BBR.undo_*`              | `Undo`                        | -              |
//!
//! Data volumes are in segments here. The descriptions of the constants give the draft's names. `bbr3/model.rs` has the
//! measurements, `bbr3/cycle.rs` the state machine, `bbr3/loss.rs` the reactions to losses, `bbr3/control.rs` rate and window.

mod control;
mod cycle;
mod loss;
mod model;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use serde::{Deserialize, Serialize};

use self::model::{Aggregation, Bounds, Cycle, EXTRA_ACKED_ROUNDS, Latest, RoundTrip, Slope, TwoCycles};
use crate::parameters::{fraction, positive};
use crate::parts::plateau::Plateau;
use crate::parts::windowed::WindowedMax;
use crate::rounds::DeliveryRound;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Phase,
    Requirements, SENDER_ONLY, Spacing, Start, Timeout, WindowState, state,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "bbr3",
    title: "BBR's model of the path with bounds that losses teach it (version 3)",
    paper: "draft-ietf-ccwg-bbr-05 (Cardwell, Swett, Beshay)",
    year: 2026,
    in_kernel: true,
    family: Family::Model,
    advice: "For errors, with less harm to other flows than version 1. Its flows share less evenly here than those of version 1.",
    ..SENDER_ONLY
};

/// Parameters of BBR version 3. The gains are those of section 5.6.1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `StartupPacingGain`, 4 ln 2.
    #[serde(deserialize_with = "positive")]
    pub startup_pacing_gain: f64,
    /// Pacing gain in Drain (`DrainPacingGain`).
    #[serde(deserialize_with = "fraction")]
    pub drain_pacing_gain: f64,
    /// `DefaultCwndGain`: the window in bandwidth-delay products.
    #[serde(deserialize_with = "positive")]
    pub cwnd_gain: f64,
    /// Gain of the rate in ProbeBW_UP.
    #[serde(deserialize_with = "positive")]
    pub up_pacing_gain: f64,
    /// Gain of the window in ProbeBW_UP.
    #[serde(deserialize_with = "positive")]
    pub up_cwnd_gain: f64,
    /// Gain of the rate in ProbeBW_DOWN.
    #[serde(deserialize_with = "fraction")]
    pub down_pacing_gain: f64,
    /// Window gain in ProbeRTT (`ProbeRTTCwndGain`).
    #[serde(deserialize_with = "fraction")]
    pub probe_rtt_cwnd_gain: f64,
    /// `PacingMarginPercent` as a fraction: pacing stays this far below the bandwidth.
    #[serde(deserialize_with = "fraction")]
    pub pacing_margin: f64,
    /// `LossThresh`: tolerated loss per round trip, as a fraction of the in-flight data.
    #[serde(deserialize_with = "fraction")]
    pub loss_threshold: f64,
    /// `Beta`: factor of the short-term bounds after a round with losses.
    #[serde(deserialize_with = "fraction")]
    pub beta: f64,
    /// `Headroom`: fraction of the long-term bound left to other flows.
    #[serde(deserialize_with = "fraction")]
    pub headroom: f64,
    /// `StartupFullLossCnt`: loss events in a round that end Startup.
    pub startup_losses: u32,
    /// `MinPipeCwnd` in segments.
    #[serde(deserialize_with = "positive")]
    pub min_window: f64,
    /// `MinRTTFilterLen` in seconds.
    #[serde(deserialize_with = "positive")]
    pub min_rtt_window_s: f64,
    /// `ProbeRTTInterval` in seconds.
    #[serde(deserialize_with = "positive")]
    pub probe_rtt_interval_s: f64,
    /// `ProbeRTTDuration` in seconds.
    #[serde(deserialize_with = "positive")]
    pub probe_rtt_s: f64,
    /// Minimum time between bandwidth probes in seconds; a random part of up to 1 s is added.
    #[serde(deserialize_with = "positive")]
    pub probe_wait_s: f64,
    /// Maximum round trips between bandwidth probes, for fairness to Reno (section 5.3.3.5).
    #[serde(deserialize_with = "positive")]
    pub reno_rounds: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            startup_pacing_gain: 4.0 * core::f64::consts::LN_2,
            drain_pacing_gain: 0.5,
            cwnd_gain: 2.0,
            up_pacing_gain: 1.25,
            up_cwnd_gain: 2.25,
            down_pacing_gain: 0.9,
            probe_rtt_cwnd_gain: 0.5,
            pacing_margin: 0.01,
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            startup_losses: 6,
            min_window: 4.0,
            min_rtt_window_s: 10.0,
            probe_rtt_interval_s: 5.0,
            probe_rtt_s: 0.2,
            probe_wait_s: 2.0,
            reno_rounds: 63.0,
        }
    }
}

impl Config {
    /// A BBR sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Bbr3::new(*self, start))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Startup,
    Drain {
        since_round: u64,
    },
    Down,
    Cruise,
    Refill,
    Up,
    /// Waiting until at most the small window is in flight.
    EmptyForRtt,
    /// ProbeRTT: the small window is kept until `until`, and at least for one round trip.
    ProbeRtt {
        until: Instant,
        round_done: bool,
    },
}

impl State {
    fn probes_rtt(self) -> bool {
        matches!(self, Self::EmptyForRtt | Self::ProbeRtt { .. })
    }

    /// True in one of the four states of ProbeBW.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// True in ProbeBW_UP, or in ProbeBW_REFILL before it (`BBRIsProbingBW`).
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Relation of the arriving ACKs to the bandwidth probe (section 5.3.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State restored after a spurious loss (section 5.5.11).
#[derive(Clone, Copy, PartialEq, Debug)]
struct Undo {
    state: State,
    bounds: Bounds,
    longterm: f64,
}

/// A BBR sender.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Config,
    mss: f64,
    initial_window: f64,
    rng: Rng,
    state: State,
    in_recovery: bool,
    max_bandwidth: TwoCycles,
    bandwidth: f64,
    bounds: Bounds,
    longterm: f64,
    latest: Latest,
    trip: RoundTrip,
    aggregation: Aggregation,
    round: DeliveryRound,
    plateau: Plateau,
    filled: bool,
    ack_phase: AckPhase,
    probe_samples: bool,
    slope: Slope,
    cycle: Cycle,
    undo: Option<Undo>,
    cwnd: f64,
    prior_cwnd: f64,
    /// Pacing rate in bytes per second.
    pacing: f64,
    idle_restart: bool,
    /// Delivered bytes before which samples count as application-limited.
    limited_until: u64,
}

/// Effect of one ACK on the model. Volumes are in segments, rates in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Step {
    round_start: bool,
    app_limited: bool,
    window_limited: bool,
    rate: f64,
    /// Segments delivered during the sampling interval.
    volume: f64,
    /// Segments newly delivered by this ACK.
    newly: f64,
    lost: f64,
    tx_in_flight: f64,
    in_flight: f64,
    delivered_bytes: u64,
    now: Instant,
}

impl Bbr3 {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        let trip = RoundTrip {
            min: Duration::MAX,
            min_at: Instant::ZERO,
            recent: Duration::MAX,
            recent_at: Instant::ZERO,
        };
        Self {
            config,
            mss: f64::from(start.mss.max(1)),
            initial_window: start.initial_window,
            rng: Rng::stream(start.seed, "bbr3"),
            state: State::Startup,
            in_recovery: false,
            max_bandwidth: TwoCycles::default(),
            bandwidth: 0.0,
            bounds: Bounds::NONE,
            longterm: f64::INFINITY,
            latest: Latest::default(),
            trip,
            aggregation: Aggregation {
                since: Instant::ZERO,
                delivered: 0.0,
                extra: WindowedMax::new(EXTRA_ACKED_ROUNDS),
            },
            round: DeliveryRound::default(),
            plateau: Plateau::default(),
            filled: false,
            ack_phase: AckPhase::Init,
            probe_samples: false,
            slope: Slope::default(),
            cycle: Cycle { since: Instant::ZERO, wait: Duration::ZERO, rounds: 0 },
            undo: None,
            cwnd: start.initial_window,
            prior_cwnd: 0.0,
            pacing: 0.0,
            idle_restart: false,
            limited_until: 0,
        }
    }
}

/// Per-ACK steps, section 5.2.3.
impl Bbr3 {
    fn step(&mut self, ack: &Ack, path: &Path) -> Step {
        let mut step = Step {
            round_start: false,
            app_limited: true,
            window_limited: ack.window_limited,
            rate: 0.0,
            volume: 0.0,
            newly: ack.delivered_bytes as f64 / self.mss,
            lost: 0.0,
            tx_in_flight: 0.0,
            in_flight: f64::from(path.in_flight),
            delivered_bytes: path.delivered,
            now: path.now,
        };
        self.latest.round_start = false;
        if let Some(sample) = &ack.rate {
            step.round_start = self.round.ends(sample.prior_delivered, path.delivered);
            self.cycle.rounds += u64::from(step.round_start);
            self.latest.round_start = self.latest.round.ends(sample.prior_delivered, path.delivered);
            step.app_limited = sample.app_limited || sample.prior_delivered < self.limited_until;
            step.rate = sample.rate().bytes_per_s();
            step.volume = sample.delivered as f64 / self.mss;
            step.lost = f64::from(sample.lost);
            step.tx_in_flight = f64::from(sample.tx_in_flight);
        }
        step
    }

    /// Updates the model and the state for an ACK (`BBRUpdateModelAndState`).
    fn update_model(&mut self, ack: &Ack, step: &Step) {
        if ack.lost > 0 {
            self.handle_lost(step);
        }
        self.latest.bandwidth = self.latest.bandwidth.max(step.rate);
        self.latest.inflight = self.latest.inflight.max(step.volume);
        if step.rate > 0.0 && (step.rate >= self.max_bandwidth.max() || !step.app_limited) {
            self.max_bandwidth.now = self.max_bandwidth.now.max(step.rate);
        }
        self.check_startup_loss(ack, step);
        if self.latest.round_start {
            self.adapt_lower_bounds();
        }
        self.update_aggregation(step);
        self.check_full_pipe(step);
        self.check_startup_and_drain(step);
        self.update_cycle(step);
        let expired = self.update_round_trip(ack.rtt, step.now);
        self.check_probe_rtt(expired, step);
        if self.latest.round_start {
            self.latest.bandwidth = step.rate;
            self.latest.inflight = step.volume;
        }
        self.bandwidth = self.max_bandwidth.max().min(self.bounds.bandwidth);
    }

    /// Updates pacing rate and window (`BBRUpdateControlParameters`).
    fn update_control(&mut self, step: &Step) {
        self.set_pacing(self.pacing_gain());
        self.set_cwnd(step);
    }

    /// `BBRUpdateACKAggregation` (section 5.5.9).
    fn update_aggregation(&mut self, step: &Step) {
        let segments_per_s = self.bandwidth / self.mss;
        let mut expected = segments_per_s * step.now.since(self.aggregation.since).as_secs_f64();
        if self.aggregation.delivered <= expected {
            self.aggregation.delivered = 0.0;
            self.aggregation.since = step.now;
            expected = 0.0;
        }
        self.aggregation.delivered += step.newly;
        let extra = (self.aggregation.delivered - expected).min(self.cwnd);
        if !self.filled && step.round_start {
            self.aggregation.extra.reset(self.round.count, extra); // in Startup the filter covers one round
        } else {
            self.aggregation.extra.update(self.round.count, extra);
        }
    }

    /// `BBRUpdateMinRTT`. Returns true if a ProbeRTT is due.
    fn update_round_trip(&mut self, rtt: Option<Duration>, now: Instant) -> bool {
        let trip = &mut self.trip;
        let expired = now > trip.recent_at + Duration::from_secs_f64(self.config.probe_rtt_interval_s);
        if let Some(rtt) = rtt.filter(|rtt| *rtt < trip.recent || expired) {
            trip.recent = rtt;
            trip.recent_at = now;
        }
        let min_expired = now > trip.min_at + Duration::from_secs_f64(self.config.min_rtt_window_s);
        if trip.recent < trip.min || min_expired {
            trip.min = trip.recent;
            trip.min_at = trip.recent_at;
        }
        expired
    }
}

impl CongestionControl for Bbr3 {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let step = self.step(ack, path);
        // A loss repaired by a tail loss probe opens no episode: the next ACK is outside recovery.
        if self.in_recovery && (ack.ends_episode || ack.phase == Phase::Open) {
            self.in_recovery = false;
            self.restore_cwnd();
        }
        self.update_model(ack, &step);
        self.update_control(&step);
    }

    /// `BBROnEnterFastRecovery`. The model sets the window, not the loss.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Loss {
            self.note_loss(path.delivered);
            self.save_cwnd();
            self.in_recovery = true;
        }
    }

    /// Handles a retransmission timeout (`BBROnEnterRTO`).
    fn on_rto(&mut self, _timeout: &Timeout, path: &Path) -> BackOff {
        self.note_loss(path.delivered);
        self.save_cwnd();
        self.in_recovery = true;
        self.cwnd = 1.0;
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at((self.pacing > 0.0).then(|| Rate::from_bytes_per_s(self.pacing)))
    }

    /// Undoes the reaction to a spurious loss (`BBRHandleSpuriousLossDetection`).
    fn on_undo(&mut self, _undo: crate::Undo, path: &Path) {
        self.in_recovery = false;
        self.restore_cwnd();
        let Some(undo) = self.undo.take() else { return };
        self.latest.loss_in_round = false;
        self.plateau = Plateau::default();
        self.bounds.bandwidth = self.bounds.bandwidth.max(undo.bounds.bandwidth);
        self.bounds.inflight = self.bounds.inflight.max(undo.bounds.inflight);
        self.longterm = self.longterm.max(undo.longterm);
        if self.state.probes_rtt() || self.state == undo.state {
            return;
        }
        match undo.state {
            State::Startup => self.state = State::Startup,
            State::Up => self.start_up(0.0, path.delivered),
            _ => {}
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
            State::Drain { .. } => "drain",
            State::Down => "probe-bw-down",
            State::Cruise => "probe-bw-cruise",
            State::Refill => "probe-bw-refill",
            State::Up => "probe-bw-up",
            State::EmptyForRtt | State::ProbeRtt { .. } => "probe-rtt",
        };
        state(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
    }
}

impl Bbr3 {
    /// Initialises the model and the pacing rate (`BBROnInit`, `BBRInitPacingRate`).
    fn begin(&mut self, path: &Path) {
        let srtt = if path.srtt.is_zero() { Duration::from_millis(1) } else { path.srtt };
        if !path.srtt.is_zero() {
            self.trip.min = srtt;
            self.trip.recent = srtt;
        }
        self.trip.min_at = path.now;
        self.trip.recent_at = path.now;
        self.aggregation.since = path.now;
        self.pacing = self.config.startup_pacing_gain * self.initial_window * self.mss / srtt.as_secs_f64();
    }

    /// `BBRHandleRestartFromIdle` (section 5.4): the window is kept, and the rate is the model's.
    fn restart_from_idle(&mut self, path: &Path) {
        self.idle_restart = true;
        self.aggregation.since = path.now;
        if self.state.is_probe_bw() {
            self.set_pacing(1.0);
        } else {
            self.check_probe_rtt_done(path.now, path.delivered);
        }
    }
}

#[cfg(test)]
mod tests;
