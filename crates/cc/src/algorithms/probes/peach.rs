//! TCP-Peach: low-priority dummy segments test for free capacity, and their replies open the window.
//!
//! I. F. Akyildiz, G. Morabito, S. Palazzo, "TCP-Peach: A New Congestion Control Scheme for Satellite IP Networks",
//! IEEE/ACM Transactions on Networking 9(3), 2001.
//!
//! | paper              | here                                | unit     |
//! |--------------------|-------------------------------------|----------|
//! | `cwnd`             | `cwnd`                              | segments |
//! | `rwnd`             | [`Path::receive_window`]            | segments |
//! | τ                  | `Train::tau`                        | time     |
//! | `wdsn`             | `wdsn`                              | probe replies |
//! | `adsn`, n_dummy    | `Recovery::adsn`                    | probes   |
//! | inflation of `cwnd` | `Recovery::inflated`               | segments |
//! | unacknowledged data | [`Path::outstanding`]              | segments |
//! | t_Retr + RTO       | the engine's retransmission timer, restarted at the fast retransmit | time |
//! | `END`              | `State::Recovery` or not            | -        |
//!
//! Sudden Start replaces slow start (section III-B), and Rapid Recovery replaces fast recovery (III-C). The sender is in
//! Congestion Avoidance from the start. There it handles the replies to dummies of both algorithms (III-A). Several formulas and
//! both listings are reconstructed: `papers/peach.md` lists them, the deviations and their reasons.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, ProbeTag, Rate};
use serde::{Deserialize, Serialize};

use crate::parts::beside_data::{Beside, StartBesideData};
use crate::parts::epoch::{Epoch, Growth, hold_between};
pub use crate::parts::mode::Mode;
use crate::parts::probe_peer::Peer;
use crate::parts::probe_train::{Train, most_probes};
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path,
    PeerProbes, Phase, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober, Requirements, SENDER_ONLY,
    Sleeper, Spacing, Start, Timeout, Undo, Wake, WindowState, Windows, state,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "peach",
    title: "Sudden Start and Rapid Recovery: low-priority dummy segments ask for spare capacity",
    paper: "Akyildiz, Morabito, Palazzo, IEEE/ACM Transactions on Networking 9(3)",
    year: 2001,
    needs_receiver: true,
    needs_routers: true,
    in_kernel: true,
    family: Family::Probes,
    advice: "For networks with priorities and receivers that answer dummies. It is fair and takes little from other flows, but high error rates cost most of the goodput.",
    ..SENDER_ONLY
};

/// Parameters of TCP-Peach.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Mode: the literal paper, or a safe variant for networks shared with other traffic.
    pub mode: Mode,
    /// Quantity that the window is compared with in Rapid Recovery.
    pub form: Form,
    /// Use Sudden Start; if false, slow start, as an ablation.
    pub sudden_start: bool,
    /// Use Rapid Recovery; if false, Reno's fast recovery, as an ablation.
    pub rapid_recovery: bool,
    /// ACK that ends Rapid Recovery when several segments of a window were lost.
    pub recovery_ends: RecoveryEnds,
    /// Congestion avoidance of Reno or Vegas.
    pub avoidance: Avoidance,
    /// Maximum number of probes per Sudden Start and per recovery, whatever the receive window.
    pub max_probes: u32,
    /// Count the duplicates that an unmodified receiver reports (RFC 2883) as replies.
    pub dsack_replies: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            form: Form::Inflation,
            sudden_start: true,
            rapid_recovery: true,
            recovery_ends: RecoveryEnds::FullAck,
            avoidance: Avoidance::Reno,
            max_probes: 1024,
            dsack_replies: true,
        }
    }
}

/// Window arithmetic of Rapid Recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The paper: each duplicate ACK inflates the window, which bounds all unacknowledged data.
    Inflation,
    /// RFC 6675: the window is constant and bounds the in-flight data.
    Pipe,
    /// RFC 9937 (PRR): the reduction is spread over the round trip. Copies of new data replace dummies, two directly after each
    /// segment. They leave in recovery and at the start, which uses the host's initial window. Hosts use this form if the kernel
    /// reduces the window and can send copies only after data.
    BesideData,
}

/// New ACK that ends Rapid Recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryEnds {
    /// The ACK of everything sent before the loss was detected, as in NewReno (RFC 6582).
    FullAck,
    /// The first new ACK, as in the paper's description of a single loss.
    FirstAck,
}

