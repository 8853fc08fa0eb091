//! One setting for a whole paper: the options for which most of its claims hold together.
//!
//! Claims that hold only in worlds that exclude each other do not support the paper together. Parameters with the same name and
//! at least one common option are one parameter in all experiments, whatever the order of options. An option that one of these
//! experiments lacks or did not run is not considered.

use crate::file::Experiment;
use crate::grid::Grid;

/// Maximum number of option combinations tried among parameters that share experiments.
pub const MOST_COMBINATIONS: usize = 65_536;

/// An open parameter of a paper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter<'a> {
    name: &'a str,
    /// Options common to all experiments with the parameter, in the order of the first experiment.
    options: Vec<&'a str>,
}

impl<'a> Parameter<'a> {
    fn is_the_same(&self, other: &Self) -> bool {
        self.name == other.name && self.options.iter().any(|option| other.options.contains(option))
    }
}

/// A claim as input of the search.
pub struct Candidate<'a> {
    /// Experiment that decides the claim.
    pub experiment: &'a Experiment,
    /// Choices of that experiment.
    pub grid: &'a Grid,
    /// True for each choice under which the claim holds.
    pub holds: Vec<bool>,
}

impl<'a> Candidate<'a> {
    /// Returns the experiment's open parameters with the options that were run. The short form may run only the first ones.
    fn parameters(&self) -> Vec<Parameter<'a>> {
        let mut all = parameters(self.experiment);
        for (index, parameter) in all.iter_mut().enumerate() {
            parameter.options.truncate(self.grid.options_run(index));
        }
        all
    }
}

/// An option for every open parameter of a study.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JointSetting<'a> {
    chosen: Vec<(Parameter<'a>, usize)>,
}

impl<'a> JointSetting<'a> {
    /// Returns the setting for which most of these claims hold. At a tie the earlier options win, so the default configuration
    /// wins if nothing is better.
    pub fn of(candidates: &[Candidate<'a>]) -> Self {
        let lists: Vec<Vec<Parameter<'_>>> = candidates.iter().map(Candidate::parameters).collect();
        let mut best = Self { chosen: united(&lists).into_iter().map(|parameter| (parameter, 0)).collect() };
        for group in groups(&lists) {
            best.choose(&group, candidates);
        }
        best
    }

    /// Tries every combination of the options of `group`, with all other parameters fixed.
    fn choose(&mut self, group: &[Parameter<'a>], candidates: &[Candidate<'a>]) {
        let is_touched = |candidate: &&Candidate<'_>| {
            candidate.parameters().iter().any(|own| group.iter().any(|parameter| parameter.is_the_same(own)))
        };
        let touched: Vec<&Candidate<'_>> = candidates.iter().filter(is_touched).collect();
        let mut tried = self.clone();
        let mut most = tried.count(&touched);
        for number in 1..combinations(group) {
            let mut rest = number;
            for parameter in group.iter().rev() {
                let slot = tried.chosen.iter_mut().find(|(known, _)| known == parameter);
                if let Some((_, chosen)) = slot {
                    *chosen = rest % parameter.options.len();
                }
                rest /= parameter.options.len();
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

    /// Returns the index of the choice in an experiment that corresponds to this setting.
    pub fn choice(&self, experiment: &Experiment, grid: &Grid) -> usize {
        let option = |own: Parameter<'_>| {
            let known = self.chosen.iter().find(|(parameter, _)| parameter.is_the_same(&own));
            let name = known.map(|(parameter, chosen)| parameter.options[*chosen]);
            own.options.iter().position(|option| Some(*option) == name).unwrap_or(0)
        };
        let options: Vec<usize> = parameters(experiment).into_iter().map(option).collect();
        grid.choice(&options)
    }

    /// Returns `discipline = threshold 3` for each parameter.
    pub fn names(&self) -> Vec<String> {
        self.chosen
            .iter()
            .map(|(parameter, chosen)| format!("{} = {}", parameter.name, parameter.options[*chosen]))
            .collect()
    }
}

/// Returns the open parameters of an experiment.
pub fn parameters(experiment: &Experiment) -> Vec<Parameter<'_>> {
    let open = experiment.open.iter();
    open.map(|(name, options)| Parameter { name, options: options.keys().map(String::as_str).collect() })
        .collect()
}

/// Merges the lists, each parameter once.
fn united<'a>(lists: &[Vec<Parameter<'a>>]) -> Vec<Parameter<'a>> {
    let mut all: Vec<Parameter<'a>> = Vec::new();
    for own in lists.iter().flatten() {
        match all.iter_mut().find(|known| known.is_the_same(own)) {
            Some(known) => known.options.retain(|option| own.options.contains(option)),
            None => all.push(own.clone()),
        }
    }
    all
}

