//! Interface between the engine and a congestion control algorithm.

use bentpipe_base::{Duration, Extension, Instant, ProbeTag, Rate, Segment, WindowState};

use serde::{Deserialize, Serialize};

use crate::memory::PathMemory;

/// Facts about a connection at the time of its establishment.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments; infinite if unset.
    pub initial_ssthresh: f64,
    /// True if segments are paced: the sender's own bursts then do not disturb round-trip samples.
    pub paced: bool,
    /// Seed of the algorithm's random numbers. Each connection has its own seed.
    pub seed: u64,
    /// State shared by the host's connections to this destination (RFC 9040), if the driver keeps it.
    pub memory: Option<PathMemory>,
}

/// State of the path at the time of a call, as measured by the engine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Time of the call.
    pub now: Instant,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Round-trip time variation (RFC 6298).
    pub rttvar: Duration,
    /// Smallest round-trip sample so far; [`Duration::MAX`] before the first.
    pub min_rtt: Duration,
    /// Retransmission timeout (RTO) without back-off.
    pub rto: Duration,
    /// In-flight segments (RFC 6675 `pipe`): outstanding segments, minus those SACKed or marked lost, plus retransmissions.
    pub in_flight: u32,
    /// Segments sent and not cumulatively acknowledged (RFC 5681 `FlightSize`). Probes are not counted.
    pub outstanding: u32,
    /// Receive window in whole segments.
    pub receive_window: u32,
    /// First unacknowledged sequence number.
    pub snd_una: u64,
    /// Next new sequence number.
    pub snd_nxt: u64,
    /// Bytes written by the application and not yet sent for the first time.
    pub unsent: u64,
    /// Payload bytes delivered to the receiver since the connection began, as reported by ACKs.
    pub delivered: u64,
    /// The peer's support for probes.
    pub peer_probes: PeerProbes,
    /// True if both ends agreed on ECN (RFC 3168): the sender then learns of marks set by routers.
    pub ecn: bool,
}

impl Path {
    /// Smoothed round-trip time in seconds; zero before the first sample.
    pub fn srtt_s(&self) -> f64 {
        self.srtt.as_secs_f64()
    }
}

/// The peer's support for probes, and the path's support for their low priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PeerProbes {
    /// The handshake did not say. The algorithm tests support during the connection, or sends no probes.
    #[default]
    Unknown,
    /// The peer agreed in the handshake to answer probes.
    Agreed,
    /// The peer answers probes, but the bottleneck treats probes like data. A reply then does not show free capacity: probes get
    /// through even when data is lost.
    Ordinary,
}

/// State of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Neither fast recovery nor a timeout is in progress.
    #[default]
    Open,
    /// Fast recovery: between the detection of a loss and the acknowledgement of everything sent before it.
    Recovery,
    /// Loss recovery after a retransmission timeout. It ends when everything sent before the timeout is acknowledged.
    Loss,
}

/// Delivery-rate sample of one ACK (draft-ietf-ccwg-bbr section 4.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSample {
    /// Bytes delivered over the sampling interval.
    pub delivered: u64,
    /// Length of the interval.
    pub interval: Duration,
    /// Bytes delivered in total when the newest acknowledged segment was sent. A new round trip starts when this value passes the
    /// mark of the last one.
    pub prior_delivered: u64,
    /// True if the application did not fill the window during the interval.
    pub app_limited: bool,
    /// Segments in flight when the newest acknowledged segment was sent.
    pub tx_in_flight: u32,
    /// Segments marked lost between the transmission of the newest acknowledged segment and now.
    pub lost: u32,
}

impl RateSample {
    /// Delivery rate over the sampling interval.
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_per_s(self.delivered as f64 / self.interval.as_secs_f64())
    }
}

