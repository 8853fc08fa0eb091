//! Values that the seed chooses.
//!
//! A table with the key `draw` may replace any value of a scenario: `rate = { draw = "uniform", from = "5 Mbit/s", to = "20 Mbit/s" }`.
//! [`drawn`] replaces each such table by a value, before the scenario is read. Each table has its own random stream, named by its
//! path. Tables that are `tied` to one name share a stream: for each, the same uniform number gives the value.

use bentpipe_base::{Duration, Rng};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::error::Mistake;
use crate::form::{self, Form, Report};
use crate::tree::{Entry, Node, Table, Value};
use crate::unit::{
    AMOUNT, Amount, Codec, Count, OrWord, PROBABILITY, Refused, TEXT, TIME, TIME_ABOVE_ZERO, Words,
};

/// Maximum number of values of one table.
const MOST_VALUES: u64 = 100_000;

/// Distribution of a value. Amounts of one table have one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Distribution {
    Uniform,
    Normal,
    LogNormal,
    Exponential,
    OneOf,
}

const DISTRIBUTIONS: Words<Distribution> = Words(&[
    ("uniform", Distribution::Uniform),
    ("normal", Distribution::Normal),
    ("log-normal", Distribution::LogNormal),
    ("exponential", Distribution::Exponential),
    ("one-of", Distribution::OneOf),
]);

/// A table with the key `draw`.
struct Draw {
    distribution: Distribution,
    /// Bounds of the uniform distribution, which includes both if both are whole.
    from: Amount,
    to: Amount,
    /// Mean of the normal and exponential distributions; median of the log-normal one.
    middle: Amount,
    /// Standard deviation of the normal distribution.
    deviation: Amount,
    /// Standard deviation of the logarithm of a log-normal value.
    sigma: Amount,
    /// Values beyond these limits become the limits.
    least: Option<Amount>,
    most: Option<Amount>,
    /// The values of which one is drawn.
    values: Vec<Node>,
    /// Time between two draws; without it the value holds for the whole run.
    every: Option<Duration>,
    /// Time of the second draw, `every` by default.
    first: Option<Duration>,
    /// Relative standard deviation of the values of each second around the value of their slot.
    within: f64,
    /// Name of a stream that several tables share.
    tied: Option<String>,
}

/// Time between two values of a slot with `within`, and their autocorrelation over that time.
const WITHIN_EVERY: Duration = Duration::from_secs(1);
const WITHIN_CORRELATION: f64 = 0.8;

impl Default for Draw {
    fn default() -> Self {
        let zero = Amount::default;
        Self {
            distribution: Distribution::Uniform,
            from: zero(),
            to: zero(),
            middle: zero(),
            deviation: zero(),
            sigma: zero(),
            least: None,
            most: None,
            values: Vec::new(),
            every: None,
            first: None,
            within: 0.0,
            tied: None,
        }
    }
}

/// Keys of a table with the key `draw`.
pub(crate) fn keys(form: &mut Form<'_>) {
    draw(form, &mut Draw::default());
}

fn draw(form: &mut Form<'_>, draw: &mut Draw) {
    form.required("draw", &mut draw.distribution, &DISTRIBUTIONS);
    let all = form.lists();
    let of = draw.distribution;
    if all || of == Distribution::Uniform {
        form.required("from", &mut draw.from, &AMOUNT);
        form.required("to", &mut draw.to, &AMOUNT);
    }
    if all || matches!(of, Distribution::Normal | Distribution::Exponential) {
        form.required("mean", &mut draw.middle, &AMOUNT);
    }
    if all || of == Distribution::Normal {
        form.required("deviation", &mut draw.deviation, &AMOUNT);
    }
    if all || of == Distribution::LogNormal {
        form.required("median", &mut draw.middle, &AMOUNT);
        form.required("sigma", &mut draw.sigma, &AMOUNT);
    }
    if all || of == Distribution::OneOf {
        form.required("values", &mut draw.values, &Values);
    }
    if all || !matches!(of, Distribution::Uniform | Distribution::OneOf) {
        form.field("least", &mut draw.least, &OrWord("none", AMOUNT));
        form.field("most", &mut draw.most, &OrWord("none", AMOUNT));
    }
    form.field("every", &mut draw.every, &OrWord("never", TIME_ABOVE_ZERO));
    form.field("first", &mut draw.first, &OrWord("every", TIME));
    if all || of != Distribution::OneOf {
        form.field("within", &mut draw.within, &PROBABILITY);
    }
    form.field("tied", &mut draw.tied, &OrWord("none", TEXT));
}

