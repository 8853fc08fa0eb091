//! Runs of an experiment: every arm at every axis value, for every choice of the open parameters.

use bentpipe_lab::{Place, RunError};
use bentpipe_scenario::{Draft, Scenario};

use crate::file::{Arm, Choosing, Experiment, argument, position};

/// Extent of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Form {
    /// True for the short form.
    pub quick: bool,
    /// Seeds per point, instead of the study's number.
    pub seeds: Option<u32>,
}

/// One option for each open parameter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// Index of the option for each parameter.
    options: Vec<usize>,
    /// Parts such as `discipline = D1` and `buffer = 50`; empty without open parameters.
    parts: Vec<String>,
}

/// Indexes of a point: arm, place on the axis, choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Spot {
    /// Index of the arm.
    pub arm: usize,
    /// Index along the axis; 0 without one.
    pub place: usize,
    /// Index of the choice; 0 is the default.
    pub choice: usize,
}

/// Dimensions of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// Names of the arms.
    pub arms: Vec<String>,
    /// Positions along the axis; one place without a position if there is no axis.
    pub places: Vec<Option<f64>>,
    /// The choices, the default first.
    pub choices: Vec<Choice>,
    /// Seeds for each point.
    pub seeds: Vec<u64>,
}

impl Grid {
    /// Makes the grid of an experiment in this form.
    pub fn of(experiment: &Experiment, form: Form) -> Self {
        let values = experiment.values(form);
        let places = match experiment.axis {
            Some(_) => values.into_iter().map(position).collect(),
            None => vec![None],
        };
        let quick_seeds = experiment.quick.seeds.filter(|_| form.quick);
        let quick_seeds = quick_seeds.or(form.quick.then_some(QUICK_SEEDS.min(experiment.seeds)));
        let seeds = form.seeds.or(quick_seeds).unwrap_or(experiment.seeds);
        Self {
            arms: experiment.arm.keys().cloned().collect(),
            places,
            choices: experiment.choices(form),
            seeds: (1..=u64::from(seeds)).collect(),
        }
    }

    /// Returns every point, the default choice first.
    pub fn spots(&self) -> Vec<Spot> {
        let mut spots = Vec::new();
        for choice in 0..self.choices.len() {
            for arm in 0..self.arms.len() {
                spots.extend((0..self.places.len()).map(|place| Spot { arm, place, choice }));
            }
        }
        spots
    }

    /// Returns the index of the choice with these options; the default if this form does not run it.
    pub fn choice(&self, options: &[usize]) -> usize {
        self.choices.iter().position(|choice| choice.options == options).unwrap_or(0)
    }

    /// Returns the number of options that are run for a parameter, counted from the first.
    pub fn options_run(&self, parameter: usize) -> usize {
        let last = self.choices.iter().map(|choice| choice.options[parameter]).max();
        last.map_or(1, |last| last + 1)
    }

    /// Returns the index of an arm.
    pub fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm == name)
    }

    /// Returns the index of the place at this axis position.
    pub fn place(&self, position: f64) -> Option<usize> {
        self.places.iter().position(|place| place.is_some_and(|place| crate::check::alike(place, position)))
    }
}

/// Seeds per point in the short form.
const QUICK_SEEDS: u32 = 3;

impl Experiment {
    /// Returns the axis values of this form; empty without an axis.
    pub fn values(&self, form: Form) -> Vec<&toml::Value> {
        let Some(axis) = &self.axis else { return Vec::new() };
        let quick = self.quick.values.as_ref().filter(|_| form.quick);
        quick.unwrap_or(&axis.values).iter().collect()
    }

    fn choices(&self, form: Form) -> Vec<Choice> {
        let mut choices = vec![Choice::default()];
        for (parameter, options) in &self.open {
            let count = if form.quick && self.quick.defaults_only { 1 } else { options.len() };
            let names: Vec<&String> = options.keys().take(count).collect();
            choices = choices.iter().flat_map(|begun| begun.with_each(parameter, &names)).collect();
        }
        choices
    }

    /// Returns the settings of a point in the order of their application.
    fn settings(&self, spot: Spot, grid: &Grid, form: Form) -> Vec<(&String, &toml::Value)> {
        let options = grid.choices[spot.choice].options.iter().zip(self.open.values());
        let chosen: Vec<&Choosing> =
            options.filter_map(|(option, options)| options.get_index(*option)).map(|(_, set)| set).collect();
        let quick = form.quick.then_some(&self.quick.set);
        let (name, arm) = self.arm.get_index(spot.arm).unzip();
        let of_arm = chosen.iter().filter_map(|one| one.arm.get(name?));
        let before = [&self.set].into_iter().chain(quick).chain(chosen.iter().map(|one| &one.set));
        before.flatten().chain(arm.into_iter().flat_map(Arm::settings)).chain(of_arm.flatten()).collect()
    }

    /// Returns the world of a point.
    ///
    /// # Errors
    /// A description of the mistake in the scenario or in the study's settings.
    pub fn scenario(&self, spot: Spot, grid: &Grid, form: Form) -> Result<Scenario, String> {
        let draft = self.draft(spot, grid, form)?;
        let scenario = draft.scenario().map_err(|error| error.to_string())?;
        bentpipe_lab::check(&scenario, &Place::Senders).map_err(|error| match error {
            RunError::Impossible(why) => why,
            RunError::Stopped | RunError::Unwritten(_) => "the scenario cannot be checked".into(),
        })?;
        Ok(scenario)
    }

