//! Everything that can be configured of a connection.

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, PathMemory, Reflector, TimeoutProbe};

/// How losses are found and repaired. Chosen beside the algorithm, not inside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recovery {
    /// Fast retransmit and fast recovery until the first new ACK (RFC 5681 section 3.2). No SACK option.
    Reno,
    /// Stays in recovery over partial ACKs (RFC 6582). No SACK option.
    NewReno,
    /// Conservative SACK-based recovery (RFC 6675).
    Sack,
    /// RACK-TLP: losses by time of transmission, tail loss probes (RFC 8985).
    #[default]
    Rack,
    /// The receiver names the holes, and each is repaired at most once in 1.25 round trips (SNACK, CCSDS 714.0). RACK with a peer
    /// that does not know SNACK.
    Snack,
}

impl Recovery {
    /// Whether this recovery uses the SACK option.
    pub const fn uses_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack | Self::Snack)
    }
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// Every segment at once.
    Off,
    /// Every `every` full segments, or after `timer` (RFC 5681 section 4.2).
    On {
        /// Full-sized segments per ACK, usually 2.
        every: u32,
        /// Longest delay of an ACK, at most 500 ms.
        timer: Duration,
        /// Segments acknowledged at once at the start of the connection and after a repaired loss.
        quick: u32,
        /// Segments acknowledged at once, beginning with a segment that had arrived before: its sender seems to miss ACKs. Linux
        /// acknowledges 16 (`tcp_enter_quickack_mode`); with zero ACKs stay delayed.
        after_duplicate: u32,
    },
}

/// Acknowledgements paced by the round-trip time instead of counted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum AckDelay {
    /// Paced where SNACK was agreed on, as [`AckPace::default`] says; counted elsewhere.
    #[default]
    Auto,
    /// Counted, as [`Config::delayed_ack`] says.
    Counted,
    /// Paced.
    Paced(AckPace),
}

/// ACKs paced by time: one ACK in each interval, however many segments arrive in order in it. The interval is a part of the smoothed
/// round-trip time. A new hole is reported at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckPace {
    /// Time between two such ACKs as a part of the smoothed round-trip time.
    pub part: f64,
    /// Shortest time between two such ACKs.
    pub floor: Duration,
    /// Longest time between two such ACKs.
    pub ceiling: Duration,
}

impl Default for AckPace {
    /// Half a round trip, 50 ms at least and a second at most (chosen: CCSDS 714.0 leaves it open).
    fn default() -> Self {
        Self { part: 0.5, floor: Duration::from_millis(50), ceiling: Duration::from_secs(1) }
    }
}

impl AckPace {
    /// Time between two ACKs at this round-trip time.
    pub fn delay(&self, srtt: Duration) -> Duration {
        srtt.mul_f64(self.part).min(self.ceiling).max(self.floor)
    }
}

/// What the growth of the congestion window counts on an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckCounting {
    /// The segments that it acknowledges (RFC 3465 without its limit).
    #[default]
    Segments,
    /// The ACK itself, whatever it covers: RFC 2581 to the letter, and what simulators did before RFC 3465. With delayed ACKs the
    /// window then grows half as fast.
    Acks,
}

impl AckCounting {
    /// Segments to count on an ACK of `acked` segments.
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
    /// Timer before the first round-trip sample.
    pub initial: Duration,
    /// Smallest timeout.
    pub floor: Duration,
    /// Least time by which the timeout exceeds the smoothed round trip: 4 x RTTVAR is at least this. Zero is RFC 6298. The default of
    /// 200 ms is that of Linux (`TCP_RTO_MIN`). Without it, the timeout of RFC 6298 is hardly longer than the round trip once a few round
    /// trips have been equally long; over a satellite a delayed ACK, or a retransmission that is itself lost, then ends in a timeout.
    pub margin: Duration,
    /// Largest timeout, back-off included.
    pub ceiling: Duration,
    /// Clock granularity: timeouts are rounded up to a multiple, and 4 x RTTVAR is at least this.
    pub tick: Duration,
    /// Every sample moves the smoothed round-trip time by an eighth, as in Linux, however many samples there are in a round trip: the
    /// smoothed time is then nearly that of the newest sample, and RTTVAR is at least half of the time by which a sample exceeds it.
    /// If false, the samples of a round trip share the eighth (RFC 7323 appendix G). They share the quarter by which RTTVAR moves in both
    /// cases.
    pub each_sample: bool,
    /// A SACK of data that were sent before the oldest segment was last sent restarts the timer as well, as in Linux: the round trip has become
    /// longer, and the ACK of that segment is still on its way.
    pub restart_on_sacks: bool,
}

