//! Neighbours of satellites in two planes.

use core::f64::consts::TAU;

/// Preference between two neighbours at equal distance, as a part of the spacing within a plane.
const PREFERENCE: f64 = 0.01;

/// Tolerance of a plane's phase, as a part of the spacing: SGP4 moves satellites by less.
const NOISE: f64 = 0.05;

/// Phases of a plane's satellites in ascending order, in radians from 0 to 2 pi.
type Phases<'a> = &'a [f64];

/// Returns pairs of neighbours in two planes, as indices. Each satellite is in at most one pair, and the pairs keep the order along
/// both orbits. The sum of the squared phase differences is minimal.
///
/// If planes are offset by half a spacing, each satellite has two neighbours at equal distance. Then the phases of both planes,
/// measured from `reference`, decide for all satellites of the plane together.
pub(crate) fn neighbours(west: Phases<'_>, east: Phases<'_>, reference: Phases<'_>) -> Vec<(usize, usize)> {
    let most = west.len().max(east.len());
    let ahead = offset(east, reference) > offset(west, reference);
    let preferred = PREFERENCE * TAU / most as f64 * if ahead { 1.0 } else { -1.0 };
    if west.len() <= east.len() {
        place(west, east, preferred).into_iter().enumerate().collect()
    } else {
        let places = place(east, west, -preferred).into_iter().enumerate();
        let mut pairs: Vec<_> = places.map(|(east, west)| (west, east)).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// Returns the phase of a plane after that of `reference`, as a part of the spacing, from `-NOISE` to `1 - NOISE`.
fn offset(plane: Phases<'_>, reference: Phases<'_>) -> f64 {
    let parts = mean_phase(plane) - mean_phase(reference) + NOISE;
    parts - libm::floor(parts) - NOISE
}

/// Returns the mean phase of a plane's satellites within the spacing, as a part of it.
fn mean_phase(plane: Phases<'_>) -> f64 {
    let turns = |phase: &f64| libm::sincos(phase * plane.len() as f64);
    let (sin, cos) = plane.iter().map(turns).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    libm::atan2(sin, cos) / TAU
}

/// Returns the index in `large` for each satellite of `small`. With the first one at a fixed index, the others follow at the
/// next indices, with gaps. Dynamic programming finds the best gaps for each index of the first one.
fn place(small: Phases<'_>, large: Phases<'_>, preferred: f64) -> Vec<usize> {
    let gaps = large.len() - small.len() + 1;
    let cost = |at: usize, index: usize| {
        let apart = large[at % large.len()] - small[index] - preferred;
        let apart = apart - TAU * libm::floor(apart / TAU + 0.5);
        apart * apart
    };
    let mut best = (f64::INFINITY, Vec::new());
    for first in 0..large.len() {
        // For each satellite and number of gaps before it: the least sum so far, and the gaps before its predecessor.
        let mut sums = vec![(0.0, 0); gaps];
        let mut steps = Vec::with_capacity(small.len());
        for index in 0..small.len() {
            let mut least = (f64::INFINITY, 0);
            for (gap, sum) in sums.iter_mut().enumerate() {
                if sum.0 < least.0 {
                    least = (sum.0, gap);
                }
                *sum = (least.0 + cost(first + index + gap, index), least.1);
            }
            steps.push(sums.clone());
        }
        let last = (0..gaps).min_by(|a, b| sums[*a].0.total_cmp(&sums[*b].0));
        let Some(mut gap) = last.filter(|gap| sums[*gap].0 < best.0) else { continue };
        let sum = sums[gap].0;
        let mut places = vec![0; small.len()];
        for index in (0..small.len()).rev() {
            places[index] = (first + index + gap) % large.len();
            gap = steps[index][gap].1;
        }
        best = (sum, places);
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the phases of `count` satellites, the first one at `first` spacings.
    fn plane(count: usize, first: f64) -> Vec<f64> {
        let spacing = TAU / count as f64;
        let mut phases: Vec<_> = (0..count).map(|index| (index as f64 + first) * spacing).collect();
        phases.iter_mut().for_each(|phase| *phase -= TAU * libm::floor(*phase / TAU));
        phases.sort_by(f64::total_cmp);
        phases
    }

    fn shifts(west: &[f64], east: &[f64], reference: &[f64]) -> Vec<f64> {
        let turned = |(a, b): (usize, usize)| {
            let apart = (east[b] - west[a]) / TAU * west.len() as f64;
            apart - west.len() as f64 * libm::floor(apart / west.len() as f64 + 0.5)
        };
        neighbours(west, east, reference).into_iter().map(turned).collect()
    }

    #[test]
    fn noise_does_not_choose_between_two_neighbours_at_equal_distance() {
        for noise in [0.0, 1e-3, -1e-3] {
            for rotation in [0.0, 0.25, 0.9] {
                let even = plane(8, rotation + noise);
                let odd = plane(8, rotation + 0.5 - noise);
                let reference = plane(8, rotation - noise);
                for (west, east, expected) in [(&even, &odd, 0.5), (&odd, &even, -0.5)] {
                    let shifts = shifts(west, east, &reference);
                    let close = |shift: &f64| (shift - expected).abs() < 0.01;
                    assert!(shifts.iter().all(close), "{noise} {rotation}: {shifts:?}");
                }
            }
        }
    }

    #[test]
    fn the_nearest_satellites_are_neighbours() {
        let west = plane(22, 0.3);
        for offset in [-0.45, -0.2, 0.0, 0.2, 0.45] {
            let shifts = shifts(&west, &plane(22, 0.3 + offset), &plane(22, 0.0));
            assert!(shifts.iter().all(|shift| (shift - offset).abs() < 1e-9), "{offset}: {shifts:?}");
        }
    }

    #[test]
    fn in_planes_of_unequal_numbers_no_satellite_has_two_neighbours() {
        let (west, mut east) = (plane(20, 0.0), plane(20, 0.1));
        east.remove(7);
        for (pairs, free) in [
            (neighbours(&west, &east, &west), (7, 19)),
            (neighbours(&east, &west, &west).into_iter().map(|(a, b)| (b, a)).collect(), (7, 19)),
        ] {
            let mut expected: Vec<_> = (0..20).filter(|index| *index != free.0).zip(0..free.1).collect();
            expected.sort_unstable();
            let mut pairs = pairs;
            pairs.sort_unstable();
            assert_eq!(pairs, expected);
        }
        assert_eq!(neighbours(&plane(1, 0.0), &plane(3, 0.9), &west), [(0, 2)]);
    }
}
