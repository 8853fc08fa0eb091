//! The sending half: what was sent, what became of it, and what may be sent next.

mod ack;
mod outstanding_probes;
mod predicted;
mod probe;
mod rack;
mod recovery;
mod rto_probe;
mod rtt;
mod scoreboard;
mod snack;
mod timeout;
mod transmit;
mod undo;
mod validation;

pub(crate) use ack::AckField;
pub(crate) use predicted::Prediction;
pub(crate) use timeout::Fate;
pub(crate) use transmit::Outgoing;

use bentpipe_base::{Duration, Instant, WindowState, prefetch};
use bentpipe_cc::delivery_rate::DeliveryRate;
use bentpipe_cc::{
    Accounting, CongestionControl, ConnectionEvent, Pacer, Path, PeerProbes, Phase, Start, Wants,
};

use crate::connection::{MAX_SEQ, Reports};
use crate::{Config, Pacing, Recovery};
use outstanding_probes::OutstandingProbes;
use rack::Rack;
use recovery::{Episode, Reductions};
use rto_probe::RtoProbe;
use rtt::RttEstimator;
use scoreboard::{Index, Scoreboard};
use validation::Validation;

/// What the retransmission deadline means when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deadline {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe (RFC 8985 section 7).
    TailLossProbe,
}

/// Why the sender last stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    /// The congestion window is full.
    Window,
    /// The peer's receive window is full.
    Receiver,
    /// Nothing left to send.
    Application,
}

bitflags::bitflags! {
    /// The capabilities of an algorithm, asked once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Abilities: u8 {
        /// It is a [`Prober`](bentpipe_cc::Prober).
        const PROBES = 0x01;
        /// And takes reports of duplicates for replies.
        const TAKES_REPORTS = 0x02;
        /// It has a [`Feedback`](bentpipe_cc::Feedback).
        const FEEDBACK = 0x04;
        /// It is a [`Questioner`](bentpipe_cc::Questioner).
        const QUESTIONS = 0x08;
        /// It is a [`Detector`](bentpipe_cc::Detector).
        const DETECTS = 0x10;
        /// It is a [`Sleeper`](bentpipe_cc::Sleeper).
        const WAKES = 0x20;
        /// It wants to know what is sent.
        const SEES_DEPARTURES = 0x40;
        /// Only the window holds data back, and the delivery rate is of no interest.
        const WINDOW_ONLY = 0x80;
    }
}

impl Abilities {
    fn of(cc: &mut dyn CongestionControl) -> Self {
        let Wants { sent, window_only, .. } = cc.wants();
        let mut abilities = Self::empty();
        abilities.set(Self::SEES_DEPARTURES, sent);
        abilities.set(Self::WINDOW_ONLY, window_only);
        let reports = cc.prober().map(|prober| prober.takes_reports());
        abilities.set(Self::PROBES, reports.is_some());
        abilities.set(Self::TAKES_REPORTS, reports == Some(true));
        abilities.set(Self::FEEDBACK, cc.feedback().is_some());
        abilities.set(Self::QUESTIONS, cc.questioner().is_some());
        abilities.set(Self::DETECTS, cc.detector().is_some());
        abilities.set(Self::WAKES, cc.sleeper().is_some());
        abilities
    }
}

