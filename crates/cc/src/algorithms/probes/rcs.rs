//! RCS: a loss halves the rate, and replies to dummy packets restore it.
//!
//! J. Tang, G. Morabito, I. F. Akyildiz, M. Johnson, "RCS: A Rate Control Scheme for Real-Time Traffic in Networks with High
//! Bandwidth-Delay Products and High Bit Error Rates", IEEE INFOCOM 2001. Temporal signal loss: I. F. Akyildiz, Ö. B. Akan,
//! G. Morabito, "A Rate Control Scheme for Adaptive Real-Time Applications in IP Networks with Lossy Links and Long Round Trip
//! Times", IEEE/ACM Transactions on Networking 13(3), 2005.
//!
//! | paper        | here                               | unit           |
//! |--------------|------------------------------------|----------------|
//! | S            | `rate`                             | segments / s   |
//! | S_target     | [`Config::target_segments_per_s`]  | segments / s   |
//! | SRTT         | [`Path::srtt`]                     | time           |
//! | Initial, Steady, Detection, Backoff | `State`     | -              |
//! | n_ACK        | `State::Initial::acked`            | replies        |
//! | T_END        | `ends`, `step_at`                  | time           |
//! | `wdsn`       | `ignored`                          | replies        |
//! | S before the loss | `rate_before`                 | segments / s   |
//!
//! The papers control a real-time flow without retransmission; here the law controls a reliable sender. `papers/rcs.md` lists
//! the reconstructed parts.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, ProbeTag, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{not_negative, positive};
use crate::parts::probe_peer::Peer;
use crate::parts::probe_train::Train;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path,
    PeerProbes, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober, Requirements, SENDER_ONLY, Sleeper,
    Spacing, Start, Timeout, Undo, Wake, WindowState, state,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "rcs",
    title: "a rate that a loss halves and low-priority dummy packets restore, for real-time sources",
    paper: "Tang, Morabito, Akyildiz, Johnson, IEEE INFOCOM",
    year: 2001,
    needs_receiver: true,
    needs_routers: true,
    family: Family::Probes,
    advice: "For real-time sources that need a rate instead of a window. It needs priorities in routers.",
    ..SENDER_ONLY
};

/// Parameters of RCS.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum rate of the application in segments per second; 0 for one receive window per round trip.
    #[serde(deserialize_with = "not_negative")]
    pub target_segments_per_s: f64,
    /// Time without an ACK after which the sender assumes an outage instead of a loss, in round trips.
    #[serde(deserialize_with = "positive")]
    pub outage_rtts: f64,
    /// Window in round trips of the rate. The rate sets the send times; the window only bounds the outstanding data.
    #[serde(deserialize_with = "positive")]
    pub window_rtts: f64,
    /// Maximum number of dummies per round trip, whatever the receive window.
    pub max_probes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { target_segments_per_s: 0.0, outage_rtts: 4.0, window_rtts: 2.0, max_probes: 1024 }
    }
}

impl Config {
    /// An RCS sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Rcs::new(*self, start))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Before the data segment that the dummies copy.
    Armed,
    /// Dummies at the target rate for one round trip. Their replies are counted until the end of the next.
    Initial { train: Option<Train>, ends: Instant, acked: u32 },
    /// The rate grows by one segment per round trip in every round trip.
    Steady { step_at: Instant },
    /// The round trip after a loss: dummies leave at twice the data rate.
    Detection { train: Option<Train>, ends: Instant },
    /// Signal loss: one dummy per round trip.
    Backoff { next: Instant },
}

/// An RCS sender.
#[derive(Clone, Debug)]
struct Rcs {
    config: Config,
    mss: u32,
    rate: f64,
    rate_before: f64,
    /// Rate at the last ACK.
    rate_heard: f64,
    state: State,
    /// Number of replies that must not raise the rate.
    ignored: u32,
    /// Dummies allowed by the last timer event.
    due: u32,
    peer: Peer,
    /// Generation number of the dummies, carried in their tags.
    epoch: u16,
    srtt: Duration,
    last_ack: Instant,
    /// True if data is outstanding, so that a time without ACKs shows an outage.
    waiting: bool,
}

