//! BBR's test for a full pipe: the sending rate rises but the delivery rate no longer does.

/// Ratio by which the delivery rate must grow in a round to count as growth.
const GROWTH: f64 = 1.25;
/// Rounds without growth that make a plateau.
const ROUNDS: u32 = 3;

/// Detects three consecutive rounds in which the delivery rate grew by less than 25 %.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Plateau {
    /// Highest delivery rate so far, in bytes per second.
    best: f64,
    rounds: u32,
}

impl Plateau {
    /// Starts a search with `best` bytes per second as the rate to exceed.
    pub fn above(best: f64) -> Self {
        Self { best, rounds: 0 }
    }

    /// Handles the end of a round at `rate` bytes per second that the application did not limit.
    pub fn round(&mut self, rate: f64) {
        if rate >= self.best * GROWTH {
            *self = Self::above(rate);
        } else {
            self.rounds += 1;
        }
    }

    /// True if the delivery rate has stopped growing.
    pub fn is_reached(&self) -> bool {
        self.rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more() {
        let mut plateau = Plateau::default();
        for rate in [100.0, 200.0, 240.0, 249.0] {
            plateau.round(rate);
            assert!(!plateau.is_reached());
        }
        plateau.round(249.0);
        assert!(plateau.is_reached());
    }

    #[test]
    fn growth_begins_the_count_anew() {
        let mut plateau = Plateau::above(100.0);
        for rate in [100.0, 100.0, 125.0, 130.0, 130.0] {
            plateau.round(rate);
        }
        assert!(!plateau.is_reached());
    }
}
