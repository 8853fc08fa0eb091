//! Transmission gaps: idle times of a transmitter that are long enough for another packet.

use bentpipe_base::Duration;

/// Gaps of one transmitter: idle times between two transmissions that are longer than the second transmission. Times before the
/// first and after the last transmission do not count.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gaps {
    count: u64,
    sum: Duration,
    longest: Duration,
    /// Sum of squared lengths, in square nanoseconds.
    squares: f64,
}

impl Gaps {
    /// Records an idle time before a transmission of some length.
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

    /// Returns the number of gaps.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total length of the gaps.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the maximum length.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the mean length; `None` without gaps.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / self.count)
    }

    /// Returns the standard deviation of the lengths; `None` without gaps.
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
