//! Each law in C is compared with its Rust rule, over random histories of ACKs and losses.
//!
//! After every event the windows differ by at most 1 % or one segment, whichever is larger; this bound is fixed. A
//! history ends after some hundred events, because one rounding that changes a decision would affect all later
//! events. Each law runs through a million events, or `BENTPIPE_LAW_EVENTS`.

use std::collections::VecDeque;
use std::ffi::c_void;

use bentpipe_base::{Duration, Instant, ProbeTag, Rng};
use bentpipe_cc::{
    Ack, Algorithm, Cause, CongestionControl, ConnectionEvent, Loss, Path, PeerProbes, Phase, ProbeMoment,
    ProbeReply, RateSample, Sent, Start, Timeout, Undo,
};
use bentpipe_laws as _;

/// `struct bp_path`.
#[repr(C)]
struct CPath {
    now: u64,
    mss: u32,
    srtt: u32,
    rttvar: u32,
    min_rtt: u32,
    rto: u32,
    outstanding: u32,
    in_flight: u32,
    delivered: u32,
    receive_window: u32,
    una: u32,
    nxt: u32,
    unsent: u32,
    peer_clock: u32,
    has_peer_clock: u8,
    ecn: u8,
    ordinary: u8,
}

/// `struct bp_ack`.
#[repr(C)]
struct CAck {
    acked: u32,
    delivered: u32,
    lost: u32,
    answers: u32,
    rtt: u32,
    rate_interval: u32,
    rate_delivered: u32,
    prior_delivered: u32,
    tx_in_flight: u32,
    rate_lost: u32,
    app_limited: u8,
    phase: u8,
    ends_episode: u8,
    window_limited: u8,
    ecn_echo: u8,
}

/// `struct bp_loss`.
#[repr(C)]
struct CLoss {
    outstanding: u32,
    consecutive: u32,
    cause: u8,
}

/// The functions of one law.
struct Native {
    size: unsafe extern "C" fn() -> u32,
    established: unsafe extern "C" fn(*mut c_void, u64, *const CPath),
    ack: unsafe extern "C" fn(*mut c_void, *const CAck, *const CPath),
    loss: unsafe extern "C" fn(*mut c_void, *const CLoss, *const CPath),
    timeout: unsafe extern "C" fn(*mut c_void, *const CLoss, *const CPath),
    undo: unsafe extern "C" fn(*mut c_void),
    idle: unsafe extern "C" fn(*mut c_void, u64, *const CPath),
    start: unsafe extern "C" fn(*mut c_void, *const CPath),
    may_ask: unsafe extern "C" fn(*mut c_void, *const CPath) -> u32,
    asked: unsafe extern "C" fn(*mut c_void, u32, *const CPath),
    cwnd: unsafe extern "C" fn(*const c_void) -> u64,
    pace: unsafe extern "C" fn(*const c_void, *const CPath) -> u64,
}

macro_rules! natives {
    ($($module:ident: $size:ident $established:ident $ack:ident $loss:ident $timeout:ident $undo:ident $idle:ident $start:ident $may_ask:ident $asked:ident $cwnd:ident $pace:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $size() -> u32;
                fn $established(law: *mut c_void, initial: u64, path: *const CPath);
                fn $ack(law: *mut c_void, ack: *const CAck, path: *const CPath);
                fn $loss(law: *mut c_void, loss: *const CLoss, path: *const CPath);
                fn $timeout(law: *mut c_void, loss: *const CLoss, path: *const CPath);
                fn $undo(law: *mut c_void);
                fn $idle(law: *mut c_void, restart: u64, path: *const CPath);
                fn $start(law: *mut c_void, path: *const CPath);
                fn $may_ask(law: *mut c_void, path: *const CPath) -> u32;
                fn $asked(law: *mut c_void, copies: u32, path: *const CPath);
                fn $cwnd(law: *const c_void) -> u64;
                fn $pace(law: *const c_void, path: *const CPath) -> u64;
            )*
        }
        $(const $module: Native = Native {
            size: $size, established: $established, ack: $ack, loss: $loss, timeout: $timeout, undo: $undo, idle: $idle,
            start: $start, may_ask: $may_ask, asked: $asked, cwnd: $cwnd, pace: $pace,
        };)*
    };
}

