//! What a sender knows.

use bentpipe_base::Instant;
use serde::{Deserialize, Serialize};

use super::delay::Delay;
use crate::cubic::Curve;
use crate::parameters::{at_least_zero, fraction, positive};

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
    /// m: how much faster shares converge than the law alone would make them.
    #[serde(deserialize_with = "positive")]
    pub sharing: f64,
    /// D: seconds of queue that the loss of every segment stands for.
    #[serde(deserialize_with = "at_least_zero")]
    pub loss_s: f64,
    /// T: seconds over which means are taken, and between drains.
    #[serde(deserialize_with = "positive")]
    pub memory_s: f64,
    /// n: share of segments that a path is believed to lose without a queue before it has shown what it loses.
    #[serde(deserialize_with = "fraction")]
    pub noise: f64,
    /// r: largest share of the window by which it grows in a round trip without a queue, after the start.
    #[serde(deserialize_with = "fraction")]
    pub growth: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            floor_s: 0.002,
            price: 0.14,
            gain: 0.5,
            sharing: 4.0,
            loss_s: 2.0,
            memory_s: 10.0,
            noise: 0.008,
            growth: 0.25,
        }
    }
}

/// Smallest window, in segments: a receiver acknowledges every second one at once (RFC 9293, section 3.8.6.3).
pub(super) const SMALLEST: f64 = 2.0;
/// Half of something, or twice: a queue below half of the target is none, one above twice is too long, and a window is used by half (RFC 7661).
pub(super) const HALF: f64 = 0.5;
/// A queue below this share of the target counts as none.
pub(super) const CALM: f64 = 0.25;
/// Pacing rate in windows per round trip: a little more than one, so that the window and not the pacing limits the rate.
pub(super) const PACE: f64 = 1.02;
/// Seconds between segments at most: a receiver holds the ACK of a lone segment back for 40 ms. Slower flows send in pairs with this gap.
pub(super) const PAIR_S: f64 = 0.02;

/// Who sets the window between drains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    /// No queue: each delivered segment adds this share of a segment; at the start a whole one.
    Grow(f64),
    /// The law.
    Follow,
    /// Others fill the queue: CUBIC's curve.
    Contest(Contest),
}

/// Counts of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) since: Instant,
    pub(super) delivered: f64,
    pub(super) lost: f64,
    /// Most segments in flight at an ACK, what it reports included.
    pub(super) in_flight: f64,
    /// Longest queue that two segments in a row saw, in seconds: a receiver that holds an ACK back does so once.
    pub(super) longest_s: f64,
    /// False if its losses are those of segments that left before a reduction or a timeout.
    pub(super) counts: bool,
}

impl Round {
    pub(super) fn new(since: Instant, counts: bool) -> Self {
        Self { since, delivered: 0.0, lost: 0.0, in_flight: 0.0, longest_s: 0.0, counts }
    }
}

/// A Zenith sender.
#[derive(Clone, Debug)]
pub struct Zenith {
    pub(super) config: Config,
    pub(super) window: f64,
    pub(super) mode: Mode,
    pub(super) delay: Delay,
    pub(super) step: Step,
    /// Queue of the last step and of the last ACK, in seconds.
    pub(super) queue_s: f64,
    pub(super) latest_s: f64,
    /// Q's part that delays show, zero until the start has ended, and the part that losses stand for.
    pub(super) mean_s: f64,
    pub(super) loss_s: f64,
    /// Share of segments that the path loses without a queue, and losses that it could have had and did not have.
    pub(super) noise: f64,
    pub(super) saved: f64,
    /// Longest queue that a segment has seen, forgotten over T.
    pub(super) longest_s: f64,
    pub(super) tide: Tide,
    pub(super) crowd: Crowd,
    pub(super) round: Round,
    /// Most segments in flight in the round trip before, and what it delivered.
    pub(super) in_flight_before: f64,
    pub(super) delivered_before: f64,
    /// The window and the mode before a timeout, until an ACK shows that it was one.
    pub(super) before_timeout: Option<(f64, Mode)>,
    pub(super) timed_out: bool,
    /// Segments that left before this are not measured.
    pub(super) trusted_from: Instant,
    pub(super) last_ack: Instant,
    pub(super) rtt_s: f64,
    pub(super) mss: f64,
}

/// CUBIC's window since the last loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    pub(super) since: Instant,
    pub(super) curve: Curve,
}

/// The states of draining.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tide {
    None,
    /// Until this time the window is so small that the queue runs empty.
    Drain { window: f64, until: Instant },
    /// The window is restored, and what left while it was small is still on its way.
    Refill,
}

/// What drains have shown.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Crowd {
    /// Round trips in a row with too long a queue, and drains in a row that have left most of the queue.
    pub(super) rounds: u32,
    pub(super) drains: u32,
    /// The queue before the last drain, in seconds, and whether anything overflowed since.
    pub(super) queue_s: f64,
    pub(super) overflowed: bool,
    /// The window when a drain last left no queue, or when the start ended.
    pub(super) window: f64,
}

/// What has happened since the last step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) since: Instant,
    pub(super) queue_s: f64,
    pub(super) segments: f64,
}

impl Step {
    pub(super) fn new(since: Instant) -> Self {
        Self { since, queue_s: f64::INFINITY, segments: 0.0 }
    }
}