/// An acknowledgement: one of new data, or a duplicate (`acked == 0`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// Segments newly acknowledged cumulatively; zero for a duplicate.
    pub acked: u32,
    /// Segments by which an ACK of new data counts for window growth: those newly known to have arrived, without earlier SACKed
    /// ones. It is 1 if the engine counts ACKs instead of segments.
    pub counted: u32,
    /// Segments newly reported by SACK.
    pub sacked: u32,
    /// Payload bytes newly known to have been delivered, cumulatively or by SACK.
    pub delivered_bytes: u64,
    /// Segments newly marked lost.
    pub lost: u32,
    /// Round-trip sample, chosen by Karn's rule or by timestamps.
    pub rtt: Option<Duration>,
    /// The peer's clock when it sent this ACK (RFC 7323 `TSval`), if timestamps were negotiated. Its unit is usually 1 ms; its
    /// origin is arbitrary.
    pub peer_clock: Option<u32>,
    /// Delivery-rate sample of the ACK.
    pub rate: Option<RateSample>,
    /// Recovery state on arrival of this ACK. The ACK that ends an episode still reports the episode's state.
    pub phase: Phase,
    /// True if this ACK ended the episode of `phase`.
    pub ends_episode: bool,
    /// True if the window limited the sender since the last ACK, not the application or the receiver. The window may grow only
    /// then.
    pub window_limited: bool,
    /// True if the peer echoed a congestion mark (RFC 3168 ECE, RFC 9768 ACE).
    pub ecn_echo: bool,
    /// Packets newly reported as marked, with Accurate ECN (RFC 9768); zero with classic ECN, whose echo has no number.
    pub marks: u32,
    /// True if the peer reported a duplicate arrival (RFC 2883).
    pub dsack: bool,
}

/// Reason for a window reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Segments were lost.
    Loss,
    /// A router marked congestion (RFC 3168).
    Mark,
    /// The retransmission timer expired for the first time since an ACK made progress. Only a [`Rule`](crate::Rule) receives this
    /// cause; algorithms use [`CongestionControl::on_rto`].
    Timeout,
}

/// Start of a loss or mark episode, reported once per episode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// Cause of the episode.
    pub cause: Cause,
    /// Segments marked lost so far in this episode.
    pub lost: u32,
    /// Segments outstanding just before the detection (`FlightSize` of RFC 5681).
    pub outstanding: u32,
    /// In-flight segments just before the detection.
    pub in_flight: u32,
    /// Window use validated within the last round trips, in segments (RFC 7661 `pipeACK`), if validation is on.
    pub validated: Option<f64>,
}

/// An expiry of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout {
    /// Number of expiries since an ACK made progress; 1 for the first.
    pub consecutive: u32,
    /// Number of outstanding segments: sent but not cumulatively acknowledged.
    pub outstanding: u32,
    /// True if a probe of a [`TimeoutProber`] was answered without progress. It does not count as a further expiry.
    pub answered: bool,
}

impl Timeout {
    /// Returns the loss of all outstanding segments, for a [`Rule`](crate::Rule).
    pub fn as_loss(&self, path: &Path) -> Loss {
        let Self { outstanding, .. } = *self;
        Loss {
            cause: Cause::Timeout,
            lost: outstanding,
            outstanding,
            in_flight: path.in_flight,
            validated: None,
        }
    }
}

/// Effect of a believed timeout on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackOff {
    /// The timer doubles (RFC 6298 section 5.5).
    Double,
    /// The retransmission timer keeps its length.
    Keep,
}

impl BackOff {
    /// Returns [`BackOff::Double`] if `doubles`, else [`BackOff::Keep`].
    pub fn if_true(doubles: bool) -> Self {
        if doubles { Self::Double } else { Self::Keep }
    }
}

/// Drop priority of a data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Same priority as all other traffic.
    #[default]
    Normal,
    /// Low priority: a full queue drops this segment first.
    Low,
}

/// Spacing of segments in time (pacing).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// The algorithm sets no rate; a rate of zero means the same.
    #[default]
    None,
    /// Bursts of `quantum` segments at this rate.
    At {
        /// Rate of the payload.
        rate: Rate,
        /// Segments per burst. The pause after a burst keeps the average rate.
        quantum: u32,
    },
    /// Pairs at this rate, because a receiver delays the ACK of a lone segment (RFC 9293, section 3.8.6.3). The second segment
    /// leaves `gap` after the first, even if the window has room for only one.
    Pairs {
        /// Rate of the payload.
        rate: Rate,
        /// Time between the two segments of a pair.
        gap: Duration,
    },
    /// No data may leave, retransmissions included; probes may. The retransmission timer stops, and restarts when data may leave
    /// again.
    Withheld,
}