natives! {
    ASTART: bp_native_astart_size bp_native_astart_established bp_native_astart_ack bp_native_astart_loss bp_native_astart_timeout bp_native_astart_undo bp_native_astart_idle bp_native_astart_start bp_native_astart_may_ask bp_native_astart_asked bp_native_astart_cwnd bp_native_astart_pace;
    BBR3: bp_native_bbr3_size bp_native_bbr3_established bp_native_bbr3_ack bp_native_bbr3_loss bp_native_bbr3_timeout bp_native_bbr3_undo bp_native_bbr3_idle bp_native_bbr3_start bp_native_bbr3_may_ask bp_native_bbr3_asked bp_native_bbr3_cwnd bp_native_bbr3_pace;
    COPA: bp_native_copa_size bp_native_copa_established bp_native_copa_ack bp_native_copa_loss bp_native_copa_timeout bp_native_copa_undo bp_native_copa_idle bp_native_copa_start bp_native_copa_may_ask bp_native_copa_asked bp_native_copa_cwnd bp_native_copa_pace;
    HIGHSPEED: bp_native_highspeed_size bp_native_highspeed_established bp_native_highspeed_ack bp_native_highspeed_loss bp_native_highspeed_timeout bp_native_highspeed_undo bp_native_highspeed_idle bp_native_highspeed_start bp_native_highspeed_may_ask bp_native_highspeed_asked bp_native_highspeed_cwnd bp_native_highspeed_pace;
    HYBLA: bp_native_hybla_size bp_native_hybla_established bp_native_hybla_ack bp_native_hybla_loss bp_native_hybla_timeout bp_native_hybla_undo bp_native_hybla_idle bp_native_hybla_start bp_native_hybla_may_ask bp_native_hybla_asked bp_native_hybla_cwnd bp_native_hybla_pace;
    JERSEY: bp_native_jersey_size bp_native_jersey_established bp_native_jersey_ack bp_native_jersey_loss bp_native_jersey_timeout bp_native_jersey_undo bp_native_jersey_idle bp_native_jersey_start bp_native_jersey_may_ask bp_native_jersey_asked bp_native_jersey_cwnd bp_native_jersey_pace;
    NEW_VEGAS: bp_native_new_vegas_size bp_native_new_vegas_established bp_native_new_vegas_ack bp_native_new_vegas_loss bp_native_new_vegas_timeout bp_native_new_vegas_undo bp_native_new_vegas_idle bp_native_new_vegas_start bp_native_new_vegas_may_ask bp_native_new_vegas_asked bp_native_new_vegas_cwnd bp_native_new_vegas_pace;
    PEACH: bp_native_peach_size bp_native_peach_established bp_native_peach_ack bp_native_peach_loss bp_native_peach_timeout bp_native_peach_undo bp_native_peach_idle bp_native_peach_start bp_native_peach_may_ask bp_native_peach_asked bp_native_peach_cwnd bp_native_peach_pace;
    SATCP: bp_native_satcp_size bp_native_satcp_established bp_native_satcp_ack bp_native_satcp_loss bp_native_satcp_timeout bp_native_satcp_undo bp_native_satcp_idle bp_native_satcp_start bp_native_satcp_may_ask bp_native_satcp_asked bp_native_satcp_cwnd bp_native_satcp_pace;
    SCALABLE: bp_native_scalable_size bp_native_scalable_established bp_native_scalable_ack bp_native_scalable_loss bp_native_scalable_timeout bp_native_scalable_undo bp_native_scalable_idle bp_native_scalable_start bp_native_scalable_may_ask bp_native_scalable_asked bp_native_scalable_cwnd bp_native_scalable_pace;
    SCPS_TP: bp_native_scps_tp_size bp_native_scps_tp_established bp_native_scps_tp_ack bp_native_scps_tp_loss bp_native_scps_tp_timeout bp_native_scps_tp_undo bp_native_scps_tp_idle bp_native_scps_tp_start bp_native_scps_tp_may_ask bp_native_scps_tp_asked bp_native_scps_tp_cwnd bp_native_scps_tp_pace;
    STAR: bp_native_star_size bp_native_star_established bp_native_star_ack bp_native_star_loss bp_native_star_timeout bp_native_star_undo bp_native_star_idle bp_native_star_start bp_native_star_may_ask bp_native_star_asked bp_native_star_cwnd bp_native_star_pace;
    SWIFT: bp_native_swift_size bp_native_swift_established bp_native_swift_ack bp_native_swift_loss bp_native_swift_timeout bp_native_swift_undo bp_native_swift_idle bp_native_swift_start bp_native_swift_may_ask bp_native_swift_asked bp_native_swift_cwnd bp_native_swift_pace;
    TCP_J: bp_native_tcp_j_size bp_native_tcp_j_established bp_native_tcp_j_ack bp_native_tcp_j_loss bp_native_tcp_j_timeout bp_native_tcp_j_undo bp_native_tcp_j_idle bp_native_tcp_j_start bp_native_tcp_j_may_ask bp_native_tcp_j_asked bp_native_tcp_j_cwnd bp_native_tcp_j_pace;
    VEGAS: bp_native_vegas_size bp_native_vegas_established bp_native_vegas_ack bp_native_vegas_loss bp_native_vegas_timeout bp_native_vegas_undo bp_native_vegas_idle bp_native_vegas_start bp_native_vegas_may_ask bp_native_vegas_asked bp_native_vegas_cwnd bp_native_vegas_pace;
    VENO: bp_native_veno_size bp_native_veno_established bp_native_veno_ack bp_native_veno_loss bp_native_veno_timeout bp_native_veno_undo bp_native_veno_idle bp_native_veno_start bp_native_veno_may_ask bp_native_veno_asked bp_native_veno_cwnd bp_native_veno_pace;
    WESTWOOD_PLUS: bp_native_westwood_plus_size bp_native_westwood_plus_established bp_native_westwood_plus_ack bp_native_westwood_plus_loss bp_native_westwood_plus_timeout bp_native_westwood_plus_undo bp_native_westwood_plus_idle bp_native_westwood_plus_start bp_native_westwood_plus_may_ask bp_native_westwood_plus_asked bp_native_westwood_plus_cwnd bp_native_westwood_plus_pace;
    ZENITH: bp_native_zenith_size bp_native_zenith_established bp_native_zenith_ack bp_native_zenith_loss bp_native_zenith_timeout bp_native_zenith_undo bp_native_zenith_idle bp_native_zenith_start bp_native_zenith_may_ask bp_native_zenith_asked bp_native_zenith_cwnd bp_native_zenith_pace;
}

