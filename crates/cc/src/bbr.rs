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
//! `bbr/linux.rs` adds the profile `linux`.

mod linux;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use serde::{Deserialize, Serialize};

use self::linux::{Aggregation, Counted, Policer, Sign};
use crate::parameters::{fraction, positive};
use crate::parts::plateau::Plateau;
use crate::parts::windowed::WindowedMax;
use crate::rounds::DeliveryRound;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Phase,
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

/// Fraction by which the kernel paces below the model's rate, so that queues drain.
const LINUX_MARGIN: f64 = 0.01;

/// Gains of the rate while probing for bandwidth, one per round trip (section 4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

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
        }
    }

    /// Returns the rate that the model uses: the policer's rate if one is known.
    fn modelled(&self) -> f64 {
        let policed = self.linux.as_ref().and_then(|linux| linux.policer.rate());
        policed.map_or_else(|| self.bottleneck(), |segments_per_s| segments_per_s * self.mss)
    }

    fn bottleneck(&self) -> f64 {
        self.bandwidth.get().unwrap_or(0.0)
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_gain,
            State::Drain => self.config.drain_gain,
            State::ProbeBandwidth { .. } if self.is_policed() => 1.0,
            State::ProbeBandwidth { index, .. } => CYCLE[index % CYCLE.len()],
            State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.config.startup_gain,
            State::ProbeBandwidth { .. } => self.config.cwnd_gain,
            State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
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
        let mut step = Step { round_start: false, app_limited: true, delivered, prior_in_flight, lost };
        if let Some(sample) = &ack.rate {
            step.round_start = self.round.ends(sample.prior_delivered, path.delivered);
            step.app_limited = sample.app_limited || sample.prior_delivered < self.limited_until;
            if let Some(linux) = &mut self.linux {
                // The initial window limited the segments that left before the first ACK.
                step.app_limited |= sample.prior_delivered == 0;
                step.round_start |= core::mem::take(&mut linux.timed_out);
            }
            self.seek_policer(&step, path);
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
        let Some(linux) = &mut self.linux else { return };
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
            linux.aggregation.on_ack(path.now, (step.delivered, step.round_start), rate, cwnd);
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

/// The state machine, section 4.3.
impl Bbr {
    fn check_drain(&mut self, path: &Path) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain && f64::from(path.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bandwidth(path);
        }
    }

    /// Starts at a random phase other than the draining one (section 4.3.4.3).
    fn enter_probe_bandwidth(&mut self, path: &Path) {
        let draw = self.rng.below(CYCLE.len() as u64 - 1) as usize;
        let index = if draw == 0 { 0 } else { draw + 1 };
        self.state = State::ProbeBandwidth { index, since: path.now };
    }

    fn check_cycle(&mut self, step: &Step, path: &Path) {
        let State::ProbeBandwidth { index, since } = self.state else { return };
        let gain = self.pacing_gain();
        let full_length = path.now.since(since) > self.rtprop;
        let next = if gain > 1.0 {
            full_length && (step.lost > 0.0 || step.prior_in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || step.prior_in_flight <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.state = State::ProbeBandwidth { index: (index + 1) % CYCLE.len(), since: path.now };
        }
    }

    /// Enters and leaves ProbeRTT (section 4.3.5).
    fn check_probe_rtt(&mut self, expired: bool, step: &Step, path: &Path) {
        if !self.probes_rtt() && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::EmptyForRtt;
        }
        self.idle_restart = false;
        if self.probes_rtt() {
            self.limited_until = path.delivered + u64::from(path.in_flight) * u64::from(path.mss);
        }
        match &mut self.state {
            State::EmptyForRtt if f64::from(path.in_flight) <= self.config.min_window => {
                let until = path.now + Duration::from_secs_f64(self.config.probe_rtt_s);
                self.state = State::ProbeRtt { until, round_done: false };
                self.round.restart(path.delivered);
            }
            State::ProbeRtt { until, round_done } => {
                *round_done |= step.round_start;
                if *round_done && path.now > *until {
                    self.exit_probe_rtt(path);
                }
            }
            _ => {}
        }
    }

    fn exit_probe_rtt(&mut self, path: &Path) {
        self.rtprop_at = path.now;
        self.restore_cwnd();
        if self.filled_pipe {
            self.enter_probe_bandwidth(path);
        } else {
            self.state = State::Startup;
        }
    }
}

/// Rate and window, section 4.2.
impl Bbr {
    /// Section 4.2.1: before the pipe is full, the rate only rises.
    fn set_pacing(&mut self, gain: f64) {
        let margin = if self.linux.is_some() { LINUX_MARGIN } else { 0.0 };
        let rate = gain * (1.0 - margin) * self.modelled();
        if rate > 0.0 && (self.filled_pipe || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// Returns the send quantum in segments (section 4.2.2).
    fn send_quantum(&self) -> f64 {
        let bits_per_s = 8.0 * self.pacing;
        if bits_per_s < 1.2e6 {
            1.0
        } else if bits_per_s < 24e6 {
            2.0
        } else {
            (self.pacing * 1e-3).min(65_536.0) / self.mss
        }
    }

    /// Section 4.2.3.2: gain times BDP plus three send quanta for the end hosts, in segments.
    fn inflight(&self, gain: f64) -> f64 {
        self.inflight_at(self.bottleneck(), gain, 0.0)
    }

    /// As `inflight`, for a rate in bytes per second and with `room` extra segments.
    fn inflight_at(&self, rate: f64, gain: f64, room: f64) -> f64 {
        if self.rtprop == Duration::MAX || rate <= 0.0 {
            return self.initial_window;
        }
        let bdp = rate * self.rtprop.as_secs_f64() / self.mss;
        let window = gain * bdp + room + 3.0 * self.send_quantum();
        if self.linux.is_none() {
            return window;
        }
        // Rounds up to an even number for receivers with delayed ACKs, and adds two segments for probing.
        let probes = matches!(self.state, State::ProbeBandwidth { index: 0, .. });
        2.0 * libm::ceil(window / 2.0) + if probes { 2.0 } else { 0.0 }
    }

    /// Section 4.2.3.2, plus the kernel's allowance for aggregated ACKs once the pipe is full.
    fn target(&self) -> f64 {
        let rate = self.modelled();
        let linux = self.linux.as_ref().filter(|_| self.filled_pipe);
        let room = linux.map_or(0.0, |linux| linux.aggregation.room(rate / self.mss));
        self.inflight_at(rate, self.cwnd_gain(), room)
    }

    /// Sections 4.2.3.4 to 4.2.3.6.
    fn set_cwnd(&mut self, step: &Step, path: &Path) {
        let target = self.target();
        if self.recovery != Recovery::None {
            self.cwnd = (self.cwnd - step.lost).max(1.0);
        }
        if let Recovery::Conserving { .. } = self.recovery {
            self.cwnd = self.cwnd.max(f64::from(path.in_flight) + step.delivered);
        } else {
            if self.filled_pipe {
                self.cwnd = (self.cwnd + step.delivered).min(target);
            } else if self.cwnd < target || (path.delivered as f64) < self.initial_window * self.mss {
                self.cwnd += step.delivered;
            }
            self.cwnd = self.cwnd.max(self.config.min_window);
        }
        if self.probes_rtt() {
            self.cwnd = self.cwnd.min(self.config.min_window);
        }
        self.cwnd = self.cwnd.max(1.0);
    }

    fn save_cwnd(&mut self) {
        let undisturbed = self.recovery == Recovery::None && !self.probes_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Follows the ACK's position in a loss episode.
    fn follow_recovery(&mut self, ack: &Ack) {
        if let Recovery::Conserving { round } = &mut self.recovery
            && let Some(sample) = &ack.rate
            && round.ends(sample.prior_delivered, u64::MAX)
        {
            self.recovery = Recovery::Growing;
        }
        // A loss repaired by a tail loss probe opens no episode: the next ACK is outside recovery.
        if self.recovery != Recovery::None && (ack.ends_episode || ack.phase == Phase::Open) {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let step = self.update_model(ack, path);
        self.update_aggregation(&step, path);
        self.check_cycle(&step, path);
        self.check_full_pipe(&step);
        self.check_drain(path);
        let expired = self.update_rtprop(ack, path);
        self.check_probe_rtt(expired, &step, path);
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

    fn wants(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
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
mod tests {
    use super::*;
    use crate::fixture::{self, MSS};

    const RTT_S: f64 = 0.55;
    /// Bottleneck rate in bytes per second: 687.5 segments per round trip.
    const BOTTLENECK: f64 = 1.25e6;

    fn bbr() -> Bbr {
        let mut bbr = Bbr::new(Config::default(), &fixture::start(10.0));
        bbr.on_event(ConnectionEvent::Established, &fixture::path_at(RTT_S));
        bbr
    }

    /// A path with one ACK per round trip. It delivers what is sent, at most at the bottleneck's rate.
    struct Line {
        now: f64,
        delivered: u64,
    }

    impl Line {
        fn new() -> Self {
            Self { now: RTT_S, delivered: 0 }
        }

        fn round(&mut self, bbr: &mut Bbr, limit: f64) {
            let rate = bbr.pacing.min(bbr.window() * bbr.mss / RTT_S).min(limit);
            self.now += RTT_S;
            let bytes = (rate * RTT_S) as u64;
            let sample = RateSample {
                delivered: bytes,
                interval: Duration::from_secs_f64(RTT_S),
                prior_delivered: self.delivered,
                app_limited: false,
                tx_in_flight: (bytes / u64::from(MSS)) as u32,
                lost: 0,
            };
            self.delivered += bytes;
            let in_flight = (bbr.window() as u32).min((bbr.bottleneck().max(1.0) * RTT_S / bbr.mss) as u32);
            let path = Path { delivered: self.delivered, in_flight, ..fixture::path_at(self.now) };
            let ack = Ack {
                rtt: Some(Duration::from_secs_f64(RTT_S)),
                rate: Some(sample),
                delivered_bytes: bytes,
                ..fixture::ack(1)
            };
            bbr.on_ack(&ack, &path);
        }
    }

    fn cruising() -> (Bbr, Line) {
        let (mut bbr, mut line) = (bbr(), Line::new());
        for _ in 0..16 {
            line.round(&mut bbr, BOTTLENECK);
        }
        (bbr, line)
    }

    #[test]
    fn the_first_rate_is_the_initial_window_times_the_gain() {
        let expected = 2.885 * 10_000.0 / RTT_S;
        assert!((bbr().pacing / expected - 1.0).abs() < 1e-3);
    }

    #[test]
    fn startup_doubles_until_three_rounds_bring_nothing() {
        let (mut bbr, mut line) = (bbr(), Line::new());
        let mut rounds = 0;
        while bbr.state == State::Startup {
            line.round(&mut bbr, BOTTLENECK);
            rounds += 1;
            assert!(rounds < 20);
        }
        assert!((bbr.bottleneck() / BOTTLENECK - 1.0).abs() < 1e-3);
        assert!(rounds <= 4 + 8, "log2(687.5 / 10) to fill the pipe and three to notice: {rounds}");
    }

    #[test]
    fn two_bandwidth_delay_products_and_three_quanta() {
        let (bbr, _) = cruising();
        assert!(matches!(bbr.state, State::ProbeBandwidth { .. }));
        assert!((bbr.window() - (2.0 * 687.5 + 3.0 * 2.0)).abs() < 3.0, "{}", bbr.window());
    }

    #[test]
    fn the_gains_cycle_through_a_probe_and_its_drain() {
        let (mut bbr, mut line) = cruising();
        let mut gains = [0; 3];
        for _ in 0..64 {
            line.round(&mut bbr, 1.25 * BOTTLENECK);
            gains[if bbr.pacing_gain() > 1.0 { 0 } else { 1 + usize::from(bbr.pacing_gain() == 1.0) }] += 1;
        }
        assert!(gains[0] >= 4 && gains[2] > 20, "{gains:?}");
    }

    #[test]
    fn a_slower_bottleneck_is_believed_after_ten_rounds() {
        let (mut bbr, mut line) = cruising();
        for round in 1..=12 {
            line.round(&mut bbr, BOTTLENECK / 2.0);
            if round < 10 {
                assert!(bbr.bottleneck() > 0.9 * BOTTLENECK, "round {round}");
            }
        }
        assert!(bbr.bottleneck() < 0.6 * BOTTLENECK);
    }

    #[test]
    fn a_loss_conserves_packets_for_a_round_and_gives_the_window_back() {
        let (mut bbr, line) = cruising();
        let window = bbr.window();
        let at = |delivered| Path { delivered, in_flight: 600, ..fixture::path_at(line.now) };
        bbr.on_loss(&fixture::loss(700), &at(line.delivered));
        assert_eq!(bbr.window(), 601.0);
        bbr.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(2) }, &at(line.delivered));
        assert_eq!(bbr.window(), 602.0, "in flight and what was delivered");
        let last = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(1) };
        bbr.on_ack(&last, &at(line.delivered));
        assert!((bbr.window() - window).abs() < 2.0);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_an_undo_takes_it_back() {
        let (mut bbr, line) = cruising();
        let window = bbr.window();
        let timeout = Timeout { consecutive: 1, outstanding: 600, answered: false };
        bbr.on_rto(&timeout, &fixture::path_at(line.now));
        assert_eq!(bbr.window(), 1.0);
        bbr.on_undo(Undo::Reduction, &fixture::path_at(line.now));
        assert_eq!(bbr.window(), window);
    }

    #[test]
    fn an_old_round_trip_time_is_measured_anew_with_four_segments() {
        let (mut bbr, line) = cruising();
        let window = bbr.window();
        let ack = |rtt_s| Ack { rtt: Some(Duration::from_secs_f64(rtt_s)), ..fixture::ack(1) };
        let at =
            |seconds, in_flight| Path { in_flight, delivered: line.delivered, ..fixture::path_at(seconds) };
        let now = line.now + 11.0;
        bbr.on_ack(&ack(0.7), &at(now, 600));
        assert_eq!((bbr.snapshot().phase, bbr.window()), ("probe-rtt", 4.0));
        bbr.on_ack(&ack(0.6), &at(now + 0.6, 4));
        let done = RateSample {
            delivered: 4000,
            interval: Duration::from_millis(600),
            prior_delivered: line.delivered,
            app_limited: false,
            tx_in_flight: 4,
            lost: 0,
        };
        bbr.on_ack(&Ack { rate: Some(done), ..ack(0.56) }, &at(now + 1.2, 4));
        assert_eq!(bbr.snapshot().phase, "probe-bw");
        assert!((bbr.window() - window).abs() < 2.0);
        assert_eq!(bbr.rtprop, Duration::from_millis(560));
    }
}
