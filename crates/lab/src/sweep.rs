//! A comparison, from the request to the results.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use bentpipe_scenario::{Draft, Scenario, own_algorithms};

use crate::comparison::Sample;
use crate::metric::Metric;
use crate::plan::{Cell, Plan, Point, Vary};
use crate::pool::{Progress, Workers, run_all};
use crate::room::check_memory;
use crate::simulate::{Place, RunError, RunRequest, check, drawn, simulate, unless_stopped};

/// Request for a comparison.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The scenario, with the changes that hold for all runs.
    pub draft: Draft,
    /// The keys of those changes.
    pub set: Vec<String>,
    /// Algorithms, or `all`; without any, each flow keeps its own.
    pub cc: Vec<String>,
    /// Baseline, instead of the first algorithm.
    pub baseline: Option<String>,
    /// Varied settings.
    pub vary: Vec<Vary>,
    /// First seed instead of the scenario's.
    pub seed: Option<u64>,
    /// Runs of each point.
    pub seeds: u32,
    /// Runs at a time.
    pub threads: usize,
    /// Maximum memory in bytes, instead of the free memory of this machine.
    pub memory: Option<u64>,
}

/// Everything that is worked out before the work.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Plan of the runs.
    pub plan: Plan,
    /// One scenario for each cell of the plan.
    pub scenarios: Vec<Scenario>,
    /// The scenario before anything varies.
    pub base: Scenario,
}

/// Name of the algorithm if every flow keeps that of the scenario.
pub const OWN: &str = "as-it-is";

/// Maximum number of runs: the results of each are kept in memory.
pub const MOST_RUNS: usize = 1_000_000;

impl Wish {
    /// Plans and checks all runs.
    ///
    /// # Errors
    ///
    /// Found and accepted values, in words for the user.
    pub fn prepare(&self) -> Result<Prepared, String> {
        let base = self.draft.scenario().map_err(|error| error.to_string())?;
        let algorithms = algorithms(&self.cc)?;
        let mut plan = Plan {
            scenario: base.name.clone(),
            baseline: baseline(self.baseline.as_ref(), &algorithms)?,
            algorithms,
            vary: self.vary.clone(),
            first_seed: self.seed.unwrap_or(base.seed),
            seeds: self.seeds,
            measures: Metric::of_scenario(&base),
            groups: base.flows.iter().map(|group| group.name.clone()).collect(),
            compared: compared(&base),
            notes: Vec::new(),
        };
        self.refuse_repeated_keys()?;
        refuse_too_many(&plan)?;
        let at_once = self.threads.min(plan.points().len());
        let prepared = |cell: &Cell| {
            let scenario = scenario(&self.draft, cell)?;
            check_memory(&scenario, at_once, self.memory)?;
            match check(&scenario, &Place::Senders) {
                Err(RunError::Impossible(why)) => Err(why),
                _ => Ok(scenario),
            }
        };
        let scenarios: Vec<Scenario> = plan.cells().iter().map(prepared).collect::<Result<_, _>>()?;
        plan.notes = self.vary.iter().filter_map(|vary| loss_rate(vary, &plan.cells(), &scenarios)).collect();
        Ok(Prepared { plan, scenarios, base })
    }

    fn refuse_repeated_keys(&self) -> Result<(), String> {
        for (index, vary) in self.vary.iter().enumerate() {
            let set = self.set.contains(&vary.key);
            if set || self.vary[..index].iter().any(|other| other.key == vary.key) {
                let key = &vary.key;
                return Err(format!("{key} is given twice; name all its values in one --vary"));
            }
        }
        Ok(())
    }
}

/// Returns what a varied loss rate counts, and where that changes; `None` for other keys. `scenarios` are those of the cells.
fn loss_rate(vary: &Vary, cells: &[Cell], scenarios: &[Scenario]) -> Option<String> {
    let mut counted: Vec<(&str, String)> = Vec::new();
    for (cell, scenario) in cells.iter().zip(scenarios) {
        let Some(counts) = scenario.loss_rate_counts(&vary.key) else { continue };
        if counted.iter().all(|(known, _)| *known != counts) {
            let settings: Vec<_> = cell.vary.iter().map(ToString::to_string).collect();
            counted.push((counts, settings.join(", ")));
        }
    }
    match &counted[..] {
        [] => None,
        [(counts, _)] => Some(format!("{}: {counts}", vary.key)),
        several => {
            let each: Vec<_> = several.iter().map(|(counts, at)| format!("{counts} with {at}")).collect();
            Some(format!("{} changes its meaning: {}", vary.key, each.join("; ")))
        }
    }
}

/// Returns the baseline of the comparison.
fn baseline(named: Option<&String>, algorithms: &[String]) -> Result<String, String> {
    let name = named.unwrap_or(&algorithms[0]);
    if algorithms.contains(name) {
        return Ok(name.clone());
    }
    let accepted = algorithms.join(", ");
    Err(format!("--baseline: found `{name}`, accepted: an algorithm of the comparison ({accepted})"))
}

/// Names of the groups of flows that run the algorithm under comparison.
fn compared(scenario: &Scenario) -> Vec<String> {
    scenario.flows.iter().filter(|group| !group.fixed).map(|group| group.name.clone()).collect()
}

