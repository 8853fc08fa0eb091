//! State of a sender.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::chirp::Chirp;
use super::delay::Delay;
use crate::algorithms::loss::cubic::Curve;
use crate::parameters::{at_least_zero, fraction, positive};
use crate::parts::windowed::WindowedMax;

/// Parameters of Zenith.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// a: seconds of queue that every flow aims at, whatever its rate.
    #[serde(deserialize_with = "positive")]
    pub floor_s: f64,
    /// p: seconds of queue times the root of the rate in segments a second.
    #[serde(deserialize_with = "positive")]
    pub price: f64,
    /// g: share of the missing queue that one round trip corrects.
    #[serde(deserialize_with = "fraction")]
    pub gain: f64,
    /// m: factor by which shares converge faster than the law alone would make them.
    #[serde(deserialize_with = "positive")]
    pub sharing: f64,
    /// K: queue in seconds that Zenith infers from one loss per second, where losses and not delays show a queue, in s².
    #[serde(deserialize_with = "at_least_zero")]
    pub loss_s2: f64,
    /// T: seconds over which the mean queue is taken, and between drains.
    #[serde(deserialize_with = "positive")]
    pub memory_s: f64,
    /// n: share of losses in a round trip that never counts as congestion, and that a path is believed to lose until it shows its own.
    #[serde(deserialize_with = "fraction")]
    pub noise: f64,
    /// True if the first flight measures the rate of the path; otherwise the window doubles from the first.
    pub measured_start: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            floor_s: 0.002,
            price: 0.14,
            gain: 0.5,
            sharing: 4.0,
            loss_s2: 0.02,
            memory_s: 10.0,
            noise: 0.008,
            measured_start: true,
        }
    }
}

impl Config {
    /// q*: the queue that a flow of this rate aims at, that of a segment a second where it is slower.
    pub(super) fn target_s(&self, rate: f64) -> f64 {
        self.floor_s + self.price / libm::sqrt(rate.max(1.0))
    }
}

/// Smallest window, in segments: a receiver acknowledges every second one at once (RFC 9293, section 3.8.6.3).
pub(super) const SMALLEST: f64 = 2.0;
/// A queue below this share of the target counts as none.
pub(super) const CALM: f64 = 0.25;
/// The longest queue that the law takes into account, as a multiple of the target.
pub(super) const LONGEST: f64 = 3.0;
/// Pacing rate in windows per round trip: a little more than one, so that the window and not the pacing limits the rate.
pub(super) const PACE: f64 = 1.02;
/// Largest gap between segments in seconds. A receiver holds the ACK of a lone segment back for 40 ms; slower flows send pairs with this gap.
pub(super) const PAIR_S: f64 = 0.02;
/// ACKs that pause for a round trip and this are a silence: those of a flow that sends once in a round trip pause for one, and a receiver may
/// hold them back.
pub(super) const SILENCE: Duration = Duration::from_millis(100);
/// Time for which the longest queue is remembered.
pub(super) const LONGEST_WINDOW: Duration = Duration::from_secs(10);

/// Segments that left in the previous round trip, whose losses are detected in this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Before {
    Ordinary,
    /// Segments sent before a reduction, more than the window allows now.
    Cut,
    /// Segments of a drain, which filled the path but not the queue.
    Drained,
}

/// Counts of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) since: Instant,
    pub(super) before: Before,
    pub(super) delivered: f64,
    pub(super) lost: f64,
    /// Most segments in flight at an ACK, what it reports included.
    pub(super) in_flight: f64,
    /// Longest queue that a segment saw, in seconds.
    pub(super) longest_s: f64,
    /// The peer's clock when the round began, in milliseconds.
    pub(super) clock: Option<u32>,
}

impl Round {
    pub(super) fn new(since: Instant, before: Before, clock: Option<u32>) -> Self {
        Self { since, before, delivered: 0.0, lost: 0.0, in_flight: 0.0, longest_s: 0.0, clock }
    }

