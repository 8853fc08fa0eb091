//! Runs required by the figures and claims of studies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bentpipe_lab::check_memory;
use bentpipe_scenario::Scenario;

use crate::file::Experiment;
use crate::grid::{Form, Grid, Spot};
use crate::measure::{Measure, Measured};
use crate::study::{Claim, Figure, Ground, OverTime, Shown, Sketch, Study};
use bentpipe_table::{Kept, Store, refuse_own, world_name};

/// Request to conduct studies.
pub struct Wish {
    /// Short or full form.
    pub form: Form,
    /// Figures to conduct, with the claims about them; empty for everything.
    pub figures: Vec<String>,
    /// Number of parallel runs.
    pub threads: usize,
    /// Maximum memory of all runs in bytes, instead of the machine's free memory.
    pub memory: Option<u64>,
    /// Flag that another thread sets to stop early.
    pub stop: Arc<AtomicBool>,
}

/// An experiment with required results.
pub struct Needed<'a> {
    /// Its name.
    pub name: &'a str,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its points.
    pub grid: Grid,
    /// Name of the world at each spot that is run.
    pub worlds: BTreeMap<Spot, String>,
    /// Measures, each with the arm whose runs it needs.
    measures: Vec<(usize, Measure)>,
    /// Curves of single runs with the first seed.
    sketches: Vec<(Spot, Sketch)>,
}

/// One run.
pub struct Job {
    /// World of the run.
    pub scenario: Arc<Scenario>,
    /// Name of the world.
    pub world: String,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Measures to keep.
    pub measures: Vec<Measure>,
    /// Curves to keep.
    pub sketches: Vec<Sketch>,
}

/// Runs, keyed by world and seed.
pub type Jobs = BTreeMap<(String, u64), Job>;

/// Returns the requested figures of a study.
pub fn figures<'a>(study: &'a Study, wish: &'a Wish) -> impl Iterator<Item = (&'a str, &'a Figure)> {
    let wanted = |number: &str| wish.figures.is_empty() || wish.figures.iter().any(|figure| figure == number);
    let all = study.figure.iter().map(|(number, figure)| (number.as_str(), figure));
    all.filter(move |(number, _)| wanted(number))
}

/// Returns the requested claims of a study.
pub fn claims<'a>(study: &'a Study, wish: &'a Wish) -> impl Iterator<Item = (&'a str, &'a Claim)> {
    let wanted = |figure: Option<&String>| {
        wish.figures.is_empty() || figure.is_some_and(|figure| wish.figures.contains(figure))
    };
    let all = study.claim.iter().map(|(name, claim)| (name.as_str(), claim));
    all.filter(move |(_, claim)| wanted(claim.figure.as_ref()))
}

/// Returns the required results of each experiment.
pub fn needs<'a>(study: &'a Study, wish: &'a Wish) -> Vec<Needed<'a>> {
    let none = |(name, experiment): (&'a String, &'a Experiment)| Needed {
        name,
        experiment,
        grid: Grid::of(experiment, wish.form),
        worlds: BTreeMap::new(),
        measures: Vec::new(),
        sketches: Vec::new(),
    };
    let mut all: Vec<Needed<'a>> = study.experiment.iter().map(none).collect();
    let of = |name: &String| study.experiment.get_index_of(name);
    for (_, figure) in figures(study, wish) {
        let Some(needed) = of(&figure.experiment).map(|index| &mut all[index]) else { continue };
        match &figure.shown {
            Shown::Along(lines) => lines.values().for_each(|line| line.visit(&mut |one| needed.measure(one))),
            Shown::OverTime(time) => needed.sketch(time),
        }
    }
    for (_, claim) in claims(study, wish) {
        let Ground::Check { experiment: Some(name), check, .. } = &claim.ground else { continue };
        let Some(needed) = of(name).map(|index| &mut all[index]) else { continue };
        check.quantities().into_iter().for_each(|one| needed.measure(one));
        claim.stated.values().for_each(|(_, expr)| expr.visit(&mut |one| needed.measure(one)));
    }
    all.retain(|needed| !needed.measures.is_empty() || !needed.sketches.is_empty());
    all
}