impl Spacing {
    /// Returns a spacing of single segments at `rate`, or none without a rate.
    pub fn at(rate: Option<Rate>) -> Self {
        rate.map_or(Self::None, |rate| Self::At { rate, quantum: 1 })
    }

    /// Returns the rate, if there is one.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::At { rate, .. } | Self::Pairs { rate, .. } => Some(rate),
            Self::None | Self::Withheld => None,
        }
    }
}

/// Rare events in the life of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is complete; [`Path::srtt`] holds its round trip.
    Established,
    /// The sender was idle for longer than a retransmission timeout and is about to send.
    Idle {
        /// The restart window of RFC 5681 section 4.1 in segments.
        restart: f64,
    },
    /// The window was unused for too long to describe the path (RFC 7661 section 4.4.3). The algorithm halves it.
    Unvalidated {
        /// Lower limit of the halved window, in segments.
        floor: f64,
    },
    /// All data and the FIN are acknowledged. The algorithm may store what it learnt for later connections.
    Closed,
    /// The connection ended early and makes no further calls. The algorithm releases its share of common state.
    Abandoned,
}

/// Scope of the undo after a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undo {
    /// Restores everything that the last reduction changed.
    Reduction,
    /// Restores only the threshold of the last timeout: slow start continues up to the former window (Hasegawa's Enhanced TCP).
    /// An algorithm without a threshold restores everything.
    Threshold,
}

/// A segment that just left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Sequence number of the first byte.
    pub seq: u64,
    /// Number of payload bytes in the segment.
    pub len: u32,
    /// True for a retransmission.
    pub retransmission: bool,
}

/// Content of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeKind {
    /// A copy of the data segment sent last (Peach's dummy segment). It carries nothing new for the receiver.
    Dummy,
    /// A copy of one outstanding segment (Swift, Peach+). The index counts from the oldest, modulo the number outstanding. The
    /// copy repairs the loss of that segment.
    Outstanding(u32),
    /// A copy of the oldest segment that is missing by SACK and not yet retransmitted, else of the newest outstanding one. The
    /// copy of a missing segment always repairs a loss.
    Hole,
    /// The newest outstanding segment as an ordinary retransmission (STAR's acknowledgement error notification).
    Newest,
    /// One old byte just below the first unacknowledged one, which makes the receiver send an ACK.
    AckPath,
}

/// Probe sent before a timeout is believed. Its answer shows whether data or only ACKs were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutProbe {
    /// The newest outstanding segment. It repairs no older loss, so that the answer shows whether one happened.
    #[default]
    Newest,
    /// The segment that timed out.
    Oldest,
    /// No data, just below the first unacknowledged byte.
    Keepalive,
}

impl TimeoutProbe {
    /// Returns the content of the probe for the engine.
    pub fn kind(self) -> ProbeKind {
        match self {
            Self::Newest => ProbeKind::Newest,
            Self::Oldest => ProbeKind::Outstanding(0),
            Self::Keepalive => ProbeKind::AckPath,
        }
    }
}

/// A probe to send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeRequest {
    /// Content of the probe.
    pub kind: ProbeKind,
    /// Tag that the reply echoes.
    pub tag: ProbeTag,
}

/// State of the sender when the engine asks for probes. It asks after all data that the window allows, and after each data
/// segment if [`Prober::follows_each_segment`] is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeMoment {
    /// Data segments (new or retransmitted) sent since the last arrival or timer event.
    pub data_sent: u32,
    /// True if the last of these carried new data.
    pub sent_newest: bool,
}

/// The reply to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeReply {
    /// Tag of the probe.
    pub tag: ProbeTag,
    /// Segments that the reply acknowledged cumulatively. A copy of an outstanding segment may fill a hole.
    pub acked: u32,
    /// Recovery state on arrival of the reply.
    pub phase: Phase,
}

