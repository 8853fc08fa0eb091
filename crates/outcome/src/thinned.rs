//! A time series of bounded size that keeps its extremes.

use bentpipe_base::Instant;

/// Points over time, thinned while they arrive. Each bucket of time keeps its first, minimum, maximum and last point.
#[derive(Clone, Debug)]
pub(crate) struct Thinned {
    buckets: Vec<Bucket>,
    most_buckets: usize,
    /// Width of a bucket in nanoseconds.
    width: u64,
}

type Point = (u64, f64);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Index of the bucket: time divided by width.
    index: u64,
    first: Point,
    least: Point,
    greatest: Point,
    last: Point,
}

impl Bucket {
    fn take(&mut self, later: Self) {
        if later.least.1 < self.least.1 {
            self.least = later.least;
        }
        if later.greatest.1 > self.greatest.1 {
            self.greatest = later.greatest;
        }
        self.last = later.last;
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let mut points = [self.first, self.least, self.greatest, self.last];
        points.sort_by_key(|point| point.0);
        let mut previous = None;
        points.into_iter().filter(move |point| previous.replace(*point) != Some(*point))
    }
}

impl Thinned {
    /// Makes a series with at most about four times `most_buckets` points; at least one bucket.
    pub fn new(most_buckets: usize) -> Self {
        Self { buckets: Vec::new(), most_buckets: most_buckets.max(1), width: 1 }
    }

    /// Adds a point; times must not decrease.
    pub fn push(&mut self, at: Instant, value: f64) {
        let point = (at.as_nanos(), value);
        let index = point.0 / self.width;
        let new = Bucket { index, first: point, least: point, greatest: point, last: point };
        match self.buckets.last_mut() {
            Some(bucket) if bucket.index == index => bucket.take(new),
            _ => self.buckets.push(new),
        }
        while self.buckets.len() > self.most_buckets {
            self.widen();
        }
    }

    /// Doubles the width by merging neighbouring buckets.
    fn widen(&mut self) {
        // The initial width is 1 ns: choose the right width in one step.
        let (first, last) = (self.buckets[0].first.0, self.buckets[self.buckets.len() - 1].last.0);
        let least = (last - first) / self.most_buckets as u64;
        self.width = (self.width * 2).max(least);
        for bucket in &mut self.buckets {
            bucket.index = bucket.first.0 / self.width;
        }
        self.buckets.dedup_by(|later, bucket| {
            let same = later.index == bucket.index;
            if same {
                bucket.take(*later);
            }
            same
        });
    }

    /// Returns the remaining points, with times in seconds.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let points = self.buckets.iter().flat_map(Bucket::points);
        points.map(|(time, value)| (Instant::from_nanos(time).as_secs_f64(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        let mut series = Thinned::new(10);
        for n in 0..10 {
            series.push(Instant::from_nanos(n * 1_000_000_000), n as f64);
        }
        assert_eq!(series.points(), (0..10).map(|n| (n as f64, n as f64)).collect::<Vec<_>>());
    }

    #[test]
    fn many_points_become_few_and_keep_ends_and_extremes() {
        let mut series = Thinned::new(100);
        for n in 0..100_000_u64 {
            let value = match n {
                31_415 => 99.0,
                27_182 => -99.0,
                _ => (n % 7) as f64,
            };
            series.push(Instant::from_nanos(n * 1_000), value);
        }
        let points = series.points();
        assert!((100..=400).contains(&points.len()), "{}", points.len());
        assert!(points.is_sorted_by_key(|point| point.0));
        assert_eq!((points[0].0, points[points.len() - 1].0), (0.0, 0.099_999));
        assert!(points.contains(&(0.031_415, 99.0)) && points.contains(&(0.027_182, -99.0)));
    }
}
