//! TCP Vegas: the difference between the expected and the actual rate of the window measures the queue.
//!
//! L. S. Brakmo, L. L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE Journal on Selected
//! Areas in Communications 13(8), 1995. The details follow ns-2 (`tcp-vegas.cc`) or Linux (`tcp_vegas.c`).
//!
//! | paper              | here                         | unit            |
//! |--------------------|------------------------------|-----------------|
//! | BaseRTT            | `Epoch::base`                | time            |
//! | Expected           | window / BaseRTT             | segments / s    |
//! | Actual             | sent in the epoch / its RTT  | segments / s    |
//! | Diff · BaseRTT     | `Measured::delta`            | segments        |
//! | α, β               | [`Config::alpha`], [`Config::beta`] | segments |
//! | γ                  | [`Config::gamma`]            | segments        |
//! | fine-grained timeout | `Lifeline::fine_timeout`   | time            |
//! | `worried`          | `Lifeline::worried`          | ACKs            |
//! | `t_cut`            | `Lifeline::cut_at`           | time            |

use alloc::boxed::Box;
use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::parameters::{not_negative, positive};
use crate::parts::windowed::WindowedMax;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Entry, Family, Loss,
    Path, Phase, Priority, Requirements, Rule, SENDER_ONLY, Sent, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    title: "keeps between one and three segments in the queue, by the difference of expected and actual rate",
    paper: "Brakmo, Peterson, IEEE Journal on Selected Areas in Communications 13(8)",
    year: 1995,
    in_kernel: true,
    family: Family::Delay,
    advice: "For an unshared link with a short queue. Senders that fill queues displace it.",
    ..SENDER_ONLY
};

/// Parameters of TCP Vegas.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Config {
    /// Variant of Vegas.
    pub mode: Mode,
    /// Grow while fewer segments than this are queued. Default: 1, in Linux 2.
    pub alpha: f64,
    /// Shrink while more segments than this are queued. Default: 3, in Linux 4.
    pub beta: f64,
    /// End slow start when more segments than this are queued.
    pub gamma: f64,
    /// Length of the base round-trip time filter in seconds, because routes change; 0 never forgets.
    pub base_rtt_window_s: f64,
}

/// Parameters as written by the user; absent ones depend on the mode.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    mode: Mode,
    #[serde(deserialize_with = "positive")]
    alpha: f64,
    #[serde(deserialize_with = "positive")]
    beta: f64,
    #[serde(deserialize_with = "positive")]
    gamma: f64,
    #[serde(deserialize_with = "not_negative")]
    base_rtt_window_s: f64,
}

/// Marks an absent threshold; a written threshold is always larger.
const LEFT_OUT: f64 = 0.0;

impl Default for Written {
    fn default() -> Self {
        Self { mode: Mode::Ns2, alpha: LEFT_OUT, beta: LEFT_OUT, gamma: 1.0, base_rtt_window_s: 0.0 }
    }
}

impl From<Written> for Config {
    fn from(written: Written) -> Self {
        let Written { mode, alpha, beta, gamma, base_rtt_window_s } = written;
        let or = |written: f64, usual: f64| if written > LEFT_OUT { written } else { usual };
        let (least, most) = match mode {
            Mode::Ns2 => (1.0, 3.0),
            Mode::Linux => (2.0, 4.0),
        };
        Self { mode, alpha: or(alpha, least), beta: or(beta, most), gamma, base_rtt_window_s }
    }
}

impl Default for Config {
    fn default() -> Self {
        Written::default().into()
    }
}

/// Variant of Vegas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The original, as in ns-2: mean round-trip time of an epoch, slow start every second epoch, 1/4 less after a loss.
    #[serde(rename = "ns-2")]
    Ns2,
    /// The Linux kernel module: minimum round-trip time of an epoch, slow start every epoch, 1/2 less after a loss.
    Linux,
}

impl Config {
    /// A Vegas sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, Vegas::new(*self)))
    }
}

/// Minimum window in segments.
pub(crate) const SMALLEST: f64 = 2.0;

/// Measurements of an epoch (about a round trip).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    /// minRTT of the connection.
    pub base: Duration,
    /// Mean round-trip time of the epoch.
    pub rtt: Duration,
    /// Minimum round-trip time of the epoch; [`Duration::MAX`] without a sample.
    pub min_rtt: Duration,
    /// Round-trip samples in the epoch.
    pub samples: u32,
    /// `(Expected - Actual) BaseRTT`, rounded to whole segments: the queued segments.
    pub delta: f64,
}