/// Returns a window in segments from C's unit.
const ONE: f64 = (1_u64 << 24) as f64;

const MSS: u32 = 1448;

/// Seed of the algorithms' random numbers.
const SEED: u64 = 1;

/// A law in C with its state.
struct InC {
    law: &'static Native,
    memory: Vec<u64>,
}

impl InC {
    fn new(law: &'static Native, initial: f64, path: &Path) -> Self {
        // SAFETY: the function takes nothing and returns a number.
        let size = unsafe { (law.size)() } as usize;
        let mut memory = vec![0_u64; size.div_ceil(8)];
        // SAFETY: the memory has the size of the law's state, is zero as required, and aligned to its largest member.
        unsafe { (law.established)(memory.as_mut_ptr().cast(), (initial * ONE) as u64, &c_path(path, None)) };
        Self { law, memory }
    }

    fn state(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    fn ack(&mut self, ack: &Ack, answers: u32, path: &Path) {
        let clock = ack.peer_clock;
        let ack = CAck {
            acked: ack.acked,
            delivered: (ack.delivered_bytes / u64::from(MSS)) as u32,
            lost: ack.lost,
            answers,
            rtt: ack.rtt.map_or(0, micros),
            rate_interval: ack.rate.map_or(0, |rate| micros(rate.interval)),
            rate_delivered: ack.rate.map_or(0, |rate| (rate.delivered / u64::from(MSS)) as u32),
            prior_delivered: ack.rate.map_or(0, |rate| segments(rate.prior_delivered)),
            tx_in_flight: ack.rate.map_or(0, |rate| rate.tx_in_flight),
            rate_lost: ack.rate.map_or(0, |rate| rate.lost),
            app_limited: ack.rate.is_some_and(|rate| rate.app_limited).into(),
            phase: match ack.phase {
                Phase::Open => 0,
                Phase::Recovery => 1,
                Phase::Loss => 2,
            },
            ends_episode: ack.ends_episode.into(),
            window_limited: ack.window_limited.into(),
            ecn_echo: ack.ecn_echo.into(),
        };
        // SAFETY: see `new`; the structures outlive the call, here and in the calls below.
        unsafe { (self.law.ack)(self.state(), &ack, &c_path(path, clock)) }
    }

    fn loss(&mut self, loss: &Loss, path: &Path) {
        let cause = u8::from(loss.cause == Cause::Mark);
        let loss = CLoss { outstanding: loss.outstanding, consecutive: 0, cause };
        // SAFETY: see `ack`.
        unsafe { (self.law.loss)(self.state(), &loss, &c_path(path, None)) }
    }

    fn timeout(&mut self, timeout: &Timeout, path: &Path) {
        let loss = CLoss { outstanding: timeout.outstanding, consecutive: timeout.consecutive, cause: 0 };
        // SAFETY: see `ack`.
        unsafe { (self.law.timeout)(self.state(), &loss, &c_path(path, None)) }
    }

    fn undo(&mut self) {
        // SAFETY: see `new`.
        unsafe { (self.law.undo)(self.state()) }
    }

    fn idle(&mut self, restart: f64, path: &Path) {
        // SAFETY: see `ack`.
        unsafe { (self.law.idle)(self.state(), (restart * ONE) as u64, &c_path(path, None)) }
    }

    fn start(&mut self, path: &Path) {
        // SAFETY: see `ack`.
        unsafe { (self.law.start)(self.state(), &c_path(path, None)) }
    }

    /// Returns the number of copies that may leave with the present data.
    fn may_ask(&mut self, path: &Path) -> u32 {
        // SAFETY: see `ack`.
        unsafe { (self.law.may_ask)(self.state(), &c_path(path, None)) }
    }

    /// A copy leaves.
    fn asked(&mut self, path: &Path) {
        // SAFETY: see `ack`.
        unsafe { (self.law.asked)(self.state(), 1, &c_path(path, None)) }
    }

    fn window(&mut self) -> f64 {
        // SAFETY: see `new`.
        unsafe { (self.law.cwnd)(self.state()) as f64 / ONE }
    }

    fn pace(&mut self, path: &Path) -> u64 {
        // SAFETY: see `ack`.
        unsafe { (self.law.pace)(self.state(), &c_path(path, None)) }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos() / 1000).unwrap_or(u32::MAX)
}

/// The kernel's sequence numbers wrap; start shortly before.
fn sequence(offset: u64) -> u32 {
    (offset as u32).wrapping_add(u32::MAX - 100_000)
}

/// The kernel counts segments modulo 2^32; start shortly before the wrap.
fn segments(bytes: u64) -> u32 {
    ((bytes / u64::from(MSS)) as u32).wrapping_add(u32::MAX - 300)
}

/// Returns BBR's n-th pair of random numbers: time to wait, and round to start counting from.
#[unsafe(no_mangle)]
extern "C" fn bp_native_random(n: u32) -> u32 {
    let mut rng = Rng::stream(SEED, "bbr3");
    (0..n).for_each(|_| {
        rng.uniform();
        rng.below(2);
    });
    let wait = (rng.uniform() * f64::from(1_u32 << 31)) as u32;
    wait << 1 | rng.below(2) as u32
}

fn c_path(path: &Path, clock: Option<u32>) -> CPath {
    CPath {
        now: path.now.as_nanos() / 1000,
        mss: path.mss,
        srtt: micros(path.srtt),
        rttvar: micros(path.rttvar),
        min_rtt: if path.min_rtt == Duration::MAX { u32::MAX } else { micros(path.min_rtt) },
        rto: micros(path.rto),
        outstanding: path.outstanding,
        in_flight: path.in_flight,
        delivered: segments(path.delivered),
        receive_window: path.receive_window,
        una: sequence(path.snd_una),
        nxt: sequence(path.snd_nxt),
        unsent: u32::try_from(path.unsent).unwrap_or(u32::MAX),
        peer_clock: clock.unwrap_or(0),
        has_peer_clock: clock.is_some().into(),
        ecn: path.ecn.into(),
        ordinary: (path.peer_probes == PeerProbes::Ordinary).into(),
    }
}

/// A connection with random events.
struct History {
    rng: Rng,
    rust: Box<dyn CongestionControl>,
    c: InC,
    path: Path,
    phase: Phase,
    /// First sequence number after the present episode.
    recover: u64,
    sacked: u32,
    base_us: u64,
    queue_us: u64,
    /// Queue of other flows, and its growth per event.
    others_us: u64,
    others_growth_us: u64,
    expiries: u32,
    /// Losses per ten thousand ACKs.
    trouble: u64,
    /// Random numbers for inputs that only some laws use, so that they change no history of the others.
    lots: Rng,
    /// Share of ACKs that report further losses in an episode, or losses that start none.
    lossy: f64,
    clock: Clock,
    left: VecDeque<Left>,
    lost: u32,
    probes: Probes,
}

/// Low-priority probes.
#[derive(Default)]
struct Probes {
    /// Outstanding probes: departure times and tags.
    under_way: VecDeque<(Instant, ProbeTag)>,
    /// Share of unanswered probes.
    lost: f64,
    /// Start of the last episode.
    began_at: Instant,
}

/// State when segments up to this one left.
#[derive(Clone, Copy)]
struct Left {
    end: u64,
    at: Instant,
    delivered: u64,
    in_flight: u32,
    lost: u32,
}

/// The peer's timestamps.
#[derive(Clone, Copy)]
struct Clock {
    /// Ticks per millisecond; 0 without timestamps.
    ticks: u64,
    /// Share of the queue on the reverse path.
    back: f64,
}

impl History {
    fn new(algorithm: &Algorithm, law: &'static Native, mut rng: Rng) -> Self {
        let base_us = [2_000, 25_000, 80_000, 300_000, 550_000, 1_300_000][rng.below(6) as usize];
        let base = Duration::from_micros(base_us);
        let path = Path {
            now: Instant::from_nanos(1_000_000_000 + base_us * 1000),
            mss: MSS,
            srtt: base,
            rttvar: base / 2,
            min_rtt: base,
            rto: base * 3,
            in_flight: 0,
            outstanding: 0,
            receive_window: [20, 400, 5_000, 100_000][rng.below(4) as usize],
            snd_una: 1,
            snd_nxt: 1,
            unsent: 1 << 40,
            delivered: 0,
            peer_probes: PeerProbes::Unknown,
            ecn: rng.chance(0.5),
        };
        let initial_window = 10.0;
        let start = Start {
            mss: MSS,
            initial_window,
            initial_ssthresh: f64::INFINITY,
            paced: true,
            seed: SEED,
            memory: None,
        };
        let mut rust = algorithm.build(&start);
        rust.on_event(ConnectionEvent::Established, &path);
        // Peach and Swift start with one segment, the kernel with its initial window; the law starts with the given
        // window.
        let c = InC::new(law, rust.window(), &path);
        let trouble = [0, 3, 30, 300][rng.below(4) as usize];
        let mut lots = Rng::stream(rng.clone().bits(), "what only some laws look at");
        let lossy = [0.0, 0.002, 0.03, 0.2][lots.below(4) as usize];
        let clock = Clock { ticks: [0, 1, 1, 10][lots.below(4) as usize], back: lots.uniform() };
        let lost = if rust.prober().is_some() { [0.0, 0.3, 0.9, 1.0][lots.below(4) as usize] } else { 0.0 };
        let mut history = Self {
            rng,
            rust,
            c,
            path,
            phase: Phase::Open,
            recover: 1,
            sacked: 0,
            base_us,
            queue_us: 0,
            others_us: 0,
            others_growth_us: 0,
            expiries: 0,
            trouble,
            lots,
            lossy,
            clock,
            left: VecDeque::new(),
            lost: 0,
            probes: Probes { lost, ..Probes::default() },
        };
        history.fill(3);
        for segment in 0..3 {
            let sent = Sent { seq: 1 + segment * u64::from(MSS), len: MSS, retransmission: false };
            history.rust.on_sent(&sent, &history.path);
        }
        history
    }

