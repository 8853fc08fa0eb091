//! On-off source: constant rate in bursts, separated by silences.
//!
//! With exponential times it models bursts of interactive or voice traffic. With Pareto times of shape between 1 and 2, the sum
//! of many sources is self-similar (Willinger, Taqqu, Sherman and Wilson, "Self-Similarity Through High-Variability", IEEE/ACM
//! Transactions on Networking 5, 1997).

use bentpipe_base::{Duration, Rate, Rng};

use crate::emission::Emission;
use crate::law::Law;

/// Distribution of the lengths of bursts and silences.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Times {
    /// Exponential.
    Exponential,
    /// Pareto with this shape, above 1.
    Pareto {
        /// Shape.
        shape: f64,
    },
}

/// Intervals between packets within a burst.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Spacing {
    /// A constant value.
    #[default]
    Even,
    /// Uniform between 0.5 and 1.5 times the mean (`random_` of ns-2's CBR).
    Uniform,
    /// Exponential: without silences the packets form a Poisson process.
    Exponential,
}

/// Configuration of a source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Rate within a burst in wire bytes, above zero.
    pub rate: Rate,
    /// Packet size on the wire, headers included.
    pub packet_bytes: u32,
    /// Mean length of a burst.
    pub on: Duration,
    /// Mean length of a silence.
    pub off: Duration,
    /// Distribution of both lengths.
    pub times: Times,
    /// Intervals between packets of a burst.
    pub spacing: Spacing,
}

impl Default for Config {
    /// Values of ns-2: 64 kbit/s in packets of 210 bytes, 0.5 s on, 0.5 s off.
    fn default() -> Self {
        let half = Duration::from_millis(500);
        Self {
            rate: Rate::from_bps(64_000),
            packet_bytes: 210,
            on: half,
            off: half,
            times: Times::Exponential,
            spacing: Spacing::Even,
        }
    }
}

/// The source.
#[derive(Clone, Debug)]
pub struct OnOff {
    on: Law,
    off: Law,
    interval: Duration,
    spacing: Spacing,
    payload: u32,
    /// Send time of the next packet.
    at: Duration,
    /// Packets left in this burst.
    left: u64,
    rng: Rng,
}

impl OnOff {
    /// Makes a source whose packets have `header_bytes` bytes of headers, less than the packet size.
    pub fn new(config: &Config, header_bytes: u32, rng: Rng) -> Self {
        let law = |mean: Duration| match config.times {
            _ if mean.is_zero() => Law::Constant(0.0),
            Times::Exponential => Law::Exponential { mean: mean.as_secs_f64() },
            Times::Pareto { shape } => Law::pareto_of_mean(mean.as_secs_f64(), shape),
        };
        let mut source = Self {
            on: law(config.on),
            off: law(config.off),
            interval: config.rate.time_for(u64::from(config.packet_bytes)),
            spacing: config.spacing,
            payload: config.packet_bytes - header_bytes,
            at: Duration::ZERO,
            left: 0,
            rng,
        };
        source.left = source.burst();
        if source.spacing != Spacing::Even {
            // A random first gap, so that sources do not start together.
            source.at = source.gap();
        }
        source
    }

    /// Returns the next packet.
    pub fn next_emission(&mut self) -> Emission {
        if self.left == 0 {
            self.at += Duration::from_secs_f64(self.off.draw(&mut self.rng));
            self.left = self.burst();
        }
        let emission = Emission { at: self.at, bytes: self.payload, stream: 0 };
        self.left -= 1;
        let gap = self.gap();
        self.at += gap;
        emission
    }

    /// Returns the time to the next packet.
    fn gap(&mut self) -> Duration {
        let mean = self.interval.as_secs_f64();
        match self.spacing {
            Spacing::Even => self.interval,
            Spacing::Uniform => Duration::from_secs_f64(mean * (0.5 + self.rng.uniform())),
            Spacing::Exponential => Duration::from_secs_f64(self.rng.exponential(mean)),
        }
    }

    /// Returns the packets of a burst: its length in whole packets, at least one.
    fn burst(&mut self) -> u64 {
        let packets = self.on.draw(&mut self.rng) / self.interval.as_secs_f64();
        libm::round(packets).max(1.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fraction of time in bursts, and the bursts per second, in a long run.
    fn shares(config: Config) -> (f64, f64) {
        let mut source = OnOff::new(&config, 10, Rng::stream(3, "on-off"));
        let interval = config.rate.time_for(u64::from(config.packet_bytes)).as_secs_f64();
        let (mut bursts, mut last) = (0_u32, Duration::ZERO);
        let packets = 400_000;
        for _ in 0..packets {
            let at = source.next_emission().at;
            bursts += u32::from(at.saturating_sub(last).as_secs_f64() > interval * 1.000_1);
            last = at;
        }
        let span = last.as_secs_f64();
        (f64::from(packets) * interval / span, f64::from(bursts) / span)
    }

    #[test]
    fn half_a_second_on_half_a_second_off() {
        let (busy, bursts) = shares(Config::default());
        assert!((busy - 0.5).abs() < 0.02, "{busy}");
        assert!((bursts - 1.0).abs() < 0.05, "{bursts}");
    }

    #[test]
    fn pareto_times_keep_the_mean_and_are_rarer_but_longer() {
        let (busy, _) = shares(Config { times: Times::Pareto { shape: 1.9 }, ..Config::default() });
        assert!((busy - 0.5).abs() < 0.06, "{busy}");
    }

    /// Returns mean and standard deviation of the intervals, relative to the mean interval.
    fn intervals(spacing: Spacing) -> (f64, f64) {
        let config = Config { off: Duration::ZERO, spacing, ..Config::default() };
        let mean = config.rate.time_for(u64::from(config.packet_bytes)).as_secs_f64();
        let mut source = OnOff::new(&config, 10, Rng::stream(3, "spacing"));
        let times: Vec<f64> = (0..100_001).map(|_| source.next_emission().at.as_secs_f64() / mean).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let average = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - average) * (gap - average)).sum::<f64>();
        (average, (square / gaps.len() as f64).sqrt())
    }

    #[test]
    fn intervals_have_the_deviation_of_their_law() {
        for (spacing, deviation) in
            [(Spacing::Even, 0.0), (Spacing::Uniform, 1.0 / 12f64.sqrt()), (Spacing::Exponential, 1.0)]
        {
            let (mean, measured) = intervals(spacing);
            assert!((mean - 1.0).abs() < 0.01 && (measured - deviation).abs() < 0.02, "{mean} {measured}");
        }
    }

    #[test]
    fn without_silences_it_is_constant() {
        let config = Config { off: Duration::ZERO, ..Config::default() };
        let mut source = OnOff::new(&config, 10, Rng::stream(3, "on-off"));
        let last = (0..1001).map(|_| source.next_emission()).last().unwrap();
        assert_eq!(last, Emission { at: Duration::from_micros(26_250_000), bytes: 200, stream: 0 });
    }
}