impl Measured {
    /// Returns the queued segments by the epoch's minimum round-trip time, as in Linux: `W (RTT - BaseRTT) / BaseRTT`.
    pub fn queued(&self, window: f64) -> f64 {
        let waiting = self.min_rtt.saturating_sub(self.base).as_secs_f64();
        window * waiting / self.base.as_secs_f64()
    }
}

/// Delimits epochs by sequence numbers, and measures them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    base: WindowedMax<Reverse<Duration>>,
    /// First sequence number of the epoch, and its start time.
    begin: u64,
    began_at: Instant,
    sum: Duration,
    min: Duration,
    samples: u32,
}

impl Epoch {
    /// Makes an epoch whose minimum round-trip time is valid for `base_window_s` seconds; 0 for the whole connection.
    pub fn new(base_window_s: f64) -> Self {
        let window = if base_window_s > 0.0 { Duration::from_secs_f64(base_window_s) } else { Duration::MAX };
        Self {
            base: WindowedMax::new(window.as_nanos()),
            begin: 0,
            began_at: Instant::ZERO,
            sum: Duration::ZERO,
            min: Duration::MAX,
            samples: 0,
        }
    }

    /// Starts the first epoch.
    pub fn establish(&mut self, path: &Path) {
        self.began_at = path.now;
    }

    /// Handles a round-trip sample; a smaller one becomes the base at once.
    pub fn sample(&mut self, rtt: Duration, path: &Path) {
        self.sum += rtt;
        self.min = self.min.min(rtt);
        self.samples += 1;
        self.base.update(path.now.as_nanos(), Reverse(rtt));
    }

    /// Handles an ACK of new data. Ends the epoch if it covers the first segment sent in it.
    pub fn on_ack(&mut self, path: &Path) -> Option<Measured> {
        if path.snd_una <= self.begin {
            return None;
        }
        let sent = path.snd_nxt.saturating_sub(self.begin) as f64 / f64::from(path.mss.max(1));
        let measured = self.measure(sent, path);
        self.begin = path.snd_nxt;
        self.began_at = path.now;
        (self.sum, self.min, self.samples) = (Duration::ZERO, Duration::MAX, 0);
        measured
    }

    fn measure(&mut self, sent: f64, path: &Path) -> Option<Measured> {
        let mean = self.sum / u64::from(self.samples.max(1));
        let rtt = if self.samples > 0 { mean } else { path.now.since(self.began_at) };
        if rtt.is_zero() {
            return None;
        }
        // A single segment in the network meets no queue of this flow: its round-trip time becomes the base.
        if sent <= 1.0 {
            self.base.reset(path.now.as_nanos(), Reverse(rtt));
        } else {
            self.base.update(path.now.as_nanos(), Reverse(rtt));
        }
        let Reverse(base) = self.base.get()?;
        let base_s = base.as_secs_f64();
        // Outstanding segments just before the ACK, one more than now, because `sent` is counted likewise.
        let expected = f64::from(path.outstanding + 1) / base_s;
        let actual = sent / rtt.as_secs_f64();
        let delta = libm::trunc((expected - actual) * base_s + 0.5);
        Some(Measured { base, rtt, min_rtt: self.min, samples: self.samples, delta })
    }
}

/// Growth of the window until the next epoch ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Growth {
    None,
    /// One segment per acknowledged segment.
    Doubling,
    /// This many segments per acknowledged segment.
    PerSegment(f64),
}

impl Growth {
    /// Grows the window for an ACK in slow start.
    pub fn slow_start(self, windows: &mut Windows, ack: &Ack) {
        if self == Self::Doubling {
            windows.cwnd = (windows.cwnd + f64::from(ack.acked)).min(windows.ssthresh);
        }
    }

    /// Grows the window for an ACK in congestion avoidance.
    pub fn avoid(self, windows: &mut Windows, ack: &Ack) {
        if let Self::PerSegment(step) = self {
            windows.cwnd += f64::from(ack.acked) * step;
        }
    }
}

/// Congestion avoidance at the end of an epoch: one segment more over the next epoch, one less at once, or no change.
pub(crate) fn hold_between(alpha: f64, beta: f64, delta: f64, windows: &mut Windows) -> Growth {
    // Only a timeout leads back to slow start, so ssthresh must not exceed a smaller window.
    windows.ssthresh = SMALLEST;
    if delta > beta {
        windows.cwnd = (windows.cwnd - 1.0).max(SMALLEST);
    } else if delta < alpha {
        return Growth::PerSegment(1.0 / windows.cwnd);
    }
    Growth::None
}

