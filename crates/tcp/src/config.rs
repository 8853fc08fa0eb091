//! Configuration of a connection.

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, PathMemory, Reflector, TimeoutProbe, careful_resume};

/// Loss detection and repair, chosen independently of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recovery {
    /// Fast retransmit and fast recovery until the first new ACK (RFC 5681 section 3.2). No SACK option.
    Reno,
    /// Fast recovery that continues over partial ACKs (RFC 6582). No SACK option.
    NewReno,
    /// Conservative SACK-based recovery (RFC 6675).
    Sack,
    /// RACK-TLP: loss detection by transmission time, and tail loss probes (RFC 8985).
    #[default]
    Rack,
    /// SNACK (CCSDS 714.0): the receiver lists the holes, and each is repaired at most once in 1.25 round trips. With a peer
    /// without SNACK it is RACK.
    Snack,
}

impl Recovery {
    /// True if this recovery uses the SACK option.
    pub const fn uses_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack | Self::Snack)
    }
}

/// Explicit congestion notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Neither offered nor accepted.
    #[default]
    Off,
    /// Classic ECN: at most one echo per round trip (RFC 3168).
    Classic,
    /// Accurate ECN: the peer reports the number of marks (RFC 9768, without its option). With a peer that does not support it,
    /// classic ECN or none.
    Accurate,
}

/// Delayed ACKs of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// An ACK for every segment, at once.
    Off,
    /// An ACK after `every` full segments, or after `timer` (RFC 5681 section 4.2).
    On {
        /// Full-sized segments per ACK, usually 2.
        every: u32,
        /// Maximum delay of an ACK, at most 500 ms.
        timer: Duration,
        /// Segments acknowledged at once at the start of the connection and after a repaired loss.
        quick: u32,
        /// Segments acknowledged at once from a duplicate segment on, whose sender probably misses ACKs. Linux uses 16
        /// (`tcp_enter_quickack_mode`); zero keeps ACKs delayed.
        after_duplicate: u32,
    },
}

/// ACK pacing by the round-trip time, instead of counting segments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum AckDelay {
    /// Paced if SNACK was agreed on, as in [`AckPace::default`]; otherwise counted.
    #[default]
    Auto,
    /// Counted, as in [`ReceiverConfig::delayed_ack`].
    Counted,
    /// ACKs are paced with these parameters.
    Paced(AckPace),
}

/// ACK pacing: one ACK per interval, whatever the number of in-order segments. The interval is a fraction of the smoothed
/// round-trip time. A new hole is reported at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckPace {
    /// Interval as a fraction of the smoothed round-trip time.
    pub part: f64,
    /// Minimum interval between ACKs.
    pub floor: Duration,
    /// Maximum interval between ACKs.
    pub ceiling: Duration,
}

impl Default for AckPace {
    /// Half a round trip, at least 50 ms and at most 1 s (chosen: CCSDS 714.0 leaves it open).
    fn default() -> Self {
        Self { part: 0.5, floor: Duration::from_millis(50), ceiling: Duration::from_secs(1) }
    }
}

impl AckPace {
    /// Returns the interval at this round-trip time.
    pub fn delay(&self, srtt: Duration) -> Duration {
        srtt.mul_f64(self.part).min(self.ceiling).max(self.floor)
    }
}

/// Counting unit for the growth of the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckCounting {
    /// The unit is an acknowledged segment (RFC 3465 without its limit).
    #[default]
    Segments,
    /// ACKs, whatever they cover, as in RFC 2581 and in simulators before RFC 3465. With delayed ACKs the window then grows half
    /// as fast.
    Acks,
}

impl AckCounting {
    /// Returns the segments to count for an ACK of `acked` segments.
    pub(crate) fn count(self, acked: u32) -> u32 {
        match self {
            Self::Segments => acked,
            Self::Acks => acked.min(1),
        }
    }
}

