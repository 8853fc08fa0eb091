//! TCP Fast Start: the first flight uses the window of the last transfer at low drop priority. A stale window is abandoned at
//! little cost.
//!
//! V. N. Padmanabhan, R. H. Katz, "TCP Fast Start: A Technique for Speeding Up Web Transfers", IEEE GLOBECOM Internet
//! Mini-Conference 1998.
//!
//! | paper                        | here                              | unit     |
//! |------------------------------|-----------------------------------|----------|
//! | cached `cwnd`, `ssthresh`, `srtt` | [`Saved`] in [`PathMemory`]  | segments, time |
//! | fast-start phase             | `State::Running`                  | -        |
//! | first segment after it       | `Attempt::end`                    | bytes    |
//! | reset timer                  | `Attempt::reset_at`               | time     |
//! | fast-start segments lost     | `State::Repairing::lost`          | segments |
//!
//! The rest is Reno. Only the abstract was available: `papers/fast-start.md` lists the reconstructed parts.

use alloc::boxed::Box;

use bentpipe_base::{Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::rounds::Round;
use crate::{
    Accounting, Ack, BackOff, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit,
    Entry, Family, Loss, Path, PathMemory, Phase, Priority, Requirements, Rule, SENDER_ONLY, Saved, Sent,
    Sleeper, Spacing, Start, Timeout, Wake, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "fast-start",
    title: "begins with the window of the last transfer, in low priority",
    paper: "Padmanabhan, Katz, IEEE GLOBECOM Internet Mini-Conference",
    year: 1998,
    needs_routers: true,
    remembers: true,
    family: Family::Probes,
    advice: "For a series of short transfers to the same destination. A single long transfer equals Reno's.",
    ..SENDER_ONLY
};

/// Parameters of Fast Start.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Seconds after which a saved window expires.
    #[serde(deserialize_with = "positive")]
    pub max_age_s: f64,
    /// Maximum relative difference of the round-trip time. A larger one means another route, and the saved window is dropped.
    #[serde(deserialize_with = "fraction")]
    pub rtt_tolerance: f64,
    /// Fraction of the window whose loss counts as ordinary loss. With more losses the sender restarts as if without Fast Start.
    #[serde(deserialize_with = "fraction")]
    pub few_lost: f64,
    /// Send the fast-start window at low drop priority. At normal priority a stale window causes losses to other flows.
    pub low_priority: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_age_s: 600.0, rtt_tolerance: 0.25, few_lost: 0.25, low_priority: true }
    }
}

impl Config {
    /// A Fast Start sender; Reno if there is no [`Start::memory`].
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, FastStart::new(*self, start)))
    }
}

/// The sending of a saved window.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Attempt {
    cwnd: f64,
    /// First sequence number after the saved window.
    end: u64,
    /// Time limit: without any ACK by then the attempt has failed.
    reset_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// An ordinary sender.
    Off,
    /// The window is set, and no segment has left yet.
    Armed { cwnd: f64 },
    /// The fast-start phase.
    Running(Attempt),
    /// A segment of the saved window was lost; `lost` counts the losses.
    Repairing { cwnd: f64, lost: u32, counted_at: Instant },
    /// The attempt failed: everything must be sent again.
    Failed,
}

/// Largest window that was delivered for a whole round trip without a loss.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Proven {
    window: f64,
    /// Largest flight of this round trip, in segments.
    flight: u32,
    lossy: bool,
}

/// Fast Start's additions to Reno.
#[derive(Clone, Debug)]
struct FastStart {
    config: Config,
    memory: Option<PathMemory>,
    /// Initial windows of a connection without a saved window.
    fresh: Windows,
    mss: u32,
    srtt_s: f64,
    state: State,
    round: Round,
    proven: Proven,
}