/// Quantity that the engine compares with the window during loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Accounting {
    /// [`Path::in_flight`] (RFC 6675): each SACKed or lost segment makes room. The window is constant in fast recovery, so the
    /// engine may spread its reduction over the round trip (PRR, RFC 9937). After a reduction by a mark, the engine does not
    /// report a loss in the same window of data (RFC 3168 section 6.1.2).
    #[default]
    Pipe,
    /// [`Path::in_flight`] without PRR: the algorithm sets its window in fast recovery itself, or only its rate limits the
    /// sender.
    Own,
    /// [`Path::outstanding`] (RFC 5681, RFC 6582): the algorithm inflates its own window on duplicate ACKs.
    Outstanding,
}

/// Verdict of a [`Detector`] about the oldest outstanding segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyRetransmit {
    /// No retransmission except by the usual rules of loss detection.
    None,
    /// Retransmit the oldest segment now, before the usual evidence (Vegas's fine-grained timeout).
    Oldest,
    /// Retransmit everything that is neither acknowledged nor SACKed (WestwoodBR's bulk repeat).
    Everything,
}

/// Services that an algorithm needs from the engine. The engine asks once per connection and skips the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// Window arithmetic during recovery.
    pub accounting: Accounting,
    /// True if the engine must call [`CongestionControl::on_sent`].
    pub sent: bool,
    /// True if [`CongestionControl::spacing`] may return [`Spacing::Withheld`]. The engine then checks it before it selects a
    /// segment.
    pub withholds: bool,
    /// True if only the window limits the sender and delivery rates are not used. The engine then skips
    /// [`CongestionControl::spacing`] and [`Ack::rate`].
    pub window_only: bool,
    /// True if [`CongestionControl::spacing`] always sets a rate. Pacing is part of the law: without it, the host runs a
    /// different algorithm.
    pub pacing: bool,
    /// True if the algorithm reacts to the number of marks (a scalable congestion control, RFC 9331). With Accurate ECN, the engine
    /// sends its data as ECT(1), reports marks only by [`Ack::marks`], and counts unmarked segments for growth.
    pub scalable: bool,
}

/// A congestion control algorithm.
///
/// The engine calls the `on_*` methods, then reads [`window`](Self::window) and [`spacing`](Self::spacing). Four methods are
/// required: `window`, `on_ack`, `on_loss` and `on_rto`; most algorithms need no others. All times come from [`Path::now`].
///
/// The last five methods return optional capabilities. The engine asks for them once, when a connection begins. An algorithm with
/// a capability returns `Some(self)`, and its answer must stay the same for the connection's life.
pub trait CongestionControl: Send {
    /// Congestion window in segments, at least 1.
    fn window(&self) -> f64;

    /// Handles an ACK of new data (`ack.acked > 0`) or a duplicate ACK. The reply to a probe is reported here only if it
    /// acknowledges new data.
    fn on_ack(&mut self, ack: &Ack, path: &Path);

    /// Handles the start of a loss or mark episode; further losses of the episode make no call. A mark, or a loss repaired by a
    /// tail loss probe, opens no recovery: the next ACK reports [`Phase::Open`].
    fn on_loss(&mut self, loss: &Loss, path: &Path);

    /// Handles an expiry of the retransmission timer: everything outstanding counts as lost. Returns the timer's back-off.
    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff;

    /// Spacing of segments (not read if [`Requirements::window_only`]).
    fn spacing(&self) -> Spacing {
        Spacing::None
    }

    /// Handles a data segment that leaves (if [`Requirements::sent`]). Returns its drop priority; retransmissions always leave at normal
    /// priority.
    fn on_sent(&mut self, sent: &Sent, path: &Path) -> Priority {
        let _ = (sent, path);
        Priority::Normal
    }

    /// Reverts the last `on_loss` or `on_rto`, which proved spurious.
    fn on_undo(&mut self, undo: Undo, path: &Path) {
        let _ = (undo, path);
    }