/// Bounds of the retransmission timer (RFC 6298).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtoBounds {
    /// Timeout before the first round-trip sample.
    pub initial: Duration,
    /// Minimum retransmission timeout.
    pub floor: Duration,
    /// Minimum of timeout minus smoothed RTT, which is also the minimum of 4 x RTTVAR. Zero follows RFC 6298; the default of 200
    /// ms is Linux's (`TCP_RTO_MIN`). Without it, the timeout approaches the round trip after several equal samples. Over a
    /// satellite, a delayed ACK or a lost retransmission then causes a timeout.
    pub margin: Duration,
    /// Maximum timeout, back-off included.
    pub ceiling: Duration,
    /// Clock granularity: timeouts are rounded up to a multiple of it, and 4 x RTTVAR is at least this.
    pub tick: Duration,
    /// If true, every sample moves the smoothed RTT by 1/8, as in Linux, whatever the number of samples per round trip. The
    /// smoothed RTT is then near the newest sample, and RTTVAR is at least half of a sample's excess. If false, the samples of a
    /// round trip share the 1/8 (RFC 7323 appendix G). In both cases they share the 1/4 of RTTVAR.
    pub each_sample: bool,
    /// True if a SACK of data sent before the last transmission of the oldest segment restarts the timer, as in Linux. The round
    /// trip has then become longer, and the ACK of that segment is still in flight.
    pub restart_on_sacks: bool,
}

/// State restored by Hasegawa's Enhanced TCP after a spurious timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Restore {
    /// ssthresh, as in the paper: the window grows back in slow start.
    #[default]
    Threshold,
    /// ssthresh and window; segments marked lost are not sent again (RFC 4015).
    Both,
}

/// Detection of spurious timeouts, which no loss caused.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum SpuriousTimeout {
    /// No detection of spurious timeouts: every timeout counts as caused by a loss.
    Off,
    /// F-RTO (RFC 5682), with SACK if that is in use.
    #[default]
    FRto,
    /// Eifel detection by timestamps (RFC 3522) with the response of RFC 4015.
    Eifel,
    /// Enhanced TCP: an ACK earlier after the retransmission than any round trip answers the original segment. Source: G.
    /// Hasegawa, M. Murata, H. Miyahara, IEICE Transactions on Communications J82-B(11), 1999, as described in section 2.2 of the
    /// TCP-STAR paper.
    Enhanced {
        /// Fraction of minRTT, above zero and below one: an earlier ACK answers the original segment.
        fraction: f64,
        /// State that is restored.
        restore: Restore,
    },
    /// Acknowledgement error notification (TCP-STAR section 3.3): a probe tests if data or only ACKs were lost. Before its answer
    /// no other segment leaves, and the window is not reduced. An algorithm with its own RTO probes sends those instead.
    Aen {
        /// Segment sent as the probe.
        probe: TimeoutProbe,
        /// Unanswered probes after which the timeout is believed, at least one.
        max_probes: u32,
        /// After a spurious timeout, pace a window over minRTT instead of sending it at once.
        paced: bool,
    },
}

impl SpuriousTimeout {
    /// Enhanced TCP with 3/4 of minRTT (chosen: allows for its variation) that restores ssthresh.
    pub const ENHANCED: Self = Self::Enhanced { fraction: 0.75, restore: Restore::Threshold };

    /// Acknowledgement error notification with STAR's defaults.
    pub const AEN: Self = Self::Aen { probe: TimeoutProbe::Newest, max_probes: 3, paced: true };
}

/// Pacing of segments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Pacing {
    /// Pacing only if the algorithm sets a rate. With SNACK, segments are paced as with [`Pacing::Window`], because its ACKs
    /// cover many segments.
    #[default]
    Algorithm,
    /// Segments are not paced.
    Off,
    /// Pacing at `gain * cwnd / srtt`, unless the algorithm sets a rate.
    Window {
        /// Gain below ssthresh.
        slow_start_gain: f64,
        /// Gain above ssthresh.
        avoidance_gain: f64,
    },
}

impl Pacing {
    /// Gains below and above ssthresh: those of Linux (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub const USUAL_GAINS: (f64, f64) = bentpipe_cc::PACING_GAINS;
    /// [`Pacing::Window`] with the usual gains.
    pub const WINDOW: Self =
        Self::Window { slow_start_gain: Self::USUAL_GAINS.0, avoidance_gain: Self::USUAL_GAINS.1 };
}

