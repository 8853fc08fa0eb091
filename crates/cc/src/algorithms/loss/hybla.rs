//! TCP Hybla: the sending rate is that of a reference connection with a round trip of 25 ms.
//!
//! C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of Satellite
//! Communications and Networking 22(5), 2004.
//!
//! | paper            | here                         | unit            |
//! |------------------|------------------------------|-----------------|
//! | RTT0             | [`Config::rtt0_s`]           | s               |
//! | ρ                | `Scale::rho`                 | -               |
//! | γ                | [`Config::gamma`]            | segments        |
//! | W                | `windows.cwnd`               | segments        |
//! | B(t) = W / RTT   | [`CongestionControl::spacing`]        | segments / s    |
//! | initial bandwidth estimate | `Train::gap`       | s / segment     |
//!
//! The two per-ACK laws below follow a continuous law. It is `W(t) = ρ 2^(ρ t / RTT)` until `t_γ = RTT0 log2 γ`, then `W(t) =
//! ρ (ρ (t - t_γ) / RTT + γ)`. W / RTT equals that of the reference connection at every t.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::positive;
use crate::parts::pair::Train;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Phase, Priority,
    Requirements, Rule, SENDER_ONLY, Sent, Spacing, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "hybla",
    title: "grows as a connection of 25 ms would, whatever the round-trip time, and spaces its segments",
    paper: "Caini, Firrincieli, International Journal of Satellite Communications and Networking 22(5)",
    year: 2004,
    in_kernel: true,
    family: Family::Loss,
    advice: "For a single flow on a long path, or flows that share a link with short paths. Not for many flows in a small queue: one of them takes nearly all of it, and leaves NewReno almost nothing.",
    ..SENDER_ONLY
};

/// Parameters of TCP Hybla.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Round-trip time of the reference connection in seconds.
    #[serde(deserialize_with = "positive")]
    pub rtt0_s: f64,
    /// Initial window of the reference connection in segments. This connection's window is ρ times as large.
    #[serde(deserialize_with = "positive")]
    pub initial_window: f64,
    /// Initial ssthresh of the reference connection in segments, used without an estimate. This connection's ssthresh is ρ
    /// times as large.
    #[serde(deserialize_with = "positive")]
    pub gamma: f64,
    /// Set the first ssthresh from the spacing of the first ACKs.
    pub estimate: bool,
    /// Segments sent back to back for the estimate.
    pub train: u32,
    /// Pace segments at intervals of RTT / W.
    pub spacing: bool,
    /// Pacing rate in multiples of W / RTT.
    #[serde(deserialize_with = "positive")]
    pub pace_gain: f64,
    /// Window after a timeout.
    pub after_timeout: AfterTimeout,
    /// Variant of Hybla.
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rtt0_s: 0.025,
            initial_window: 1.0,
            gamma: 32.0,
            estimate: true,
            train: 3,
            spacing: true,
            pace_gain: 1.0,
            after_timeout: AfterTimeout::One,
            compat: Compat::Paper,
        }
    }
}

/// Window after a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// A window of one segment after a timeout (RFC 5681).
    One,
    /// ρ segments, which corresponds to one segment of the reference connection.
    Rho,
}

/// Variant of Hybla.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// The paper: real numbers, optional estimate and pacing, growth per acknowledged segment.
    Paper,
    /// The Linux kernel module: fixed-point numbers, growth per ACK, neither estimate nor pacing.
    Linux,
}

impl Config {
    /// A Hybla sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, Hybla::new(*self)))
    }

    fn estimates(&self) -> bool {
        self.estimate && self.train >= 2 && self.compat == Compat::Paper
    }

    fn paces(&self) -> bool {
        self.spacing && self.compat == Compat::Paper
    }
}

/// Larger exponents have no further effect, and 2^16 segments per ACK do not overflow.
const MAX_EXPONENT: f64 = 16.0;

/// ρ and derived values, updated only when a smaller round-trip time is seen.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Scale {
    /// Minimum smoothed RTT: queueing must not raise the rate.
    min_srtt: Duration,
    rho: f64,
    /// `2^ρ - 1`: growth in slow start, in segments per acknowledged segment.
    slow_start_step: f64,
}

impl Scale {
    const UNKNOWN: Self = Self { min_srtt: Duration::MAX, rho: 1.0, slow_start_step: 1.0 };

    fn of(srtt: Duration, rtt0_s: f64) -> Self {
        let rho = (srtt.as_secs_f64() / rtt0_s).max(1.0);
        Self { min_srtt: srtt, rho, slow_start_step: libm::exp2(rho.min(MAX_EXPONENT)) - 1.0 }
    }
}