/// What Hasegawa's Enhanced TCP restores after a spurious timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Restore {
    /// The threshold, as in the paper: the window grows back in slow start.
    #[default]
    Threshold,
    /// The window as well, and what was marked lost is not sent again (RFC 4015).
    Both,
}

/// How the engine detects a spurious timeout: one that no loss caused.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum SpuriousTimeout {
    /// No detection: every timeout is taken for one that a loss caused.
    Off,
    /// F-RTO (RFC 5682), with SACK where it is in use.
    #[default]
    FRto,
    /// Eifel detection by timestamps (RFC 3522) with the response of RFC 4015.
    Eifel,
    /// Enhanced TCP: an ACK that follows the retransmission sooner than any round trip answers the original (G. Hasegawa, M. Murata,
    /// H. Miyahara, IEICE Transactions on Communications J82-B(11), 1999, as section 2.2 of the TCP-STAR paper tells it).
    Enhanced {
        /// The ACK answers the original if it comes sooner than this part of the smallest round-trip time, above zero and below one.
        fraction: f64,
        /// What is restored.
        restore: Restore,
    },
    /// Acknowledgement error notification (TCP-STAR section 3.3): one probe asks whether data or only ACKs were lost. Until it is
    /// answered, nothing else leaves and the window is not reduced. An algorithm with RTO probes of its own sends those instead.
    Aen {
        /// The segment that is sent as the probe.
        probe: TimeoutProbe,
        /// Probes that may go unanswered before the timeout is believed, at least one.
        max_probes: u32,
        /// After a spurious timeout, space a window over the smallest round-trip time instead of sending it at once.
        paced: bool,
    },
}

impl SpuriousTimeout {
    /// Enhanced TCP with three quarters of the smallest round trip (chosen: leaves room for its variation), restoring the threshold.
    pub const ENHANCED: Self = Self::Enhanced { fraction: 0.75, restore: Restore::Threshold };

    /// Acknowledgement error notification with STAR's defaults.
    pub const AEN: Self = Self::Aen { probe: TimeoutProbe::Newest, max_probes: 3, paced: true };
}

/// How segments are spaced.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Pacing {
    /// Segments leave as soon as the window allows, unless the algorithm sets a rate. With SNACK they are spaced as with
    /// [`Pacing::Window`], because one of its ACKs covers many segments.
    #[default]
    Algorithm,
    /// Segments always leave as soon as the window allows.
    Off,
    /// At `cwnd / srtt` times a gain, unless the algorithm sets a rate.
    Window {
        /// Gain below ssthresh.
        slow_start_gain: f64,
        /// Gain above ssthresh.
        avoidance_gain: f64,
    },
}

impl Pacing {
    /// Gains below and above ssthresh: those of Linux (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub const USUAL_GAINS: (f64, f64) = (2.0, 1.2);
    /// [`Pacing::Window`] with the usual gains.
    pub const WINDOW: Self =
        Self::Window { slow_start_gain: Self::USUAL_GAINS.0, avoidance_gain: Self::USUAL_GAINS.1 };
}

/// How long an unused congestion window is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowValidation {
    /// An unused window stays as it is.
    Off,
    /// It shrinks to the restart window after an idle time of one RTO (RFC 5681 section 4.1).
    #[default]
    Restart,
    /// It is kept for five minutes but does not grow, and a loss reduces what was used (RFC 7661).
    Rfc7661,
}

/// Initial congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialWindow {
    /// This number of segments.
    Segments(u32),
    /// Two to four segments by size (RFC 3390).
    Rfc3390,
    /// Ten segments (RFC 6928).
    Rfc6928,
}

impl InitialWindow {
    /// The window in whole segments for a maximum segment size in bytes.
    pub fn segments(self, mss: u32) -> u32 {
        let bytes = match self {
            Self::Segments(n) => return n.max(1),
            Self::Rfc3390 => (4 * mss).min(4380.max(2 * mss)),
            Self::Rfc6928 => (10 * mss).min(14600.max(2 * mss)),
        };
        (bytes / mss.max(1)).max(1)
    }
}

