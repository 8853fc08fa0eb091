//! Common sender of Swift, Peach+ and PBS. A paced train of copies of outstanding data replaces slow start, and pairs of such
//! copies leave in recovery. Replies open the window. A [`Law`] adds the rules of one scheme.
//!
//! | papers                      | here                     | unit     |
//! |-----------------------------|--------------------------|----------|
//! | `cwnd`                      | `Windows::cwnd`          | segments |
//! | `rwnd`                      | [`Path::receive_window`] | segments |
//! | τ                           | [`Train::tau`]           | time     |
//! | `aosn`, `ansn`, `adsn`      | `Recovery::allowed`      | probes   |
//! | `wdsn`, `wnsn`              | `ignored`                | replies  |
//! | `pipe`                      | [`Path::in_flight`], see [`Form`] | segments |

mod law;

use bentpipe_base::{Extension, Instant, ProbeTag};

use super::beside_data::{Beside, StartBesideData};
use super::probe_peer::Peer;
use super::probe_train::{Train, most_probes};
use crate::parts::mode::Mode;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Feedback, Loss, Path, PeerProbes,
    Phase, ProbeMoment, ProbeReply, ProbeRequest, Prober, Requirements, Sleeper, Timeout, Undo, Wake,
    WindowState, Windows, state,
};

pub use law::Form;
pub(crate) use law::{Law, Terms, Words};

/// A recovery in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Recovery {
    /// Probes that may still be sent.
    allowed: u32,
    /// Difference between the window and `cwnd` in the chosen [`Form`], in segments.
    inflated: f64,
    /// Data segments that may leave in addition to the probes. In Peach's arithmetic, the fast retransmit does not use up the ACK
    /// that triggered it.
    beside: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Congestion avoidance. With a plain receiver: all of Reno outside recovery.
    Avoidance,
    /// The train is ready, and starts after the data segment that it copies.
    Armed,
    /// The train is being sent; otherwise as in congestion avoidance.
    Train(Train),
    /// Probes of a start are sent with new data, in [`Form::BesideData`].
    Start(StartBesideData),
    Recovery(Recovery),
}

/// A sender that probes the path with low-priority copies of outstanding data.
#[derive(Clone, Debug)]
pub(crate) struct Inquirer<L> {
    law: L,
    windows: Windows,
    state: State,
    /// Number of replies that must not open the window.
    ignored: u32,
    /// Probes allowed by the last arrival or timer event.
    due: u32,
    /// Due probes in [`Form::BesideData`].
    beside: Beside,
    peer: Peer,
    /// Generation number of the probes, carried in their tags.
    epoch: u16,
    before: Option<Windows>,
}

