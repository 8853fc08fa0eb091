//! Model of the path in version 3, without its state machine.

use bentpipe_base::{Duration, Instant};

use crate::parts::windowed::WindowedMax;
use crate::rounds::DeliveryRound;

/// `BBRExtraAckedFilterLen` in rounds.
pub(super) const EXTRA_ACKED_ROUNDS: u64 = 10;

/// Maximum delivery rate of this ProbeBW cycle and of the previous one (section 5.5.6).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct TwoCycles {
    pub before: f64,
    pub now: f64,
}

impl TwoCycles {
    pub fn max(&self) -> f64 {
        self.before.max(self.now)
    }

    /// `BBRAdvanceMaxBwFilter`. A cycle without samples keeps both values.
    pub fn advance(&mut self) {
        if self.now > 0.0 {
            *self = Self { before: self.now, now: 0.0 };
        }
    }
}

/// The short-term model (section 5.5.10.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bounds {
    pub bandwidth: f64,
    pub inflight: f64,
}

impl Bounds {
    pub const NONE: Self = Self { bandwidth: f64::INFINITY, inflight: f64::INFINITY };
}

/// Delivery of the last round trip, and its losses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Latest {
    pub bandwidth: f64,
    pub inflight: f64,
    pub loss_in_round: bool,
    /// Number of ACKs in this round that marked segments lost.
    pub loss_events: u32,
    pub round: DeliveryRound,
    pub round_start: bool,
}

/// `BBRUpdateMinRTT` (section 5.3.4.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct RoundTrip {
    pub min: Duration,
    pub min_at: Instant,
    /// Minimum of the current ProbeRTT interval.
    pub recent: Duration,
    pub recent_at: Instant,
}

/// ACK aggregation (section 5.5.9).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Aggregation {
    pub since: Instant,
    pub delivered: f64,
    pub extra: WindowedMax<f64>,
}

/// Slope of the long-term bound in ProbeBW_UP: 1, 2, 4 ... segments per round.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Slope {
    pub rounds: u32,
    pub acks: f64,
    /// Acknowledged segments per segment of growth.
    pub per_segment: f64,
}

/// Time of the next bandwidth probe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cycle {
    pub since: Instant,
    pub wait: Duration,
    pub rounds: u64,
}
