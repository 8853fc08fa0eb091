//! Round-trip time and retransmission timeout (RFC 6298).

use bentpipe_base::Duration;

use crate::RtoBounds;

/// The weight of a sample is a multiple of 2^-31.
const WEIGHT_BITS: u32 = 31;

/// Least timeout when data transmission begins after a lost SYN (RFC 6298 rule 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// A sample for the driver is a multiple of 2^10 ns: a connection has no room for more bits.
const UNTAKEN_BITS: u32 = 10;

/// Part of a flight covered by an ACK, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coverage {
    pub acked: u32,
    pub flight: u32,
}

/// Smoothed RTT, its variation, and the resulting timeout.
// The fields that algorithms read are not in the order of `Path`. Otherwise the compiler would copy two at once, and a processor
// that has just written them one by one would stall (store forwarding).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RttEstimator {
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Minimum sample; [`Duration::MAX`] before the first.
    pub min: Duration,
    /// Timeout without back-off, before the bounds are applied, in nanoseconds.
    rounded: u64,
    pub rttvar: Duration,
    /// Timeout without back-off, kept because every ACK restarts the timer.
    base_rto: Duration,
    /// Consecutive doublings of the timeout.
    back_off: u8,
    /// True before the first sample: the values are guesses that it replaces.
    guessed: bool,
    /// Sample that the driver has not taken, in units of 2^[`UNTAKEN_BITS`] ns; zero without one.
    untaken: u32,
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
            untaken: 0,
        }
    }

    /// Adds a sample by RFC 6298 equations 2.2 and 2.3. Their alpha = 1/8 and beta = 1/4 assume one sample per round trip.
    /// Several samples share them by the part of the flight that each ACK covers (RFC 7323 section 4.2 and appendix G). In Linux
    /// each sample moves the smoothed RTT by 1/8. There the variation falls as slowly as here, but a sample above the smoothed
    /// RTT raises it at once to half of the difference.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, coverage: Coverage, bounds: &RtoBounds) {
        self.min = self.min.min(rtt);
        self.untaken = u32::try_from(rtt.as_nanos() >> UNTAKEN_BITS).unwrap_or(u32::MAX).max(1);
        if std::mem::take(&mut self.guessed) {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            let acked = coverage.acked.max(1);
            // Fixed-point arithmetic is faster here than floating point, and this runs for every ACK.
            let weight = (u64::from(acked) << WEIGHT_BITS) / u64::from(coverage.flight.max(acked));
            let deviation = self.srtt.abs_diff(rtt);
            self.rttvar = towards(self.rttvar, deviation, weight, WEIGHT_BITS + 2);
            if bounds.each_sample && rtt > self.srtt {
                self.rttvar = self.rttvar.max(deviation / 2);
            }
            let weight = if bounds.each_sample { 1 << WEIGHT_BITS } else { weight };
            self.srtt = towards(self.srtt, rtt, weight, WEIGHT_BITS + 3);
        }
        self.update_timeout(bounds);
    }

    /// Uses a bound of the round trip, if there is no sample yet and Karn's rule forbids this one.
    pub fn guess(&mut self, rtt: Duration, bounds: &RtoBounds) {
        if self.guessed {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
            self.update_timeout(bounds);
        }
    }

    /// Lengthens the timeout until the next sample, because a SYN was lost (RFC 6298 rule 5.7).
    pub fn lost_syn(&mut self, bounds: &RtoBounds) {
        self.base_rto = self.base_rto.max(AFTER_LOST_SYN.min(bounds.ceiling));
        self.rounded = u64::MAX;
    }

    /// Returns the latest sample once, in whole units of 1.024 µs.
    #[inline]
    pub fn take_sample(&mut self) -> Option<Duration> {
        let sample = std::mem::take(&mut self.untaken);
        (sample != 0).then(|| Duration::from_nanos(u64::from(sample) << UNTAKEN_BITS))
    }

    /// Returns the timeout without back-off.
    pub fn base_rto(&self) -> Duration {
        self.base_rto
    }

    /// Computes SRTT + max(tick, margin, 4 RTTVAR), rounded up to the tick, within the bounds.
    #[inline]
    fn update_timeout(&mut self, bounds: &RtoBounds) {
        let tick = bounds.tick.as_nanos().max(1);
        let exact = (self.srtt + (self.rttvar * 4).max(bounds.tick).max(bounds.margin)).as_nanos();
        // The rounded timeout rarely changes, and divisions are slow.
        if exact > self.rounded || self.rounded - exact >= tick {
            self.rounded = exact.div_ceil(tick) * tick;
            self.base_rto = Duration::from_nanos(self.rounded).max(bounds.floor).min(bounds.ceiling);
        }
    }

    /// Returns the present timeout, back-off included (RFC 6298 rule 5.5).
    pub fn rto(&self, bounds: &RtoBounds) -> Duration {
        if self.back_off == 0 {
            return self.base_rto;
        }
        (self.base_rto * (1_u64 << self.back_off.min(32))).min(bounds.ceiling)
    }

    /// Returns the duration of `retries` timeouts with back-off. No connection is given up earlier (RFC 9293 section 3.8.3), even
    /// if its algorithm makes no back-off.
    pub fn patience(&self, retries: u32, bounds: &RtoBounds) -> Duration {
        let timeout = |n: u32| (self.base_rto * (1_u64 << n.min(32))).min(bounds.ceiling);
        let doubling = retries.min(33);
        (0..doubling).map(timeout).fold(Duration::ZERO, |sum, next| sum + next)
            + bounds.ceiling * u64::from(retries - doubling)
    }

    pub fn back_off(&mut self) {
        self.back_off = self.back_off.saturating_add(1);
    }

    pub fn is_backed_off(&self) -> bool {
        self.back_off > 0
    }

    pub fn reset_back_off(&mut self) {
        self.back_off = 0;
    }

    /// Lengthens the timeout after a spurious one (RFC 4015 step 11).
    pub fn widen(&mut self, rtt: Duration, bounds: &RtoBounds) {
        self.srtt = self.srtt.max(rtt);
        self.rttvar = self.rttvar.max(rtt / 2);
        self.update_timeout(bounds);
    }
}

