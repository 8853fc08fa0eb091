//! TCP-Probing: after a loss the sender probes the path before it sends more. Two header-only probes distinguish a fade from
//! congestion.
//!
//! V. Tsaoussidis, H. Badr, "TCP-Probing: Towards an Error Control Schema with Energy and Throughput Performance Gains", IEEE
//! ICNP 2000.
//!
//! | paper                  | here                       | unit     |
//! |------------------------|----------------------------|----------|
//! | probe cycle            | `Cycle`                    | -        |
//! | PROBE1, PROBE2         | `Step`                     | -        |
//! | best RTT               | [`Path::min_rtt`]          | time     |
//! | last RTT               | `Probing::last_rtt`        | time     |
//! | Immediate Recovery     | `Probing::recover_at_once` | -        |
//!
//! During a probe cycle no data leaves and the windows are constant. Two round trips, neither longer than the last one before the
//! loss, show that there is no queue: the sender continues with its old window. Otherwise it reacts like Reno. A fade that loses
//! the probes prolongs the cycle, but costs neither window nor data.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, ProbeTag, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{not_negative, positive};
use crate::{
    Accounting, Ack, BackOff, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path,
    PeerProbes, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober, Requirements, Rule, SENDER_ONLY,
    Sleeper, Spacing, Start, Timeout, Undo, Wake, WindowState, Windows, forward, state,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "probing",
    title: "after a loss two header-only probes ask the path: a fade costs no window, congestion half of it",
    paper: "Tsaoussidis, Badr, IEEE ICNP",
    year: 2000,
    needs_receiver: true,
    family: Family::Receiver,
    advice: "For fades, during which it pauses. Not for a small queue that is often full: its probe cycles left half of the link idle here.",
    ..SENDER_ONLY
};

/// Parameters of TCP-Probing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest window in segments for which duplicates start no probe cycle: halving it is cheaper.
    #[serde(deserialize_with = "not_negative")]
    pub least_window: f64,
    /// Tolerance of a probe's round trip over the last one, as a fraction of minRTT. The variation may allow more.
    #[serde(deserialize_with = "not_negative")]
    pub tolerance: f64,
    /// Number of waits for a probe that are not doubled.
    pub patient_cycles: u32,
    /// Maximum wait for a probe in seconds.
    #[serde(deserialize_with = "positive")]
    pub longest_wait_s: f64,
    /// Seconds without an answer after which the sender assumes congestion.
    #[serde(deserialize_with = "positive")]
    pub give_up_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { least_window: 4.0, tolerance: 0.02, patient_cycles: 3, longest_wait_s: 8.0, give_up_s: 60.0 }
    }
}

impl Config {
    /// A TCP-Probing sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Probing::new(*self, windows))
    }
}

/// Reno's windows; a loss halves the window before it, not the flight left at the end of the cycle.
#[derive(Clone, Copy, Debug)]
struct Halves;

impl Rule for Halves {
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        windows.reduce_to(windows.cwnd / 2.0, loss.cause);
    }
}

/// Trigger of a cycle, with the event that Reno would handle.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trigger {
    Duplicates(Loss),
    Timeout(Timeout),
}

/// Answer that a cycle waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    First,
    /// The second answer; holds the round-trip time of the first probe.
    Second(Duration),
}

/// A probe cycle.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cycle {
    trigger: Trigger,
    began_at: Instant,
    /// Maximum round-trip time that still shows an empty path.
    limit: Duration,
    step: Step,
    /// True if the next probe must leave.
    due: bool,
    sent_at: Instant,
    /// Number of unanswered probes.
    unanswered: u32,
    expires_at: Instant,
}

/// A TCP-Probing sender.
#[derive(Clone, Debug)]
pub struct Probing {
    config: Config,
    reno: Classic<Halves>,
    cycle: Option<Cycle>,
    /// Number of the current or last probe, carried in its tag.
    number: u16,
    peer_replies: bool,
    last_rtt: Duration,
    /// Pacing of the first window after a cycle.
    spaced: Option<(Rate, Instant)>,
}