/// Validation of an unused congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowValidation {
    /// An unused window is kept.
    Off,
    /// The window shrinks to the restart window after an idle time of one RTO (RFC 5681 section 4.1).
    #[default]
    Restart,
    /// The window is kept for five minutes without growth, and a loss reduces the used part (RFC 7661).
    Rfc7661,
}

/// Initial congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialWindow {
    /// A fixed number of segments.
    Segments(u32),
    /// Two to four segments, depending on their size (RFC 3390).
    Rfc3390,
    /// Ten segments (RFC 6928).
    Rfc6928,
}

impl InitialWindow {
    /// Returns the window in whole segments for a maximum segment size in bytes.
    pub fn segments(self, mss: u32) -> u32 {
        let bytes = match self {
            Self::Segments(n) => return n.max(1),
            Self::Rfc3390 => (4 * mss).min(4380.max(2 * mss)),
            Self::Rfc6928 => (10 * mss).min(14600.max(2 * mss)),
        };
        (bytes / mss.max(1)).max(1)
    }
}

/// Receive buffer, which determines the advertised window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveWindow {
    /// A buffer of this many bytes.
    Fixed(u64),
    /// Auto-tuned buffer. It starts with `initial` bytes and follows the bytes read per round trip, up to `limit`.
    Auto {
        /// Initial window in bytes.
        initial: u64,
        /// Maximum window in bytes.
        limit: u64,
    },
}

impl ReceiveWindow {
    /// Returns the maximum window in bytes, which determines the window scale.
    pub const fn limit(self) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Auto { limit, .. } => limit,
        }
    }
}

/// Keep-alive probes of an idle connection (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is given up.
    pub probes: u32,
}

/// Receiver half of an algorithm's feedback, offered by an end.
#[derive(Clone, Copy)]
pub struct Reflection {
    /// Registry number in the sender's request.
    pub number: u8,
    /// Function that builds the receiver half of one connection.
    pub build: fn() -> Box<dyn Reflector>,
}

impl PartialEq for Reflection {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl std::fmt::Debug for Reflection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reflection {}", self.number)
    }
}

/// Configuration of one connection end.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Maximum payload of segments in bytes, sent or accepted, without the timestamps option.
    pub mss: u32,
    /// Bytes of a segment used by the timestamps option. The MSS options of both ends include them. Without timestamps, segments
    /// hold this much more than `mss` (RFC 6691). Zero if all segments have headers of equal length.
    pub timestamps_len: u32,
    /// Timestamps option (RFC 7323): round-trip samples from every ACK, PAWS.
    pub timestamps: bool,
    /// Window scale option (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168, RFC 9768).
    pub ecn: EcnMode,
    /// Minimum payload in bytes that a peer's MSS option can impose: each segment costs memory and CPU time, however small it is.
    pub least_mss: u32,
    /// Sending half.
    pub sender: SenderConfig,
    /// Receiving half.
    pub receiver: ReceiverConfig,
    /// Start and end of the connection.
    pub lifetime: LifetimeConfig,
}