fn refuse_too_many(plan: &Plan) -> Result<(), String> {
    let cells =
        plan.vary.iter().fold(plan.algorithms.len(), |cells, vary| cells.saturating_mul(vary.values.len()));
    match cells.saturating_mul(plan.seeds as usize) {
        runs if runs > MOST_RUNS => {
            let seeds = plan.seeds;
            Err(format!("found {cells} points with {seeds} seeds, accepted: at most {MOST_RUNS} runs in all"))
        }
        _ => Ok(()),
    }
}

/// `all` is every registered algorithm, and those of the program; nothing is compared with itself.
fn algorithms(names: &[String]) -> Result<Vec<String>, String> {
    if names.is_empty() {
        return Ok(vec![OWN.to_owned()]);
    }
    let twice =
        |(index, name): &(usize, &String)| names[..*index].iter().any(|other| other.trim() == name.trim());
    if let Some((_, name)) = names.iter().enumerate().find(twice) {
        return Err(format!("--cc: found {name} twice, accepted: each algorithm once"));
    }
    let expand = |name: &String| match name.trim() {
        "all" => {
            let registered = bentpipe_scenario::registered_algorithms();
            registered.chain(own_algorithms().into_iter().map(|own| own.name)).map(str::to_owned).collect()
        }
        name => vec![name.to_owned()],
    };
    let mut all: Vec<String> = Vec::new();
    for name in names.iter().flat_map(expand) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    Ok(all)
}

fn scenario(draft: &Draft, cell: &Cell) -> Result<Scenario, String> {
    let mut draft = draft.clone();
    if cell.cc != OWN {
        draft.set_cc(&cell.cc).map_err(|error| error.to_string())?;
    }
    for setting in &cell.vary {
        draft.set(&setting.to_string()).map_err(|error| error.to_string())?;
    }
    draft.scenario().map_err(|error| error.to_string())
}

/// Results of some runs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// The runs that finished.
    pub done: Vec<(Point, Sample)>,
    /// The first that failed, and why.
    pub failed: Option<(Point, String)>,
}

impl Prepared {
    /// Runs `points` in parallel, each with the remaining share of the threads; `keep` gets each finished run, on the thread that ran
    /// it.
    pub fn measure(
        &self,
        points: Vec<Point>,
        workers: &Workers,
        keep: impl Fn(&Point, &Sample) -> Result<(), String> + Send + Sync + 'static,
        observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Measured {
        let Workers { threads, stop } = workers.clone();
        let scenarios = self.scenarios.clone();
        let left = NonZeroUsize::new(threads / points.len().clamp(1, threads.max(1)));
        let run = move |point: &Point| {
            let wanted = RunRequest {
                seed: Some(point.seed),
                threads: left,
                stop: Some(&stop),
                ..RunRequest::default()
            };
            // The seed may choose how many flows there are.
            let drawn = drawn(&scenarios[point.cell], point.seed);
            let run = drawn.and_then(|scenario| Ok((simulate(&scenario, wanted)?, scenario)));
            let Some((run, scenario)) = unless_stopped(run)? else { return Ok(None) };
            let sample = Sample::of(&run.outcome, &scenario.flows);
            keep(point, &sample)?;
            Ok(Some(sample))
        };
        let results = run_all(points.clone(), threads, run, observe);
        let mut measured = Measured::default();
        for (point, result) in points.into_iter().zip(results) {
            match result {
                Some(Ok(Some(sample))) => measured.done.push((point, sample)),
                Some(Err(why)) if measured.failed.is_none() => measured.failed = Some((point, why)),
                _ => {}
            }
        }
        measured
    }

    /// The command that shows a run again.
    pub fn replay(&self, point: &Point) -> String {
        let cell = &self.plan.cells()[point.cell];
        let sets = cell.vary.iter().map(|setting| format!(" --set '{setting}'")).collect::<String>();
        let scenario = &self.plan.scenario;
        let cc = if cell.cc == OWN { String::new() } else { format!(" --cc {}", cell.cc) };
        format!("bentpipe run {scenario}{cc} --seed {}{sets}", point.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(vary: &[&str]) -> Vec<String> {
        let wish = Wish {
            draft: Draft::load("geo-single").unwrap(),
            set: Vec::new(),
            cc: vec!["reno".to_owned()],
            baseline: None,
            vary: vary.iter().map(|vary| vary.parse().unwrap()).collect(),
            seed: None,
            seeds: 1,
            threads: 1,
            memory: None,
        };
        wish.prepare().unwrap().plan.notes
    }

    #[test]
    fn a_sweep_says_what_a_loss_rate_counts_and_where_that_changes() {
        assert_eq!(notes(&["tcp.mss=948 bytes,1448 bytes"]), [""; 0]);
        let bits = ["link.satellite.loss={ kind = \"bit\", rate = 1e-7 },{ kind = \"bit\", rate = 1e-6 }"];
        assert_eq!(notes(&bits), ["link.satellite.loss: per bit"]);
        let kinds = ["link.satellite.loss.kind=packet,bit", "link.satellite.loss.rate=1e-6,1e-5"];
        let changes = "link.satellite.loss.rate changes its meaning: per packet with link.satellite.loss.kind=packet, \
                       link.satellite.loss.rate=1e-6; per bit with link.satellite.loss.kind=bit, link.satellite.loss.rate=1e-6";
        assert_eq!(notes(&kinds), [changes]);
    }
}
