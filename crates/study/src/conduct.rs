//! Execution of a study: runs its simulations, judges its claims and draws its figures.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_lab::{Progress, RunRequest, Summary, run_all, simulate, unless_stopped};

use crate::chart::{Along, Chart, along_axis, over_time};
use crate::check::Expr;
use crate::file::ParameterFile;
use crate::grid::{Spot, command, names};
use crate::joint::{Candidate, JointSetting};
use crate::measure::{Measure, Measured};
use crate::outcome::{
    Choices, ClaimOutcome, FigureOutcome, OpenOutcome, ParameterOutcome, StatedOutcome, StudyOutcome,
};
use crate::plan::{Job, Jobs, Needed, Wish, claims, figures, needs};
use crate::results::{At, Results};
use crate::study::{Claim, Figure, Ground, Shown, Study};
use crate::verdict::{Judged, Verdict, judge, worst};
use bentpipe_table::{Kept, Store};

/// Reason why a study has no outcome.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfinished {
    /// The study describes an impossible world.
    #[error("{0}")]
    Impossible(String),
    /// A run failed.
    #[error("{0}")]
    Broken(String),
    /// The study was stopped; finished points are kept.
    #[error("stopped: {done} of {total} runs finished")]
    Stopped {
        /// Number of finished runs.
        done: usize,
        /// Number of all runs.
        total: usize,
    },
}

/// Conducts studies. Points in the store are not run again, and no point runs twice.
///
/// # Errors
/// See [`Unfinished`].
pub fn conduct(
    studies: &[Study],
    wish: &Wish,
    store: Store,
    observe: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Vec<StudyOutcome>, Unfinished> {
    let mut jobs = Jobs::new();
    let mut needed: Vec<Vec<Needed<'_>>> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for study in studies {
        let mut of_study = needs(study, wish);
        for one in &mut of_study {
            let mut what = one.unknown();
            what.extend(one.plan(wish, &store, &mut jobs).err().unwrap_or_default());
            wrong.extend(what.iter().map(|what| format!("{}: experiment.{}: {what}", study.name, one.name)));
        }
        needed.push(of_study);
        let nowhere = |(name, parameter): (&String, &ParameterFile)| {
            let why = study.experiment[&parameter.experiment].written(&parameter.key).err()?;
            Some(format!("{}: parameter.{name}: key: {why}", study.name))
        };
        wrong.extend(study.parameter.iter().filter_map(nowhere));
    }
    if !wrong.is_empty() {
        return Err(Unfinished::Impossible(wrong.join("\n")));
    }
    let store = work(jobs.into_values().collect(), wish, store, observe)?;
    let outcome = |(study, needed): (&Study, &Vec<Needed<'_>>)| outcome(study, needed, wish, &store);
    Ok(studies.iter().zip(&needed).map(outcome).collect())
}

/// Executes the runs. Each result is stored as soon as its run finishes.
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
        let Some(found) = run_one(job, &stop)? else { return Ok(false) };
        let mut store = kept.lock().unwrap_or_else(PoisonError::into_inner);
        store.keep(&job.world, job.seed, found).map_err(|error| format!("cannot keep a point: {error}"))?;
        Ok(true)
    };
    let results = run_all(jobs, wish.threads, run, observe);
    let flushed = store.lock().unwrap_or_else(PoisonError::into_inner).flush();
    flushed.map_err(|error| Unfinished::Broken(error.to_string()))?;
    let done = results.iter().filter(|result| matches!(result, Some(Ok(true)))).count();
    if let Some(why) = results.into_iter().flatten().find_map(Result::err) {
        return Err(Unfinished::Broken(why));
    }
    if done < total {
        return Err(Unfinished::Stopped { done, total });
    }
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::replace(&mut *store, Store::in_memory()))
}

/// Executes one run; `None` if it was stopped.
fn run_one(job: &Job, stop: &AtomicBool) -> Result<Option<Kept>, String> {
    let series = !job.sketches.is_empty() || job.measures.iter().any(Measure::needs_series);
    let wanted = RunRequest { seed: Some(job.seed), series, stop: Some(stop), ..RunRequest::default() };
    let Some(run) = unless_stopped(simulate(&job.scenario, wanted))? else { return Ok(None) };
    let document = serde_json::to_value(&run.outcome).map_err(|error| error.to_string())?;
    let measured = job.measures.iter().map(|measure| (measure.key(), measure.value(&run, &document)));
    let drawn = job.sketches.iter().map(|sketch| Ok((sketch.key(), sketch.draw(&run.series.flows)?)));
    Ok(Some(Kept { values: measured.collect(), curves: drawn.collect::<Result<_, String>>()? }))
}