impl Probing {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, windows: Windows) -> Self {
        Self {
            config,
            reno: Classic::new(windows, Halves),
            cycle: None,
            number: 0,
            peer_replies: false,
            last_rtt: Duration::ZERO,
            spaced: None,
        }
    }

    fn begin(&mut self, trigger: Trigger, path: &Path) {
        let best = path.min_rtt.min(path.srtt);
        let tolerance = path.rttvar.max(best.mul_f64(self.config.tolerance));
        self.number = self.number.wrapping_add(1);
        self.cycle = Some(Cycle {
            trigger,
            began_at: path.now,
            limit: self.last_rtt + tolerance,
            step: Step::First,
            due: true,
            sent_at: path.now,
            unanswered: 0,
            expires_at: path.now + self.wait(0, path),
        });
    }

    /// Returns the time to wait for an answer: a round trip with margin, doubled after some cycles.
    fn wait(&self, unanswered: u32, path: &Path) -> Duration {
        let best = path.min_rtt.min(path.srtt);
        let round_trip = (path.srtt + path.rttvar * 4).max(best.mul_f64(1.5)).max(Duration::from_millis(1));
        let doublings = (unanswered + 1).saturating_sub(self.config.patient_cycles).min(32);
        let longest = Duration::from_secs_f64(self.config.longest_wait_s).max(round_trip);
        (round_trip * (1 << doublings)).min(longest)
    }

    /// Restarts the cycle after a lost probe, which shows a bad channel, not a full one.
    fn ask_again(&mut self, path: &Path) {
        let Some(mut cycle) = self.cycle else { return };
        self.number = self.number.wrapping_add(1);
        cycle.step = Step::First;
        cycle.due = true;
        cycle.unanswered += 1;
        cycle.expires_at = path.now + self.wait(cycle.unanswered, path);
        self.cycle = Some(cycle);
    }

    /// Decides when both probes are answered.
    fn decide(&mut self, cycle: &Cycle, round_trips: [Duration; 2], path: &Path) {
        self.cycle = None;
        if round_trips.iter().all(|rtt| *rtt <= cycle.limit) {
            self.recover_at_once(path);
        } else {
            self.reduce(cycle.trigger, path);
        }
    }

    /// Immediate Recovery: restores the windows, and paces the first one over a round trip.
    fn recover_at_once(&mut self, path: &Path) {
        if !path.srtt.is_zero() {
            let bytes_per_s = self.reno.window() * f64::from(path.mss) / path.srtt_s();
            self.spaced = Some((Rate::from_bytes_per_s(bytes_per_s), path.now + path.srtt));
        }
    }

    fn reduce(&mut self, trigger: Trigger, path: &Path) {
        match trigger {
            Trigger::Duplicates(loss) => self.reno.on_loss(&loss, path),
            Trigger::Timeout(timeout) => {
                self.reno.on_rto(&timeout, path);
            }
        }
    }

    fn gives_up_at(&self, cycle: &Cycle) -> Instant {
        cycle.began_at + Duration::from_secs_f64(self.config.give_up_s)
    }
}

impl CongestionControl for Probing {
    forward!(reno: window, adopt);

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if self.spaced.is_some_and(|(_, until)| path.now >= until) {
            self.spaced = None;
        }
        if self.cycle.is_none() {
            self.last_rtt = ack.rtt.unwrap_or(self.last_rtt);
            return self.reno.on_ack(ack, path);
        }
        // The missing segments arrived after all: no probe is needed.
        if ack.ends_episode || (ack.acked > 0 && path.outstanding == 0) {
            self.cycle = None;
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        let worthwhile = self.reno.window() > self.config.least_window;
        if self.peer_replies && worthwhile && loss.cause == Cause::Loss {
            self.begin(Trigger::Duplicates(*loss), path);
        } else {
            self.reno.on_loss(loss, path);
        }
    }

