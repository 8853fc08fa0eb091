//! Models of transmission errors.

mod frames;
mod handover;
mod mobile;
mod sending;

use bentpipe_base::{Duration, Instant, Rng};

use self::frames::Frames;
use self::mobile::{Loo, Lutz};
use crate::error::{ConfigError, check_probability};
use crate::schedule::validate_period;
use crate::size_cache::SizeCache;

pub use self::frames::FrameSpan;
use self::handover::Bursts;
pub use self::handover::HandoverLoss;
pub use self::mobile::{LooConfig, LutzConfig};
pub use self::sending::Sending;

/// Name and meaning of every loss model.
pub const LOSSES: &[(&str, &str)] = &[
    ("none", "no transmission errors"),
    ("packet", "each packet is lost with probability `rate`, at any size"),
    ("bit", "each bit is wrong with probability `rate`; one wrong bit loses the packet"),
    ("byte", "each byte is wrong with probability `rate`; one wrong byte loses the packet"),
    ("gilbert-elliott", "bursts by a good and a bad state, each with a loss probability"),
    ("bursts", "Gilbert's channel by its loss rate and the mean length of its bursts"),
    ("schedule", "each packet is lost with a probability that changes over time"),
    (
        "lutz",
        "land-mobile: a good state with Rice fading, a bad one with Rayleigh fading and lognormal shadow",
    ),
    ("loo", "land-mobile: a lognormal direct signal with Rayleigh multipath"),
    ("list", "the packets with the listed numbers are lost"),
    ("trace", "a recorded sequence of losses, once or repeated"),
];

/// Transmission errors of one direction of a link.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LossConfig {
    /// Model that selects lost packets.
    pub model: LossModel,
    /// True if only packets with payload meet the model. Others are never lost, do not count in [`LossModel::List`] and
    /// [`LossModel::Trace`], and do not change the state of [`LossModel::GilbertElliott`].
    pub data_only: bool,
    /// Additional losses near handovers, which the model and `data_only` do not affect.
    pub handover: Option<HandoverLoss>,
}

/// Selection of lost packets, in transmission order.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LossModel {
    /// No transmission errors.
    #[default]
    None,
    /// Equal loss probability for each packet.
    Packet {
        /// Probability that a packet is lost.
        probability: f64,
    },
    /// Independent bit errors: a packet of L bytes is lost with probability `1 - (1 - p)^(8 L)`.
    Bit {
        /// Bit error probability.
        probability: f64,
    },
    /// Independent byte errors: a packet of L bytes is lost with probability `1 - (1 - p)^L`.
    Byte {
        /// Byte error probability.
        probability: f64,
    },
    /// Two states, good and bad (Gilbert, "Capacity of a burst-noise channel", BSTJ 39, 1960; Elliott, "Estimates of
    /// error rates for codes on burst-noise channels", BSTJ 42, 1963). Each packet meets the loss probability of the
    /// state, after which the state may change. The first state is drawn from the stationary distribution.
    GilbertElliott {
        /// Probability of leaving the good state after a packet (p).
        good_to_bad: f64,
        /// Probability of leaving the bad state after a packet (r); the mean burst lasts 1/r packets.
        bad_to_good: f64,
        /// Loss probability in the good state; 0 for a Gilbert channel.
        loss_good: f64,
        /// Loss probability in the bad state; 1 for the simplified Gilbert channel.
        loss_bad: f64,
    },
    /// Gilbert channel given by measured values: everything is lost in the bad state and nothing in the good one.
    Bursts {
        /// Fraction of lost packets, below 1.
        probability: f64,
        /// Mean number of consecutive lost packets, at least 1.
        mean_packets: f64,
    },
    /// Loss probability that changes over time.
    Schedule {
        /// Time and probability from then on; the first at zero, times strictly ascending.
        points: Vec<(Duration, f64)>,
        /// Repetition period, longer than the last point's time; without it the last point holds forever.
        repeat_every: Option<Duration>,
    },
    /// Land-mobile channel with two states (Lutz).
    Lutz(LutzConfig),
    /// Land-mobile channel with one state (Loo).
    Loo(LooConfig),
    /// Losses of physical-layer frames, each with all packets that have a part in it.
    Frames {
        /// Frame lengths and loss probabilities, from time zero on.
        spans: Vec<FrameSpan>,
    },
    /// Exactly these packets, numbered from 1 in transmission order.
    List {
        /// Numbers of the lost packets, strictly ascending.
        numbers: Vec<u64>,
    },
    /// A recorded sequence with one entry per packet.
    Trace {
        /// True for each packet that is lost.
        lost: Vec<bool>,
        /// True if the sequence repeats after its end; otherwise nothing is lost afterwards.
        repeat: bool,
    },
}