impl<L: Law> Inquirer<L> {
    /// Makes a sender before its handshake.
    pub fn new(law: L, ssthresh: f64) -> Self {
        Self {
            law,
            windows: Windows { cwnd: 1.0, ssthresh },
            state: State::Armed,
            ignored: 0,
            due: 0,
            beside: Beside::default(),
            peer: Peer::Unknown,
            epoch: 0,
            before: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.peer.is_plain() && self.windows.in_slow_start()
    }

    /// Opens the window by `segments`, up to the receive window. A smaller receive window does not reduce it.
    fn open(&mut self, segments: f64, path: &Path) {
        let limit = f64::from(path.receive_window).max(self.windows.cwnd);
        self.windows.cwnd = (self.windows.cwnd + segments).min(limit);
    }

    fn grow(&mut self, ack: &Ack, path: &Path) {
        if ack.acked == 0 || !ack.window_limited {
            return;
        }
        let acked = f64::from(ack.counted);
        let segments = match self.peer.is_plain() {
            true if self.in_slow_start() => acked,
            true => (acked / self.windows.cwnd).min(1.0),
            false => self.law.growth(&self.windows, ack, path),
        };
        self.open(segments, path);
    }

    fn begin_episode(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.due = 0;
    }

    /// Sends one data segment, then a train. With a plain receiver, slow start follows instead.
    fn start_over(&mut self) {
        self.begin_episode();
        self.windows.cwnd = 1.0;
        self.ignored = 0;
        self.state = if self.peer.is_plain() { State::Avoidance } else { State::Armed };
    }

    /// Starts the train after its first data segment.
    fn begin_train(&mut self, path: &Path) {
        let rwnd = path.receive_window;
        let probes = rwnd.saturating_sub(self.windows.cwnd as u32);
        let terms = self.law.terms();
        // `max_probes` bounds the train: a receive window of 1 GB must not cause 1 GB of probes.
        let (probes, slots) = (probes.min(terms.max_probes), rwnd.min(terms.max_probes.saturating_add(1)));
        self.law.starts(path);
        self.state = match terms.form {
            Form::BesideData => StartBesideData::of(probes).map(State::Start),
            _ => Train::over(path.srtt, slots, probes, path.now).map(State::Train),
        }
        .unwrap_or(State::Avoidance);
    }

    /// Halves the window by RFC 5681, without probes.
    fn halve(&mut self, loss: &Loss) {
        self.windows.ssthresh = (f64::from(loss.outstanding) / 2.0).max(2.0);
        self.windows.cwnd = self.windows.ssthresh;
    }

    /// Halves the window. Returns the number of probes that test for the other half.
    fn halve_and_ask(&mut self, loss: &Loss, path: &Path) -> u32 {
        let usable = self.windows.cwnd.min(f64::from(path.receive_window));
        let cwnd0 = libm::floor(match self.law.terms().mode {
            Mode::Paper => usable,
            Mode::Safe => usable.min(f64::from(loss.outstanding)),
        });
        self.law.loses(cwnd0);
        self.windows.cwnd = libm::floor(cwnd0 / 2.0).max(1.0);
        self.windows.ssthresh = self.windows.cwnd;
        self.ignored = cwnd0 as u32 / 2;
        self.law.allowance(cwnd0 as u32).min(self.law.terms().max_probes)
    }

    /// Handles an ACK during recovery.
    fn recover(&mut self, ack: &Ack, path: &Path) {
        let State::Recovery(recovery) = &mut self.state else { return };
        if ack.ends_episode {
            self.state = State::Avoidance;
            return self.law.recovers(path);
        }
        match self.law.terms().form {
            Form::Inflation if ack.acked == 0 => recovery.inflated += 1.0,
            // RFC 6582 section 3.2 step 5: partial deflation.
            Form::Inflation => {
                recovery.inflated = (recovery.inflated - f64::from(ack.acked - 1)).max(0.0);
            }
            // The segment that was counted twice is now acknowledged.
            Form::Listing if ack.acked > 0 => recovery.inflated = 0.0,
            Form::Listing | Form::Pipe | Form::BesideData => {}
        }
        if ack.acked > 0 {
            self.open(self.law.partial_growth(), path);
        }
        self.pair_of_probes();
    }

    /// Allows the probes of an ACK in recovery that allows no data.
    fn pair_of_probes(&mut self) {
        if let State::Recovery(recovery) = &self.state
            && self.law.terms().form != Form::BesideData
        {
            self.due = recovery.allowed.min(2);
        }
    }

    /// True if a probe leaves after the data already sent.
    fn is_due(&mut self, moment: &ProbeMoment, path: &Path) -> bool {
        let Terms { mode, form, .. } = self.law.terms();
        if form == Form::BesideData {
            let allowed = match self.state {
                State::Recovery(recovery) => recovery.allowed,
                State::Start(start) => start.allowed(mode, path),
                _ => 0,
            };
            return self.beside.next(moment, allowed);
        }
        if let State::Recovery(recovery) = &mut self.state {
            if moment.data_sent > recovery.beside {
                self.due = 0;
            }
            if self.due == 0 {
                recovery.beside = 0;
            }
        }
        let leaves = self.due > 0 && path.outstanding > 0;
        self.due -= u32::from(leaves);
        leaves
    }

    /// Handles the reply to a probe.
    fn take_reply(&mut self, path: &Path) {
        if self.ignored > 0 {
            self.ignored -= 1;
        } else {
            self.open(1.0, path);
            self.law.opens();
        }
    }

    /// Falls back to Reno, because the receiver does not answer probes.
    fn behave_like_reno(&mut self, path: &Path) {
        self.windows.ssthresh = f64::from(path.receive_window).max(2.0);
        self.stop_asking();
    }

    /// Stops all probing.
    fn stop_asking(&mut self) {
        self.due = 0;
        match &mut self.state {
            State::Recovery(recovery) => recovery.allowed = 0,
            state => *state = State::Avoidance,
        }
    }

    /// Reverts a spurious reduction. Probes still in flight must not open the restored window. The next episode sets the number
    /// of ignored replies anew.
    fn take_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.windows.cwnd = self.windows.cwnd.max(before.cwnd);
        self.windows.ssthresh = self.windows.ssthresh.max(before.ssthresh);
        self.due = 0;
        self.ignored = u32::MAX;
        match &mut self.state {
            State::Recovery(recovery) => recovery.allowed = 0,
            state => *state = State::Avoidance,
        }
    }
}

