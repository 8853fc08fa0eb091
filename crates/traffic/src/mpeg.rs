//! MPEG-4 video: frame sizes from three autocorrelated processes, one per frame type.
//!
//! Model of Matrawy, Lambadaris and Huang ("MPEG-4 Traffic Modeling Using the Transform Expand Sample Methodology", 2002). I, P
//! and B frames follow separate TES processes, interleaved by the group of pictures. The paper does not publish its fitted
//! parameters. The means here are 1000 bytes per frame, thus 200 kbit/s: a link of 5 Mbit/s then carries 25 streams. The gamma
//! distributions and short memory follow measured videos.

use bentpipe_base::{Duration, Rng};

use crate::emission::Emission;
use crate::gamma::GammaQuantiles;
use crate::tes::Tes;

/// Type of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameType {
    /// Coded independently.
    I,
    /// Predicted from an earlier frame.
    P,
    /// Predicted from earlier and later frames.
    B,
}

/// Marginal distribution and memory of one frame type.
struct Marginal {
    mean_bytes: f64,
    variation: f64,
    /// Maximum step of the TES process.
    width: f64,
}

const MARGINALS: [Marginal; 3] = [
    Marginal { mean_bytes: 2927.0, variation: 0.35, width: 0.30 },
    Marginal { mean_bytes: 1463.0, variation: 0.60, width: 0.35 },
    Marginal { mean_bytes: 585.0, variation: 0.70, width: 0.40 },
];

/// Peak position of the stitching transform.
const STITCH: f64 = 0.5;

/// Configuration of a video.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Frame types of a group of pictures in transmission order; at least one.
    pub group: Vec<FrameType>,
    /// Frames per second, above zero.
    pub frames_per_s: f64,
    /// Factor of all frame sizes, above zero.
    pub rate_factor: f64,
}

impl Default for Config {
    /// IBBPBBPBBPBB, 25 frames per second, 200 kbit/s.
    fn default() -> Self {
        use FrameType::{B, I, P};
        Self { group: vec![I, B, B, P, B, B, P, B, B, P, B, B], frames_per_s: 25.0, rate_factor: 1.0 }
    }
}

impl Config {
    /// Returns the mean payload in bytes per second.
    pub fn mean_bytes_per_s(&self) -> f64 {
        let group: f64 = self.group.iter().map(|frame| MARGINALS[*frame as usize].mean_bytes).sum();
        group * self.rate_factor * self.frames_per_s / self.group.len() as f64
    }
}

/// Shared data of all videos with the same configuration; cheap to clone.
#[derive(Clone, Debug)]
pub struct Style {
    group: Vec<FrameType>,
    frames_per_s: f64,
    sizes: [GammaQuantiles; 3],
}

impl Style {
    /// Computes the shared data of a configuration.
    pub fn new(config: &Config) -> Self {
        let sizes =
            MARGINALS.map(|law| GammaQuantiles::new(law.mean_bytes * config.rate_factor, law.variation));
        Self { group: config.group.clone(), frames_per_s: config.frames_per_s, sizes }
    }
}

/// A running video.
#[derive(Clone, Debug)]
pub struct Mpeg {
    style: Style,
    /// Processes of the frame sizes, one per type.
    walks: [Tes; 3],
    /// Number of frames sent.
    sent: u64,
    /// Index of the first frame in its group of pictures.
    phase: u64,
    rng: Rng,
}

impl Mpeg {
    /// Makes a video that begins at a random position of its group of pictures.
    pub fn new(style: Style, mut rng: Rng) -> Self {
        let phase = rng.below(style.group.len() as u64);
        let walks = MARGINALS.map(|law| Tes::new(rng.uniform(), (law.width, 0.0), STITCH));
        Self { style, walks, sent: 0, phase, rng }
    }

    /// Returns the next frame.
    pub fn next_emission(&mut self) -> Emission {
        let place = (self.phase + self.sent) % self.style.group.len() as u64;
        let frame = self.style.group[place as usize];
        let level = self.walks[frame as usize].next_level(&mut self.rng);
        let bytes = libm::round(self.style.sizes[frame as usize].at(level)).max(1.0) as u32;
        // Computed from the start time, so that rounding errors do not accumulate.
        let at = Duration::from_secs_f64(self.sent as f64 / self.style.frames_per_s);
        self.sent += 1;
        Emission { at, bytes, stream: frame as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(frames: usize) -> [Vec<f64>; 3] {
        let mut video = Mpeg::new(Style::new(&Config::default()), Rng::stream(4, "video"));
        let mut sizes = [const { Vec::new() }; 3];
        for _ in 0..frames {
            let frame = video.next_emission();
            sizes[usize::from(frame.stream)].push(f64::from(frame.bytes));
        }
        sizes
    }

    fn autocorrelation(values: &[f64], lag: usize) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        let pairs = values.iter().zip(&values[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / variance
    }

    #[test]
    fn a_group_of_pictures_has_its_expected_size() {
        let config = Config::default();
        assert_eq!(config.group.len(), 12);
        // (2927 + 3 * 1463 + 8 * 585) bytes in 0.48 s.
        assert!((config.mean_bytes_per_s() * 8.0 - 199_933.3).abs() < 0.1);
        let louder = Config { rate_factor: 1.25, ..config };
        assert!((louder.mean_bytes_per_s() * 8.0 - 249_916.7).abs() < 0.1);
    }

    #[test]
    fn each_type_has_its_mean_its_spread_and_its_memory() {
        let sizes = sizes(240_000);
        assert_eq!([0, 1, 2].map(|kind: usize| sizes[kind].len()), [20_000, 60_000, 160_000]);
        let wanted =
            [[0.757, 0.646, 0.551, 0.406], [0.671, 0.543, 0.437, 0.289], [0.601, 0.459, 0.345, 0.198]];
        for ((values, marginal), wanted) in sizes.iter().zip(MARGINALS).zip(wanted) {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((mean / marginal.mean_bytes - 1.0).abs() < 0.02, "{mean}");
            for (lag, wanted) in [1, 2, 3, 5].into_iter().zip(wanted) {
                let found = autocorrelation(values, lag);
                assert!((found - wanted).abs() < 0.03, "lag {lag}: {found} instead of {wanted}");
            }
        }
    }

    #[test]
    fn frames_leave_25_times_a_second_and_begin_anywhere_in_the_group() {
        let style = Style::new(&Config::default());
        let mut video = Mpeg::new(style.clone(), Rng::stream(1, "a"));
        assert_eq!((0..501).map(|_| video.next_emission().at).last(), Some(Duration::from_secs(20)));
        let firsts: std::collections::BTreeSet<_> =
            (0..40).map(|seed| Mpeg::new(style.clone(), Rng::stream(seed, "a")).phase).collect();
        assert!(firsts.len() > 8, "{firsts:?}");
    }
}
