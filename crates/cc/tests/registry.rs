//! Properties that every registered algorithm must have for any sequence of calls. Registration adds an algorithm to these
//! tests.

use bentpipe_base::{Duration, Extension, Instant, Notice, ProbeTag, Rate, Segment};
use bentpipe_cc::packets::supported;
use bentpipe_cc::{
    Ack, Algorithm, Capacity, Cause, CongestionControl, ConnectionEvent, Entry, Feedback, Loss, Path,
    PathMemory, PeerProbes, Phase, ProbeMoment, ProbeReply, REGISTRY, RateSample, Reflector, Saved, Sent,
    Start, Timeout, Undo, Windows, careful_resume,
};
use proptest::prelude::*;

const MSS: u32 = 1000;
/// Limit of probes at one instant, above the largest window of these tests.
const TOO_MANY_PROBES: u32 = 10_000;
/// Limit of timer events at one instant, above the need of any pacer in these tests.
const TOO_MANY_WAKE_UPS: u32 = 10_000;

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acked { segments: u32, rtt_ms: Option<u64>, window_limited: bool, ends_episode: bool },
    Duplicate { sacked: u32 },
    Lost(Cause),
    TimedOut,
    Undone,
    ThresholdUndone,
    ProbeAnswered { tag: u16, acked: u32 },
    Idle { restart: u8 },
    Unvalidated,
    Closed,
    Sent { segments: u32 },
    Passes { ms: u64 },
    ReceiveWindow(u32),
    FedBack(Extension),
}

/// Any content of an extension, valid or not, from a peer or a router.
fn extension() -> impl Strategy<Value = Extension> {
    prop_oneof![
        any::<f32>().prop_map(|delta_bytes_per_s| Extension::Xcp {
            rtt_s: 0.0,
            spacing_s: 0.0,
            delta_bytes_per_s,
            limited: false
        }),
        (0..4_u16, any::<u64>(), any::<bool>()).prop_map(|(id, bps, valid)| Extension::ReceiveRate {
            id,
            rate: Rate::from_bps(bps),
            valid
        }),
        any::<u64>().prop_map(Extension::Value),
        (0..100_000_u64).prop_map(Extension::Value),
        prop_oneof![
            Just(Notice::Corruption),
            (0..100_000_u64).prop_map(Notice::Spoilt),
            Just(Notice::Outage),
            Just(Notice::Restored),
        ]
        .prop_map(Extension::Notice),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..40_u32, proptest::option::of(0..3000_u64), any::<bool>(), any::<bool>()).prop_map(
            |(segments, rtt_ms, window_limited, ends_episode)| Step::Acked { segments, rtt_ms, window_limited, ends_episode }
        ),
        6 => (0..4_u32).prop_map(|sacked| Step::Duplicate { sacked }),
        2 => prop_oneof![Just(Cause::Loss), Just(Cause::Mark)].prop_map(Step::Lost),
        1 => Just(Step::TimedOut),
        1 => Just(Step::Undone),
        1 => Just(Step::ThresholdUndone),
        4 => (0..4_u16, 0..3_u32).prop_map(|(tag, acked)| Step::ProbeAnswered { tag, acked }),
        1 => (1..10_u8).prop_map(|restart| Step::Idle { restart }),
        1 => Just(Step::Unvalidated),
        1 => Just(Step::Closed),
        4 => (1..40_u32).prop_map(|segments| Step::Sent { segments }),
        4 => (0..5000_u64).prop_map(|ms| Step::Passes { ms }),
        1 => prop_oneof![Just(0_u32), 1..100_u32].prop_map(Step::ReceiveWindow),
        1 => extension().prop_map(Step::FedBack),
    ]
}

