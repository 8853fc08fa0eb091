//! Round-trip time (RFC 9002 section 5.3). The samples of a flight share the weight of one (RFC 7323 appendix G), as in the TCP
//! engine: algorithms that filter delays over a smoothed round trip oscillate if it follows each sample.

use bentpipe_base::Duration;

/// Round-trip time before the first sample (RFC 9002 section 6.2.2).
const INITIAL: Duration = Duration::from_millis(333);

/// Least margin of a timeout (RFC 9002 section 6.1.2: kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Smoothed round-trip time, its variation and its minimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed: Duration,
    pub variation: Duration,
    /// Smallest sample; [`Duration::MAX`] before the first.
    pub min: Duration,
}

impl Default for RoundTrip {
    fn default() -> Self {
        Self { smoothed: Duration::ZERO, variation: Duration::ZERO, min: Duration::MAX }
    }
}

impl RoundTrip {
    /// Takes the sample of an ACK that covers this share of the flight.
    pub fn sample(&mut self, rtt: Duration, share: f64) {
        self.min = self.min.min(rtt);
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation) = (rtt, rtt / 2);
            return;
        }
        let deviation = self.smoothed.abs_diff(rtt);
        let (alpha, beta) = (share / 8.0, share / 4.0);
        self.variation = self.variation.mul_f64(1.0 - beta) + deviation.mul_f64(beta);
        self.smoothed = self.smoothed.mul_f64(1.0 - alpha) + rtt.mul_f64(alpha);
    }

    /// Returns the smoothed round-trip time, or the usual guess before the first sample.
    pub fn smoothed_or_initial(&self) -> Duration {
        if self.smoothed.is_zero() { INITIAL } else { self.smoothed }
    }

    /// Returns the timeout of RFC 9002 section 6.2.1, without the peer's maximum ACK delay.
    pub fn timeout(&self) -> Duration {
        if self.smoothed.is_zero() {
            return INITIAL + (INITIAL / 2) * 4;
        }
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_smoothed_by_an_eighth_and_a_quarter() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(), Duration::from_millis(999));
        round_trip.sample(Duration::from_millis(500), 1.0);
        assert_eq!(round_trip.timeout(), Duration::from_millis(1500));
        round_trip.sample(Duration::from_millis(580), 1.0);
        assert_eq!(round_trip.smoothed, Duration::from_millis(510));
        assert_eq!(round_trip.variation, Duration::from_nanos(207_500_000));
        assert_eq!(round_trip.min, Duration::from_millis(500));
    }

    #[test]
    fn the_samples_of_a_flight_share_its_weight() {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(Duration::from_millis(500), 1.0);
        (0..100).for_each(|_| round_trip.sample(Duration::from_millis(580), 0.01));
        let smoothed = round_trip.smoothed.as_millis_f64();
        assert!((509.0..=510.0).contains(&smoothed), "{smoothed}");
    }
}