    /// Not called within a cycle, because no data leaves.
    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        if self.cycle.is_some() {
            return BackOff::Double;
        }
        if !self.peer_replies {
            return self.reno.on_rto(timeout, path);
        }
        self.begin(Trigger::Timeout(Timeout { consecutive: 1, ..*timeout }), path);
        BackOff::Keep
    }

    fn spacing(&self) -> Spacing {
        match self.spaced {
            _ if self.cycle.is_some() => Spacing::Withheld,
            spaced => Spacing::at(spaced.map(|(rate, _)| rate)),
        }
    }

    fn on_undo(&mut self, undo: Undo, path: &Path) {
        if self.cycle.take().is_none() {
            self.reno.on_undo(undo, path);
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.peer_replies = path.peer_probes == PeerProbes::Agreed;
            self.last_rtt = path.srtt;
        }
        self.reno.on_event(event, path);
    }

    fn snapshot(&self) -> WindowState {
        let Windows { ssthresh, .. } = self.reno.windows;
        state(self, ssthresh, if self.cycle.is_some() { "probing" } else { self.reno.windows.phase() })
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, withholds: true, ..Requirements::default() }
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        Some(self)
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Prober for Probing {
    fn next_probe(&mut self, _moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest> {
        let cycle = self.cycle.as_mut().filter(|cycle| cycle.due)?;
        cycle.due = false;
        cycle.sent_at = path.now;
        Some(ProbeRequest { kind: ProbeKind::AckPath, tag: ProbeTag(self.number) })
    }

    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path) {
        let Some(mut cycle) = self.cycle.filter(|cycle| !cycle.due) else { return };
        if reply.tag != ProbeTag(self.number) {
            return;
        }
        let rtt = path.now.since(cycle.sent_at);
        match cycle.step {
            Step::First => {
                self.number = self.number.wrapping_add(1);
                cycle.step = Step::Second(rtt);
                cycle.due = true;
                cycle.expires_at = path.now + self.wait(cycle.unanswered, path);
                self.cycle = Some(cycle);
            }
            Step::Second(first) => self.decide(&cycle, [first, rtt], path),
        }
    }
}

impl Sleeper for Probing {
    fn wake_at(&self) -> Instant {
        self.cycle.map_or(Instant::FAR_FUTURE, |cycle| cycle.expires_at.min(self.gives_up_at(&cycle)))
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        let Some(cycle) = self.cycle else { return Wake::Quiet };
        if path.now >= self.gives_up_at(&cycle) {
            self.cycle = None;
            let timeout = Timeout { consecutive: 1, outstanding: path.outstanding, answered: false };
            self.reduce(Trigger::Timeout(timeout), path);
        } else if path.now >= cycle.expires_at {
            self.ask_again(path);
        }
        Wake::Quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, fixture};

    /// The path at `seconds`, with minRTT 0.50 s and variation 0.01 s.
    fn at(seconds: f64) -> Path {
        Path {
            srtt: Duration::from_millis(540),
            rttvar: Duration::from_millis(10),
            min_rtt: Duration::from_millis(500),
            outstanding: 40,
            ..fixture::path_at(seconds)
        }
    }

    /// Makes a sender with a window of 40 whose last round-trip time was 0.56 s.
    fn probing() -> Probing {
        let mut probing = Probing::new(Config::default(), Windows { cwnd: 40.0, ssthresh: 30.0 });
        probing.on_event(ConnectionEvent::Established, &at(0.5));
        let rtt = Some(Duration::from_millis(560));
        probing.on_ack(&Ack { rtt, window_limited: false, ..fixture::ack(1) }, &at(0.9));
        probing
    }

    fn ask(probing: &mut Probing, seconds: f64) -> ProbeTag {
        let moment = ProbeMoment { data_sent: 0, sent_newest: false };
        let request = probing.next_probe(&moment, &at(seconds)).expect("a probe is due");
        assert_eq!(request.kind, ProbeKind::AckPath);
        assert_eq!(probing.next_probe(&moment, &at(seconds)), None);
        request.tag
    }

    /// Answers two probes with these round-trip times, from 1 s on. Returns the time of the second answer.
    fn answer(probing: &mut Probing, round_trips: [f64; 2]) -> f64 {
        let mut now = 1.0;
        for rtt_s in round_trips {
            let tag = ask(probing, now);
            now += rtt_s;
            let reply = ProbeReply { tag, acked: 0, phase: Phase::Recovery };
            probing.on_probe_acked(&reply, &at(now));
        }
        now
    }

