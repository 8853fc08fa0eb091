//! Results as columns, worked out once for every form in which they leave: CSV, Parquet, Arrow.
//!
//! The names of columns are those of the documents in JSON, and carry their units: `_bps`, `_s`, `_ms`.

use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Scenario, TopologyError};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::comparison::{Comparison, TOGETHER, is_together, unique};
use crate::metric::Metric;
use crate::paired::Difference;
use crate::plan::Value;
use crate::report::{PathChange, path_changes};
use crate::stats::Summary;

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name, with the unit at its end.
    pub name: String,
    /// Values, one per line.
    pub values: Values,
}

/// The values of a column; `None` where there is none.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Names.
    Text(Vec<Option<String>>),
    /// Counts and seeds.
    Whole(Vec<Option<u64>>),
    /// Quantities.
    Number(Vec<Option<f64>>),
    /// Values of a scenario as they were typed.
    Typed(Vec<Value>),
}

impl Column {
    fn text<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        Self { name: name.into(), values: Values::Text(values.map(|value| Some(value.into())).collect()) }
    }

    fn numbers(name: impl Into<String>, values: impl Iterator<Item = Option<f64>>) -> Self {
        Self { name: name.into(), values: Values::Number(values.collect()) }
    }

    /// Number of its lines.
    pub fn lines(&self) -> usize {
        match &self.values {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Typed(values) => values.len(),
        }
    }

    /// The unit that the name says: `bit/s`, `s`, `ms`, `1/s`; empty for names, counts and shares.
    pub fn unit(&self) -> &'static str {
        if self.name.ends_with(".p") || self.name.ends_with(".p_holm") {
            return "";
        }
        let name = ["mean", "ci95", "min", "max", "difference", "difference_ci95"]
            .iter()
            .find_map(|of| self.name.strip_suffix(of)?.strip_suffix('.'));
        let name = name.unwrap_or(&self.name);
        // A quantity of a flow group has the name of the group after the quantity.
        let of_group = |what: &str| is_together(what) || what == "flow_goodput_bps";
        let name = name.split_once('.').map(|(what, _)| what).filter(|what| of_group(what)).unwrap_or(name);
        let units = [("_bps", "bit/s"), ("_per_s", "1/s"), ("_s", "s"), ("_ms", "ms"), ("_bytes", "byte")];
        units.iter().find(|(ending, _)| name.ends_with(ending)).map_or("", |(_, unit)| unit)
    }
}

/// One line for each run of a comparison: scenario, algorithm, seed, varied values, metrics, goodput by group.
pub fn runs(comparison: &Comparison) -> Vec<Column> {
    let lines = || comparison.rows.iter().flat_map(|row| row.samples.iter().map(move |sample| (row, sample)));
    let mut columns = vec![
        Column::text("scenario", lines().map(|_| comparison.scenario.as_str())),
        Column::text("cc", lines().map(|(row, _)| row.cell.cc.as_str())),
        Column {
            name: "seed".into(),
            values: Values::Whole(lines().map(|(_, sample)| Some(sample.seed)).collect()),
        },
    ];
    columns.extend(varied(comparison, || lines().map(|(row, _)| row)));
    let metric =
        |metric: Metric| Column::numbers(metric.key(), lines().map(|(_, sample)| sample.get(metric)));
    columns.extend(metrics(comparison).into_iter().map(metric));
    let of_group = |group: &str| {
        let goodputs = lines().map(|(_, sample)| sample.groups.get(group).copied());
        Column::numbers(format!("flow_goodput_bps.{group}"), goodputs)
    };
    let groups: &[String] = if comparison.groups.len() > 1 { &comparison.groups } else { &[] };
    columns.extend(groups.iter().map(|group| of_group(group)));
    for (what, group) in TOGETHER.iter().flat_map(|(what, _)| groups.iter().map(move |group| (what, group))) {
        let name = format!("{what}.{group}");
        let values: Vec<_> = lines().map(|(_, sample)| sample.together.get(&name).copied()).collect();
        // A quantity without a value in any run has no column.
        if values.iter().any(Option::is_some) {
            columns.push(Column::numbers(name, values.into_iter()));
        }
    }
    columns
}

/// Returns the legend of the columns of [`runs`], as lines of a CSV file: name, unit, meaning.
pub fn legend(comparison: &Comparison) -> Vec<[String; 3]> {
    let varied = |name: &str| {
        comparison.rows.first().is_some_and(|row| row.cell.vary.iter().any(|setting| setting.key == name))
    };
    let line = |column: Column| {
        let meaning = match meaning(&column.name) {
            _ if varied(&column.name) => "varied value, as typed".to_owned(),
            Some(meaning) => meaning.to_owned(),
            None => match column.name.split_once('.') {
                Some(("flow_goodput_bps", group)) => format!("mean goodput of a flow of {group}"),
                Some((what, group)) => {
                    format!("of the flows of {group}: {}", meaning(what).unwrap_or(what))
                }
                None => String::new(),
            },
        };
        [column.name.clone(), column.unit().to_owned(), meaning]
    };
    runs(comparison).into_iter().map(line).collect()
}

