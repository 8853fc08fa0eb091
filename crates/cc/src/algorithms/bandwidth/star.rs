//! TCP-STAR: the measured bandwidth raises the window (LWC) and sets it after a loss (CWS). A probe tests the peer before a
//! timeout is believed (AEN).
//!
//! H. Obata, K. Ishida, S. Takeuchi, S. Hanasaki, "TCP-STAR: TCP Congestion Control Method for Satellite Internet", IEICE Transactions on
//! Communications E89-B(6), 2006.
//!
//! | paper                   | here                     | unit     |
//! |-------------------------|--------------------------|----------|
//! | `cwnd`                  | `Star::cwnd`             | segments |
//! | `cwnd_reno`, `ssthresh` | `Star::reno`             | segments |
//! | `cwnd_abe`              | `Star::pipe`             | segments |
//! | `rwnd`                  | `Path::receive_window`   | segments |
//! | `BW`                    | `Star::estimate`         | bytes/s  |
//! | `α`                     | [`Config::smoothing`]    | -        |
//! | `RTT_min`               | `Path::min_rtt`          | time     |
//! | `d_k`                   | `AckedCount::count`      | bytes    |
//! | `Pro_seq`, `ACK_seq`    | whether an ACK advances  | -        |
//!
//! `papers/star.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{at_least_zero, fraction};
pub use crate::parts::bandwidth::Credit;
use crate::parts::bandwidth::{Abe, AckedCount, LowPass, PerRound, RoundFilter, Sliding, segments};
use crate::parts::spike::{Bounds, Spike};
use crate::{
    Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Phase, ProbeKind,
    Requirements, SENDER_ONLY, Spacing, Start, Timeout, TimeoutProbe, Undo, WindowState, Windows, state,
};

/// Ratio of window to measured BDP above which a loss counts as congestion (θ of WestwoodBR).
const RATE_GAP: f64 = 1.4;

/// Source of the bandwidth estimate, which the paper leaves open (section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// ABE of TCP-J, which the paper uses.
    #[default]
    Abe,
    /// Westwood's low-pass filter with a time constant of 0.5 s.
    Westwood,
    /// Westwood+'s sample per round trip with the filter of Linux.
    WestwoodPlus,
    /// Jersey's sliding window of a round trip.
    Jersey,
}

/// Threshold of the Reno component.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenoSsthresh {
    /// The ssthresh set by CWS: after a loss the component returns to slow start.
    #[default]
    Shared,
    /// A separate ssthresh of the Reno component, half of the window at the loss.
    Own,
}

/// Unit of growth of the Reno component.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// ACKs, as in Figure 3 of the paper.
    #[default]
    Acks,
    /// Acknowledged segments, so that delayed ACKs do not slow it down.
    Segments,
}

/// Discrimination of losses: future work in the paper (section 5), which names the method of WestwoodBR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discriminator {
    /// No discrimination: CWS answers every loss.
    #[default]
    None,
    /// A loss is congestion if the delay is high and the window exceeds the measured rate.
    Both,
    /// A loss is congestion if the delay is high.
    Spike,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "star",
    title: "measured bandwidth lifts the window and sets it after a loss; a probe asks the peer before a timeout is believed",
    paper: "Obata, Ishida, Takeuchi, Hanasaki, IEICE Transactions on Communications E89-B(6)",
    year: 2006,
    in_kernel: true,
    family: Family::Bandwidth,
    advice: "For one large flow on an unshared link with errors, or where receive windows or fair queues separate the flows. Not for shared queues: here one of ten flows took the whole link, with either recovery.",
    ..SENDER_ONLY
};

/// Parameters of STAR.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Source of the bandwidth estimate.
    pub estimator: Estimator,
    /// ABE's weight of the old estimate at each sample.
    #[serde(deserialize_with = "fraction")]
    pub smoothing: f64,
    /// Minimum interval of an ABE sample in seconds: closer ACKs are merged. Zero uses every ACK.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_gap_s: f64,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
    /// Raise the window by the measured bandwidth (Lift Window Control).
    pub lwc: bool,
    /// After a timeout by a loss, do not lift the window before all earlier data is acknowledged.
    pub lwc_hold: bool,
    /// Bound the lift by the receive window.
    pub lift_within_receive_window: bool,
    /// Unit of growth of the Reno component.
    pub growth: Growth,
    /// ssthresh of the Reno component.
    pub reno_ssthresh: RenoSsthresh,
    /// Probe the peer at a timeout to find out if data was lost (Acknowledgement Error Notification).
    pub aen: bool,
    /// Content of the probe.
    pub aen_probe: TimeoutProbe,
    /// Number of unanswered probes after which the timeout counts as a loss.
    pub aen_max_probes: u32,
    /// After a spurious timeout, pace a window over minRTT instead of sending it at once.
    pub aen_paced: bool,
    /// Method that classifies losses. After a loss by congestion the window halves, without a lift before the data sent by then
    /// is acknowledged.
    pub discriminator: Discriminator,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            estimator: Estimator::Abe,
            smoothing: 0.9,
            least_gap_s: 0.000_25,
            credit: Credit::Whole,
            lwc: true,
            lwc_hold: true,
            lift_within_receive_window: true,
            growth: Growth::Acks,
            reno_ssthresh: RenoSsthresh::Shared,
            aen: true,
            aen_probe: TimeoutProbe::Newest,
            aen_max_probes: 3,
            aen_paced: true,
            discriminator: Discriminator::None,
        }
    }
}