/// Makes a memory with the state of a connection of this window.
fn remembering(cwnd: f64) -> PathMemory {
    let memory = PathMemory::new();
    let windows = Windows { cwnd, ssthresh: cwnd };
    memory.save(Saved {
        windows,
        srtt: Duration::from_millis(550),
        at: Instant::ZERO + Duration::from_secs(1),
    });
    memory.save_capacity(Capacity {
        bytes: cwnd as u64 * u64::from(MSS),
        min_rtt: Duration::from_millis(550),
        at: Instant::ZERO + Duration::from_secs(1),
    });
    memory
}

/// The engine's side of the interface, without an engine.
struct Driver {
    cc: Box<dyn CongestionControl>,
    receiver: Option<Box<dyn Reflector>>,
    path: Path,
    phase: Phase,
    consecutive_timeouts: u32,
    data_sent: u32,
    /// Number of probes sent so far.
    probes: u32,
}

impl Driver {
    fn new(entry: &Entry, peer_probes: PeerProbes) -> Self {
        Self::of(entry, peer_probes, false)
    }

    /// With Careful Resume around the algorithm, if `resumes`.
    fn of(entry: &Entry, peer_probes: PeerProbes, resumes: bool) -> Self {
        let start = Start {
            mss: MSS,
            initial_window: 2.0,
            initial_ssthresh: f64::INFINITY,
            paced: false,
            seed: 1,
            memory: Some(remembering(40.0)),
        };
        let rtt = Duration::from_millis(550);
        let path = Path {
            now: Instant::ZERO + Duration::from_secs(1),
            mss: MSS,
            srtt: rtt,
            rttvar: rtt / 2,
            min_rtt: rtt,
            rto: rtt * 3,
            in_flight: 0,
            outstanding: 0,
            receive_window: 64,
            snd_una: 1,
            snd_nxt: 1,
            unsent: 1 << 30,
            delivered: 0,
            peer_probes,
            ecn: false,
        };
        let mut cc = Algorithm::from_name(entry.name).expect("it is registered").build(&start);
        if resumes {
            cc = careful_resume::Config::default().around(cc, &start);
        }
        cc.on_event(ConnectionEvent::Established, &path);
        let receiver = entry.receiver.map(|half| (half.build)());
        Self { cc, receiver, path, phase: Phase::Open, consecutive_timeouts: 0, data_sent: 0, probes: 0 }
    }

    fn apply(&mut self, step: Step) {
        self.data_sent = 0;
        match step {
            Step::Acked { segments, rtt_ms, window_limited, ends_episode } => {
                let rtt = rtt_ms.map(Duration::from_millis);
                self.acknowledge(segments.min(self.path.outstanding), rtt, window_limited, ends_episode);
            }
            Step::Duplicate { sacked } => {
                let ack = Ack { sacked, ..self.ack(0) };
                self.cc.on_ack(&ack, &self.path);
            }
            Step::Lost(cause) => self.lose(cause),
            Step::TimedOut => self.time_out(),
            Step::Undone => {
                self.cc.on_undo(Undo::Reduction, &self.path);
                self.phase = Phase::Open;
            }
            Step::ThresholdUndone => self.cc.on_undo(Undo::Threshold, &self.path),
            Step::ProbeAnswered { tag, acked } => {
                let acked = acked.min(self.path.outstanding);
                self.acknowledge(acked, None, true, false);
                let reply = ProbeReply { tag: ProbeTag(tag), acked, phase: self.phase };
                if let Some(prober) = self.cc.prober() {
                    prober.on_probe_acked(&reply, &self.path);
                }
            }
            Step::Idle { restart } => {
                self.cc.on_event(ConnectionEvent::Idle { restart: f64::from(restart) }, &self.path)
            }
            Step::Closed => self.cc.on_event(ConnectionEvent::Closed, &self.path),
            Step::Unvalidated => self.cc.on_event(ConnectionEvent::Unvalidated { floor: 2.0 }, &self.path),
            Step::Sent { segments } => self.send(segments),
            Step::Passes { ms } => self.pass(Duration::from_millis(ms)),
            Step::ReceiveWindow(segments) => self.path.receive_window = segments,
            Step::FedBack(fields) => self.feed_back(&fields),
        }
        self.ask_for_probes();
        self.check();
    }

