//! A study as its file says it: experiments, figures and claims as data.

use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Value;

use crate::check::{Check, Expr};

/// Experiments, and what a paper says of their results.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Study {
    /// Name: that of the file without its ending.
    #[serde(skip)]
    pub name: String,
    /// The text of the file.
    #[serde(skip)]
    pub text: String,
    /// What is studied, in one line.
    pub title: String,
    /// The paper.
    pub citation: String,
    /// By the names that figures and claims use.
    pub experiment: IndexMap<String, Experiment>,
    /// By the numbers of the paper.
    #[serde(default)]
    pub figure: IndexMap<String, Figure>,
    /// By their names.
    #[serde(default)]
    pub claim: IndexMap<String, Claim>,
}

/// Paths through a scenario and the values to put there.
pub type Settings = IndexMap<String, Value>;

/// Runs of one world: some arms, along an axis, for each choice of what the paper leaves open, over seeds.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// What it is, in one line.
    pub title: String,
    /// Name or path of the scenario.
    pub scenario: String,
    /// Changes to the scenario, for all runs.
    #[serde(default)]
    pub set: Settings,
    /// What is compared.
    pub arm: IndexMap<String, Arm>,
    /// What varies along the horizontal axis of figures.
    pub axis: Option<Axis>,
    /// What the paper leaves open: for each such parameter, options with their settings. The first of each is the default.
    #[serde(default)]
    pub open: IndexMap<String, IndexMap<String, Settings>>,
    /// Runs of each point in the full form.
    #[serde(default = "full_seeds")]
    pub seeds: u32,
    /// The short form.
    #[serde(default)]
    pub quick: Quick,
}

const fn full_seeds() -> u32 {
    10
}

/// One of the things compared: the name of an algorithm, or settings with or without one.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Arm {
    /// This algorithm in the flows under comparison.
    Algorithm(String),
    /// Settings.
    Settings(ArmSettings),
}

/// An arm that is more than an algorithm.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArmSettings {
    /// Algorithm of the flows under comparison; that of the scenario without this.
    pub cc: Option<String>,
    /// Changes to the scenario.
    #[serde(default)]
    pub set: Settings,
}

impl Arm {
    /// Its algorithm, if it names one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Self::Algorithm(name) => Some(name),
            Self::Settings(settings) => settings.cc.as_deref(),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> impl Iterator<Item = (&String, &Value)> {
        match self {
            Self::Algorithm(_) => None,
            Self::Settings(settings) => Some(settings.set.iter()),
        }
        .into_iter()
        .flatten()
    }
}

/// What varies.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Axis {
    /// Name in checks.
    pub name: String,
    /// Quantity and unit, under figures.
    pub label: String,
    /// Paths that take the value.
    pub keys: Vec<String>,
    /// Values, with units where the paths want them.
    pub values: Vec<Value>,
    /// Placed by ratio.
    #[serde(default)]
    pub log: bool,
}

/// What the short form changes.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quick {
    /// Runs of each point.
    pub seeds: Option<u32>,
    /// Further changes to the scenario.
    #[serde(default)]
    pub set: Settings,
    /// Values along the axis.
    pub values: Option<Vec<Value>>,
    /// Only the default of what is left open.
    #[serde(default)]
    pub defaults_only: bool,
}

/// A figure of the paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Of which experiment.
    pub experiment: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// Lines along the experiment's axis: name, and expression of the language of checks.
    #[serde(default)]
    pub lines: IndexMap<String, Line>,
    /// Or curves over time, of single runs.
    pub time: Option<OverTime>,
    /// The vertical axis is placed by ratio.
    #[serde(default)]
    pub log: bool,
}

/// Curves over time, of one run of each arm.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OverTime {
    /// Which series: `cwnd`, `ssthresh`, `srtt`, `sent` or `acked`.
    pub series: String,
    /// Arms, each with its name in the legend.
    pub arms: IndexMap<String, String>,
    /// Value of the experiment's axis.
    pub at: Option<f64>,
    /// First and last second shown.
    pub span: Option<(f64, f64)>,
    /// Flow; all of them for `*`, the first without this.
    pub flow: Option<String>,
}

/// A statement of the paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// Number of the figure that it is about.
    pub figure: Option<String>,
    /// In our words.
    pub statement: String,
    /// Whose results decide.
    pub experiment: Option<String>,
    /// What must be so.
    pub check: Option<Line>,
    /// Why nobody can check it.
    pub not_testable: Option<String>,
    /// What we found out about it.
    pub note: Option<String>,
}

/// Why a file is no study.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct StudyError {
    /// The file.
    pub file: String,
    /// Place, found and accepted.
    pub what: String,
}