impl LossConfig {
    /// Makes a configuration of `model` for all packets.
    pub fn all(model: LossModel) -> Self {
        Self { model, ..Self::default() }
    }

    /// Makes a configuration of `model` for packets with payload.
    pub fn data(model: LossModel) -> Self {
        Self { model, data_only: true, handover: None }
    }

    /// Checks that the model is possible.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(handover) = &self.handover {
            handover.validate().map_err(|error| error.within("handover"))?;
        }
        match &self.model {
            LossModel::None => Ok(()),
            LossModel::Packet { probability }
            | LossModel::Bit { probability }
            | LossModel::Byte { probability } => check_probability("probability", *probability),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                check_probability("good_to_bad", *good_to_bad)?;
                check_probability("bad_to_good", *bad_to_good)?;
                check_probability("loss_good", *loss_good)?;
                check_probability("loss_bad", *loss_bad)
            }
            LossModel::Bursts { probability, mean_packets } => validate_bursts(*probability, *mean_packets),
            LossModel::Schedule { points, repeat_every } => {
                validate_points(points)?;
                validate_period(*repeat_every, points.last().map(|point| point.0))
            }
            LossModel::Lutz(lutz) => lutz.validate(),
            LossModel::Loo(loo) => loo.validate(),
            LossModel::Frames { spans } => frames::validate(spans),
            LossModel::List { numbers } => validate_numbers(numbers),
            LossModel::Trace { lost, .. } if lost.is_empty() => {
                Err(ConfigError::new("lost", "an empty sequence", "at least one entry"))
            }
            LossModel::Trace { .. } => Ok(()),
        }
    }

    /// True if no packet is lost.
    pub fn is_off(&self) -> bool {
        matches!(self.model, LossModel::None) && self.handover.is_none()
    }
}

impl LossModel {
    /// Returns the name of the model in [`LOSSES`]. [`LossModel::Frames`] results from modem and weather and is not
    /// listed there.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Packet { .. } => "packet",
            Self::Bit { .. } => "bit",
            Self::Byte { .. } => "byte",
            Self::GilbertElliott { .. } => "gilbert-elliott",
            Self::Bursts { .. } => "bursts",
            Self::Schedule { .. } => "schedule",
            Self::Lutz(_) => "lutz",
            Self::Loo(_) => "loo",
            Self::Frames { .. } => "frames",
            Self::List { .. } => "list",
            Self::Trace { .. } => "trace",
        }
    }
}

/// Checks that the probability of leaving the good state is at most one: a high loss rate requires long bursts.
fn validate_bursts(probability: f64, mean_packets: f64) -> Result<(), ConfigError> {
    check_probability("probability", probability)?;
    if !(1.0..=1e12).contains(&mean_packets) {
        return Err(ConfigError::new("mean_packets", mean_packets, "at least 1 packet"));
    }
    if probability > mean_packets / (mean_packets + 1.0) {
        let found = format!("{probability} in bursts of {mean_packets} packets");
        return Err(ConfigError::new("probability", found, "at most B / (B + 1) with bursts of B packets"));
    }
    Ok(())
}

fn validate_points(points: &[(Duration, f64)]) -> Result<(), ConfigError> {
    if points.first().is_none_or(|first| !first.0.is_zero()) {
        return Err(ConfigError::new("points", "no point at 0 s", "points from 0 s on"));
    }
    if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let found = format!("{} after {}", pair[1].0, pair[0].0);
        return Err(ConfigError::new("points", found, "strictly ascending times"));
    }
    points.iter().try_for_each(|point| check_probability("points", point.1))
}

fn validate_numbers(numbers: &[u64]) -> Result<(), ConfigError> {
    if numbers.first() == Some(&0) {
        return Err(ConfigError::new("numbers", 0, "numbers from 1"));
    }
    match numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => {
            Err(ConfigError::new("numbers", format!("{} after {}", pair[1], pair[0]), "strictly ascending"))
        }
        None => Ok(()),
    }
}

/// Returns the probability that at least one of `units` independent units has an error, each with `probability`. It is
/// accurate for tiny products too.
fn any_of(units: f64, probability: f64) -> f64 {
    -libm::expm1(units * libm::log1p(-probability))
}

