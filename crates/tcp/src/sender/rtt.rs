//! Round-trip time and retransmission timeout (RFC 6298).

use bentpipe_base::Duration;

use crate::RtoBounds;

/// Smoothed round-trip time, its variation, and the timeout that follows.
// What algorithms are told is not in the order in which they are told it: a compiler would copy two numbers at once, and a processor that has
// just written them one by one waits before it reads them as a whole.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RttEstimator {
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest sample; [`Duration::MAX`] before the first.
    pub min: Duration,
    /// Timeout without back-off before it is held within its bounds, in nanoseconds.
    rounded: u64,
    pub rttvar: Duration,
    /// Timeout without back-off, kept because every ACK restarts the timer.
    base_rto: Duration,
    /// Consecutive doublings of the timeout.
    back_off: u32,
    /// No sample yet: what is here is a guess that the first one replaces.
    guessed: bool,
}

impl RttEstimator {
    pub fn new(bounds: &RtoBounds) -> Self {
        let unknown = Duration::ZERO;
        let base_rto = bounds.initial;
        Self {
            srtt: unknown,
            rttvar: unknown,
            min: Duration::MAX,
            base_rto,
            rounded: u64::MAX,
            back_off: 0,
            guessed: true,
        }
    }

    /// RFC 6298 equations 2.2 and 2.3, alpha = 1/8, beta = 1/4.
    pub fn sample(&mut self, rtt: Duration, bounds: &RtoBounds) {
        self.min = self.min.min(rtt);
        if std::mem::take(&mut self.guessed) {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        self.follow(bounds);
    }

    /// A bound of the round trip where Karn's rule forbids a sample: better than none until there is one.
    pub fn guess(&mut self, rtt: Duration, bounds: &RtoBounds) {
        if self.guessed {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
            self.follow(bounds);
        }
    }

    /// Timeout without back-off.
    pub fn base_rto(&self) -> Duration {
        self.base_rto
    }

    /// SRTT + max(tick, margin, 4 RTTVAR), rounded up to the tick, within the bounds.
    fn follow(&mut self, bounds: &RtoBounds) {
        let tick = bounds.tick.as_nanos().max(1);
        let exact = (self.srtt + (self.rttvar * 4).max(bounds.tick).max(bounds.margin)).as_nanos();
        // Mostly it is the same as before, and divisions are slow.
        if exact > self.rounded || self.rounded - exact >= tick {
            self.rounded = exact.div_ceil(tick) * tick;
            self.base_rto = Duration::from_nanos(self.rounded).max(bounds.floor).min(bounds.ceiling);
        }
    }

    /// Timeout now, back-off included (RFC 6298 rule 5.5).
    pub fn rto(&self, bounds: &RtoBounds) -> Duration {
        if self.back_off == 0 {
            return self.base_rto;
        }
        (self.base_rto * (1_u64 << self.back_off.min(32))).min(bounds.ceiling)
    }

    pub fn back_off(&mut self) {
        self.back_off += 1;
    }

    pub fn is_backed_off(&self) -> bool {
        self.back_off > 0
    }

    pub fn reset_back_off(&mut self) {
        self.back_off = 0;
    }

    /// After a timeout that was none, be more cautious (RFC 4015 step 11).
    pub fn widen(&mut self, rtt: Duration, bounds: &RtoBounds) {
        self.srtt = self.srtt.max(rtt);
        self.rttvar = self.rttvar.max(rtt / 2);
        self.follow(bounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: RtoBounds = RtoBounds {
        initial: Duration::from_secs(1),
        floor: Duration::from_millis(200),
        margin: Duration::ZERO,
        ceiling: Duration::from_secs(60),
        tick: Duration::from_millis(1),
    };

    #[test]
    fn first_sample_and_smoothing() {
        let mut rtt = RttEstimator::new(&BOUNDS);
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_secs(1));
        rtt.sample(Duration::from_millis(500), &BOUNDS);
        assert_eq!((rtt.srtt, rtt.rttvar), (Duration::from_millis(500), Duration::from_millis(250)));
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_millis(1500));
        rtt.sample(Duration::from_millis(580), &BOUNDS);
        assert_eq!(rtt.srtt, Duration::from_millis(510));
        assert_eq!(rtt.rttvar, Duration::from_nanos(207_500_000));
    }

    /// With a steady round trip the timeout tends to it (TCP-STAR equation 1), if there is no floor.
    #[test]
    fn a_steady_round_trip_leaves_no_margin() {
        let bounds = RtoBounds { floor: Duration::ZERO, ..BOUNDS };
        let mut rtt = RttEstimator::new(&bounds);
        (0..100).for_each(|_| rtt.sample(Duration::from_millis(500), &bounds));
        assert!(rtt.rto(&bounds).as_secs_f64() / 0.5 < 1.05);
    }

    /// What Linux does about it: the variation has the floor, not the timeout.
    #[test]
    fn a_margin_keeps_the_timeout_above_the_round_trip() {
        let margin = Duration::from_millis(200);
        let bounds = RtoBounds { margin, ..BOUNDS };
        let mut rtt = RttEstimator::new(&bounds);
        rtt.sample(Duration::from_millis(500), &bounds);
        assert_eq!(rtt.rto(&bounds), Duration::from_millis(1500), "a larger variation counts as ever");
        (0..100).for_each(|_| rtt.sample(Duration::from_millis(500), &bounds));
        assert_eq!(rtt.rto(&bounds), Duration::from_millis(700));
    }

    #[test]
    fn back_off_doubles_up_to_the_ceiling() {
        let mut rtt = RttEstimator::new(&BOUNDS);
        (0..3).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_secs(8));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_secs(60));
        rtt.reset_back_off();
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_secs(1));
    }
}
