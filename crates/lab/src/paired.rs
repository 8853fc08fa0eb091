//! Comparison of two algorithms by pairs of runs with the same seed.

use std::cmp::Ordering;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::stats::{Summary, steady};

/// Differences with a corrected p-value below this are significant.
pub(crate) const SIGNIFICANCE: f64 = 0.05;

/// Values of a quantity by seed.
pub(crate) type BySeed = Vec<(u64, f64)>;

/// Differences of a quantity between runs with the same seed.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Difference {
    /// Mean, interval and range of the differences.
    #[serde(flatten)]
    pub summary: Summary,
    /// Two-sided p-value of Student's paired test; `None` for fewer than two pairs.
    pub p: Option<f64>,
    /// The p-value after Holm's correction for all comparisons of this metric with the baseline.
    pub p_holm: Option<f64>,
}

impl Difference {
    /// Subtracts the values of `baseline` from those of the same seeds.
    pub(crate) fn of(values: &[(u64, f64)], baseline: &[(u64, f64)]) -> Self {
        let other = |seed: u64| baseline.iter().find(|(of, _)| *of == seed).map(|(_, value)| *value);
        let differences: Vec<f64> =
            values.iter().filter_map(|(seed, value)| Some(value - other(*seed)?)).collect();
        let p = p_value(&differences);
        Self { summary: Summary::of(&differences), p, p_holm: p }
    }

    /// True if the p-value times the number of `comparisons` (Bonferroni) is below 5 %. Without a p-value, any difference counts.
    pub(crate) fn is_significant(&self, comparisons: usize) -> bool {
        match self.p {
            Some(p) => p * (comparisons as f64) < SIGNIFICANCE,
            None => self.summary.mean.is_some_and(|mean| mean != 0.0),
        }
    }
}

/// Returns the two-sided p-value of Student's test of the mean against zero.
fn p_value(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    // Rounding leaves a variance where all differences are equal.
    let error = (variance / n).sqrt();
    if error <= 1e-12 * mean.abs() {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(steady(2.0 * student.sf((mean / error).abs())))
}

/// Corrects the p-values of several comparisons (S. Holm: A simple sequentially rejective multiple test procedure, 1979).
pub(crate) fn correct(differences: &mut [Option<Difference>]) {
    let mut all: Vec<&mut Difference> =
        differences.iter_mut().flatten().filter(|one| one.p.is_some()).collect();
    all.sort_by(|a, b| a.p.partial_cmp(&b.p).unwrap_or(Ordering::Equal));
    let count = all.len();
    let mut least = 0.0_f64;
    for (place, difference) in all.into_iter().enumerate() {
        let p = difference.p.unwrap_or(1.0) * (count - place) as f64;
        least = least.max(p.min(1.0));
        difference.p_holm = Some(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data of 1908: t = 4.0621 with 9 degrees of freedom, p = 0.002833.
    #[test]
    fn the_sleep_of_student() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let by_seed = |values: [f64; 10]| (1..).zip(values).collect::<BySeed>();
        let difference = Difference::of(&by_seed(second), &by_seed(first));
        assert!((difference.summary.mean.unwrap() - 1.58).abs() < 1e-12);
        assert!((difference.p.unwrap() - 0.002_833).abs() < 1e-6, "{difference:?}");
        assert!(difference.is_significant(17) && !difference.is_significant(18));
        // The intervals of the two means overlap: only paired values show the difference.
        let [a, b] = [first, second].map(|values| Summary::of(&values));
        assert!(b.mean.unwrap() - a.mean.unwrap() < a.ci95.unwrap() + b.ci95.unwrap());
    }

    /// Holm 1979: the least of four p-values counts four times, the next three times, and none falls below the one before.
    #[test]
    fn the_correction_is_that_of_holm() {
        let of = |p: Option<f64>| Some(Difference { p, ..Difference::default() });
        let mut all = [of(Some(0.04)), None, of(Some(0.01)), of(Some(0.03)), of(Some(0.005)), of(None)];
        correct(&mut all);
        let corrected = all.map(|one| one.and_then(|one| one.p_holm));
        let close = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-12;
        assert!(close(corrected[4], 0.02) && close(corrected[2], 0.03), "{corrected:?}");
        assert!(close(corrected[3], 0.06) && close(corrected[0], 0.06), "{corrected:?}");
        assert_eq!((corrected[1], corrected[5]), (None, None));
    }

    #[test]
    fn equal_differences_are_certain_and_one_pair_proves_nothing() {
        let values = |values: &[f64]| (1..).zip(values.iter().copied()).collect::<BySeed>();
        let p = |a: &[f64], b: &[f64]| Difference::of(&values(a), &values(b)).p;
        assert_eq!(p(&[2.0, 3.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!(p(&[2.0, 3.0], &[2.0, 3.0]), Some(1.0));
        assert_eq!(p(&[2.0], &[1.0]), None);
    }
}