/// Ends slow start because a queue builds up: subtracts 1/8.
pub(crate) fn leave_slow_start(windows: &mut Windows) {
    windows.ssthresh = SMALLEST;
    windows.cwnd = (windows.cwnd - windows.cwnd / 8.0).max(SMALLEST);
}

/// The fine-grained timeout. It retransmits an overdue segment on the first or second duplicate, or on the ACK after a
/// retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifeline {
    fine_timeout: Duration,
    /// Number of ACKs after a retransmission that may reveal another loss.
    worried: u32,
    /// Time of the last reduction, and the data sent by then.
    cut_at: Instant,
    cut_nxt: u64,
    /// Segment retransmitted last.
    again: Option<u64>,
    /// True if the previous ACK was a duplicate.
    duplicate: bool,
}

impl Lifeline {
    pub fn new() -> Self {
        Self {
            fine_timeout: Duration::MAX,
            worried: 0,
            cut_at: Instant::ZERO,
            cut_nxt: 0,
            again: None,
            duplicate: false,
        }
    }

    /// Updates the timeout `17/16 (srtt + 2 rttvar)` at every sample.
    pub fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.duplicate = ack.acked == 0;
        if ack.rtt.is_some() {
            self.fine_timeout = (path.srtt + path.rttvar * 2).mul_f64(17.0 / 16.0);
        }
    }

    pub fn sent(&mut self, sent: &Sent) {
        if sent.retransmission {
            self.again = Some(sent.seq);
        }
    }

    /// True if the oldest outstanding segment was already retransmitted.
    fn is_repeated(&self, path: &Path) -> bool {
        self.again.is_some_and(|seq| seq >= path.snd_una)
    }

    /// Handles a loss detected by duplicates. Returns the new window; it is unchanged if the segment left before the last
    /// cut.
    pub fn lost(&mut self, windows: &Windows, path: &Path) -> f64 {
        let paid = path.snd_una < self.cut_nxt && !self.is_repeated(path);
        let left = if paid { windows.cwnd } else { self.cut(windows, path) };
        self.worry(path);
        left
    }

    /// Returns 3/4 of the window, or half if the retransmission was lost.
    fn cut(&mut self, windows: &Windows, path: &Path) -> f64 {
        let repeated = self.is_repeated(path);
        self.mark_cut(path);
        let usable = windows.cwnd.min(f64::from(path.receive_window));
        match usable {
            ..=3.0 => SMALLEST,
            w if repeated => w / 2.0,
            w => w - w / 4.0,
        }
    }

    /// Records a window reduction: losses of segments already in flight cause no further cut.
    pub fn mark_cut(&mut self, path: &Path) {
        self.cut_at = path.now;
        self.cut_nxt = path.snd_nxt;
    }

    /// Expects further losses after a retransmission on duplicates.
    fn worry(&mut self, path: &Path) {
        self.worried = path.outstanding.min(2);
        let factor = if self.is_repeated(path) { 2.0 } else { 9.0 / 8.0 };
        self.fine_timeout = self.fine_timeout.mul_f64(factor);
    }

    /// Checks after an ACK if the oldest segment must be retransmitted. Cuts the window if the last cut came before the
    /// segment left.
    pub fn doubt(&mut self, windows: &mut Windows, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        let expired = path.now.since(oldest_sent) >= self.fine_timeout;
        if self.duplicate && expired {
            if self.cut_at < oldest_sent {
                windows.cwnd = self.cut(windows, path).min(windows.cwnd);
                windows.ssthresh = SMALLEST;
            }
            self.worry(path);
        } else if self.duplicate || self.worried == 0 {
            return EarlyRetransmit::None;
        } else {
            self.worried = if expired { self.worried - 1 } else { 0 };
        }
        if expired { EarlyRetransmit::Oldest } else { EarlyRetransmit::None }
    }
}

/// Window law that keeps α to β segments in queues.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    config: Config,
    epoch: Epoch,
    growth: Growth,
    /// True if the window was constant in the epoch just ended: slow start doubles it every second epoch (`inc_flag`).
    stood: bool,
    /// Queued segments in the last epoch.
    delta: Option<f64>,
    lifeline: Lifeline,
}