/// Configuration of the sending half.
#[derive(Clone, PartialEq, Debug)]
pub struct SenderConfig {
    /// Congestion control and its parameters.
    pub cc: Algorithm,
    /// Loss detection and repair.
    pub recovery: Recovery,
    /// Proportional rate reduction during recovery (RFC 9937). It applies with SACK, and to algorithms with a constant window in
    /// recovery.
    pub prr: bool,
    /// Undo a reduction if D-SACK (RFC 3708) or timestamps (RFC 3522) show that nothing was lost (RFC 4015). The reduction of a
    /// timeout is undone only with [`SpuriousTimeout::FRto`].
    pub undo: bool,
    /// Limited transmit on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Number of duplicate ACKs, or of SACKed segments above, that prove a loss; usually 3.
    pub dup_thresh: u32,
    /// Nagle's algorithm (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Bounds of the retransmission timer.
    pub rto: RtoBounds,
    /// Detection of spurious timeouts.
    pub spurious_timeout: SpuriousTimeout,
    /// Pacing of segments.
    pub pacing: Pacing,
    /// Maximum rate of payload, retransmissions included. Pacing enforces it, whatever the algorithm allows.
    pub rate_limit: Option<Rate>,
    /// Careful Resume (RFC 9959): starts from half the capacity that the last connection to this destination found. Without
    /// [`memory`](Self::memory), or without pacing, it does nothing.
    pub careful_resume: Option<careful_resume::Config>,
    /// Validation of an unused congestion window.
    pub window_validation: WindowValidation,
    /// Counting unit for window growth. Algorithms that grow by time or rate ignore it.
    pub ack_counting: AckCounting,
    /// Size of the initial congestion window.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold in segments; `None` is infinite.
    pub initial_ssthresh: Option<f64>,
    /// Maximum number of bytes written and not acknowledged.
    pub send_buffer: u64,
    /// Maximum number of segments sent per ACK; `None` for no limit.
    pub max_burst: Option<u32>,
    /// State shared by connections to the same destination (RFC 9040); kept by the driver per destination, or absent.
    pub memory: Option<PathMemory>,
}

/// Configuration of the receiving half.
#[derive(Clone, PartialEq, Debug)]
pub struct ReceiverConfig {
    /// Report duplicates by D-SACK (RFC 2883).
    pub dsack: bool,
    /// Delayed ACKs of this end.
    pub delayed_ack: DelayedAck,
    /// ACK pacing of this end by the round-trip time, instead of counting segments.
    pub ack_delay: AckDelay,
    /// Patience of the best-effort transport service (CCSDS 714.0): it skips data missing for longer and informs the application.
    /// It requires that both ends agreed on it and on SNACK.
    pub best_effort: Option<Duration>,
    /// Size of the receive buffer.
    pub receive_window: ReceiveWindow,
    /// Answer probes, and offer it in the handshake.
    pub probe_replies: bool,
    /// Receiver half offered to a sender that requests it.
    pub reflection: Option<Reflection>,
}

/// Patience of a connection with its peer.
#[derive(Clone, PartialEq, Debug)]
pub struct LifetimeConfig {
    /// Keep-alive; off if `None`.
    pub keep_alive: Option<KeepAlive>,
    /// User timeout (RFC 9293 section 3.10.8): the connection is given up when data is unacknowledged for this long. With `None`
    /// only `retries` counts.
    pub user_timeout: Option<Duration>,
    /// Consecutive timeouts after which a connection is given up.
    pub retries: u32,
    /// Consecutive handshake timeouts after which the attempt is given up.
    pub syn_retries: u32,
    /// Time spent in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
    /// Maximum silence of the peer in FIN-WAIT-2. While the application reads, the peer is probed in the last quarter of that
    /// time, and answers keep the connection. After a [release](crate::Connection::release) the connection always ends after this
    /// time.
    pub fin_wait_2: Duration,
    /// Maximum time without an acknowledgement of new data after a [release](crate::Connection::release) and before the FIN is
    /// acknowledged. It applies to silent peers and to closed windows (RFC 1122 section 4.2.3.5 requires at least 100 s).
    pub orphan_timeout: Duration,
}

impl Config {
    /// Returns this configuration with a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// True if the algorithm reacts to the number of marks, and this end does not ask for it.
    pub fn lacks_accurate_ecn(&self) -> bool {
        self.ecn != EcnMode::Accurate && self.sender.cc.requirements().scalable
    }

    /// True if the algorithm needs pacing and this end does not pace.
    pub fn lacks_pacing(&self) -> bool {
        self.sender.pacing == Pacing::Off && self.sender.cc.requirements().pacing
    }

    /// True if Careful Resume has no effect, because this end does not pace.
    pub fn resumes_without_pacing(&self) -> bool {
        self.sender.pacing == Pacing::Off && self.sender.careful_resume.is_some()
    }

    /// True if connections to one destination learn from each other, and so need [`memory`](SenderConfig::memory).
    pub fn remembers(&self) -> bool {
        self.sender.cc.remembers() || self.sender.careful_resume.is_some()
    }
}