/// Congestion Avoidance, of Reno or Vegas (section III).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Avoidance {
    /// Growth by one segment per round trip, as in Reno.
    Reno,
    /// One segment more, one less or no change per round trip, depending on the number of queued segments.
    Vegas,
}

/// α and β of Vegas: minimum and maximum number of queued segments.
const LEAST_WAITING: f64 = 1.0;
const MOST_WAITING: f64 = 3.0;

/// Vegas's measurement of the path, and its result until the next one.
#[derive(Clone, Copy, Debug)]
struct Watch {
    epoch: Epoch,
    growth: Growth,
}

impl Config {
    /// A TCP-Peach sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Peach::new(*self, start))
    }
}

/// A recovery in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Recovery {
    /// Segments by which the window is inflated, removed at the end.
    inflated: u32,
    /// Dummies that may still be sent.
    adsn: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Congestion Avoidance. After the fallback: all of Reno outside recovery.
    Avoidance,
    /// Sudden Start before the data segment that its dummies copy.
    Armed,
    /// Sudden Start sends dummies; otherwise as in Congestion Avoidance.
    SuddenStart(Train),
    /// Probes of Sudden Start are sent with new data, in [`Form::BesideData`].
    Start(StartBesideData),
    /// Rapid Recovery, or Fast Recovery without dummies.
    Recovery(Recovery),
}

/// Transmissions allowed by the last arrival or timer event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Due {
    dummies: u32,
    /// Data segments that may leave in addition to the dummies: the fast retransmit does not use up the ACK that triggered it.
    beside: u32,
}

/// Pacing of the burst at the end of a recovery (safe mode).
#[derive(Clone, Copy, PartialEq, Debug)]
struct ExitPace {
    rate: Rate,
    until: Instant,
}

/// A TCP-Peach sender.
#[derive(Clone, Debug)]
pub struct Peach {
    config: Config,
    cwnd: f64,
    /// ssthresh of the fallback and of the ablation without Sudden Start; Peach itself has no slow start.
    ssthresh: f64,
    /// Number of replies that must not open the window.
    wdsn: u32,
    state: State,
    peer: Peer,
    due: Due,
    /// Dummies due in [`Form::BesideData`].
    beside: Beside,
    /// Generation number of the probes, carried in their tags.
    epoch: u16,
    before: Option<Windows>,
    exit_pace: Option<ExitPace>,
    /// State of Vegas's congestion avoidance, if configured.
    watch: Option<Watch>,
}

impl Peach {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        let begins_with_one = config.sudden_start && config.form != Form::BesideData;
        Self {
            config,
            cwnd: if begins_with_one { 1.0 } else { start.initial_window },
            ssthresh: start.initial_ssthresh,
            wdsn: 0,
            state: if config.sudden_start { State::Armed } else { State::Avoidance },
            peer: Peer::Unknown,
            due: Due::default(),
            beside: Beside::default(),
            epoch: 0,
            before: None,
            exit_pace: None,
            watch: (config.avoidance == Avoidance::Vegas)
                .then(|| Watch { epoch: Epoch::new(0.0), growth: Growth::None }),
        }
    }

    fn peer_is_plain(&self) -> bool {
        self.peer.is_plain()
    }

    fn sends_dummies(&self) -> bool {
        self.config.sudden_start || self.config.rapid_recovery
    }

    fn starts_suddenly(&self) -> bool {
        self.config.sudden_start && !self.peer_is_plain()
    }

    fn recovers_rapidly(&self) -> bool {
        self.config.rapid_recovery && !self.peer_is_plain()
    }

    fn in_slow_start(&self) -> bool {
        !self.starts_suddenly() && self.cwnd < self.ssthresh
    }

    /// Opens the window by `segments`, up to the receive window. A smaller receive window does not reduce it.
    fn open(&mut self, segments: f64, path: &Path) {
        let limit = f64::from(path.receive_window).max(self.cwnd);
        self.cwnd = (self.cwnd + segments).min(limit);
    }

    /// Section III-A: Congestion Avoidance is Reno's, one segment per window, or Vegas's. The growth is at most 1 segment per
    /// ACK, however many it covers: the window is one segment when the hole of a timeout is filled.
    fn avoid(&mut self, ack: &Ack, path: &Path) {
        if !ack.window_limited {
            return;
        }
        let acked = f64::from(ack.counted);
        let per_segment = match self.watch.map(|watch| watch.growth) {
            None => 1.0 / self.cwnd,
            Some(Growth::PerSegment(step)) => step,
            Some(_) => 0.0,
        };
        self.open(if self.in_slow_start() { acked } else { (acked * per_segment).min(1.0) }, path);
    }

    /// Compares expected and actual rate at the end of each round trip, as Vegas does.
    fn measure(&mut self, ack: &Ack, path: &Path) {
        let Some(watch) = &mut self.watch else { return };
        let measured = if ack.acked > 0 { watch.epoch.on_ack(path) } else { None };
        if let Some(measured) = measured.filter(|_| ack.phase == Phase::Open) {
            let mut windows = Windows { cwnd: self.cwnd, ssthresh: self.ssthresh };
            watch.growth = hold_between(LEAST_WAITING, MOST_WAITING, measured.delta, &mut windows);
            self.cwnd = windows.cwnd;
        }
        if let Some(rtt) = ack.rtt {
            watch.epoch.sample(rtt, path);
        }
    }
}