/// Assumed round trip before the first sample.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

impl Rcs {
    fn new(config: Config, start: &Start) -> Self {
        Self {
            config,
            mss: start.mss,
            rate: 1.0,
            rate_before: 0.0,
            rate_heard: 0.0,
            state: State::Armed,
            ignored: 0,
            due: 0,
            peer: Peer::Unknown,
            epoch: 0,
            srtt: UNKNOWN_RTT,
            last_ack: Instant::ZERO,
            waiting: false,
        }
    }

    /// One segment per round trip: the step of each increase, and the minimum rate.
    fn one_per_rtt(&self) -> f64 {
        1.0 / self.srtt.as_secs_f64()
    }

    fn target(&self, path: &Path) -> f64 {
        match self.config.target_segments_per_s {
            0.0 => {
                f64::from(path.receive_window.clamp(1, self.config.max_probes.max(1))) * self.one_per_rtt()
            }
            target => target,
        }
    }

    /// Returns the dummies per round trip at `rate`.
    fn per_rtt(&self, rate: f64) -> u32 {
        (libm::round(rate * self.srtt.as_secs_f64()) as u32).min(self.config.max_probes)
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.max(self.one_per_rtt());
    }

    /// Updates the state that every call provides.
    fn note(&mut self, path: &Path) {
        if !path.srtt.is_zero() {
            self.srtt = path.srtt;
        }
        self.waiting = path.outstanding > 0;
    }

    /// Starts a train of `dummies` over the next round trip.
    fn train(&mut self, dummies: u32, path: &Path) -> Option<Train> {
        self.epoch = self.epoch.wrapping_add(1);
        self.due = 0;
        let dummies = if self.peer.is_plain() { 0 } else { dummies };
        Train::over(self.srtt, dummies.saturating_add(1), dummies, path.now)
    }

    fn begin_initial(&mut self, path: &Path) {
        let train = self.train(self.per_rtt(self.target(path)), path);
        // Allowance for late replies: the dummies themselves build a queue.
        let ends = path.now + self.srtt * 2 + path.rttvar * 4;
        self.state = State::Initial { train, ends, acked: 0 };
    }

    fn begin_steady(&mut self, path: &Path) {
        self.state = State::Steady { step_at: path.now + self.srtt };
    }

    fn begin_detection(&mut self, path: &Path) {
        self.ignored = self.per_rtt(self.rate);
        let train = self.train(self.per_rtt(self.rate_before), path);
        self.state = State::Detection { train, ends: path.now + self.srtt };
    }

    /// Handles a loss: halves the rate, and sends dummies that test for the other half. Further losses during the test are
    /// ignored.
    fn halve(&mut self, path: &Path) {
        if matches!(self.state, State::Detection { .. } | State::Backoff { .. }) {
            return;
        }
        self.rate_before = self.rate;
        self.set_rate(self.rate / 2.0);
        self.begin_detection(path);
    }

    /// Returns the time at which silence counts as signal loss. The rate before it is restored when the signal returns.
    fn outage_at(&self) -> Instant {
        if self.waiting && !matches!(self.state, State::Backoff { .. }) {
            self.last_ack + self.srtt.mul_f64(self.config.outage_rtts)
        } else {
            Instant::FAR_FUTURE
        }
    }

    fn begin_backoff(&mut self, path: &Path) {
        self.rate_before = self.rate_heard;
        self.epoch = self.epoch.wrapping_add(1);
        self.state = State::Backoff { next: path.now + self.srtt };
    }

