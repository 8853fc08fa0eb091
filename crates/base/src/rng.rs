use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Named stream of random numbers.
///
/// Every part of a world with random numbers owns the stream of its own name. Adding a part thus changes no
/// numbers of the others. The same seed and name give the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Makes the stream `name` of a run with seed `seed`.
    pub fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a hashes the name, and SplitMix64 (inside `seed_from_u64`) mixes the sum.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in `[0, 1)` with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns true with probability `p`; `p <= 0` never, `p >= 1` always. It always consumes exactly one draw.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Returns a uniform integer in `[0, n)`; zero if `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Returns an exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Returns a standard normal draw (Box and Muller 1958). The second value of the pair is not used, so that every draw costs
    /// the same.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(self.exponential(2.0));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let draw = |seed, name| Rng::stream(seed, name).bits();
        assert_eq!(draw(1, "loss"), draw(1, "loss"));
        assert_ne!(draw(1, "loss"), draw(1, "start"));
        assert_ne!(draw(1, "loss"), draw(2, "loss"));
    }

    #[test]
    fn moments() {
        let mut rng = Rng::stream(7, "moments");
        let n = 100_000;
        let mean = (0..n).map(|_| rng.exponential(2.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 2.0).abs() < 0.05, "{mean}");
        let hits = (0..n).filter(|_| rng.chance(0.01)).count();
        assert!((800..1200).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| rng.below(10) < 10));
    }
}
