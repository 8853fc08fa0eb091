//! The average loss interval and the throughput equation, RFC 5348 sections 3.1 and 5.

/// Section 3.1: rate in bytes per second of a TCP with `segment` bytes per segment, a round-trip time of `rtt_s` and a loss-event
/// rate of `p`. It assumes one ACK per segment and a timeout of four round trips.
pub fn throughput(segment: f64, rtt_s: f64, p: f64) -> f64 {
    let timeouts = 4.0 * rtt_s * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    segment / (rtt_s * libm::sqrt(2.0 * p / 3.0) + timeouts)
}

/// Section 5.4: weights of the intervals, the youngest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Segments between the starts of loss events: `I_0`, which is still open, and up to eight closed intervals.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Intervals {
    lengths: [f64; WEIGHTS.len() + 1],
    closed: usize,
}

impl Intervals {
    /// True before the first loss event.
    pub fn is_empty(&self) -> bool {
        self.closed == 0
    }

    /// Adds `segments` to the open interval.
    pub fn grow(&mut self, segments: f64) {
        self.lengths[0] += segments;
    }

    /// Sets the open interval.
    pub fn set_open(&mut self, segments: f64) {
        self.lengths[0] = segments;
    }

    /// Handles a loss event: the open interval closes, and the lost segment opens the next.
    pub fn close(&mut self) {
        self.lengths.rotate_right(1);
        self.lengths[0] = 1.0;
        self.closed = (self.closed + 1).min(WEIGHTS.len());
    }

    /// Handles the first loss event: an interval that yields the rate so far replaces the history (section 6.3.1).
    pub fn begin_with(&mut self, segments: f64) {
        self.lengths[0] = segments.max(1.0);
        self.close();
    }

    /// Section 5.4: `p`; zero before the first loss event.
    pub fn loss_event_rate(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let total = |from: usize| -> f64 {
            let lengths = &self.lengths[from..from + self.closed];
            lengths.iter().zip(WEIGHTS).map(|(length, weight)| length * weight).sum()
        };
        let weights: f64 = WEIGHTS[..self.closed].iter().sum();
        (weights / total(0).max(total(1)).max(f64::MIN_POSITIVE)).min(1.0)
    }
}

/// Returns the loss-event rate for which the equation yields `rate`, by bisection of its logarithm.
pub(super) fn inverse(segment: f64, rtt_s: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (libm::log(1e-8), 0.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if throughput(segment, rtt_s, libm::exp(middle)) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(open: f64) -> Intervals {
        Intervals { lengths: [open, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0], closed: 8 }
    }

    #[test]
    fn the_open_interval_counts_only_if_it_raises_the_mean() {
        assert!((full(5.0).loss_event_rate() - 6.0 / 280.0).abs() < 1e-9);
        assert!((full(500.0).loss_event_rate() - 6.0 / 710.0).abs() < 1e-9);
    }

    #[test]
    fn the_rate_before_the_first_loss_gives_the_first_interval() {
        let p = inverse(1000.0, 0.55, 62_500.0);
        assert!((p - 0.001_241_52).abs() < 1e-7, "{p}");
        let mut intervals = Intervals::default();
        assert_eq!(intervals.loss_event_rate(), 0.0);
        intervals.begin_with(1.0 / p);
        assert!((1.0 / intervals.loss_event_rate() - 805.5).abs() < 0.1);
    }

    #[test]
    fn a_loss_event_closes_an_interval() {
        let mut intervals = Intervals::default();
        intervals.begin_with(100.0);
        intervals.grow(49.0);
        intervals.close();
        assert!((intervals.loss_event_rate() - 2.0 / 150.0).abs() < 1e-9);
    }
}
