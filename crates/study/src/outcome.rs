//! What became of a study.

use bentpipe_lab::number::short;
use serde::Serialize;

use crate::chart::Chart;
use crate::grid::Form;
use crate::verdict::Verdict;

/// A conducted study.
#[derive(Clone, PartialEq, Debug)]
pub struct StudyOutcome {
    /// Name: that of the file without its ending.
    pub name: String,
    /// What is studied, in one line.
    pub title: String,
    /// The paper.
    pub citation: String,
    /// How much was run.
    pub form: Form,
    /// The option of each open parameter under which most claims hold together: `queue = long`.
    pub joint_setting: Vec<String>,
    /// SHA-256 of the criteria by which the claims were judged ([`crate::Study::criteria`]).
    pub criteria: String,
    /// Claims in the order of the study.
    pub claims: Vec<ClaimOutcome>,
    /// Figures in the order of the study.
    pub figures: Vec<FigureOutcome>,
    /// Where parameters come from, in the order of the study.
    pub parameters: Vec<ParameterOutcome>,
    /// What the paper leaves open.
    pub open: Vec<OpenOutcome>,
    /// The text of the study.
    pub text: String,
}

/// A parameter of the worlds.
#[derive(Clone, PartialEq, Debug)]
pub struct ParameterOutcome {
    /// What it is called.
    pub name: String,
    /// Its value in the default world.
    pub value: String,
    /// Who says so: stated, read from a figure, reconstructed, ours.
    pub source: String,
    /// Where in the paper, or why.
    pub place: String,
}

/// A parameter of which the paper does not give the value.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenOutcome {
    /// Its name.
    pub name: String,
    /// What was run, the default first.
    pub options: Vec<String>,
    /// In which experiments.
    pub experiments: Vec<String>,
}

/// A number of the paper beside ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StatedOutcome {
    /// What it is.
    pub what: String,
    /// In the paper.
    pub paper: f64,
    /// Ours with the default configuration: the mean; nothing where this form does not run it.
    pub ours: Option<f64>,
    /// Half width of its 95 % confidence interval, if there are several seeds.
    pub ci95: Option<f64>,
}

impl StatedOutcome {
    /// Ours with its interval.
    pub fn ours_written(&self) -> String {
        let half = self.ci95.map_or(String::new(), |half| format!(" ± {}", short(half)));
        self.ours.map_or("–".to_owned(), |mean| short(mean) + &half)
    }

    /// By how much ours differs from the paper's, in per cent.
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
    /// Number of the figure that it is about.
    pub figure: Option<String>,
    /// In our words.
    pub statement: String,
    /// What became of it with the default configuration.
    pub verdict: Verdict,
    /// Numbers of the default configuration, each a mean with the half width of its 95 % confidence interval.
    pub measured: String,
    /// The check, with its tolerances.
    pub tolerance: Option<String>,
    /// Runs of each point.
    pub seeds: usize,
    /// Names of the choices for which it holds, if it does for some and not for all.
    pub holds_for: Vec<String>,
    /// What became of it with the joint setting of the study.
    pub joint_verdict: Verdict,
    /// Choices of what the paper leaves open for which it holds, and all that were run.
    pub choices: Choices,
    /// Numbers of the first choice for which it holds, if the default is not one of them.
    pub measured_where_it_holds: Option<String>,
    /// Why the margin of an equivalence is what it is.
    pub margin: Option<String>,
    /// SHA-256 of the criteria of the study.
    pub criteria: String,
    /// Numbers of the paper beside ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedOutcome>,
    /// The check in words.
    #[serde(skip)]
    pub words: String,
    /// What we found out about it.
    #[serde(skip)]
    pub note: Option<String>,
    /// What to do if it holds.
    #[serde(skip)]
    pub advice: Option<String>,
    /// A command that runs the first point of the experiment again; the others follow by `--set` and `--seed`.
    #[serde(skip)]
    pub rerun: Option<String>,
}

impl ClaimOutcome {
    /// For which choices it holds where it does not for all, and what was measured with the first of them; else empty.
    pub fn where_else(&self) -> String {
        let measured = self.measured_where_it_holds.as_ref().map(|numbers| format!(" ({numbers})"));
        self.holds_for.join(" or ") + &measured.unwrap_or_default()
    }
}

/// For how many choices a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Choices {
    /// Choices for which it holds.
    pub holding: usize,
    /// Choices that were run.
    pub of: usize,
}

impl std::fmt::Display for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.holding, self.of)
    }
}

/// A figure, drawn for each choice of what the paper leaves open.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureOutcome {
    /// Number in the paper.
    pub number: String,
    /// What it shows.
    pub title: String,
    /// The default choice first.
    pub charts: Vec<Chart>,
}
