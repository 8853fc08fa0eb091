//! Transform-Expand-Sample processes: uniform variates with a given autocorrelation.
//!
//! Melamed, "TES: A Class of Methods for Generating Autocorrelated Uniform Variates", ORSA Journal on Computing 3, 1991.

use bentpipe_base::Rng;

/// TES+ process: a slow random walk on the circle of circumference 1 with uniform marginal distribution.
#[derive(Clone, Debug)]
pub struct Tes {
    place: f64,
    step_least: f64,
    step_width: f64,
    stitch: f64,
}

impl Tes {
    /// Makes a process that begins at `place` in `[0, 1)`. Each step is at most `width` (0 to 1), of which `drift` (-1 to 1)
    /// is forward. `stitch` (0 to 1) is the peak position of the stitching transform.
    pub fn new(place: f64, (width, drift): (f64, f64), stitch: f64) -> Self {
        Self { place, step_least: -width * (1.0 - drift) / 2.0, step_width: width, stitch }
    }

    /// Returns the next value, from a uniform draw.
    pub fn next_level(&mut self, rng: &mut Rng) -> f64 {
        self.step(rng.uniform())
    }

    fn step(&mut self, draw: f64) -> f64 {
        let moved = self.place + self.step_least + self.step_width * draw;
        self.place = moved - libm::floor(moved);
        if self.place < self.stitch {
            self.place / self.stitch
        } else {
            (1.0 - self.place) / (1.0 - self.stitch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_steps_of_the_worked_example() {
        let mut tes = Tes::new(0.25, (0.3, 0.0), 0.5);
        let steps = [0.1, 0.9, 0.5, 0.99].map(|draw| tes.step(draw));
        for (found, wanted) in steps.into_iter().zip([0.26, 0.5, 0.5, 0.794]) {
            assert!((found - wanted).abs() < 1e-12, "{found} instead of {wanted}");
        }
    }

    #[test]
    fn the_walk_is_uniform() {
        let (mut tes, mut rng) = (Tes::new(0.9, (0.35, 0.2), 0.3), Rng::stream(2, "tes"));
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            tenths[(tes.next_level(&mut rng) * 10.0).min(9.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (9_500..10_500).contains(count)), "{tenths:?}");
    }
}