/// Receive buffer, from which the advertised window follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveWindow {
    /// A buffer of this many bytes.
    Fixed(u64),
    /// A buffer of `initial` bytes at first, which grows with what the application reads in a round trip, up to `limit`.
    Auto {
        /// First window in bytes.
        initial: u64,
        /// Largest window in bytes.
        limit: u64,
    },
}

impl ReceiveWindow {
    /// The largest window that this can become, in bytes. The window scale follows from it.
    pub const fn limit(self) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Auto { limit, .. } => limit,
        }
    }
}

/// Probing of an idle connection (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is given up.
    pub probes: u32,
}

/// The receiver half of an algorithm's feedback that an end offers.
#[derive(Clone, Copy)]
pub struct Reflection {
    /// Registry number by which the sender asks for it.
    pub number: u8,
    /// Builds the receiver half of one connection.
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
    /// Congestion control and its parameters.
    pub cc: Algorithm,
    /// Largest payload that this end sends or accepts, in bytes, beside the timestamps option.
    pub mss: u32,
    /// Bytes that the timestamps option takes of a segment. The MSS options of both ends count them, and where timestamps are not agreed on,
    /// segments hold this much more than `mss` (RFC 6691). Zero where all segments have headers of one length.
    pub timestamps_len: u32,
    /// Loss detection and repair.
    pub recovery: Recovery,
    /// Proportional rate reduction during recovery (RFC 9937). Applies with SACK, and to algorithms that do not change their window in recovery.
    pub prr: bool,
    /// Undo a reduction when D-SACK (RFC 3708) or timestamps (RFC 3522) show that nothing was lost (RFC 4015). The reduction of a timeout is
    /// undone only with [`SpuriousTimeout::FRto`].
    pub undo: bool,
    /// Limited transmit on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate ACKs, or segments SACKed above, that prove a loss. Usually 3.
    pub dup_thresh: u32,
    /// Report duplicates by D-SACK (RFC 2883).
    pub dsack: bool,
    /// Timestamps option (RFC 7323): round-trip samples from every ACK, PAWS.
    pub timestamps: bool,
    /// Window scale option (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Nagle's algorithm (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// When this end acknowledges.
    pub delayed_ack: DelayedAck,
    /// Whether this end paces its ACKs by the round-trip time instead of counting segments.
    pub ack_delay: AckDelay,
    /// Retransmission timer.
    pub rto: RtoBounds,
    /// Detection of spurious timeouts.
    pub spurious_timeout: SpuriousTimeout,
    /// Spacing of segments.
    pub pacing: Pacing,
    /// Highest rate of payload, retransmissions included. Segments are spaced so that it is never exceeded, whatever the algorithm allows.
    pub rate_limit: Option<Rate>,
    /// How long an unused congestion window is kept.
    pub window_validation: WindowValidation,
    /// How long the best-effort transport service (CCSDS 714.0) waits for missing data before it goes on without them and tells the
    /// application. Applies if both ends agreed on it and on SNACK.
    pub best_effort: Option<Duration>,
    /// What the growth of the window counts on an ACK. Algorithms that grow by time or by rate ignore it.
    pub ack_counting: AckCounting,
    /// Initial window.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold in segments; `None` is infinite.
    pub initial_ssthresh: Option<f64>,
    /// Receive buffer.
    pub receive_window: ReceiveWindow,
    /// Bytes the application may have written and not yet seen acknowledged.
    pub send_buffer: u64,
    /// Largest number of segments sent on one ACK; `None` is no limit.
    pub max_burst: Option<u32>,
    /// Keep-alive; off if `None`.
    pub keep_alive: Option<KeepAlive>,
    /// The connection is given up when data stay unacknowledged for this long (user timeout, RFC 9293 section 3.10.8). With `None` only
    /// `retries` counts.
    pub user_timeout: Option<Duration>,
    /// Consecutive timeouts before a connection is given up.
    pub retries: u32,
    /// Consecutive timeouts of the handshake before it is given up.
    pub syn_retries: u32,
    /// Time spent in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
    /// Longest silence of the peer in FIN-WAIT-2. While the application still reads, the peer is probed in the last quarter of that time
    /// and stays connected if it answers; once the application has [released](crate::Connection::release) the connection, it ends after
    /// this time in any case.
    pub fin_wait_2: Duration,
    /// Longest time without an acknowledgement of new data after the application has [released](crate::Connection::release) the
    /// connection and before its FIN is acknowledged, whether the peer is silent or keeps its window closed (RFC 1122 section 4.2.3.5
    /// wants at least 100 s).
    pub orphan_timeout: Duration,
    /// Smallest segment size that a peer's MSS option can impose, in bytes of payload: each segment costs memory and work, however small
    /// it is.
    pub least_mss: u32,
    /// Answer probes and offer to do so in the handshake.
    pub probe_replies: bool,
    /// Receiver half to offer to a sender that asks for it.
    pub reflection: Option<Reflection>,
    /// State that connections to the same destination share (RFC 9040); the driver keeps one for each destination, or none.
    pub memory: Option<PathMemory>,
}