/// Codec of a list of at least one value of any kind.
struct Values;

impl Codec<Vec<Node>> for Values {
    fn read(&self, value: &Value) -> Result<Vec<Node>, Refused> {
        match value {
            Value::List(items) if !items.is_empty() => Ok(items.clone()),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &Vec<Node>) -> Value {
        Value::List(typed.clone())
    }
    fn accepted(&self) -> String {
        "a list of values, such as [\"5 Mbit/s\", \"20 Mbit/s\"]; one that stands twice is drawn twice as often"
            .to_owned()
    }
}

/// True if a value of this tree depends on the seed.
pub(crate) fn has_draws(node: &Node) -> bool {
    let Some(table) = node.as_table() else { return false };
    is_draw(table) || inner(table).any(has_draws)
}

fn is_draw(table: &Table) -> bool {
    table.get("draw").is_some_and(|draw| draw.as_table().is_none())
}

fn inner(table: &Table) -> impl Iterator<Item = &Node> {
    table.entries.iter().map(|entry| &entry.node).chain(table.bare.as_deref())
}

/// Properties of the run that determine its draws.
#[derive(Clone, Copy)]
struct Run {
    seed: u64,
    /// Simulated time, which draws with `every` fill.
    duration: Duration,
}

/// Returns the scenario `root` with a value in place of each table with the key `draw`. Reports the mistakes in those tables.
/// Without `seed`, the scenario's own seed chooses.
pub(crate) fn drawn(root: &Node, seed: Option<u64>, report: &mut Report) -> Node {
    let written = |key: &str| root.as_table().and_then(|table| table.get(key));
    for key in ["seed", "duration"] {
        if let Some(node) = written(key).filter(|node| has_draws(node)) {
            let (place, found) = (node.place.clone(), "a draw".to_owned());
            let accepted = "a value; draws depend on it".to_owned();
            report.add(Mistake { place, key: key.to_owned(), found, accepted, suggestion: None });
        }
    }
    let own = || written("seed").and_then(|node| Codec::<u64>::read(&Count::ANY, &node.value).ok());
    let duration = written("duration").and_then(|node| TIME.read(&node.value).ok());
    // A mistake in seed or duration is reported where they are read.
    let run = Run { seed: seed.or_else(own).unwrap_or(1), duration: duration.unwrap_or(Duration::ZERO) };
    below(root, "", run, report)
}

fn below(node: &Node, path: &str, run: Run, report: &mut Report) -> Node {
    let Some(table) = node.as_table() else { return node.clone() };
    if is_draw(table) {
        return Node { value: value(node, path, run, report), place: node.place.clone() };
    }
    let bare = table.bare.as_ref().map(|bare| Box::new(below(bare, path, run, report)));
    let mut entry = |entry: &Entry| {
        let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        Entry {
            node: below(&entry.node, &path, run, report),
            key: entry.key.clone(),
            place: entry.place.clone(),
        }
    };
    let entries = table.entries.iter().map(&mut entry).collect();
    Node { value: Value::Table(Table { entries, bare }), place: node.place.clone() }
}

/// Returns the value of a table with the key `draw`: one value, or pairs of a time and a value.
fn value(node: &Node, path: &str, run: Run, report: &mut Report) -> Value {
    let mut draw = Draw::default();
    let mut own = Report::default();
    form::read(node, path, &mut own, |form| self::draw(form, &mut draw));
    if own.is_empty() {
        draw.check(node, path, run, &mut own);
    }
    if !own.is_empty() {
        report.append(own);
        return Value::Whole(0);
    }
    let stream = draw.tied.as_deref().unwrap_or(path);
    let mut rng = Rng::stream(run.seed, &format!("draw {stream}"));
    let Some(every) = draw.every else { return draw.at(rng.uniform(), 1.0) };
    let mut ripple = Ripple { rng: Rng::stream(run.seed, &format!("within {stream}")), normal: None };
    let mut pairs = Vec::new();
    let (mut begin, mut end) = (Duration::ZERO, draw.first.unwrap_or(every));
    while begin.is_zero() || begin < run.duration {
        let quantile = rng.uniform();
        let step = if draw.within > 0.0 { WITHIN_EVERY } else { every };
        let mut time = begin;
        while time == begin || time < end.min(run.duration) {
            pairs.push((time, draw.at(quantile, 1.0 + draw.within * ripple.next())));
            time += step;
        }
        (begin, end) = (end, end + every);
    }
    let cell = |value: Value| Node { value, place: node.place.clone() };
    let pair = |(time, value)| cell(Value::List(vec![cell(TIME.show(&time)), cell(value)]));
    Value::List(pairs.into_iter().map(pair).collect())
}

/// Standard normal numbers of a first-order autoregressive process.
struct Ripple {
    rng: Rng,
    normal: Option<f64>,
}

impl Ripple {
    fn next(&mut self) -> f64 {
        let fresh = normal_at(self.rng.uniform());
        let weight = (1.0 - WITHIN_CORRELATION * WITHIN_CORRELATION).sqrt();
        let next = self.normal.map_or(fresh, |last| WITHIN_CORRELATION * last + weight * fresh);
        self.normal = Some(next);
        next
    }
}

/// Quantile of the standard normal distribution, which has no least value.
fn normal_at(quantile: f64) -> f64 {
    Normal::standard().inverse_cdf(quantile.max(f64::EPSILON))
}

impl Draw {
    fn amounts(&self) -> Vec<(&'static str, &Amount)> {
        let limits = [("least", &self.least), ("most", &self.most)];
        let limits = limits.into_iter().filter_map(|(key, limit)| Some((key, limit.as_ref()?)));
        let own = match self.distribution {
            Distribution::Uniform => vec![("from", &self.from), ("to", &self.to)],
            Distribution::Normal => vec![("mean", &self.middle), ("deviation", &self.deviation)],
            Distribution::LogNormal => vec![("median", &self.middle)],
            Distribution::Exponential => vec![("mean", &self.middle)],
            Distribution::OneOf => Vec::new(),
        };
        own.into_iter().chain(limits).collect()
    }