/// Returns the short meaning of a quantity.
fn meaning(name: &str) -> Option<&'static str> {
    match name {
        "scenario" => Some("name of the scenario"),
        "cc" => Some("algorithm as it was named"),
        "seed" => Some("seed of the run"),
        "completed" => Some("flows that completed"),
        _ => Metric::ALL.into_iter().find(|metric| metric.key() == name).map(Metric::meaning),
    }
}

/// The name of a field of a summary, and its value.
type SummaryField = (&'static str, fn(&Summary) -> Option<f64>);

/// Summaries of a comparison, one line per algorithm and combination of varied values: mean, 95 % confidence interval, least and
/// largest value over the seeds, and the difference from the baseline.
pub fn summaries(comparison: &Comparison) -> Vec<Column> {
    let rows = || comparison.rows.iter();
    let seeds = rows().map(|row| Some(row.samples.len() as u64)).collect();
    let mut columns = vec![
        Column::text("scenario", rows().map(|_| comparison.scenario.as_str())),
        Column::text("cc", rows().map(|row| row.cell.cc.as_str())),
    ];
    columns.extend(varied(comparison, rows));
    columns.push(Column { name: "seeds_done".into(), values: Values::Whole(seeds) });
    let fields: [SummaryField; 4] =
        [("mean", |s| s.mean), ("ci95", |s| s.ci95), ("min", |s| s.min), ("max", |s| s.max)];
    for metric in metrics(comparison) {
        let all: Vec<Summary> = rows().map(|row| row.summary(metric)).collect();
        columns.extend(
            fields
                .iter()
                .map(|(field, of)| Column::numbers(format!("{}.{field}", metric.key()), all.iter().map(of))),
        );
        let differences = comparison.differences(metric);
        let number = |field: &str, of: fn(&Difference) -> Option<f64>| {
            let values = differences.iter().map(|difference| of(difference.as_ref()?));
            Column::numbers(format!("{}.{field}", metric.key()), values)
        };
        columns.extend([
            number("difference", |of| of.summary.mean),
            number("difference_ci95", |of| of.summary.ci95),
            number("p", |of| of.p),
            number("p_holm", |of| of.p_holm),
        ]);
    }
    columns
}

/// The varied values of some rows.
fn varied<'a, I: Iterator<Item = &'a crate::Row>>(
    comparison: &'a Comparison,
    rows: impl Fn() -> I,
) -> Vec<Column> {
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let column = |(index, key): (usize, &crate::Setting)| {
        let values = rows().map(|row| row.cell.vary[index].value.clone()).collect();
        Column { name: key.key.clone(), values: Values::Typed(values) }
    };
    keys.iter().enumerate().map(column).collect()
}

/// The columns of metrics: always the same, then those that have a meaning here.
fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let always = Metric::ALL.into_iter().filter(|metric| !metric.is_optional());
    always.chain(comparison.optional_metrics()).collect()
}

/// Part of the result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// One line for each flow.
    Flows,
    /// One line for each direction of each link.
    Links,
    /// One line for each channel that links share.
    Media,
    /// One line for each node that does more than forward.
    Nodes,
}

/// Returns a part of the result of one run: the fields of its document. A nested field has both names (`stream.frames_sent`).
pub fn outcome(outcome: &Outcome, part: Part) -> Vec<Column> {
    match part {
        Part::Flows => with_run(outcome, &outcome.flows),
        Part::Links => with_run(outcome, &outcome.links),
        Part::Media => with_run(outcome, &outcome.media),
        Part::Nodes => with_run(outcome, &outcome.nodes),
    }
}

/// Returns one line per complete page or file, for flows with several.
pub fn pages(outcome: &Outcome) -> Vec<Column> {
    let lines = || outcome.flows.iter().flat_map(|flow| flow.pages.iter().map(move |page| (flow, page)));
    let seeds = lines().map(|_| Some(outcome.seed)).collect();
    vec![
        Column::text("scenario", lines().map(|_| outcome.scenario.as_str())),
        Column { name: "seed".into(), values: Values::Whole(seeds) },
        Column::text("flow", lines().map(|(flow, _)| flow.name.as_str())),
        Column::numbers("completed_at_s", lines().map(|(_, page)| Some(page.completed_at.as_secs_f64()))),
        Column::numbers("load_s", lines().map(|(_, page)| Some(page.took.as_secs_f64()))),
    ]
}

/// One line for each change of a path through a constellation.
///
/// # Errors
/// If its satellites cannot fly until the end.
pub fn paths(scenario: &Scenario) -> Result<Vec<Column>, TopologyError> {
    let changes = path_changes(scenario)?;
    let lines = || changes.iter();
    let whole = |of: fn(&PathChange) -> u64| Values::Whole(lines().map(|change| Some(of(change))).collect());
    Ok(vec![
        Column::text("scenario", lines().map(|_| scenario.name.as_str())),
        Column::text("path", lines().map(|change| change.path.as_str())),
        Column::numbers("at_s", lines().map(|change| Some(change.at_s))),
        Column { name: "satellites".into(), values: whole(|change| change.satellites.len() as u64) },
        Column { name: "handovers".into(), values: whole(|change| change.handovers) },
        Column::numbers("delay_one_way_ms", lines().map(|change| change.delay_one_way_ms)),
        Column {
            name: "via".into(),
            values: Values::Text(lines().map(|change| Some(change.satellites.join(" "))).collect()),
        },
    ])
}

