//! Result of a comparison: the document of `bentpipe compare --json`.

use std::collections::BTreeMap;

use bentpipe_outcome::{FlowOutcome, GroupOutcome, Outcome};
use bentpipe_scenario::{FlowGroup, Traffic};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::metric::Metric;
use crate::paired::{BySeed, Difference, correct};
use crate::plan::{Cell, Plan, Point, Setting};
use crate::stats::{self, Summary};

/// Results that are kept of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Seed of the run.
    pub seed: u64,
    /// One value for each of [`Metric::ALL`].
    values: [Option<f64>; Metric::ALL.len()],
    /// Mean goodput of a flow of each group, in bits per second.
    pub groups: BTreeMap<String, f64>,
    /// Results of each flow group, keyed by `QUANTITY.GROUP`.
    pub together: BTreeMap<String, f64>,
    /// Flows that completed.
    completed: Share,
    /// Flows that converged.
    converged: Share,
}

/// A number of flows out of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Share {
    /// Flows with a value.
    pub count: u64,
    /// All that could have.
    pub of: u64,
}

impl Share {
    fn of<'a>(flows: impl Iterator<Item = &'a FlowOutcome>, did: impl Fn(&FlowOutcome) -> bool) -> Self {
        flows.fold(Self::default(), |share, flow| Self {
            count: share.count + u64::from(did(flow)),
            of: share.of + 1,
        })
    }

    /// Every one did.
    pub const fn is_whole(self) -> bool {
        self.count == self.of
    }
}

/// Names of quantities that are no metric: goodput per flow of each group, and the numbers of flows that completed and converged.
const GROUP: &str = "flow_goodput_bps.";
const SHARES: [&str; 4] = ["flows_completed", "flows_ending", "flows_converged", "flows"];

