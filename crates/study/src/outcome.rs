//! Outcome of a study.

use bentpipe_lab::number::short;
use serde::Serialize;

use crate::chart::Chart;
use crate::grid::Form;
use crate::verdict::Verdict;

/// A conducted study.
#[derive(Clone, PartialEq, Debug)]
pub struct StudyOutcome {
    /// Name of the file without its extension.
    pub name: String,
    /// Subject in one line.
    pub title: String,
    /// Citation of the paper.
    pub citation: String,
    /// Extent of the runs.
    pub form: Form,
    /// Option of each open parameter for which most claims hold together, such as `queue = long`.
    pub joint_setting: Vec<String>,
    /// SHA-256 of the criteria by which the claims were judged ([`crate::Study::criteria`]).
    pub criteria: String,
    /// Claims in the order of the study.
    pub claims: Vec<ClaimOutcome>,
    /// Figures in the order of the study.
    pub figures: Vec<FigureOutcome>,
    /// Sources of parameters in the order of the study.
    pub parameters: Vec<ParameterOutcome>,
    /// Open parameters of the paper.
    pub open: Vec<OpenOutcome>,
    /// The text of the study.
    pub text: String,
}

/// A parameter of the worlds.
#[derive(Clone, PartialEq, Debug)]
pub struct ParameterOutcome {
    /// Name of the parameter.
    pub name: String,
    /// Its value in the default world.
    pub value: String,
    /// Kind of source: stated, read from a figure, reconstructed, ours.
    pub source: String,
    /// Place in the paper, or the reason for the value.
    pub place: String,
}

/// A parameter whose value the paper does not give.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenOutcome {
    /// Its name.
    pub name: String,
    /// Options that were run, the default first.
    pub options: Vec<String>,
    /// Experiments with this parameter.
    pub experiments: Vec<String>,
}

/// A number of the paper with its measured counterpart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StatedOutcome {
    /// Name of the quantity.
    pub what: String,
    /// The paper's number.
    pub paper: f64,
    /// Measured mean with the default configuration; `None` if this form does not run it.
    pub ours: Option<f64>,
    /// Half width of its 95 % confidence interval, if there are several seeds.
    pub ci95: Option<f64>,
}

impl StatedOutcome {
    /// Returns the measured number with its interval.
    pub fn ours_written(&self) -> String {
        let half = self.ci95.map_or(String::new(), |half| format!(" ± {}", short(half)));
        self.ours.map_or("–".to_owned(), |mean| short(mean) + &half)
    }

    /// Returns the deviation from the paper's number in percent.
    pub fn deviation_written(&self) -> String {
        let deviation = |mean: f64| format!("{:+.0} %", 100.0 * (mean / self.paper - 1.0));
        self.ours.map_or("–".to_owned(), deviation)
    }
}

/// A claim and its verdict: an entry of `paper --json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClaimOutcome {
    /// Name of the claim.
    pub id: String,
    /// Number of the figure that the claim is about.
    pub figure: Option<String>,
    /// The statement in this project's words.
    pub statement: String,
    /// Verdict with the default configuration.
    pub verdict: Verdict,
    /// Numbers of the default configuration: means with half widths of their 95 % confidence intervals.
    pub measured: String,
    /// The check, with its tolerances.
    pub tolerance: Option<String>,
    /// Seeds per point.
    pub seeds: usize,
    /// Names of the choices for which it holds, if it holds for some but not all.
    pub holds_for: Vec<String>,
    /// Verdict with the joint setting of the study.
    pub joint_verdict: Verdict,
    /// Number of choices for which it holds, out of all choices run.
    pub choices: Choices,
    /// Numbers of the first choice for which it holds, if that is not the default.
    pub measured_where_it_holds: Option<String>,
    /// Reason for the margin of an equivalence.
    pub margin: Option<String>,
    /// SHA-256 of the criteria of the study.
    pub criteria: String,
    /// Numbers of the paper with their measured counterparts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedOutcome>,
    /// The check in words.
    #[serde(skip)]
    pub words: String,
    /// Findings about the claim.
    #[serde(skip)]
    pub note: Option<String>,
    /// Advice if the claim holds.
    #[serde(skip)]
    pub advice: Option<String>,
    /// Command that repeats the experiment's first point; `--set` and `--seed` select the others.
    #[serde(skip)]
    pub rerun: Option<String>,
}

impl ClaimOutcome {
    /// Returns the choices for which it holds with the numbers of the first, if not all hold; else empty.
    pub fn where_else(&self) -> String {
        let measured = self.measured_where_it_holds.as_ref().map(|numbers| format!(" ({numbers})"));
        self.holds_for.join(" or ") + &measured.unwrap_or_default()
    }
}

/// Number of choices for which a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Choices {
    /// Number of choices for which it holds.
    pub holding: usize,
    /// Number of choices run.
    pub of: usize,
}

impl std::fmt::Display for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.holding, self.of)
    }
}

/// A figure with one chart per choice of the open parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureOutcome {
    /// Number in the paper.
    pub number: String,
    /// Title of the figure.
    pub title: String,
    /// Charts, the default choice first.
    pub charts: Vec<Chart>,
}
