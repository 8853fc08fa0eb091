//! From a study to its outcome: which runs are needed, running them, judging.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_lab::{Progress, Simulated, Unsimulated, Wanted, run_all, simulate};
use bentpipe_scenario::Scenario;

use crate::chart::{Chart, ChartLine, along_axis};
use crate::check::{Check, Expr, Quantity};
use crate::file::{Experiment, Figure, OverTime, Study};
use crate::grid::{Form, Grid, Spot, command};
use crate::measure::{Curve, Measure};
use crate::outcome::{ClaimOutcome, FigureOutcome, StudyOutcome};
use crate::results::Results;
use crate::store::{Store, Values};
use crate::verdict::{Finding, Verdict, judge};

/// What is wanted of studies.
pub struct Wish {
    /// Short or full form.
    pub form: Form,
    /// Only these figures and the claims about them; everything if empty.
    pub figures: Vec<String>,
    /// Runs at a time.
    pub threads: usize,
    /// Set by another thread to stop early.
    pub stop: Arc<AtomicBool>,
}

/// Why there is no outcome.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfinished {
    /// The study asks for an impossible world.
    #[error("{0}")]
    Impossible(String),
    /// A run broke.
    #[error("{0}")]
    Broken(String),
    /// It was stopped; finished points are kept.
    #[error("stopped: {done} of {total} runs finished")]
    Stopped {
        /// Runs finished.
        done: usize,
        /// Runs in all.
        total: usize,
    },
}

/// An experiment of which something is needed.
struct Needed<'a> {
    name: &'a str,
    experiment: &'a Experiment,
    grid: Grid,
    measures: Vec<Measure>,
    /// Name of the world of each spot.
    worlds: BTreeMap<Spot, String>,
}

/// One run.
struct Job {
    scenario: Arc<Scenario>,
    world: String,
    seed: u64,
    measures: Vec<Measure>,
}

/// Conducts studies; points that the store knows are not run again, and no point is run twice.
///
/// # Errors
/// See [`Unfinished`].
pub fn conduct(
    studies: &[Study],
    wish: &Wish,
    store: Store,
    observe: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Vec<StudyOutcome>, Unfinished> {
    let mut jobs: BTreeMap<(String, u64), Job> = BTreeMap::new();
    let mut needed: Vec<Vec<Needed<'_>>> = Vec::new();
    for study in studies {
        let mut of_study = needs(study, wish);
        for one in &mut of_study {
            plan(one, wish, &store, &mut jobs).map_err(|what| {
                Unfinished::Impossible(format!("{}: experiment.{}: {what}", study.name, one.name))
            })?;
        }
        needed.push(of_study);
    }
    let store = work(jobs.into_values().collect(), wish, store, observe)?;
    let outcome = |(study, needed): (&Study, &Vec<Needed<'_>>)| outcome(study, needed, wish, &store);
    studies.iter().zip(&needed).map(outcome).collect()
}

/// The figures that are wanted of a study.
fn figures<'a>(study: &'a Study, wish: &'a Wish) -> impl Iterator<Item = (&'a str, &'a Figure)> {
    let wanted = |number: &str| wish.figures.is_empty() || wish.figures.iter().any(|figure| figure == number);
    study
        .figure
        .iter()
        .map(|(number, figure)| (number.as_str(), figure))
        .filter(move |(number, _)| wanted(number))
}

/// The claims that are wanted of a study.
fn claims<'a>(study: &'a Study, wish: &'a Wish) -> impl Iterator<Item = (&'a str, &'a crate::file::Claim)> {
    let wanted = |figure: Option<&String>| {
        wish.figures.is_empty() || figure.is_some_and(|figure| wish.figures.contains(figure))
    };
    study
        .claim
        .iter()
        .map(|(name, claim)| (name.as_str(), claim))
        .filter(move |(_, claim)| wanted(claim.figure.as_ref()))
}

/// What the figures and claims need of each experiment.
fn needs<'a>(study: &'a Study, wish: &'a Wish) -> Vec<Needed<'a>> {
    let mut wanted: BTreeMap<&str, Vec<Quantity>> = BTreeMap::new();
    for (_, figure) in figures(study, wish) {
        let of = wanted.entry(&figure.experiment).or_default();
        for line in figure.lines.values() {
            if let Ok(expr) = Expr::parse(&line.0) {
                expr.visit(&mut |quantity| of.push(quantity.clone()));
            }
        }
    }
    for (_, claim) in claims(study, wish) {
        let check = claim.check.as_ref().and_then(|text| Check::parse(&text.0).ok());
        if let (Some(name), Some(check)) = (&claim.experiment, check) {
            wanted.entry(name).or_default().extend(check.quantities().into_iter().cloned());
        }
    }
    let of = |(name, experiment): (&'a String, &'a Experiment)| {
        let quantities = wanted.get(name.as_str()).filter(|quantities| !quantities.is_empty())?;
        let axis = experiment.axis.as_ref().map(|axis| axis.name.as_str());
        let mut measures: Vec<Measure> = Vec::new();
        for measure in quantities.iter().filter_map(|quantity| Measure::of(quantity, axis).ok()) {
            if !measures.contains(&measure) {
                measures.push(measure);
            }
        }
        let grid = Grid::of(experiment, wish.form);
        Some(Needed { name, experiment, grid, measures, worlds: BTreeMap::new() })
    };
    study.experiment.iter().filter_map(of).collect()
}