impl Default for Config {
    /// Configuration of a current host, except for the algorithm (Reno until another is chosen). It has RACK-TLP, timestamps,
    /// SACK, an initial window of ten segments, delayed ACKs and an auto-tuned receive window.
    ///
    /// Most numbers are Linux's: delayed ACK of 40 ms, 16 quick ACKs, 15 retries, 6 SYN retries, 60 s in TIME-WAIT and
    /// FIN-WAIT-2, 48 bytes for `least_mss`, the initial receive window. RFC 6298 defines the initial timeout of 1 s and the
    /// maximum of 60 s. Chosen here: buffers of 64 MiB, about the BDP of 1 Gbit/s over a geostationary satellite, and an
    /// `orphan_timeout` above the 100 s of RFC 1122.
    fn default() -> Self {
        Self {
            mss: 1448,
            timestamps_len: 0,
            timestamps: true,
            window_scaling: true,
            ecn: EcnMode::Off,
            least_mss: 48,
            sender: SenderConfig::default(),
            receiver: ReceiverConfig::default(),
            lifetime: LifetimeConfig::default(),
        }
    }
}

impl Default for SenderConfig {
    /// Values of a current host; see [`Config::default`].
    fn default() -> Self {
        Self {
            cc: Algorithm::Reno(bentpipe_cc::reno::Config::default()),
            recovery: Recovery::default(),
            prr: true,
            undo: true,
            limited_transmit: true,
            dup_thresh: 3,
            nagle: false,
            rto: RtoBounds {
                initial: Duration::from_secs(1),
                floor: Duration::from_millis(200),
                margin: Duration::from_millis(200),
                ceiling: Duration::from_secs(60),
                tick: Duration::from_millis(1),
                each_sample: false,
                restart_on_sacks: false,
            },
            spurious_timeout: SpuriousTimeout::default(),
            pacing: Pacing::default(),
            rate_limit: None,
            careful_resume: None,
            window_validation: WindowValidation::default(),
            ack_counting: AckCounting::default(),
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: None,
            send_buffer: 64 << 20,
            max_burst: None,
            memory: None,
        }
    }
}

impl Default for ReceiverConfig {
    /// Values of a current host; see [`Config::default`].
    fn default() -> Self {
        Self {
            dsack: true,
            delayed_ack: DelayedAck::On {
                every: 2,
                timer: Duration::from_millis(40),
                quick: 16,
                after_duplicate: 0,
            },
            ack_delay: AckDelay::default(),
            best_effort: None,
            receive_window: ReceiveWindow::Auto { initial: 128 << 10, limit: 64 << 20 },
            probe_replies: true,
            reflection: None,
        }
    }
}

impl Default for LifetimeConfig {
    /// Values of Linux; see [`Config::default`].
    fn default() -> Self {
        Self {
            keep_alive: None,
            user_timeout: None,
            retries: 15,
            syn_retries: 6,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_timeout: Duration::from_secs(120),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a round trip of 550 ms one ACK leaves every 275 ms: 40 bytes for the 172 packets that arrive at 625 packets per second.
    #[test]
    fn acks_by_the_round_trip_time() {
        let delay = |millis| AckPace::default().delay(Duration::from_millis(millis)).as_millis_f64();
        assert_eq!([20, 550, 5000].map(delay), [50.0, 275.0, 1000.0]);
        let acks_per_s = 1000.0 / delay(550);
        assert_eq!((625.0 / acks_per_s).round(), 172.0);
        assert_eq!((40.0 * acks_per_s).round(), 145.0);
    }

    /// RFC 3390 and RFC 6928, for typical segment sizes.
    #[test]
    fn initial_windows() {
        let table = |iw: InitialWindow| [536, 1000, 1095, 1448, 1460, 2190, 9000].map(|mss| iw.segments(mss));
        assert_eq!(table(InitialWindow::Segments(1)), [1; 7]);
        assert_eq!(table(InitialWindow::Rfc3390), [4, 4, 4, 3, 3, 2, 2]);
        assert_eq!(table(InitialWindow::Rfc6928), [10, 10, 10, 10, 10, 6, 2]);
    }
}
