//! The contract between the engine and an algorithm.

use bentpipe_base::{Duration, Extension, Instant, ProbeTag, Rate, Segment, WindowState};

use serde::{Deserialize, Serialize};

use crate::memory::PathMemory;

/// What an algorithm knows when its connection is established.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments; infinite if unset.
    pub initial_ssthresh: f64,
    /// Segments will be spaced, so that no bursts of our own disturb round-trip samples.
    pub paced: bool,
    /// Seed of the random numbers of algorithms that use them. Each connection has its own.
    pub seed: u64,
    /// What the host's connections to this destination share (RFC 9040), if the driver keeps it.
    pub memory: Option<PathMemory>,
}

/// The path as the engine knows it at the time of a call.
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
    /// Retransmission timeout without back-off.
    pub rto: Duration,
    /// Estimate of the segments in the network: outstanding, less those SACKed or marked lost, plus retransmissions
    /// (RFC 6675 `pipe`).
    pub in_flight: u32,
    /// Segments sent and not cumulatively acknowledged (RFC 5681 `FlightSize`). Probes never count.
    pub outstanding: u32,
    /// Receive window in whole segments.
    pub receive_window: u32,
    /// First unacknowledged sequence number.
    pub snd_una: u64,
    /// Next new sequence number.
    pub snd_nxt: u64,
    /// Bytes written by the application and not yet sent for the first time.
    pub unsent: u64,
    /// Payload bytes known to have reached the receiver since the connection began.
    pub delivered: u64,
    /// Whether the peer replies to probes.
    pub peer_probes: PeerProbes,
    /// Both ends agreed on ECN (RFC 3168), so that the sender learns of the marks of routers.
    pub ecn: bool,
}

impl Path {
    /// Smoothed round-trip time in seconds; zero before the first sample.
    pub fn srtt_s(&self) -> f64 {
        self.srtt.as_secs_f64()
    }
}

/// Whether the peer understands probes, and the path their priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PeerProbes {
    /// The handshake did not say; the algorithm finds out in band or does without.
    #[default]
    Unknown,
    /// Agreed in the handshake.
    Agreed,
    /// The peer answers, but the bottleneck gives probes no lower priority than data. Probes get through although data is lost, so their replies
    /// do not show that capacity is free.
    Ordinary,
}

/// Where the sender stands in loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No loss episode.
    #[default]
    Open,
    /// Fast recovery: between the detection of a loss and the acknowledgement of everything sent before it.
    Recovery,
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Loss,
}

/// Delivery-rate sample of one ACK (draft-ietf-ccwg-bbr section 4.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSample {
    /// Bytes delivered over the sampling interval.
    pub delivered: u64,
    /// Length of the interval.
    pub interval: Duration,
    /// Total delivered when the newest acknowledged segment was sent: starts a new round trip when it passes the mark.
    pub prior_delivered: u64,
    /// The sample was taken while the application did not fill the window.
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

/// An acknowledgement. Called for new ACKs, and for duplicates (`acked == 0`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// Segments newly acknowledged cumulatively; zero for a duplicate.
    pub acked: u32,
    /// Segments for which a window grows on this ACK, if it acknowledges new data: those newly known to have arrived, without what SACK
    /// had reported before; or one if the engine is told to count ACKs instead.
    pub counted: u32,
    /// Segments newly reported by SACK.
    pub sacked: u32,
    /// Payload bytes newly known to have been delivered, cumulatively or by SACK.
    pub delivered_bytes: u64,
    /// Segments newly marked lost.
    pub lost: u32,
    /// Round-trip sample, by Karn's rule or timestamps.
    pub rtt: Option<Duration>,
    /// The peer's clock when it sent this ACK (RFC 7323 `TSval`), in its own units, which are milliseconds nearly everywhere, and from an
    /// origin of its own; if timestamps were agreed on.
    pub peer_clock: Option<u32>,
    /// Delivery-rate sample.
    pub rate: Option<RateSample>,
    /// Recovery state in which this ACK arrived. The ACK that ends an episode still arrives in it.
    pub phase: Phase,
    /// This ACK ended the episode of `phase`.
    pub ends_episode: bool,
    /// The window, not the application or the receiver, limited the sender since the last ACK: only then may it grow.
    pub window_limited: bool,
    /// The peer echoed a congestion mark (RFC 3168 ECE).
    pub ecn_echo: bool,
    /// The peer reported a duplicate arrival (RFC 2883).
    pub dsack: bool,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Segments were lost.
    Loss,
    /// A router marked congestion (RFC 3168).
    Mark,
    /// The retransmission timer expired for the first time since an ACK made progress. Only a [`Rule`](crate::Rule) sees this: algorithms have
    /// [`CongestionControl::on_rto`] for it.
    Timeout,
}