impl FastStart {
    fn new(config: Config, start: &Start) -> Self {
        Self {
            config,
            memory: start.memory.clone(),
            fresh: Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh },
            mss: start.mss,
            srtt_s: 0.0,
            state: State::Off,
            round: Round::default(),
            proven: Proven::default(),
        }
    }

    /// Returns the saved window if it has not expired, fits this path and is not in use by another connection.
    fn recall(&self, path: &Path) -> Option<Saved> {
        let memory = self.memory.as_ref()?;
        let saved = memory.saved()?;
        let tolerance = saved.srtt.mul_f64(self.config.rtt_tolerance);
        let fits = path.now.since(saved.at).as_secs_f64() <= self.config.max_age_s
            && path.srtt.abs_diff(saved.srtt) <= tolerance
            && saved.windows.cwnd > self.fresh.cwnd;
        (fits && memory.take(path.now, path.now + path.srtt * 2)).then_some(saved)
    }

    /// Adopts the saved windows. Returns true if they are set.
    fn begin(&mut self, windows: &mut Windows, path: &Path) -> bool {
        let Some(saved) = self.recall(path) else { return false };
        // Not cut to the receive window: the engine respects it anyway, and the window of a SYN is small because it is unscaled.
        *windows = saved.windows;
        self.state = State::Armed { cwnd: windows.cwnd };
        self.srtt_s = path.srtt_s();
        true
    }

    /// Returns the reset time: the RTO without its coarse minimum.
    fn reset_at(path: &Path) -> Instant {
        path.now + path.srtt + path.rttvar * 4
    }

    /// Returns to the initial windows, as without Fast Start.
    fn give_up(&mut self, windows: &mut Windows) {
        *windows = self.fresh;
        self.proven = Proven::default();
    }

    /// True if `lost` segments of a window of `cwnd` make the attempt a failure.
    fn many(&self, lost: u32, cwnd: f64) -> bool {
        f64::from(lost) > cwnd * self.config.few_lost
    }

    fn follow(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        match &mut self.state {
            State::Running(attempt) if path.snd_una >= attempt.end => self.state = State::Off,
            State::Running(attempt) if ack.acked > 0 => attempt.reset_at = Self::reset_at(path),
            State::Repairing { .. } if ack.phase != Phase::Recovery => self.state = State::Off,
            // The losses that began the episode are already counted.
            State::Repairing { cwnd, lost, counted_at } if path.now > *counted_at => {
                *lost += ack.lost;
                let (lost, cwnd) = (*lost, *cwnd);
                if self.many(lost, cwnd) {
                    self.give_up(windows);
                    self.state = State::Off;
                }
            }
            _ => {}
        }
    }

    fn prove(&mut self, path: &Path) {
        self.proven.flight = self.proven.flight.max(path.outstanding);
        if self.round.ends(path) {
            if !self.proven.lossy {
                self.proven.window = f64::from(self.proven.flight);
            }
            self.proven = Proven { window: self.proven.window, flight: path.outstanding, lossy: false };
        }
    }

    /// Saves the windows, at the end and whenever the application has nothing to send.
    fn save(&self, windows: &Windows, path: &Path) {
        let Some(memory) = &self.memory else { return };
        let flight = f64::from(self.proven.flight).max(self.fresh.cwnd);
        let cwnd = if self.proven.window > 0.0 { self.proven.window } else { windows.cwnd.min(flight) };
        let windows = Windows { cwnd: cwnd.max(1.0), ..*windows };
        memory.save(Saved { windows, srtt: path.srtt, at: path.now });
    }
}

impl Rule for FastStart {
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => {
                self.begin(windows, path);
            }
            ConnectionEvent::Closed => self.save(windows, path),
            _ => {}
        }
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.proven.lossy |= ack.lost > 0;
        self.prove(path);
        self.follow(windows, ack, path);
        if path.snd_una == path.snd_nxt && path.unsent == 0 {
            self.save(windows, path);
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        self.proven.lossy = true;
        if loss.cause == Cause::Timeout {
            self.state = State::Off;
        } else if let State::Running(Attempt { cwnd, .. }) = self.state {
            if self.many(loss.lost, cwnd) {
                self.state = State::Off;
                return self.give_up(windows);
            }
            self.state = State::Repairing { cwnd, lost: loss.lost, counted_at: path.now };
        }
        windows.halve(loss);
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        match self.state {
            State::Armed { .. } | State::Running(_) => "fast-start",
            _ => windows.phase(),
        }
    }
}

/// Reno's window, with a first flight at low priority.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<FastStart>,
}