/// Sudden Start, section III-B and Fig. 2.
impl Peach {
    /// Sends one data segment, then a dummy every τ. The dummies wait until that segment has left. Without Sudden Start, slow
    /// start follows the data segment.
    fn start_over(&mut self) {
        self.cwnd = 1.0;
        self.wdsn = 0;
        self.due = Due::default();
        self.epoch = self.epoch.wrapping_add(1);
        self.state = if self.starts_suddenly() { State::Armed } else { State::Avoidance };
    }

    /// Starts the dummies after the data segment has left.
    fn pace_dummies(&mut self, path: &Path) {
        let rwnd = path.receive_window.max(1);
        // `max_probes` bounds the dummies: a receive window of 1 GB must not cause 1 GB of dummies.
        let most = self.config.max_probes;
        let dummies = rwnd.saturating_sub(self.cwnd as u32).min(most);
        self.state = match self.config.form {
            Form::BesideData => StartBesideData::of(dummies).map(State::Start),
            // Equation (2) of the paper.
            _ => Train::over(path.srtt, rwnd.min(most.saturating_add(1)), dummies, path.now)
                .map(State::SuddenStart),
        }
        .unwrap_or(State::Avoidance);
    }

    /// Handles a dummy that is due.
    fn send_next(&mut self, train: Train, path: &Path) {
        let (leaves, train) = train.advance(most_probes(self.config.mode, path));
        self.due = Due { dummies: u32::from(leaves), beside: u32::MAX };
        self.state = train.map_or(State::Avoidance, State::SuddenStart);
    }
}

/// Rapid Recovery, section III-C and Fig. 4, or fast recovery in its place.
impl Peach {
    fn rapid_recovery(&mut self, loss: &Loss, path: &Path) {
        let usable = self.cwnd.min(f64::from(path.receive_window));
        let cwnd0 = libm::floor(match self.config.mode {
            Mode::Paper => usable,
            Mode::Safe => usable.min(f64::from(loss.outstanding)),
        });
        let half = libm::floor(cwnd0 / 2.0);
        self.cwnd = half.max(1.0);
        self.ssthresh = self.cwnd;
        self.wdsn = half as u32;
        self.state =
            State::Recovery(Recovery { inflated: 0, adsn: (2 * self.wdsn).min(self.config.max_probes) }); // equation (4)
    }

    /// RFC 5681 section 3.2: fast recovery without dummies.
    fn fast_recovery(&mut self, loss: &Loss) {
        self.ssthresh = (f64::from(loss.outstanding) / 2.0).max(2.0);
        self.cwnd = self.ssthresh;
        // Counts the duplicates before the one that detected the loss; that one is handled next.
        let before = if self.config.form == Form::Inflation { 2 } else { 0 };
        self.state = State::Recovery(Recovery { inflated: 0, adsn: 0 });
        self.inflate(before);
    }

    /// Handles an ACK during recovery.
    fn recover(&mut self, ack: &Ack, path: &Path) {
        let inflates = self.config.form == Form::Inflation;
        if ack.acked == 0 {
            self.inflate(u32::from(inflates));
            self.pair_of_dummies();
        } else if ack.ends_episode || self.config.recovery_ends == RecoveryEnds::FirstAck {
            self.leave_recovery(path);
        } else {
            self.deflate(ack.acked - 1); // RFC 6582 section 3.2 step 5: partial deflation
        }
    }

