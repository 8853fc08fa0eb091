//! What became of a study.

use serde::Serialize;

use crate::chart::Chart;
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
    /// Claims in the order of the study.
    pub claims: Vec<ClaimOutcome>,
    /// Figures in the order of the study.
    pub figures: Vec<FigureOutcome>,
    /// The text of the study.
    pub text: String,
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
    /// What became of it.
    pub verdict: Verdict,
    /// Numbers, each a mean with the half width of its 95 % confidence interval.
    pub measured: String,
    /// The check, with its tolerances.
    pub tolerance: Option<String>,
    /// Runs of each point.
    pub seeds: usize,
    /// Choices for which it holds, if it does not for all.
    pub holds_for: Vec<String>,
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