    /// Handles any ACK: it shows that the path works in both directions.
    fn hear(&mut self, path: &Path) {
        self.note(path);
        self.last_ack = path.now;
        if matches!(self.state, State::Backoff { .. }) {
            self.set_rate(self.rate_before);
            self.begin_detection(path);
        }
        self.rate_heard = self.rate;
    }

    /// Handles the state's timer: sends a dummy, or enters the next state.
    fn step(&mut self, path: &Path) {
        match &mut self.state {
            State::Initial { train: train @ Some(_), .. }
            | State::Detection { train: train @ Some(_), .. } => {
                *train = train.and_then(|train| train.advance(u32::MAX).1);
                self.due = 1;
            }
            State::Initial { acked, .. } => {
                let rate = f64::from(*acked) * self.one_per_rtt();
                self.set_rate(rate);
                self.begin_steady(path);
            }
            State::Detection { .. } => self.begin_steady(path),
            State::Steady { .. } => {
                // An application without more data learns nothing about the path.
                if path.unsent > 0 {
                    let limit = self.target(path).max(self.rate);
                    self.set_rate((self.rate + self.one_per_rtt()).min(limit));
                }
                self.begin_steady(path);
            }
            State::Backoff { next } => {
                *next = path.now + self.srtt;
                self.due = u32::from(!self.peer.is_plain());
            }
            State::Armed => {}
        }
    }

    fn step_at(&self) -> Instant {
        match self.state {
            State::Armed => Instant::FAR_FUTURE,
            State::Initial { train: Some(train), .. } | State::Detection { train: Some(train), .. } => {
                train.next
            }
            State::Initial { ends: at, .. }
            | State::Detection { ends: at, .. }
            | State::Steady { step_at: at }
            | State::Backoff { next: at } => at,
        }
    }

    fn stop_dummies(&mut self, path: &Path) {
        self.due = 0;
        self.begin_steady(path);
    }
}

