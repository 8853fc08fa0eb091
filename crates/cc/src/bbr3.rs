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
//! Data volumes are in segments here. The descriptions of the constants give the draft's names.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use serde::{Deserialize, Serialize};

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

/// `BBRExtraAckedFilterLen` in rounds.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Rounds after which Drain ends, whatever the in-flight data (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;

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

/// Maximum delivery rate of this ProbeBW cycle and of the previous one (section 5.5.6).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct TwoCycles {
    before: f64,
    now: f64,
}

impl TwoCycles {
    fn max(&self) -> f64 {
        self.before.max(self.now)
    }

    /// `BBRAdvanceMaxBwFilter`. A cycle without samples keeps both values.
    fn advance(&mut self) {
        if self.now > 0.0 {
            *self = Self { before: self.now, now: 0.0 };
        }
    }
}

/// The short-term model (section 5.5.10.3).
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bounds {
    bandwidth: f64,
    inflight: f64,
}

impl Bounds {
    const NONE: Self = Self { bandwidth: f64::INFINITY, inflight: f64::INFINITY };
}

/// Delivery of the last round trip, and its losses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Latest {
    bandwidth: f64,
    inflight: f64,
    loss_in_round: bool,
    /// Number of ACKs in this round that marked segments lost.
    loss_events: u32,
    round: DeliveryRound,
    round_start: bool,
}

/// `BBRUpdateMinRTT` (section 5.3.4.3).
#[derive(Clone, Copy, PartialEq, Debug)]
struct RoundTrip {
    min: Duration,
    min_at: Instant,
    /// Minimum of the current ProbeRTT interval.
    recent: Duration,
    recent_at: Instant,
}

/// ACK aggregation (section 5.5.9).
#[derive(Clone, Copy, PartialEq, Debug)]
struct Aggregation {
    since: Instant,
    delivered: f64,
    extra: WindowedMax<f64>,
}

/// Slope of the long-term bound in ProbeBW_UP: 1, 2, 4 ... segments per round.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Slope {
    rounds: u32,
    acks: f64,
    /// Acknowledged segments per segment of growth.
    per_segment: f64,
}

/// Time of the next bandwidth probe.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cycle {
    since: Instant,
    wait: Duration,
    rounds: u64,
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

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain { .. } => self.config.drain_pacing_gain,
            State::Down => self.config.down_pacing_gain,
            State::Up => self.config.up_pacing_gain,
            State::Cruise | State::Refill | State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.config.up_cwnd_gain,
            State::EmptyForRtt | State::ProbeRtt { .. } => self.config.probe_rtt_cwnd_gain,
            _ => self.config.cwnd_gain,
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

/// Startup and Drain, sections 5.3.1 and 5.3.2.
impl Bbr3 {
    /// Checks in Startup whether the bandwidth still grows (`BBRCheckFullBWReached`).
    fn check_full_pipe(&mut self, step: &Step) {
        if self.plateau.is_reached() || !step.round_start || step.app_limited {
            return;
        }
        self.plateau.round(step.rate);
        self.filled |= self.plateau.is_reached();
    }

    /// `BBRCheckStartupHighLoss` (section 5.3.1.3).
    fn check_startup_loss(&mut self, ack: &Ack, step: &Step) {
        self.latest.loss_events += u32::from(ack.lost > 0);
        if !self.latest.round_start {
            return;
        }
        let many = self.latest.loss_events >= self.config.startup_losses;
        if !self.filled && ack.phase == Phase::Recovery && many && self.is_inflight_too_high(step) {
            self.filled = true;
            self.longterm = self.bdp(1.0).max(self.latest.inflight);
        }
        self.latest.loss_events = 0;
    }

    fn check_startup_and_drain(&mut self, step: &Step) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain { since_round: self.round.count };
        }
        if let State::Drain { since_round } = self.state
            && (step.in_flight <= self.inflight(self.bandwidth, 1.0)
                || self.round.count > since_round + DRAIN_ROUNDS)
        {
            self.start_down(step.now, step.delivered_bytes);
        }
    }
}

