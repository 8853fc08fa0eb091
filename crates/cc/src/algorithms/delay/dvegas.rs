//! TCP DVegas: the queue of the satellite link signals a window change to the adjacent sender in every frame.
//!
//! L. Wu, F. Peng, V. C. M. Leung, "Dynamic congestion control to improve performance of TCP split-connections over satellite
//! links", IEEE PIMRC 2004; F. Peng, L. Wu, V. C. M. Leung, International Journal of Satellite Communications and Networking 24, 2006.
//!
//! | paper                | here                          | unit     |
//! |----------------------|-------------------------------|----------|
//! | feedback of the MAC  | [`Signal`]                    | -        |
//! | least time between reductions, a MAC frame | [`Config::frame_s`] | s |
//! | factor of a persistent reduction | [`Config::persistent_factor`] | - |
//! | α, β, γ              | those of [Vegas](crate::vegas) | segments |
//!
//! In a split connection the sender is adjacent to the queue of its satellite terminal. That queue detects congestion one round
//! trip before any ACK does. Losses outside that queue are transmission errors. Without signals this is Vegas.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Segment};
use serde::{Deserialize, Serialize};

use super::vegas::{self, Vegas};
use crate::parameters::{fraction, positive};
use crate::parts::epoch::SMALLEST;
use crate::{
    Ack, BackOff, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Entry, Family,
    Feedback, Loss, Path, Priority, ReceiverHalf, Reflector, Requirements, Rule, SENDER_ONLY, Sent, Spacing,
    Start, Timeout, Windows, forward,
};

/// Signal of the queue, in [`Extension::Value`] of segments that pass it on their way to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The queue has room.
    Up,
    /// Neither growth nor reduction.
    Hold,
    /// More data waits than slots were granted.
    Down,
    /// The buffer is nearly full: no data may leave.
    Stop,
}

impl Signal {
    /// Encodes the signal, for the queue's side. Zero means no signal.
    pub const fn value(self) -> u64 {
        match self {
            Self::Up => 1,
            Self::Hold => 2,
            Self::Down => 3,
            Self::Stop => 4,
        }
    }

    /// Decodes a signal.
    pub const fn from_value(value: u64) -> Option<Self> {
        match value {
            1 => Some(Self::Up),
            2 => Some(Self::Hold),
            3 => Some(Self::Down),
            4 => Some(Self::Stop),
            _ => None,
        }
    }
}

/// The peer's half: it replies with an empty value, and the queue next to the sender writes its signal there.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 5, build: || Box::new(Receiver) };

struct Receiver;

impl Reflector for Receiver {
    fn on_data(&mut self, _now: Instant, _segment: &Segment, _duplicate: bool) {}

    fn reply(&mut self, _now: Instant) -> Extension {
        Extension::Value(0)
    }
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "dvegas",
    title: "the queue in front of the satellite link tells the sender beside it what to do; Vegas without",
    paper: "Wu, Peng, Leung, IEEE PIMRC; IJSCN 24",
    year: 2004,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    needs_routers: true,
    family: Family::Delay,
    advice: "For terminals that report their queue to the sender. Without reports, as here, it equals Vegas.",
    ..SENDER_ONLY
};

/// Parameters of TCP DVegas.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Minimum time between two reductions in seconds: one MAC frame.
    #[serde(deserialize_with = "positive")]
    pub frame_s: f64,
    /// Factor of the window at a persistent reduction.
    #[serde(deserialize_with = "fraction")]
    pub persistent_factor: f64,
    /// Every `persistent_after`-th consecutive reduction uses the factor; the others subtract one segment.
    pub persistent_after: u32,
    /// Do not grow while the round-trip time shows a queue elsewhere, whatever the adjacent queue signals.
    pub remote_check: bool,
    /// Segments in queues elsewhere that the remote check tolerates.
    #[serde(deserialize_with = "positive")]
    pub remote_queue: f64,
    /// Vegas's α, used without signals.
    #[serde(deserialize_with = "positive")]
    pub alpha: f64,
    /// Vegas's β, used without signals.
    #[serde(deserialize_with = "positive")]
    pub beta: f64,
    /// Vegas's γ, used without signals.
    #[serde(deserialize_with = "positive")]
    pub gamma: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            frame_s: 0.024,
            persistent_factor: 0.875,
            persistent_after: 3,
            remote_check: false,
            remote_queue: 9.0,
            alpha: 1.0,
            beta: 3.0,
            gamma: 1.0,
        }
    }
}

impl Config {
    /// A DVegas sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, DVegas::new(*self)))
    }
}