/// Progress of the estimate at the start.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Estimate {
    /// The train is leaving or its ACKs are arriving; the window is constant. `end` is the first sequence number after the
    /// train.
    Pending { end: u64, left: u32, train: Train },
    /// The estimate is complete, abandoned or disabled.
    Done,
}

/// Window growth of the Linux module in its fixed-point numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct FixedPoint {
    /// `rho_3ls`: 8 ρ.
    rho_3ls: u32,
    /// `snd_cwnd_cents`: growth not yet added, in 1/128 of a segment.
    cents: u32,
    /// `snd_cwnd_cnt`: ACKs since the window last grew.
    unchanged: u32,
}

/// `2^(k / 8)` in units of 1/128.
const POWERS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

impl FixedPoint {
    fn of(srtt: Duration, rtt0_s: f64, before: Self) -> Self {
        let rho_3ls = (8.0 * srtt.as_secs_f64() / rtt0_s) as u32;
        Self { rho_3ls: rho_3ls.clamp(8, 1 << 15), ..before }
    }

    /// `rho2_7ls`: 128 ρ².
    fn rho2_7ls(&self) -> u32 {
        (self.rho_3ls * self.rho_3ls) << 1
    }

    /// Growth per ACK in 1/128 of a segment.
    fn increment(&self, windows: &Windows) -> u32 {
        if windows.in_slow_start() {
            let fraction = POWERS[(self.rho_3ls % 8) as usize];
            (1_u32 << (self.rho_3ls / 8).min(16)) * fraction - 128
        } else {
            self.rho2_7ls() / windows.cwnd as u32
        }
    }

    /// Handles one ACK; the number of segments that it covers has no effect.
    fn grow(&mut self, windows: &mut Windows) {
        let slow_start = windows.in_slow_start();
        let increment = self.increment(windows);
        if !slow_start && increment < 128 {
            self.unchanged += 1;
        }
        let cents = self.cents + increment;
        self.cents = cents % 128;
        let mut grown = cents / 128;
        if grown > increment / 128 {
            self.unchanged = 0;
        }
        // If the window is so large that the increment rounds to zero, it grows by one segment per window.
        if increment == 0 && f64::from(self.unchanged) >= windows.cwnd {
            grown += 1;
            self.unchanged = 0;
        }
        windows.cwnd += f64::from(grown);
        if slow_start {
            windows.cwnd = windows.cwnd.min(windows.ssthresh);
        }
    }
}

/// Growth by ρ, pacing, and an ssthresh measured at the start.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    config: Config,
    scale: Scale,
    estimate: Estimate,
    fixed_point: FixedPoint,
    /// Pacing rate per segment of the window in bytes per second; 0 before the first round-trip sample.
    bytes_per_s_per_segment: f64,
}

impl Hybla {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        let pending = Estimate::Pending { end: 0, left: config.train, train: Train::default() };
        Self {
            config,
            scale: Scale::UNKNOWN,
            estimate: if config.estimates() { pending } else { Estimate::Done },
            fixed_point: FixedPoint::default(),
            bytes_per_s_per_segment: 0.0,
        }
    }

    fn is_linux(&self) -> bool {
        self.config.compat == Compat::Linux
    }

    /// Updates ρ from the minimum smoothed RTT.
    fn rescale(&mut self, path: &Path) {
        if !path.srtt.is_zero() && path.srtt < self.scale.min_srtt {
            self.scale = Scale::of(path.srtt, self.config.rtt0_s);
            self.fixed_point = FixedPoint::of(path.srtt, self.config.rtt0_s, self.fixed_point);
        }
    }

    /// Sets the first ssthresh to bottleneck rate times minRTT (Hoe). Without a measurement the reference connection's
    /// ssthresh remains.
    fn measure(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let Estimate::Pending { end, left, train } = &mut self.estimate else { return };
        if ack.acked > 0 && path.snd_una <= *end {
            train.arrived(path.now, ack.acked);
        }
        let over = *left == 0 && path.snd_una >= *end || ack.phase != Phase::Open;
        if !over {
            return;
        }
        if let Some(gap) = train.gap() {
            let segments = path.min_rtt.min(path.srtt).as_secs_f64() / gap.as_secs_f64();
            windows.ssthresh = segments.min(f64::from(path.receive_window)).max(2.0);
        }
        self.estimate = Estimate::Done;
    }
}

