//! Distributions of delays, from counts in logarithmic buckets.

use bentpipe_base::Duration;
use serde::Serialize;

/// Buckets per doubling of the delay: the middle of a bucket is within 0.2 % of every delay in it.
const PER_OCTAVE: usize = 256;
/// Number of octaves above [`PER_OCTAVE`] units of 1.024 µs, up to 35,000 s. Below, each unit has a bucket.
const OCTAVES: usize = 27;
const BUCKETS: usize = PER_OCTAVE * (OCTAVES + 1);
const UNIT_BITS: u32 = 10;

/// Counts of delays. Adding a delay allocates nothing; it happens for every packet, so minimum and maximum come from the counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DelayHistogram {
    counts: Box<[u64; BUCKETS]>,
    sum_ns: u64,
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), sum_ns: 0 }
    }
}

/// Returns the bucket of a delay.
#[inline]
fn bucket(delay: Duration) -> usize {
    let units = delay.as_nanos() >> UNIT_BITS;
    let octave = (u64::BITS - (units / PER_OCTAVE as u64).leading_zeros()) as usize;
    let place = (units >> octave.saturating_sub(1)) as usize;
    let index = if octave == 0 { place } else { PER_OCTAVE * octave + place - PER_OCTAVE };
    index.min(BUCKETS - 1)
}

/// Returns the middle of a bucket.
fn middle(index: usize) -> Duration {
    let octave = index / PER_OCTAVE;
    let (place, shift) = match octave {
        0 => (index, 0),
        _ => (index % PER_OCTAVE + PER_OCTAVE, octave as u32 - 1),
    };
    let width = 1_u64 << (shift + UNIT_BITS);
    Duration::from_nanos(place as u64 * width + width / 2)
}

impl DelayHistogram {
    /// Counts a delay.
    #[inline]
    pub fn add(&mut self, delay: Duration) {
        self.counts[bucket(delay)] += 1;
        self.sum_ns += delay.as_nanos();
    }

    /// Adds the delays of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts.iter()).for_each(|(mine, count)| *mine += count);
        self.sum_ns += other.sum_ns;
    }

    /// Removes delays that were counted earlier.
    pub fn remove(&mut self, earlier: &Self) {
        self.counts.iter_mut().zip(earlier.counts.iter()).for_each(|(mine, count)| *mine -= count);
        self.sum_ns -= earlier.sum_ns;
    }

    /// Returns the delay of the sample with this rank, from 1.
    fn ranked(&self, rank: u64) -> Duration {
        let mut below = 0;
        let index = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        index.map_or(Duration::ZERO, middle)
    }

    /// Returns mean, percentiles, minimum and maximum; `None` without samples.
    pub fn outcome(&self) -> Option<DelayOutcome> {
        let samples = self.counts.iter().sum::<u64>();
        let ranked = |rank: u64| self.ranked(rank).as_millis_f64();
        let percentile = |share: f64| ranked((share * samples as f64).ceil() as u64);
        (samples > 0).then(|| DelayOutcome {
            samples,
            mean_ms: self.sum_ns as f64 / samples as f64 / 1e6,
            min_ms: ranked(1),
            p50_ms: percentile(0.5),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
            max_ms: ranked(samples),
        })
    }
}

/// Distribution of a delay.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct DelayOutcome {
    /// Number of samples.
    pub samples: u64,
    /// Mean in ms.
    pub mean_ms: f64,
    /// Minimum in ms.
    pub min_ms: f64,
    /// Median in ms.
    pub p50_ms: f64,
    /// 95th percentile in ms.
    pub p95_ms: f64,
    /// 99th percentile in ms.
    pub p99_ms: f64,
    /// Maximum in ms.
    pub max_ms: f64,
}

/// Delays of the flows of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// Round-trip samples of the senders.
    pub rtt: DelayHistogram,
    /// Smoothed round-trip time after each of these samples.
    pub smoothed_rtt: DelayHistogram,
    /// Time of each data packet from its sender to its receiver.
    pub one_way_delay: DelayHistogram,
}

impl Delays {
    /// Adds the delays of other flows.
    pub fn merge(&mut self, other: &Self) {
        self.rtt.merge(&other.rtt);
        self.smoothed_rtt.merge(&other.smoothed_rtt);
        self.one_way_delay.merge(&other.one_way_delay);
    }

    /// Removes delays that were counted earlier.
    pub fn remove(&mut self, earlier: &Self) {
        self.rtt.remove(&earlier.rtt);
        self.smoothed_rtt.remove(&earlier.smoothed_rtt);
        self.one_way_delay.remove(&earlier.one_way_delay);
    }

    /// Returns the three distributions.
    pub fn outcome(&self) -> DelayOutcomes {
        DelayOutcomes {
            rtt: self.rtt.outcome(),
            smoothed_rtt: self.smoothed_rtt.outcome(),
            one_way_delay: self.one_way_delay.outcome(),
        }
    }
}

/// Distributions of the delays of some flows; each is absent without samples.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct DelayOutcomes {
    /// Round-trip samples of the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<DelayOutcome>,
    /// Smoothed round-trip time after each of these samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<DelayOutcome>,
    /// Time of each data packet from its sender to its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_delay: Option<DelayOutcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_is_in_it_and_near_every_delay_of_it() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(middle(index)), index);
        }
        for ns in (0..60).map(|octave| 3_u64 << octave).filter(|ns| *ns < 30_000_000_000_000) {
            let error = middle(bucket(Duration::from_nanos(ns))).as_nanos().abs_diff(ns);
            assert!(error <= ns / 512 + 1024, "{ns}: {error}");
        }
    }

    #[test]
    fn percentiles_of_one_to_a_hundred_milliseconds() {
        let mut delays = DelayHistogram::default();
        (1..=100).for_each(|ms| delays.add(Duration::from_millis(ms)));
        let of = delays.outcome().unwrap();
        assert_eq!((of.samples, of.mean_ms), (100, 50.5));
        let ends = [(of.min_ms, 1.0), (of.max_ms, 100.0)];
        for (found, exact) in
            [(of.p50_ms, 50.0), (of.p95_ms, 95.0), (of.p99_ms, 99.0)].into_iter().chain(ends)
        {
            assert!((found / exact - 1.0_f64).abs() < 0.004, "{found} is not {exact}");
        }
        assert_eq!(DelayHistogram::default().outcome(), None);
    }

    #[test]
    fn what_was_counted_earlier_is_removed() {
        let mut all = DelayHistogram::default();
        (1..=10).for_each(|_| all.add(Duration::from_millis(900)));
        let earlier = all.clone();
        (1..=10).for_each(|_| all.add(Duration::from_millis(100)));
        all.remove(&earlier);
        let of = all.outcome().unwrap();
        assert_eq!((of.samples, of.mean_ms), (10, 100.0));
        assert!((of.max_ms / 100.0 - 1.0).abs() < 0.004 && (of.min_ms / 100.0 - 1.0).abs() < 0.004, "{of:?}");
    }
}
