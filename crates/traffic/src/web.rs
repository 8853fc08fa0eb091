//! Models of web pages: sizes, numbers of objects, reading times.

use bentpipe_base::{Duration, Rng};

use crate::Law;

/// A published model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Choi and Limb, "A Behavioral Model of Web Traffic", ICNP 1999.
    ChoiLimb,
    /// Mah, "An Empirical Model of HTTP Network Traffic", INFOCOM 1997.
    Mah,
    /// SURGE: Barford and Crovella, "Generating Representative Web Workloads for Network and Server Performance Evaluation",
    /// SIGMETRICS 1998.
    Surge,
    /// Defaults of ns-2's web traffic: one heavy-tailed object per page, one page per second.
    Ns2Web,
}

/// Object of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Bytes of its request.
    pub request: u64,
    /// Bytes of the reply.
    pub reply: u64,
    /// Time from the discovery of the previous object to the discovery of this one.
    pub gap: Duration,
}

/// Page: a main object and those that it names. They are discovered a parsing time after the main object's arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The main object.
    pub main: Object,
    /// Other objects in the order of their requests.
    pub inline: Vec<Object>,
}

/// Maximum object size in bytes, chosen here so that one heavy-tailed draw does not fill a run. It truncates 0.1 % of the
/// objects.
const LARGEST: f64 = 2e6;

/// Returns a size drawn from a distribution, truncated to a range.
fn size(law: Law, least: f64, rng: &mut Rng) -> u64 {
    libm::round(law.draw(rng).clamp(least, LARGEST)) as u64
}

fn time(law: Law, rng: &mut Rng) -> Duration {
    Duration::from_secs_f64(law.draw(rng))
}

impl Model {
    /// Returns a random page.
    pub fn page(self, rng: &mut Rng) -> Page {
        match self {
            Self::ChoiLimb => choi_limb(rng),
            Self::Mah => mah(rng),
            Self::Surge => surge(rng),
            Self::Ns2Web => {
                // Mean of 12 packets of 1000 bytes, shape 1.2.
                let law = Law::Lomax { shape: 1.2, scale: 2400.0 };
                let main = Object { request: 40, reply: size(law, 1.0, rng), gap: Duration::ZERO };
                Page { main, inline: Vec::new() }
            }
        }
    }

    /// Returns the reading time of a page.
    pub fn view(self, rng: &mut Rng) -> Duration {
        let law = match self {
            Self::ChoiLimb => Law::Weibull { shape: 0.4836, scale: 18.534 },
            // Median 15 s.
            Self::Mah => Law::LogNormal { mu: 2.708, sigma: 1.5 },
            Self::Surge => Law::Pareto { shape: 1.5, least: 1.0 },
            Self::Ns2Web => Law::Exponential { mean: 1.0 },
        };
        time(law, rng)
    }
}

/// Table of the paper; sizes beyond the measured range are truncated.
fn choi_limb(rng: &mut Rng) -> Page {
    const REQUEST: Law = Law::LogNormal { mu: 5.8454, sigma: 0.2893 };
    let main_law = Law::LogNormal { mu: 8.3459, sigma: 1.3660 };
    let main =
        Object { request: size(REQUEST, 1.0, rng), reply: size(main_law, 100.0, rng), gap: Duration::ZERO };
    let number = libm::round(Law::Gamma { shape: 0.2370, scale: 23.416 }.draw(rng)) as usize;
    let inline = (0..number).map(|index| Object {
        request: size(REQUEST, 1.0, rng),
        reply: size(Law::LogNormal { mu: 6.1657, sigma: 2.3625 }, 50.0, rng),
        gap: match index {
            // Parsing time.
            0 => time(Law::Gamma { shape: 0.4833, scale: 0.2690 }, rng),
            _ => time(Law::Gamma { shape: 0.1600, scale: 5.375 }, rng),
        },
    });
    Page { main, inline: inline.collect() }
}

/// Requests have two sizes. Replies have a median of 2 kB and a heavy tail above 30 kB, whose weight is chosen here for a mean of
/// 9 kB. Half of the pages have one file, and the mean is three files, which no geometric distribution has. Here half have one
/// file, and the others 1 plus a geometric number.
fn mah(rng: &mut Rng) -> Page {
    let object = |rng: &mut Rng| {
        let request = if rng.chance(0.8) { 250 } else { 1000 };
        let law = if rng.chance(0.038) {
            Law::Pareto { shape: 1.1, least: 30_000.0 }
        } else {
            Law::LogNormal { mu: 7.601, sigma: 1.2 }
        };
        Object { request, reply: size(law, 50.0, rng), gap: Duration::ZERO }
    };
    let main = object(rng);
    let mut inline = Vec::new();
    if rng.chance(0.5) {
        inline.push(object(rng));
        while rng.chance(0.75) {
            inline.push(object(rng));
        }
    }
    Page { main, inline }
}