impl Config {
    /// A STAR sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Star::new(*self, start))
    }
}

/// The estimator in use.
#[derive(Clone, Copy, Debug)]
enum Estimate {
    Abe(Abe),
    Westwood(LowPass),
    WestwoodPlus(PerRound),
    Jersey(Sliding),
}

impl Estimate {
    fn new(config: &Config) -> Self {
        match config.estimator {
            Estimator::Abe => {
                Self::Abe(Abe::new(config.smoothing, Duration::from_secs_f64(config.least_gap_s)))
            }
            Estimator::Westwood => Self::Westwood(LowPass::new(0.5, 2.0, 0.01)),
            Estimator::WestwoodPlus => Self::WestwoodPlus(PerRound::new(RoundFilter::Linux, true)),
            Estimator::Jersey => Self::Jersey(Sliding::new(1.0)),
        }
    }

    fn begin(&mut self, path: &Path) {
        match self {
            Self::Abe(abe) => abe.begin(path.now),
            Self::Westwood(filter) => filter.begin(path.now),
            Self::WestwoodPlus(rounds) => rounds.begin(path.now),
            Self::Jersey(sliding) => sliding.begin(path.now),
        }
    }

    fn rest(&mut self) {
        match self {
            Self::Abe(abe) => abe.rest(),
            Self::Westwood(_) => {} // assumes samples of zero during silence
            Self::WestwoodPlus(rounds) => rounds.rest(),
            Self::Jersey(sliding) => sliding.rest(),
        }
    }

    fn on_ack(&mut self, bytes: u64, path: &Path) {
        match self {
            Self::Abe(abe) => abe.on_ack(path.now, bytes),
            Self::Westwood(filter) => filter.on_ack(path.now, bytes),
            Self::WestwoodPlus(rounds) => {
                rounds.on_ack(path.now, bytes, path.srtt.max(Duration::from_millis(50)));
            }
            Self::Jersey(sliding) => sliding.on_ack(bytes, path),
        }
    }

    fn rate(&self) -> f64 {
        match self {
            Self::Abe(abe) => abe.rate(),
            Self::Westwood(filter) => filter.rate(),
            Self::WestwoodPlus(rounds) => rounds.rate(),
            Self::Jersey(sliding) => sliding.rate(),
        }
    }
}

/// Acknowledgement error notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aen {
    Off,
    /// A probe is outstanding.
    Wait {
        /// Number of probes sent.
        asked: u32,
        /// Segments outstanding at the timeout.
        outstanding: u32,
    },
    /// The timeout was spurious. The window is paced until this sequence number is acknowledged.
    Resumed(u64),
}

/// State changed by both loss mechanisms, stored for an undo.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Sizes {
    cwnd: f64,
    reno: Windows,
    own_ssthresh: f64,
}

/// A TCP-STAR sender.
pub struct Star {
    config: Config,
    count: AckedCount,
    estimate: Estimate,
    spike: Spike,
    sizes: Sizes,
    /// Sizes before the last reduction.
    before: Option<Sizes>,
    /// Sequence number up to which the window is not lifted.
    held_until: u64,
    aen: Aen,
    /// Rate of one segment per minRTT, in bytes per second.
    unit_rate: f64,
}

impl Star {
    /// Makes a sender with the values of `start`.
    pub fn new(config: Config, start: &Start) -> Self {
        let reno = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Self {
            config,
            count: AckedCount::new(config.credit),
            estimate: Estimate::new(&config),
            spike: Spike::NONE,
            sizes: Sizes { cwnd: reno.cwnd, reno, own_ssthresh: reno.ssthresh },
            before: None,
            held_until: 0,
            aen: Aen::Off,
            unit_rate: 0.0,
        }
    }

