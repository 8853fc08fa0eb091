//! Sending half of a connection: state of sent segments, and selection of the next ones.

mod ack;
mod attached;
mod ecn;
mod episode;
mod extra;
mod findings;
mod loss_by_time;
mod outgoing;
mod outstanding_probes;
mod peer_window;
mod predicted;
mod probe;
mod rack;
mod recovery;
mod reductions;
mod rto_probe;
mod rto_probing;
mod rtt;
mod scoreboard;
mod silence;
mod snack;
mod stream;
mod timeout;
mod timer;
mod transmit;
mod undo;
mod unused_window;
mod validation;
mod watch;

pub(crate) use attached::Abilities;
pub(crate) use ecn::Ecn;
pub(crate) use findings::AckField;
pub(crate) use outgoing::{Outgoing, Prediction};
pub(crate) use stream::MAX_SEQ;
pub(crate) use timer::Fate;

use bentpipe_base::{Duration, EcnField, Instant, WindowState};
use bentpipe_cc::delivery_rate::DeliveryRate;
use bentpipe_cc::{Accounting, ConnectionEvent, Pacer, Path, PeerProbes, Phase, Start};

use crate::state::Reports;
use crate::{Config, Pacing, Recovery};
use attached::Attached;
use episode::Episode;
use extra::Extra;
use outstanding_probes::OutstandingProbes;
use peer_window::PeerWindow;
use rack::Rack;
use reductions::Reductions;
use rto_probe::RtoProbe;
use rtt::{Coverage, RttEstimator};
use scoreboard::Scoreboard;
use silence::Silence;
use stream::{Stream, Writer};
use timer::RetransmissionTimer;
use validation::Validation;

/// Last limit of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    /// The congestion window is full.
    Window,
    /// The peer's receive window is full.
    Receiver,
    /// The application has written no more data.
    Application,
}

/// State of the sending half.
// Fields that every segment changes come first, on few cache lines.
#[repr(C)]
pub(crate) struct Sender {
    /// First unacknowledged sequence number.
    pub una: u64,
    /// Next sequence number to send for the first time.
    pub nxt: u64,
    peer: PeerWindow,
    /// Payload bytes of a full segment, as negotiated.
    pub mss: u32,
    /// Number of data segments sent since the last arrival or timer event.
    burst: u32,
    pub stream: Stream,
    /// Sequence numbers known to be delivered.
    delivered: u64,
    algorithm: Attached,
    /// Present only if the algorithm uses the delivery rate.
    rate: Option<Box<DeliveryRate>>,
    rtt: RttEstimator,
    /// Smoothed RTT at the last call of the algorithm.
    told_srtt: Duration,
    /// Time of the last transmission of data.
    last_sent: Instant,
    timer: RetransmissionTimer,
    /// Sequence number and length of the last data segment.
    last_segment: (u64, u32),
    /// Consecutive duplicate ACKs, for recovery without SACK.
    duplicates: u32,
    limit: Limit,
    /// True if a SYN of this end was lost.
    lost_syn: bool,
    /// Configured recovery, or NewReno if the peer does not support SACK.
    recovery: Recovery,
    /// True if timestamps were agreed on.
    pub timestamps: bool,
    pub ecn: Ecn,
    /// The peer's support for probes.
    peer_probes: PeerProbes,
    pub silence: Silence,
    pub extra: Extra,
    board: Scoreboard,
    /// Present once RACK was used.
    rack: Option<Box<Rack>>,
    /// Sequence number whose acknowledgement ends the pacing after a spurious timeout.
    spaced_until: u64,
    episode: Episode,
    /// Present once segments are paced.
    pacer: Option<Box<Pacer>>,
    /// Inflation of the window by duplicate ACKs (RFC 5681, RFC 6582), in segments.
    inflation: f64,
    /// Present after a loss, a mark or a duplicate ACK.
    reductions: Option<Box<Reductions>>,
    /// Outstanding RTO probe; no other segment leaves before its answer.
    rto_probe: Option<RtoProbe>,
    /// Present only if configured.
    validation: Option<Box<Validation>>,
    /// Outstanding probes to a peer without agreement on replies, if the algorithm treats its D-SACKs as replies.
    outstanding_probes: Option<Box<OutstandingProbes>>,
}