/// A quantity of a group of flows: its name and its value.
type OfGroup = (&'static str, fn(&GroupOutcome) -> Option<f64>);

/// Quantities that are kept of each flow group.
pub(crate) const TOGETHER: [OfGroup; 16] = [
    ("goodput_bps", |group| Some(group.goodput_bps)),
    ("jain_index", |group| Some(group.jain_index)),
    ("retransmitted_segments", |group| Some(group.retransmitted_segments as f64)),
    ("timeouts", |group| Some(group.timeouts as f64)),
    ("completed", |group| Some(group.completed as f64)),
    ("completion_s", |group| group.completion_s),
    ("transfer_median_s", |group| group.transfer_median_s),
    ("mos", |group| group.mos),
    ("real_time_index", |group| group.real_time_index),
    ("video_rate_bps", |group| group.video_rate_bps),
    ("rtt_p50_ms", |group| Some(group.delays.rtt?.p50_ms)),
    ("rtt_p95_ms", |group| Some(group.delays.rtt?.p95_ms)),
    ("smoothed_rtt_p50_ms", |group| Some(group.delays.smoothed_rtt?.p50_ms)),
    ("smoothed_rtt_p95_ms", |group| Some(group.delays.smoothed_rtt?.p95_ms)),
    ("one_way_delay_p50_ms", |group| Some(group.delays.one_way_delay?.p50_ms)),
    ("one_way_delay_p95_ms", |group| Some(group.delays.one_way_delay?.p95_ms)),
];

/// True if flow groups have a quantity of this name.
pub(crate) fn is_together(name: &str) -> bool {
    TOGETHER.iter().any(|(what, _)| *what == name)
}

/// The quantities of a group that it has, by `QUANTITY.GROUP`.
fn together(group: &GroupOutcome) -> impl Iterator<Item = (String, f64)> {
    TOGETHER.iter().filter_map(|(what, of)| Some((format!("{what}.{}", group.name), of(group)?)))
}

impl Sample {
    /// Returns the results to keep of `outcome`, a run of a scenario with these flow groups.
    pub fn of(outcome: &Outcome, groups: &[FlowGroup]) -> Self {
        let ends = |name: &str| {
            groups.iter().any(|group| group.name == name && matches!(group.traffic, Traffic::File { .. }))
        };
        let ending = outcome.flows.iter().filter(|flow| ends(&flow.group));
        let completed = Share::of(ending, |flow| flow.completion_s.is_some());
        let converged = Share::of(outcome.flows.iter(), |flow| flow.convergence_s.is_some());
        let mut flows: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for flow in &outcome.flows {
            flows.entry(flow.group.clone()).or_default().push(flow.goodput_bps);
        }
        let groups = flows.into_iter().filter_map(|(group, of)| Some((group, stats::mean(&of)?))).collect();
        let values = Metric::ALL.map(|metric| metric.of(outcome));
        let together = outcome.groups.iter().flat_map(together).collect();
        Self { seed: outcome.seed, values, groups, together, completed, converged }
    }

    /// Returns all quantities of the run, by name.
    pub fn quantities(&self) -> impl Iterator<Item = (String, Option<f64>)> {
        let metrics = Metric::ALL.into_iter().map(|metric| (metric.key().to_owned(), self.get(metric)));
        let groups = self.groups.iter().map(|(group, goodput)| (format!("{GROUP}{group}"), Some(*goodput)));
        let shares = [self.completed.count, self.completed.of, self.converged.count, self.converged.of];
        let shares =
            SHARES.into_iter().zip(shares).map(|(name, count)| (name.to_owned(), Some(count as f64)));
        let together = self.together.iter().map(|(name, value)| (name.clone(), Some(*value)));
        metrics.chain(groups).chain(together).chain(shares)
    }

    /// Rebuilds a sample from its [`Sample::quantities`]; `None` if some are missing. Unknown quantities are ignored.
    pub fn from_quantities(seed: u64, of: &BTreeMap<String, Option<f64>>) -> Option<Self> {
        let mut values = [None; Metric::ALL.len()];
        for metric in Metric::ALL {
            values[metric as usize] = *of.get(metric.key())?;
        }
        let count = |name: &str| of.get(name).copied().flatten().map(|count| count as u64);
        let [completed, of_ending, converged, of_all] = SHARES.map(count);
        let groups =
            of.iter().filter_map(|(name, goodput)| Some((name.strip_prefix(GROUP)?.to_owned(), (*goodput)?)));
        Some(Self {
            seed,
            values,
            groups: groups.collect(),
            together: of
                .iter()
                .filter(|(name, _)| name.split_once('.').is_some_and(|(what, _)| is_together(what)))
                .filter_map(|(name, value)| Some((name.clone(), (*value)?)))
                .collect(),
            completed: Share { count: completed?, of: of_ending? },
            converged: Share { count: converged?, of: of_all? },
        })
    }

    /// Returns the number of flows in the mean of a metric, if the mean is not over all flows.
    pub const fn share(&self, metric: Metric) -> Option<Share> {
        match metric {
            Metric::Completion if self.completed.of > 0 => Some(self.completed),
            Metric::Convergence => Some(self.converged),
            _ => None,
        }
    }

    /// Number of flows.
    pub const fn flows(&self) -> u64 {
        self.converged.of
    }

    /// The value of a metric.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }
}

/// One algorithm at one combination of the varied values, over the seeds that finished.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Algorithm and varied values.
    pub cell: Cell,
    /// The runs in the order of their seeds.
    pub samples: Vec<Sample>,
}

impl Row {
    /// A metric over the seeds.
    pub fn summary(&self, metric: Metric) -> Summary {
        summary(&self.by_seed(metric))
    }

    /// The values of a metric by seed.
    pub(crate) fn by_seed(&self, metric: Metric) -> BySeed {
        self.samples.iter().filter_map(|sample| Some((sample.seed, sample.get(metric)?))).collect()
    }

    /// Returns a metric of these flow groups alone, by seed; without values if the groups do not have it.
    pub(crate) fn by_seed_of(&self, metric: Metric, groups: &[String]) -> BySeed {
        let value = |sample: &Sample| {
            let of = |group: &String| sample.together.get(&format!("{}.{group}", metric.key())).copied();
            match groups {
                [group] => of(group),
                several if metric == Metric::Goodput => several.iter().map(of).sum(),
                _ => None,
            }
        };
        self.samples.iter().filter_map(|sample| Some((sample.seed, value(sample)?))).collect()
    }

