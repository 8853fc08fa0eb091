//! Transmission gaps: idle times of a transmitter in which another packet would have found room.

use bentpipe_base::Duration;

/// The gaps of one transmitter: times between two transmissions that are longer than the second of them takes. The time before the first
/// transmission and after the last is none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gaps {
    count: u64,
    sum: Duration,
    longest: Duration,
    /// Sum of the squares, in square nanoseconds.
    squares: f64,
}

impl Gaps {
    /// Notes that the transmitter was idle for a time before a transmission of some length.
    #[inline(always)]
    pub(crate) fn note(&mut self, idle: Duration, transmission: Duration) {
        if idle > transmission {
            self.count += 1;
            self.sum += idle;
            self.longest = self.longest.max(idle);
            let nanos = idle.as_nanos() as f64;
            self.squares += nanos * nanos;
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How long all of them were together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Their mean length; none without any.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / self.count)
    }

    /// Standard deviation of their lengths; none without any.
    pub fn deviation(&self) -> Option<Duration> {
        let mean = self.sum.as_nanos() as f64 / self.count.max(1) as f64;
        let variance = self.squares / self.count.max(1) as f64 - mean * mean;
        (self.count > 0).then(|| Duration::from_secs_f64(variance.max(0.0).sqrt() * 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_the_gaps_that_count() {
        let ms = Duration::from_millis;
        let mut gaps = Gaps::default();
        assert_eq!((gaps.mean(), gaps.deviation()), (None, None));
        for idle in [2, 1, 4, 0, 4, 4, 5, 5, 7, 9] {
            gaps.note(ms(idle), ms(1));
        }
        assert_eq!((gaps.count(), gaps.sum(), gaps.longest()), (8, ms(40), ms(9)));
        assert_eq!((gaps.mean(), gaps.deviation()), (Some(ms(5)), Some(ms(2))));
    }
}
