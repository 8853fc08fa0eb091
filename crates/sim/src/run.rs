//! From a scenario to a result.

use std::time;

use bentpipe_base::Instant;
use bentpipe_outcome::{Observer, Outcome, Series};
use bentpipe_scenario::{Scenario, Topology};

use crate::BuildError;
use crate::engine::partition::partition;
use crate::observe::measure::{Circumstances, outcome};
use crate::observe::monitor::{Monitor, Silent};
use crate::observe::watch::Watch;
use crate::options::{Ended, RunOptions};
use crate::simulation::{Finished, Simulation};
use crate::world::World;

/// The results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResult {
    /// The measurements.
    pub outcome: Outcome,
    /// Time series, if they were recorded.
    pub series: Option<Series>,
    /// Why the run ended.
    pub ended: Ended,
    /// Violations that the checkers found, if the run was verified.
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
    let begin = time::Instant::now();
    let seed = options.seed.unwrap_or(scenario.seed);
    let mut topology = Topology::new(scenario)?;
    let world = World::new(scenario, &mut topology, seed)?;
    let until = Instant::ZERO + scenario.duration;
    let (mut series, mut violations) = (None, Vec::new());
    let mut finished = if options.record || options.verify || observer.is_some() {
        let watch = Watch::new((&world, scenario, &topology), options, observer);
        let (finished, watch) = run_by_events(world, until, watch, options);
        (series, violations) = watch.finish(finished.now, (&finished.links, finished.packets));
        finished
    } else {
        run_silent(world, until, options)
    };
    let circumstances = Circumstances { seed, wall: begin.elapsed() };
    let outcome = outcome(scenario, &topology, &mut finished, circumstances);
    Ok(RunResult { outcome, series, ended: finished.ended, violations })
}

/// Executes a world without a monitor: as logical processes, if it can be divided.
fn run_silent(mut world: World, until: Instant, options: &RunOptions<'_>) -> Finished {
    let may_divide = !options.event_by_event && options.max_events.is_none();
    match may_divide.then(|| partition(&mut world, until)).flatten() {
        Some(mut partition) => {
            let ended = partition.run(options);
            partition.finish(world.core, ended)
        }
        None => run_by_events(world, until, Silent, options).0,
    }
}

/// Executes a world event by event.
fn run_by_events<M: Monitor>(
    world: World,
    until: Instant,
    monitor: M,
    options: &RunOptions<'_>,
) -> (Finished, M) {
    let chains = !M::MONITORS && !options.event_by_event;
    let mut simulation = Simulation::new(world, until, monitor, chains);
    let ended = simulation.run(options);
    let now = simulation.now;
    simulation.finish(now, ended)
}
