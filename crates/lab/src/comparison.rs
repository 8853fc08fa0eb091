//! What a comparison found: the document of `bentpipe compare --json`.

use std::collections::BTreeMap;

use bentpipe_scenario::{FlowGroup, Scenario, Traffic};
use bentpipe_sim::{FlowOutcome, GroupOutcome, Outcome};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::number::RATE_UNIT;
use crate::plan::{Cell, Plan, Point, Setting};
use crate::stats::{self, Summary};

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Sum of the goodputs of all flows, in bits per second.
    Goodput,
    /// The same in full segments a second.
    GoodputSegments,
    /// Jain's fairness index of the flows' goodputs.
    Jain,
    /// Data segments sent again, all flows.
    Retransmissions,
    /// Timer expiries, all flows.
    Timeouts,
    /// Probes as a share of what was sent.
    ProbeOverhead,
    /// Mean completion time of the flows that end, in seconds.
    Completion,
    /// Mean real-time performance index of live videos.
    RealTimeIndex,
    /// Mean share of their packets that came late.
    DelayedPackets,
    /// Their losses over the packets that they sent, mean.
    PacketDrops,
    /// Mean share of their frames that were not complete in time.
    FramesMissed,
    /// Mean opinion score of calls.
    Mos,
    /// Mean over the clients of the median time of a page or file, in seconds.
    TransferMedian,
    /// Mean rate of adaptive videos, in bits per second.
    VideoRate,
    /// Mean share of the time since they began in which adaptive videos stood still.
    Rebuffering,
    /// In a world of two flow groups: mean goodput of a flow of the first over that of the second.
    FairnessRatio,
    /// Sum of the throughputs of all flows, in bits per second.
    Throughput,
    /// Mean convergence time of the flows that converged, in seconds.
    Convergence,
    /// Mean transmission gap of the busiest link, in milliseconds.
    Gap,
}

impl Metric {
    /// All metrics in the order of documents and tables.
    pub const ALL: [Self; 19] = [
        Self::Goodput,
        Self::GoodputSegments,
        Self::Jain,
        Self::Retransmissions,
        Self::Timeouts,
        Self::ProbeOverhead,
        Self::Completion,
        Self::RealTimeIndex,
        Self::DelayedPackets,
        Self::PacketDrops,
        Self::FramesMissed,
        Self::Mos,
        Self::TransferMedian,
        Self::VideoRate,
        Self::Rebuffering,
        Self::FairnessRatio,
        Self::Throughput,
        Self::Convergence,
        Self::Gap,
    ];

