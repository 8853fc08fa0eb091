//! Packet pairs and trains. The bottleneck spaces back-to-back segments, and the ACKs preserve that spacing.
//!
//! S. Keshav, "A Control-Theoretic Approach to Flow Control", ACM SIGCOMM 1991; J. C. Hoe, "Improving the Start-up Behavior
//! of a Congestion Control Scheme for TCP", ACM SIGCOMM 1996.

use bentpipe_base::{Duration, Instant};

/// Maximum number of gaps measured per train; later ones are ignored.
const MAX_GAPS: usize = 5;

/// ACKs of segments that left back to back.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Train {
    last: Option<Instant>,
    /// Time per segment between consecutive ACKs; the first `count` are valid and in ascending order.
    gaps: [Duration; MAX_GAPS],
    count: usize,
}

impl Train {
    /// Handles an ACK of `segments` segments of the train. Two ACKs at the same instant were compressed on the path and
    /// yield no gap.
    pub fn arrived(&mut self, now: Instant, segments: u32) {
        let Some(before) = self.last.replace(now) else { return };
        let gap = now.since(before) / u64::from(segments.max(1));
        if !gap.is_zero() && self.count < MAX_GAPS {
            self.gaps[self.count] = gap;
            self.count += 1;
            self.gaps[..self.count].sort_unstable();
        }
    }

    /// Returns the median time per segment at the bottleneck. The median tolerates one disturbed gap.
    pub fn gap(&self) -> Option<Duration> {
        let upper = self.gaps[..self.count].get(self.count / 2)?;
        let lower = self.gaps[(self.count - 1) / 2];
        Some((*upper + lower) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(arrivals: &[(u64, u32)]) -> Train {
        let mut train = Train::default();
        for (micros, segments) in arrivals {
            train.arrived(Instant::ZERO + Duration::from_micros(*micros), *segments);
        }
        train
    }

    #[test]
    fn the_gap_is_the_median() {
        assert_eq!(train(&[(0, 1), (1660, 1), (3330, 1)]).gap(), Some(Duration::from_micros(1665)));
        assert_eq!(
            train(&[(0, 1), (1660, 1), (9000, 1), (10_650, 1)]).gap(),
            Some(Duration::from_micros(1660))
        );
    }

    #[test]
    fn a_delayed_ack_covers_several() {
        assert_eq!(train(&[(0, 2), (3320, 2)]).gap(), Some(Duration::from_micros(1660)));
    }

    #[test]
    fn one_ack_and_compressed_acks_measure_nothing() {
        assert_eq!(train(&[(0, 1)]).gap(), None);
        assert_eq!(train(&[(5, 1), (5, 1)]).gap(), None);
    }
}
