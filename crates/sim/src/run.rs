//! From a scenario to a result.

use std::time;

use bentpipe_base::{Duration, Instant};
use bentpipe_outcome::{Delays, Observer, Outcome, Series};
use bentpipe_scenario::{Scenario, Topology};

use crate::BuildError;
use crate::observe::monitor::{Monitor, Silent};
use crate::observe::watch::{Watch, checker};
use crate::options::{Ended, RunOptions};
use crate::simulation::Simulation;
use crate::simulation::measure::{Circumstances, outcome, window};
use crate::simulation::shares::run_shares;
use crate::world::World;
use crate::world::bottlenecks::recorder;

/// Result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResult {
    /// The measurements.
    pub outcome: Outcome,
    /// Time series, if they were recorded.
    pub series: Option<Series>,
    /// Reason for the end of the run.
    pub ended: Ended,
    /// Violations found by the checkers, if the run was verified.
    pub violations: Vec<String>,
}

/// Runs a scenario.
///
/// # Errors
/// If no world can be built of it.
pub fn run(scenario: &Scenario, options: &RunOptions<'_>) -> Result<RunResult, BuildError> {
    conduct(scenario, options, None)
}

/// Runs a scenario under the eyes of an observer.
///
/// # Errors
/// If no world can be built of it.
pub fn run_observed(
    scenario: &Scenario,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<RunResult, BuildError> {
    conduct(scenario, options, Some(observer))
}

fn conduct(
    scenario: &Scenario,
    options: &RunOptions<'_>,
    observer: Option<&mut dyn Observer>,
) -> Result<RunResult, BuildError> {
    // A run that is cut before its window, to learn the names of its parts, has no window.
    let until = scenario.measure_from;
    let has_window = !until.is_zero() && until < scenario.duration;
    let early = if has_window { Some(run_until(scenario, options, until)?) } else { None };
    if let Some((result, _)) = early.as_ref().filter(|(result, _)| result.ended != Ended::InTime) {
        return Ok(result.clone());
    }
    let (mut result, delays) = run_whole(scenario, options, observer)?;
    if let Some((early, of_early)) = early {
        result.outcome = window((result.outcome, delays), &(early.outcome, of_early));
    }
    Ok(result)
}

/// Runs the part before the measurement window. The run is deterministic, so its results are those of the whole run until then.
fn run_until(
    scenario: &Scenario,
    options: &RunOptions<'_>,
    until: Duration,
) -> Result<(RunResult, Vec<Delays>), BuildError> {
    let scenario = Scenario { duration: until, ..scenario.clone() };
    let options = RunOptions { record: false, verify: false, progress: None, ..*options };
    run_whole(&scenario, &options, None)
}

/// Runs a scenario without regard to its measurement window; also returns the delays of each group.
fn run_whole(
    scenario: &Scenario,
    options: &RunOptions<'_>,
    observer: Option<&mut dyn Observer>,
) -> Result<(RunResult, Vec<Delays>), BuildError> {
    let begin = options.elapsed();
    let seed = options.seed.unwrap_or(scenario.seed);
    let mut topology = Topology::new(scenario)?;
    let world = World::new(scenario, &mut topology, seed)?;
    let conduct = Conduct { scenario, options, topology: &topology, seed, begin };
    if !options.record && !options.verify && observer.is_none() {
        let again = || {
            let mut topology = Topology::new(scenario).expect(BUILT_BEFORE);
            let world = World::new(scenario, &mut topology, seed).expect(BUILT_BEFORE);
            conduct.simulation(world, Silent)
        };
        let mut simulation = conduct.simulation(world, Silent);
        let ended = run_shares(&mut simulation, options, again).unwrap_or_else(|| simulation.run(options));
        return Ok((conduct.result(&mut simulation, ended), simulation.applications.delays));
    }
    let recorder = options.record.then(|| recorder(&world, scenario, &topology));
    let watch = Watch::new(recorder, options.verify.then(|| checker(&topology)), observer);
    let mut simulation = conduct.simulation(world, watch);
    let ended = simulation.run(options);
    let mut result = conduct.result(&mut simulation, ended);
    let (now, used) = (simulation.scheduler.now, simulation.network.packets_inside());
    (result.series, result.violations) = simulation.monitor.finish(now, (&simulation.network.links, used));
    Ok((result, simulation.applications.delays))
}

const BUILT_BEFORE: &str = "the same world was built before";

/// A run and its circumstances.
struct Conduct<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions<'a>,
    topology: &'a Topology<'a>,
    seed: u64,
    /// Time on the caller's clock at the start.
    begin: time::Duration,
}

impl Conduct<'_> {
    fn simulation<M: Monitor>(&self, world: World, monitor: M) -> Simulation<M> {
        Simulation::new(world, Instant::ZERO + self.scenario.duration, monitor, self.options)
    }

    fn result<M: Monitor>(&self, simulation: &mut Simulation<M>, ended: Ended) -> RunResult {
        let circumstances =
            Circumstances { seed: self.seed, wall: self.options.elapsed().saturating_sub(self.begin) };
        let outcome = outcome(self.scenario, self.topology, simulation, circumstances);
        RunResult { outcome, series: None, ended, violations: Vec::new() }
    }
}