impl Vegas {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            epoch: Epoch::new(config.base_rtt_window_s),
            growth: Growth::None,
            stood: false,
            delta: None,
            lifeline: Lifeline::new(),
        }
    }

    /// Returns the segments queued in the last epoch.
    pub(crate) fn last_delta(&self) -> Option<f64> {
        self.delta
    }

    /// Decides at the end of an epoch, as the original.
    fn decide(&mut self, windows: &mut Windows, measured: &Measured) {
        let Config { alpha, beta, gamma, .. } = self.config;
        if !windows.in_slow_start() {
            self.growth = hold_between(alpha, beta, measured.delta, windows);
            return;
        }
        let stood = self.stood;
        self.stood = !stood;
        self.growth = Growth::None;
        if stood && measured.delta > gamma {
            leave_slow_start(windows);
        } else if stood {
            self.growth = Growth::Doubling;
        }
    }

    /// Decides as Linux: whole segments, at once.
    fn decide_as_linux(&mut self, windows: &mut Windows, measured: &Measured) {
        let Config { alpha, beta, gamma, .. } = self.config;
        self.growth = if windows.in_slow_start() { Growth::Doubling } else { Growth::None };
        if measured.samples <= 2 {
            // Delayed ACKs alone could explain the delay: Reno's growth for this ACK.
            if !windows.in_slow_start() {
                windows.cwnd += 1.0 / windows.cwnd;
            }
            return;
        }
        let queued = measured.queued(windows.cwnd);
        let before = windows.cwnd;
        if windows.in_slow_start() && queued > gamma {
            let base = measured.base.as_secs_f64();
            let target = windows.cwnd * base / measured.min_rtt.as_secs_f64() + 1.0;
            windows.cwnd = windows.cwnd.min(target).max(SMALLEST);
            windows.ssthresh = windows.ssthresh.min(windows.cwnd - 1.0).max(SMALLEST);
            self.growth = Growth::None;
        } else if !windows.in_slow_start() && queued > beta {
            windows.cwnd = (before - 1.0).max(SMALLEST);
            windows.ssthresh = windows.ssthresh.min(windows.cwnd - 1.0).max(SMALLEST);
        } else if !windows.in_slow_start() && queued < alpha {
            windows.cwnd += 1.0;
        }
    }
}

impl Rule for Vegas {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.epoch.establish(path);
        }
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.lifeline.on_ack(ack, path);
        let linux = self.config.mode == Mode::Linux;
        // In ns-2, the sample of the ACK that ends an epoch belongs to the next.
        if let Some(rtt) = ack.rtt.filter(|_| linux) {
            self.epoch.sample(rtt, path);
        }
        if ack.acked > 0
            && let Some(measured) = self.epoch.on_ack(path)
            && ack.phase != Phase::Recovery
        {
            self.delta = Some(measured.delta);
            if linux {
                self.decide_as_linux(windows, &measured);
            } else {
                self.decide(windows, &measured);
            }
        }
        if let Some(rtt) = ack.rtt.filter(|_| !linux) {
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
        let linux = self.config.mode == Mode::Linux;
        if loss.cause == Cause::Timeout {
            self.lifeline.mark_cut(path);
            self.growth = Growth::None;
            windows.halve(loss);
            windows.cwnd = if linux { 1.0 } else { SMALLEST };
        } else if linux {
            windows.halve(loss);
        } else {
            self.growth = Growth::None;
            windows.reduce_to(self.lifeline.lost(windows, path), loss.cause);
        }
    }
}

/// Early detection of losses, for senders that use it.
impl Vegas {
    /// True for the original, which watches the oldest segment.
    pub(crate) fn is_original(&self) -> bool {
        self.config.mode == Mode::Ns2
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.lifeline.sent(sent);
    }

    pub(crate) fn doubt(
        &mut self,
        windows: &mut Windows,
        oldest_sent: Instant,
        path: &Path,
    ) -> EarlyRetransmit {
        let before = windows.cwnd;
        let doubt = self.lifeline.doubt(windows, oldest_sent, path);
        if windows.cwnd < before {
            self.growth = Growth::None;
        }
        doubt
    }
}

/// Vegas's window control together with its fine-grained timeout.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<Vegas>,
}