/// A loss or mark episode begins; reported once per episode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// What happened.
    pub cause: Cause,
    /// Segments marked lost so far in this episode.
    pub lost: u32,
    /// Segments outstanding just before the detection (`FlightSize` of RFC 5681).
    pub outstanding: u32,
    /// Segments in the network just before the detection.
    pub in_flight: u32,
    /// Segments validated as used within the last round trips (RFC 7661 `pipeACK`), if validation is on.
    pub validated: Option<f64>,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout {
    /// 1 for the first expiry since an ACK made progress.
    pub consecutive: u32,
    /// Segments outstanding.
    pub outstanding: u32,
    /// The probe of a [`Questioner`] was answered without progress: this is not a further expiry.
    pub answered: bool,
}

impl Timeout {
    /// The same as a loss of all that is outstanding, for a [`Rule`](crate::Rule).
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

/// What a timeout that is believed does to the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackOff {
    /// It doubles (RFC 6298 section 5.5).
    Double,
    /// It stays as long as it is.
    Keep,
}

impl BackOff {
    /// Doubles if so, stays otherwise.
    pub fn if_true(doubles: bool) -> Self {
        if doubles { Self::Double } else { Self::Keep }
    }
}

/// Drop priority of a data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// As everything else.
    #[default]
    Normal,
    /// A full queue drops it first.
    Low,
}

/// How segments are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// The algorithm sets no rate; a rate of zero means the same.
    #[default]
    None,
    /// At this rate.
    At {
        /// Rate of the payload.
        rate: Rate,
        /// Segments that leave back to back each time the pacer lets something go; the spacing after them makes up for it.
        quantum: u32,
    },
    /// At this rate, two by two: a receiver holds the ACK of a lone segment back (RFC 9293, section 3.8.6.3). The second leaves so long after
    /// the first, and does so even if the window has room for one segment only.
    Pairs {
        /// Rate of the payload.
        rate: Rate,
        /// Time between the two segments of a pair.
        gap: Duration,
    },
    /// No data may leave, retransmissions included. Probes still may. The retransmission timer rests, and starts anew when data may leave
    /// again.
    Withheld,
}

impl Spacing {
    /// Segment by segment at a rate, if there is one.
    pub fn at(rate: Option<Rate>) -> Self {
        rate.map_or(Self::None, |rate| Self::At { rate, quantum: 1 })
    }

    /// The rate, if there is one.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::At { rate, .. } | Self::Pairs { rate, .. } => Some(rate),
            Self::None | Self::Withheld => None,
        }
    }
}

/// What happens now and then in the life of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is complete; [`Path::srtt`] holds its round trip.
    Established,
    /// The sender was idle for longer than a retransmission timeout and is about to send.
    Idle {
        /// The restart window of RFC 5681 section 4.1 in segments.
        restart: f64,
    },
    /// A window went unused for so long that it no longer says anything about the path (RFC 7661 section 4.4.3): it is halved.
    Unvalidated {
        /// Not below this, in segments.
        floor: f64,
    },
    /// All that the application will ever send is acknowledged, its end included: what was learnt may be kept for others.
    Closed,
    /// The connection ended before its time and will not call again: what is shared with others is given back.
    Abandoned,
}

/// What is taken back when a reduction turns out to be a mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undo {
    /// All of the last reduction.
    Reduction,
    /// Of the last timeout only the threshold: slow start goes on, up to where the window was (Hasegawa's Enhanced TCP). An algorithm without a
    /// threshold takes all of it back.
    Threshold,
}

/// A segment just left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Sequence number of the first byte.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
    /// Sent before.
    pub retransmission: bool,
}

/// What a probe carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeKind {
    /// A copy of the data segment sent last (Peach's dummy segment): worthless to the receiver.
    Dummy,
    /// A copy of one outstanding segment, counted from the oldest, modulo the number outstanding (Swift, Peach+): repairs if
    /// that one was lost.
    Outstanding(u32),
    /// A copy of the oldest segment that SACK shows to be missing and that was not sent again; where there is none, of the newest
    /// outstanding one. Only such a copy is sure to repair something.
    Hole,
    /// The newest outstanding segment as an ordinary retransmission (STAR's acknowledgement error notification).
    Newest,
    /// No new bytes, just below the first unacknowledged one: asks the receiver for an ACK.
    AckPath,
}