impl Sender {
    pub fn new(config: &Config, seed: u64) -> Self {
        let algorithm = Attached::build(config, &Self::start(config, config.mss, seed, false));
        Self {
            una: 0,
            nxt: 0,
            peer: PeerWindow::default(),
            mss: config.mss,
            burst: 0,
            stream: Stream::default(),
            delivered: 0,
            rate: (!algorithm.has(Abilities::WINDOW_ONLY)).then(Box::default),
            algorithm,
            rtt: RttEstimator::new(&config.rto),
            told_srtt: Duration::ZERO,
            last_sent: Instant::ZERO,
            timer: RetransmissionTimer::OFF,
            last_segment: (0, 0),
            duplicates: 0,
            limit: Limit::Application,
            lost_syn: false,
            recovery: config.recovery,
            timestamps: false,
            ecn: Ecn::Off,
            peer_probes: PeerProbes::Unknown,
            silence: Silence::default(),
            extra: Extra::default(),
            board: Scoreboard::default(),
            rack: None,
            spaced_until: 0,
            episode: Episode::Open,
            pacer: None,
            inflation: 0.0,
            reductions: None,
            rto_probe: None,
            validation: None,
            outstanding_probes: None,
        }
    }

    fn start(config: &Config, mss: u32, seed: u64, lost_syn: bool) -> Start {
        Start {
            mss,
            initial_window: if lost_syn { 1.0 } else { f64::from(config.initial_window.segments(mss)) },
            paced: matches!(config.pacing, Pacing::Window { .. }),
            initial_ssthresh: config.initial_ssthresh.unwrap_or(f64::INFINITY),
            seed,
            memory: config.memory.clone().filter(|_| !lost_syn),
        }
    }

    /// Sets the negotiated payload of a full segment. Rebuilds the algorithm if that differs from its initial value, or if a SYN
    /// was lost: it then begins with one segment, and without what other connections have learned.
    pub fn set_mss(&mut self, config: &Config, mss: u32, seed: u64) {
        if mss != self.mss || self.lost_syn {
            self.mss = mss;
            self.algorithm = Attached::build(config, &Self::start(config, self.mss, seed, self.lost_syn));
        }
    }

    /// Accepts as many of `bytes` bytes as fit. Returns their number.
    pub fn write(&mut self, bytes: u64, config: &Config) -> u64 {
        let room = self.room(config);
        self.stream.write(bytes, room)
    }

    /// Starts an endless writer.
    pub fn write_endlessly(&mut self, config: &Config) {
        self.stream.writer = Writer::Endless;
        let room = self.room(config);
        self.stream.write(u64::MAX, room);
    }

    /// Returns the bytes that the application may write now.
    pub fn room(&self, config: &Config) -> u64 {
        self.stream.room(self.una, config.send_buffer)
    }

    /// Sets the peer's window from the handshake.
    pub fn open_window(&mut self, seq: u64, window: u32) {
        self.peer = PeerWindow::of_handshake(seq, self.una, window, self.mss);
    }

    /// Selects the recovery for the peer's form of reports.
    pub fn expect(&mut self, reports: Reports) {
        self.recovery = match (reports, self.recovery) {
            (Reports::None, recovery) if recovery.uses_sack() => Recovery::NewReno,
            (Reports::Sack, Recovery::Snack) => Recovery::Rack,
            (_, recovery) => recovery,
        };
    }

    /// Records the handshake's round trip.
    pub fn handshake_rtt(&mut self, rtt: Duration, config: &Config) {
        self.rtt.sample(rtt, Coverage { acked: 1, flight: 1 }, &config.rto);
    }

    /// Records an upper bound of the round trip if the SYN was sent more than once: RFC 6298 section 5.7 then requires a long
    /// timeout.
    pub fn guess_rtt(&mut self, rtt: Duration, config: &Config) {
        self.rtt.guess(rtt, &config.rto);
    }

    /// Records the loss of a SYN. The first flight is then one segment (RFC 5681 section 3.1), and the timeout is long (RFC 6298
    /// rule 5.7).
    pub fn syn_was_lost(&mut self, config: &Config) {
        self.lost_syn = true;
        self.rtt.lost_syn(&config.rto);
    }

    /// True if only one segment may be in flight, because a SYN was lost and no data has been acknowledged.
    pub fn begins_with_one(&self) -> bool {
        self.lost_syn && self.una <= 1
    }

    pub fn peer_answers_probes(&mut self) {
        self.peer_probes = PeerProbes::Agreed;
    }

    /// Enables D-SACKs as replies, because the peer did not agree to answer probes.
    pub fn peer_may_report_probes(&mut self) {
        self.outstanding_probes = self.algorithm.has(Abilities::TAKES_REPORTS).then(Box::default);
    }

    /// Handles a complete handshake.
    pub fn established(&mut self, now: Instant) {
        self.una = 1;
        self.nxt = 1;
        self.reductions = None;
        self.silence.since = now;
        let path = self.path(now);
        self.algorithm.cc.on_event(ConnectionEvent::Established, &path);
    }