    /// Reports what no single key shows to be wrong.
    fn check(&self, node: &Node, path: &str, run: Run, report: &mut Report) {
        let mut refuse = |key: &str, found: String, accepted: String| {
            let place = node.as_table().and_then(|table| table.get(key)).unwrap_or(node).place.clone();
            report.add(Mistake { place, key: format!("{path}.{key}"), found, accepted, suggestion: None });
        };
        let amounts = self.amounts();
        for (key, amount) in amounts.iter().skip(1) {
            if amount.unit != amounts[0].1.unit {
                let accepted = format!("an amount in the unit of {}, {}", amounts[0].0, amounts[0].1);
                refuse(key, format!("\"{amount}\""), accepted);
            }
        }
        if self.distribution == Distribution::LogNormal && !self.sigma.unit.is_empty() {
            refuse("sigma", format!("\"{}\"", self.sigma), "a number without a unit, such as 0.5".to_owned());
        }
        let spread = [("deviation", &self.deviation), ("sigma", &self.sigma)];
        for (key, _) in spread.into_iter().filter(|(_, amount)| amount.number < 0.0) {
            refuse(key, "less than 0".to_owned(), "0 or more".to_owned());
        }
        if self.within > 0.0 && self.every.is_none() {
            refuse("within", self.within.to_string(), "0 without `every`".to_owned());
        }
        let slot = self.every.map(|every| if self.within > 0.0 { every.min(WITHIN_EVERY) } else { every });
        if let Some(every) = slot
            && run.duration.as_nanos() / every.as_nanos().max(1) > MOST_VALUES
        {
            let accepted = format!("a time that gives at most {MOST_VALUES} values in {}", run.duration);
            refuse("every", format!("\"{every}\""), accepted);
        }
    }