    /// Sends as much as the window allows, at least this number of segments.
    fn fill(&mut self, least: u32) {
        let window = self.rust.window().min(f64::from(self.path.receive_window)) as u32;
        let outstanding = window.max(least).max(self.path.outstanding).max(1);
        self.path.outstanding = outstanding;
        self.path.in_flight = outstanding - self.sacked.min(outstanding);
        let before = self.path.snd_nxt;
        self.path.snd_nxt = self.path.snd_una + u64::from(outstanding) * u64::from(MSS);
        if self.left.back().is_none_or(|last| last.end < self.path.snd_nxt) {
            let Path { snd_nxt: end, now: at, delivered, in_flight, .. } = self.path;
            self.left.push_back(Left { end, at, delivered, in_flight, lost: self.lost });
        }
        self.ask((self.path.snd_nxt.saturating_sub(before) / u64::from(MSS)) as u32);
    }

    /// Reports this amount of sent data to the rule, which returns a number of probes. C sends a probe for each of
    /// them.
    fn ask(&mut self, data_sent: u32) {
        if self.rust.prober().is_none() {
            return;
        }
        if data_sent > 0 {
            self.c.may_ask(&self.path);
        }
        let moment = ProbeMoment { data_sent, sent_newest: false };
        while let Some(probe) = self.rust.prober().and_then(|prober| prober.next_probe(&moment, &self.path)) {
            assert!(self.c.may_ask(&self.path) > 0, "the rule sends a probe, and C has none left");
            self.c.asked(&self.path);
            self.probes.under_way.push_back((self.path.now, probe.tag));
        }
    }