/// Returns `from` moved towards `to` by `numerator` / 2^`bits` of their difference.
fn towards(from: Duration, to: Duration, numerator: u64, bits: u32) -> Duration {
    let step = (u128::from(from.abs_diff(to).as_nanos()) * u128::from(numerator)) >> bits;
    let step = Duration::from_nanos(step as u64);
    if to > from { from + step } else { from - step }
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
        each_sample: false,
        restart_on_sacks: false,
    };

    /// ACK of the only segment in flight.
    const ALONE: Coverage = Coverage { acked: 1, flight: 1 };

    /// ACK of `acked` segments of a flight.
    fn part(acked: u32, flight: u32) -> Coverage {
        Coverage { acked, flight }
    }

    /// When a queue fills within a round trip, Linux's smoothed RTT is near the newest sample; that of RFC 7323 lags behind. The
    /// variation of both is that of whole flights.
    #[test]
    fn each_sample_may_count_in_full() {
        let after = |each_sample| {
            let bounds = RtoBounds { each_sample, ..BOUNDS };
            let mut estimator = RttEstimator::new(&bounds);
            estimator.sample(Duration::from_millis(500), part(1, 10), &bounds);
            for _ in 0..100 {
                estimator.sample(Duration::from_millis(1000), part(1, 100), &bounds);
            }
            [estimator.srtt, estimator.rttvar].map(|time| time.as_millis_f64().round())
        };
        let ([lags, _], [follows, varies]) = (after(false), after(true));
        assert_eq!((lags, follows), (559.0, 1000.0));
        assert!((190.0..215.0).contains(&varies), "{varies} ms: a quarter less after a flight");
        let bounds = RtoBounds { each_sample: true, ..BOUNDS };
        let mut estimator = RttEstimator::new(&bounds);
        estimator.sample(Duration::from_millis(100), part(1, 10), &bounds);
        estimator.sample(Duration::from_millis(500), part(1, 10), &bounds);
        assert_eq!(estimator.rttvar.as_millis_f64(), 200.0, "half of what it is longer");
    }

    #[test]
    fn first_sample_and_smoothing() {
        let mut rtt = RttEstimator::new(&BOUNDS);
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_secs(1));
        rtt.sample(Duration::from_millis(500), ALONE, &BOUNDS);
        assert_eq!((rtt.srtt, rtt.rttvar), (Duration::from_millis(500), Duration::from_millis(250)));
        assert_eq!(rtt.rto(&BOUNDS), Duration::from_millis(1500));
        rtt.sample(Duration::from_millis(580), ALONE, &BOUNDS);
        assert_eq!(rtt.srtt, Duration::from_millis(510));
        assert_eq!(rtt.rttvar, Duration::from_nanos(207_500_000));
    }

    /// The samples of a window together weigh as much as one sample of the whole window. After a round trip of 500 ms and one of
    /// 580 ms, the estimate is near 510 ms, and RTTVAR near 207.5 ms.
    #[test]
    fn the_samples_of_a_round_trip_share_its_weight() {
        for covered in [1, 2, 10, 50] {
            let mut rtt = RttEstimator::new(&BOUNDS);
            rtt.sample(Duration::from_millis(500), ALONE, &BOUNDS);
            (0..100 / covered)
                .for_each(|_| rtt.sample(Duration::from_millis(580), part(covered, 100), &BOUNDS));
            let (srtt, rttvar) = (rtt.srtt.as_secs_f64(), rtt.rttvar.as_secs_f64());
            assert!((0.509..=0.510).contains(&srtt), "{covered} of 100 segments: {srtt}");
            assert!((0.207..=0.212).contains(&rttvar), "{covered} of 100 segments: {rttvar}");
        }
    }

    /// A peer that acknowledges more than was in flight cannot exceed the full weight.
    #[test]
    fn no_sample_weighs_more_than_one() {
        let mut rtt = RttEstimator::new(&BOUNDS);
        rtt.sample(Duration::from_millis(500), ALONE, &BOUNDS);
        rtt.sample(Duration::from_millis(580), part(7, 0), &BOUNDS);
        assert_eq!(rtt.srtt, Duration::from_millis(510));
        rtt.sample(Duration::from_millis(510), part(0, 0), &BOUNDS);
        assert_eq!(rtt.srtt, Duration::from_millis(510));
    }

    /// With a constant round trip and without a minimum, the timeout converges to the round-trip time (TCP-STAR equation 1).
    #[test]
    fn a_steady_round_trip_leaves_no_margin() {
        let bounds = RtoBounds { floor: Duration::ZERO, ..BOUNDS };
        let mut rtt = RttEstimator::new(&bounds);
        (0..100).for_each(|_| rtt.sample(Duration::from_millis(500), ALONE, &bounds));
        assert!(rtt.rto(&bounds).as_secs_f64() / 0.5 < 1.05);
    }

    /// As in Linux, the variation has a minimum, not the timeout.
    #[test]
    fn a_margin_keeps_the_timeout_above_the_round_trip() {
        let margin = Duration::from_millis(200);
        let bounds = RtoBounds { margin, ..BOUNDS };
        let mut rtt = RttEstimator::new(&bounds);
        rtt.sample(Duration::from_millis(500), ALONE, &bounds);
        assert_eq!(rtt.rto(&bounds), Duration::from_millis(1500), "a larger variation counts as ever");
        (0..100).for_each(|_| rtt.sample(Duration::from_millis(500), ALONE, &bounds));
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
