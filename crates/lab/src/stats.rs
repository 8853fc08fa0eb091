//! Statistics over seeds and flows.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean, 95 % Student confidence interval and range of values. Undefined entries are `None`: all of them without values, the interval
/// of a single value.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean.
    pub ci95: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
}

impl Summary {
    /// Summarises `values`.
    pub fn of(values: &[f64]) -> Self {
        Self {
            mean: mean(values),
            ci95: half_width(values),
            min: values.iter().copied().reduce(f64::min),
            max: values.iter().copied().reduce(f64::max),
        }
    }
}

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// `t(0.975, n-1) * s / sqrt(n)` with the sample deviation `s`; `None` for fewer than two values.
fn half_width(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let n = values.len() as f64;
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    Some(steady(student.inverse_cdf(0.975)) * (variance / n).sqrt())
}

/// Rounds to twelve significant digits. The logarithms behind a distribution differ in the last bits between the mathematical libraries
/// of systems and browsers.
pub(crate) fn steady(value: f64) -> f64 {
    format!("{value:.11e}").parse().expect("a number was written")
}

/// Jain's fairness index `(sum x)^2 / (n sum x^2)`: 1 if all are equal, `1/n` if one has everything. `None` without
/// values or if all are zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: Option<f64>, expected: f64) {
        let found = found.expect("a value");
        assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found} is not {expected}");
    }

    #[test]
    fn jain_of_the_worked_examples() {
        assert_close(jain(&[1.0, 2.0, 3.0]), 0.857143);
        assert_close(jain(&[5.0; 4]), 1.0);
        assert_close(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    /// The table of Student's distribution: t(0.975, 9) = 2.262157, and 12.7062 with one degree of freedom.
    #[test]
    fn interval_of_ten_and_of_two() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let deviation = (82.5_f64 / 9.0).sqrt();
        let summary = Summary::of(&ten);
        assert_close(summary.mean, 5.5);
        assert_close(summary.ci95, 2.262_157 * deviation / 10_f64.sqrt());
        assert_eq!((summary.min, summary.max), (Some(1.0), Some(10.0)));
        assert_close(Summary::of(&[1.0, 3.0]).ci95, 12.706_205);
    }

    #[test]
    fn what_is_not_known_is_none() {
        assert_eq!(Summary::of(&[]), Summary::default());
        let one = Summary::of(&[4.0]);
        assert_eq!((one.mean, one.ci95), (Some(4.0), None));
        assert_eq!(Summary::of(&[4.0, 4.0]).ci95, Some(0.0));
    }
}
