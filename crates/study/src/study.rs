//! A study after parsing: all names in it are resolved and checked.

use bentpipe_scenario::did_you_mean;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::check::{Check, Expr, Relation};
use crate::file::{ClaimFile, Experiment, FigureFile, ParameterFile, StatedFile};
use crate::joint::{MOST_COMBINATIONS, combinations, groups, parameters};
use crate::measure::{Curve, Measured};
use crate::mistakes::{Mistakes, StudyError, unknown};

/// Experiments, and a paper's claims about their results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// Name of the file without its extension.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// Subject in one line.
    pub title: String,
    /// Citation of the paper.
    pub citation: String,
    /// Experiments, keyed by the names that figures and claims use.
    pub experiment: IndexMap<String, Experiment>,
    /// Figures, keyed by their numbers in the paper.
    pub figure: IndexMap<String, Figure>,
    /// Claims, keyed by name.
    pub claim: IndexMap<String, Claim>,
    /// Sources of parameters, keyed by parameter name.
    pub parameter: IndexMap<String, ParameterFile>,
}

/// A figure of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Title of the figure.
    pub title: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// True for a logarithmic vertical axis.
    pub log: bool,
    /// Content of the figure.
    pub shown: Shown,
}

/// Content of a figure.
#[derive(Clone, PartialEq, Debug)]
pub enum Shown {
    /// Lines along the experiment's axis, keyed by name.
    Along(IndexMap<String, Expr<Measured>>),
    /// Curves over time from one run per arm.
    OverTime(OverTime),
}

/// Curves over time.
#[derive(Clone, PartialEq, Debug)]
pub struct OverTime {
    /// Curves to draw over time.
    pub sketch: Sketch,
    /// Indexes of arms, each with its name in the legend.
    pub arms: Vec<(usize, String)>,
    /// Value of the experiment's axis; its first value if absent.
    pub at: Option<f64>,
}

/// Curves of a run over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sketch {
    /// Name of the curve.
    pub curve: Curve,
    /// Flows of the curves.
    pub flows: Flows,
    /// First and last second.
    pub span: (f64, f64),
}

/// Selection of the flows of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flows {
    /// The first.
    First,
    /// All.
    All,
    /// The named flow.
    Named(String),
}

/// A statement of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Number of the figure that the claim is about.
    pub figure: Option<String>,
    /// The statement in this project's words.
    pub statement: String,
    /// Basis of the verdict.
    pub ground: Ground,
    /// Reason for the margin of an equivalence, required for each.
    pub margin: Option<String>,
    /// Findings about the claim.
    pub note: Option<String>,
    /// Advice if the claim holds.
    pub advice: Option<String>,
    /// Numbers of the paper, keyed by quantity, each with the expression for its measured counterpart.
    pub stated: IndexMap<String, (f64, Expr<Measured>)>,
}

/// Basis of a claim's verdict.
#[derive(Clone, PartialEq, Debug)]
pub enum Ground {
    /// A check.
    Check {
        /// Experiment whose results are checked; pure arithmetic if absent.
        experiment: Option<String>,
        /// Check that must hold.
        check: Check<Measured>,
        /// Text of the check, on one line.
        text: String,
    },
    /// Names of other claims; the worst of their verdicts counts.
    AllOf(Vec<String>),
    /// No basis, for this reason.
    NotTestable(String),
}

impl Ground {
    /// Returns the check as written, on one line; `None` if the claim is not testable.
    pub fn check_text(&self) -> Option<&str> {
        match self {
            Self::Check { text, .. } => Some(text),
            Self::AllOf(_) | Self::NotTestable(_) => None,
        }
    }

    /// Returns the check in words, or the text that replaces it.
    pub fn words(&self) -> String {
        match self {
            Self::Check { text, .. } => Check::parse(text).map(|check| check.words()).unwrap_or_default(),
            Self::AllOf(names) => format!("all of {}", names.join(", ")),
            Self::NotTestable(why) => format!("cannot be checked: {why}"),
        }
    }

    /// True if the check is an equivalence, which has a margin.
    fn has_margin(&self) -> bool {
        let Self::Check { check, .. } = self else { return false };
        check.clauses.iter().any(|one| matches!(one.relation, Relation::Near(..) | Relation::Flat(..)))
    }
}