    /// Equation (5): `BW RTT_min / data segment size`.
    fn pipe(&self, path: &Path) -> f64 {
        segments(self.estimate.rate(), path.min_rtt, path.mss)
    }

    /// `ssthresh`; before the first loss, the receive window.
    fn threshold(&self, path: &Path) -> f64 {
        let ssthresh = self.sizes.reno.ssthresh;
        if ssthresh.is_finite() { ssthresh } else { f64::from(path.receive_window) }
    }

    /// Figure 3: grows the Reno component.
    fn grow(&mut self, ack: &Ack, path: &Path) {
        // The ACK that fills a hole after a timeout covers segments that left the network earlier: it counts as one.
        let acked = match self.config.growth {
            Growth::Segments if ack.phase != Phase::Loss => f64::from(ack.counted),
            _ => 1.0,
        };
        let threshold = match self.config.reno_ssthresh {
            RenoSsthresh::Shared => self.threshold(path),
            RenoSsthresh::Own => self.sizes.own_ssthresh,
        };
        let cwnd = &mut self.sizes.reno.cwnd;
        *cwnd += if *cwnd < threshold { acked } else { acked / *cwnd };
    }

    /// Lift Window Control, equation (4): `cwnd = cwnd_reno + cwnd_abe`.
    fn lift(&mut self, path: &Path) {
        let held = path.snd_una <= self.held_until;
        let lift = match (held, self.config.lift_within_receive_window) {
            _ if !self.config.lwc => 0.0,
            (true, _) => 0.0,
            (false, true) => self.pipe(path).min(f64::from(path.receive_window)),
            (false, false) => self.pipe(path),
        };
        self.sizes.cwnd = self.sizes.reno.cwnd + lift;
    }

    /// True if a loss counts as congestion by the configured method.
    fn is_congested(&self, loss: &Loss, path: &Path) -> bool {
        let usable = self.sizes.cwnd.min(f64::from(path.receive_window));
        let found = match self.config.discriminator {
            Discriminator::None => return false,
            Discriminator::Both => self.spike.high && usable > RATE_GAP * self.pipe(path),
            Discriminator::Spike => self.spike.high,
        };
        found || loss.cause == Cause::Mark
    }

    /// Reacts like NewReno: half of the flight, and no lift for a round trip.
    fn yield_half(&mut self, loss: &Loss, path: &Path) {
        let half = (f64::from(loss.outstanding).min(self.sizes.cwnd) / 2.0).max(2.0);
        self.sizes.cwnd = half;
        self.sizes.reno = Windows { cwnd: half, ssthresh: half };
        self.sizes.own_ssthresh = half;
        self.held_until = path.snd_nxt;
    }

    /// Case (I) of section 3.3: data was lost, and the network counts as congested.
    fn believe(&mut self, path: &Path) {
        self.aen = Aen::Off;
        self.sizes.reno = Windows { cwnd: 1.0, ssthresh: self.pipe(path).max(2.0) };
        self.sizes.own_ssthresh = self.sizes.reno.ssthresh;
        self.sizes.cwnd = 1.0;
        if self.config.lwc_hold {
            self.held_until = path.snd_nxt;
        }
    }

    /// Handles an ACK that advances and thus answers the probe. Case (II): only ACKs were lost or late, and the windows are kept.
    /// If the probe was the only outstanding segment, it repaired the loss, unless a duplicate is reported.
    fn take_answer(&mut self, outstanding: u32, ack: &Ack, path: &Path) {
        if outstanding == 1 && !ack.dsack {
            self.believe(path);
        } else {
            self.aen = Aen::Resumed(path.snd_nxt);
        }
    }
}

impl CongestionControl for Star {
    fn window(&self) -> f64 {
        self.sizes.cwnd.max(1.0)
    }

    fn adopt(&mut self, windows: Windows) {
        self.sizes = Sizes { cwnd: windows.cwnd, reno: windows, own_ssthresh: windows.ssthresh };
        self.before = None;
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let bytes = self.count.count(ack, path.mss);
        self.estimate.on_ack(bytes, path);
        self.unit_rate = f64::from(path.mss) / path.min_rtt.as_secs_f64();
        if let Some(rtt) = ack.rtt {
            self.spike.sample(rtt, path.min_rtt, &Bounds::WESTWOOD_BR);
        }
        if ack.acked == 0 {
            return;
        }
        match self.aen {
            Aen::Wait { outstanding, .. } => return self.take_answer(outstanding, ack, path),
            Aen::Resumed(end) if path.snd_una >= end => self.aen = Aen::Off,
            _ => {}
        }
        // In recovery CWS's window is kept, and an unused window does not grow.
        if ack.phase == Phase::Recovery || !ack.window_limited {
            return;
        }
        self.grow(ack, path);
        self.lift(path);
    }