impl<L: Law> CongestionControl for Inquirer<L> {
    fn window(&self) -> f64 {
        match self.state {
            State::Recovery(recovery) => (self.windows.cwnd + recovery.inflated).max(1.0),
            _ => self.windows.cwnd,
        }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.due = 0;
        self.beside = Beside::default();
        if self.peer.suspect(ack, path) {
            self.behave_like_reno(path);
        }
        if self.peer.distrust(self.law.terms().mode, path) {
            self.stop_asking();
        }
        match self.state {
            State::Recovery(_) if ack.phase == Phase::Recovery => self.recover(ack, path),
            State::Recovery(_) => {
                // A tail loss probe repaired the loss before its detection.
                self.state = State::Avoidance;
                self.grow(ack, path);
            }
            _ => self.grow(ack, path),
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.before = Some(self.windows);
        self.begin_episode();
        if loss.cause == Cause::Mark {
            // Congestion is certain: no probes, and no segment is missing.
            self.halve(loss);
            self.state = State::Avoidance;
            return;
        }
        let allowed = if self.law.excuses(path) {
            self.before = None;
            0
        } else if self.peer.is_plain() {
            self.halve(loss);
            0
        } else {
            self.halve_and_ask(loss, path)
        };
        let (inflated, beside) = match self.law.terms().form {
            Form::Listing => (-1.0, 0),
            Form::Pipe | Form::BesideData => (0.0, 0),
            // Counts the duplicates before the one that detected the loss; that one is handled next.
            Form::Inflation if allowed == 0 => (2.0, 0),
            Form::Inflation => (0.0, 1),
        };
        self.state = State::Recovery(Recovery { allowed, inflated, beside });
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        if self.law.excuses(path) && timeout.consecutive == 1 {
            self.state = State::Avoidance;
            return BackOff::Keep;
        }
        if timeout.consecutive == 1 {
            self.before = Some(self.windows);
            self.windows.ssthresh = (f64::from(timeout.outstanding) / 2.0).max(2.0);
        }
        self.law.loses(self.windows.cwnd);
        self.start_over();
        BackOff::Double
    }

    fn on_undo(&mut self, undo: Undo, _path: &Path) {
        if undo == Undo::Reduction {
            self.take_back();
            self.state = State::Avoidance;
        } else if let Some(before) = self.before.take() {
            self.windows.ssthresh = self.windows.ssthresh.max(before.threshold_to_restore());
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => {
                self.windows.cwnd = self.law.first_window(path);
                if path.peer_probes == PeerProbes::Agreed {
                    self.peer = Peer::Replies;
                }
            }
            ConnectionEvent::Idle { .. } if self.peer == Peer::Replies => self.start_over(),
            ConnectionEvent::Idle { restart } => self.windows.cwnd = self.windows.cwnd.min(restart),
            ConnectionEvent::Unvalidated { floor } => self.windows.give_up_unvalidated(floor),
            ConnectionEvent::Closed | ConnectionEvent::Abandoned => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match self.state {
            State::Armed | State::Train(_) | State::Start(_) => self.law.words().start,
            State::Recovery(_) if self.peer.is_plain() => "fast-recovery",
            State::Recovery(_) => self.law.words().recovery,
            State::Avoidance if self.in_slow_start() => "slow-start",
            State::Avoidance => "congestion-avoidance",
        };
        let ssthresh = if self.peer.is_plain() { self.windows.ssthresh } else { f64::INFINITY };
        state(self, ssthresh, phase)
    }

    fn requirements(&self) -> Requirements {
        let accounting = match self.law.terms().form {
            Form::Listing | Form::Pipe => Accounting::Own,
            Form::Inflation => Accounting::Outstanding,
            Form::BesideData => Accounting::Pipe,
        };
        Requirements { accounting, ..Requirements::default() }
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        Some(self)
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        if self.law.feedback() != 0 { Some(self) } else { None }
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl<L: Law> Prober for Inquirer<L> {
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest> {
        if self.state == State::Armed && moment.data_sent > 0 {
            self.begin_train(path);
        }
        if !self.is_due(moment, path) {
            return None;
        }
        match &mut self.state {
            State::Recovery(recovery) => recovery.allowed -= 1,
            State::Start(start) => self.state = start.next().map_or(State::Avoidance, State::Start),
            _ => {}
        }
        self.peer.ask(path);
        Some(ProbeRequest { kind: self.law.pick(path), tag: ProbeTag(self.epoch) })
    }

    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path) {
        let mode = self.law.terms().mode;
        if !self.peer.answer(mode, path) || (mode == Mode::Safe && reply.tag != ProbeTag(self.epoch)) {
            return;
        }
        self.take_reply(path);
        self.pair_of_probes();
    }

    fn follows_each_segment(&self) -> bool {
        self.law.terms().form == Form::BesideData
    }

    fn distrusts_duplicates(&self) -> bool {
        self.peer.blurs_duplicates()
    }

    fn takes_reports(&self) -> bool {
        self.law.terms().dsack_replies
    }
}

impl<L: Law> Sleeper for Inquirer<L> {
    fn wake_at(&self) -> Instant {
        match self.state {
            State::Train(train) => train.next.min(self.peer.verdict_at()),
            _ => self.peer.verdict_at(),
        }
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        if path.now >= self.peer.verdict_at() && self.peer.give_verdict() {
            self.behave_like_reno(path);
        }
        if let State::Train(train) = self.state
            && path.now >= train.next
        {
            let (leaves, train) = train.advance(most_probes(self.law.terms().mode, path));
            self.due = u32::from(leaves);
            self.state = train.map_or(State::Avoidance, State::Train);
        }
        Wake::Quiet
    }
}

impl<L: Law> Feedback for Inquirer<L> {
    fn receiver(&self) -> u8 {
        self.law.feedback()
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        if self.law.hears(fields, path) && matches!(self.state, State::Recovery(_)) {
            self.take_back();
        }
    }
}

#[cfg(test)]
pub(crate) mod episode;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbeKind;
    use crate::fixture;

    /// The common sender without a scheme's additions.
    #[derive(Clone)]
    struct Bare(Terms);

    impl Law for Bare {
        fn words(&self) -> Words {
            Words { start: "bare-start", recovery: "bare-recovery" }
        }

        fn terms(&self) -> Terms {
            self.0
        }

        fn pick(&mut self, _path: &Path) -> ProbeKind {
            ProbeKind::Outstanding(0)
        }
    }

    fn bare(mode: Mode, form: Form) -> Bare {
        let max_probes = if mode == Mode::Safe { 20 } else { 1024 };
        Bare(Terms { mode, form, max_probes, dsack_replies: true })
    }

    fn paper() -> Bare {
        bare(Mode::Paper, Form::Pipe)
    }

    fn unknown() -> Path {
        Path { peer_probes: PeerProbes::Unknown, unsent: 1 << 20, ..fixture::path() }
    }

    #[test]
    fn each_form_spends_its_probes() {
        for (form, probes, new) in [(Form::Listing, 26, 13), (Form::Pipe, 24, 14), (Form::Inflation, 30, 12)]
        {
            let mut prober = episode::avoiding(bare(Mode::Paper, form), 30.0);
            let outcome = episode::recovery(&mut prober, 1);
            assert_eq!((outcome.probes, outcome.new, outcome.left), (probes, new, 30 - probes), "{form:?}");
            assert_eq!(outcome.after_replies, f64::from(probes), "15 + probes - 15");
        }
    }

    /// Recovery from a window of 30. Every second ACK allows a new segment; the first allows the retransmission.
    #[test]
    fn probes_beside_data_follow_new_segments() {
        let mut prober = episode::avoiding(bare(Mode::Paper, Form::BesideData), 30.0);
        let path = Path { outstanding: 30, ..fixture::path() };
        prober.on_loss(&fixture::loss(30), &path);
        let mut left = Vec::new();
        for nth in 0..34 {
            prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &path);
            let moment = ProbeMoment { data_sent: u32::from(nth == 0) + nth % 2, sent_newest: nth % 2 > 0 };
            left.push(episode::asked(&mut prober, &moment, &path).len());
            assert!(episode::asked(&mut prober, &moment, &path).is_empty(), "once");
        }
        assert_eq!(left[..4], [0, 2, 0, 2]);
        assert_eq!((left.iter().sum::<usize>(), &left[30..]), (30, &[0; 4][..]), "as many as the window had");
        assert_eq!(prober.requirements().accounting, Accounting::Pipe, "the engine reduces in proportion");
    }

    /// Ten segments and 20 probes leave. 20 probes remain for the 30 segments that the replies allow.
    #[test]
    fn a_start_beside_data_sends_two_probes_with_each_segment() {
        let mut prober = Inquirer::new(bare(Mode::Safe, Form::BesideData), f64::INFINITY);
        prober.law.0.max_probes = 40;
        let path = Path { outstanding: 10, ..unknown() };
        let mut round = |arrives: u32, segments: u32| {
            if arrives > 0 {
                prober.on_ack(&fixture::ack(arrives), &path);
            }
            let each = (1..=segments).map(|data_sent| {
                let moment = ProbeMoment { data_sent, sent_newest: true };
                episode::asked(&mut prober, &moment, &path).len()
            });
            each.sum::<usize>()
        };
        assert_eq!((round(0, 10), round(10, 1), round(1, 29), round(1, 9)), (20, 2, 18, 0));
        assert_eq!(prober.snapshot().phase, "congestion-avoidance");
        assert_eq!(prober.wake_at(), prober.peer.verdict_at(), "no train");
    }

    #[test]
    fn no_more_probes_than_allowed() {
        let mut prober = Inquirer::new(bare(Mode::Safe, Form::Pipe), f64::INFINITY);
        assert_eq!(episode::train(&mut prober, &unknown()).len(), 20);
    }

    /// A proxy holds one segment of the server at the start of the train and receives the others during it.
    #[test]
    fn in_safe_mode_data_that_come_while_the_train_leaves_have_probes() {
        let mut prober = Inquirer::new(bare(Mode::Safe, Form::Pipe), f64::INFINITY);
        let path = |now, unsent| Path {
            now,
            snd_una: 1,
            snd_nxt: 1001,
            mss: 1000,
            outstanding: 1,
            unsent,
            ..unknown()
        };
        assert!(episode::drain(&mut prober, 1, &path(fixture::path().now, 0)).is_empty());
        prober.on_wake(&path(prober.wake_at(), 0));
        assert!(
            episode::drain(&mut prober, 0, &path(fixture::path().now, 0)).is_empty(),
            "one segment, which has left"
        );
        prober.on_wake(&path(prober.wake_at(), 1000));
        assert_eq!(episode::drain(&mut prober, 0, &path(fixture::path().now, 1000)).len(), 1);
        prober.on_wake(&path(prober.wake_at(), 1000));
        assert!(
            episode::drain(&mut prober, 0, &path(fixture::path().now, 1000)).is_empty(),
            "one more segment, one probe"
        );
    }

    #[test]
    fn a_plain_duplicate_makes_it_reno() {
        let mut prober = Inquirer::new(paper(), f64::INFINITY);
        episode::train(&mut prober, &unknown());
        assert!(prober.distrusts_duplicates());
        prober.on_ack(&fixture::ack(0), &fixture::path_at(0.6));
        prober.on_ack(&fixture::ack(1), &fixture::path_at(0.6));
        assert_eq!(
            (prober.window(), prober.snapshot().ssthresh, prober.snapshot().phase),
            (2.0, 64.0, "slow-start")
        );
        prober.on_loss(&fixture::loss(20), &fixture::path_at(3.0));
        prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &fixture::path_at(3.0));
        assert!(episode::drain(&mut prober, 0, &fixture::path_at(3.0)).is_empty());
        assert_eq!((prober.window(), prober.snapshot().phase), (10.0, "fast-recovery"));
    }

