//! Fewer points, the same picture.

/// At most about `most` of `points` (sorted by time): of each equal slice of time the first, lowest, highest and last
/// point, so that every peak and every dip stays.
pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() <= most {
        return points.to_vec();
    }
    let slices = (most / 4).max(1);
    let width = (last.0 - first.0) / slices as f64;
    let slice_of = |point: &(f64, f64)| ((point.0 - first.0) / width) as usize;
    points.chunk_by(|a, b| slice_of(a) == slice_of(b)).flat_map(extremes).collect()
}

fn extremes(slice: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_height = |a: &usize, b: &usize| slice[*a].1.total_cmp(&slice[*b].1);
    let lowest = (0..slice.len()).min_by(by_height);
    let highest = (0..slice.len()).max_by(by_height);
    let mut kept: Vec<usize> =
        [Some(0), lowest, highest, slice.len().checked_sub(1)].into_iter().flatten().collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|index| slice[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_dips_stay() {
        let mut points: Vec<_> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 10))).collect();
        points[77_777].1 = 500.0;
        points[33_333].1 = -500.0;
        let kept = thin(&points, 400);
        assert!(kept.len() <= 410, "{}", kept.len());
        assert!(kept.contains(&points[77_777]) && kept.contains(&points[33_333]));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn few_points_stay_as_they_are() {
        assert_eq!(thin(&[], 10), []);
        assert_eq!(thin(&[(1.0, 2.0), (1.0, 3.0)], 10), [(1.0, 2.0), (1.0, 3.0)]);
        assert_eq!(thin(&[(1.0, 2.0); 50], 10).len(), 2, "many at one moment");
    }
}