    /// Handles a rare event.
    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        let _ = (event, path);
    }

    /// State for traces and figures: window and slow-start threshold in segments (infinite if there is none yet). The phase has
    /// its name in the paper.
    fn snapshot(&self) -> WindowState {
        state(self, f64::INFINITY, "slow-start")
    }

    /// Services needed from the engine.
    fn wants(&self) -> Requirements {
        Requirements::default()
    }

    /// Capability: sends probes.
    fn prober(&mut self) -> Option<&mut dyn Prober> {
        None
    }

    /// Capability: reads fields that the receiver or routers write.
    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        None
    }

    /// Capability: probes the peer before it believes a timeout.
    fn questioner(&mut self) -> Option<&mut dyn TimeoutProber> {
        None
    }

    /// Capability of an algorithm that detects losses by its own rules.
    fn detector(&mut self) -> Option<&mut dyn Detector> {
        None
    }

    /// Capability of an algorithm that sets its own timer.
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        None
    }
}

/// Returns a [`CongestionControl::snapshot`] with this threshold and this phase.
pub fn state<C: CongestionControl + ?Sized>(cc: &C, ssthresh: f64, phase: &'static str) -> WindowState {
    WindowState { cwnd: cc.window(), ssthresh, pacing_bps: cc.spacing().rate().map_or(0, Rate::bps), phase }
}

/// An algorithm that sends probes: dummies, or copies of outstanding segments (TCP-Peach, TCP-Swift). The handshake then offers
/// probes.
pub trait Prober {
    /// Returns the next probe to send now, or `None`. The engine repeats the call until it returns `None`.
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest>;

    /// True if probes may also leave between two data segments.
    fn follows_each_segment(&self) -> bool {
        false
    }

    /// Handles the reply to a probe.
    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path);

    /// True while duplicate ACKs without new SACK blocks must not count as loss. They may be the answers of a receiver that does
    /// not know probes.
    fn distrusts_duplicates(&self) -> bool {
        false
    }

    /// True if a D-SACK report (RFC 2883) of a probe's range counts as its reply. It applies if the handshake did not agree on
    /// replies; the engine asks once.
    fn takes_reports(&self) -> bool {
        false
    }
}

/// An algorithm that writes fields into its segments and reads the answers of receiver or routers (XCP, TCP Real).
pub trait Feedback {
    /// Registry number of the receiver half that the peer must run. Zero means none: only notices from the network are read. The
    /// engine asks once.
    fn receiver(&self) -> u8;

    /// Returns the fields of a data segment that leaves (if the peer agreed to [`receiver`](Self::receiver)).
    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        let _ = (sent, path);
        Extension::None
    }

    /// Handles the fields of an ACK (if the peer agreed to [`receiver`](Self::receiver)), or a [`Notice`](bentpipe_base::Notice)
    /// that the network sent by itself.
    fn on_feedback(&mut self, fields: &Extension, path: &Path);
}

/// An algorithm that probes the peer before it believes a timeout (TCP-STAR). It replaces the engine's own probe.
pub trait TimeoutProber {
    /// Returns the probe to send after an expiry of the retransmission timer. `None` believes the timeout, and the engine calls
    /// [`CongestionControl::on_rto`]. After a probe, no data leaves before its answer or its timeout.
    fn question(&mut self, timeout: &Timeout, path: &Path) -> Option<ProbeKind>;
}

/// An algorithm that detects losses by its own rules (TCP Vegas, WestwoodBR).
pub trait Detector {
    /// Returns the segments to retransmit before the usual evidence; called on every ACK and every timer event. `oldest_sent` is
    /// the last transmission time of the oldest outstanding segment.
    fn doubt(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit;
}

/// An algorithm that sets its own timer.
pub trait Sleeper {
    /// Time of the next timer event, read after every call; [`Instant::FAR_FUTURE`] for none.
    fn wake_at(&self) -> Instant;

    /// Handles the timer event. The result says whether an empty segment asks the peer for an ACK, even if data is withheld.
    fn on_wake(&mut self, path: &Path) -> Wake;
}

/// Action after a timer event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// No segment is sent.
    Quiet,
    /// An empty segment asks the peer for an ACK.
    AskForAck,
}

/// The receiver half of an algorithm.
pub trait Reflector: Send {
    /// Handles a data segment that arrived. `duplicate` is true if the receiver already had every byte.
    fn on_data(&mut self, now: Instant, segment: &Segment, duplicate: bool);

    /// Returns the fields of the ACK that leaves next.
    fn reply(&mut self, now: Instant) -> Extension;
}