    /// Returns the value at a path of the default world with all defaults written out, or the axis values if it
    /// varies.
    ///
    /// # Errors
    /// If there is no value at that path.
    pub fn written(&self, key: &str) -> Result<String, String> {
        if let Some(axis) = self.axis.as_ref().filter(|axis| axis.keys.iter().any(|known| known == key)) {
            return Ok(axis.values.iter().map(argument).collect::<Vec<_>>().join(", "));
        }
        let default = Spot { arm: 0, place: 0, choice: 0 };
        let scenario = self.scenario(default, &Grid::of(self, Form::default()), Form::default())?;
        let world: toml::Table = toml::from_str(&scenario.to_toml()).map_err(|error| error.to_string())?;
        let mut words = key.split('.');
        let first = words.next().and_then(|word| world.get(word));
        let found = words.fold(first, |found, word| found?.get(word));
        let accepted = || format!("found no `{key}` in the world, accepted: a path such as `link.NAME.rate`");
        found.map(argument).ok_or_else(accepted)
    }

    /// Returns the world of a point before it is checked.
    fn draft(&self, spot: Spot, grid: &Grid, form: Form) -> Result<Draft, String> {
        let text = |error: bentpipe_scenario::Error| error.to_string();
        let mut draft = Draft::load(&self.scenario).map_err(text)?;
        let Some((_, arm)) = self.arm.get_index(spot.arm) else { return Err("there is no such arm".into()) };
        if let Some(cc) = arm.cc() {
            draft.set_cc(cc).map_err(text)?;
        }
        for (key, value) in self.settings(spot, grid, form) {
            draft.set(&format!("{key}={}", argument(value))).map_err(text)?;
        }
        if let Some(axis) = &self.axis {
            let value = argument(self.values(form)[spot.place]);
            for key in &axis.keys {
                draft.set(&format!("{key}={value}")).map_err(text)?;
            }
        }
        if let Some(cc) = arm.cc() {
            draft.set_missing_cc(cc).map_err(text)?;
        }
        Ok(draft)
    }
}

impl Choice {
    fn with_each(&self, parameter: &str, options: &[&String]) -> Vec<Self> {
        let with = |(index, option): (usize, &&String)| Self {
            options: self.options.iter().copied().chain([index]).collect(),
            parts: self.parts.iter().cloned().chain([format!("{parameter} = {option}")]).collect(),
        };
        options.iter().enumerate().map(with).collect()
    }

    /// Returns `discipline = D1, buffer = 50`; empty without open parameters.
    pub fn name(&self) -> String {
        self.parts.join(", ")
    }

    /// True if the two choices differ only in this parameter.
    fn is_beside(&self, other: &Self, parameter: usize) -> bool {
        let mut pairs = self.options.iter().zip(&other.options).enumerate();
        pairs.all(|(index, (a, b))| index == parameter || a == b)
    }
}

/// Returns the names of some choices, without parameters that do not distinguish them from the others.
pub fn names(some: &[usize], all: &[Choice]) -> Vec<String> {
    let parameters = all.first().map_or(0, |choice| choice.parts.len());
    let matters = |parameter: &usize| {
        let others = || (0..all.len()).filter(|index| !some.contains(index));
        some.iter().any(|one| others().any(|other| all[*one].is_beside(&all[other], *parameter)))
    };
    let matter: Vec<usize> = (0..parameters).filter(matters).collect();
    let name = |index: &usize| {
        let parts = matter.iter().map(|parameter| all[*index].parts[*parameter].as_str());
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut names: Vec<String> = some.iter().map(name).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Returns the command line that reproduces a point.
pub fn command(experiment: &Experiment, spot: Spot, grid: &Grid, form: Form) -> String {
    let mut words = vec!["bentpipe run".to_owned(), experiment.scenario.clone()];
    let Some((_, arm)) = experiment.arm.get_index(spot.arm) else { return String::new() };
    words.extend(arm.cc().map(|cc| format!("--cc {cc}")));
    let set = |(key, value): (&String, &toml::Value)| format!("--set '{key}={}'", argument(value));
    words.extend(experiment.settings(spot, grid, form).into_iter().map(set));
    if let Some(axis) = &experiment.axis {
        let value = argument(experiment.values(form)[spot.place]);
        words.extend(axis.keys.iter().map(|key| format!("--set '{key}={value}'")));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_an_arm_describes_anew_have_its_algorithm() {
        let experiment: Experiment = toml::from_str(
            r#"
            title = "One"
            scenario = "geo-single"
            set = { "flow.bulk" = { from = "sender", to = "receiver" } }
            arm = { vegas = { cc = "vegas", set = { "flow.far" = { from = "sender", to = "receiver" } } } }
            "#,
        )
        .unwrap();
        let spot = Spot { arm: 0, place: 0, choice: 0 };
        let grid = Grid::of(&experiment, Form::default());
        let world = experiment.scenario(spot, &grid, Form::default()).unwrap();
        assert_eq!(world.to_toml().matches("name = \"vegas\"").count(), 2, "{}", world.to_toml());
    }

    #[test]
    fn what_makes_no_difference_is_not_named() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (queue, ack) = (texts(&["short", "long"]), texts(&["40", "56"]));
        let begun = Choice::default().with_each("queue", &queue.iter().collect::<Vec<_>>());
        let all: Vec<Choice> =
            begun.iter().flat_map(|one| one.with_each("ack", &ack.iter().collect::<Vec<_>>())).collect();
        assert_eq!(all[2].name(), "queue = long, ack = 40");
        assert_eq!(names(&[0, 2], &all), ["ack = 40"]);
        assert_eq!(names(&[2, 3], &all), ["queue = long"]);
        assert_eq!(names(&[1], &all), ["queue = short, ack = 56"]);
        assert_eq!(
            names(&[0, 1, 2], &all),
            ["queue = short, ack = 40", "queue = short, ack = 56", "queue = long, ack = 40"]
        );
        assert_eq!(names(&[0], &all[..1]), [""]);
    }
}