impl Study {
    /// Parses a study; its name is that of `file`.
    ///
    /// # Errors
    /// All mistakes with place, found and accepted.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let mut mistakes = Mistakes::of(file, text)?;
        let whole: Table = toml::from_str(text).map_err(|error| StudyError::new(file, error.to_string()))?;
        let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
        let mut study = Self {
            name: stem.unwrap_or(file).to_owned(),
            text: text.to_owned(),
            title: line_of_text(&whole, "title", &mut mistakes),
            citation: line_of_text(&whole, "citation", &mut mistakes),
            experiment: IndexMap::new(),
            figure: IndexMap::new(),
            claim: IndexMap::new(),
            parameter: IndexMap::new(),
        };
        for key in whole.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let near =
                did_you_mean(key, &KEYS).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            mistakes.add(&[], &format!("{key}: found an unknown key, accepted: {}{near}", KEYS.join(", ")));
        }
        let mut names = Names {
            experiments: names_in(&whole, "experiment"),
            figures: names_in(&whole, "figure"),
            broken: Vec::new(),
        };
        if names.experiments.is_empty() {
            mistakes.add(&[], "experiment: found none, accepted: at least one table [experiment.NAME]");
        }
        for (name, experiment) in tables::<Experiment>(&whole, "experiment", &mut mistakes) {
            experiment.check().into_iter().for_each(|what| mistakes.add(&["experiment", &name], &what));
            study.experiment.insert(name, experiment);
        }
        for (number, figure) in tables::<FigureFile>(&whole, "figure", &mut mistakes) {
            match study.figure(figure, &names) {
                Ok(figure) => drop(study.figure.insert(number, figure)),
                Err(wrong) => wrong.iter().for_each(|what| mistakes.add(&["figure", &number], what)),
            }
        }
        let claims = tables::<ClaimFile>(&whole, "claim", &mut mistakes);
        let is_read = |name: &String| claims.iter().any(|(read, _)| read == name);
        names.broken = names_in(&whole, "claim").into_iter().filter(|name| !is_read(name)).collect();
        for (name, claim) in claims {
            match study.claim(claim, &names) {
                Ok(claim) => drop(study.claim.insert(name, claim)),
                Err(what) => {
                    told(what).iter().for_each(|what| mistakes.add(&["claim", &name], what));
                    names.broken.push(name);
                }
            }
        }
        for (name, parameter) in tables::<ParameterFile>(&whole, "parameter", &mut mistakes) {
            match study.experiment(&parameter.experiment, &names) {
                Ok(_) => drop(study.parameter.insert(name, parameter)),
                Err(what) => {
                    told(what).iter().for_each(|what| mistakes.add(&["parameter", &name], what));
                }
            }
        }
        let open: Vec<_> = study.experiment.values().map(parameters).collect();
        let largest = groups(&open).iter().map(|group| combinations(group)).max();
        if let Some(found) = largest.filter(|found| *found > MOST_COMBINATIONS) {
            let accepted = format!("at most {MOST_COMBINATIONS}");
            mistakes.add(
                &[],
                &format!("the options of open parameters make {found} combinations, accepted: {accepted}"),
            );
        }
        mistakes.unless_any(study)
    }

    /// Returns the experiment of this name. An experiment that could not be read causes no second message.
    fn experiment(&self, name: &str, names: &Names) -> Result<&Experiment, String> {
        self.experiment.get(name).ok_or_else(|| match names.experiments.iter().any(|known| known == name) {
            true => String::new(),
            false => unknown("experiment", name, names.experiments.iter()),
        })
    }

    /// Returns the figure, or all its mistakes.
    fn figure(&self, figure: FigureFile, names: &Names) -> Result<Figure, Vec<String>> {
        let experiment = self.experiment(&figure.experiment, names).map_err(told)?;
        let line = |(label, text): (String, String)| {
            let wrong = |what: String| format!("lines.{label}: {what}");
            let expr = Expr::parse(&text).map_err(&wrong)?;
            let expr = expr.translated(&mut |quantity| experiment.measured(quantity)).map_err(wrong)?;
            Ok((label, expr))
        };
        let shown = match (figure.time, figure.lines.is_empty()) {
            (Some(_), false) => return Err(told("has both `lines` and `time`, accepted: one".into())),
            (None, true) => return Err(told("has neither `lines` nor `time`, accepted: one".into())),
            (Some(time), true) => {
                Shown::OverTime(experiment.over_time(time).map_err(|what| told(format!("time: {what}")))?)
            }
            (None, false) => {
                let (mut lines, mut wrong) = (IndexMap::new(), Vec::new());
                for one in figure.lines.into_iter().map(line) {
                    match one {
                        Ok((label, expr)) => drop(lines.insert(label, expr)),
                        Err(what) => wrong.push(what),
                    }
                }
                if !wrong.is_empty() {
                    return Err(wrong);
                }
                Shown::Along(lines)
            }
        };
        let (title, experiment, y, log) = (figure.title, figure.experiment, figure.y, figure.log);
        Ok(Figure { title, experiment, y, log, shown })
    }

    fn claim(&self, claim: ClaimFile, names: &Names) -> Result<Claim, String> {
        if let Some(figure) = claim.figure.as_ref().filter(|figure| !names.figures.contains(figure)) {
            return Err(format!("figure: {}", unknown("figure", figure, names.figures.iter())));
        }
        let ground = match (claim.check, claim.not_testable, claim.all_of.is_empty()) {
            (Some(text), None, true) => self.ground(claim.experiment, &text, names)?,
            (None, Some(why), true) => Ground::NotTestable(why),
            (None, None, false) => self.all_of(claim.all_of, names)?,
            (None, None, true) => {
                return Err(
                    "has no check, accepted: `check`, `all-of`, or `not-testable` with the reason".into()
                );
            }
            _ => return Err("has several of `check`, `all-of` and `not-testable`, accepted: one".into()),
        };
        match (ground.has_margin(), &claim.margin) {
            (true, None) => {
                return Err(
                    "has a `~` or `is flat` in its check, accepted: with `margin`, the reason for its margin"
                        .into(),
                );
            }
            (false, Some(_)) => {
                return Err("has `margin` but neither `~` nor `is flat` in its check".into());
            }
            _ => {}
        }
        let stated = self.stated(claim.stated, &ground)?;
        let (figure, statement, margin) = (claim.figure, claim.statement, claim.margin);
        Ok(Claim { figure, statement, ground, margin, note: claim.note, advice: claim.advice, stated })
    }

    /// Resolves the paper's numbers and their expressions in the experiment that decides the claim.
    fn stated(
        &self,
        stated: IndexMap<String, StatedFile>,
        ground: &Ground,
    ) -> Result<IndexMap<String, (f64, Expr<Measured>)>, String> {
        let one = |(what, number): (String, StatedFile)| {
            let wrong = |why: String| format!("stated.{what}: {why}");
            let Ground::Check { experiment: Some(name), .. } = ground else {
                return Err(wrong("found no `experiment`, accepted: with one and a `check`".into()));
            };
            let expr = Expr::parse(&number.ours).map_err(wrong)?;
            let expr = expr.translated(&mut |quantity| self.experiment[name].measured(quantity));
            Ok((what.clone(), (number.paper, expr.map_err(wrong)?)))
        };
        stated.into_iter().map(one).collect()
    }

    /// Resolves references to earlier claims that have a check.
    fn all_of(&self, parts: Vec<String>, names: &Names) -> Result<Ground, String> {
        for name in &parts {
            match self.claim.get(name).map(|claim| &claim.ground) {
                Some(Ground::Check { .. }) => {}
                Some(_) => return Err(format!("all-of: found `{name}`, accepted: claims with a check")),
                // It could not be read, which was already reported.
                None if names.broken.contains(name) => {}
                None => {
                    return Err(format!("all-of: {}", unknown("claim above it", name, self.claim.keys())));
                }
            }
        }
        Ok(Ground::AllOf(parts))
    }

    fn ground(&self, experiment: Option<String>, text: &str, names: &Names) -> Result<Ground, String> {
        let check = Check::parse(text).map_err(|error| format!("check: {error}"))?;
        let check = match &experiment {
            Some(name) => {
                let wrong = |what: String| if what.is_empty() { what } else { format!("experiment: {what}") };
                self.experiment(name, names).map_err(wrong)?.understood(&check)
            }
            None => check.translated(&mut |_| Err("has quantities but no `experiment`".into())),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Ground::Check { experiment, check: check?, text })
    }
}