/// What asks the peer, before a timeout is believed, whether data or only ACKs were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutProbe {
    /// The newest outstanding segment: it repairs no loss of an older one, so that the answer shows whether one was lost.
    #[default]
    Newest,
    /// The segment that timed out.
    Oldest,
    /// No data, just below the first unacknowledged byte.
    Keepalive,
}

impl TimeoutProbe {
    /// As the engine sends it.
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
    /// What it carries.
    pub kind: ProbeKind,
    /// Echoed in the reply.
    pub tag: ProbeTag,
}

/// When the engine asks for probes: after it has sent all the data that the window allows, and after each segment of data where
/// [`Prober::follows_each_segment`] says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeMoment {
    /// Data segments (new or retransmitted) sent since the last arrival or wake-up.
    pub data_sent: u32,
    /// The last of these was new data.
    pub sent_newest: bool,
}

/// A probe was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeReply {
    /// Tag of the probe.
    pub tag: ProbeTag,
    /// Segments that the reply acknowledged cumulatively: an outstanding segment may repair a hole.
    pub acked: u32,
    /// Recovery state in which the reply arrived.
    pub phase: Phase,
}

/// How the engine holds the window against what was sent while it recovers from a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Accounting {
    /// Against [`Path::in_flight`] (RFC 6675): each SACKed or lost segment makes room. The window stands still in fast recovery, so the
    /// engine may spread its reduction over the round trip (proportional rate reduction, RFC 9937), and a loss in a window of data that a
    /// mark has made smaller already is not reported (RFC 3168 section 6.1.2).
    #[default]
    Pipe,
    /// Against [`Path::in_flight`] as well, but the algorithm sets its window in fast recovery itself, or its rate rules: neither.
    Own,
    /// Against [`Path::outstanding`] (RFC 5681, RFC 6582): the algorithm inflates its own window on duplicate ACKs.
    Outstanding,
}

/// What a [`Detector`] says of the oldest outstanding segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Nothing special.
    None,
    /// Retransmit the oldest segment now, though the usual evidence is missing (Vegas's fine-grained timeout).
    Oldest,
    /// Retransmit everything that is neither acknowledged nor SACKed (WestwoodBR's bulk repeat).
    Everything,
}

/// What an algorithm asks of the engine; asked once. What it does not want is left out altogether.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    /// Window arithmetic during recovery.
    pub accounting: Accounting,
    /// Call [`CongestionControl::on_sent`].
    pub sent: bool,
    /// [`CongestionControl::spacing`] may be [`Spacing::Withheld`]: ask for it before anything is chosen to leave.
    pub withholds: bool,
    /// Nothing but the window holds data back, and the delivery rate is of no interest: leave out [`CongestionControl::spacing`] and
    /// [`Ack::rate`].
    pub window_only: bool,
    /// [`CongestionControl::spacing`] always gives a rate, which belongs to the law: hosts that do not pace make another algorithm of it.
    pub pacing: bool,
}

/// A congestion control algorithm.
///
/// The engine calls `on_*` as things happen and then reads [`window`](Self::window) and [`spacing`](Self::spacing). Four methods are required:
/// `window`, `on_ack`, `on_loss` and `on_rto`; they carry most algorithms. All times come from [`Path::now`].
///
/// Below the ten methods stand the capabilities that few algorithms have. The engine asks once which there are, when a connection begins, and
/// skips the others; an algorithm that has one returns `Some(self)`, and must not change its mind over the life of the connection.
pub trait CongestionControl: Send {
    /// Congestion window in segments, at least one.
    fn window(&self) -> f64;

    /// An ACK arrived: new data acknowledged (`ack.acked > 0`), or a duplicate. Replies to probes are not reported here
    /// unless they acknowledge new data.
    fn on_ack(&mut self, ack: &Ack, path: &Path);

    /// A loss or mark episode begins (not called again before it ends). A mark, and a loss that a tail loss probe repaired, open
    /// no recovery: the next ACK arrives in [`Phase::Open`].
    fn on_loss(&mut self, loss: &Loss, path: &Path);

    /// The retransmission timer expired, and everything outstanding is taken for lost. Says what becomes of the timer.
    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff;

    /// How segments are spaced (unless [`Wants::window_only`]).
    fn spacing(&self) -> Spacing {
        Spacing::None
    }

    /// A data segment leaves (if [`Wants::sent`]). Says with which drop priority; retransmissions never leave with a low one.
    fn on_sent(&mut self, sent: &Sent, path: &Path) -> Priority {
        let _ = (sent, path);
        Priority::Normal
    }

    /// The last `on_loss` or `on_rto` turned out to be a mistake.
    fn on_undo(&mut self, undo: Undo, path: &Path) {
        let _ = (undo, path);
    }