    /// Returns the number of flows in the means of a metric, over all seeds, if some flows have no value.
    pub fn part(&self, metric: Metric) -> Option<Share> {
        let shares = self.samples.iter().filter_map(|sample| sample.share(metric));
        let add = |sum: Share, one: Share| Share { count: sum.count + one.count, of: sum.of + one.of };
        shares.reduce(add).filter(|share| !share.is_whole())
    }

    /// Mean goodput of one flow of each group, over the seeds.
    pub fn groups(&self) -> BTreeMap<&str, Summary> {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (group, goodput) in self.samples.iter().flat_map(|sample| &sample.groups) {
            values.entry(group).or_default().push(*goodput);
        }
        values.into_iter().map(|(group, of)| (group, Summary::of(&of))).collect()
    }
}

/// The summary of some values.
pub(crate) fn summary(values: &[(u64, f64)]) -> Summary {
    Summary::of(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

struct Settings<'a>(&'a [Setting]);

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|setting| (&setting.key, &setting.value)))
    }
}

/// A row as the document has it, with its differences from the baseline by metric.
struct Written<'a>(&'a Row, BTreeMap<&'static str, Difference>);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(row, differences) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cc", &row.cell.cc)?;
        map.serialize_entry("vary", &Settings(&row.cell.vary))?;
        for metric in Metric::ALL {
            let summary = row.summary(metric);
            if !metric.is_optional() || summary.mean.is_some() {
                map.serialize_entry(metric.key(), &summary)?;
            }
            if let Some(share) = row.part(metric) {
                map.serialize_entry(&format!("{}_flows", metric.key()), &share)?;
            }
        }
        map.serialize_entry("seeds_done", &row.samples.len())?;
        let groups = row.groups();
        if groups.len() > 1 {
            map.serialize_entry("flow_goodput_bps_by_group", &groups)?;
        }
        if !differences.is_empty() {
            map.serialize_entry("differences", differences)?;
        }
        map.end()
    }
}

/// A comparison; possibly only the finished part.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of Bentpipe.
    pub version: String,
    /// Requested number of seeds.
    pub seeds: u32,
    /// First seed; the others follow in sequence.
    pub first_seed: u64,
    /// Main metric of the scenario.
    pub measures: Metric,
    /// Baseline of the comparison.
    pub baseline: String,
    /// All runs finished.
    pub complete: bool,
    /// Names of the groups of flows in the order of the scenario.
    pub groups: Vec<String>,
    /// Groups whose flows run the algorithm under comparison.
    pub compared: Vec<String>,
    /// Unit that each varied loss rate counts (packets or bits), a sentence for each.
    pub notes: Vec<String>,
    /// Rows of which at least one run finished: algorithms, and for each the varied values.
    pub rows: Vec<Row>,
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows: Vec<_> = self.rows.iter().map(|row| Written(row, BTreeMap::new())).collect();
        for metric in Metric::ALL {
            for (row, difference) in rows.iter_mut().zip(self.differences(metric)) {
                row.1.extend(difference.map(|difference| (metric.key(), difference)));
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scenario", &self.scenario)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("seeds", &self.seeds)?;
        map.serialize_entry("first_seed", &self.first_seed)?;
        map.serialize_entry("measures", &self.measures)?;
        map.serialize_entry("baseline", &self.baseline)?;
        map.serialize_entry("complete", &self.complete)?;
        map.serialize_entry("rows", &rows)?;
        map.end()
    }
}