impl Config {
    /// Whether the algorithm wants pacing and this end does not pace.
    pub fn lacks_pacing(&self) -> bool {
        self.pacing == Pacing::Off && self.cc.wants().pacing
    }
}

impl Default for Config {
    /// What a current host does, except for the algorithm, which is Reno until the caller chooses another one: RACK-TLP, timestamps, SACK, an
    /// initial window of ten segments, delayed ACKs and an auto-tuned receive window.
    ///
    /// The numbers are those of Linux (the delayed ACK of 40 ms, 16 quick ACKs, 15 retries, 6 of a SYN, 60 s in TIME-WAIT and FIN-WAIT-2, 48
    /// bytes for `least_mss`, the first receive window) and of RFC 6298 (the first timeout of 1 s, the ceiling of 60 s). Chosen: buffers of
    /// 64 MiB, about the bandwidth-delay product of 1 Gbit/s over a geostationary satellite, and an `orphan_timeout` above the 100 s of RFC
    /// 1122.
    fn default() -> Self {
        Self {
            cc: Algorithm::Reno(bentpipe_cc::reno::Config::default()),
            mss: 1448,
            timestamps_len: 0,
            recovery: Recovery::default(),
            prr: true,
            undo: true,
            limited_transmit: true,
            dup_thresh: 3,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            ecn: false,
            nagle: false,
            delayed_ack: DelayedAck::On {
                every: 2,
                timer: Duration::from_millis(40),
                quick: 16,
                after_duplicate: 0,
            },
            ack_delay: AckDelay::default(),
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
            window_validation: WindowValidation::default(),
            best_effort: None,
            ack_counting: AckCounting::default(),
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: None,
            receive_window: ReceiveWindow::Auto { initial: 128 << 10, limit: 64 << 20 },
            send_buffer: 64 << 20,
            max_burst: None,
            keep_alive: None,
            user_timeout: None,
            retries: 15,
            syn_retries: 6,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_timeout: Duration::from_secs(120),
            least_mss: 48,
            probe_replies: true,
            reflection: None,
            memory: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a round trip of 550 ms there is an ACK every 275 ms: 40 bytes for the 172 packets that arrive in that time at 625 packets a second.
    #[test]
    fn acks_by_the_round_trip_time() {
        let delay = |millis| AckPace::default().delay(Duration::from_millis(millis)).as_millis_f64();
        assert_eq!([20, 550, 5000].map(delay), [50.0, 275.0, 1000.0]);
        let acks_per_s = 1000.0 / delay(550);
        assert_eq!((625.0 / acks_per_s).round(), 172.0);
        assert_eq!((40.0 * acks_per_s).round(), 145.0);
    }

    /// RFC 3390 and RFC 6928, for the segment sizes that matter.
    #[test]
    fn initial_windows() {
        let table = |iw: InitialWindow| [536, 1000, 1095, 1448, 1460, 2190, 9000].map(|mss| iw.segments(mss));
        assert_eq!(table(InitialWindow::Segments(1)), [1; 7]);
        assert_eq!(table(InitialWindow::Rfc3390), [4, 4, 4, 3, 3, 2, 2]);
        assert_eq!(table(InitialWindow::Rfc6928), [10, 10, 10, 10, 10, 6, 2]);
    }
}
