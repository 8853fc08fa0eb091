//! Cost of an ACK for each registered algorithm: all calls of the engine for one ACK, and those of the receiver half.

use bentpipe_base::{Duration, Extension, Instant, ProbeTag, Segment};
use bentpipe_cc::{
    Ack, Algorithm, Cause, CongestionControl, ConnectionEvent, Entry, Feedback, Loss, Path, PeerProbes,
    Phase, ProbeMoment, ProbeReply, REGISTRY, RateSample, Reflector, Requirements, Sent, Start,
};
use criterion::{Criterion, criterion_group, criterion_main};

const MSS: u32 = 1000;
const RTT: Duration = Duration::from_millis(550);
const OUTSTANDING: u32 = 64;
/// Maximum queueing delay of an episode. The queue grows by equal steps, then empties.
const QUEUE: Duration = Duration::from_millis(20);
const TOOTH: u64 = 256;
/// ACKs from one loss to the next, so that an algorithm passes through all its phases.
const EPISODE: u64 = 2000;
/// ACKs of an episode that arrive in recovery.
const RECOVERY: u64 = 64;
/// Window in segments above which the benchmark lets no window grow.
const LARGEST_WINDOW: f64 = 1000.0;

/// Requirements and capabilities of the algorithm, asked once.
struct Has {
    requirements: Requirements,
    prober: bool,
    detector: bool,
    sleeper: bool,
}

/// A full pipe: each ACK allows one segment.
struct Pipe {
    has: Has,
    cc: Box<dyn CongestionControl>,
    receiver: Option<Box<dyn Reflector>>,
    path: Path,
    probe: Option<ProbeTag>,
    acks: u64,
}

impl Pipe {
    fn new(entry: &Entry) -> Self {
        let start = Start {
            mss: MSS,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            paced: true,
            seed: 1,
            memory: None,
        };
        let path = Path {
            now: Instant::ZERO + Duration::from_secs(1),
            mss: MSS,
            srtt: RTT,
            rttvar: RTT / 8,
            min_rtt: RTT,
            rto: RTT * 2,
            in_flight: OUTSTANDING,
            outstanding: OUTSTANDING,
            receive_window: 1000,
            snd_una: 1,
            snd_nxt: 1 + u64::from(OUTSTANDING * MSS),
            unsent: 1 << 30,
            delivered: 0,
            peer_probes: PeerProbes::Agreed,
            ecn: false,
        };
        let mut cc = Algorithm::from_name(entry.name).expect("it is registered").build(&start);
        cc.on_event(ConnectionEvent::Established, &path);
        let has = Has {
            requirements: cc.requirements(),
            prober: cc.prober().is_some(),
            detector: cc.detector().is_some(),
            sleeper: cc.sleeper().is_some(),
        };
        Self { has, cc, receiver: entry.receiver.map(|half| (half.build)()), path, probe: None, acks: 0 }
    }

    /// Handles one ACK and its consequences, and sends one segment. Returns the window, as the engine reads it.
    fn ack(&mut self) -> f64 {
        self.path.now += RTT / u64::from(OUTSTANDING);
        if self.has.sleeper
            && let Some(sleeper) = self.cc.sleeper()
            && sleeper.wake_at() <= self.path.now
        {
            sleeper.on_wake(&self.path);
        }
        let place = self.acks % EPISODE;
        let phase = if place < RECOVERY && self.acks >= EPISODE { Phase::Recovery } else { Phase::Open };
        if phase == Phase::Recovery && place == 0 {
            self.lose();
        }
        self.acknowledge(phase, place == RECOVERY - 1);
        self.send();
        if self.has.prober {
            self.probe(phase);
        }
        self.acks += 1;
        let _ = self.cc.spacing();
        self.cc.window()
    }

    fn lose(&mut self) {
        let loss = Loss {
            cause: Cause::Loss,
            lost: 1,
            outstanding: OUTSTANDING,
            in_flight: OUTSTANDING,
            validated: None,
        };
        self.cc.on_loss(&loss, &self.path);
    }

    fn acknowledge(&mut self, phase: Phase, last: bool) {
        self.path.snd_una += u64::from(MSS);
        self.path.delivered += u64::from(MSS);
        let delivered = u64::from(OUTSTANDING * MSS);
        let queue = QUEUE * (self.acks % TOOTH) / TOOTH;
        let left_peer = self.path.now - RTT / 2;
        let rate = RateSample {
            delivered,
            interval: RTT,
            prior_delivered: self.path.delivered.saturating_sub(delivered),
            app_limited: false,
            tx_in_flight: OUTSTANDING,
            lost: u32::from(phase == Phase::Recovery),
        };
        let ack = Ack {
            acked: 1,
            counted: 1,
            sacked: 0,
            delivered_bytes: u64::from(MSS),
            lost: 0,
            rtt: Some(RTT + queue),
            peer_clock: Some((left_peer.as_nanos() / 1_000_000) as u32),
            rate: Some(rate),
            phase,
            ends_episode: phase == Phase::Recovery && last,
            window_limited: self.cc.window() < LARGEST_WINDOW,
            ecn_echo: false,
            dsack: false,
            marks: 0,
        };
        if let Some(receiver) = &mut self.receiver {
            let fields = receiver.reply(self.path.now);
            if let Some(feedback) = self.cc.feedback() {
                feedback.on_feedback(&fields, &self.path);
            }
        }
        self.cc.on_ack(&ack, &self.path);
        if self.has.detector
            && let Some(detector) = self.cc.detector()
        {
            detector.early_retransmit(self.path.now - RTT, &self.path);
        }
    }

    fn send(&mut self) {
        let sent = Sent { seq: self.path.snd_nxt, len: MSS, retransmission: false };
        self.path.snd_nxt += u64::from(MSS);
        if self.has.requirements.sent {
            self.cc.on_sent(&sent, &self.path);
        }
        if let Some(receiver) = &mut self.receiver {
            let stamp = |feedback: &mut dyn Feedback| feedback.stamp(&sent, &self.path);
            let extension = self.cc.feedback().map_or(Extension::None, stamp);
            let segment = Segment { seq: sent.seq, len: MSS, extension, ..Segment::default() };
            receiver.on_data(self.path.now, &segment, false);
        }
    }

    /// Answers the probe sent with the last segment, and asks for the next.
    fn probe(&mut self, phase: Phase) {
        let Some(prober) = self.cc.prober() else { return };
        if let Some(tag) = self.probe.take() {
            prober.on_probe_acked(&ProbeReply { tag, acked: 0, phase }, &self.path);
        }
        let moment = ProbeMoment { data_sent: 1, sent_newest: false };
        self.probe = prober.next_probe(&moment, &self.path).map(|request| request.tag);
    }
}

fn per_ack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("per-ack");
    group.warm_up_time(std::time::Duration::from_millis(200));
    group.measurement_time(std::time::Duration::from_millis(500));
    for entry in REGISTRY {
        let mut pipe = Pipe::new(entry);
        group.bench_function(entry.name, |bencher| bencher.iter(|| pipe.ack()));
    }
    group.finish();
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