impl Comparison {
    /// Arranges the results of the runs of `plan` in rows.
    pub fn new(plan: &Plan, done: impl IntoIterator<Item = (Point, Sample)>) -> Self {
        let row = |cell: Cell| Row { cell, samples: Vec::new() };
        let mut rows: Vec<Row> = plan.cells().into_iter().map(row).collect();
        for (point, sample) in done {
            rows[point.cell].samples.push(sample);
        }
        let complete = rows.iter().all(|row| row.samples.len() == plan.seeds as usize);
        rows.retain(|row| !row.samples.is_empty());
        for row in &mut rows {
            row.samples.sort_by_key(|sample| sample.seed.wrapping_sub(plan.first_seed));
        }
        let has = |metric: &Metric| rows.iter().any(|row| row.summary(*metric).mean.is_some());
        let measures = Some(plan.measures).filter(has).unwrap_or(Metric::Goodput);
        Self {
            scenario: plan.scenario.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            seeds: plan.seeds,
            first_seed: plan.first_seed,
            measures,
            baseline: plan.baseline.clone(),
            complete,
            groups: plan.groups.clone(),
            compared: plan.compared.clone(),
            notes: plan.notes.clone(),
            rows,
        }
    }

    /// Differences of a metric from the baseline at the same varied values, one for each row; `None` for rows of the baseline and
    /// where either has no value.
    pub fn differences(&self, metric: Metric) -> Vec<Option<Difference>> {
        let difference = |row: &Row| {
            let baseline =
                self.row(&self.baseline, &row.cell.vary).filter(|base| base.cell.cc != row.cell.cc)?;
            let difference = Difference::of(&row.by_seed(metric), &baseline.by_seed(metric));
            difference.summary.mean.map(|_| difference)
        };
        let mut differences: Vec<_> = self.rows.iter().map(difference).collect();
        correct(&mut differences);
        differences
    }

    /// True if every run of a row has the same result, so that more seeds are useless.
    pub fn is_certain(&self) -> bool {
        let same = |row: &Row| row.samples.windows(2).all(|pair| pair[0].values == pair[1].values);
        self.seeds > 1 && self.rows.iter().all(same)
    }

    /// Index of the best algorithm at a combination by the main metric; `None` if its difference from another one is not significant.
    pub fn best(&self, vary: &[Setting]) -> Option<usize> {
        let sign = if self.measures.less_is_better() { -1.0 } else { 1.0 };
        let algorithms = self.algorithms();
        let values: Vec<BySeed> = algorithms
            .iter()
            .map(|cc| self.row(cc, vary).map(|row| row.by_seed(self.measures)).unwrap_or_default())
            .collect();
        let means = values.iter().enumerate();
        let means = means.filter_map(|(place, values)| Some((place, sign * summary(values).mean?)));
        let (best, _) = means.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let others: Vec<_> =
            values.iter().enumerate().filter(|(place, other)| *place != best && !other.is_empty()).collect();
        let apart = |other: &BySeed| Difference::of(&values[best], other).is_significant(others.len());
        others.iter().all(|(_, other)| apart(other)).then_some(best)
    }

    /// Groups whose flows keep their algorithm, so that their results are not those of the algorithm under comparison.
    pub fn fixed(&self) -> Vec<&str> {
        let groups = self.groups.iter().filter(|_| !self.compared.is_empty());
        groups.filter(|group| !self.compared.contains(group)).map(String::as_str).collect()
    }

    /// The optional metrics that at least one row has.
    pub fn optional_metrics(&self) -> Vec<Metric> {
        let has = |metric: &Metric| self.rows.iter().any(|row| row.summary(*metric).mean.is_some());
        Metric::ALL.into_iter().filter(|metric| metric.is_optional() && has(metric)).collect()
    }

    /// Algorithms that have a row, in the order of the plan.
    pub fn algorithms(&self) -> Vec<&str> {
        unique(self.rows.iter().map(|row| row.cell.cc.as_str()))
    }

    /// Combinations of varied values that have a row, in the order of the plan.
    pub fn combinations(&self) -> Vec<&[Setting]> {
        unique(self.rows.iter().map(|row| row.cell.vary.as_slice()))
    }

    /// The row of an algorithm at a combination.
    pub fn row(&self, cc: &str, vary: &[Setting]) -> Option<&Row> {
        self.rows.iter().find(|row| row.cell.cc == cc && row.cell.vary == vary)
    }
}