impl Rule for Hybla {
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event != ConnectionEvent::Established {
            return;
        }
        self.rescale(path);
        if self.is_linux() {
            windows.cwnd = libm::floor(self.scale.rho);
            return;
        }
        windows.cwnd = (self.scale.rho * self.config.initial_window).max(1.0);
        if windows.ssthresh.is_infinite() {
            let reference = self.scale.rho * self.config.gamma;
            windows.ssthresh = reference.min(f64::from(path.receive_window)).max(2.0);
        }
        self.bytes_per_s_per_segment = bytes_per_s_per_segment(path);
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.rescale(path);
        self.bytes_per_s_per_segment = bytes_per_s_per_segment(path);
        self.measure(windows, ack, path);
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let acked = f64::from(ack.acked);
        match self.estimate {
            Estimate::Pending { .. } => {}
            Estimate::Done if ack.phase == Phase::Loss => windows.cwnd += acked,
            Estimate::Done if self.is_linux() => self.fixed_point.grow(windows),
            Estimate::Done => {
                windows.cwnd = (windows.cwnd + acked * self.scale.slow_start_step).min(windows.ssthresh);
            }
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let acked = f64::from(ack.acked);
        if ack.phase == Phase::Loss {
            windows.cwnd += acked / windows.cwnd;
        } else if self.is_linux() {
            self.fixed_point.grow(windows);
        } else {
            windows.cwnd += acked * self.scale.rho * self.scale.rho / windows.cwnd;
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        windows.halve(loss);
        if loss.cause == Cause::Timeout && self.config.after_timeout == AfterTimeout::Rho {
            windows.cwnd = self.scale.rho.min(windows.ssthresh);
        }
    }
}

/// Hybla's window with pacing.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<Hybla>,
}

impl Sender {
    fn new(windows: Windows, rule: Hybla) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_rto, on_undo, adopt, on_event, snapshot);

    /// Spacing of RTT / W between segments; the train leaves back to back.
    fn spacing(&self) -> Spacing {
        let Hybla { config, estimate, bytes_per_s_per_segment, .. } = &self.classic.rule;
        let in_train = matches!(estimate, Estimate::Pending { left: 1.., .. });
        let rate = config.pace_gain * self.classic.windows.cwnd * bytes_per_s_per_segment;
        Spacing::at((config.paces() && !in_train && rate > 0.0).then(|| Rate::from_bytes_per_s(rate)))
    }

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        if let Estimate::Pending { end, left, .. } = &mut self.classic.rule.estimate
            && *left > 0
            && !sent.retransmission
        {
            *left -= 1;
            *end = sent.seq + u64::from(sent.len);
        }
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        let config = &self.classic.rule.config;
        Requirements { sent: config.estimates(), pacing: config.paces(), ..Requirements::default() }
    }
}