    /// What a flow of this traffic is run for.
    pub const fn measured_by(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::File { .. } | Traffic::Pages { .. } => Self::Completion,
            Traffic::Web(_) | Traffic::Ftp(_) => Self::TransferMedian,
            Traffic::Voice { .. } => Self::Mos,
            Traffic::Video { .. } | Traffic::Frames { .. } => Self::RealTimeIndex,
            Traffic::Adaptive(_) => Self::VideoRate,
            Traffic::Bulk | Traffic::Cbr { .. } | Traffic::OnOff(_) => Self::Goodput,
        }
    }

    /// What a scenario is run for: what its flows under comparison measure.
    pub fn of_scenario(scenario: &Scenario) -> Self {
        scenario.compared_flow().map_or(Self::Goodput, |flow| Self::measured_by(&flow.traffic))
    }

    /// True for times and what else is the better the less there is of it.
    pub const fn less_is_better(self) -> bool {
        matches!(
            self,
            Self::Retransmissions
                | Self::Timeouts
                | Self::ProbeOverhead
                | Self::Completion
                | Self::DelayedPackets
                | Self::PacketDrops
                | Self::FramesMissed
                | Self::TransferMedian
                | Self::Rebuffering
                | Self::Convergence
                | Self::Gap
        )
    }

    /// The name for people, the unit that they read it in, and how many of the document's units that is.
    pub const fn shown(self) -> (&'static str, &'static str, f64) {
        match self {
            Self::Goodput => ("Goodput", RATE_UNIT.1, RATE_UNIT.0),
            Self::GoodputSegments => ("Goodput", "segments/s", 1.0),
            Self::Jain => ("Fairness", "Jain's index", 1.0),
            Self::Retransmissions => ("Retransmissions", "segments sent again", 1.0),
            Self::Timeouts => ("Timeouts", "timer expiries", 1.0),
            Self::ProbeOverhead => ("Probe overhead", "%", 0.01),
            Self::Completion => ("Completion time", "s", 1.0),
            Self::RealTimeIndex => ("Real-time performance", "index", 1.0),
            Self::DelayedPackets => ("Delayed packets", "% of packets sent", 0.01),
            Self::PacketDrops => ("Packets dropped", "% of packets sent", 0.01),
            Self::FramesMissed => ("Frames missed", "%", 0.01),
            Self::Mos => ("Quality of calls", "mean opinion score", 1.0),
            Self::TransferMedian => ("Pages or files, median", "s", 1.0),
            Self::VideoRate => ("Adaptive video", RATE_UNIT.1, RATE_UNIT.0),
            Self::Rebuffering => ("Rebuffering", "% of the time", 0.01),
            Self::Throughput => ("Throughput", RATE_UNIT.1, RATE_UNIT.0),
            Self::Convergence => ("Convergence time", "s", 1.0),
            Self::Gap => ("Transmission gaps of the busiest link, mean", "ms", 1.0),
            Self::FairnessRatio => ("Fairness ratio", "first group / second", 1.0),
        }
    }

    /// Whether documents and tables leave it out where it has no meaning.
    pub const fn is_optional(self) -> bool {
        self as usize > Self::Completion as usize
    }

    /// Field name in JSON and column name in CSV.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Goodput => "goodput_bps",
            Self::GoodputSegments => "goodput_segments_per_s",
            Self::Jain => "jain_index",
            Self::Retransmissions => "retransmitted_segments",
            Self::Timeouts => "timeouts",
            Self::ProbeOverhead => "probe_overhead",
            Self::Completion => "completion_s",
            Self::RealTimeIndex => "real_time_index",
            Self::DelayedPackets => "delayed_packets_rate",
            Self::PacketDrops => "packet_drop_rate",
            Self::FramesMissed => "frames_missed",
            Self::Mos => "mos",
            Self::TransferMedian => "transfer_median_s",
            Self::VideoRate => "video_rate_bps",
            Self::Rebuffering => "rebuffering_ratio",
            Self::FairnessRatio => "fairness_ratio",
            Self::Throughput => "throughput_bps",
            Self::Convergence => "convergence_s",
            Self::Gap => "gap_ms",
        }
    }

    /// The value in one run; `None` where it has no meaning (no flow ends).
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        let sum = |field: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(field).sum::<u64>() as f64;
        let mean = |field: fn(&FlowOutcome) -> Option<f64>| {
            stats::mean(&outcome.flows.iter().filter_map(field).collect::<Vec<_>>())
        };
        let value = match self {
            Self::Goodput => outcome.totals.goodput_bps,
            Self::GoodputSegments => outcome.totals.goodput_segments_per_s,
            Self::Jain => outcome.totals.jain_index,
            Self::Retransmissions => sum(|flow| flow.retransmitted_segments),
            Self::Timeouts => sum(|flow| flow.timeouts),
            Self::ProbeOverhead => outcome.totals.probe_overhead,
            Self::Completion => mean(|flow| flow.completion_s)?,
            Self::RealTimeIndex => mean(|flow| Some(flow.stream?.real_time_index))?,
            Self::DelayedPackets => mean(|flow| Some(flow.stream?.delayed_packets_rate))?,
            Self::PacketDrops => mean(|flow| Some(flow.stream?.packet_drop_rate))?,
            Self::FramesMissed => mean(|flow| Some(flow.stream?.frames_missed))?,
            Self::Mos => mean(|flow| Some(flow.call?.mos))?,
            Self::TransferMedian => mean(|flow| flow.transfers?.median_s)?,
            Self::VideoRate => mean(|flow| flow.player?.mean_rate_bps)?,
            Self::Rebuffering => mean(|flow| Some(flow.player?.rebuffering_ratio))?,
            Self::FairnessRatio => outcome.totals.fairness_ratio?,
            Self::Throughput => outcome.totals.throughput_bps,
            Self::Convergence => mean(|flow| flow.convergence_s)?,
            Self::Gap => {
                let links = outcome.links.iter();
                links.max_by(|a, b| a.utilisation.total_cmp(&b.utilisation))?.gaps?.mean_ms
            }
        };
        value.is_finite().then_some(value)
    }
}

/// What is kept of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Seed of the run.
    pub seed: u64,
    /// One value for each of [`Metric::ALL`].
    values: [Option<f64>; Metric::ALL.len()],
    /// Mean goodput of a flow of each group, in bits per second.
    pub groups: BTreeMap<String, f64>,
    /// What the flows of each group did together, as `QUANTITY.GROUP`.
    pub together: BTreeMap<String, f64>,
    /// Flows that completed.
    completed: Share,
    /// Flows that converged.
    converged: Share,
}

/// So many of so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Share {
    /// Those that did.
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

/// Names of what is no metric: goodput of a flow of each group, flows that completed and converged, and of how many.
const GROUP: &str = "flow_goodput_bps.";
const SHARES: [&str; 4] = ["flows_completed", "flows_ending", "flows_converged", "flows"];

/// What is kept of the flows of a group together.
pub(crate) const TOGETHER: [&str; 10] = [
    "goodput_bps",
    "jain_index",
    "retransmitted_segments",
    "timeouts",
    "completed",
    "completion_s",
    "transfer_median_s",
    "mos",
    "real_time_index",
    "video_rate_bps",
];

