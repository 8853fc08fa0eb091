//! State of LeoCC: its Kalman filters, and the trigger of a new model.

use crate::parts::grid::Grid;

/// Process and measurement noise of both filters, and their first variance.
const PROCESS_NOISE: f64 = 4.0;
const MEASUREMENT_NOISE: f64 = 4.0;
const FIRST_VARIANCE: f64 = 25.0;

/// Arithmetic of the filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Real numbers.
    #[default]
    Real,
    /// Gains in 1/256 and whole variances, as the kernel module.
    Linux,
}

/// Scalar Kalman filter of a random walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kalman {
    pub estimate: f64,
    variance: f64,
    arithmetic: Arithmetic,
}

impl Kalman {
    pub fn new(arithmetic: Arithmetic) -> Self {
        Self { estimate: 0.0, variance: FIRST_VARIANCE, arithmetic }
    }

    pub fn update(&mut self, measured: f64) {
        let prior = self.variance + PROCESS_NOISE;
        let gain = prior / (prior + MEASUREMENT_NOISE);
        let (gain, variance) = match self.arithmetic {
            Arithmetic::Real => (gain, (1.0 - gain) * prior),
            Arithmetic::Linux => {
                let gain = libm::floor(gain * 256.0) / 256.0;
                (gain, libm::floor((1.0 - gain) * prior))
            }
        };
        self.estimate = (1.0 - gain) * self.estimate + gain * measured;
        self.variance = variance;
    }
}

/// Parameters of [`Leo`].
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LeoConfig {
    pub grid: Grid,
    /// RTT above minRTT from which the filtered bandwidth counts, in seconds.
    pub fluctuation_s: f64,
    /// RTT below its estimate from which ProbeRTT keeps the delivery rate, in seconds.
    pub theta_s: f64,
    /// Part of the BDP that ProbeRTT keeps in flight.
    pub probe_bdp: f64,
    pub arithmetic: Arithmetic,
}

/// State of LeoCC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leo {
    pub config: LeoConfig,
    /// True from a reconfiguration until the pipe is full again.
    pub trigger: bool,
    /// Bytes per second from which the bandwidth filter restarts.
    pub reset_rate: f64,
    /// Previous delivery-rate sample, and the maximum of this round.
    pub last_rate: f64,
    pub round_rate: f64,
    pub bandwidth: Kalman,
    pub rtt: Kalman,
}

impl Leo {
    pub fn new(config: LeoConfig) -> Self {
        Self {
            config,
            trigger: false,
            reset_rate: 0.0,
            last_rate: 0.0,
            round_rate: 0.0,
            bandwidth: Kalman::new(config.arithmetic),
            rtt: Kalman::new(config.arithmetic),
        }
    }

    pub fn forget_trigger(&mut self) {
        (self.trigger, self.reset_rate) = (false, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::close;

    #[test]
    fn the_gains_of_the_filter_are_the_published_ones() {
        let estimates = |arithmetic| {
            let mut filter = Kalman::new(arithmetic);
            [(); 4].map(|()| {
                filter.update(50.0);
                filter.estimate
            })
        };
        // Gains 224/256, 162/256, 153/256, 153/256.
        let expected = [43.75, 47.705_08, 49.076_66, 49.628_48];
        assert!(estimates(Arithmetic::Linux).iter().zip(expected).all(|(a, b)| close(*a, b)));
        // Gains 29/33, then towards (√5 - 1) / 2.
        let real = estimates(Arithmetic::Real);
        assert!(close(real[0], 50.0 * 29.0 / 33.0));
        let mut filter = Kalman::new(Arithmetic::Real);
        (0..20).for_each(|_| filter.update(0.0));
        filter.update(1.0);
        assert!(close(filter.estimate, 0.618_034));
    }
}