fn bytes_per_s_per_segment(path: &Path) -> f64 {
    if path.srtt.is_zero() { 0.0 } else { f64::from(path.mss) / path.srtt_s() }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Instant;

    use super::*;
    use crate::fixture::{self, MSS, close};
    use crate::{BackOff, Timeout};

    fn path(rtt_ms: u64) -> Path {
        let rtt = Duration::from_millis(rtt_ms);
        Path { srtt: rtt, min_rtt: rtt, receive_window: 10_000, ..fixture::path() }
    }

    /// Makes a sender without the estimate, which would hold the window constant until its end.
    fn hybla(cwnd: f64, ssthresh: f64) -> Sender {
        let config = Config { estimate: false, ..Config::default() };
        Sender::new(Windows { cwnd, ssthresh }, Hybla::new(config))
    }

    fn acks(sender: &mut Sender, count: u32, path: &Path) {
        for _ in 0..count {
            sender.on_ack(&fixture::ack(1), path);
        }
    }

    #[test]
    fn at_twice_the_reference_rho_is_two() {
        let mut start = hybla(2.0, 1000.0);
        acks(&mut start, 1, &path(50));
        assert_eq!(start.window(), 5.0, "2^2 - 1 per ACK");
        let mut later = hybla(10.0, 2.0);
        acks(&mut later, 1, &path(50));
        assert!(close(later.window(), 10.4), "rho^2 / W per ACK");
        acks(&mut later, 9, &path(50));
        assert!(close(later.window(), 13.4613));
    }

    #[test]
    fn a_geostationary_path_grows_by_rho_squared_per_window() {
        let mut sender = hybla(480.0, 2.0);
        acks(&mut sender, 480, &path(600));
        assert!(close(sender.window(), 885.28));
    }

    #[test]
    fn a_path_shorter_than_the_reference_is_reno() {
        let mut sender = hybla(10.0, 2.0);
        acks(&mut sender, 1, &path(5));
        assert!(close(sender.window(), 10.1));
    }

    #[test]
    fn slow_start_stops_at_its_threshold() {
        let mut sender = hybla(22.0, 300.0);
        acks(&mut sender, 1, &path(550));
        assert_eq!(sender.window(), 300.0);
    }

    #[test]
    fn the_handshake_sets_window_and_threshold() {
        let mut sender = hybla(2.0, f64::INFINITY);
        sender.on_event(ConnectionEvent::Established, &path(550));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (22.0, 704.0));
        assert_eq!(sender.spacing().rate(), Some(Rate::from_bytes_per_s(22.0 * 1000.0 / 0.55)));
    }

    #[test]
    fn queueing_does_not_make_it_faster() {
        let mut sender = hybla(10.0, 2.0);
        acks(&mut sender, 1, &path(50));
        acks(&mut sender, 1, &path(500));
        assert_eq!(sender.classic.rule.scale.rho, 2.0);
    }

    fn send(sender: &mut Sender, segments: u64) {
        for i in 0..segments {
            let sent = Sent { seq: 1 + i * u64::from(MSS), len: MSS, retransmission: false };
            sender.on_sent(&sent, &path(500));
        }
    }

    #[test]
    fn the_first_threshold_is_what_the_bottleneck_carries_in_a_round_trip() {
        let windows = Windows { cwnd: 2.0, ssthresh: f64::INFINITY };
        let mut sender = Sender::new(windows, Hybla::new(Config::default()));
        sender.on_event(ConnectionEvent::Established, &path(500));
        assert_eq!(sender.spacing().rate(), None, "the train leaves back to back");
        send(&mut sender, 20);
        assert!(sender.spacing().rate().is_some(), "the rest is spaced");
        for (i, micros) in [(1, 0), (2, 1660), (3, 3330)] {
            assert_eq!(sender.window(), 20.0, "it stands still until the train is back");
            let now = Instant::ZERO + Duration::from_micros(500_000 + micros);
            sender.on_ack(&fixture::ack(1), &Path { now, snd_una: 1 + i * u64::from(MSS), ..path(500) });
        }
        assert!(close(sender.snapshot().ssthresh, 0.5 / 0.001665), "300 segments of 1.665 ms in 0.5 s");
        assert_eq!(sender.window(), sender.snapshot().ssthresh);
    }

    #[test]
    fn a_train_that_measures_nothing_leaves_the_reference() {
        let windows = Windows { cwnd: 2.0, ssthresh: f64::INFINITY };
        let mut sender = Sender::new(windows, Hybla::new(Config::default()));
        sender.on_event(ConnectionEvent::Established, &path(500));
        send(&mut sender, 3);
        sender.on_ack(&fixture::ack(3), &Path { snd_una: 1 + 3 * u64::from(MSS), ..path(500) });
        assert_eq!(sender.snapshot().ssthresh, 640.0);
    }

    #[test]
    fn a_timeout_leaves_one_segment_of_ours_or_of_the_reference() {
        for (after_timeout, window) in [(AfterTimeout::One, 1.0), (AfterTimeout::Rho, 22.0)] {
            let config = Config { estimate: false, after_timeout, ..Config::default() };
            let mut sender = Sender::new(Windows { cwnd: 100.0, ssthresh: 50.0 }, Hybla::new(config));
            acks(&mut sender, 1, &path(550));
            let timeout = Timeout { consecutive: 1, outstanding: 100, answered: false };
            assert_eq!(sender.on_rto(&timeout, &path(550)), BackOff::Double);
            assert_eq!(sender.window(), window);
            sender.on_ack(&Ack { phase: Phase::Loss, ..fixture::ack(1) }, &path(550));
            assert_eq!(sender.window(), window + 1.0, "Reno until the hole is filled");
        }
    }

    #[test]
    fn linux_counts_in_eighths_and_128ths() {
        let fixed = FixedPoint::of(Duration::from_millis(550), 0.025, FixedPoint::default());
        assert_eq!((fixed.rho_3ls, fixed.rho2_7ls()), (176, 61_952));
        let mut windows = Windows { cwnd: 100.0, ssthresh: 2.0 };
        let mut fixed = FixedPoint { rho_3ls: 16, ..fixed };
        assert_eq!(fixed.rho2_7ls() / 100, 5, "four segments in 128ths per window of 100");
        for _ in 0..26 {
            fixed.grow(&mut windows);
        }
        assert_eq!((windows.cwnd, fixed.cents), (101.0, 26 * 5 - 128));
    }

    #[test]
    fn linux_grows_by_acks_and_starts_with_rho_segments() {
        let config = Config { compat: Compat::Linux, ..Config::default() };
        let windows = Windows { cwnd: 10.0, ssthresh: f64::INFINITY };
        let mut sender = Sender::new(windows, Hybla::new(config));
        sender.on_event(ConnectionEvent::Established, &path(55));
        assert_eq!((sender.window(), sender.spacing().rate()), (2.0, None));
        sender.on_ack(&fixture::ack(2), &path(55));
        // 2.125 -> 8 * 2.125 = 17: growth of 4 * 139 - 128 = 428 units of 1/128.
        assert_eq!((sender.window(), sender.classic.rule.fixed_point.cents), (5.0, 428 - 3 * 128));
    }
}
