//! Detection of a round-trip time near its maximum, to distinguish congestion from transmission errors.
//!
//! S. Cen, P. C. Cosman, G. M. Voelker, "End-to-End Differentiation of Congestion and Wireless Losses", IEEE/ACM Transactions on Networking
//! 11(5), 2003: spike-train. WestwoodBR uses it (`papers/westwood-br.md`).

use bentpipe_base::Duration;

/// Thresholds of the start and end of a spike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// A spike begins above this fraction of the range between minimum and maximum round-trip time.
    pub begins: f64,
    /// A spike ends below this fraction.
    pub ends: f64,
    /// Minimum range in seconds; a smaller range has no spikes.
    pub least_range_s: f64,
}

impl Bounds {
    /// Thresholds of the WestwoodBR paper. A range below 5 ms is clock noise, not queueing.
    pub const WESTWOOD_BR: Self = Self { begins: 0.4, ends: 0.05, least_range_s: 0.005 };
}

/// State of the spike detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spike {
    pub rtt_max: Duration,
    pub high: bool,
}

impl Spike {
    pub const NONE: Self = Self { rtt_max: Duration::ZERO, high: false };

    /// Handles a round-trip sample.
    pub fn sample(&mut self, rtt: Duration, rtt_min: Duration, bounds: &Bounds) {
        self.rtt_max = self.rtt_max.max(rtt);
        let range = self.rtt_max.saturating_sub(rtt_min);
        if range < Duration::from_secs_f64(bounds.least_range_s) {
            self.high = false;
        } else if rtt > rtt_min + range.mul_f64(bounds.begins) {
            self.high = true;
        } else if rtt < rtt_min + range.mul_f64(bounds.ends) {
            self.high = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_spike_begins_high_and_ends_low() {
        let mut spike = Spike { rtt_max: ms(900), high: false };
        let states = [510, 650, 661, 600, 521, 519].map(|rtt| {
            spike.sample(ms(rtt), ms(500), &Bounds::WESTWOOD_BR);
            spike.high
        });
        assert_eq!(states, [false, false, true, true, true, false], "begins at 660 ms, ends at 520 ms");
    }

    #[test]
    fn a_path_without_a_queue_has_no_spikes() {
        let mut spike = Spike::NONE;
        spike.sample(ms(504), ms(500), &Bounds::WESTWOOD_BR);
        assert!(!spike.high);
    }
}