/// State of the sending half.
// The fields that every segment changes stand first, on few cache lines.
#[repr(C)]
pub(crate) struct Sender {
    /// First unacknowledged sequence number.
    pub una: u64,
    /// Next sequence number to send for the first time.
    pub nxt: u64,
    /// Sequence and acknowledgement number of the last window update (RFC 9293 SND.WL1, SND.WL2).
    window_seq: u64,
    window_ack: u64,
    /// Right edge of the peer's receive window.
    edge: u64,
    /// Receive window as last advertised, and the largest ever.
    peer_window: u32,
    largest_window: u32,
    /// Payload bytes of a full segment, agreed with the peer.
    pub mss: u32,
    /// Data segments sent since the last arrival or wake-up.
    burst: u32,
    /// Since when the oldest data waits for an acknowledgement (user timeout).
    waiting_since: Instant,
    /// End of what the application wrote.
    pub written: u64,
    /// Sequence numbers known to have arrived.
    delivered: u64,
    pub cc: Box<dyn CongestionControl>,
    /// Only if the algorithm wants to know.
    rate: Option<Box<DeliveryRate>>,
    rtt: RttEstimator,
    /// The peer's window in whole segments.
    peer_segments: u32,
    /// Duplicate ACKs in a row, for the recoveries without SACK.
    duplicates: u32,
    /// Smoothed round-trip time when the algorithm was last called.
    told_srtt: Duration,
    /// Time of the last transmission of data.
    last_sent: Instant,
    /// When the retransmission timer expires (RFC 6298). The deadline may be that of a tail loss probe before it.
    rto_at: Instant,
    /// Sequence number and length of the data segment sent last.
    last_segment: (u64, u32),
    limit: Limit,
    deadline: Deadline,
    /// The configured recovery, or NewReno if the peer does not know SACK.
    recovery: Recovery,
    accounting: Accounting,
    abilities: Abilities,
    /// The application closed: a FIN follows what it wrote.
    pub fin_queued: bool,
    /// A write was cut short: tell the application when there is room.
    pub blocked_writer: bool,
    /// The application always has more to write.
    endless: bool,
    /// Timestamps were agreed on.
    pub timestamps: bool,
    /// The peer echoes marks and this end honours them (RFC 3168).
    pub ecn: bool,
    /// The next new segment confirms the reduction.
    pub congestion_reduced: bool,
    /// The peer has the receiver half that the algorithm asks for.
    pub feedback: bool,
    /// The algorithm withholds all data: the retransmission timer rests until it leaves again.
    withheld: bool,
    /// An empty segment below `una` is due, to which the peer must answer.
    pub window_probe: bool,
    /// The next new segment may be silly: nothing better fits the peer's window for long.
    override_silly: bool,
    /// Whether the peer replies to probes.
    peer_probes: PeerProbes,
    board: Scoreboard,
    /// Only where losses are found by it.
    rack: Option<Box<Rack>>,
    /// A window is spaced over a round trip until this is acknowledged: the timeout was none.
    spaced_until: u64,
    /// Retransmissions that leave whatever the window says.
    forced: u32,
    /// New segments that leave instead of retransmissions (F-RTO).
    prefer_new: u32,
    /// New segments that leave though the congestion window is full (tail loss probe).
    beyond_window: u32,
    /// Consecutive retransmission timeouts.
    timeouts: u32,
    /// Consecutive zero-window probes, and those of them that nothing followed.
    persists: u32,
    unanswered: u32,
    /// Questions of the engine itself in this run of timeouts.
    rto_probes: u32,
    episode: Episode,
    /// Only if segments are spaced.
    pacer: Option<Box<Pacer>>,
    /// Inflation of the window by duplicate ACKs (RFC 5681, RFC 6582), in segments.
    inflation: f64,
    /// Only after a loss, a mark or a duplicate ACK.
    reductions: Option<Box<Reductions>>,
    /// A segment to send once more, whatever the window says: a tail loss probe or an RTO probe.
    probe_segment: Option<Index>,
    /// The RTO probe under way; nothing else leaves until it is answered.
    rto_probe: Option<RtoProbe>,
    /// Only if the configuration asks for it.
    validation: Option<Box<Validation>>,
    /// Probes under way to a peer that did not agree to reply, if the algorithm takes its reports of duplicates for replies.
    outstanding_probes: Option<Box<OutstandingProbes>>,
}

impl Sender {
    pub fn new(config: &Config, seed: u64) -> Self {
        let mut cc = config.cc.build(&Self::start(config, config.mss, seed));
        let (accounting, abilities) = (cc.wants().accounting, Abilities::of(&mut *cc));
        Self {
            una: 0,
            nxt: 0,
            written: 1,
            fin_queued: false,
            blocked_writer: false,
            endless: false,
            mss: config.mss,
            edge: 0,
            peer_window: 0,
            largest_window: 0,
            window_seq: 0,
            window_ack: 0,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(&config.rto),
            delivered: 0,
            rate: (!abilities.contains(Abilities::WINDOW_ONLY)).then(Box::default),
            pacer: None,
            cc,
            accounting,
            abilities,
            peer_probes: PeerProbes::Unknown,
            peer_segments: 0,
            told_srtt: Duration::ZERO,
            recovery: config.recovery,
            episode: Episode::Open,
            duplicates: 0,
            inflation: 0.0,
            reductions: None,
            forced: 0,
            prefer_new: 0,
            beyond_window: 0,
            probe_segment: None,
            window_probe: false,
            last_segment: (0, 0),
            rack: None,
            deadline: Deadline::Retransmission,
            timeouts: 0,
            override_silly: false,
            persists: 0,
            unanswered: 0,
            rto_probe: None,
            rto_probes: 0,
            spaced_until: 0,
            withheld: false,
            limit: Limit::Application,
            burst: 0,
            last_sent: Instant::ZERO,
            rto_at: Instant::FAR_FUTURE,
            waiting_since: Instant::FAR_FUTURE,
            validation: None,
            timestamps: false,
            ecn: false,
            congestion_reduced: false,
            feedback: false,
            outstanding_probes: None,
        }
    }