/// Signals received so far.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Told {
    signal: Signal,
    /// Time of the last reduction.
    reduced_at: Instant,
    /// Consecutive reductions without another signal between them.
    consecutive: u32,
    /// Time of the last `Down` or `Stop`.
    congested_at: Option<Instant>,
}

/// Vegas with signals from the adjacent queue.
#[derive(Clone, Copy, Debug)]
pub struct DVegas {
    config: Config,
    vegas: Vegas,
    told: Option<Told>,
}

impl DVegas {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        let Config { alpha, beta, gamma, .. } = config;
        let vegas = vegas::Config { alpha, beta, gamma, ..vegas::Config::default() };
        Self { config, vegas: Vegas::new(vegas), told: None }
    }

    /// Reduces the window at most once per frame: by one segment, and by 1/8 at every third consecutive time.
    fn reduce_by_signal(&mut self, windows: &mut Windows, now: Instant) {
        let Some(told) = &mut self.told else { return };
        let frame = Duration::from_secs_f64(self.config.frame_s);
        if told.consecutive > 0 && now.since(told.reduced_at) < frame {
            return;
        }
        told.reduced_at = now;
        told.consecutive += 1;
        let persistent = told.consecutive.is_multiple_of(self.config.persistent_after.max(1));
        let left = if persistent { windows.cwnd * self.config.persistent_factor } else { windows.cwnd - 1.0 };
        windows.cwnd = left.max(SMALLEST);
        windows.ssthresh = windows.cwnd;
    }

    fn may_grow(&self) -> bool {
        let crowded_elsewhere = self.config.remote_check
            && self.vegas.last_delta().is_some_and(|delta| delta > self.config.remote_queue);
        self.told.is_some_and(|told| told.signal == Signal::Up) && !crowded_elsewhere
    }
}

impl Rule for DVegas {
    fn phase(&self, windows: &Windows) -> &'static str {
        if self.is_stopped() { "stopped" } else { windows.phase() }
    }

    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        self.vegas.on_event(windows, event, path);
    }

    /// Vegas always measures, but decides only without signals.
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let before = *windows;
        self.vegas.observe(windows, ack, path);
        if self.told.is_some() {
            *windows = before;
        }
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        match self.told {
            None => self.vegas.slow_start(windows, ack, path),
            Some(_) if self.may_grow() => windows.cwnd += f64::from(ack.acked),
            Some(_) => {}
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        match self.told {
            None => self.vegas.avoid(windows, ack, path),
            Some(_) if self.may_grow() => windows.cwnd += f64::from(ack.acked) / windows.cwnd,
            Some(_) => {}
        }
    }

    /// With signals, a loss is a transmission error and does not reduce the window.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        if self.told.is_none() {
            self.vegas.reduce(windows, loss, path);
        }
    }
}

impl DVegas {
    fn is_stopped(&self) -> bool {
        self.told.is_some_and(|told| told.signal == Signal::Stop)
    }

    /// Handles the queue's signal.
    fn hear(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let Extension::Value(value) = fields else { return };
        let Some(signal) = Signal::from_value(*value) else { return };
        let mut told =
            self.told.unwrap_or(Told { signal, reduced_at: path.now, consecutive: 0, congested_at: None });
        told.signal = signal;
        if matches!(signal, Signal::Down | Signal::Stop) {
            told.congested_at = Some(path.now);
        }
        if signal != Signal::Down {
            told.consecutive = 0;
        }
        self.told = Some(told);
        if signal == Signal::Down {
            self.reduce_by_signal(windows, path.now);
        }
    }

    /// Handles a timeout. Without any signal for one RTO, it was an error burst: the window halves and the timer keeps its
    /// length.
    fn time_out(windows: &mut Windows, told: Told, timeout: &Timeout, path: &Path) -> BackOff {
        let congested = told.congested_at.is_some_and(|at| path.now.since(at) <= path.rto);
        if congested {
            if timeout.consecutive == 1 {
                windows.ssthresh = (windows.cwnd / 2.0).max(SMALLEST);
            }
            windows.cwnd = SMALLEST;
        } else {
            windows.cwnd = (windows.cwnd / 2.0).max(SMALLEST);
        }
        BackOff::if_true(congested)
    }
}

/// A window set by Vegas or by the queue's signals.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<DVegas>,
}

impl Sender {
    fn new(windows: Windows, rule: DVegas) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_undo, adopt, on_event, snapshot);

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        match self.classic.rule.told {
            None => self.classic.on_rto(timeout, path),
            Some(told) => {
                self.classic.time_out(timeout, |_, windows| DVegas::time_out(windows, told, timeout, path))
            }
        }
    }

    fn spacing(&self) -> Spacing {
        if self.classic.rule.is_stopped() { Spacing::Withheld } else { Spacing::None }
    }

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        self.classic.rule.vegas.on_sent(sent);
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        Requirements { sent: true, withholds: true, ..Requirements::default() }
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        Some(self)
    }
}