/// Loss process of a link, or of a terminal on a shared medium.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Process of the model; `None` without one.
    process: Option<Process>,
    data_only: bool,
    handover: Option<Box<Bursts>>,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Process {
    Packet(f64),
    Sized { units_per_byte: f64, probability: f64, cache: SizeCache<f64> },
    GilbertElliott { bad: bool, leave: [f64; 2], loss: [f64; 2] },
    Schedule { points: Vec<(Duration, f64)>, period: Option<Duration>, next: usize },
    Lutz(Box<Lutz>),
    Loo(Box<Loo>),
    Frames(Box<Frames>),
    List { numbers: Vec<u64>, next: usize, sent: u64 },
    Trace { lost: Vec<bool>, next: usize, repeat: bool },
}

impl Loss {
    /// Makes the process of a validated configuration; `rng` is the link's random stream for losses. `None` for an
    /// error-free link.
    pub fn new(config: &LossConfig, mut rng: Rng) -> Option<Self> {
        let process = Process::new(&config.model, &mut rng);
        let handover = config.handover.as_ref().map(|handover| Box::new(Bursts::new(handover)));
        let lossy = process.is_some() || handover.is_some();
        lossy.then_some(Self { process, data_only: config.data_only, handover, rng })
    }

    /// True if the next transmitted packet is lost. Call it once per packet in transmission order.
    #[inline]
    pub fn strikes(&mut self, sending: &Sending) -> bool {
        let Self { process, data_only, handover, rng } = self;
        let met = process.as_mut().filter(|_| sending.is_data || !*data_only);
        met.is_some_and(|process| process.strikes(sending, rng))
            || handover.as_mut().is_some_and(|handover| handover.strikes(sending.start, rng))
    }
}