    fn start(config: &Config, mss: u32, seed: u64) -> Start {
        Start {
            mss,
            initial_window: f64::from(config.initial_window.segments(mss)),
            paced: matches!(config.pacing, Pacing::Window { .. }),
            initial_ssthresh: config.initial_ssthresh.unwrap_or(f64::INFINITY),
            seed,
            memory: config.memory.clone(),
        }
    }

    /// Payload of a full segment, as agreed on in the handshake: the algorithm begins with that.
    pub fn set_mss(&mut self, config: &Config, mss: u32, seed: u64) {
        if mss != self.mss {
            self.mss = mss;
            self.cc = config.cc.build(&Self::start(config, self.mss, seed));
        }
    }

    /// The application always has more to write.
    pub fn write_endlessly(&mut self, config: &Config) {
        self.endless = true;
        self.blocked_writer = true;
        self.fill(config);
    }

    /// Writes as much as the send buffer has room for.
    fn fill(&mut self, config: &Config) {
        self.written += self.room(config);
    }

    /// Bytes that the application may write now.
    pub fn room(&self, config: &Config) -> u64 {
        if self.fin_queued {
            return 0;
        }
        let buffered = self.written.saturating_sub(self.una.max(1));
        config.send_buffer.saturating_sub(buffered).min(MAX_SEQ - self.written)
    }

    /// Sets the peer's window from the handshake.
    pub fn open_window(&mut self, seq: u64, window: u32) {
        self.set_peer_window(window);
        self.largest_window = window;
        self.edge = self.una + u64::from(window);
        self.window_seq = seq;
        self.window_ack = self.una;
    }

    fn set_peer_window(&mut self, bytes: u32) {
        self.peer_window = bytes;
        self.peer_segments = bytes / self.mss;
    }

    /// Chooses the recovery by what the peer reports.
    pub fn expect(&mut self, reports: Reports) {
        self.recovery = match (reports, self.recovery) {
            (Reports::None, recovery) if recovery.uses_sack() => Recovery::NewReno,
            (Reports::Sack, Recovery::Snack) => Recovery::Rack,
            (_, recovery) => recovery,
        };
    }

    /// A round trip measured by the handshake.
    pub fn handshake_rtt(&mut self, rtt: Duration, config: &Config) {
        self.rtt.sample(rtt, (1, 1), &config.rto);
    }

    /// Only a bound is known: the SYN was sent more than once (RFC 6298 section 5.7 wants the timeout long then).
    pub fn guess_rtt(&mut self, rtt: Duration, config: &Config) {
        self.rtt.guess(rtt, &config.rto);
    }

    pub fn peer_answers_probes(&mut self) {
        self.peer_probes = PeerProbes::Agreed;
    }

    /// The peer did not agree to answer probes: its reports of duplicates may stand for answers.
    pub fn peer_may_report_probes(&mut self) {
        self.outstanding_probes = self.abilities.contains(Abilities::TAKES_REPORTS).then(Box::default);
    }

    /// The handshake is complete. After a lost SYN the path is not worth an initial window (RFC 5681 section 3.1).
    pub fn established(&mut self, now: Instant, lost_syn: bool) {
        self.una = 1;
        self.nxt = 1;
        self.reductions = None;
        self.waiting_since = now;
        let path = self.path(now);
        if lost_syn {
            self.cc.on_event(ConnectionEvent::Idle { restart: 1.0 }, &path);
        }
        self.cc.on_event(ConnectionEvent::Established, &path);
    }

    /// Everything is acknowledged, the FIN included.
    pub fn closed(&mut self, now: Instant) {
        let path = self.path(now);
        self.cc.on_event(ConnectionEvent::Closed, &path);
    }

    /// The connection ends before its time.
    pub fn abandoned(&mut self, now: Instant) {
        let path = self.path(now);
        self.cc.on_event(ConnectionEvent::Abandoned, &path);
    }