    /// Advances the time, with the rule's wake-ups on the way.
    fn wait(&mut self, until: Instant) {
        let is_prober = self.rust.prober().is_some();
        while let Some(sleeper) =
            self.rust.sleeper().filter(|sleeper| is_prober && sleeper.wake_at() <= until)
        {
            self.path.now = sleeper.wake_at().max(self.path.now);
            sleeper.on_wake(&self.path);
            self.ask(0);
        }
        self.path.now = until;
    }

    /// Returns the probes that this ACK answers: those sent a round trip ago that were not lost. C assigns an answer
    /// to an episode by time only; the few that it would assign wrongly count as lost.
    fn answered(&mut self) -> Vec<ProbeTag> {
        let base = Duration::from_micros(self.base_us);
        let (now, began_at) = (self.path.now, self.probes.began_at);
        let mut tags = Vec::new();
        while let Some((at, tag)) = self.probes.under_way.front().copied().filter(|(at, _)| *at + base <= now)
        {
            self.probes.under_way.pop_front();
            let late = at < began_at && now >= began_at + base;
            if !self.lots.chance(self.probes.lost) && !late {
                tags.push(tag);
            }
        }
        tags
    }

    /// Returns the delivery rate after the data up to there has arrived.
    fn rate(&mut self, arrived: u64) -> Option<RateSample> {
        while self.left.front().is_some_and(|first| first.end < arrived) {
            self.left.pop_front();
        }
        let then = self.left.front().filter(|_| self.phase != Phase::Loss)?;
        Some(RateSample {
            delivered: self.path.delivered - then.delivered,
            interval: self.path.now.since(then.at).max(Duration::from_micros(self.base_us / 2)),
            prior_delivered: then.delivered,
            app_limited: self.lots.chance(0.05),
            tx_in_flight: then.in_flight,
            lost: self.lost - then.lost,
        })
    }