    const TIMEOUT: Timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };

    #[test]
    fn two_good_round_trips_give_everything_back() {
        let mut probing = probing();
        probing.on_loss(&fixture::loss(40), &at(1.0));
        assert!((probing.spacing() == Spacing::Withheld));
        let now = answer(&mut probing, [0.52, 0.57]);
        assert!((now - 1.0 - 1.09).abs() < 1e-9, "the pause");
        assert!(!(probing.spacing() == Spacing::Withheld));
        assert_eq!((probing.window(), probing.snapshot().ssthresh), (40.0, 30.0));
        assert!(probing.spacing().rate().is_some(), "the first window is spaced");
        probing.on_ack(&fixture::ack(1), &at(now + 0.6));
        assert_eq!(probing.spacing().rate(), None);
    }

    #[test]
    fn a_long_round_trip_is_congestion() {
        let mut duplicates = probing();
        duplicates.on_loss(&fixture::loss(40), &at(1.0));
        answer(&mut duplicates, [0.52, 0.70]);
        assert_eq!((duplicates.window(), duplicates.snapshot().ssthresh), (20.0, 20.0));
        let mut timeout = probing();
        let action = timeout.on_rto(&TIMEOUT, &at(1.0));
        assert_eq!((action, timeout.window()), (BackOff::Keep, 40.0));
        answer(&mut timeout, [0.52, 0.70]);
        assert_eq!((timeout.window(), timeout.snapshot().ssthresh), (1.0, 20.0));
    }

    #[test]
    fn a_fade_prolongs_the_cycle() {
        let mut probing = probing();
        // Limits of the wait: srtt + 4 rttvar = 0.58 s. 1.5 minRTT is 0.75 s for a minRTT of 0.5 s, and 0.6 s for 0.4 s.
        let at = |seconds| Path {
            srtt: Duration::from_millis(560),
            min_rtt: Duration::from_millis(400),
            ..at(seconds)
        };
        probing.on_rto(&TIMEOUT, &at(0.0));
        let mut asked = vec![];
        while asked.len() < 6 {
            let now = asked.last().map_or(0.0, |_| probing.wake_at().as_secs_f64());
            probing.on_wake(&at(now));
            ask(&mut probing, now);
            asked.push(now);
        }
        for (asked, expected) in asked.iter().zip([0.0, 0.6, 1.2, 1.8, 3.0, 5.4]) {
            assert!((asked - expected).abs() < 1e-9, "{asked} for {expected}");
        }
        assert_eq!(probing.window(), 40.0);
    }

    #[test]
    fn a_minute_of_silence_is_congestion() {
        let mut probing = probing();
        probing.on_loss(&fixture::loss(40), &at(1.0));
        probing.on_wake(&at(61.0));
        assert!(!(probing.spacing() == Spacing::Withheld));
        assert_eq!((probing.window(), probing.snapshot().ssthresh), (1.0, 20.0));
    }

    #[test]
    fn an_answer_to_an_earlier_cycle_does_not_count() {
        let mut probing = probing();
        probing.on_loss(&fixture::loss(40), &at(1.0));
        let tag = ask(&mut probing, 1.0);
        probing.on_wake(&Path { now: probing.wake_at(), ..at(2.0) });
        ask(&mut probing, 2.0);
        probing.on_probe_acked(&ProbeReply { tag, acked: 0, phase: Phase::Recovery }, &at(2.1));
        assert_eq!(probing.cycle.unwrap().step, Step::First);
    }

    #[test]
    fn what_arrives_after_all_ends_the_cycle() {
        let mut probing = probing();
        probing.on_loss(&fixture::loss(40), &at(1.0));
        probing.on_ack(&fixture::ack(40), &Path { outstanding: 0, ..at(1.2) });
        assert!(!(probing.spacing() == Spacing::Withheld));
        assert_eq!(probing.window(), 40.0);
    }

    #[test]
    fn small_windows_and_plain_receivers_do_what_reno_does() {
        let mut small = Probing::new(Config::default(), Windows { cwnd: 4.0, ssthresh: 2.0 });
        small.on_event(ConnectionEvent::Established, &at(0.5));
        small.on_loss(&fixture::loss(4), &at(1.0));
        assert_eq!(((small.spacing() == Spacing::Withheld), small.window()), (false, 2.0));
        let mut plain = Probing::new(Config::default(), Windows { cwnd: 40.0, ssthresh: 2.0 });
        plain.on_event(ConnectionEvent::Established, &Path { peer_probes: PeerProbes::Unknown, ..at(0.5) });
        plain.on_loss(&fixture::loss(40), &at(1.0));
        assert_eq!(((plain.spacing() == Spacing::Withheld), plain.window()), (false, 20.0));
        assert_eq!(plain.on_rto(&TIMEOUT, &at(2.0)), BackOff::Double);
    }
}