impl Sender {
    fn new(windows: Windows, rule: FastStart) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_undo, snapshot);

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        let back_off = self.classic.on_rto(timeout, path);
        self.classic.rule.proven.lossy = true;
        self.classic.rule.state = State::Off;
        back_off
    }

    /// After an idle time the saved window is used again.
    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        let Classic { windows, rule, .. } = &mut self.classic;
        if matches!(event, ConnectionEvent::Idle { .. }) && rule.begin(windows, path) {
            return windows.hold_minima();
        }
        self.classic.on_event(event, path);
    }

    /// The first window is paced over a round trip.
    fn spacing(&self) -> Spacing {
        let FastStart { state, mss, srtt_s, .. } = self.classic.rule;
        let (State::Armed { cwnd } | State::Running(Attempt { cwnd, .. })) = state else {
            return Spacing::None;
        };
        Spacing::at((srtt_s > 0.0).then(|| Rate::from_bytes_per_s(cwnd * f64::from(mss) / srtt_s)))
    }

    fn on_sent(&mut self, sent: &Sent, path: &Path) -> Priority {
        let rule = &mut self.classic.rule;
        if let State::Armed { cwnd } = rule.state {
            let end = sent.seq + cwnd as u64 * u64::from(rule.mss);
            rule.state = State::Running(Attempt { cwnd, end, reset_at: FastStart::reset_at(path) });
        }
        match rule.state {
            State::Running(attempt) if rule.config.low_priority && sent.seq < attempt.end => Priority::Low,
            _ => Priority::Normal,
        }
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, sent: true, ..Requirements::default() }
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        Some(self)
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Detector for Sender {
    fn early_retransmit(&mut self, _oldest_sent: Instant, _path: &Path) -> EarlyRetransmit {
        if self.classic.rule.state != State::Failed {
            return EarlyRetransmit::None;
        }
        self.classic.rule.state = State::Off;
        EarlyRetransmit::Everything
    }

    fn is_essential(&self) -> bool {
        true
    }
}

impl Sleeper for Sender {
    fn wake_at(&self) -> Instant {
        match self.classic.rule.state {
            State::Running(attempt) => attempt.reset_at,
            _ => Instant::FAR_FUTURE,
        }
    }

    /// The reset timer expired: no ACK arrived.
    fn on_wake(&mut self, path: &Path) -> Wake {
        if path.now >= self.wake_at() {
            let Classic { windows, rule, .. } = &mut self.classic;
            rule.give_up(windows);
            windows.hold_minima();
            rule.state = State::Failed;
        }
        Wake::Quiet
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Duration;

    use super::*;
    use crate::fixture;

    fn memory(cwnd: f64) -> PathMemory {
        let memory = PathMemory::new();
        let path = fixture::path();
        memory.save(Saved { windows: Windows { cwnd, ssthresh: 40.0 }, srtt: path.srtt, at: path.now });
        memory
    }

    fn path_at(seconds: f64) -> Path {
        Path { rttvar: Duration::from_millis(10), ..fixture::path_at(seconds) }
    }

    fn start(memory: &PathMemory) -> Start {
        Start { memory: Some(memory.clone()), ..fixture::start(1.0) }
    }

    fn open(memory: &PathMemory, path: &Path) -> Sender {
        let start = start(memory);
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        let mut sender = Sender::new(windows, FastStart::new(Config::default(), &start));
        sender.on_event(ConnectionEvent::Established, path);
        sender
    }

    fn sent(seq: u64) -> Sent {
        Sent { seq, len: 1000, retransmission: false }
    }

    /// Makes a connection that has sent its first segment.
    fn running() -> Sender {
        let mut sender = open(&memory(32.0), &path_at(0.0));
        sender.on_sent(&sent(1), &path_at(0.0));
        sender
    }

    /// 32 segments leave in one round trip, all at low priority; an ACK ends the phase.
    #[test]
    fn the_first_window_is_that_of_the_last_transfer() {
        let mut sender = running();
        assert_eq!(
            (sender.window(), sender.snapshot().ssthresh, sender.snapshot().phase),
            (32.0, 40.0, "fast-start")
        );
        let gap = sender.spacing().rate().unwrap().time_for(1000).as_secs_f64();
        assert!((4.0 * gap - 0.06875).abs() < 1e-6, "four segments in 68.75 ms: {gap}");
        let last = sender.on_sent(&sent(31_001), &path_at(0.1));
        assert_eq!((last, sender.on_sent(&sent(32_001), &path_at(0.1))), (Priority::Low, Priority::Normal));
        sender.on_ack(&fixture::ack(32), &Path { snd_una: 32_001, snd_nxt: 40_001, ..path_at(0.6) });
        assert_eq!((sender.snapshot().phase, sender.spacing().rate()), ("congestion-avoidance", None));
        assert_eq!(sender.on_sent(&sent(31_001), &path_at(0.6)), Priority::Normal);
    }

    /// All segments are dropped. The reset timer expires after RTT + 4 RTTVAR, before any RTO.
    #[test]
    fn silence_is_given_up_after_590_ms() {
        let mut sender = running();
        assert_eq!(sender.wake_at(), path_at(0.59).now);
        sender.on_wake(&path_at(0.59));
        assert_eq!(sender.early_retransmit(Instant::ZERO, &path_at(0.59)), EarlyRetransmit::Everything);
        assert_eq!(sender.early_retransmit(Instant::ZERO, &path_at(0.59)), EarlyRetransmit::None);
        assert_eq!(
            (sender.window(), sender.snapshot().ssthresh, sender.snapshot().phase),
            (1.0, f64::INFINITY, "slow-start")
        );
        assert_eq!(sender.wake_at(), Instant::FAR_FUTURE);
    }

    #[test]
    fn an_ack_restarts_the_timer() {
        let mut sender = running();
        sender.on_ack(&fixture::ack(1), &Path { snd_una: 1001, snd_nxt: 32_001, ..path_at(0.5) });
        assert_eq!(sender.wake_at(), path_at(1.09).now);
    }

    #[test]
    fn few_losses_halve() {
        let mut sender = running();
        sender.on_loss(&Loss { lost: 3, ..fixture::loss(32) }, &path_at(0.6));
        sender.on_ack(&Ack { lost: 3, phase: Phase::Recovery, ..fixture::ack(0) }, &path_at(0.6));
        sender.on_ack(&Ack { lost: 5, phase: Phase::Recovery, ..fixture::ack(0) }, &path_at(0.61));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (16.0, 16.0), "eight of 32");
    }

