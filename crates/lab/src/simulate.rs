//! One run with all its outputs: result, series, files. Only this module calls the simulator.

use std::borrow::Cow;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use bentpipe_outcome::{Observer, Outcome, Series};
use bentpipe_scenario::Scenario;
use bentpipe_sim::{Ended, RunOptions, RunResult};

use crate::clock::CLOCK;
use crate::filter::{Filter, Filtered};
use crate::watch::{EventLog, Names, PacketFile, Tap};

/// A file that is written during a run.
pub type File = Box<dyn Write + Send>;

/// Requested outputs of a run besides its result.
#[derive(Default)]
pub struct RunRequest<'a> {
    /// Seed instead of the scenario's.
    pub seed: Option<u64>,
    /// Time series, for a report.
    pub series: bool,
    /// Every event as a line of JSON.
    pub trace: Option<File>,
    /// Events and sources in the trace ([`Filter::of`](crate::Filter::of)); all if empty.
    pub only: &'a [String],
    /// Packets as seen at a place.
    pub packets: Option<(File, Place)>,
    /// Observer of all events, or of those in `only`.
    pub observer: Option<&'a mut dyn Observer>,
    /// Threads that may execute the world, one without this; no result depends on it.
    pub threads: Option<NonZeroUsize>,
    /// Set by another thread to stop early.
    pub stop: Option<&'a AtomicBool>,
    /// Called at intervals with the simulated seconds.
    pub progress: Option<&'a (dyn Fn(f64) + Sync)>,
}

/// Place where packets are captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the senders.
    Senders,
    /// At the near end of this link.
    Link(String),
}

/// Output of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunOutput {
    /// Results.
    pub outcome: Outcome,
    /// Time series; empty unless requested.
    pub series: Series,
}

/// Reason why there is no result.
#[derive(Debug)]
pub enum RunError {
    /// The scenario describes no possible world, or lacks a requested element.
    Impossible(String),
    /// It was stopped.
    Stopped,
    /// A file could not be written.
    Unwritten(io::Error),
}

/// Returns the result of a run in a batch, where a stopped run is no error; `None` if it was stopped.
///
/// # Errors
/// The reason why there is no result, as text.
pub fn unless_stopped<T>(result: Result<T, RunError>) -> Result<Option<T>, String> {
    match result {
        Ok(run) => Ok(Some(run)),
        Err(RunError::Stopped) => Ok(None),
        Err(RunError::Impossible(why)) => Err(why),
        Err(RunError::Unwritten(error)) => Err(error.to_string()),
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Unwritten(error)
    }
}

impl From<bentpipe_sim::BuildError> for RunError {
    fn from(error: bentpipe_sim::BuildError) -> Self {
        Self::Impossible(error.to_string())
    }
}

/// Checks the words that select the lines of a trace ([`Filter::of`]).
///
/// # Errors
/// [`RunError::Impossible`].
pub fn check_only(scenario: &Scenario, only: &[String]) -> Result<(), RunError> {
    if only.is_empty() {
        return Ok(());
    }
    Filter::of(only, &Names::of(scenario)?).map(drop).map_err(RunError::Impossible)
}

/// Checks that a scenario describes a possible world in which somebody sends, and that a place to capture at is in it.
///
/// # Errors
/// [`RunError::Impossible`].
pub fn check(scenario: &Scenario, place: &Place) -> Result<(), RunError> {
    if scenario.flows.is_empty() {
        let accepted = "at least one group of flows, [flow.NAME]";
        return Err(RunError::Impossible(format!(
            "{}: flow: found nothing, accepted: {accepted}",
            scenario.name
        )));
    }
    tap(place, &Names::of(scenario)?).map(drop)
}

/// Returns the place of the capture and its name.
fn tap<'a>(place: &'a Place, names: &Names) -> Result<(Tap, &'a str), RunError> {
    let Place::Link(link) = place else { return Ok((Tap::Senders, "senders")) };
    Tap::link(link, names).map(|tap| (tap, link.as_str())).ok_or_else(|| {
        let mut known: Vec<&str> = names.links.iter().map(|(link, _)| link.as_str()).collect();
        known.dedup();
        RunError::Impossible(format!("found link {link:?}, accepted: {}", known.join(", ")))
    })
}

/// Returns the scenario with the values that `seed` chooses.
///
/// # Errors
/// [`RunError::Impossible`].
pub fn drawn(scenario: &Scenario, seed: u64) -> Result<Cow<'_, Scenario>, RunError> {
    scenario.for_seed(seed).map_err(|error| RunError::Impossible(error.to_string()))
}

/// Runs a scenario. Its values that the seed chooses are those of the wanted seed.
///
/// # Errors
/// If there is no such world, if it was stopped, or if a file could not be written.
pub fn simulate(scenario: &Scenario, wanted: RunRequest<'_>) -> Result<RunOutput, RunError> {
    let scenario = &*drawn(scenario, wanted.seed.unwrap_or(scenario.seed))?;
    let options = RunOptions {
        seed: wanted.seed,
        record: wanted.series,
        threads: wanted.threads,
        stop: wanted.stop,
        progress: wanted.progress,
        clock: CLOCK,
        ..RunOptions::default()
    };
    let result = if wanted.trace.is_none() && wanted.packets.is_none() && wanted.observer.is_none() {
        bentpipe_sim::run(scenario, &options)?
    } else {
        watched(scenario, &options, wanted)?
    };
    match result.ended {
        Ended::Stopped => Err(RunError::Stopped),
        _ => Ok(RunOutput { outcome: result.outcome, series: result.series.unwrap_or_default() }),
    }
}

fn watched(
    scenario: &Scenario,
    options: &RunOptions<'_>,
    wanted: RunRequest<'_>,
) -> Result<RunResult, RunError> {
    let RunRequest { trace, only, packets, observer, .. } = wanted;
    let names = Names::of(scenario)?;
    let packets = match packets {
        None => None,
        Some((file, place)) => {
            let (tap, name) = tap(&place, &names)?;
            Some(PacketFile::new(file, (tap, name), names.carriers.clone())?)
        }
    };
    let filter = Filter::of(only, &names).map_err(RunError::Impossible)?;
    let log = |file| Filtered::new(EventLog::new(file, names.clone()), filter.clone(), &names);
    let mut files = (trace.map(log), packets);
    let observer = Filtered::new(observer, filter.clone(), &names);
    let result = bentpipe_sim::run_observed(scenario, options, &mut (&mut files, observer))?;
    files.0.map(|log| log.into_inner().finish()).transpose()?;
    files.1.map(PacketFile::finish).transpose()?;
    Ok(result)
}
