//! A study as its file says it: experiments, figures and claims as data.

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Value;

use crate::measure::Curve;

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
    /// What the paper leaves open: for each such parameter, its options. The first of each is the default.
    #[serde(default)]
    pub open: IndexMap<String, IndexMap<String, Choosing>>,
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

/// What choosing an option of an open parameter sets.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Choosing {
    /// In the runs of one arm only, after the arm's own settings.
    #[serde(default)]
    pub arm: IndexMap<String, Settings>,
    /// In all runs.
    #[serde(flatten)]
    pub set: Settings,
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
pub struct FigureFile {
    /// What it shows.
    pub title: String,
    /// Of which experiment.
    pub experiment: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// Lines along the experiment's axis: name, and expression of the language of checks.
    #[serde(default)]
    pub lines: IndexMap<String, String>,
    /// Or curves over time, of single runs.
    pub time: Option<OverTimeFile>,
    /// The vertical axis is placed by ratio.
    #[serde(default)]
    pub log: bool,
}

/// Curves over time, of one run of each arm.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OverTimeFile {
    /// Which series.
    pub series: Curve,
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
pub struct ClaimFile {
    /// Number of the figure that it is about.
    pub figure: Option<String>,
    /// In our words.
    pub statement: String,
    /// Whose results decide.
    pub experiment: Option<String>,
    /// What must be so.
    pub check: Option<String>,
    /// Other claims of which all must hold, in place of a check.
    #[serde(default)]
    pub all_of: Vec<String>,
    /// Why the margin of its `~` or `is flat` is what it is.
    pub margin: Option<String>,
    /// Why nobody can check it.
    pub not_testable: Option<String>,
    /// What we found out about it.
    pub note: Option<String>,
    /// What to do if it holds.
    pub advice: Option<String>,
    /// Numbers that the paper itself gives.
    #[serde(default)]
    pub stated: IndexMap<String, StatedFile>,
}

/// A number of the paper, and what to set beside it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StatedFile {
    /// As the paper has it.
    pub paper: f64,
    /// The same of our runs: an expression that names the value of the axis, if there is one.
    pub ours: String,
}

/// Where a parameter of the worlds comes from.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParameterFile {
    /// In which experiment its value is looked up.
    pub experiment: String,
    /// Its path through the scenario.
    pub key: String,
    /// Who says so.
    pub source: Source,
    /// Where in the paper, or why.
    pub place: Option<String>,
}

/// Who says what a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The paper, in words or in a table.
    Stated,
    /// The paper, in a figure.
    Figure,
    /// The paper, if one reasons from what it says.
    Reconstructed,
    /// We.
    Ours,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stated => "stated",
            Self::Figure => "read from a figure",
            Self::Reconstructed => "reconstructed",
            Self::Ours => "ours",
        })
    }
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