    /// Allows two dummies for an ACK that allowed no data: twice the data rate before the loss.
    fn pair_of_dummies(&mut self) {
        if let State::Recovery(recovery) = &self.state
            && self.config.form != Form::BesideData
        {
            self.due.dummies = recovery.adsn.min(2);
        }
    }

    fn inflate(&mut self, segments: u32) {
        if let State::Recovery(recovery) = &mut self.state {
            recovery.inflated += segments;
            self.cwnd += f64::from(segments);
        }
    }

    fn deflate(&mut self, segments: u32) {
        if let State::Recovery(recovery) = &mut self.state {
            let segments = segments.min(recovery.inflated);
            recovery.inflated -= segments;
            self.cwnd = (self.cwnd - f64::from(segments)).max(1.0);
        }
    }

    /// Ends the recovery: the lost segment is acknowledged. The inflation is removed; `wdsn` is kept, because the replies are
    /// still to arrive.
    fn leave_recovery(&mut self, path: &Path) {
        self.deflate(u32::MAX);
        self.state = State::Avoidance;
        // With PRR the flight has followed the window, so no burst is left.
        let bursts = self.config.form != Form::BesideData;
        if self.config.mode == Mode::Safe && bursts && !path.srtt.is_zero() {
            let bytes_per_s = 2.0 * self.cwnd * f64::from(path.mss) / path.srtt_s();
            let rate = Rate::from_bytes_per_s(bytes_per_s);
            self.exit_pace = Some(ExitPace { rate, until: path.now + path.srtt / 2 });
        }
    }
}

/// The capability check, section III-A.
impl Peach {
    /// Falls back to Reno: "If the required modification is not implemented, TCP-Peach sender stops transmitting dummy segments".
    fn behave_like_reno(&mut self, path: &Path) {
        self.ssthresh = f64::from(path.receive_window).max(2.0);
        self.stop_dummies();
    }

    fn stop_dummies(&mut self) {
        self.due = Due::default();
        match &mut self.state {
            State::Recovery(recovery) => recovery.adsn = 0,
            state => *state = State::Avoidance,
        }
    }
}

impl CongestionControl for Peach {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn adopt(&mut self, windows: Windows) {
        Windows { cwnd: self.cwnd, ssthresh: self.ssthresh } = windows;
        self.before = None;
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.due.dummies = 0;
        self.beside = Beside::default();
        if self.peer.suspect(ack, path) {
            self.behave_like_reno(path);
        }
        if self.peer.distrust(self.config.mode, path) {
            self.stop_dummies();
        }
        if self.exit_pace.is_some_and(|pace| path.now >= pace.until) {
            self.exit_pace = None;
        }
        self.measure(ack, path);
        let in_recovery = matches!(self.state, State::Recovery(_));
        if in_recovery && ack.phase == Phase::Recovery {
            return self.recover(ack, path);
        }
        if in_recovery {
            self.leave_recovery(path); // a tail loss probe repaired the loss before its detection
        }
        if ack.acked > 0 {
            self.avoid(ack, path);
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.before = Some(Windows { cwnd: self.cwnd, ssthresh: self.ssthresh });
        self.epoch = self.epoch.wrapping_add(1);
        self.due = Due { dummies: 0, beside: 1 };
        if self.recovers_rapidly() && loss.cause == Cause::Loss {
            self.rapid_recovery(loss, path);
        } else {
            self.fast_recovery(loss);
        }
        // A mark requires the same reduction, but no segment is missing.
        if loss.cause == Cause::Mark {
            self.leave_recovery(path);
        }
    }

    fn on_rto(&mut self, timeout: &Timeout, _path: &Path) -> BackOff {
        if timeout.consecutive == 1 {
            self.before = Some(Windows { cwnd: self.cwnd, ssthresh: self.ssthresh });
            self.ssthresh = (f64::from(timeout.outstanding) / 2.0).max(2.0);
        }
        self.start_over();
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(self.exit_pace.map(|pace| pace.rate))
    }