    /// Something happened that happens rarely.
    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        let _ = (event, path);
    }

    /// What traces and figures show: window and slow-start threshold in segments (infinite if the algorithm has none yet), and the name of
    /// the current phase in the words of the paper.
    fn snapshot(&self) -> WindowState {
        state(self, f64::INFINITY, "slow-start")
    }

    /// What it asks of the engine.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// Capability: sends probes.
    fn prober(&mut self) -> Option<&mut dyn Prober> {
        None
    }

    /// Capability: reads fields that the receiver or routers write.
    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        None
    }

    /// Capability: asks the peer before it believes a timeout.
    fn questioner(&mut self) -> Option<&mut dyn Questioner> {
        None
    }

    /// Capability: finds losses by evidence of its own.
    fn detector(&mut self) -> Option<&mut dyn Detector> {
        None
    }

    /// Capability: is woken at times of its choice.
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        None
    }
}

/// A [`CongestionControl::snapshot`] with this threshold and this phase.
pub fn state<C: CongestionControl + ?Sized>(cc: &C, ssthresh: f64, phase: &'static str) -> WindowState {
    WindowState { cwnd: cc.window(), ssthresh, pacing_bps: cc.spacing().rate().map_or(0, Rate::bps), phase }
}

/// An algorithm that sends probes: dummies, or copies of outstanding segments (TCP-Peach, TCP-Swift). Probes are offered in the handshake.
pub trait Prober {
    /// Asked after data until it returns `None`: the next probe to send now.
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest>;

    /// Probes may leave between two segments of data as well.
    fn follows_each_segment(&self) -> bool {
        false
    }

    /// A probe was answered.
    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path);

    /// True while duplicate ACKs that report nothing new by SACK must not count as a sign of loss, because they may be the answers of a
    /// receiver that does not know probes.
    fn distrusts_duplicates(&self) -> bool {
        false
    }

    /// Where the handshake agreed on no replies to probes, the peer's report of a duplicate (RFC 2883) with the range of a probe is taken for
    /// the reply to it. Asked once.
    fn takes_reports(&self) -> bool {
        false
    }
}

/// An algorithm that puts fields into its segments and reads what the receiver or routers make of them (XCP, TCP Real).
pub trait Feedback {
    /// Registry number of the receiver half to ask of the peer; zero if there is none, and only notices of the network are heard.
    /// Asked once.
    fn receiver(&self) -> u8;

    /// Fields to put into a data segment about to leave (if the peer agreed to [`receiver`](Self::receiver)).
    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        let _ = (sent, path);
        Extension::None
    }

    /// Fields that came back with an ACK (if the peer agreed to [`receiver`](Self::receiver)), or a [`Notice`](bentpipe_base::Notice) that
    /// came from the network by itself.
    fn on_feedback(&mut self, fields: &Extension, path: &Path);
}

/// An algorithm that asks the peer before it believes a timeout (TCP-STAR). The engine then asks no question of its own.
pub trait Questioner {
    /// The retransmission timer expired: the probe to send before the timeout is believed, or `None` to believe it, which calls
    /// [`CongestionControl::on_rto`]. After a probe no data leaves until it is answered or times out as well.
    fn question(&mut self, timeout: &Timeout, path: &Path) -> Option<ProbeKind>;
}

/// An algorithm that finds losses by evidence of its own (TCP Vegas, WestwoodBR).
pub trait Detector {
    /// Asked on every ACK and after every wake-up: should something be retransmitted ahead of the usual evidence?
    /// `oldest_sent` is the time at which the oldest outstanding segment last left.
    fn doubt(&mut self, oldest_sent: Instant, path: &Path) -> Doubt;
}

/// An algorithm that is woken at times of its choice.
pub trait Sleeper {
    /// Time of the next wake-up, asked after every call; [`Instant::FAR_FUTURE`] for none.
    fn wake_at(&self) -> Instant;

    /// The wake-up time has come. Says whether to ask the peer for an ACK with an empty segment, though data may be withheld.
    fn on_wake(&mut self, path: &Path) -> Wake;
}

/// What follows a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Nothing but what the algorithm changed.
    Quiet,
    /// An empty segment asks the peer for an ACK.
    AskForAck,
}

/// The receiver half of an algorithm that has one.
pub trait Reflector: Send {
    /// A data segment arrived. `duplicate` if every byte of it was there already.
    fn on_data(&mut self, now: Instant, segment: &Segment, duplicate: bool);

    /// Fields for the ACK about to leave.
    fn reply(&mut self, now: Instant) -> Extension;
}