impl Feedback for Sender {
    fn receiver(&self) -> u8 {
        RECEIVER.number
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        self.classic.rule.hear(&mut self.classic.windows, fields, path);
    }
}

impl Detector for Sender {
    fn early_retransmit(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        let Classic { windows, rule, .. } = &mut self.classic;
        match rule.told {
            None => rule.vegas.early_retransmit(windows, oldest_sent, path),
            Some(_) => EarlyRetransmit::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn dvegas(cwnd: f64, ssthresh: f64) -> Sender {
        Sender::new(Windows { cwnd, ssthresh }, DVegas::new(Config::default()))
    }

    fn tell(sender: &mut Sender, signal: Signal, frame: u32) {
        let path = fixture::path_at(1.0 + 0.024 * f64::from(frame));
        sender.on_feedback(&Extension::Value(signal.value()), &path);
    }

    #[test]
    fn each_frame_takes_a_segment_and_the_third_an_eighth() {
        let mut sender = dvegas(40.0, 2.0);
        let mut left = [0.0; 4];
        for (frame, left) in (0..).zip(&mut left) {
            tell(&mut sender, Signal::Down, frame);
            *left = sender.window();
        }
        assert_eq!(left, [39.0, 38.0, 33.25, 32.25]);
        assert_eq!(sender.snapshot().ssthresh, 32.25, "and slow start is over");
    }

    #[test]
    fn one_reduction_per_frame() {
        let mut sender = dvegas(40.0, 2.0);
        for _ in 0..10 {
            tell(&mut sender, Signal::Down, 0);
        }
        assert_eq!(sender.window(), 39.0);
    }

    #[test]
    fn another_signal_ends_the_row() {
        let mut sender = dvegas(40.0, 2.0);
        for (frame, signal) in (0..).zip([Signal::Down, Signal::Down, Signal::Hold, Signal::Down]) {
            tell(&mut sender, signal, frame);
        }
        assert_eq!(sender.window(), 37.0);
    }

    #[test]
    fn only_up_lets_it_grow() {
        for (signal, start, later) in
            [(Signal::Up, 11.0, 40.025), (Signal::Hold, 10.0, 40.0), (Signal::Stop, 10.0, 40.0)]
        {
            for (cwnd, ssthresh, after) in [(10.0, 100.0, start), (40.0, 2.0, later)] {
                let mut sender = dvegas(cwnd, ssthresh);
                tell(&mut sender, signal, 0);
                sender.on_ack(&fixture::ack(1), &fixture::path());
                assert_eq!(sender.window(), after, "{signal:?}");
            }
        }
    }

    #[test]
    fn stop_withholds_everything_until_another_signal() {
        let mut sender = dvegas(40.0, 2.0);
        tell(&mut sender, Signal::Stop, 0);
        assert_eq!(sender.spacing(), Spacing::Withheld);
        tell(&mut sender, Signal::Hold, 1);
        assert_eq!(sender.spacing(), Spacing::None);
    }

    #[test]
    fn a_loss_is_an_error_where_the_queue_speaks() {
        let path = Path { snd_nxt: 40_001, ..fixture::path_at(1.0) };
        let mut sender = dvegas(33.25, 2.0);
        tell(&mut sender, Signal::Hold, 0);
        sender.on_loss(&fixture::loss(33), &path);
        assert_eq!(sender.window(), 33.25);
        let mut silent = dvegas(33.25, 2.0);
        silent.on_loss(&fixture::loss(33), &path);
        assert_eq!(silent.window(), 33.25 * 0.75, "Vegas");
    }

    #[test]
    fn a_timeout_long_after_the_last_congestion_is_a_burst_of_errors() {
        let timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };
        let mut sender = dvegas(40.0, 30.0);
        tell(&mut sender, Signal::Down, 0);
        let later = sender.on_rto(&timeout, &fixture::path_at(5.0));
        assert_eq!((later, sender.window()), (BackOff::Keep, 19.5));
        let mut sender = dvegas(41.0, 30.0);
        tell(&mut sender, Signal::Down, 0);
        let soon = sender.on_rto(&timeout, &fixture::path_at(1.5));
        assert_eq!((soon, sender.window()), (BackOff::Double, 2.0));
        assert_eq!(sender.snapshot().ssthresh, 20.0);
    }

    #[test]
    fn values_and_signals_are_the_same() {
        for signal in [Signal::Up, Signal::Hold, Signal::Down, Signal::Stop] {
            assert_eq!(Signal::from_value(signal.value()), Some(signal));
        }
        assert_eq!(Signal::from_value(0), None);
    }
}