fn outcome(study: &Study, needed: &[Needed<'_>], wish: &Wish, store: &Store) -> StudyOutcome {
    let results: BTreeMap<&str, Results> = needed.iter().map(|one| (one.name, fill(one, store))).collect();
    let judged: Vec<(&str, &Claim, Vec<Judged>)> = claims(study, wish)
        .map(|(name, claim)| (name, claim, judge_claim(&claim.ground, &results)))
        .collect();
    let candidates: Vec<Candidate<'_>> = judged
        .iter()
        .filter_map(|(_, claim, judged)| {
            let one = needed_by(claim, needed)?;
            let holds = judged.iter().map(|one| one.verdict == Verdict::Holds).collect();
            Some(Candidate { experiment: one.experiment, grid: &one.grid, holds })
        })
        .collect();
    let joint = JointSetting::of(&candidates);
    let criteria = study.criteria_hash();
    let claim = |(name, claim, judged): (&str, &Claim, Vec<Judged>)| {
        let one = needed_by(claim, needed);
        let chosen = one.map_or(0, |one| joint.choice(one.experiment, &one.grid));
        let rerun = one
            .map(|one| command(one.experiment, Spot { arm: 0, place: 0, choice: 0 }, &one.grid, wish.form));
        let holding: Vec<usize> =
            (0..judged.len()).filter(|choice| judged[*choice].verdict == Verdict::Holds).collect();
        let some = !holding.is_empty() && holding.len() < judged.len();
        ClaimOutcome {
            id: name.to_owned(),
            figure: claim.figure.clone(),
            statement: claim.statement.clone(),
            verdict: judged[0].verdict,
            measured: judged[0].measured.clone(),
            joint_verdict: judged[chosen].verdict,
            choices: Choices { holding: holding.len(), of: judged.len() },
            tolerance: claim.ground.check_text().map(str::to_owned),
            seeds: one.map_or(0, |one| one.grid.seeds.len()),
            holds_for: one.filter(|_| some).map_or_else(Vec::new, |one| names(&holding, &one.grid.choices)),
            measured_where_it_holds: holding
                .first()
                .filter(|first| **first > 0)
                .map(|first| judged[*first].measured.clone()),
            margin: claim.margin.clone(),
            criteria: criteria.clone(),
            stated: stated(claim, &results),
            words: claim.ground.words(),
            note: claim.note.clone(),
            advice: claim.advice.clone(),
            rerun,
        }
    };
    let drawn = Drawn { study, needed, results: &results, store };
    let figure = |(number, figure): (&str, &Figure)| FigureOutcome {
        number: number.to_owned(),
        title: figure.title.clone(),
        charts: drawn.charts(number, figure),
    };
    StudyOutcome {
        name: study.name.clone(),
        title: study.title.clone(),
        citation: study.citation.clone(),
        form: wish.form,
        joint_setting: joint.names(),
        criteria: criteria.clone(),
        claims: conjoined(study, judged.into_iter().map(claim).collect()),
        figures: figures(study, wish).map(figure).collect(),
        parameters: parameters(study),
        open: open(study),
        text: study.text.clone(),
    }
}

/// Contents of the figures of a study.
struct Drawn<'a> {
    study: &'a Study,
    needed: &'a [Needed<'a>],
    results: &'a BTreeMap<&'a str, Results>,
    store: &'a Store,
}

impl Drawn<'_> {
    /// Returns one chart per choice of the open parameters, or one chart of curves over time.
    fn charts(&self, number: &str, figure: &Figure) -> Vec<Chart> {
        let name = figure.experiment.as_str();
        match (&figure.shown, self.results.get(name)) {
            (Shown::OverTime(time), _) => {
                let needed = self.needed.iter().find(|one| one.name == name);
                needed.map(|needed| over_time(number, figure, time, needed, self.store)).into_iter().collect()
            }
            (Shown::Along(lines), Some(results)) => {
                let of = Along { experiment: &self.study.experiment[name], lines, results };
                (0..results.grid.choices.len()).map(|choice| along_axis(number, figure, of, choice)).collect()
            }
            (Shown::Along(_), None) => Vec::new(),
        }
    }
}

