//! Whether a sender that sends ever faster still gets more through: BBR's estimate that the pipe is full.

/// Growth of the delivery rate that counts as growth.
const GROWTH: f64 = 1.25;
/// Rounds without growth that make a plateau.
const ROUNDS: u32 = 3;

/// Looks for three rounds in which the delivery rate did not grow by a quarter.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Plateau {
    /// The rate to beat, in bytes per second.
    best: f64,
    rounds: u32,
}

impl Plateau {
    /// A search that begins at `best` bytes per second.
    pub fn above(best: f64) -> Self {
        Self { best, rounds: 0 }
    }

    /// A round that was not limited by the application ended at `rate` bytes per second.
    pub fn round(&mut self, rate: f64) {
        if rate >= self.best * GROWTH {
            *self = Self::above(rate);
        } else {
            self.rounds += 1;
        }
    }

    /// The rate has stopped growing.
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
