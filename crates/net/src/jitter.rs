//! Jitter: a change of the one-way delay that is drawn for each packet.

use std::sync::Arc;

use bentpipe_base::{Duration, Rng};

use crate::error::ConfigError;

/// Jitter of one direction of a link. A draw is added to the one-way delay of each packet; the sum is at least zero.
///
/// Successive draws are correlated by a first-order autoregressive process z of standard normal numbers:
/// `z' = r z + sqrt(1 - r^2) n`. A draw is the quantile of the distribution at Φ(z), so the correlation does not change the
/// distribution. The generator of netem mixes uniform numbers instead, which makes the distribution narrower.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// Distribution of the draws.
    pub distribution: JitterDistribution,
    /// Correlation r of successive normal numbers, from 0 to below 1.
    pub correlation: f64,
}

/// Distribution of the jitter of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum JitterDistribution {
    /// Normal distribution. Draws may be negative.
    Normal {
        /// Mean of the draws.
        mean: Duration,
        /// Standard deviation of the draws.
        deviation: Duration,
    },
    /// Log-normal distribution.
    LogNormal {
        /// Mean of the draws, above zero.
        mean: Duration,
        /// Standard deviation of the draws.
        deviation: Duration,
    },
    /// Pareto distribution (type I) with the minimum and the shape that give this mean and deviation.
    Pareto {
        /// Mean of the draws, above zero.
        mean: Duration,
        /// Standard deviation of the draws, above zero.
        deviation: Duration,
    },
    /// Measured delays, each with the same probability.
    Table {
        /// Delays in ascending order, at least one.
        delays: Arc<[Duration]>,
    },
}

impl Jitter {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(0.0..1.0).contains(&self.correlation) {
            return Err(ConfigError::new("correlation", self.correlation, "0 to below 1"));
        }
        match &self.distribution {
            JitterDistribution::LogNormal { mean, .. } | JitterDistribution::Pareto { mean, .. }
                if mean.is_zero() =>
            {
                Err(ConfigError::new("mean", mean, "longer than 0 s"))
            }
            JitterDistribution::Pareto { deviation, .. } if deviation.is_zero() => {
                Err(ConfigError::new("deviation", deviation, "longer than 0 s"))
            }
            JitterDistribution::Table { delays } if !delays.is_sorted() || delays.is_empty() => {
                Err(ConfigError::new("delays", "an unsorted or empty table", "ascending delays"))
            }
            _ => Ok(()),
        }
    }
}

/// Generator of the jitter of a running link.
#[derive(Clone, Debug)]
pub(crate) struct JitterDraws {
    quantile: Quantile,
    /// Weights of the last normal number and of a new one.
    weights: [f64; 2],
    last: f64,
    rng: Rng,
}

/// Quantile function, with parameters in nanoseconds.
#[derive(Clone, Debug)]
enum Quantile {
    Normal { mean: f64, deviation: f64 },
    LogNormal { mu: f64, sigma: f64 },
    Pareto { least: f64, shape: f64 },
    Table(Arc<[Duration]>),
}

impl JitterDraws {
    /// Makes the generator of a validated configuration, in the stationary state.
    pub fn new(jitter: &Jitter, mut rng: Rng) -> Self {
        let nanos = |time: Duration| time.as_nanos() as f64;
        let part = |mean, deviation| nanos(deviation) / nanos(mean);
        let quantile = match jitter.distribution {
            JitterDistribution::Normal { mean, deviation } => {
                Quantile::Normal { mean: nanos(mean), deviation: nanos(deviation) }
            }
            JitterDistribution::LogNormal { mean, deviation } => {
                let part = part(mean, deviation);
                let variance = libm::log1p(part * part);
                Quantile::LogNormal {
                    mu: libm::log(nanos(mean)) - variance / 2.0,
                    sigma: libm::sqrt(variance),
                }
            }
            JitterDistribution::Pareto { mean, deviation } => {
                // With the shape a, deviation / mean is 1 / sqrt(a (a - 2)) and the mean is a / (a - 1) times the minimum.
                let part = part(mean, deviation);
                let shape = 1.0 + libm::sqrt(1.0 + 1.0 / (part * part));
                Quantile::Pareto { least: nanos(mean) * (shape - 1.0) / shape, shape }
            }
            JitterDistribution::Table { ref delays } => Quantile::Table(delays.clone()),
        };
        let rest = libm::sqrt(1.0 - jitter.correlation * jitter.correlation);
        Self { quantile, weights: [jitter.correlation, rest], last: rng.normal(), rng }
    }

    /// Returns `delay_one_way` with the jitter of the next packet.
    pub fn apply(&mut self, delay_one_way: Duration) -> Duration {
        let [kept, new] = self.weights;
        self.last = kept * self.last + new * self.rng.normal();
        let extra = self.quantile.at(self.last);
        Duration::from_nanos((delay_one_way.as_nanos() as f64 + extra).max(0.0) as u64)
    }
}

impl Quantile {
    /// Returns the value in nanoseconds below which a part Φ(z) of the draws lies.
    fn at(&self, z: f64) -> f64 {
        let part_below = |z: f64| libm::erfc(-z * core::f64::consts::FRAC_1_SQRT_2) / 2.0;
        match self {
            Self::Normal { mean, deviation } => mean + deviation * z,
            Self::LogNormal { mu, sigma } => libm::exp(mu + sigma * z),
            Self::Pareto { least, shape } => least * libm::pow(part_below(-z), -1.0 / shape),
            Self::Table(delays) => {
                let place = (part_below(z) * delays.len() as f64) as usize;
                delays[place.min(delays.len() - 1)].as_nanos() as f64
            }
        }
    }
}