    /// Returns the value at this quantile, a number in `[0, 1)`. Numbers are multiplied by a factor.
    fn at(&self, quantile: f64, factor: f64) -> Value {
        let normal = || normal_at(quantile);
        let number = match self.distribution {
            Distribution::OneOf => {
                let index = (quantile * self.values.len() as f64) as usize;
                return self.values[index.min(self.values.len() - 1)].value.clone();
            }
            Distribution::Uniform => {
                let whole = self.from.whole && self.to.whole;
                let (low, high) = (self.from.number, self.to.number);
                // A range of whole numbers includes its last.
                let beyond = if high < low { -1.0 } else { 1.0 };
                if whole {
                    (low + ((high - low + beyond) * quantile).trunc()).clamp(low.min(high), low.max(high))
                } else {
                    low + (high - low) * quantile
                }
            }
            Distribution::Normal => self.middle.number + self.deviation.number * normal(),
            Distribution::LogNormal => self.middle.number * (self.sigma.number * normal()).exp(),
            Distribution::Exponential => -self.middle.number * (1.0 - quantile).ln(),
        };
        let number = number * factor;
        let above = self.least.as_ref().map_or(number, |least| number.max(least.number));
        let number = self.most.as_ref().map_or(above, |most| above.min(most.number));
        let like = self.amounts()[0].1;
        Amount {
            number,
            whole: like.whole && self.distribution == Distribution::Uniform,
            unit: like.unit.clone(),
        }
        .value()
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::Rate;
    use bentpipe_net::{LossModel, Schedule};

    use crate::Draft;
    use crate::model::Scenario;

    fn draft(settings: &[&str]) -> Draft {
        let mut draft = Draft::load("geo-single").unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        draft
    }

    fn rate(scenario: &Scenario) -> u64 {
        let Schedule::Constant(rate) = scenario.links[0].forward.rate else { panic!("a constant rate") };
        rate.bps()
    }

    const UNIFORM: &str =
        "link.satellite.rate={ draw = \"uniform\", from = \"5 Mbit/s\", to = \"20 Mbit/s\" }";

    #[test]
    fn a_seed_chooses_a_value_again_and_another_seed_another() {
        let draft = draft(&[UNIFORM]);
        let of = |seed| rate(&draft.scenario_for(Some(seed)).unwrap());
        assert_eq!(of(7), of(7));
        let drawn: Vec<u64> = (0..200).map(of).collect();
        assert!(drawn.iter().all(|rate| (5_000_000..20_000_000).contains(rate)), "{drawn:?}");
        let mean = drawn.iter().sum::<u64>() / 200;
        // The standard error of the mean of 200 is 0.31 Mbit/s.
        assert!(mean.abs_diff(12_500_000) < 1_000_000, "{mean}");
        let scenario = draft.scenario().unwrap();
        assert_eq!(rate(&scenario), of(1), "the seed of the scenario is 1");
        assert_eq!(rate(&scenario.for_seed(7).unwrap()), of(7));
    }

    #[test]
    fn tied_values_change_together_slot_by_slot() {
        let slots = "every = \"15 s\", first = \"12 s\", tied = \"sky\" }";
        let scenario = draft(&[
            "duration=60 s",
            &format!(
                "link.satellite.rate={{ draw = \"uniform\", from = \"5 Mbit/s\", to = \"20 Mbit/s\", {slots}"
            ),
            &format!("link.satellite.loss={{ draw = \"uniform\", from = 0.1, to = 0.0, {slots}"),
        ]);
        let scenario = scenario.scenario().unwrap();
        let link = &scenario.links[0].forward;
        let Schedule::Table { points: rates, .. } = &link.rate else { panic!("{:?}", link.rate) };
        let LossModel::Schedule { points: losses, .. } = &link.loss.model else { panic!("{:?}", link.loss) };
        let times: Vec<u64> = rates.iter().map(|(time, _)| time.as_nanos() / 1_000_000_000).collect();
        assert_eq!(times, [0, 12, 27, 42, 57]);
        for ((_, rate), (_, loss)) in rates.iter().zip(losses) {
            let quantile = (rate.bps() as f64 - 5e6) / 15e6;
            assert!((loss - 0.1 * (1.0 - quantile)).abs() < 1e-5, "{rate} {loss}");
        }
        assert!(rates.iter().any(|(_, rate)| *rate != rates[0].1));
    }

    /// Rates of a link with slots of 15 s, in Mbit/s.
    fn slots(within: &str) -> Vec<(u64, f64)> {
        let draw = "draw = \"uniform\", from = \"20 Mbit/s\", to = \"80 Mbit/s\", every = \"15 s\"";
        let draft = draft(&["duration=6000 s", &format!("link.satellite.rate={{ {draw}{within} }}")]);
        let Schedule::Table { points, .. } = draft.scenario().unwrap().links[0].forward.rate.clone() else {
            panic!("a table")
        };
        points.iter().map(|(time, rate)| (time.as_nanos() / 1_000_000_000, rate.bps() as f64 / 1e6)).collect()
    }

    #[test]
    fn values_within_a_slot_vary_around_the_value_of_the_slot() {
        let (plain, rippled) = (slots(""), slots(", within = 0.1"));
        assert!(rippled.iter().map(|(time, _)| *time).eq(0..6000), "one value each second");
        let ratios: Vec<f64> =
            rippled.iter().map(|(time, rate)| rate / plain[(time / 15) as usize].1 - 1.0).collect();
        let covariance = |lag: usize| {
            ratios.iter().zip(&ratios[lag..]).map(|(a, b)| a * b).sum::<f64>() / ratios.len() as f64
        };
        let deviation = covariance(0).sqrt();
        assert!((deviation - 0.1).abs() < 0.01, "{deviation}");
        let correlations = [1, 5].map(|lag| covariance(lag) / covariance(0));
        assert!((correlations[0] - 0.8).abs() < 0.05, "{correlations:?}");
        assert!((correlations[1] - 0.33).abs() < 0.1, "0.8 to the fifth: {correlations:?}");
    }

    #[test]
    fn each_distribution_has_its_mean_and_keeps_its_limits() {
        let mean_of = |table: &str| {
            let key = format!("link.satellite.delay-one-way={{ {table}, every = \"100 ms\" }}");
            let draft = draft(&["duration=1000 s", &key]);
            let scenario = draft.scenario().unwrap_or_else(|error| panic!("{error}"));
            let Schedule::Table { points, .. } = scenario.links[0].forward.delay_one_way.clone() else {
                panic!("a table")
            };
            let delays: Vec<f64> = points.iter().map(|(_, delay)| delay.as_secs_f64() * 1e3).collect();
            assert_eq!(delays.len(), 10_000);
            let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
            let most = delays.iter().copied().fold(0.0, f64::max);
            (delays.iter().sum::<f64>() / 1e4, least, most)
        };
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.02, "{found}");
        near(mean_of("draw = \"normal\", mean = \"40 ms\", deviation = \"5 ms\"").0, 40.0);
        let (mean, least, most) = mean_of(
            "draw = \"normal\", mean = \"40 ms\", deviation = \"5 ms\", least = \"38 ms\", most = \"41 ms\"",
        );
        assert!(mean < 40.0 && (least, most) == (38.0, 41.0), "{mean}");
        near(mean_of("draw = \"exponential\", mean = \"40 ms\"").0, 40.0);
        // Mean of a log-normal value: its median times exp(sigma^2 / 2).
        near(mean_of("draw = \"log-normal\", median = \"40 ms\", sigma = 0.5").0, 40.0 * 0.125_f64.exp());
        near(mean_of("draw = \"one-of\", values = [\"10 ms\", \"10 ms\", \"40 ms\"]").0, 20.0);
    }