/// Top-level keys of a study.
const KEYS: [&str; 6] = ["title", "citation", "experiment", "figure", "claim", "parameter"];

/// Names in a file, including those of unreadable entries.
struct Names {
    experiments: Vec<String>,
    figures: Vec<String>,
    /// Claims that could not be read.
    broken: Vec<String>,
}

fn names_in(whole: &Table, key: &str) -> Vec<String> {
    whole.get(key).and_then(Value::as_table).into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// Returns a required text.
fn line_of_text(whole: &Table, key: &str, mistakes: &mut Mistakes<'_>) -> String {
    match whole.get(key) {
        Some(Value::String(text)) => return text.clone(),
        Some(other) => mistakes.add(&[key], &format!("found {other}, accepted: a text")),
        None => mistakes.add(&[], &format!("found no `{key}`, accepted: with it")),
    }
    String::new()
}

/// Returns the readable tables under `key`; the others become mistakes.
fn tables<T: DeserializeOwned>(whole: &Table, key: &str, mistakes: &mut Mistakes<'_>) -> Vec<(String, T)> {
    let mut read = Vec::new();
    match whole.get(key) {
        None => {}
        Some(Value::Table(all)) => {
            for (name, table) in all {
                match table.clone().try_into() {
                    Ok(one) => read.push((name.clone(), one)),
                    Err(error) => mistakes.add_unread(&[key, name], &error),
                }
            }
        }
        Some(other) => mistakes.add(&[key], &format!("found {other}, accepted: tables [{key}.NAME]")),
    }
    read
}

/// Returns one mistake; none if it was already reported.
fn told(what: String) -> Vec<String> {
    if what.is_empty() { Vec::new() } else { vec![what] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::STUDY;
    use crate::grid::{Form, Grid, Spot};

    fn refused(from: &str, to: &str) -> String {
        assert!(STUDY.contains(from), "{from}");
        Study::parse("example.toml", &STUDY.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_series_is_refused_with_those_there_are() {
        let error = refused("series = \"cwnd\"", "series = \"cwmd\"");
        assert!(error.contains("cwmd") && error.contains("ssthresh"), "{error}");
    }

    #[test]
    fn a_curve_at_a_place_that_the_axis_has_not_is_refused() {
        let error = refused("at = 2", "at = 4");
        assert!(error.contains("figure.2: time: at: found x = 4, accepted: 1, 2, 3"), "{error}");
        let error = refused("at = 2", "at = 3");
        assert!(error.contains("accepted: 1, 2; the short form"), "{error}");
        let error = refused("arms = { a", "arms = { e");
        assert!(error.contains("found arm `e`"), "{error}");
        let error = refused("span = [0.0, 9.0]", "span = [9.0, 9.0]");
        assert!(error.contains("span"), "{error}");
    }

    #[test]
    fn a_check_at_a_place_that_the_axis_has_not_is_refused() {
        for check in ["at x = 9: v(a) > 0", "v(a, x=9) > 0", "v(a) peaks at 9", "at x = 1, 9: v(a) rises"] {
            let error = refused("\"v(a) rises\"", &format!("\"{check}\""));
            assert!(error.contains("claim.c1: ") && error.contains("x = 9"), "{check}: {error}");
        }
        let error = refused("\"v(a) rises\"", "\"at y >= 1: v(a) rises\"");
        assert!(error.contains("found axis `y`, accepted: x"), "{error}");
        let error = refused("\"2 * 3 in 6..6\"", "\"v(a) > 0\"");
        assert!(error.contains("claim.c2") && error.contains("no `experiment`"), "{error}");
    }

    #[test]
    fn an_option_may_set_something_in_the_runs_of_one_arm_only() {
        let option = "long = { \"tcp.mss\" = \"500 bytes\", arm.b = { \"tcp.header\" = \"60 bytes\" } }";
        let study = Study::parse("example.toml", &STUDY.replace("long = {}", option)).unwrap();
        let experiment = &study.experiment["one"];
        let grid = Grid::of(experiment, Form::default());
        let command = |arm: usize, choice: usize| {
            crate::grid::command(experiment, Spot { arm, place: 0, choice }, &grid, Form::default())
        };
        assert!(!command(1, 0).contains("tcp.mss"));
        assert!(command(0, 1).contains("tcp.mss=500 bytes") && !command(0, 1).contains("tcp.header"));
        assert!(command(1, 1).contains("--set 'tcp.mss=500 bytes' --set 'tcp.header=60 bytes'"));
        let error = refused("long = {}", "long = { arm.e = {} }");
        assert!(error.contains("open.queue: found arm `e`"), "{error}");
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let text = STUDY
            .replacen("title = \"An example\"", "titel = \"An example\"", 1)
            .replacen("seeds = 3", "seeds = \"three\"", 1)
            .replacen("v(b)", "v(bb", 1)
            .replacen("[claim.c1]\nfigure = \"1\"", "[claim.c1]\nfigure = \"7\"", 1)
            .replacen("check = \"2 * 3 in 6..6\"", "checks = \"2 * 3 in 6..6\"", 1);
        let error = Study::parse("my/example.toml", &text).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        let starts = [
            "my/example.toml: found no `title`, accepted: with it",
            "my/example.toml:2: titel: found an unknown key, accepted: title, citation, experiment, figure, claim, parameter; did you mean `title`?",
            "my/example.toml:11: experiment.one: seeds: found \"three\", accepted: a whole number",
            "my/example.toml:27: claim.c1: figure: found figure `7`, accepted: 1, 2",
            "my/example.toml:34: claim.c2: checks: found an unknown key, accepted: figure, statement, ",
        ];
        assert_eq!(lines.len(), starts.len(), "{error}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}\n{start}");
        }
        let error = Study::parse("x.toml", "title = \n").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:1: found `") && error.contains("not TOML"), "{error}");
    }

    #[test]
    fn a_claim_has_a_check_or_a_reason() {
        assert!(refused("not-testable = \"there is no arguing about it\"", "").contains("claim.c3"));
        let both = refused("not-testable =", "check = \"1 < 2\"\nnot-testable =");
        assert!(both.contains("claim.c3") && both.contains("several of"), "{both}");
    }
}