/// Groups parameters that occur together in an experiment. The groups are independent of each other.
pub fn groups<'a>(lists: &[Vec<Parameter<'a>>]) -> Vec<Vec<Parameter<'a>>> {
    let mut groups: Vec<Vec<Parameter<'a>>> =
        united(lists).into_iter().map(|parameter| vec![parameter]).collect();
    for linked in lists {
        let is_linked = |group: &Vec<Parameter<'a>>| {
            group.iter().any(|parameter| linked.iter().any(|own| parameter.is_the_same(own)))
        };
        let (joined, mut apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_linked);
        let joined: Vec<Parameter<'a>> = joined.into_iter().flatten().collect();
        if !joined.is_empty() {
            apart.push(joined);
        }
        groups = apart;
    }
    groups
}

/// Returns the number of option combinations of a group, at most [`usize::MAX`].
pub fn combinations(group: &[Parameter<'_>]) -> usize {
    group.iter().fold(1, |product: usize, parameter| product.saturating_mul(parameter.options.len()))
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
[experiment.d]
title = "d"
scenario = "geo-single"
arm = { x = "reno" }
open.queue = { endless = {}, long = {}, short = {} }
"#;

    fn study_and_grids() -> (Study, Vec<Grid>) {
        let study = Study::parse("four.toml", STUDY).unwrap();
        let grids =
            study.experiment.values().map(|experiment| Grid::of(experiment, Form::default())).collect();
        (study, grids)
    }

    fn candidate<'a>((study, grids): &'a (Study, Vec<Grid>), name: &str, holds: &[bool]) -> Candidate<'a> {
        let index = study.experiment.get_index_of(name).unwrap();
        Candidate { experiment: &study.experiment[index], grid: &grids[index], holds: holds.to_vec() }
    }

    /// `d` has the same queue parameter as `b`, with more options in another order. Only `d` has an endless queue, so it is not a
    /// common option.
    #[test]
    fn one_parameter_has_one_option_whatever_the_order_of_its_options() {
        let both = study_and_grids();
        let found = [
            candidate(&both, "b", &[true, false]),
            candidate(&both, "d", &[true, false, false]),
            candidate(&both, "d", &[false, true, false]),
            candidate(&both, "d", &[false, true, false]),
        ];
        let setting = JointSetting::of(&found);
        assert_eq!(setting.names(), ["queue = long"]);
        let chosen = |one: &Candidate<'_>| setting.choice(one.experiment, one.grid);
        assert_eq!([chosen(&found[0]), chosen(&found[1])], [1, 1]);
        let alone = JointSetting::of(&found[1..2]);
        assert_eq!(alone.names(), ["queue = endless"]);
        assert_eq!(JointSetting::of(&found[..2]).names(), ["queue = short"]);
    }

    /// Two claims hold only with the long queue, one only with the short one. A parameter of the same name with other options is
    /// a different parameter.
    #[test]
    fn most_claims_decide_and_the_default_wins_a_tie() {
        let both = study_and_grids();
        let (yes, no) = (true, false);
        // The choices of `a`: (short, 40), (short, 56), (long, 40), (long, 56).
        let all = [
            candidate(&both, "a", &[no, no, no, yes]),
            candidate(&both, "a", &[yes, yes, no, no]),
            candidate(&both, "b", &[no, yes]),
            candidate(&both, "c", &[yes, yes]),
        ];
        let setting = JointSetting::of(&all);
        assert_eq!(setting.names(), ["queue = long", "ack = 56", "queue = none"]);
        let chosen: Vec<usize> = all.iter().map(|one| setting.choice(one.experiment, one.grid)).collect();
        assert_eq!(chosen, [3, 3, 1, 0]);
        assert_eq!(JointSetting::of(&all[1..3]).names(), ["queue = short", "ack = 40"]);
        assert_eq!(
            groups(&all.each_ref().map(Candidate::parameters))
                .iter()
                .map(|group| combinations(group))
                .collect::<Vec<_>>(),
            [4, 2]
        );
    }
}