/// Adds the runs that an experiment needs and the store does not know.
fn plan(
    needed: &mut Needed<'_>,
    wish: &Wish,
    store: &Store,
    jobs: &mut BTreeMap<(String, u64), Job>,
) -> Result<(), String> {
    for spot in needed.grid.spots() {
        let scenario = Arc::new(needed.experiment.scenario(spot, &needed.grid, wish.form)?);
        let world = name_of(&scenario);
        for seed in &needed.grid.seeds {
            let known = store.get(&world, *seed);
            let missing =
                |measure: &&Measure| known.is_none_or(|values| !values.contains_key(&measure.key()));
            let missing: Vec<Measure> = needed.measures.iter().filter(missing).cloned().collect();
            if missing.is_empty() {
                continue;
            }
            let new = || Job {
                scenario: Arc::clone(&scenario),
                world: world.clone(),
                seed: *seed,
                measures: Vec::new(),
            };
            let job = jobs.entry((world.clone(), *seed)).or_insert_with(new);
            job.measures.extend(missing);
        }
        needed.worlds.insert(spot, world);
    }
    Ok(())
}

/// A name that two worlds share only if they are the same.
fn name_of(scenario: &Scenario) -> String {
    use siphasher::sip128::{Hasher128, SipHasher13};
    use std::hash::Hasher;
    let mut hasher = SipHasher13::new();
    hasher.write(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.write(scenario.to_toml().as_bytes());
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Does the runs; each is in the store as soon as it is finished.
fn work(
    jobs: Vec<Job>,
    wish: &Wish,
    store: Store,
    observe: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Store, Unfinished> {
    let total = jobs.len();
    let store = Arc::new(Mutex::new(store));
    let (kept, stop) = (Arc::clone(&store), Arc::clone(&wish.stop));
    let run = move |job: &Job| {
        let Some(values) = run_one(job, &stop)? else { return Ok(false) };
        let mut store = kept.lock().unwrap_or_else(PoisonError::into_inner);
        store.keep(&job.world, job.seed, values).map_err(|error| format!("cannot keep a point: {error}"))?;
        Ok(true)
    };
    let results = run_all(jobs, wish.threads, run, observe);
    let done = results.iter().filter(|result| matches!(result, Some(Ok(true)))).count();
    if let Some(why) = results.into_iter().flatten().find_map(Result::err) {
        return Err(Unfinished::Broken(why));
    }
    if done < total {
        return Err(Unfinished::Stopped { done, total });
    }
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *store))
}

/// `None` if it was stopped.
fn run_one(job: &Job, stop: &AtomicBool) -> Result<Option<Values>, String> {
    let series = job.measures.iter().any(Measure::needs_series);
    let Some(run) = run_scenario(&job.scenario, job.seed, (series, stop))? else { return Ok(None) };
    let document = serde_json::to_value(&run.outcome).map_err(|error| error.to_string())?;
    Ok(Some(job.measures.iter().map(|measure| (measure.key(), measure.value(&run, &document))).collect()))
}

fn run_scenario(
    scenario: &Scenario,
    seed: u64,
    (series, stop): (bool, &AtomicBool),
) -> Result<Option<Simulated>, String> {
    let wanted = Wanted { seed: Some(seed), series, stop: Some(stop), ..Wanted::default() };
    match simulate(scenario, wanted) {
        Ok(run) => Ok(Some(run)),
        Err(Unsimulated::Stopped) => Ok(None),
        Err(Unsimulated::Impossible(why)) => Err(why),
        Err(Unsimulated::Unwritten(error)) => Err(error.to_string()),
    }
}

fn outcome(
    study: &Study,
    needed: &[Needed<'_>],
    wish: &Wish,
    store: &Store,
) -> Result<StudyOutcome, Unfinished> {
    let results: BTreeMap<&str, Results> = needed.iter().map(|one| (one.name, fill(one, store))).collect();
    let claims = claims(study, wish).map(|(name, claim)| {
        let finding = finding(claim, &results);
        let rerun = claim.experiment.as_deref().and_then(|name| needed.iter().find(|one| one.name == name));
        let first = Spot { arm: 0, place: 0, choice: 0 };
        ClaimOutcome {
            id: name.to_owned(),
            figure: claim.figure.clone(),
            statement: claim.statement.clone(),
            verdict: finding.verdict,
            measured: finding.measured,
            tolerance: claim
                .check
                .as_ref()
                .map(|text| text.0.split_whitespace().collect::<Vec<_>>().join(" ")),
            seeds: rerun.map_or(0, |one| one.grid.seeds.len()),
            holds_for: finding.holds_for,
            note: claim.note.clone(),
            rerun: rerun.map(|one| command(one.experiment, first, &one.grid, wish.form)),
        }
    });
    let claims = claims.collect();
    let figures = figures(study, wish).map(|(number, figure)| {
        let charts = charts((number, figure), (study, wish), &results)?;
        Ok(FigureOutcome { number: number.to_owned(), title: figure.title.clone(), charts })
    });
    let figures = figures.collect::<Result<_, _>>()?;
    Ok(StudyOutcome {
        name: study.name.clone(),
        title: study.title.clone(),
        citation: study.citation.clone(),
        claims,
        figures,
        text: study.text.clone(),
    })
}

fn finding(claim: &crate::file::Claim, results: &BTreeMap<&str, Results>) -> Finding {
    let not_testable = |why: &str| Finding {
        verdict: Verdict::NotTestable,
        measured: why.to_owned(),
        holds_for: Vec::new(),
    };
    let Some(text) = &claim.check else {
        return not_testable(claim.not_testable.as_deref().unwrap_or_default());
    };
    let Ok(check) = Check::parse(&text.0) else { return not_testable("the check cannot be read") };
    match claim.experiment.as_deref().and_then(|name| results.get(name)) {
        Some(results) => judge(&check, results),
        None => judge(&check, &Results::arithmetic()),
    }
}

/// What the store knows of an experiment.
fn fill(needed: &Needed<'_>, store: &Store) -> Results {
    let axis = needed.experiment.axis.as_ref().map(|axis| axis.name.clone());
    let mut results = Results::none(needed.grid.clone(), axis);
    for (spot, runs) in &mut results.runs {
        let world = needed.worlds.get(spot).map_or("", String::as_str);
        for (run, seed) in runs.iter_mut().zip(&needed.grid.seeds) {
            *run = store.get(world, *seed).cloned();
        }
    }
    results
}

/// One chart for each choice of what is left open, or one of curves over time.
fn charts(
    (number, figure): (&str, &Figure),
    (study, wish): (&Study, &Wish),
    results: &BTreeMap<&str, Results>,
) -> Result<Vec<Chart>, Unfinished> {
    let experiment = &study.experiment[&figure.experiment];
    if let Some(time) = &figure.time {
        return Ok(vec![over_time((number, figure), experiment, (time, wish))?]);
    }
    let Some(results) = results.get(figure.experiment.as_str()) else { return Ok(Vec::new()) };
    let choices = 0..results.grid.choices.len();
    Ok(choices.map(|choice| along_axis((number, figure), experiment, (results, choice))).collect())
}

/// Curves of one run of each arm with the first seed.
fn over_time(
    (number, figure): (&str, &Figure),
    experiment: &Experiment,
    of: (&OverTime, &Wish),
) -> Result<Chart, Unfinished> {
    let (time, wish) = of;
    let grid = Grid::of(experiment, wish.form);
    let place = time.at.and_then(|at| grid.place(at)).unwrap_or(0);
    let curve = Curve::named(&time.series).unwrap_or(Curve::Cwnd);
    let mut lines = Vec::new();
    for (arm, label) in &time.arms {
        let spot = Spot { arm: grid.arm(arm).unwrap_or(0), place, choice: 0 };
        let scenario = experiment.scenario(spot, &grid, wish.form).map_err(Unfinished::Impossible)?;
        let run = run_scenario(&scenario, grid.seeds[0], (true, &wish.stop)).map_err(Unfinished::Broken)?;
        let Some(run) = run else { return Err(Unfinished::Stopped { done: 0, total: 1 }) };
        let wanted = |name: &str| match time.flow.as_deref() {
            Some("*") => true,
            Some(flow) => flow == name,
            None => run.series.flows.first().is_some_and(|first| first.name == name),
        };
        let (from, to) = time.span.unwrap_or((0.0, f64::INFINITY));
        for flow in run.series.flows.iter().filter(|flow| wanted(&flow.name)) {
            let inside = curve.points(flow).iter().filter(|point| point.0 >= from && point.0 <= to);
            let name = if time.flow.as_deref() == Some("*") {
                format!("{label} {}", flow.name)
            } else {
                label.clone()
            };
            lines.push(ChartLine { name, points: inside.map(|point| (point.0, point.1, None)).collect() });
        }
    }
    Ok(Chart {
        title: format!("Fig. {number}: {}", figure.title),
        x: "Time (s)".into(),
        y: figure.y.clone(),
        y_log: figure.log,
        over_time: true,
        lines,
        x_log: false,
    })
}