    fn feed_back(&mut self, fields: &Extension) {
        if let Some(feedback) = self.cc.feedback() {
            feedback.on_feedback(fields, &self.path);
        }
    }

    fn wake_at(&mut self) -> Instant {
        self.cc.sleeper().map_or(Instant::FAR_FUTURE, |sleeper| sleeper.wake_at())
    }

    fn ack(&self, acked: u32) -> Ack {
        Ack {
            acked,
            counted: acked,
            sacked: 0,
            delivered_bytes: u64::from(acked * MSS),
            lost: 0,
            rtt: None,
            // A peer may send any timestamp value.
            peer_clock: Some(self.path.now.as_nanos() as u32),
            rate: None,
            phase: self.phase,
            ends_episode: false,
            window_limited: true,
            ecn_echo: false,
            dsack: false,
            // As many as a peer may report, however few it acknowledges.
            marks: (self.path.now.as_nanos() % 3) as u32 * acked,
        }
    }

    fn acknowledge(&mut self, acked: u32, rtt: Option<Duration>, window_limited: bool, ends_episode: bool) {
        if acked == 0 {
            return;
        }
        self.path.snd_una += u64::from(acked * MSS);
        self.path.outstanding -= acked;
        self.path.in_flight = self.path.outstanding;
        self.path.delivered += u64::from(acked * MSS);
        self.consecutive_timeouts = 0;
        let ends_episode = self.phase != Phase::Open && ends_episode;
        let rate = rtt.map(|rtt| self.rate(acked, rtt));
        let ack = Ack { rtt, rate, window_limited, ends_episode, ..self.ack(acked) };
        if let Some(receiver) = &mut self.receiver {
            let fields = receiver.reply(self.path.now);
            self.feed_back(&fields);
        }
        self.cc.on_ack(&ack, &self.path);
        if let Some(detector) = self.cc.detector() {
            detector.early_retransmit(self.path.now - rtt.unwrap_or_default(), &self.path);
        }
        if ends_episode {
            self.phase = Phase::Open;
        }
    }

    /// Returns a delivery-rate sample over a round trip of at least 1 ms; the engine makes none for a zero interval.
    fn rate(&self, acked: u32, rtt: Duration) -> RateSample {
        let delivered = u64::from((acked + self.path.outstanding) * MSS);
        RateSample {
            delivered,
            interval: rtt.max(Duration::from_millis(1)),
            prior_delivered: self.path.delivered.saturating_sub(delivered),
            app_limited: self.path.outstanding == 0,
            tx_in_flight: acked + self.path.outstanding,
            lost: u32::from(self.phase == Phase::Recovery),
        }
    }

    fn lose(&mut self, cause: Cause) {
        if self.phase != Phase::Open || self.path.outstanding == 0 {
            return;
        }
        let Path { outstanding, in_flight, .. } = self.path;
        let loss = Loss { cause, lost: 1, outstanding, in_flight, validated: None };
        self.cc.on_loss(&loss, &self.path);
        if cause == Cause::Loss {
            self.phase = Phase::Recovery;
            self.data_sent = 1;
        }
        let ack = self.ack(0);
        self.cc.on_ack(&ack, &self.path);
    }

    fn time_out(&mut self) {
        if self.path.outstanding == 0 {
            return;
        }
        self.consecutive_timeouts += 1;
        let timeout = Timeout {
            consecutive: self.consecutive_timeouts,
            outstanding: self.path.outstanding,
            answered: false,
        };
        // This test never answers the probe: the timer expires again.
        let probes = self.cc.requirements().timeout_probes;
        if !probes || self.cc.timeout_probe(&timeout, &self.path).is_none() {
            self.cc.on_rto(&timeout, &self.path);
        }
        self.phase = Phase::Loss;
        self.data_sent = 1;
    }