impl Sender {
    fn new(windows: Windows, rule: Vegas) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_rto, on_undo, on_event, snapshot);

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        self.classic.rule.on_sent(sent);
        Priority::Normal
    }

    fn wants(&self) -> Requirements {
        Requirements { sent: self.classic.rule.is_original(), ..Requirements::default() }
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        if self.classic.rule.is_original() { Some(self) } else { None }
    }
}

impl Detector for Sender {
    fn doubt(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        self.classic.rule.doubt(&mut self.classic.windows, oldest_sent, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, MSS};
    use crate::{BackOff, Timeout};

    const BASE_MS: u64 = 500;

    fn vegas(cwnd: f64, ssthresh: f64) -> Sender {
        Sender::new(Windows { cwnd, ssthresh }, Vegas::new(Config::default()))
    }

    fn bytes(segments: u64) -> u64 {
        segments * u64::from(MSS)
    }

    fn ack_after(rtt_ms: u64) -> Ack {
        Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) }
    }

    /// The path at the ACK of segment `number`, with `outstanding` more in flight.
    fn path(number: u64, outstanding: u32) -> Path {
        let snd_una = 1 + bytes(number);
        Path { snd_una, snd_nxt: snd_una + bytes(u64::from(outstanding)), outstanding, ..fixture::path() }
    }

    /// Runs an epoch with a window of 100 and a round trip of `rtt_ms`, after an epoch without a queue.
    fn epoch_of(sender: &mut Sender, rtt_ms: u64) {
        sender.on_ack(&ack_after(BASE_MS), &path(1, 99));
        for number in 2..101 {
            sender.on_ack(&Ack { window_limited: false, ..ack_after(rtt_ms) }, &path(number, 99));
        }
        sender.on_ack(&ack_after(rtt_ms), &path(101, 99));
    }

    #[test]
    fn an_epoch_compares_expected_and_actual_rate() {
        // (Expected - Actual) BaseRTT: 0, 0.596 -> 1, 1.961 -> 2, 3.846 -> 4. The epoch's first sample (500 ms) lowers them
        // by 1 %.
        for (rtt_ms, growth, window) in [
            (500, Growth::PerSegment(0.01), 100.01),
            (504, Growth::None, 100.0),
            (510, Growth::None, 100.0),
            (520, Growth::None, 99.0),
        ] {
            let mut sender = vegas(100.0, 2.0);
            epoch_of(&mut sender, rtt_ms);
            assert_eq!(sender.classic.rule.growth, growth, "{rtt_ms} ms");
            assert!((sender.window() - window).abs() < 0.02, "{rtt_ms} ms: {}", sender.window());
        }
    }

    #[test]
    fn delta_is_rounded_to_whole_segments() {
        let mut epoch = Epoch::new(0.0);
        epoch.base.reset(0, Reverse(Duration::from_millis(500)));
        epoch.begin = 1;
        for (rtt_ms, delta) in [(500, 0.0), (503, 1.0), (510, 2.0), (520, 4.0)] {
            let mut epoch = epoch;
            epoch.sample(Duration::from_millis(rtt_ms), &path(1, 99));
            assert_eq!(epoch.on_ack(&path(1, 99)).unwrap().delta, delta, "{rtt_ms} ms");
        }
    }

    #[test]
    fn a_segment_alone_in_the_network_renews_the_base() {
        let mut epoch = Epoch::new(0.0);
        epoch.base.reset(0, Reverse(Duration::from_millis(20)));
        epoch.begin = bytes(1);
        epoch.sample(Duration::from_millis(30), &path(1, 0));
        assert_eq!(epoch.on_ack(&path(1, 0)).unwrap().base, Duration::from_millis(30));
    }

    #[test]
    fn slow_start_doubles_every_other_epoch() {
        let mut sender = vegas(2.0, f64::INFINITY);
        let (mut number, mut ends) = (0, Vec::new());
        for _ in 0..100 {
            number += 1;
            let epoch = sender.classic.rule.epoch.begin;
            let before = sender.window();
            let path = Path { now: fixture::path_at(0.5).now, ..path(number, sender.window() as u32 - 1) };
            sender.on_ack(&ack_after(BASE_MS), &path);
            if sender.classic.rule.epoch.begin != epoch {
                ends.push(before);
            }
        }
        assert_eq!(ends[..6], [2.0, 2.0, 4.0, 4.0, 8.0, 8.0]);
    }

    #[test]
    fn a_queue_ends_slow_start_with_seven_eighths() {
        let rtt = Duration::from_millis(BASE_MS);
        let measured = Measured { base: rtt, rtt, min_rtt: rtt, samples: 3, delta: 2.0 };
        let mut rule = Vegas::new(Config::default());
        let mut windows = Windows { cwnd: 100.0, ssthresh: f64::INFINITY };
        rule.decide(&mut windows, &measured);
        assert_eq!(windows.cwnd, 100.0, "decided every other epoch");
        rule.decide(&mut windows, &measured);
        assert_eq!((windows.cwnd, windows.ssthresh), (87.5, 2.0));
    }

    #[test]
    fn the_first_loss_takes_a_quarter_the_second_of_the_same_segment_a_half() {
        let at = |seconds| Path { now: fixture::path_at(seconds).now, ..path(1, 40) };
        let mut sender = vegas(40.0, 2.0);
        sender.on_loss(&fixture::loss(40), &at(1.0));
        assert_eq!(sender.window(), 30.0);

        let mut sender = vegas(40.0, 2.0);
        let again = Sent { seq: at(1.0).snd_una, len: MSS, retransmission: true };
        sender.on_sent(&again, &at(1.0));
        sender.on_loss(&fixture::loss(40), &at(2.0));
        assert_eq!(sender.window(), 20.0);
    }

    #[test]
    fn what_was_sent_before_a_cut_is_paid_for() {
        let mut sender = vegas(40.0, 2.0);
        sender.on_loss(&fixture::loss(40), &path(1, 40));
        sender.on_loss(&fixture::loss(40), &path(20, 21));
        assert_eq!(sender.window(), 30.0);
        sender.on_loss(&fixture::loss(30), &path(60, 30));
        assert_eq!(sender.window(), 22.5);
    }

    #[test]
    fn the_fine_timeout_retransmits_before_the_third_duplicate() {
        let fine = Path {
            srtt: Duration::from_millis(500),
            rttvar: Duration::from_millis(20),
            now: fixture::path_at(1.0).now,
            ..path(1, 39)
        };
        let mut sender = vegas(40.0, 2.0);
        sender.on_ack(&ack_after(500), &fine);
        assert_eq!(sender.classic.rule.lifeline.fine_timeout, Duration::from_micros(573_750));
        sender.on_ack(&fixture::ack(0), &fine);
        assert_eq!(sender.doubt(fine.now - Duration::from_millis(573), &fine), EarlyRetransmit::None);
        let window = sender.window();
        assert_eq!(sender.doubt(fine.now - Duration::from_millis(574), &fine), EarlyRetransmit::Oldest);
        assert_eq!(sender.window(), window * 0.75);
        assert_eq!(sender.classic.rule.lifeline.fine_timeout, Duration::from_micros(573_750).mul_f64(1.125));
        sender.on_ack(&fixture::ack(1), &fine);
        assert_eq!(
            sender.doubt(fine.now - Duration::from_secs(1), &fine),
            EarlyRetransmit::Oldest,
            "worried"
        );
        assert_eq!(sender.window(), window * 0.75, "and the window was cut already");
    }

    #[test]
    fn a_timeout_leaves_two_segments() {
        let mut sender = vegas(40.0, 2.0);
        let timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };
        assert_eq!(sender.on_rto(&timeout, &path(1, 40)), BackOff::Double);
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (2.0, 20.0));
    }

    #[test]
    fn linux_counts_by_the_smallest_delay_of_an_epoch() {
        let config = Config { mode: Mode::Linux, alpha: 2.0, beta: 4.0, ..Config::default() };
        for (rtt_ms, window) in [(505, 101.0), (515, 100.0), (525, 99.0)] {
            let mut rule = Vegas::new(config);
            rule.epoch.base.reset(0, Reverse(Duration::from_millis(500)));
            rule.epoch.begin = bytes(3);
            let mut sender = Sender::new(Windows { cwnd: 100.0, ssthresh: 2.0 }, rule);
            for number in 1..=3 {
                sender.on_ack(&ack_after(rtt_ms), &path(number, 99));
            }
            assert_eq!(sender.window(), window, "{rtt_ms} ms: queue {}", 100 * (rtt_ms - 500) / 500);
        }
        let mut sender = Sender::new(Windows { cwnd: 40.0, ssthresh: 2.0 }, Vegas::new(config));
        sender.on_loss(&fixture::loss(40), &path(1, 40));
        assert_eq!(sender.window(), 20.0);
    }
}
