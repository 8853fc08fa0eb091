//! Round-trip time (RFC 9002 section 5.3): each sample counts in full.

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
    pub fn sample(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation) = (rtt, rtt / 2);
            return;
        }
        let deviation = self.smoothed.abs_diff(rtt);
        self.variation = self.variation - self.variation / 4 + deviation / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + rtt / 8;
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
        round_trip.sample(Duration::from_millis(500));
        assert_eq!(round_trip.timeout(), Duration::from_millis(1500));
        round_trip.sample(Duration::from_millis(580));
        assert_eq!(round_trip.smoothed, Duration::from_millis(510));
        assert_eq!(round_trip.variation, Duration::from_nanos(207_500_000));
        assert_eq!(round_trip.min, Duration::from_millis(500));
    }
}
