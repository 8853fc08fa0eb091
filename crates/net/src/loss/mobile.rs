//! Land-mobile channel: a moving receiver, alternately in view of the satellite and shadowed by trees and buildings.

use bentpipe_base::{Duration, Instant, Rng};

use super::sending::Sending;
use crate::error::ConfigError;

/// Lutz' two-state channel (Lutz, Cygan, Dippold, Dolainsky, Papke, "The land mobile satellite communication channel: recording,
/// statistics, and channel model", IEEE Trans. Veh. Technol. 40(2), 1991).
///
/// In the good state the amplitude is Ricean around the unshadowed signal. In the bad state it is Rayleigh with lognormal mean
/// power. Each packet has independent fading, and is lost if its power is more than the margin below the unshadowed signal. The
/// mean power of the bad state changes more slowly.
#[derive(Clone, Debug, PartialEq)]
pub struct LutzConfig {
    /// Fade margin: power in dB below the unshadowed signal from which packets are lost.
    pub margin_db: f64,
    /// Mean duration of the good state.
    pub good_mean: Duration,
    /// Mean duration of the bad state.
    pub bad_mean: Duration,
    /// Good state: Rice factor, the ratio of direct to multipath power in dB.
    pub rice_db: f64,
    /// Bad state: mean of the received power in dB.
    pub shadow_mean_db: f64,
    /// Bad state: standard deviation of the received power in dB.
    pub shadow_deviation_db: f64,
    /// Coherence time of the shadowing.
    pub coherence: Duration,
}

/// Loo's channel (Loo, "A statistical model for a land mobile satellite link", IEEE Trans. Veh. Technol. 34(3), 1985): a direct
/// signal with lognormal amplitude, plus Rayleigh multipath. Each packet has independent multipath.
#[derive(Clone, Debug, PartialEq)]
pub struct LooConfig {
    /// Fade margin: power in dB below the unshadowed signal from which packets are lost.
    pub margin_db: f64,
    /// Mean of the direct signal in dB.
    pub direct_mean_db: f64,
    /// Standard deviation of the direct signal in dB.
    pub direct_deviation_db: f64,
    /// Mean power of the multipath in dB.
    pub multipath_db: f64,
    /// Coherence time of the shadowing.
    pub coherence: Duration,
}

impl Default for LutzConfig {
    /// Values similar to highway measurements: shadowed 25 % of the time, for 30 m on average at 25 m/s.
    fn default() -> Self {
        Self {
            margin_db: 10.0,
            good_mean: Duration::from_millis(3_600),
            bad_mean: Duration::from_millis(1_200),
            rice_db: 11.9,
            shadow_mean_db: -7.7,
            shadow_deviation_db: 6.0,
            coherence: Duration::from_millis(100),
        }
    }
}

impl Default for LooConfig {
    /// Infrequent light shadowing of the paper.
    fn default() -> Self {
        Self {
            margin_db: 10.0,
            direct_mean_db: 1.0,
            direct_deviation_db: 1.0,
            multipath_db: -5.0,
            coherence: Duration::from_millis(100),
        }
    }
}

fn check_db(field: &str, db: f64) -> Result<(), ConfigError> {
    let fits = (-100.0..=100.0).contains(&db);
    if fits { Ok(()) } else { Err(ConfigError::new(field, db, "-100 dB to 100 dB")) }
}

fn check_deviation(field: &str, db: f64) -> Result<(), ConfigError> {
    let fits = (0.0..=50.0).contains(&db);
    if fits { Ok(()) } else { Err(ConfigError::new(field, db, "0 dB to 50 dB")) }
}

impl LutzConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_db("margin", self.margin_db)?;
        check_db("rice", self.rice_db)?;
        check_db("shadow_mean", self.shadow_mean_db)?;
        check_deviation("shadow_deviation", self.shadow_deviation_db)?;
        for (field, mean) in [("good_mean", self.good_mean), ("bad_mean", self.bad_mean)] {
            if mean.is_zero() {
                return Err(ConfigError::new(field, mean, "longer than 0 s"));
            }
        }
        Ok(())
    }
}

impl LooConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_db("margin", self.margin_db)?;
        check_db("direct_mean", self.direct_mean_db)?;
        check_db("multipath", self.multipath_db)?;
        check_deviation("direct_deviation", self.direct_deviation_db)
    }
}

