//! Bursts of loss around handovers.

use bentpipe_base::{Duration, Instant, Rng};

use crate::error::{ConfigError, check_probability};
use crate::schedule::{Interpolation, Quantity, Schedule, validate_period};

/// Additional loss probability of packets that are sent near a handover. Other errors remain.
#[derive(Clone, Debug, PartialEq)]
pub struct HandoverLoss {
    /// Probability that a packet is lost.
    pub probability: f64,
    /// Probability that a handover has a burst.
    pub share: f64,
    /// Length of the burst before a handover.
    pub before: Duration,
    /// Length of the burst after a handover.
    pub after: Duration,
    /// Minimum change of the delay that counts as a handover, if [`HandoverLoss::find`] finds them.
    pub jump: Duration,
    /// Times of the handovers, strictly ascending.
    pub handovers: Vec<Duration>,
    /// Repetition period of the handovers, at least the time of the last one.
    pub repeat_every: Option<Duration>,
}

impl Default for HandoverLoss {
    fn default() -> Self {
        Self {
            probability: 0.0,
            share: 1.0,
            before: Duration::ZERO,
            after: Duration::ZERO,
            jump: Duration::ZERO,
            handovers: Vec::new(),
            repeat_every: None,
        }
    }
}

impl HandoverLoss {
    /// Sets the handovers: the times at which the delay jumps. Only a table with steps has jumps.
    pub fn find(&mut self, delay_one_way: &Schedule<Duration>) {
        (self.handovers, self.repeat_every) = (Vec::new(), None);
        let Schedule::Table { points, interpolation: Interpolation::Step, repeat_every } = delay_one_way
        else {
            return;
        };
        let least = self.jump.raw().max(1);
        let jumps = |before: Duration, after: Duration| before.raw().abs_diff(after.raw()) >= least;
        let at_points = points.windows(2).filter(|pair| jumps(pair[0].1, pair[1].1)).map(|pair| pair[1].0);
        self.handovers.extend(at_points);
        if let (Some(period), [first, .., last]) = (*repeat_every, points.as_slice()) {
            self.handovers.extend(jumps(last.1, first.1).then_some(period));
        }
        self.repeat_every = repeat_every.filter(|_| !self.handovers.is_empty());
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_probability("probability", self.probability)?;
        check_probability("share", self.share)?;
        if self.before.is_zero() && self.after.is_zero() {
            return Err(ConfigError::new(
                "before",
                self.before,
                "longer than 0 s, or `after` longer than 0 s",
            ));
        }
        if let Some(pair) = self.handovers.windows(2).find(|pair| pair[0] >= pair[1]) {
            let found = format!("{} after {}", pair[1], pair[0]);
            return Err(ConfigError::new("handovers", found, "strictly ascending times"));
        }
        // The last handover may be the start of the next repetition.
        let last = self.handovers.last().map(|last| last.saturating_sub(Duration::from_nanos(1)));
        validate_period(self.repeat_every, last)
    }

    /// Returns the handover, in nanoseconds, in whose burst `time` is. A burst includes its start and not its end.
    fn near(&self, time: Instant) -> Option<u64> {
        if self.handovers.is_empty() {
            return None;
        }
        let now = time.since(Instant::ZERO).as_nanos();
        let period = self.repeat_every.map_or(u64::MAX, Duration::as_nanos);
        // A burst may begin in the round before that of its handover, and end in the round after it.
        let (earliest, latest) =
            (now.saturating_sub(self.after.as_nanos()), now.saturating_add(self.before.as_nanos()));
        let (mut round, last_round) = (earliest / period, latest / period);
        loop {
            let begin = period.saturating_mul(round);
            let next = self
                .handovers
                .partition_point(|handover| begin.saturating_add(handover.as_nanos()) <= earliest);
            if let Some(handover) = self.handovers.get(next) {
                return Some(begin.saturating_add(handover.as_nanos()))
                    .filter(|handover| *handover <= latest);
            }
            round += 1;
            if round > last_round {
                return None;
            }
        }
    }
}

/// Bursts of a running link.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    config: HandoverLoss,
    /// The last handover near which a packet was sent, and true if it has a burst.
    last: (u64, bool),
}

impl Bursts {
    pub(super) fn new(config: &HandoverLoss) -> Self {
        Self { config: config.clone(), last: (u64::MAX, false) }
    }

    /// True if a packet sent at `time` is lost to a burst.
    #[inline]
    pub(super) fn strikes(&mut self, time: Instant, rng: &mut Rng) -> bool {
        let Some(handover) = self.config.near(time) else { return false };
        if self.last.0 != handover {
            // Without a draw, the random numbers of other losses are those of a link where each handover has a burst.
            self.last = (handover, self.config.share >= 1.0 || rng.chance(self.config.share));
        }
        self.last.1 && rng.chance(self.config.probability)
    }
}