impl Process {
    fn new(model: &LossModel, rng: &mut Rng) -> Option<Self> {
        let sized = |units_per_byte, probability| Self::Sized {
            units_per_byte,
            probability,
            cache: SizeCache::new(),
        };
        Some(match *model {
            LossModel::None => return None,
            LossModel::Packet { probability } => Self::Packet(probability),
            LossModel::Bit { probability } => sized(8.0, probability),
            LossModel::Byte { probability } => sized(1.0, probability),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let changes = good_to_bad + bad_to_good;
                // A channel without state changes stays in the good state.
                let share_bad = if changes > 0.0 { good_to_bad / changes } else { 0.0 };
                let (leave, loss) = ([good_to_bad, bad_to_good], [loss_good, loss_bad]);
                Self::GilbertElliott { bad: rng.chance(share_bad), leave, loss }
            }
            LossModel::Bursts { probability, mean_packets } => {
                let bad_to_good = 1.0 / mean_packets;
                let good_to_bad = (bad_to_good * probability / (1.0 - probability)).min(1.0);
                let (leave, loss) = ([good_to_bad, bad_to_good], [0.0, 1.0]);
                Self::GilbertElliott { bad: rng.chance(probability), leave, loss }
            }
            LossModel::Schedule { ref points, repeat_every } => {
                Self::Schedule { points: points.clone(), period: repeat_every, next: 0 }
            }
            LossModel::Lutz(ref config) => Self::Lutz(Box::new(Lutz::new(config, rng))),
            LossModel::Loo(ref config) => Self::Loo(Box::new(Loo::new(config))),
            LossModel::Frames { ref spans } => Self::Frames(Box::new(Frames::new(spans.clone()))),
            LossModel::List { ref numbers } => Self::List { numbers: numbers.clone(), next: 0, sent: 0 },
            LossModel::Trace { ref lost, repeat } => Self::Trace { lost: lost.clone(), next: 0, repeat },
        })
    }

    fn strikes(&mut self, sending: &Sending, rng: &mut Rng) -> bool {
        let size = sending.size;
        match self {
            Self::Packet(probability) => rng.chance(*probability),
            Self::Sized { units_per_byte, probability, cache } => {
                rng.chance(cache.get(size, || any_of(f64::from(size) * *units_per_byte, *probability)))
            }
            Self::GilbertElliott { bad, leave, loss } => {
                let state = usize::from(*bad);
                let lost = rng.chance(loss[state]);
                *bad ^= rng.chance(leave[state]);
                lost
            }
            Self::Schedule { points, period, next } => {
                let time = sending.start.since(Instant::ZERO);
                let time =
                    period.map_or(time, |period| Duration::from_nanos(time.as_nanos() % period.as_nanos()));
                if *next > 0 && points[*next - 1].0 > time {
                    *next = 0;
                }
                while points.get(*next).is_some_and(|point| point.0 <= time) {
                    *next += 1;
                }
                rng.chance(points[*next - 1].1)
            }
            Self::Lutz(lutz) => lutz.strike(sending, rng),
            Self::Loo(loo) => loo.strike(sending, rng),
            Self::Frames(frames) => frames.strike(sending, rng),
            Self::List { numbers, next, sent } => {
                *sent += 1;
                let lost = numbers.get(*next) == Some(sent);
                *next += usize::from(lost);
                lost
            }
            Self::Trace { lost, next, repeat } => {
                if *repeat && *next == lost.len() {
                    *next = 0;
                }
                let outcome = lost.get(*next).copied();
                *next += usize::from(outcome.is_some());
                outcome.unwrap_or(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: u32, is_data: bool) -> Sending {
        Sending { start: Instant::ZERO, end: Instant::ZERO, size, is_data }
    }

    fn losses(model: LossModel, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(&LossConfig::all(model), Rng::stream(1, "loss")).expect("lossy");
        (0..packets).map(|_| loss.strikes(&of(1500, true))).collect()
    }

    fn share(outcomes: &[bool]) -> f64 {
        outcomes.iter().filter(|lost| **lost).count() as f64 / outcomes.len() as f64
    }

    #[test]
    fn bit_errors_become_packet_errors_literally() {
        assert!((any_of(8.0 * 1500.0, 1e-6) - 0.011_928_3).abs() < 1e-7);
        assert!((any_of(8.0 * 1500.0, 1e-5) - 0.113_080).abs() < 1e-6);
        // Far below the resolution of 1 - (1 - p)^n in floating point.
        assert!((any_of(12_000.0, 1e-18) / 1.2e-14 - 1.0).abs() < 1e-9);
        assert_eq!([any_of(12_000.0, 0.0), any_of(12_000.0, 1.0)], [0.0, 1.0]);
    }

    #[test]
    fn measured_shares_agree_with_the_probability() {
        let n = 200_000;
        assert!((share(&losses(LossModel::Packet { probability: 0.01 }, n)) - 0.01).abs() < 0.001);
        assert!((share(&losses(LossModel::Bit { probability: 1e-5 }, n)) - 0.1131).abs() < 0.003);
        assert!((share(&losses(LossModel::Byte { probability: 1e-5 }, n)) - 0.014_888).abs() < 0.001);
    }

    #[test]
    fn gilbert_elliott_is_stationary_and_bursty() {
        // Fraction of the bad state: s = p/(p+r) = 0.01/0.26. Loss: (1-s) 0.001 + s 0.8 = 0.031731. Mean burst of pure
        // Gilbert losses: 1/r = 4.
        let model = LossModel::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.25,
            loss_good: 0.001,
            loss_bad: 0.8,
        };
        assert!((share(&losses(model, 1_000_000)) - 0.031_731).abs() < 0.001);
        let gilbert =
            LossModel::GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let outcomes = losses(gilbert, 1_000_000);
        let bursts = outcomes.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = outcomes.iter().filter(|lost| **lost).count();
        assert!((lost as f64 / bursts as f64 - 4.0).abs() < 0.1);
    }

    #[test]
    fn the_first_state_of_gilbert_elliott_is_stationary_too() {
        let model =
            LossModel::GilbertElliott { good_to_bad: 0.1, bad_to_good: 0.3, loss_good: 0.0, loss_bad: 1.0 };
        let first = |seed| {
            Loss::new(&LossConfig::all(model.clone()), Rng::stream(seed, "loss"))
                .unwrap()
                .strikes(&of(40, true))
        };
        let outcomes: Vec<_> = (0..10_000).map(first).collect();
        assert!((share(&outcomes) - 0.25).abs() < 0.02);
    }

    #[test]
    fn bursts_have_the_mean_length_and_the_loss_asked_for() {
        let outcomes = losses(LossModel::Bursts { probability: 0.02, mean_packets: 8.0 }, 2_000_000);
        let bursts = outcomes.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = outcomes.iter().filter(|lost| **lost).count();
        assert!((share(&outcomes) / 0.02 - 1.0).abs() < 0.05, "{lost}");
        assert!((lost as f64 / bursts as f64 - 8.0).abs() < 0.3, "{lost} in {bursts}");
    }

    #[test]
    fn a_schedule_holds_from_point_to_point() {
        let points =
            vec![(Duration::ZERO, 0.0), (Duration::from_secs(10), 1.0), (Duration::from_secs(20), 0.0)];
        let config = LossConfig::all(LossModel::Schedule { points, repeat_every: None });
        let mut loss = Loss::new(&config, Rng::stream(1, "loss")).unwrap();
        let lost = [0, 9, 10, 19, 20, 99].map(|s| {
            let start = Instant::ZERO + Duration::from_secs(s);
            loss.strikes(&Sending { start, ..of(40, true) })
        });
        assert_eq!(lost, [false, false, true, true, false, false]);
    }

    #[test]
    fn a_schedule_that_repeats_begins_anew() {
        let points = vec![(Duration::ZERO, 0.0), (Duration::from_secs(10), 1.0)];
        let repeat_every = Some(Duration::from_secs(15));
        let config = LossConfig::all(LossModel::Schedule { points: points.clone(), repeat_every });
        let mut loss = Loss::new(&config, Rng::stream(1, "loss")).unwrap();
        let lost = [9, 10, 14, 15, 24, 25, 99, 100].map(|s| {
            let start = Instant::ZERO + Duration::from_secs(s);
            loss.strikes(&Sending { start, ..of(40, true) })
        });
        assert_eq!(lost, [false, true, true, false, false, true, false, true]);
        let repeat_every = Some(Duration::from_secs(10));
        let refused = LossConfig::all(LossModel::Schedule { points, repeat_every }).validate();
        assert_eq!(refused.unwrap_err().field, "repeat_every");
    }

    #[test]
    fn a_list_strikes_exactly_its_numbers() {
        let outcomes = losses(LossModel::List { numbers: vec![1, 3, 100] }, 200);
        let struck: Vec<_> = (1..=200).filter(|n| outcomes[n - 1]).collect();
        assert_eq!(struck, [1, 3, 100]);
    }

    #[test]
    fn data_only_neither_strikes_nor_counts_the_others() {
        let config = LossConfig::data(LossModel::List { numbers: vec![2] });
        let mut loss = Loss::new(&config, Rng::stream(1, "loss")).unwrap();
        let outcomes = [false, true, false, true, true].map(|is_data| loss.strikes(&of(40, is_data)));
        assert_eq!(outcomes, [false, false, false, true, false]);
    }

    #[test]
    fn a_trace_ends_or_repeats() {
        let lost = vec![true, false];
        assert_eq!(
            losses(LossModel::Trace { lost: lost.clone(), repeat: false }, 5),
            [true, false, false, false, false]
        );
        assert_eq!(losses(LossModel::Trace { lost, repeat: true }, 5), [true, false, true, false, true]);
    }

    #[test]
    fn impossible_models_are_refused() {
        let refused = |model| LossConfig::all(model).validate().unwrap_err().field;
        assert_eq!(refused(LossModel::Bit { probability: -0.1 }), "probability");
        assert_eq!(refused(LossModel::Packet { probability: f64::NAN }), "probability");
        assert_eq!(refused(LossModel::Bursts { probability: 0.6, mean_packets: 1.0 }), "probability");
        assert_eq!(refused(LossModel::Bursts { probability: 0.1, mean_packets: 0.5 }), "mean_packets");
        assert_eq!(refused(LossModel::Schedule { points: vec![], repeat_every: None }), "points");
        let margin_db = f64::NAN;
        assert_eq!(refused(LossModel::Lutz(LutzConfig { margin_db, ..LutzConfig::default() })), "margin");
        assert_eq!(refused(LossModel::Loo(LooConfig { margin_db, ..LooConfig::default() })), "margin");
        assert_eq!(refused(LossModel::List { numbers: vec![0] }), "numbers");
        assert_eq!(refused(LossModel::List { numbers: vec![3, 3] }), "numbers");
        assert_eq!(refused(LossModel::Trace { lost: vec![], repeat: true }), "lost");
    }

    #[test]
    fn every_model_is_listed_by_its_name() {
        let sized = LossModel::Bit { probability: 0.0 };
        let gilbert =
            LossModel::GilbertElliott { good_to_bad: 0.0, bad_to_good: 0.0, loss_good: 0.0, loss_bad: 0.0 };
        let models = [
            LossModel::None,
            LossModel::Packet { probability: 0.0 },
            sized,
            LossModel::Byte { probability: 0.0 },
            gilbert,
            LossModel::Bursts { probability: 0.0, mean_packets: 1.0 },
            LossModel::Schedule { points: vec![], repeat_every: None },
            LossModel::Lutz(LutzConfig::default()),
            LossModel::Loo(LooConfig::default()),
            LossModel::List { numbers: vec![] },
            LossModel::Trace { lost: vec![], repeat: false },
        ];
        let names: Vec<_> = LOSSES.iter().map(|(name, _)| *name).collect();
        assert_eq!(models.map(|model| model.name()).to_vec(), names);
    }
}