    fn send(&mut self, segments: u32) {
        for _ in 0..segments {
            if self.path.outstanding >= self.cc.window().min(f64::from(self.path.receive_window)) as u32 {
                break;
            }
            let sent = Sent { seq: self.path.snd_nxt, len: MSS, retransmission: false };
            self.path.snd_nxt += u64::from(MSS);
            self.path.outstanding += 1;
            self.path.in_flight = self.path.outstanding;
            self.data_sent += 1;
            self.cc.on_sent(&sent, &self.path);
            if let Some(receiver) = &mut self.receiver {
                let stamp = |feedback: &mut dyn Feedback| feedback.stamp(&sent, &self.path);
                let extension = self.cc.feedback().map_or(Extension::None, stamp);
                let segment = Segment { seq: sent.seq, len: MSS, extension, ..Segment::default() };
                receiver.on_data(self.path.now, &segment, false);
            }
        }
    }

    /// Advances time, with every timer event requested by the algorithm.
    fn pass(&mut self, span: Duration) {
        let end = self.path.now + span;
        let mut at_this_instant = 0;
        while self.wake_at() <= end {
            let at = self.wake_at().max(self.path.now);
            at_this_instant = if at == self.path.now { at_this_instant + 1 } else { 0 };
            assert!(at_this_instant < TOO_MANY_WAKE_UPS, "wakes up again and again at {at:?}");
            self.path.now = at;
            self.data_sent = 0;
            if let Some(sleeper) = self.cc.sleeper() {
                sleeper.on_wake(&self.path);
            }
            if let Some(detector) = self.cc.detector() {
                detector.early_retransmit(self.path.now, &self.path);
            }
            self.ask_for_probes();
        }
        self.path.now = end;
    }

    fn ask_for_probes(&mut self) {
        let moment = ProbeMoment { data_sent: self.data_sent, sent_newest: false };
        let mut sent = 0;
        while self.cc.prober().is_some_and(|prober| prober.next_probe(&moment, &self.path).is_some()) {
            sent += 1;
            assert!(sent < TOO_MANY_PROBES, "never stops to send probes");
        }
        self.probes += sent;
    }

    fn check(&self) {
        let window = self.cc.window();
        assert!(window.is_finite() && window >= 1.0, "window {window}");
        assert!(self.cc.snapshot().ssthresh >= 1.0, "threshold {}", self.cc.snapshot().ssthresh);
        assert!(!self.cc.snapshot().phase.is_empty());
    }
}

proptest! {
    #[test]
    fn every_algorithm_survives_every_sequence(
        steps in proptest::collection::vec(step(), 1..300),
        agreed in any::<bool>(),
        resumes in any::<bool>(),
    ) {
        let peer = if agreed { PeerProbes::Agreed } else { PeerProbes::Unknown };
        for entry in REGISTRY {
            let mut driver = Driver::of(entry, peer, resumes);
            for step in &steps {
                driver.apply(*step);
            }
        }
    }
}

/// A receive window of 1 GB, as on present hosts: no algorithm may send 1 GB of probes in a round trip.
#[test]
fn a_huge_receive_window_is_no_reason_for_a_flood_of_probes() {
    for entry in REGISTRY {
        let mut driver = Driver::new(entry, PeerProbes::Agreed);
        driver.path.receive_window = 1_000_000;
        driver.apply(Step::Sent { segments: 1 });
        driver.apply(Step::Passes { ms: 550 });
        assert!(driver.probes <= 1024, "{}: {} probes at the start", entry.name, driver.probes);
        driver.apply(Step::Acked {
            segments: 1,
            rtt_ms: Some(550),
            window_limited: true,
            ends_episode: false,
        });
        for _ in 0..500 {
            driver.apply(Step::Sent { segments: 40 });
        }
        let before = driver.probes;
        driver.apply(Step::Lost(Cause::Loss));
        (0..100).for_each(|_| driver.apply(Step::Duplicate { sacked: 1 }));
        driver.apply(Step::Passes { ms: 550 });
        assert!(driver.probes - before <= 1024, "{}: {} probes", entry.name, driver.probes - before);
    }
}