    /// Sends data when nothing is in flight.
    fn start(&mut self) {
        let path = Path { outstanding: 1, in_flight: 1, ..self.path };
        let sent = Sent { seq: path.snd_una, len: MSS, retransmission: false };
        self.rust.on_sent(&sent, &path);
        self.c.start(&path);
    }

    /// Returns the peer's timestamp on the present arrival.
    fn peer_clock(&self) -> Option<u32> {
        let back_us = self.base_us / 2 + (self.queue_us as f64 * self.clock.back) as u64;
        let sent_us = self.path.now.as_nanos() / 1000 - back_us.min(900_000);
        (self.clock.ticks > 0).then_some((sent_us * self.clock.ticks / 1000) as u32)
    }

    fn step(&mut self) {
        let spread = 2 * self.base_us / u64::from(self.path.outstanding.max(1));
        let gap =
            1 + self.rng.below(spread.max(2)) + if self.rng.chance(0.02) { self.base_us / 3 } else { 0 };
        self.wait(self.path.now + Duration::from_micros(gap));
        self.queue_us = match self.rng.below(40) {
            0 => 0,
            1..18 => self.queue_us + self.rng.below(self.base_us / 20 + 2),
            _ => self.queue_us - self.queue_us.min(self.rng.below(self.base_us / 20 + 2)),
        };
        self.others_us += self.others_growth_us;
        match self.rng.below(10_000) {
            n if n < self.trouble && self.phase == Phase::Open => self.lose(),
            n if n < self.trouble / 3 => self.expire(),
            9_990.. if self.phase == Phase::Open => self.rest(),
            _ => self.acknowledge(),
        }
    }

    fn lose(&mut self) {
        let cause = if self.path.ecn && self.rng.chance(0.3) { Cause::Mark } else { Cause::Loss };
        let outstanding = self.path.outstanding;
        let loss = Loss { cause, lost: 1, outstanding, in_flight: self.path.in_flight, validated: None };
        self.probes.began_at = self.path.now;
        self.rust.on_loss(&loss, &self.path);
        self.c.loss(&loss, &self.path);
        if cause == Cause::Loss {
            (self.phase, self.recover) = (Phase::Recovery, self.path.snd_nxt);
        }
        self.perhaps_undo();
        self.ask(1);
    }

    /// Some reductions are found to be spurious at once.
    fn perhaps_undo(&mut self) {
        if self.rng.chance(0.1) {
            self.rust.on_undo(Undo::Reduction, &self.path);
            self.c.undo();
            self.phase = Phase::Open;
        }
    }

    fn expire(&mut self) {
        self.expiries += 1;
        let timeout =
            Timeout { consecutive: self.expiries, outstanding: self.path.outstanding, answered: false };
        self.probes.began_at = self.path.now;
        self.rust.on_rto(&timeout, &self.path);
        self.c.timeout(&timeout, &self.path);
        (self.phase, self.recover) = (Phase::Loss, self.path.snd_nxt);
        self.sacked = 0;
        self.perhaps_undo();
        self.ask(1);
    }

