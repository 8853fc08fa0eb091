//! One setting for all of a paper: the options under which most of its claims hold together.
//!
//! A claim that holds in one world and a claim that holds in another say nothing of the paper if the two worlds exclude each other. Parameters
//! of the same name and with the same options are one parameter in every experiment that has it.

use indexmap::IndexMap;

use crate::file::Experiment;
use crate::grid::Grid;

/// Combinations of options that are tried at most, among parameters that share experiments.
pub const MOST_COMBINATIONS: usize = 65_536;

/// A parameter that a paper leaves open: its name and the names of its options.
type Parameter<'a> = (&'a str, Vec<&'a str>);

/// A claim as the search sees it.
pub struct Candidate<'a> {
    /// The experiment that decides the claim.
    pub experiment: &'a Experiment,
    /// The choices of that experiment.
    pub grid: &'a Grid,
    /// For each choice, whether the claim holds there.
    pub holds: Vec<bool>,
}

/// An option for every open parameter of a study.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JointSetting<'a> {
    options: IndexMap<Parameter<'a>, usize>,
}

impl<'a> JointSetting<'a> {
    /// The setting under which most of these claims hold. Between settings that are equally good the one with earlier options wins, so the
    /// default configuration does if nothing is better.
    pub fn of(candidates: &[Candidate<'a>]) -> Self {
        let mut best = Self::default();
        for candidate in candidates {
            best.options.extend(parameters(candidate.experiment).map(|parameter| (parameter, 0)));
        }
        for group in groups(candidates.iter().map(|candidate| candidate.experiment)) {
            best.choose(&group, candidates);
        }
        best
    }

    /// Tries every combination of the options of `group`; the other parameters stay as they are.
    fn choose(&mut self, group: &[Parameter<'a>], candidates: &[Candidate<'a>]) {
        let touched: Vec<&Candidate<'_>> = candidates
            .iter()
            .filter(|candidate| parameters(candidate.experiment).any(|parameter| group.contains(&parameter)))
            .collect();
        let mut tried = self.clone();
        let mut most = tried.count(&touched);
        for number in 1..combinations(group) {
            let mut rest = number;
            for parameter in group.iter().rev() {
                tried.options.insert(parameter.clone(), rest % parameter.1.len());
                rest /= parameter.1.len();
            }
            let count = tried.count(&touched);
            if count > most {
                most = count;
                *self = tried.clone();
            }
        }
    }

    fn count(&self, candidates: &[&Candidate<'_>]) -> usize {
        candidates.iter().filter(|one| one.holds[self.choice(one.experiment, one.grid)]).count()
    }

    /// Index of the choice of an experiment that this setting means.
    pub fn choice(&self, experiment: &Experiment, grid: &Grid) -> usize {
        let option = |parameter| self.options.get(&parameter).copied().unwrap_or(0);
        let options: Vec<usize> = parameters(experiment).map(option).collect();
        grid.choice(&options)
    }

    /// `discipline = threshold 3`, for each parameter.
    pub fn names(&self) -> Vec<String> {
        self.options
            .iter()
            .map(|((name, options), chosen)| format!("{name} = {}", options[*chosen]))
            .collect()
    }
}

/// What an experiment leaves open.
fn parameters(experiment: &Experiment) -> impl Iterator<Item = Parameter<'_>> {
    experiment
        .open
        .iter()
        .map(|(name, options)| (name.as_str(), options.keys().map(String::as_str).collect()))
}

/// Parameters that are linked by experiments which have several of them; the groups are independent of each other.
pub fn groups<'a>(experiments: impl Iterator<Item = &'a Experiment>) -> Vec<Vec<Parameter<'a>>> {
    let mut groups: Vec<Vec<Parameter<'a>>> = Vec::new();
    for experiment in experiments {
        let mut linked: Vec<Parameter<'a>> = parameters(experiment).collect();
        if linked.is_empty() {
            continue;
        }
        let (joined, apart): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|parameter| linked.contains(parameter)));
        for parameter in joined.into_iter().flatten() {
            if !linked.contains(&parameter) {
                linked.push(parameter);
            }
        }
        groups = apart;
        groups.push(linked);
    }
    groups
}

/// How many combinations of options a group has, at most [`usize::MAX`].
pub fn combinations(group: &[Parameter<'_>]) -> usize {
    group.iter().fold(1, |product: usize, (_, options)| product.saturating_mul(options.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Form;
    use crate::study::Study;

    const STUDY: &str = r#"
title = "Three experiments"
citation = "none"
[experiment.a]
title = "a"
scenario = "geo-single"
arm = { x = "reno" }
open.queue = { short = {}, long = {} }
open.ack = { "40" = {}, "56" = {} }
[experiment.b]
title = "b"
scenario = "geo-single"
arm = { x = "reno" }
open.queue = { short = {}, long = {} }
[experiment.c]
title = "c"
scenario = "geo-single"
arm = { x = "reno" }
open.queue = { none = {}, some = {} }
"#;

    /// Two claims hold with the long queue only and one with the short one only; a parameter of the same name with other options is another one.
    #[test]
    fn most_claims_decide_and_the_default_wins_a_tie() {
        let study = Study::parse("three.toml", STUDY).unwrap();
        let grids: Vec<Grid> =
            study.experiment.values().map(|experiment| Grid::of(experiment, Form::default())).collect();
        let candidate = |name: &str, holds: &[bool]| {
            let index = study.experiment.get_index_of(name).unwrap();
            Candidate { experiment: &study.experiment[index], grid: &grids[index], holds: holds.to_vec() }
        };
        let (yes, no) = (true, false);
        // The choices of `a` are (short, 40), (short, 56), (long, 40), (long, 56).
        let all = [
            candidate("a", &[no, no, no, yes]),
            candidate("a", &[yes, yes, no, no]),
            candidate("b", &[no, yes]),
            candidate("c", &[yes, yes]),
        ];
        let setting = JointSetting::of(&all);
        assert_eq!(setting.names(), ["queue = long", "ack = 56", "queue = none"]);
        let chosen: Vec<usize> = all.iter().map(|one| setting.choice(one.experiment, one.grid)).collect();
        assert_eq!(chosen, [3, 3, 1, 0]);
        assert_eq!(JointSetting::of(&all[1..3]).names(), ["queue = short", "ack = 40"]);
        assert_eq!(
            groups(study.experiment.values()).iter().map(|group| combinations(group)).collect::<Vec<_>>(),
            [4, 2]
        );
    }
}