/// Sets the verdict of each conjunction to the worst verdict of its parts. Parts that were not requested are left out.
fn conjoined(study: &Study, mut claims: Vec<ClaimOutcome>) -> Vec<ClaimOutcome> {
    for index in 0..claims.len() {
        let Some(Claim { ground: Ground::AllOf(names), .. }) = study.claim.get(&claims[index].id) else {
            continue;
        };
        let parts = names.iter().map(|name| claims.iter().find(|claim| claim.id == *name));
        let Some(parts) = parts.collect::<Option<Vec<&ClaimOutcome>>>() else { continue };
        let verdict = worst(parts.iter().map(|part| part.verdict));
        let joint = worst(parts.iter().map(|part| part.joint_verdict));
        let marked = |part: &&ClaimOutcome| match part.verdict {
            Verdict::Holds => part.id.clone(),
            verdict => format!("{} ({verdict})", part.id),
        };
        let measured = format!("all of {}", parts.iter().map(marked).collect::<Vec<_>>().join(", "));
        claims[index].measured = measured;
        claims[index].verdict = verdict;
        claims[index].joint_verdict = joint;
        claims[index].choices.holding = usize::from(verdict == Verdict::Holds);
    }
    claims
}

/// Returns the numbers of the paper with those of the default configuration.
fn stated(claim: &Claim, results: &BTreeMap<&str, Results>) -> Vec<StatedOutcome> {
    let Ground::Check { experiment: Some(name), .. } = &claim.ground else { return Vec::new() };
    let Some(results) = results.get(name.as_str()) else { return Vec::new() };
    let one = |(what, (paper, expr)): (&String, &(f64, Expr<Measured>))| {
        let values = results.evaluate(expr, At { place: 0, choice: 0 });
        let summary = Summary::of(&values.into_iter().flatten().collect::<Vec<_>>());
        let ci95 = summary.ci95.filter(|_| summary.min != summary.max);
        StatedOutcome { what: what.clone(), paper: *paper, ours: summary.mean, ci95 }
    };
    claim.stated.iter().map(one).collect()
}

/// Returns the sources of parameters, with their values in the default world. [`conduct`] has refused parameters without a value.
fn parameters(study: &Study) -> Vec<ParameterOutcome> {
    let one = |(name, parameter): (&String, &ParameterFile)| ParameterOutcome {
        name: name.clone(),
        value: study.experiment[&parameter.experiment].written(&parameter.key).unwrap_or_default(),
        source: parameter.source.to_string(),
        place: parameter.place.clone().unwrap_or_default(),
    };
    study.parameter.iter().map(one).collect()
}

/// Returns the parameters that the paper leaves open. Parameters with the same name and options count as one.
fn open(study: &Study) -> Vec<OpenOutcome> {
    let mut all: Vec<OpenOutcome> = Vec::new();
    for (experiment, name, options) in study
        .experiment
        .iter()
        .flat_map(|(experiment, one)| one.open.iter().map(move |(name, options)| (experiment, name, options)))
    {
        let options: Vec<String> = options.keys().cloned().collect();
        match all.iter_mut().find(|known| known.name == *name && known.options == options) {
            Some(known) => known.experiments.push(experiment.clone()),
            None => {
                all.push(OpenOutcome { name: name.clone(), options, experiments: vec![experiment.clone()] })
            }
        }
    }
    all
}

/// Returns the experiment that decides a claim.
fn needed_by<'a, 'b>(claim: &Claim, needed: &'b [Needed<'a>]) -> Option<&'b Needed<'a>> {
    let Ground::Check { experiment: Some(name), .. } = &claim.ground else { return None };
    needed.iter().find(|one| one.name == name)
}

/// Judges a claim under every choice; claims without an experiment have one choice.
fn judge_claim(ground: &Ground, results: &BTreeMap<&str, Results>) -> Vec<Judged> {
    match ground {
        Ground::NotTestable(why) => vec![Judged { verdict: Verdict::NotTestable, measured: why.clone() }],
        // The verdict follows from those of the parts.
        Ground::AllOf(names) => {
            vec![Judged { verdict: Verdict::NotTestable, measured: format!("all of {}", names.join(", ")) }]
        }
        Ground::Check { experiment, check, .. } => {
            match experiment.as_deref().and_then(|name| results.get(name)) {
                Some(results) => judge(check, results),
                None => judge(check, &Results::arithmetic()),
            }
        }
    }
}

/// Returns the stored results of an experiment.
fn fill(needed: &Needed<'_>, store: &Store) -> Results {
    let axis = needed.experiment.axis.as_ref().map(|axis| axis.name.clone());
    let mut results = Results::none(needed.grid.clone(), axis);
    for (spot, runs) in &mut results.runs {
        let world = needed.worlds.get(spot).map_or("", String::as_str);
        for (run, seed) in runs.iter_mut().zip(&needed.grid.seeds) {
            *run = store.get(world, *seed).map(|kept| kept.values.clone());
        }
    }
    results
}