    fn rest(&mut self) {
        self.wait(self.path.now + Duration::from_micros(3 * self.base_us + 1_000_000));
        self.path.snd_una = self.path.snd_nxt;
        self.path.outstanding = 0;
        self.sacked = 0;
        let restart = self.rust.window().min(10.0);
        self.probes.began_at = self.path.now;
        self.rust.on_event(ConnectionEvent::Idle { restart }, &self.path);
        self.c.idle(restart, &self.path);
        self.start();
        self.fill(1);
    }

    fn acknowledge(&mut self) {
        let duplicate =
            self.phase == Phase::Recovery && self.rng.chance(0.7) && self.sacked + 1 < self.path.outstanding;
        let acked = if duplicate { 0 } else { (1 + self.rng.below(2) as u32).min(self.path.outstanding) };
        let fresh = acked.saturating_sub(self.sacked);
        self.sacked = if duplicate { self.sacked + 1 } else { self.sacked - self.sacked.min(acked) };
        let delivered = if duplicate { 1 } else { fresh };
        let rtt = (!duplicate && self.phase != Phase::Loss)
            .then(|| Duration::from_micros(self.base_us + self.queue_us + self.others_us));
        self.measure(rtt);
        self.path.snd_una += u64::from(acked) * u64::from(MSS);
        self.path.outstanding -= acked;
        self.path.delivered += u64::from(delivered) * u64::from(MSS);
        let (phase, ends) = (self.phase, self.phase != Phase::Open && self.path.snd_una >= self.recover);
        let lost = if self.lots.chance(self.lossy) { 1 + self.lots.below(3) as u32 } else { 0 };
        self.lost += lost;
        let rate = self.rate(self.path.snd_una + u64::from(self.sacked) * u64::from(MSS));
        let ack = Ack {
            acked,
            counted: delivered,
            sacked: u32::from(duplicate),
            delivered_bytes: u64::from(delivered) * u64::from(MSS),
            lost,
            rtt,
            rate,
            phase,
            ends_episode: ends,
            window_limited: self.rng.chance(0.9),
            ecn_echo: self.path.ecn && self.rng.chance(0.01),
            dsack: false,
            marks: 0,
            peer_clock: self.peer_clock(),
        };
        if self.rust.prober().is_some() && self.lots.chance(0.0005) {
            self.path.peer_probes = PeerProbes::Ordinary;
        }
        let answered = self.answered();
        self.rust.on_ack(&ack, &self.path);
        for tag in &answered {
            if let Some(prober) = self.rust.prober() {
                prober.on_probe_acked(&ProbeReply { tag: *tag, acked, phase }, &self.path);
            }
        }
        self.c.ack(&ack, answered.len() as u32, &self.path);
        if acked > 0 {
            self.expiries = 0;
        }
        if ends {
            (self.phase, self.sacked) = (Phase::Open, 0);
        }
        if self.path.outstanding == 0 {
            self.start();
        }
        self.fill(1);
    }

    /// RFC 6298, in whole microseconds.
    fn measure(&mut self, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        let us = |duration: Duration| u64::from(micros(duration));
        let (srtt, sample) = (us(self.path.srtt), us(rtt));
        self.path.rttvar = Duration::from_micros((3 * us(self.path.rttvar) + srtt.abs_diff(sample)) / 4);
        self.path.srtt = Duration::from_micros((7 * srtt + sample) / 8);
        self.path.min_rtt = self.path.min_rtt.min(rtt);
    }