    #[test]
    fn whole_numbers_are_drawn_with_both_bounds() {
        let draft = draft(&["flow.bulk.count={ draw = \"uniform\", from = 2, to = 4 }"]);
        let count = |seed| draft.scenario_for(Some(seed)).unwrap().flows[0].count;
        let drawn: std::collections::BTreeSet<u32> = (0..50).map(count).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn mistakes_name_the_table_that_is_drawn() {
        let refused = |setting: &str| draft(&[setting]).scenario().unwrap_err().to_string();
        let units =
            refused("link.satellite.rate={ draw = \"uniform\", from = \"5 Mbit/s\", to = \"20 kbit/s\" }");
        assert!(
            units.contains(
                "link.satellite.rate.to: found \"20 kbit/s\", accepted: an amount in the unit of from"
            ),
            "{units}"
        );
        let missing = refused("link.satellite.rate={ draw = \"normal\", mean = \"5 Mbit/s\" }");
        assert!(missing.contains("link.satellite.rate.deviation: found nothing"), "{missing}");
        let kind = refused("link.satellite.rate={ draw = \"uniforn\", from = 1, to = 2 }");
        assert!(kind.contains("did you mean \"uniform\"?"), "{kind}");
        let seed = refused("seed={ draw = \"uniform\", from = 1, to = 2 }");
        assert!(seed.contains("seed: found a draw"), "{seed}");
        // What is drawn must be what the key accepts.
        let wrong = refused("link.satellite.rate={ draw = \"uniform\", from = \"5 ms\", to = \"20 ms\" }");
        assert!(wrong.contains("link.satellite.rate"), "{wrong}");
        let within = refused(
            "link.satellite.rate={ draw = \"normal\", mean = \"5 Mbit/s\", deviation = \"1 Mbit/s\", within = 0.1 }",
        );
        assert!(
            within.contains("link.satellite.rate.within: found 0.1, accepted: 0 without `every`"),
            "{within}"
        );
        let slots = refused("title={ draw = \"one-of\", values = [\"a\", \"b\"], every = \"1 s\" }");
        assert!(slots.contains("title: found a list of 100"), "{slots}");
    }

    #[test]
    fn nothing_changes_for_scenarios_without_draws() {
        let scenario = draft(&[]).scenario().unwrap();
        assert!(matches!(scenario.for_seed(9).unwrap(), std::borrow::Cow::Borrowed(_)));
        assert_eq!(rate(&scenario), Rate::from_mbps(10).bps());
    }
}