    /// Congestion Window Setting, Figure 1.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.before = Some(self.sizes);
        if self.is_congested(loss, path) {
            return self.yield_half(loss, path);
        }
        let pipe = self.pipe(path).max(2.0);
        if self.sizes.cwnd >= self.threshold(path) {
            self.sizes.cwnd = pipe;
        }
        let reno = (self.sizes.reno.cwnd / 2.0).max(1.0);
        self.sizes.reno = Windows { cwnd: reno, ssthresh: pipe };
        self.sizes.own_ssthresh = reno.max(2.0);
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        match self.aen {
            Aen::Wait { .. } => self.believe(path),
            Aen::Off | Aen::Resumed(_) if timeout.consecutive > 1 => {
                // A further timeout of the same loss: the ssthresh of the first one remains (RFC 5681 section 3.1).
                self.sizes.reno.cwnd = 1.0;
                self.sizes.cwnd = 1.0;
            }
            Aen::Off | Aen::Resumed(_) => {
                self.before = Some(self.sizes);
                self.believe(path);
            }
        }
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        let resumes = matches!(self.aen, Aen::Resumed(_)) && self.config.aen_paced;
        Spacing::at(resumes.then(|| Rate::from_bytes_per_s(self.window() * self.unit_rate)))
    }

    fn on_undo(&mut self, undo: Undo, _path: &Path) {
        let Some(before) = self.before.take() else { return };
        if undo == Undo::Threshold {
            let reno = Windows { cwnd: before.cwnd, ..before.reno };
            self.sizes.reno.ssthresh = self.sizes.reno.ssthresh.max(reno.threshold_to_restore());
            self.sizes.own_ssthresh = self.sizes.own_ssthresh.max(before.own_ssthresh);
            return;
        }
        let now = self.sizes;
        self.sizes = Sizes {
            cwnd: now.cwnd.max(before.cwnd),
            reno: Windows {
                cwnd: now.reno.cwnd.max(before.reno.cwnd),
                ssthresh: now.reno.ssthresh.max(before.reno.ssthresh),
            },
            own_ssthresh: now.own_ssthresh.max(before.own_ssthresh),
        };
        self.held_until = 0;
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        let Sizes { cwnd, reno, .. } = &mut self.sizes;
        match event {
            ConnectionEvent::Established => self.estimate.begin(path),
            ConnectionEvent::Idle { restart } => {
                self.estimate.rest();
                reno.cwnd = reno.cwnd.min(restart);
                *cwnd = reno.cwnd;
                // The measured bandwidth is outdated after an idle time: it is not used for one round trip.
                self.held_until = path.snd_nxt + (restart * f64::from(path.mss)) as u64;
            }
            ConnectionEvent::Unvalidated { floor } => {
                reno.ssthresh = reno.ssthresh.max(0.75 * *cwnd);
                reno.cwnd = (reno.cwnd / 2.0).max(floor);
                *cwnd = (*cwnd / 2.0).max(floor);
            }
            ConnectionEvent::Closed | ConnectionEvent::Abandoned => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.aen {
            Aen::Wait { .. } => "acknowledgement-error-notification",
            _ if self.sizes.cwnd < self.sizes.reno.ssthresh => "slow-start",
            _ => "congestion-avoidance",
        };
        state(self, self.sizes.reno.ssthresh, phase)
    }

    fn requirements(&self) -> Requirements {
        let timeout_probes = self.config.aen && self.config.aen_max_probes > 0;
        Requirements { timeout_probes, ..Requirements::default() }
    }

    /// Acknowledgement Error Notification, section 3.3.
    fn timeout_probe(&mut self, timeout: &Timeout, _path: &Path) -> Option<ProbeKind> {
        match self.aen {
            Aen::Wait { asked, outstanding } if !timeout.answered && asked < self.config.aen_max_probes => {
                self.aen = Aen::Wait { asked: asked + 1, outstanding };
            }
            Aen::Off | Aen::Resumed(_) if timeout.consecutive == 1 => {
                self.before = Some(self.sizes);
                self.aen = Aen::Wait { asked: 1, outstanding: timeout.outstanding };
            }
            _ => return None,
        }
        Some(self.config.aen_probe.kind())
    }
}

#[cfg(test)]
mod tests;