impl CongestionControl for Rcs {
    fn window(&self) -> f64 {
        match self.state {
            State::Armed | State::Initial { .. } | State::Backoff { .. } => 1.0,
            _ => (self.rate * self.srtt.as_secs_f64() * self.config.window_rtts).max(1.0),
        }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.hear(path);
        if self.peer.suspect(ack, path) {
            self.stop_dummies(path);
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.note(path);
        match loss.cause {
            Cause::Loss | Cause::Timeout => self.halve(path),
            // Congestion is certain: no probes.
            Cause::Mark => {
                self.rate_before = self.rate;
                self.set_rate(self.rate / 2.0);
                self.begin_steady(path);
            }
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout, path: &Path) -> BackOff {
        self.note(path);
        self.halve(path);
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(Some(Rate::from_bytes_per_s(self.rate * f64::from(self.mss))))
    }

    fn on_undo(&mut self, _undo: Undo, path: &Path) {
        self.set_rate(self.rate.max(self.rate_before));
        self.ignored = u32::MAX;
        self.stop_dummies(path);
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => {
                self.note(path);
                self.last_ack = path.now;
                self.set_rate(0.0);
                if path.peer_probes == PeerProbes::Agreed {
                    self.peer = Peer::Replies;
                }
            }
            ConnectionEvent::Idle { restart } => {
                self.last_ack = path.now;
                self.set_rate(self.rate.min(restart * self.one_per_rtt()));
                self.begin_steady(path);
            }
            ConnectionEvent::Unvalidated { floor } => {
                self.set_rate((self.rate / 2.0).max(floor * self.one_per_rtt()));
            }
            ConnectionEvent::Closed | ConnectionEvent::Abandoned => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.state {
            State::Armed | State::Initial { .. } => "initial",
            State::Steady { .. } => "steady",
            State::Detection { .. } => "detection",
            State::Backoff { .. } => "backoff",
        };
        state(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        Some(self)
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Prober for Rcs {
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest> {
        self.note(path);
        if self.state == State::Armed && moment.data_sent > 0 {
            self.last_ack = path.now;
            self.begin_initial(path);
        }
        self.due = self.due.checked_sub(1)?;
        self.peer.ask(path);
        Some(ProbeRequest { kind: ProbeKind::Dummy, tag: ProbeTag(self.epoch) })
    }

    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path) {
        self.peer = Peer::Replies;
        let current = reply.tag == ProbeTag(self.epoch);
        self.hear(path);
        match &mut self.state {
            _ if !current => {}
            State::Initial { acked, .. } => *acked += 1,
            _ if self.ignored > 0 => self.ignored -= 1,
            _ => {
                let restored = (self.rate + self.one_per_rtt()).min(self.rate_before);
                self.set_rate(self.rate.max(restored));
            }
        }
    }

    fn distrusts_duplicates(&self) -> bool {
        self.peer.blurs_duplicates()
    }
}

impl Sleeper for Rcs {
    fn wake_at(&self) -> Instant {
        self.step_at().min(self.outage_at()).min(self.peer.verdict_at())
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        self.note(path);
        if path.now >= self.peer.verdict_at() && self.peer.give_verdict() {
            self.stop_dummies(path);
        }
        if path.now >= self.outage_at() {
            self.begin_backoff(path);
        } else if path.now >= self.step_at() {
            self.step(path);
        }
        Wake::Quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, fixture};

    const RTT_S: f64 = 0.55;

    fn config() -> Config {
        Config { target_segments_per_s: 100.0, ..Config::default() }
    }

    fn path_at(seconds: f64) -> Path {
        Path { outstanding: 40, unsent: 1 << 30, ..fixture::path_at(seconds) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.01
    }

    /// Runs all timer events up to `end`, with continuous ACKs. Returns the tags of the dummies.
    fn run(rcs: &mut Rcs, end: f64) -> Vec<ProbeTag> {
        let mut tags = Vec::new();
        while rcs.wake_at() <= path_at(end).now {
            let path = Path { now: rcs.wake_at(), ..path_at(end) };
            rcs.last_ack = path.now;
            rcs.on_wake(&path);
            while let Some(probe) = rcs.next_probe(&ProbeMoment { data_sent: 0, sent_newest: false }, &path) {
                tags.push(probe.tag);
            }
        }
        tags
    }

    fn reply(rcs: &mut Rcs, tag: ProbeTag, at: f64) {
        rcs.on_probe_acked(&ProbeReply { tag, acked: 0, phase: Phase::Open }, &path_at(at));
    }

    /// Makes a sender in Steady at 90.91 segments per second.
    fn steady() -> Rcs {
        let mut rcs = Rcs::new(config(), &fixture::start(2.0));
        rcs.on_event(ConnectionEvent::Established, &path_at(0.0));
        rcs.rate = 50.0 / RTT_S;
        rcs.last_ack = path_at(10.0).now;
        rcs.begin_steady(&path_at(10.0));
        rcs
    }

    #[test]
    fn the_first_rate_is_that_of_the_replies() {
        let mut rcs = Rcs::new(config(), &fixture::start(2.0));
        rcs.on_event(ConnectionEvent::Established, &path_at(0.0));
        assert_eq!(rcs.next_probe(&ProbeMoment { data_sent: 1, sent_newest: false }, &path_at(0.0)), None);
        assert_eq!((rcs.snapshot().phase, rcs.window()), ("initial", 1.0));
        assert!(close(rcs.rate, 1.818), "one segment per round trip");
        let tags = run(&mut rcs, RTT_S);
        assert_eq!(tags.len(), 55);
        for tag in &tags[..40] {
            reply(&mut rcs, *tag, 2.0 * RTT_S - 0.01);
        }
        run(&mut rcs, 2.0 * RTT_S);
        assert!(close(rcs.rate, 72.73), "{}", rcs.rate);
        let mut later = rcs.clone();
        run(&mut later, 12.0 * RTT_S + 0.001);
        assert!(close(later.rate, 90.91), "{}", later.rate);
        run(&mut rcs, 100.0 * RTT_S);
        assert!(close(rcs.rate, 100.0), "the target");
    }

    #[test]
    fn a_link_error_costs_nothing_after_two_round_trips() {
        let mut rcs = steady();
        rcs.on_loss(&fixture::loss(50), &path_at(10.1));
        assert!(close(rcs.rate, 45.45));
        let tags = run(&mut rcs, 10.1 + RTT_S - 0.001);
        assert_eq!((tags.len(), rcs.ignored, rcs.snapshot().phase), (50, 25, "detection"));
        for (i, tag) in tags.into_iter().enumerate() {
            assert!(close(rcs.rate, 45.45 + 1.818 * i.saturating_sub(25) as f64));
            reply(&mut rcs, tag, 10.1 + RTT_S + 0.011 * i as f64);
        }
        assert!(close(rcs.rate, 90.91), "{}", rcs.rate);
    }

    #[test]
    fn congestion_halves() {
        let mut rcs = steady();
        rcs.on_loss(&fixture::loss(50), &path_at(10.1));
        let tags = run(&mut rcs, 10.1 + RTT_S - 0.001);
        for tag in tags.into_iter().step_by(2) {
            reply(&mut rcs, tag, 11.0);
        }
        assert!(close(rcs.rate, 45.45));
    }

    #[test]
    fn further_losses_while_it_asks_say_nothing() {
        let mut rcs = steady();
        rcs.on_loss(&fixture::loss(50), &path_at(10.1));
        rcs.on_loss(&fixture::loss(50), &path_at(10.3));
        assert!(close(rcs.rate, 45.45));
    }

    #[test]
    fn an_outage_keeps_the_rate() {
        let mut rcs = steady();
        rcs.on_ack(&fixture::ack(1), &path_at(10.1));
        rcs.on_rto(&Timeout { consecutive: 1, outstanding: 40, answered: false }, &path_at(11.2));
        assert!(close(rcs.rate, 45.45), "a timeout is a loss");
        let mut dummies = 0;
        while rcs.wake_at() <= path_at(16.0).now {
            let path = Path { now: rcs.wake_at(), ..path_at(0.0) };
            rcs.on_wake(&path);
            let silence = path.now >= path_at(10.1 + 4.0 * RTT_S).now;
            while rcs.next_probe(&ProbeMoment { data_sent: 0, sent_newest: false }, &path).is_some() {
                dummies += u32::from(silence);
            }
        }
        assert_eq!((rcs.snapshot().phase, rcs.window(), dummies), ("backoff", 1.0, 6));
        reply(&mut rcs, ProbeTag(0), 16.2);
        assert_eq!(rcs.snapshot().phase, "detection");
        assert!(close(rcs.rate, 90.91));
    }

    #[test]
    fn a_receiver_that_does_not_reply_gets_no_dummies() {
        let mut rcs = Rcs::new(config(), &fixture::start(2.0));
        rcs.on_event(
            ConnectionEvent::Established,
            &Path { peer_probes: PeerProbes::Unknown, ..path_at(0.0) },
        );
        rcs.next_probe(&ProbeMoment { data_sent: 1, sent_newest: false }, &path_at(0.0));
        run(&mut rcs, RTT_S);
        rcs.on_ack(&fixture::ack(0), &path_at(RTT_S + 0.1));
        assert_eq!((rcs.snapshot().phase, rcs.distrusts_duplicates()), ("steady", true));
        rcs.on_loss(&fixture::loss(50), &path_at(5.0));
        assert!(run(&mut rcs, 5.6).is_empty());
    }

    #[test]
    fn the_pace_is_the_rate() {
        assert_eq!(steady().spacing().rate(), Some(Rate::from_bytes_per_s(1000.0 * 50.0 / RTT_S)));
    }
}
