//! Content of a study file: experiments, figures and claims as data.

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Value;

use crate::measure::Curve;

/// Paths in a scenario with the values to set there.
pub type Settings = IndexMap<String, Value>;

/// Runs of one world. The dimensions are arms, axis values, choices of open parameters, and seeds.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// Title in one line.
    pub title: String,
    /// Name or path of the scenario.
    pub scenario: String,
    /// Changes to the scenario for all runs.
    #[serde(default)]
    pub set: Settings,
    /// Arms to compare.
    pub arm: IndexMap<String, Arm>,
    /// Quantity that varies along the horizontal axis of figures.
    pub axis: Option<Axis>,
    /// Open parameters of the paper, each with its options. The first option is the default.
    #[serde(default)]
    pub open: IndexMap<String, IndexMap<String, Choosing>>,
    /// Seeds per point in the full form.
    #[serde(default = "full_seeds")]
    pub seeds: u32,
    /// Short form of the experiment.
    #[serde(default)]
    pub quick: Quick,
}

const fn full_seeds() -> u32 {
    10
}

/// Settings of one option of an open parameter.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Choosing {
    /// Settings for the runs of one arm, applied after the arm's own.
    #[serde(default)]
    pub arm: IndexMap<String, Settings>,
    /// Settings for all runs.
    #[serde(flatten)]
    pub set: Settings,
}

/// One of the compared variants: the name of an algorithm, or settings with or without one.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Arm {
    /// This algorithm, in the flows under comparison.
    Algorithm(String),
    /// Settings.
    Settings(ArmSettings),
}

/// Settings of an arm.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArmSettings {
    /// Algorithm of the flows under comparison; the scenario's own if absent.
    pub cc: Option<String>,
    /// Changes to the scenario.
    #[serde(default)]
    pub set: Settings,
}

impl Arm {
    /// Returns its algorithm, if it names one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Self::Algorithm(name) => Some(name),
            Self::Settings(settings) => settings.cc.as_deref(),
        }
    }

    /// Returns its settings.
    pub fn settings(&self) -> impl Iterator<Item = (&String, &Value)> {
        match self {
            Self::Algorithm(_) => None,
            Self::Settings(settings) => Some(settings.set.iter()),
        }
        .into_iter()
        .flatten()
    }
}

/// Quantity that varies along the horizontal axis.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Axis {
    /// Name in checks.
    pub name: String,
    /// Quantity and unit, shown under figures.
    pub label: String,
    /// Scenario paths that the value is written to.
    pub keys: Vec<String>,
    /// Values, with units if the paths require them.
    pub values: Vec<Value>,
    /// True for a logarithmic axis.
    #[serde(default)]
    pub log: bool,
}

/// Changes of the short form.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quick {
    /// Seeds per point.
    pub seeds: Option<u32>,
    /// Further changes to the scenario.
    #[serde(default)]
    pub set: Settings,
    /// Values along the axis.
    pub values: Option<Vec<Value>>,
    /// True to run only the defaults of open parameters.
    #[serde(default)]
    pub defaults_only: bool,
}

/// A figure of the paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureFile {
    /// Title of the figure.
    pub title: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// Lines along the experiment's axis: name and expression in the language of checks.
    #[serde(default)]
    pub lines: IndexMap<String, String>,
    /// Curves over time from single runs, instead of lines.
    pub time: Option<OverTimeFile>,
    /// True for a logarithmic vertical axis.
    #[serde(default)]
    pub log: bool,
}

/// Curves over time from one run per arm.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OverTimeFile {
    /// Curve to draw.
    pub series: Curve,
    /// Arms, each with its name in the legend.
    pub arms: IndexMap<String, String>,
    /// Value of the experiment's axis.
    pub at: Option<f64>,
    /// First and last second shown.
    pub span: Option<(f64, f64)>,
    /// Flow; `*` for all flows, the first flow if absent.
    pub flow: Option<String>,
}

/// A statement of the paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimFile {
    /// Number of the figure that the claim is about.
    pub figure: Option<String>,
    /// The statement in this project's words.
    pub statement: String,
    /// Experiment whose results decide.
    pub experiment: Option<String>,
    /// Check that must hold.
    pub check: Option<String>,
    /// Other claims that must all hold, instead of a check.
    #[serde(default)]
    pub all_of: Vec<String>,
    /// Reason for the margin of `~` or `is flat`.
    pub margin: Option<String>,
    /// Reason why the claim is not testable.
    pub not_testable: Option<String>,
    /// Findings about the claim.
    pub note: Option<String>,
    /// Advice if the claim holds.
    pub advice: Option<String>,
    /// Numbers that the paper gives.
    #[serde(default)]
    pub stated: IndexMap<String, StatedFile>,
}

/// A number of the paper, with the expression for its measured counterpart.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StatedFile {
    /// The paper's number.
    pub paper: f64,
    /// Expression for the measured number; it names the axis value if there is an axis.
    pub ours: String,
}

/// Source of a parameter of the worlds.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParameterFile {
    /// Experiment in which the value is looked up.
    pub experiment: String,
    /// Path of the parameter in the scenario.
    pub key: String,
    /// Kind of source.
    pub source: Source,
    /// Place in the paper, or the reason for the value.
    pub place: Option<String>,
}

/// Kinds of sources of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Stated by the paper in words or in a table.
    Stated,
    /// Read from a figure of the paper.
    Figure,
    /// Derived from statements of the paper.
    Reconstructed,
    /// Chosen by this project.
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

/// Returns the value as an argument of `--set`.
pub fn argument(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the position of a value on an axis: the number that it begins with.
pub fn position(value: &Value) -> Option<f64> {
    bentpipe_lab::Value(argument(value)).quantity().map(|(number, _)| number)
}