fn from_db(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// Lognormal value that is constant for the coherence time.
#[derive(Clone, Debug)]
struct Shadow {
    mean_db: f64,
    deviation_db: f64,
    coherence: Duration,
    power: f64,
    until: Instant,
}

impl Shadow {
    fn new(mean_db: f64, deviation_db: f64, coherence: Duration) -> Self {
        Self { mean_db, deviation_db, coherence, power: 1.0, until: Instant::ZERO }
    }

    /// Returns the power of the shadowed signal at `now`.
    fn at(&mut self, now: Instant, rng: &mut Rng) -> f64 {
        if self.until <= now {
            self.power = from_db(self.mean_db + self.deviation_db * rng.normal());
            self.until = now + self.coherence;
        }
        self.power
    }
}

/// Returns the power of a direct signal of `direct` plus Rayleigh multipath of mean power `multipath`.
fn ricean(direct: f64, multipath: f64, rng: &mut Rng) -> f64 {
    let deviation = libm::sqrt(multipath / 2.0);
    let (x, y) = (libm::sqrt(direct) + deviation * rng.normal(), deviation * rng.normal());
    x * x + y * y
}

/// State of a Lutz channel.
#[derive(Clone, Debug)]
pub(super) struct Lutz {
    threshold: f64,
    multipath: f64,
    /// Mean durations of the good and the bad state in seconds.
    means: [f64; 2],
    bad: bool,
    /// End of the present state.
    until: Instant,
    shadow: Shadow,
}

impl Lutz {
    pub fn new(config: &LutzConfig, rng: &mut Rng) -> Self {
        let means = [config.good_mean.as_secs_f64(), config.bad_mean.as_secs_f64()];
        let bad = rng.chance(means[1] / (means[0] + means[1]));
        let until = Instant::ZERO + Duration::from_secs_f64(rng.exponential(means[usize::from(bad)]));
        let shadow = Shadow::new(config.shadow_mean_db, config.shadow_deviation_db, config.coherence);
        let (threshold, multipath) = (from_db(-config.margin_db), from_db(-config.rice_db));
        Self { threshold, multipath, means, bad, until, shadow }
    }

    pub fn strike(&mut self, sending: &Sending, rng: &mut Rng) -> bool {
        if self.until <= sending.start {
            self.pass(sending.start, rng);
        }
        let power = if self.bad {
            self.shadow.at(sending.start, rng) * rng.exponential(1.0)
        } else {
            ricean(1.0, self.multipath, rng)
        };
        power < self.threshold
    }

    /// Draws the state at `now`, at or after the end of the previous one. States are memoryless, so the time in between need not
    /// be simulated.
    fn pass(&mut self, now: Instant, rng: &mut Rng) {
        let [good, bad] = self.means;
        let begun_bad = !self.bad;
        let share_bad = bad / (good + bad);
        let faded = libm::exp(-now.since(self.until).as_secs_f64() * (1.0 / good + 1.0 / bad));
        let known = if begun_bad { 1.0 } else { 0.0 };
        self.bad = rng.chance(share_bad + (known - share_bad) * faded);
        self.until = now + Duration::from_secs_f64(rng.exponential(self.means[usize::from(self.bad)]));
    }
}

/// State of a Loo channel.
#[derive(Clone, Debug)]
pub(super) struct Loo {
    threshold: f64,
    multipath: f64,
    shadow: Shadow,
}

impl Loo {
    pub fn new(config: &LooConfig) -> Self {
        let shadow = Shadow::new(config.direct_mean_db, config.direct_deviation_db, config.coherence);
        Self { threshold: from_db(-config.margin_db), multipath: from_db(config.multipath_db), shadow }
    }

    pub fn strike(&mut self, sending: &Sending, rng: &mut Rng) -> bool {
        let direct = self.shadow.at(sending.start, rng);
        ricean(direct, self.multipath, rng) < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(packets: u64, gap: Duration, mut strike: impl FnMut(&Sending) -> bool) -> f64 {
        let at = |i: u64| Instant::ZERO + gap * i;
        let one = |i| Sending { start: at(i), end: at(i) + gap, size: 1000, is_data: true };
        (0..packets).filter(|&i| strike(&one(i))).count() as f64 / packets as f64
    }

    /// Returns the probability that a Ricean power with direct power `direct` and multipath `multipath` is below `x`. It is one
    /// minus Marcum's Q, as the series of the noncentral chi-square distribution with two degrees of freedom.
    fn ricean_below(x: f64, direct: f64, multipath: f64) -> f64 {
        let (k, y) = (direct / multipath, x / multipath);
        let (mut weight, mut term, mut tail) = (libm::exp(-k), libm::exp(-y), libm::exp(-y));
        let mut sum = 0.0;
        for i in 1..400 {
            sum += weight * (1.0 - tail);
            weight *= k / f64::from(i);
            term *= y / f64::from(i);
            tail += term;
        }
        sum
    }

    /// Returns the mean of `f` over a lognormal power.
    fn over_shadow(mean_db: f64, deviation_db: f64, f: impl Fn(f64) -> f64) -> f64 {
        let steps = 4_000;
        let mut sum = 0.0;
        for i in 0..steps {
            let z = -6.0 + 12.0 * (f64::from(i) + 0.5) / f64::from(steps);
            sum += f(from_db(mean_db + deviation_db * z)) * libm::exp(-z * z / 2.0);
        }
        sum * 12.0 / f64::from(steps) / libm::sqrt(core::f64::consts::TAU)
    }

    #[test]
    fn lutz_loses_what_its_two_states_lose_in_their_shares_of_the_time() {
        // Fast state changes, so that the run has many; 1 ms between packets.
        let config = LutzConfig {
            good_mean: Duration::from_millis(30),
            bad_mean: Duration::from_millis(10),
            rice_db: 6.0,
            margin_db: 7.0,
            coherence: Duration::from_millis(2),
            ..LutzConfig::default()
        };
        let x = from_db(-7.0);
        let good = ricean_below(x, 1.0, from_db(-6.0));
        let bad = over_shadow(-7.7, 6.0, |mean| -libm::expm1(-x / mean));
        assert!(good > 0.01 && bad > 0.3, "{good}, {bad}");
        let mut rng = Rng::stream(1, "lutz");
        let mut lutz = Lutz::new(&config, &mut rng);
        let lost = share(1_000_000, Duration::from_millis(1), |sending| lutz.strike(sending, &mut rng));
        let expected = 0.75 * good + 0.25 * bad;
        assert!((lost / expected - 1.0).abs() < 0.02, "{lost}, expected {expected}");
    }

    #[test]
    fn lutz_is_stationary_however_rarely_it_is_asked() {
        let config = LutzConfig { rice_db: 60.0, shadow_mean_db: -60.0, ..LutzConfig::default() };
        for gap in [Duration::from_millis(400), Duration::from_secs(3), Duration::from_secs(3_600)] {
            let mut rng = Rng::stream(2, "lutz");
            let mut lutz = Lutz::new(&config, &mut rng);
            // The good state loses nothing and the bad state everything, so the loss is the fraction of the bad state.
            let lost = share(100_000, gap, |sending| lutz.strike(sending, &mut rng));
            assert!((lost - 0.25).abs() < 0.01, "{gap}: {lost}");
        }
    }

    #[test]
    fn lutz_stays_in_a_state_for_its_mean_time() {
        let config = LutzConfig { rice_db: 60.0, shadow_mean_db: -60.0, ..LutzConfig::default() };
        let mut rng = Rng::stream(3, "lutz");
        let mut lutz = Lutz::new(&config, &mut rng);
        let (mut lost, mut bursts, mut before) = (0.0, 0.0, false);
        share(4_000_000, Duration::from_millis(10), |sending| {
            let now = lutz.strike(sending, &mut rng);
            lost += f64::from(u8::from(now));
            bursts += f64::from(u8::from(now && !before));
            before = now;
            now
        });
        assert!((lost / bursts * 0.01 / 1.2 - 1.0).abs() < 0.03, "{}", lost / bursts);
    }

    #[test]
    fn loo_loses_what_its_distribution_says() {
        let config = LooConfig {
            margin_db: 3.0,
            direct_mean_db: -2.0,
            direct_deviation_db: 3.0,
            multipath_db: -6.0,
            coherence: Duration::from_millis(2),
        };
        let expected = over_shadow(-2.0, 3.0, |direct| ricean_below(from_db(-3.0), direct, from_db(-6.0)));
        let mut rng = Rng::stream(4, "loo");
        let mut loo = Loo::new(&config);
        let lost = share(1_000_000, Duration::from_millis(1), |sending| loo.strike(sending, &mut rng));
        assert!((lost / expected - 1.0).abs() < 0.02, "{lost}, expected {expected}");
    }
}