/// File sizes have a lognormal body and a Pareto tail. The number of embedded files is Pareto, with short pauses between them.
/// The generator does not describe requests; they have 350 bytes as in Choi and Limb.
fn surge(rng: &mut Rng) -> Page {
    const PAUSE: Law = Law::Weibull { shape: 0.382, scale: 1.46 };
    let object = |rng: &mut Rng, gap| {
        let law = if rng.chance(0.93) {
            Law::LogNormal { mu: 9.357, sigma: 1.318 }
        } else {
            Law::Pareto { shape: 1.1, least: 133_000.0 }
        };
        Object { request: 350, reply: size(law, 50.0, rng), gap }
    };
    let main = object(rng, Duration::ZERO);
    // The distribution begins at 1, which counts the page itself.
    let files = (Law::Pareto { shape: 2.43, least: 1.0 }.draw(rng) as usize).min(1000);
    let inline = (1..files).map(|_| {
        let gap = time(PAUSE, rng);
        object(rng, gap)
    });
    Page { main, inline: inline.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample {
        pages: Vec<Page>,
    }

    impl Sample {
        fn of(model: Model) -> Self {
            let mut rng = Rng::stream(6, "pages");
            Self { pages: (0..20_000).map(|_| model.page(&mut rng)).collect() }
        }

        fn inline(&self) -> impl Iterator<Item = &Object> + Clone {
            self.pages.iter().flat_map(|page| &page.inline)
        }

        fn all(&self) -> impl Iterator<Item = &Object> + Clone {
            self.pages.iter().map(|page| &page.main).chain(self.inline())
        }
    }

    fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
        values.clone().sum::<f64>() / values.count() as f64
    }

    #[track_caller]
    fn within(value: f64, range: std::ops::Range<f64>) {
        assert!(range.contains(&value), "{value} is outside {range:?}");
    }

    #[test]
    fn choi_and_limb() {
        let sample = Sample::of(Model::ChoiLimb);
        within(mean(sample.all().map(|object| object.request as f64)), 358.0..363.0);
        within(mean(sample.pages.iter().map(|page| page.main.reply as f64)), 10_200.0..11_200.0);
        within(mean(sample.pages.iter().map(|page| page.inline.len() as f64)), 5.3..5.8);
        // With so heavy a tail, truncation lowers the mean of 7758.
        within(mean(sample.inline().map(|object| object.reply as f64)), 5_000.0..8_000.0);
        let later = sample.pages.iter().flat_map(|page| page.inline.iter().skip(1));
        within(mean(later.map(|object| object.gap.as_secs_f64())), 0.82..0.90);
        let mut rng = Rng::stream(6, "view");
        let views: Vec<_> = (0..100_000).map(|_| Model::ChoiLimb.view(&mut rng).as_secs_f64()).collect();
        within(mean(views.iter().copied()), 38.3..40.7);
    }

    #[test]
    fn mah() {
        let sample = Sample::of(Model::Mah);
        within(mean(sample.all().map(|object| object.request as f64)), 395.0..405.0);
        within(mean(sample.all().map(|object| object.reply as f64)), 8_000.0..10_000.0);
        within(mean(sample.pages.iter().map(|page| 1.0 + page.inline.len() as f64)), 2.9..3.1);
        let single = sample.pages.iter().filter(|page| page.inline.is_empty()).count() as f64;
        within(single / 20_000.0, 0.48..0.52);
    }

    #[test]
    fn surge() {
        let sample = Sample::of(Model::Surge);
        let large = sample.all().filter(|object| object.reply > 133_000).count() as f64;
        // The tail, and the part of the body above 133 kB.
        within(large / sample.all().count() as f64, 0.09..0.13);
        // P(2 files or more) = 2^-2.43.
        let several = sample.pages.iter().filter(|page| !page.inline.is_empty()).count() as f64;
        within(several / 20_000.0, 0.176..0.196);
    }

    #[test]
    fn nothing_is_empty_or_endless() {
        for model in [Model::ChoiLimb, Model::Mah, Model::Surge, Model::Ns2Web] {
            let sample = Sample::of(model);
            assert!(sample.all().all(|object| object.request > 0 && (1..=2_000_000).contains(&object.reply)));
        }
    }
}