    /// Returns the difference of the two windows in units of the bound.
    fn apart(&mut self) -> f64 {
        let (rust, c) = (self.rust.window(), self.c.window());
        (rust - c).abs() / (rust / 100.0).max(1.0)
    }
}

/// Returns the algorithm with the kernel's parameters.
fn rule(name: &str, parameters: &str) -> Algorithm {
    let parameters: serde_json::Value = serde_json::from_str(parameters).expect("JSON");
    Algorithm::from_parameters(name, parameters)
        .expect("parameters that it knows")
        .expect("a registered name")
}

fn agree(name: &str, parameters: &str, law: &'static Native) {
    agree_beside(name, parameters, law, 700, |_| 0);
}

/// As above, with this number of events per history, and a queue of other flows that grows by this number of
/// microseconds per event.
fn agree_beside(
    name: &str,
    parameters: &str,
    law: &'static Native,
    length: u64,
    growth_us: fn(&History) -> u64,
) {
    let events: u64 =
        std::env::var("BENTPIPE_LAW_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let algorithm = rule(name, parameters);
    let (mut done, mut number, mut worst) = (0, 0, 0.0_f64);
    while done < events {
        let mut history = History::new(&algorithm, law, Rng::stream(number, name));
        history.others_growth_us = growth_us(&history);
        for event in 0..length {
            history.step();
            done += 1;
            let apart = history.apart();
            assert!(
                apart <= 1.0,
                "{name}: history {number}, event {event}: {} in Rust, {} in C",
                history.rust.window(),
                history.c.window()
            );
            worst = worst.max(apart);
            check_pace(name, &mut history);
        }
        number += 1;
    }
    println!("{name}: {done} events in {number} histories, at worst {:.3} of what is allowed apart", worst);
}

/// If the rule paces segments, its rate per window agrees within 1 %, or the rate itself if it does not follow from
/// the window.
fn check_pace(name: &str, history: &mut History) {
    // In safe mode probers pace the burst at the end of recovery; the kernel has no such burst.
    if history.rust.prober().is_some() {
        return;
    }
    let Some(rate) = history.rust.spacing().rate() else { return };
    let (rust, c) = (rate.bps() as f64 / 8.0, history.c.pace(&history.path) as f64);
    let near = |rust: f64, c: f64| (rust - c).abs() <= rust / 100.0;
    let shares = near(rust / history.rust.window(), c / history.c.window());
    assert!(shares || near(rust, c), "{name}: {rust} B/s in Rust, {c} B/s in C");
}

#[test]
fn hybla_is_one_law() {
    agree("hybla", "{}", &HYBLA);
}

#[test]
fn westwood_plus_is_one_law() {
    agree("westwood-plus", "{}", &WESTWOOD_PLUS);
}

#[test]
fn veno_is_one_law() {
    agree("veno", "{}", &VENO);
}

#[test]
fn highspeed_is_one_law() {
    agree("highspeed", r#"{ "law": "table" }"#, &HIGHSPEED);
}

#[test]
fn scalable_is_one_law() {
    agree("scalable", "{}", &SCALABLE);
}

#[test]
fn satcp_is_one_law() {
    agree("satcp", r#"{ "error": 0 }"#, &SATCP);
}

#[test]
fn tcp_j_is_one_law() {
    agree("tcp-j", "{}", &TCP_J);
}

#[test]
fn jersey_is_one_law() {
    agree("jersey", "{}", &JERSEY);
}

#[test]
fn vegas_is_one_law() {
    agree("vegas", r#"{ "mode": "linux" }"#, &VEGAS);
}

#[test]
fn new_vegas_is_one_law() {
    agree("new-vegas", "{}", &NEW_VEGAS);
}

#[test]
fn star_is_one_law() {
    agree("star", r#"{ "aen": false }"#, &STAR);
}

#[test]
fn scps_tp_is_one_law() {
    agree("scps-tp", r#"{ "congestion": "rate-only", "rate_bps": 8e6 }"#, &SCPS_TP);
}

#[test]
fn astart_is_one_law() {
    agree("astart", "{}", &ASTART);
}

#[test]
fn copa_is_one_law() {
    agree("copa", "{}", &COPA);
}

#[test]
fn zenith_is_one_law() {
    agree("zenith", r#"{ "measured_start": false }"#, &ZENITH);
}

/// Drains do not shorten the queue of other flows. The flow yields until it competes; if the queue grows fast, down
/// to the minimum window.
#[test]
fn zenith_is_one_law_beside_others() {
    let growths: [fn(&History) -> u64; 2] =
        [|history| history.base_us / 50_000, |history| history.base_us / 10_000];
    for growth_us in growths {
        agree_beside("zenith", r#"{ "measured_start": false }"#, &ZENITH, 20_000, growth_us);
    }
}

#[test]
fn peach_is_one_law() {
    agree("peach", r#"{ "mode": "safe", "form": "pipe" }"#, &PEACH);
}

#[test]
fn swift_is_one_law() {
    agree("swift", r#"{ "mode": "safe", "form": "pipe" }"#, &SWIFT);
}

#[test]
fn bbr3_is_one_law() {
    agree("bbr3", "{}", &BBR3);
}

#[test]
fn the_registry_names_what_the_kernel_has() {
    let of = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<std::collections::BTreeSet<_>>();
    let registered =
        of(&mut bentpipe_cc::REGISTRY.iter().filter(|entry| entry.in_kernel).map(|entry| entry.name));
    assert_eq!(registered, of(&mut bentpipe_kernel::CONTROLS.iter().map(|control| control.name)));
}