/// Each item once, in the order of its first appearance.
pub(crate) fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn rows_hold_what_finished_and_say_so() {
        let plan = example::plan();
        let runs = plan.points().into_iter().map(|point| {
            let outcome = example::outcome(&plan.cells()[point.cell].cc, point.seed);
            (point, Sample::of(&outcome, &[]))
        });
        let runs: Vec<_> = runs.collect();
        let whole = Comparison::new(&plan, runs.clone());
        assert!(whole.complete);
        assert_eq!((whole.rows.len(), whole.rows[0].samples.len()), (4, 3));

        let part = Comparison::new(&plan, runs.into_iter().rev().take(2));
        assert!(!part.complete);
        assert_eq!(part.rows.len(), 2);
        assert_eq!(part.algorithms(), ["peach"]);
    }

    #[test]
    fn json_has_the_promised_shape() {
        let json = serde_json::to_value(example::comparison()).unwrap();
        assert_eq!(json["scenario"], "example");
        assert_eq!(json["seeds"], 3);
        let row = &json["rows"][0];
        assert_eq!(row["cc"], "reno");
        assert_eq!(row["vary"]["link.satellite.loss.rate"], 1e-4);
        assert!(row.get("mos").is_none());
        for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_optional()) {
            let summary = &row[metric.key()];
            for field in ["mean", "ci95", "min", "max"] {
                assert!(summary.get(field).is_some(), "{}.{field}", metric.key());
            }
        }
        assert_eq!(row["timeouts"]["mean"], 2.0);
        assert!(row["completion_s"]["mean"].is_null());
        assert!(row.get("flow_goodput_bps_by_group").is_none());
    }

    #[test]
    fn a_sample_comes_back_from_its_quantities() {
        let sample = Sample::of(&example::outcome("peach", 7), &[]);
        let quantities: BTreeMap<_, _> = sample.quantities().collect();
        assert_eq!(Sample::from_quantities(7, &quantities), Some(sample));
        let mut part = quantities;
        part.remove("flows_ending");
        assert_eq!(Sample::from_quantities(7, &part), None);
    }

    #[test]
    fn the_best_is_better_than_every_other_seed_by_seed() {
        let with = |values: &[[f64; 3]], measures: Metric| {
            let mut plan = example::plan();
            (plan.vary, plan.measures) = (Vec::new(), measures);
            plan.algorithms = (0..values.len()).map(|cc| format!("cc{cc}")).collect();
            let run = |point: Point| {
                let mut outcome = example::outcome("reno", point.seed);
                let value = values[point.cell][point.seed as usize - 1];
                outcome.totals.goodput_bps = value;
                outcome.flows.iter_mut().for_each(|flow| flow.completion_s = Some(value));
                (point, Sample::of(&outcome, &[]))
            };
            Comparison::new(&plan, plan.points().into_iter().map(run)).best(&[])
        };
        // The seeds differ by more than the algorithms, which differ by nearly the same with each seed.
        let apart = [[8.0, 9.0, 7.0], [8.11, 9.1, 7.09]];
        assert_eq!(with(&apart, Metric::Goodput), Some(1));
        assert_eq!(with(&apart, Metric::Completion), Some(0));
        assert_eq!(with(&[[8.0, 9.0, 7.0], [8.5, 8.6, 7.1]], Metric::Goodput), None);
        assert_eq!(with(&[[8.0; 3]; 2], Metric::Goodput), None);
    }

    #[test]
    fn every_row_but_the_baseline_has_a_difference() {
        let comparison = example::comparison();
        let differences = comparison.differences(Metric::Goodput);
        let means: Vec<_> = differences.iter().map(|one| one.and_then(|one| one.summary.mean)).collect();
        assert_eq!(means, [None, None, Some(400_000.0), Some(400_000.0)]);
        assert_eq!(differences[2].unwrap().p_holm, Some(0.0));
    }

    #[test]
    fn groups_are_told_apart() {
        let mut outcome = example::outcome("reno", 1);
        outcome.flows[1].group = "ground".into();
        let sample = Sample::of(&outcome, &[]);
        assert_eq!(sample.groups["bulk"], outcome.flows[0].goodput_bps);
        assert_eq!(sample.groups["ground"], outcome.flows[1].goodput_bps);
    }
}