    /// Returns the delivery rate in segments per second. The peer's clock, whose resolution is a millisecond, counts if ACKs are delayed on the way back.
    pub(super) fn rate(&self, now: Instant, clock: Option<u32>) -> f64 {
        let took_s = now.since(self.since).as_secs_f64();
        let peer_s = self
            .clock
            .zip(clock)
            .map_or(f64::INFINITY, |(from, to)| (f64::from(to.wrapping_sub(from)) + 1.0) / 1000.0);
        self.delivered / took_s.min(peer_s)
    }
}

/// Source of the window between drains.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// The first flight measures the path.
    Measure(Box<Chirp>),
    /// The window doubles up to this.
    Double { threshold: f64 },
    /// The law.
    Follow,
    /// CUBIC's curve, beside flows that do not drain.
    Contest(Contest),
}

/// CUBIC's window since the last loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    pub(super) since: Instant,
    pub(super) curve: Curve,
}

/// The phases of a drain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Phase {
    None,
    /// Until this time the window is so small that the queue runs empty.
    Drain {
        window: f64,
        until: Instant,
    },
    /// The window is restored, and what left while it was small is still on its way.
    Refill,
}

/// Results of the drains so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drains {
    /// The lowest round trip since the last drain began, and its time.
    pub(super) lowest: Duration,
    pub(super) lowest_at: Instant,
    /// Standing and smallest round trip before it, in seconds.
    pub(super) standing_s: f64,
    pub(super) base_s: f64,
    /// Round trips since then.
    pub(super) rounds: u32,
    /// The window when a drain last left no queue, or when the start ended.
    pub(super) emptied: f64,
    /// End of the last round trip without a queue.
    pub(super) empty_at: Instant,
    /// Drains in a row that have left most of the queue, and whether there was a contest.
    pub(super) filled: u32,
    pub(super) met_others: bool,
}

impl Drains {
    pub(super) fn new() -> Self {
        let (lowest, lowest_at, empty_at) = (Duration::MAX, Instant::ZERO, Instant::ZERO);
        Self {
            lowest,
            lowest_at,
            standing_s: 0.0,
            base_s: 0.0,
            rounds: 0,
            emptied: 0.0,
            empty_at,
            filled: 0,
            met_others: false,
        }
    }
}

/// Round trips in a row with too long a queue, the window when they began, and whether more than noise was lost in them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Crowd {
    pub(super) rounds: u32,
    pub(super) window: f64,
    pub(super) overflowed: bool,
}

/// A Zenith sender.
#[derive(Clone, Debug)]
pub struct Zenith {
    pub(super) config: Config,
    pub(super) window: f64,
    pub(super) mode: Mode,
    pub(super) phase: Phase,
    pub(super) delay: Delay,
    /// Q, and the part of it that losses stand for.
    pub(super) mean_s: f64,
    pub(super) overflow_s: f64,
    /// Multiple of the law's growth, and round trips in a row without a queue.
    pub(super) speed: f64,
    pub(super) calm_rounds: u32,
    /// b: share of segments that the path loses without a queue, and losses that it still explains.
    pub(super) noise: f64,
    pub(super) allowance: f64,
    pub(super) drains: Drains,
    pub(super) crowd: Crowd,
    pub(super) round: Round,
    /// Segments a second in the last round trip, and in the one before.
    pub(super) delivery_rate: f64,
    pub(super) delivery_rate_before: f64,
    /// Most segments in flight in the round trip before.
    pub(super) in_flight_before: f64,
    /// Longest queue that two ACKs in a row showed in the last seconds: a receiver that holds an ACK back (RFC 9293, section 3.8.6.3) does so once.
    pub(super) longest: WindowedMax<f64>,
    pub(super) previous_s: f64,
    /// Segments delivered, and time, since the law's last step.
    pub(super) pending: (f64, Duration),
    /// The window before a timeout, until the timeout proves to have been one or none.
    pub(super) before_timeout: Option<f64>,
    pub(super) timed_out: bool,
    /// Segments that left before this are not measured.
    pub(super) trusted_from: Instant,
    pub(super) last_ack: Instant,
    /// The newest round trip, measured or not trusted.
    pub(super) latest_rtt: Duration,
    pub(super) sent: u32,
    pub(super) rtt_s: f64,
    pub(super) mss: f64,
}