impl OverTime {
    /// Returns the point of each arm, with its name in the legend.
    pub fn spots<'a>(&'a self, grid: &'a Grid) -> impl Iterator<Item = (Spot, &'a str)> {
        // `Study` has checked that the place is on the axis; without one it is the first.
        let place = self.at.and_then(|at| grid.place(at)).unwrap_or_default();
        self.arms.iter().map(move |(arm, label)| (Spot { arm: *arm, place, choice: 0 }, label.as_str()))
    }
}

/// Maximum number of message lines per experiment.
const TOLD: usize = 30;

impl Needed<'_> {
    fn measure(&mut self, quantity: &Measured) {
        let wanted = (quantity.arm, quantity.measure.clone());
        if !self.measures.contains(&wanted) {
            self.measures.push(wanted);
        }
    }

    fn sketch(&mut self, time: &OverTime) {
        let new: Vec<_> = time.spots(&self.grid).map(|(spot, _)| (spot, time.sketch.clone())).collect();
        for one in new {
            if !self.sketches.contains(&one) {
                self.sketches.push(one);
            }
        }
    }

    /// Returns the requested quantities that no run writes.
    pub fn unknown(&self) -> Vec<String> {
        let mut wrong: Vec<String> = Vec::new();
        for what in self.measures.iter().filter_map(|(_, measure)| measure.check_known().err()) {
            if !wrong.contains(&what) {
                wrong.push(what);
            }
        }
        wrong
    }

    /// Adds the required runs that are not in the store.
    ///
    /// # Errors
    /// All mistakes in the worlds of the study, each line once.
    pub fn plan(&mut self, wish: &Wish, store: &Store, jobs: &mut Jobs) -> Result<(), Vec<String>> {
        let mut wrong: Vec<String> = Vec::new();
        for spot in self.grid.spots() {
            let sketches = self.sketches.iter().filter(|(at, _)| *at == spot).map(|(_, sketch)| sketch);
            let sketches: Vec<&Sketch> = sketches.collect();
            let measures =
                self.measures.iter().filter(|(arm, _)| *arm == spot.arm).map(|(_, measure)| measure);
            let measures: Vec<&Measure> = measures.collect();
            if measures.is_empty() && sketches.is_empty() {
                continue;
            }
            let scenario = match self.experiment.scenario(spot, &self.grid, wish.form) {
                Ok(scenario) => Arc::new(scenario),
                Err(what) => {
                    let new: Vec<String> =
                        what.lines().map(str::to_owned).filter(|line| !wrong.contains(line)).collect();
                    wrong.extend(new);
                    if wrong.len() >= TOLD {
                        break;
                    }
                    continue;
                }
            };
            if let Err(what) = if store.keeps() { refuse_own(&scenario) } else { Ok(()) } {
                wrong.push(what);
                break;
            }
            if let Err(what) = check_memory(&scenario, wish.threads, wish.memory) {
                wrong.push(what);
                break;
            }
            let world = world_name(&scenario);
            for (index, seed) in self.grid.seeds.iter().enumerate() {
                let sketches = if index == 0 { sketches.as_slice() } else { &[] };
                let known = store.get(&world, *seed);
                let (measures, sketches) = missing(known, &measures, sketches);
                if measures.is_empty() && sketches.is_empty() {
                    continue;
                }
                let new = || Job {
                    scenario: Arc::clone(&scenario),
                    world: world.clone(),
                    seed: *seed,
                    measures: Vec::new(),
                    sketches: Vec::new(),
                };
                let job = jobs.entry((world.clone(), *seed)).or_insert_with(new);
                job.measures.extend(measures);
                job.sketches.extend(sketches);
            }
            self.worlds.insert(spot, world);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

/// Returns the measures and curves that the store lacks for a run.
fn missing(known: Option<&Kept>, measures: &[&Measure], sketches: &[&Sketch]) -> (Vec<Measure>, Vec<Sketch>) {
    let measured = |measure: &Measure| known.is_some_and(|known| known.values.contains_key(&measure.key()));
    let drawn = |sketch: &Sketch| known.is_some_and(|known| known.curves.contains_key(&sketch.key()));
    (
        measures.iter().filter(|measure| !measured(measure)).map(|measure| (*measure).clone()).collect(),
        sketches.iter().filter(|sketch| !drawn(sketch)).map(|sketch| (*sketch).clone()).collect(),
    )
}