/// The quantities of a group that it has, by `QUANTITY.GROUP`.
fn together(group: &GroupOutcome) -> impl Iterator<Item = (String, f64)> + use<> {
    let values = [
        Some(group.goodput_bps),
        Some(group.jain_index),
        Some(group.retransmitted_segments as f64),
        Some(group.timeouts as f64),
        Some(group.completed as f64),
        group.completion_s,
        group.transfer_median_s,
        group.mos,
        group.real_time_index,
        group.video_rate_bps,
    ];
    let name = group.name.clone();
    TOGETHER.into_iter().zip(values).filter_map(move |(what, value)| Some((format!("{what}.{name}"), value?)))
}

impl Sample {
    /// What is kept of `outcome`, a run of a scenario with these flow groups.
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

    /// All that is known of the run, by name.
    pub fn quantities(&self) -> impl Iterator<Item = (String, Option<f64>)> {
        let metrics = Metric::ALL.into_iter().map(|metric| (metric.key().to_owned(), self.get(metric)));
        let groups = self.groups.iter().map(|(group, goodput)| (format!("{GROUP}{group}"), Some(*goodput)));
        let shares = [self.completed.count, self.completed.of, self.converged.count, self.converged.of];
        let shares =
            SHARES.into_iter().zip(shares).map(|(name, count)| (name.to_owned(), Some(count as f64)));
        let together = self.together.iter().map(|(name, value)| (name.clone(), Some(*value)));
        metrics.chain(groups).chain(together).chain(shares)
    }

    /// The sample that [`Sample::quantities`] came from; `None` if some are missing. Others are left out.
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
                .filter(|(name, _)| name.split_once('.').is_some_and(|(what, _)| TOGETHER.contains(&what)))
                .filter_map(|(name, value)| Some((name.clone(), (*value)?)))
                .collect(),
            completed: Share { count: completed?, of: of_ending? },
            converged: Share { count: converged?, of: of_all? },
        })
    }

    /// Of how many flows the value of a metric is the mean, where it is not that of all.
    pub const fn share(&self, metric: Metric) -> Option<Share> {
        match metric {
            Metric::Completion if self.completed.of > 0 => Some(self.completed),
            Metric::Convergence => Some(self.converged),
            _ => None,
        }
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
        Summary::of(&self.samples.iter().filter_map(|sample| sample.get(metric)).collect::<Vec<_>>())
    }

    /// Of how many flows the values of a metric are means, over all seeds, where some have none.
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

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

struct Settings<'a>(&'a [Setting]);

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|setting| (&setting.key, &setting.value)))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cc", &self.cell.cc)?;
        map.serialize_entry("vary", &Settings(&self.cell.vary))?;
        for metric in Metric::ALL {
            let summary = self.summary(metric);
            if !metric.is_optional() || summary.mean.is_some() {
                map.serialize_entry(metric.key(), &summary)?;
            }
            if let Some(share) = self.part(metric) {
                map.serialize_entry(&format!("{}_flows", metric.key()), &share)?;
            }
        }
        map.serialize_entry("seeds_done", &self.samples.len())?;
        let groups = self.groups();
        if groups.len() > 1 {
            map.serialize_entry("flow_goodput_bps_by_group", &groups)?;
        }
        map.end()
    }
}

/// A comparison, or as much of it as was done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of Bentpipe.
    pub version: String,
    /// Seeds asked for.
    pub seeds: u32,
    /// The first of them; the others follow it.
    pub first_seed: u64,
    /// What the scenario is run for.
    pub measures: Metric,
    /// All runs finished.
    pub complete: bool,
    /// Names of the groups of flows in the order of the scenario.
    #[serde(skip)]
    pub groups: Vec<String>,
    /// Rows of which at least one run finished: algorithms, and for each the varied values.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Puts what the runs of `plan` measured into rows.
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
            complete,
            groups: plan.groups.clone(),
            rows,
        }
    }

    /// True if every run of a row measured the same, so that more seeds would tell nothing.
    pub fn is_certain(&self) -> bool {
        let same = |row: &Row| row.samples.windows(2).all(|pair| pair[0].values == pair[1].values);
        self.seeds > 1 && self.rows.iter().all(same)
    }

    /// The best of some means of what the scenario is run for.
    pub fn best(&self, means: impl Iterator<Item = f64>) -> Option<f64> {
        means.reduce(if self.measures.less_is_better() { f64::min } else { f64::max })
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
    fn groups_are_told_apart() {
        let mut outcome = example::outcome("reno", 1);
        outcome.flows[1].group = "ground".into();
        let sample = Sample::of(&outcome, &[]);
        assert_eq!(sample.groups["bulk"], outcome.flows[0].goodput_bps);
        assert_eq!(sample.groups["ground"], outcome.flows[1].goodput_bps);
    }
}
