//! Quantiles of the gamma distribution.

use std::sync::Arc;

/// Number of quantiles in a table: those of `(i + 1/2) / 2001`, so the last is 0.99975.
const QUANTILES: usize = 2001;

/// Inverse of a gamma distribution function as a table, linear between its points. Tails beyond the outermost points are clipped.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GammaQuantiles(Arc<[f64]>);

impl GammaQuantiles {
    /// Makes the table for this mean and coefficient of variation, both above zero.
    pub fn new(mean: f64, variation: f64) -> Self {
        let shape = 1.0 / (variation * variation);
        let scale = mean * variation * variation;
        let mut x = 0.0;
        let quantile = |i| {
            x = inverse(shape, (i as f64 + 0.5) / QUANTILES as f64, x);
            x * scale
        };
        Self((0..QUANTILES).map(quantile).collect())
    }

    /// Returns the quantile of probability `p`.
    pub fn at(&self, p: f64) -> f64 {
        let place = (p * QUANTILES as f64 - 0.5).clamp(0.0, (QUANTILES - 1) as f64);
        let index = (place as usize).min(QUANTILES - 2);
        let part = place - index as f64;
        self.0[index] * (1.0 - part) + self.0[index + 1] * part
    }
}

/// Regularised lower incomplete gamma function P(shape, x). Small `x` use its series (Abramowitz and Stegun 6.5.29). Larger ones
/// use the continued fraction of its complement (6.5.31), evaluated from its far end.
fn distribution(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / shape, 1.0 / shape, shape);
        while term > sum * 1e-15 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        front * sum
    } else {
        let tail = (1..=200).rev().fold(x + 401.0 - shape, |below, n| {
            let n = f64::from(n);
            x + 2.0 * n - 1.0 - shape - n * (n - shape) / below
        });
        1.0 - front / tail
    }
}

/// Returns the `x` above `below` with `P(shape, x) = p`: Newton's method, with bisection if a step leaves the known interval.
fn inverse(shape: f64, p: f64, below: f64) -> f64 {
    let (mut low, mut high) = (below, (below + 1.0).max(shape));
    while distribution(shape, high) < p {
        low = high;
        high *= 2.0;
    }
    let density = |x: f64| libm::exp((shape - 1.0) * libm::log(x) - x - libm::lgamma(shape));
    let mut x = (low + high) / 2.0;
    for _ in 0..60 {
        let error = distribution(shape, x) - p;
        if error < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = x - error / density(x);
        let next = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
        if (next - x).abs() <= 1e-12 * x {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_one_is_exponential() {
        for x in [0.1, 0.9, 1.9, 2.1, 7.0, 20.0] {
            assert!((distribution(1.0, x) - (1.0 - libm::exp(-x))).abs() < 1e-13, "{x}");
        }
        // Poisson: P(3, x) = 1 - exp(-x) (1 + x + x^2 / 2).
        for x in [0.5, 3.9, 4.1, 12.0] {
            let exact = 1.0 - libm::exp(-x) * (1.0 + x + x * x / 2.0);
            assert!((distribution(3.0, x) - exact).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn a_table_has_the_mean_and_the_spread_of_its_law() {
        for (mean, variation) in [(2927.0, 0.35), (1463.0, 0.60), (585.0, 0.70)] {
            let table = GammaQuantiles::new(mean, variation);
            let n = table.0.len() as f64;
            let found = table.0.iter().sum::<f64>() / n;
            let squares = table.0.iter().map(|x| x * x).sum::<f64>() / n;
            let spread = libm::sqrt(squares - found * found) / found;
            assert!((found / mean - 1.0).abs() < 0.001, "{found}");
            assert!((spread / variation - 1.0).abs() < 0.01, "{spread}");
        }
    }

    #[test]
    fn between_two_points_it_is_linear() {
        let table = GammaQuantiles::new(1.0, 1.0);
        assert!((table.at(0.5) - core::f64::consts::LN_2).abs() < 1e-9);
        assert!((table.at(0.25) - libm::log(4.0 / 3.0)).abs() < 1e-6);
        assert_eq!(table.at(1.0), table.0[QUANTILES - 1]);
        assert_eq!(table.at(0.0), table.0[0]);
    }
}
