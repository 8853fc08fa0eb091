//! Times of reconfigurations: a global grid of a fixed period.

use bentpipe_base::{Duration, Instant};

/// Instants `offset + k period`. A period of zero has none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Grid {
    period: Duration,
    offset: Duration,
}

impl Grid {
    /// Makes a grid of a period and an offset in seconds, both finite and not negative. The offset counts modulo the period.
    pub fn new(period_s: f64, offset_s: f64) -> Self {
        let period = Duration::from_secs_f64(period_s);
        let offset = Duration::from_secs_f64(offset_s).as_nanos().checked_rem(period.as_nanos());
        Self { period, offset: Duration::from_nanos(offset.unwrap_or(0)) }
    }

    /// Returns the first instant of the grid at `now` or later; `None` without a period.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let first = Instant::ZERO + self.offset;
        let past = now.since(first).as_nanos();
        let number = (!self.period.is_zero()).then(|| past.div_ceil(self.period.as_nanos()))?;
        Some(first + Duration::from_nanos(number * self.period.as_nanos()))
    }

    /// True if an instant of the grid is at most `margin` after `now`.
    pub fn is_near(&self, now: Instant, margin: Duration) -> bool {
        self.next(now).is_some_and(|next| next.since(now) <= margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_12_27_42_and_57_of_each_minute() {
        let at = |seconds: f64| Instant::ZERO + Duration::from_secs_f64(seconds);
        for offset_s in [12.0, 27.0] {
            let grid = Grid::new(15.0, offset_s);
            assert_eq!(grid.next(at(0.0)), Some(at(12.0)));
            assert_eq!(grid.next(at(12.0)), Some(at(12.0)));
            assert_eq!(grid.next(at(12.5)), Some(at(27.0)));
            assert!(grid.is_near(at(56.95), Duration::from_millis(100)));
            assert!(!grid.is_near(at(57.05), Duration::from_millis(100)));
        }
        assert_eq!(Grid::new(0.0, 12.0).next(at(1.0)), None);
    }
}