    #[test]
    fn a_timeout_begins_a_train_again() {
        let mut prober = episode::avoiding(paper(), 30.0);
        let timeout = Timeout { consecutive: 1, outstanding: 30, answered: false };
        assert_eq!(prober.on_rto(&timeout, &fixture::path()), BackOff::Double);
        let path = Path { outstanding: 30, ..fixture::path() };
        assert!(episode::drain(&mut prober, 1, &path).is_empty());
        assert_eq!((prober.window(), prober.snapshot().phase), (1.0, "bare-start"));
        assert_eq!(prober.wake_at(), path.now + path.srtt / 64);
    }

    #[test]
    fn a_mistake_is_taken_back_and_its_probes_count_for_nothing() {
        let mut prober = episode::avoiding(paper(), 30.0);
        prober.on_loss(&fixture::loss(30), &fixture::path());
        prober.on_undo(Undo::Reduction, &fixture::path());
        let reply = ProbeReply { tag: ProbeTag(prober.epoch), acked: 0, phase: Phase::Open };
        prober.on_probe_acked(&reply, &fixture::path());
        assert_eq!((prober.window(), prober.snapshot().phase), (30.0, "congestion-avoidance"));
    }

    #[test]
    fn a_mark_halves_without_probes() {
        let mut prober = episode::avoiding(paper(), 30.0);
        prober.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(30) }, &fixture::path());
        assert_eq!((prober.window(), prober.snapshot().phase), (15.0, "congestion-avoidance"));
    }

    #[test]
    fn safe_mode_ignores_replies_to_an_earlier_episode() {
        for (mode, window) in [(Mode::Paper, 31.0), (Mode::Safe, 30.0)] {
            let mut prober = episode::avoiding(bare(mode, Form::Pipe), 30.0);
            let reply = ProbeReply { tag: ProbeTag(9), acked: 0, phase: Phase::Open };
            prober.on_probe_acked(&reply, &fixture::path());
            assert_eq!(prober.window(), window);
        }
    }
}