    /// Window, threshold and phase for traces.
    pub fn snapshot(&self) -> WindowState {
        let state = self.cc.snapshot();
        WindowState { cwnd: state.cwnd + self.inflation, ..state }
    }

    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Registry number of the receiver half that the algorithm asks for; zero if none.
    pub fn wanted_receiver(&mut self) -> u8 {
        self.cc.feedback().map_or(0, |feedback| feedback.receiver())
    }

    pub fn srtt(&self) -> Option<Duration> {
        (!self.rtt.srtt.is_zero()).then_some(self.rtt.srtt)
    }

    /// Smallest round-trip time measured so far; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        Some(self.rtt.min).filter(|min| *min != Duration::MAX)
    }

    /// Smoothed round trip of probes to a peer that reports them as duplicates.
    pub fn probe_srtt(&self) -> Option<Duration> {
        self.outstanding_probes.as_ref().and_then(|outstanding_probes| outstanding_probes.rtt())
    }

    /// Probes to this peer fare as data does.
    pub fn probes_are_ordinary(&self) -> bool {
        self.peer_probes == PeerProbes::Ordinary
    }

    pub fn rto(&self, config: &Config) -> Duration {
        self.rtt.rto(&config.rto)
    }

    pub fn back_off(&mut self) {
        self.rtt.back_off();
    }

    pub fn reset_back_off(&mut self) {
        self.rtt.reset_back_off();
    }

    /// Everything sent has been acknowledged, the FIN included.
    pub fn all_acked(&self) -> bool {
        self.una == self.nxt && self.nxt == self.stream_end()
    }

    /// Sequence number after the last one to send, as far as known.
    pub fn stream_end(&self) -> u64 {
        self.written + u64::from(self.fin_queued)
    }

    fn phase(&self) -> Phase {
        match self.episode {
            Episode::Open => Phase::Open,
            Episode::Recovery { .. } => Phase::Recovery,
            Episode::Loss { .. } => Phase::Loss,
        }
    }

    /// The state of the path that algorithms see.
    #[inline]
    fn path(&mut self, now: Instant) -> Path {
        self.told_srtt = self.rtt.srtt;
        Path {
            now,
            mss: self.mss,
            srtt: self.rtt.srtt,
            rttvar: self.rtt.rttvar,
            min_rtt: self.rtt.min,
            rto: self.rtt.base_rto(),
            in_flight: self.board.in_flight(),
            outstanding: self.board.outstanding(),
            receive_window: self.peer_segments,
            snd_una: self.una,
            snd_nxt: self.nxt,
            unsent: self.written.saturating_sub(self.nxt),
            delivered: self.delivered,
            peer_probes: self.peer_probes,
            ecn: self.ecn,
        }
    }

    /// Congestion window in whole segments, inflation included.
    fn window(&self) -> u32 {
        (self.cc.window() + self.inflation) as u32
    }

    /// Segments that the congestion window is held against.
    #[inline]
    fn used(&self, config: &Config) -> u32 {
        let by_outstanding = match self.episode {
            Episode::Loss { .. } => false,
            Episode::Recovery { .. } => {
                self.accounting == Accounting::Outstanding || !self.recovery.uses_sack()
            }
            // Before a loss is proven only limited transmit sends beyond the window (RFC 3042).
            Episode::Open => {
                let classical = self.accounting == Accounting::Outstanding || !self.recovery.uses_sack();
                classical || !config.limited_transmit
            }
        };
        if !by_outstanding {
            return self.board.in_flight();
        }
        let extra =
            if self.episode.is_open() && config.limited_transmit { self.duplicates.min(2) } else { 0 };
        self.board.outstanding() - extra.min(self.board.outstanding())
    }

    /// Asks for the memory behind pointers that the next arrival leads to.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&*self.cc);
        self.board.prefetch();
    }

    /// Bytes on the heap, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let outstanding_probes =
            self.outstanding_probes.as_ref().map_or(0, |outstanding_probes| outstanding_probes.heap_bytes());
        let rate = self.rate.as_ref().map_or(0, |rate| rate.heap_bytes());
        let rack = self.rack.as_ref().map_or(0, |rack| size_of_val(&**rack));
        let pacer = self.pacer.as_ref().map_or(0, |pacer| size_of_val(&**pacer));
        let reductions = self.reductions.as_ref().map_or(0, |reductions| size_of_val(&**reductions));
        self.board.heap_bytes()
            + size_of_val(&*self.cc)
            + outstanding_probes
            + rate
            + rack
            + pacer
            + reductions
    }
}