/// ProbeBW, section 5.3.3.
impl Bbr3 {
    /// Begins the phase ProbeBW_DOWN (`BBRStartProbeBW_DOWN`).
    fn start_down(&mut self, now: Instant, delivered: u64) {
        self.reset_congestion_signals();
        self.slope.per_segment = f64::INFINITY;
        let wait = self.config.probe_wait_s + self.rng.uniform();
        self.cycle = Cycle { since: now, wait: Duration::from_secs_f64(wait), rounds: self.rng.below(2) };
        self.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(delivered);
        self.state = State::Down;
    }

    /// Begins the phase ProbeBW_REFILL (`BBRStartProbeBW_REFILL`).
    fn start_refill(&mut self, step: &Step) {
        self.bounds = Bounds::NONE;
        self.slope = Slope { per_segment: self.slope.per_segment, ..Slope::default() };
        self.ack_phase = AckPhase::Refilling;
        self.round.restart(step.delivered_bytes);
        self.state = State::Refill;
    }

    /// Begins the phase ProbeBW_UP (`BBRStartProbeBW_UP`).
    fn start_up(&mut self, rate: f64, delivered: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(delivered);
        self.plateau = Plateau::above(rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// Advances the cycle of ProbeBW phases (`BBRUpdateProbeBWCyclePhase`).
    fn update_cycle(&mut self, step: &Step) {
        if !self.filled {
            return;
        }
        self.adapt_longterm(step);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(step.now) => self.start_refill(step),
            State::Down if self.is_time_to_cruise(step) => self.state = State::Cruise,
            State::Refill if step.round_start => {
                self.probe_samples = true;
                self.start_up(step.rate, step.delivered_bytes);
            }
            State::Up => self.go_down_in_time(step),
            _ => {}
        }
    }

    /// True after the random wait of 2 to 3 s, or after the length of Reno's sawtooth at this window
    /// (section 5.3.3.5).
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno_rounds = self.target_inflight().min(self.config.reno_rounds);
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds as f64 >= reno_rounds
    }

    fn is_time_to_cruise(&self, step: &Step) -> bool {
        step.in_flight <= self.inflight_with_headroom()
            && step.in_flight <= self.inflight(self.max_bandwidth.max(), 1.0)
    }

    /// Ends ProbeBW_UP when the bandwidth no longer grows (`BBRIsTimeToGoDown`).
    fn go_down_in_time(&mut self, step: &Step) {
        if step.window_limited && self.cwnd >= self.longterm {
            // The long-term bound limits the rate, not the path.
            self.plateau = Plateau::above(step.rate);
        } else if self.plateau.is_reached() {
            self.start_down(step.now, step.delivered_bytes);
        }
    }

    /// Adapts the long-term bound of in-flight data (`BBRAdaptLongTermModel`).
    fn adapt_longterm(&mut self, step: &Step) {
        match self.ack_phase {
            AckPhase::ProbeStarting if step.round_start => self.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if step.round_start => {
                self.probe_samples = false;
                self.ack_phase = AckPhase::Init;
                if self.state.is_probe_bw() && !step.app_limited {
                    self.max_bandwidth.advance();
                }
            }
            _ => {}
        }
        if self.is_inflight_too_high(step) || self.longterm.is_infinite() {
            return;
        }
        self.longterm = self.longterm.max(step.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(step);
        }
    }

    /// Raises the long-term bound of in-flight data while probing (`BBRProbeInflightLongtermUpward`).
    fn probe_upward(&mut self, step: &Step) {
        if !step.window_limited || self.cwnd < self.longterm {
            return;
        }
        self.slope.acks += step.newly;
        if self.slope.acks >= self.slope.per_segment {
            let delta = libm::floor(self.slope.acks / self.slope.per_segment);
            self.slope.acks -= delta * self.slope.per_segment;
            self.longterm += delta;
        }
        if step.round_start {
            self.raise_slope();
        }
    }

