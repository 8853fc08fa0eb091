//! A study that was read once and makes sense: nothing in it needs parsing or looking up again.

use bentpipe_scenario::did_you_mean;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::check::{Check, Expr, Relation};
use crate::file::{ClaimFile, Experiment, FigureFile, ParameterFile, StatedFile};
use crate::joint::{MOST_COMBINATIONS, combinations, groups, parameters};
use crate::measure::{Curve, Measured};
use crate::mistakes::{Mistakes, StudyError, unknown};

/// Experiments, and what a paper says of their results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// Name: that of the file without its ending.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// What is studied, in one line.
    pub title: String,
    /// The paper.
    pub citation: String,
    /// By the names that figures and claims use.
    pub experiment: IndexMap<String, Experiment>,
    /// By the numbers of the paper.
    pub figure: IndexMap<String, Figure>,
    /// By their names.
    pub claim: IndexMap<String, Claim>,
    /// Where parameters come from, by what they are called.
    pub parameter: IndexMap<String, ParameterFile>,
}

/// A figure of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Of which experiment.
    pub experiment: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// The vertical axis is placed by ratio.
    pub log: bool,
    /// What is drawn.
    pub shown: Shown,
}

/// What a figure draws.
#[derive(Clone, PartialEq, Debug)]
pub enum Shown {
    /// Lines along the experiment's axis, by their names.
    Along(IndexMap<String, Expr<Measured>>),
    /// Curves over time, of one run of each arm.
    OverTime(OverTime),
}

/// Curves over time.
#[derive(Clone, PartialEq, Debug)]
pub struct OverTime {
    /// What runs along the time.
    pub sketch: Sketch,
    /// Indexes of arms, each with its name in the legend.
    pub arms: Vec<(usize, String)>,
    /// Value of the experiment's axis; its first without this.
    pub at: Option<f64>,
}

/// Curves of a run over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sketch {
    /// Which curve.
    pub curve: Curve,
    /// Of which flows.
    pub flows: Flows,
    /// First and last second.
    pub span: (f64, f64),
}

/// Which flows of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flows {
    /// The first.
    First,
    /// All.
    All,
    /// This one.
    Named(String),
}

/// A statement of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Number of the figure that it is about.
    pub figure: Option<String>,
    /// In our words.
    pub statement: String,
    /// What decides.
    pub ground: Ground,
    /// Why the margin of an equivalence is what it is; every claim with one has this.
    pub margin: Option<String>,
    /// What we found out about it.
    pub note: Option<String>,
    /// What to do if it holds.
    pub advice: Option<String>,
    /// Numbers that the paper gives, by what they are, each with the same of our runs.
    pub stated: IndexMap<String, (f64, Expr<Measured>)>,
}

/// What decides a claim.
#[derive(Clone, PartialEq, Debug)]
pub enum Ground {
    /// A check.
    Check {
        /// Of the results of this experiment; arithmetic without one.
        experiment: Option<String>,
        /// What must be so.
        check: Check<Measured>,
        /// As it was written, on one line.
        text: String,
    },
    /// Other claims, by their names: the worst of their verdicts.
    AllOf(Vec<String>),
    /// Nothing, for this reason.
    NotTestable(String),
}

impl Ground {
    /// The check as it was written, on one line; nothing if it cannot be tested.
    pub fn check_text(&self) -> Option<&str> {
        match self {
            Self::Check { text, .. } => Some(text),
            Self::AllOf(_) | Self::NotTestable(_) => None,
        }
    }

    /// The check in words, or what stands in its place.
    pub fn words(&self) -> String {
        match self {
            Self::Check { text, .. } => Check::parse(text).map(|check| check.words()).unwrap_or_default(),
            Self::AllOf(names) => format!("all of {}", names.join(", ")),
            Self::NotTestable(why) => format!("cannot be checked: {why}"),
        }
    }

    /// Whether the check is an equivalence, which has a margin.
    fn has_margin(&self) -> bool {
        let Self::Check { check, .. } = self else { return false };
        check.clauses.iter().any(|one| matches!(one.relation, Relation::Near(..) | Relation::Flat(..)))
    }
}

impl Study {
    /// Reads a study; `file` gives it its name.
    ///
    /// # Errors
    /// With every mistake: place, found and accepted.
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

    /// The experiment of this name; no complaint if it is there but could not be read, which was told already.
    fn experiment(&self, name: &str, names: &Names) -> Result<&Experiment, String> {
        self.experiment.get(name).ok_or_else(|| match names.experiments.iter().any(|known| known == name) {
            true => String::new(),
            false => unknown("experiment", name, names.experiments.iter()),
        })
    }

    /// Everything that is wrong with a figure, or the figure.
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

    /// The numbers of the paper beside ours, of the experiment that decides the claim.
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

    /// Claims that stand before this one and have a check of their own.
    fn all_of(&self, parts: Vec<String>, names: &Names) -> Result<Ground, String> {
        for name in &parts {
            match self.claim.get(name).map(|claim| &claim.ground) {
                Some(Ground::Check { .. }) => {}
                Some(_) => return Err(format!("all-of: found `{name}`, accepted: claims with a check")),
                // It could not be read, which was told already.
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

/// What a study consists of.
const KEYS: [&str; 6] = ["title", "citation", "experiment", "figure", "claim", "parameter"];

/// The names in a file, whether what they name can be read or not.
struct Names {
    experiments: Vec<String>,
    figures: Vec<String>,
    /// Claims that could not be read.
    broken: Vec<String>,
}

fn names_in(whole: &Table, key: &str) -> Vec<String> {
    whole.get(key).and_then(Value::as_table).into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// A text that must be there.
fn line_of_text(whole: &Table, key: &str, mistakes: &mut Mistakes<'_>) -> String {
    match whole.get(key) {
        Some(Value::String(text)) => return text.clone(),
        Some(other) => mistakes.add(&[key], &format!("found {other}, accepted: a text")),
        None => mistakes.add(&[], &format!("found no `{key}`, accepted: with it")),
    }
    String::new()
}

/// The tables under `key` that can be read; the others are mistakes.
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

/// One mistake; none if it was told already.
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