/// Text of the language of checks.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub struct Line(pub String);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Study {
    /// Reads a study; `file` gives it its name.
    ///
    /// # Errors
    /// With place, found and accepted.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let wrong = |what: String| StudyError { file: file.to_owned(), what };
        let mut study: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
        study.name = stem.unwrap_or(file).to_owned();
        study.text = text.to_owned();
        study.check().map_err(wrong)?;
        Ok(study)
    }

    fn check(&self) -> Result<(), String> {
        for (name, experiment) in &self.experiment {
            experiment.check().map_err(|what| format!("experiment.{name}: {what}"))?;
        }
        for (number, figure) in &self.figure {
            self.check_figure(figure).map_err(|what| format!("figure.{number}: {what}"))?;
        }
        for (name, claim) in &self.claim {
            self.check_claim(claim).map_err(|what| format!("claim.{name}: {what}"))?;
        }
        Ok(())
    }

    /// The experiment of this name.
    fn experiment(&self, name: &str) -> Result<&Experiment, String> {
        self.experiment.get(name).ok_or_else(|| unknown("experiment", name, self.experiment.keys()))
    }

    fn check_figure(&self, figure: &Figure) -> Result<(), String> {
        let experiment = self.experiment(&figure.experiment)?;
        for (label, line) in &figure.lines {
            let expr = Expr::parse(&line.0).map_err(|error| format!("lines.{label}:\n{error}"))?;
            let mut all = Vec::new();
            expr.visit(&mut |quantity| all.push(quantity));
            experiment.check_quantities(&all)?;
        }
        match &figure.time {
            Some(_) if !figure.lines.is_empty() => Err("has both `lines` and `time`, accepted: one".into()),
            None if figure.lines.is_empty() => Err("has neither `lines` nor `time`, accepted: one".into()),
            Some(time) => time.arms.keys().try_for_each(|arm| experiment.check_arm(arm)),
            None => Ok(()),
        }
    }

    fn check_claim(&self, claim: &Claim) -> Result<(), String> {
        if let Some(figure) = &claim.figure
            && !self.figure.contains_key(figure)
        {
            return Err(unknown("figure", figure, self.figure.keys()));
        }
        let Some(text) = &claim.check else {
            let accepted = "accepted: `check`, or `not-testable` with the reason";
            return claim
                .not_testable
                .as_ref()
                .map(|_| ())
                .ok_or_else(|| format!("has no check, {accepted}"));
        };
        let check = Check::parse(&text.0).map_err(|error| format!("check:\n{error}"))?;
        match &claim.experiment {
            Some(name) => self.experiment(name)?.check_check(&check),
            None if check.quantities().is_empty() => Ok(()),
            None => Err("has quantities but no `experiment`".into()),
        }
    }
}

impl Experiment {
    fn check(&self) -> Result<(), String> {
        let axis_values = self.axis.iter().flat_map(|axis| &axis.values);
        for value in axis_values.chain(self.quick.values.iter().flatten()) {
            position(value)
                .ok_or_else(|| format!("axis: found {value}, accepted: a number, with or without a unit"))?;
        }
        match &self.axis {
            Some(axis) if axis.keys.is_empty() || axis.values.is_empty() => {
                Err("axis: no keys or no values".into())
            }
            _ if self.arm.is_empty() => Err("has no arm".into()),
            _ if self.seeds == 0 || self.quick.seeds == Some(0) => {
                Err("seeds: found 0, accepted: 1 or more".into())
            }
            _ => Ok(()),
        }
    }

    fn check_arm(&self, name: &str) -> Result<(), String> {
        self.arm.contains_key(name).then_some(()).ok_or_else(|| unknown("arm", name, self.arm.keys()))
    }

    fn check_quantities(&self, quantities: &[&crate::check::Quantity]) -> Result<(), String> {
        quantities.iter().try_for_each(|quantity| {
            self.check_arm(&quantity.arm)?;
            crate::measure::Measure::of(quantity, self.axis.as_ref().map(|axis| axis.name.as_str())).map(drop)
        })
    }

    fn check_check(&self, check: &Check) -> Result<(), String> {
        let axis = self.axis.as_ref().map(|axis| &axis.name);
        for place in check.clauses.iter().filter_map(|clause| clause.place.as_ref()) {
            if axis != Some(&place.axis) {
                return Err(unknown("axis", &place.axis, axis.into_iter()));
            }
        }
        self.check_quantities(&check.quantities())
    }
}

/// `found` is not one of `known`.
fn unknown<'a>(what: &str, found: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let near = known.iter().max_by(|a, b| strsim::jaro(a, found).total_cmp(&strsim::jaro(b, found)));
    let near = near.filter(|near| strsim::jaro(near, found) > 0.7);
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("found {what} `{found}`, accepted: {}{hint}", known.join(", "))
}

/// What a value is as an argument of `--set`.
pub fn argument(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Where a value stands on an axis: the number it begins with.
pub fn position(value: &Value) -> Option<f64> {
    bentpipe_lab::Value(argument(value)).quantity().map(|(number, _)| number)
}