    fn on_undo(&mut self, undo: Undo, _path: &Path) {
        let Some(before) = self.before.take() else { return };
        if undo == Undo::Threshold {
            self.ssthresh = self.ssthresh.max(before.threshold_to_restore());
            return;
        }
        self.deflate(u32::MAX);
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.state = State::Avoidance;
        self.due = Due::default();
        // The window is already restored, so this episode's dummies must not open it again. The next episode sets its own wdsn.
        self.wdsn = u32::MAX;
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => {
                if path.peer_probes == PeerProbes::Agreed {
                    self.peer = Peer::Replies;
                }
                if let Some(watch) = &mut self.watch {
                    watch.epoch.establish(path);
                }
            }
            ConnectionEvent::Idle { .. } if self.peer == Peer::Replies && self.config.sudden_start => {
                self.start_over();
            }
            ConnectionEvent::Idle { restart } => self.cwnd = self.cwnd.min(restart),
            ConnectionEvent::Unvalidated { floor } => {
                let mut windows = Windows { cwnd: self.cwnd, ssthresh: self.ssthresh };
                windows.give_up_unvalidated(floor);
                (self.cwnd, self.ssthresh) = (windows.cwnd, windows.ssthresh);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.state {
            State::Armed | State::SuddenStart(_) | State::Start(_) => "sudden-start",
            State::Recovery(_) if self.recovers_rapidly() => "rapid-recovery",
            State::Recovery(_) => "fast-recovery",
            State::Avoidance if self.in_slow_start() => "slow-start",
            State::Avoidance => "congestion-avoidance",
        };
        let ssthresh = if self.starts_suddenly() { f64::INFINITY } else { self.ssthresh };
        state(self, ssthresh, phase)
    }

    fn requirements(&self) -> Requirements {
        let accounting = match self.config.form {
            Form::Inflation => Accounting::Outstanding,
            Form::Pipe => Accounting::Own,
            Form::BesideData => Accounting::Pipe,
        };
        Requirements { accounting, ..Requirements::default() }
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        if self.sends_dummies() { Some(self) } else { None }
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        if self.sends_dummies() { Some(self) } else { None }
    }
}

impl Prober for Peach {
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest> {
        if self.state == State::Armed && moment.data_sent > 0 {
            self.pace_dummies(path);
        }
        let kind = if self.config.form == Form::BesideData {
            let allowed = match self.state {
                State::Recovery(recovery) => recovery.adsn,
                State::Start(start) => start.allowed(self.config.mode, path),
                _ => 0,
            };
            self.beside.next(moment, allowed).then_some(ProbeKind::Newest)?
        } else {
            if self.due.dummies == 0 || moment.data_sent > self.due.beside {
                self.due = Due::default();
            }
            self.due.dummies = self.due.dummies.checked_sub(1)?;
            ProbeKind::Dummy
        };
        match &mut self.state {
            State::Recovery(recovery) => recovery.adsn -= 1,
            State::Start(start) => self.state = start.next().map_or(State::Avoidance, State::Start),
            _ => {}
        }
        self.peer.ask(path);
        Some(ProbeRequest { kind, tag: ProbeTag(self.epoch) })
    }

    /// Section III-A. During recovery the reply counts as an ACK of a data segment (section III-C).
    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path) {
        let mode = self.config.mode;
        if !self.peer.answer(mode, path) || (mode == Mode::Safe && reply.tag != ProbeTag(self.epoch)) {
            return;
        }
        let in_recovery = matches!(self.state, State::Recovery(_));
        if self.wdsn > 0 {
            self.wdsn -= 1;
        } else if in_recovery {
            self.inflate(1);
        } else {
            self.open(1.0, path);
            self.exit_pace = None;
        }
        if in_recovery && self.config.mode == Mode::Paper {
            self.pair_of_dummies();
        }
    }

    fn follows_each_segment(&self) -> bool {
        self.config.form == Form::BesideData
    }

    fn distrusts_duplicates(&self) -> bool {
        self.peer.blurs_duplicates()
    }

    fn takes_reports(&self) -> bool {
        self.config.dsack_replies
    }
}

impl Sleeper for Peach {
    fn wake_at(&self) -> Instant {
        match self.state {
            State::SuddenStart(train) => train.next.min(self.peer.verdict_at()),
            _ => self.peer.verdict_at(),
        }
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        if path.now >= self.peer.verdict_at() && self.peer.give_verdict() {
            self.behave_like_reno(path);
        }
        if let State::SuddenStart(train) = self.state
            && path.now >= train.next
        {
            self.send_next(train, path);
        }
        Wake::Quiet
    }
}

/// Equation (1): duration of Reno's slow start until the rate is `rate`, with one ACK per segment of `segment_bits`.
pub fn slow_start_duration(rtt: Duration, rate: Rate, segment_bits: f64) -> Duration {
    let segments_per_rtt = rate.bps() as f64 * rtt.as_secs_f64() / segment_bits;
    rtt.mul_f64(1.0 + libm::log2(segments_per_rtt))
}

#[cfg(test)]
mod tests;