    /// Handles the acknowledgement of everything, the FIN included.
    pub fn closed(&mut self, now: Instant) {
        let path = self.path(now);
        self.algorithm.cc.on_event(ConnectionEvent::Closed, &path);
    }

    /// Handles an early end of the connection.
    pub fn abandoned(&mut self, now: Instant) {
        let path = self.path(now);
        self.algorithm.cc.on_event(ConnectionEvent::Abandoned, &path);
    }

    /// Returns window, ssthresh and phase for traces.
    pub fn snapshot(&self) -> WindowState {
        let state = self.algorithm.cc.snapshot();
        WindowState { cwnd: state.cwnd + self.inflation, ..state }
    }

    pub fn abilities(&self) -> Abilities {
        self.algorithm.abilities
    }

    /// Returns the registry number of the receiver half that the algorithm requests; 0 for none.
    pub fn wanted_receiver(&mut self) -> u8 {
        self.algorithm.cc.feedback().map_or(0, |feedback| feedback.receiver())
    }

    /// Records whether the peer has the receiver half that the algorithm requests.
    pub fn agree_on_fields(&mut self, agreed: bool) {
        self.algorithm.exchanges_fields = agreed;
    }

    /// Returns the congestion window in bytes.
    pub fn window_bytes(&self) -> u64 {
        (self.algorithm.window() * f64::from(self.mss)) as u64
    }

    /// Returns the latest round-trip sample once.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt.take_sample()
    }

    pub fn srtt(&self) -> Option<Duration> {
        (!self.rtt.srtt.is_zero()).then_some(self.rtt.srtt)
    }

    /// Returns minRTT; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        Some(self.rtt.min).filter(|min| *min != Duration::MAX)
    }

    /// Returns the smoothed RTT of probes to a peer that reports them as duplicates.
    pub fn probe_srtt(&self) -> Option<Duration> {
        self.outstanding_probes.as_ref().and_then(|outstanding_probes| outstanding_probes.rtt())
    }

    /// True if the path treats probes to this peer like data.
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

    /// True if everything sent has been acknowledged, the FIN included.
    pub fn all_acked(&self) -> bool {
        self.una == self.nxt && self.nxt == self.stream.end_with_fin()
    }

    fn phase(&self) -> Phase {
        match self.episode {
            Episode::Open => Phase::Open,
            Episode::Recovery { .. } => Phase::Recovery,
            Episode::Loss { .. } => Phase::Loss,
        }
    }

    /// Returns the state of the path for algorithms.
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
            receive_window: self.peer.segments,
            snd_una: self.una,
            snd_nxt: self.nxt,
            unsent: self.stream.end.saturating_sub(self.nxt),
            delivered: self.delivered,
            peer_probes: self.peer_probes,
            ecn: self.ecn != Ecn::Off,
        }
    }

    /// Returns the ECN field of new data with Accurate ECN.
    pub fn capable(&self) -> EcnField {
        if self.algorithm.scalable { EcnField::L4s } else { EcnField::Capable }
    }

    /// True if the algorithm itself reacts to the number of marks that the peer reports.
    fn reacts_to_each_mark(&self) -> bool {
        self.algorithm.scalable && self.ecn.is_accurate()
    }

    /// Returns the congestion window in whole segments, inflation included.
    fn window(&self) -> u32 {
        (self.algorithm.window() + self.inflation) as u32
    }

    /// Returns the segments that count against the congestion window.
    #[inline]
    fn used(&self, config: &Config) -> u32 {
        let by_outstanding = match self.episode {
            Episode::Loss { .. } => false,
            Episode::Recovery { .. } => {
                self.algorithm.accounting == Accounting::Outstanding || !self.recovery.uses_sack()
            }
            // Before a loss is detected, only limited transmit sends beyond the window (RFC 3042).
            Episode::Open => {
                let classical =
                    self.algorithm.accounting == Accounting::Outstanding || !self.recovery.uses_sack();
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

    /// Returns the heap memory in bytes, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        let outstanding_probes =
            self.outstanding_probes.as_ref().map_or(0, |outstanding_probes| outstanding_probes.heap_bytes());
        let rate = self.rate.as_ref().map_or(0, |rate| rate.heap_bytes());
        let rack = self.rack.as_ref().map_or(0, |rack| size_of_val(&**rack));
        let pacer = self.pacer.as_ref().map_or(0, |pacer| size_of_val(&**pacer));
        let reductions = self.reductions.as_ref().map_or(0, |reductions| size_of_val(&**reductions));
        self.board.heap_bytes()
            + size_of_val(&*self.algorithm.cc)
            + outstanding_probes
            + rate
            + rack
            + pacer
            + reductions
    }
}