    #[test]
    fn many_losses_start_from_scratch() {
        let mut sender = running();
        sender.on_loss(&Loss { lost: 3, ..fixture::loss(32) }, &path_at(0.6));
        sender.on_ack(&Ack { lost: 6, phase: Phase::Recovery, ..fixture::ack(0) }, &path_at(0.61));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, f64::INFINITY), "nine of 32");
    }

    #[test]
    fn what_is_stale_is_not_used() {
        let memory = memory(32.0);
        let elsewhere = Path { srtt: Duration::from_millis(400), ..path_at(0.0) };
        for path in [path_at(601.0), elsewhere] {
            assert_eq!(open(&memory, &path).window(), 1.0);
        }
        assert_eq!(open(&memory, &path_at(600.0)).window(), 32.0);
    }

    #[test]
    fn one_connection_at_a_time() {
        let memory = memory(32.0);
        assert_eq!(open(&memory, &path_at(0.0)).window(), 32.0);
        assert_eq!(open(&memory, &path_at(1.0)).window(), 1.0);
        assert_eq!(open(&memory, &path_at(1.1)).window(), 32.0);
    }

    #[test]
    fn an_idle_sender_starts_fast_too() {
        let memory = PathMemory::new();
        let mut sender = open(&memory, &path_at(0.0));
        for round in 1..5_u64 {
            let path = Path {
                snd_una: 30_000 * round,
                snd_nxt: 30_000 * (round + 1),
                outstanding: 30,
                ..path_at(round as f64)
            };
            sender.on_ack(&fixture::ack(30), &path);
        }
        sender.on_ack(&fixture::ack(30), &Path { snd_una: 150_000, snd_nxt: 150_000, ..path_at(5.0) });
        assert_eq!(memory.saved().unwrap().windows.cwnd, 30.0);
        sender.on_event(ConnectionEvent::Idle { restart: 4.0 }, &path_at(20.0));
        assert_eq!((sender.window(), sender.snapshot().phase), (30.0, "fast-start"));
    }

    #[test]
    fn without_a_memory_it_is_reno() {
        let mut sender = Config::default().build(&fixture::start(1.0));
        sender.on_event(ConnectionEvent::Established, &path_at(0.0));
        sender.on_ack(&fixture::ack(1), &path_at(0.5));
        assert_eq!((sender.window(), sender.snapshot().phase), (2.0, "slow-start"));
    }
}
