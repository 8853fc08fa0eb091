//! Probability distributions of the traffic models.
//!
//! Logarithms and powers come from `libm`, so that a draw has the same bits on every machine.

use bentpipe_base::Rng;

/// Probability distribution on the non-negative reals. Sizes are in bytes, times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Law {
    /// A constant value.
    Constant(f64),
    /// Exponential distribution.
    Exponential {
        /// Mean, above zero.
        mean: f64,
    },
    /// Lognormal distribution.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm, zero or above.
        sigma: f64,
    },
    /// Gamma distribution.
    Gamma {
        /// Shape parameter k, above zero.
        shape: f64,
        /// Scale, above zero; the mean is shape times scale.
        scale: f64,
    },
    /// Weibull distribution.
    Weibull {
        /// Shape, above zero.
        shape: f64,
        /// Scale, above zero.
        scale: f64,
    },
    /// Pareto: `P(X > x) = (least / x)^shape`.
    Pareto {
        /// Shape, above zero; the mean is infinite up to 1, the variance up to 2.
        shape: f64,
        /// Minimum value, above zero.
        least: f64,
    },
    /// Pareto of the second kind (Lomax): `P(X > x) = (1 + x / scale)^-shape`.
    Lomax {
        /// Shape, above zero.
        shape: f64,
        /// Scale, above zero.
        scale: f64,
    },
}

impl Law {
    /// Returns the Pareto distribution with this mean; `shape` is above 1.
    pub fn pareto_of_mean(mean: f64, shape: f64) -> Self {
        Self::Pareto { shape, least: mean * (shape - 1.0) / shape }
    }

    /// Returns one draw.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Exponential { mean } => rng.exponential(mean),
            Self::LogNormal { mu, sigma } => libm::exp(mu + sigma * rng.normal()),
            Self::Gamma { shape, scale } => scale * gamma(shape, rng),
            Self::Weibull { shape, scale } => scale * libm::pow(rng.exponential(1.0), 1.0 / shape),
            Self::Pareto { shape, least } => least * libm::exp(rng.exponential(1.0) / shape),
            Self::Lomax { shape, scale } => scale * libm::expm1(rng.exponential(1.0) / shape),
        }
    }

    /// Returns the mean, which may be infinite.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Exponential { mean } => mean,
            Self::LogNormal { mu, sigma } => libm::exp(mu + sigma * sigma / 2.0),
            Self::Gamma { shape, scale } => shape * scale,
            Self::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Self::Pareto { shape, .. } | Self::Lomax { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { shape, least } => least * shape / (shape - 1.0),
            Self::Lomax { shape, scale } => scale / (shape - 1.0),
        }
    }
}

/// Returns a gamma draw of scale 1 (Marsaglia and Tsang 2000, "A Simple Method for Generating Gamma
/// Variables").
fn gamma(shape: f64, rng: &mut Rng) -> f64 {
    if shape < 1.0 {
        // Section 6 of the paper: a gamma draw of shape k is one of shape k + 1 times a power of a
        // uniform draw.
        return gamma(shape + 1.0, rng) * libm::exp(-rng.exponential(1.0) / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = rng.normal();
        let root = 1.0 + c * x;
        let v = root * root * root;
        if root > 0.0 && libm::log(1.0 - rng.uniform()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns mean and standard deviation of `draws` draws.
    fn moments(law: Law, draws: u32) -> (f64, f64) {
        let mut rng = Rng::stream(11, "law");
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let x = law.draw(&mut rng);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(draws);
        (mean, libm::sqrt(squares / f64::from(draws) - mean * mean))
    }

    #[track_caller]
    fn close(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance * wanted, "{found} instead of {wanted}");
    }

    #[test]
    fn draws_have_the_moments_of_their_law() {
        let laws = [
            (Law::Exponential { mean: 3.0 }, 3.0, 3.0),
            (Law::LogNormal { mu: 5.8454, sigma: 0.2893 }, 360.4, 106.5),
            (Law::Gamma { shape: 0.2370, scale: 23.416 }, 5.55, 11.4),
            (Law::Gamma { shape: 0.4833, scale: 0.2690 }, 0.13, 0.187),
            (Law::Gamma { shape: 8.163, scale: 358.6 }, 2927.0, 0.35 * 2927.0),
            (Law::Weibull { shape: 0.4836, scale: 18.534 }, 39.5, 92.6),
            (Law::pareto_of_mean(0.5, 4.0), 0.5, 0.5 / libm::sqrt(8.0)),
            (Law::Lomax { shape: 5.0, scale: 8.0 }, 2.0, 2.0 * libm::sqrt(5.0 / 3.0)),
        ];
        for (law, mean, deviation) in laws {
            close(law.mean(), mean, 0.01);
            let (found_mean, found_deviation) = moments(law, 200_000);
            close(found_mean, mean, 0.02);
            close(found_deviation, deviation, 0.06);
        }
    }

    #[test]
    fn a_heavy_tail_has_the_quantiles_of_its_law() {
        let mut rng = Rng::stream(5, "tail");
        let law = Law::Pareto { shape: 1.1, least: 30_000.0 };
        assert_eq!(Law::Pareto { shape: 1.0, least: 1.0 }.mean(), f64::INFINITY);
        let above = (0..50_000).filter(|_| law.draw(&mut rng) > 300_000.0).count();
        // A fraction of 10^-1.1.
        close(above as f64 / 50_000.0, 0.0794, 0.05);
    }
}