    /// Accelerates the growth of the long-term bound every round (`BBRRaiseInflightLongtermSlope`).
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.slope.rounds.min(30));
        self.slope.rounds = (self.slope.rounds + 1).min(30);
        self.slope.per_segment = (self.cwnd / growth).max(1.0);
    }
}

/// ProbeRTT, section 5.3.4.
impl Bbr3 {
    /// Enters ProbeRTT when the minRTT has expired, and handles an ACK in ProbeRTT (`BBRCheckProbeRTT`).
    fn check_probe_rtt(&mut self, expired: bool, step: &Step) {
        if !self.state.probes_rtt() && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::EmptyForRtt;
            self.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(step.delivered_bytes);
        }
        if self.state.probes_rtt() {
            self.handle_probe_rtt(step);
        }
        if step.newly > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, step: &Step) {
        self.limited_until = step.delivered_bytes + (step.in_flight * self.mss) as u64;
        let small = self.probe_rtt_window();
        match &mut self.state {
            State::EmptyForRtt if step.in_flight <= small => {
                let until = step.now + Duration::from_secs_f64(self.config.probe_rtt_s);
                self.state = State::ProbeRtt { until, round_done: false };
                self.round.restart(step.delivered_bytes);
            }
            State::ProbeRtt { round_done, .. } => {
                *round_done |= step.round_start;
                if *round_done {
                    self.check_probe_rtt_done(step.now, step.delivered_bytes);
                }
            }
            _ => {}
        }
    }

    /// Leaves ProbeRTT when its time is over (`BBRCheckProbeRTTDone`, `BBRExitProbeRTT`).
    fn check_probe_rtt_done(&mut self, now: Instant, delivered: u64) {
        let State::ProbeRtt { until, .. } = self.state else { return };
        if now <= until {
            return;
        }
        self.trip.recent_at = now;
        self.restore_cwnd();
        self.bounds = Bounds::NONE;
        if self.filled {
            self.start_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

/// Reactions to losses, section 5.5.10.
impl Bbr3 {
    fn is_inflight_too_high(&self, step: &Step) -> bool {
        step.lost > step.tx_in_flight * self.config.loss_threshold
    }

    /// Handles a loss, which may end a probe for bandwidth (`BBRNoteLoss`, `BBRHandleLostPacket`).
    fn handle_lost(&mut self, step: &Step) {
        self.note_loss(step.delivered_bytes);
        if self.probe_samples && self.is_inflight_too_high(step) {
            self.handle_inflight_too_high(step);
        }
    }

    fn note_loss(&mut self, delivered: u64) {
        if !self.latest.loss_in_round {
            self.latest.round.restart(delivered);
            self.save_state();
        }
        self.latest.loss_in_round = true;
    }

    /// `BBRHandleInflightTooHigh`, once per probe.
    fn handle_inflight_too_high(&mut self, step: &Step) {
        self.probe_samples = false;
        if !step.app_limited {
            let floor = self.target_inflight() * self.config.beta;
            self.longterm = self.inflight_at_loss(step).max(floor);
        }
        if self.state == State::Up {
            self.start_down(step.now, step.delivered_bytes);
        }
    }

    /// `BBRInflightAtLoss`: in-flight volume at which the losses crossed the threshold.
    fn inflight_at_loss(&self, step: &Step) -> f64 {
        let threshold = self.config.loss_threshold;
        let before = (step.tx_in_flight - 1.0).max(0.0);
        let lost_before = step.lost - 1.0;
        before + (threshold * before - lost_before) / (1.0 - threshold)
    }

    /// `BBRAdaptLowerBoundsFromCongestion`, once per round.
    fn adapt_lower_bounds(&mut self) {
        let lost = core::mem::take(&mut self.latest.loss_in_round);
        if self.state.accelerates() || !lost {
            return;
        }
        if self.bounds.bandwidth.is_infinite() {
            self.bounds.bandwidth = self.max_bandwidth.max();
        }
        if self.bounds.inflight.is_infinite() {
            self.bounds.inflight = self.cwnd;
        }
        let beta = self.config.beta;
        self.bounds.bandwidth = self.latest.bandwidth.max(beta * self.bounds.bandwidth);
        self.bounds.inflight = self.latest.inflight.max(beta * self.bounds.inflight);
    }

    fn reset_congestion_signals(&mut self) {
        self.latest.loss_in_round = false;
        self.latest.bandwidth = 0.0;
        self.latest.inflight = 0.0;
    }

    /// Saves the state for an undo after a spurious loss (`BBRSaveStateUponLoss`).
    fn save_state(&mut self) {
        self.undo = Some(Undo { state: self.state, bounds: self.bounds, longterm: self.longterm });
    }
}

/// Rate and window, section 5.6.
impl Bbr3 {
    /// `BBRSetPacingRateWithGain`: before the pipe is full, the rate only rises.
    fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bandwidth * (1.0 - self.config.pacing_margin);
        if rate > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// `BBRBDPMultiple` at the bandwidth of the model, in segments.
    fn bdp(&self, gain: f64) -> f64 {
        self.bdp_at(self.bandwidth, gain)
    }

    fn bdp_at(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.trip.min == Duration::MAX {
            return self.initial_window;
        }
        gain * bandwidth * self.trip.min.as_secs_f64() / self.mss
    }

    /// Returns the in-flight data for a bandwidth and a gain, in segments (`BBRInflight`).
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.quantized(self.bdp_at(bandwidth, gain))
    }

    /// `BBRQuantizationBudget`: at least three send quanta of 1 ms.
    fn quantized(&self, volume: f64) -> f64 {
        let quantum = (self.pacing * 1e-3).clamp(2.0 * self.mss, 65_536.0_f64.max(2.0 * self.mss));
        let probe = if self.state == State::Up { 2.0 } else { 0.0 };
        volume.max(3.0 * quantum / self.mss).max(self.config.min_window) + probe
    }

    /// Returns the BDP, limited by the window (`BBRTargetInflight`).
    fn target_inflight(&self) -> f64 {
        self.bdp(1.0).min(self.cwnd)
    }

    fn inflight_with_headroom(&self) -> f64 {
        if self.longterm.is_infinite() {
            return self.longterm;
        }
        let headroom = (self.config.headroom * self.longterm).max(1.0);
        (self.longterm - headroom).max(self.config.min_window)
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.config.probe_rtt_cwnd_gain).max(self.config.min_window)
    }

    /// Sets the congestion window (`BBRSetCwnd`).
    fn set_cwnd(&mut self, step: &Step) {
        let extra = self.aggregation.extra.get().unwrap_or(0.0);
        let most = self.quantized(self.bdp(self.cwnd_gain()) + extra);
        if self.filled {
            self.cwnd = (self.cwnd + step.newly).min(most);
        } else if self.cwnd < most || (step.delivered_bytes as f64) < self.initial_window * self.mss {
            self.cwnd += step.newly;
        }
        self.cwnd = self.cwnd.max(self.config.min_window);
        if self.state.probes_rtt() {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_cwnd();
    }

    /// Limits the congestion window by the model's bounds (`BBRBoundCwndForModel`).
    fn bound_cwnd(&mut self) {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.longterm,
            State::Cruise | State::EmptyForRtt | State::ProbeRtt { .. } => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        let cap = longterm.min(self.bounds.inflight).max(self.config.min_window);
        self.cwnd = self.cwnd.min(cap).max(1.0);
    }

    fn save_cwnd(&mut self) {
        let undisturbed = !self.in_recovery && !self.state.probes_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
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

    fn wants(&self) -> Requirements {
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