#[test]
fn every_algorithm_says_when_to_use_it() {
    for entry in REGISTRY {
        assert!(entry.advice.ends_with('.'), "{}: {:?}", entry.name, entry.advice);
    }
}

#[test]
fn names_are_unique_and_every_one_builds_itself() {
    for (i, entry) in REGISTRY.iter().enumerate() {
        assert!(REGISTRY[..i].iter().all(|other| other.name != entry.name), "{} twice", entry.name);
        assert_eq!(Algorithm::from_name(entry.name).unwrap().name(), entry.name);
    }
}

#[test]
fn a_sender_asks_for_the_receiver_half_of_its_entry() {
    let start = Start {
        mss: MSS,
        initial_window: 2.0,
        initial_ssthresh: f64::INFINITY,
        paced: false,
        seed: 1,
        memory: None,
    };
    for entry in REGISTRY {
        let mut cc = Algorithm::from_name(entry.name).unwrap().build(&start);
        let wanted = cc.feedback().map_or(0, |feedback| feedback.receiver());
        assert_eq!(wanted, entry.receiver.map_or(0, |half| half.number), "{}", entry.name);
    }
}

#[test]
fn who_always_spaces_its_segments_says_that_it_wants_pacing() {
    for entry in REGISTRY {
        let mut driver = Driver::new(entry, PeerProbes::Unknown);
        for _ in 0..100 {
            driver.apply(Step::Sent { segments: 40 });
            driver.apply(Step::Passes { ms: 550 });
            let segments = driver.path.outstanding;
            driver.apply(Step::Acked {
                segments,
                rtt_ms: Some(550),
                window_limited: true,
                ends_episode: false,
            });
        }
        let rate = driver.cc.spacing().rate().is_some_and(|rate| rate != Rate::ZERO);
        assert_eq!(rate, driver.cc.requirements().pacing, "{}", entry.name);
    }
}

/// Returns the table of the crate's documentation.
fn overview() -> String {
    let supported: Vec<_> = supported().map(|entry| entry.name).collect();
    let row = |entry: &Entry| {
        let receiver = match (entry.needs_receiver, entry.works_with_plain_receiver) {
            (false, _) => "no",
            (true, true) => "useful",
            (true, false) => "yes",
        };
        let routers = if entry.needs_routers { "yes" } else { "no" };
        let packets = if supported.contains(&entry.name) { "yes" } else { "no" };
        format!("| `{}` | {receiver} | {routers} | {packets} | {} |\n", entry.name, entry.advice)
    };
    let head = "| algorithm | needs support by the receiver | by routers | over packets | use |\n|---|---|---|---|---|\n";
    REGISTRY.iter().fold(head.to_owned(), |table, entry| table + &row(entry))
}

#[test]
fn the_overview_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/overview.md");
    if std::env::var_os("BENTPIPE_WRITE_REFERENCE").is_some() {
        std::fs::write(path, overview()).expect("the overview can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == overview(), "crates/cc/src/overview.md is not current: `make reference` writes it");
}

#[test]
fn a_number_means_one_receiver_half() {
    let halves = REGISTRY.iter().filter_map(|entry| Some((entry.receiver?.number, entry.name)));
    let halves: Vec<_> = halves.filter(|(_, name)| *name != "p-xcp").collect(); // uses XCP's half
    for (i, (number, name)) in halves.iter().enumerate() {
        assert!(
            *number > 0 && halves[..i].iter().all(|(other, _)| other != number),
            "{name}: {number} twice"
        );
    }
}