fn with_run(outcome: &Outcome, lines: &[impl Serialize]) -> Vec<Column> {
    let documents: Vec<Map<String, Json>> = lines.iter().map(flat).collect();
    let mut columns = vec![
        Column::text("scenario", lines.iter().map(|_| outcome.scenario.as_str())),
        Column { name: "seed".into(), values: Values::Whole(vec![Some(outcome.seed); lines.len()]) },
    ];
    let names = unique(documents.iter().flat_map(Map::keys));
    columns
        .extend(names.into_iter().map(|name| Column { name: name.clone(), values: typed(name, &documents) }));
    columns
}

/// Fields that are names wherever they have a value.
const NAMES: &[&str] = &["aborted"];

fn typed(name: &String, documents: &[Map<String, Json>]) -> Values {
    let values = || documents.iter().map(|document| document.get(name).filter(|value| !value.is_null()));
    let some = || values().flatten();
    if NAMES.contains(&name.as_str()) || some().any(|value| !value.is_number()) {
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return Values::Text(values().map(|value| value.map(text)).collect());
    }
    if some().next().is_some() && some().all(Json::is_u64) {
        return Values::Whole(values().map(|value| value?.as_u64()).collect());
    }
    Values::Number(values().map(|value| value?.as_f64()).collect())
}

/// Returns the fields of a document without nested documents.
fn flat(document: &impl Serialize) -> Map<String, Json> {
    let mut fields = Map::new();
    if let Ok(Json::Object(document)) = serde_json::to_value(document) {
        flatten("", document, &mut fields);
    }
    fields
}

fn flatten(prefix: &str, document: Map<String, Json>, fields: &mut Map<String, Json>) {
    for (name, value) in document {
        let name = format!("{prefix}{name}");
        match value {
            Json::Object(inner) => flatten(&format!("{name}."), inner, fields),
            value => drop(fields.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn units_are_those_of_the_names() {
        let unit = |name: &str| Column::numbers(name, std::iter::empty()).unit();
        let units = [
            "goodput_bps",
            "goodput_segments_per_s",
            "completion_s.mean",
            "gap_ms",
            "jain_index",
            "flow_goodput_bps.as_ms",
            "goodput_bps.difference_ci95",
            "goodput_bps.p_holm",
        ]
        .map(unit);
        assert_eq!(units, ["bit/s", "1/s", "s", "ms", "", "bit/s", "bit/s", ""]);
    }

    #[test]
    fn groups_have_columns_in_the_order_of_the_scenario_and_all_have_a_meaning() {
        let mut comparison = example::comparison();
        comparison.groups = vec!["web".into(), "bulk".into()];
        for sample in comparison.rows.iter_mut().flat_map(|row| &mut row.samples) {
            sample.together.insert("goodput_bps.web".into(), 3.0);
            sample.together.insert("mos.web".into(), 4.0);
        }
        let names: Vec<String> = runs(&comparison).into_iter().map(|column| column.name).collect();
        let of_groups: Vec<_> =
            names.iter().filter(|name| name.ends_with(".web") || name.ends_with(".bulk")).collect();
        assert_eq!(
            of_groups[..4],
            ["flow_goodput_bps.web", "flow_goodput_bps.bulk", "goodput_bps.web", "goodput_bps.bulk"]
        );
        assert!(names.contains(&"mos.web".to_owned()) && !names.contains(&"mos.bulk".to_owned()));
        let legend = legend(&comparison);
        assert!(legend.iter().all(|[_, _, meaning]| !meaning.is_empty()), "{legend:?}");
        let of = |name: &str| legend.iter().find(|line| line[0] == name).unwrap();
        assert_eq!(of("goodput_bps.web")[1], "bit/s");
        assert_eq!(of("mos.web")[2], "of the flows of web: mean opinion score of calls");
    }

    #[test]
    fn every_column_has_a_value_for_each_line() {
        let comparison = example::comparison();
        assert!(runs(&comparison).iter().all(|column| column.lines() == 12));
        assert!(summaries(&comparison).iter().all(|column| column.lines() == 4));
        let flows = outcome(&example::outcome("reno", 1), Part::Flows);
        assert!(flows.iter().all(|column| column.lines() == 2));
        let of = |name: &str| &flows.iter().find(|column| column.name == name).unwrap().values;
        assert_eq!(of("timeouts"), &Values::Whole(vec![Some(1), Some(1)]));
        assert_eq!(of("completion_s"), &Values::Number(vec![None, None]));
        assert_eq!(of("aborted"), &Values::Text(vec![None, None]));
    }
}
