//! Bursts of loss around handovers.

use bentpipe_base::{Duration, Instant, Rng};

use crate::error::{ConfigError, check_probability};
use crate::schedule::{Interpolation, Quantity, Schedule, validate_period};

/// Additional loss probability of packets that are sent near a handover. Other errors remain.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct HandoverLoss {
    /// Probability that a packet is lost.
    pub probability: f64,
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

    /// True if `time` is in the burst of a handover, which includes its start and not its end.
    fn is_near(&self, time: Instant) -> bool {
        if self.handovers.is_empty() {
            return false;
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
                return begin.saturating_add(handover.as_nanos()) <= latest;
            }
            round += 1;
            if round > last_round {
                return false;
            }
        }
    }

    /// True if a packet sent at `time` is lost to a burst.
    #[inline]
    pub(super) fn strikes(&self, time: Instant, rng: &mut Rng) -> bool {
        self.is_near(time) && rng.chance(self.probability)
    }
}
