//! `bentpipe compare`.

use bentpipe_lab::report::{ComparePage, Example, Provenance};
use bentpipe_lab::{
    Cell, Comparison, Measured, Origin, Plan, Prepared, RunRequest, Setting, Wish, WithOrigin, Workers,
    csv_table, most_telling, most_telling_scenario, run_all, simulate, table, threads, unless_stopped,
};
use bentpipe_scenario::Scenario;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;
use crate::run::Made;
use crate::tables::{self, Keeper};
use crate::{origin, run, show};

/// The runs, and where their results go.
struct Work {
    prepared: Prepared,
    keeper: Option<Keeper>,
    csv: Option<Target>,
    /// What its columns mean.
    legend: Option<Target>,
    out: Option<Target>,
    report: Option<Target>,
    threads: usize,
    origin: Origin,
}

/// Compares and shows.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let mut prepared = prepare(args)?;
    let interrupt = Interrupt::listen()?;
    let (comparison, failed) = work(&mut prepared, &interrupt)?;
    if args.json {
        output::print_json(&WithOrigin { document: &comparison, origin: &prepared.origin })?;
    } else if !comparison.rows.is_empty() {
        output::print(&format!("{}\n", table::comparison(&comparison, output::look())))?;
    }
    let total = prepared.prepared.plan.points().len();
    let done: usize = comparison.rows.iter().map(|row| row.samples.len()).sum();
    if done > 0 {
        write_files(prepared, &comparison, &interrupt)?;
    }
    match (comparison.complete, failed) {
        (true, _) => Ok(()),
        (false, Some(failed)) => Err(Failure::Work(format!("{done} of {total} runs finished. {failed}"))),
        (false, None) => Err(Failure::Work(format!("stopped: {done} of {total} runs finished and are kept"))),
    }
}

fn prepare(args: &CompareArgs) -> Result<Work, Failure> {
    output::refuse_twice(&[args.csv.as_ref(), args.out.as_ref(), args.report.as_ref()])?;
    let threads = threads(args.jobs);
    let wish = Wish {
        draft: show::draft(&args.world, &args.proxies)?,
        set: args.world.set.iter().map(|setting| setting.key.clone()).collect(),
        cc: args.cc.clone(),
        baseline: args.baseline.clone(),
        vary: args.vary.clone(),
        seed: args.seed,
        seeds: args.seeds,
        threads,
        memory: args.memory,
    };
    let prepared = wish.prepare().map_err(Failure::Request)?;
    output::note_lacking(&prepared.scenarios);
    let keeper = args.keep.as_deref().map(|folder| tables::keeper(folder, &prepared)).transpose()?;
    let csv = output::open(args.csv.as_ref(), Kind::Runs)?;
    // What the columns mean stands beside a file, not beside a pipe.
    let beside = args.csv.as_ref().filter(|_| matches!(csv, Some(Target::Beside(..))));
    let legend = beside.map(|path| path.with_extension("columns.csv"));
    Ok(Work {
        origin: origin::of(wish.draft.files()),
        keeper,
        csv,
        legend: output::open(legend.as_ref(), Kind::Columns)?,
        out: tables::open(args.out.as_ref())?,
        report: output::open(args.report.as_ref(), Kind::Report)?,
        prepared,
        threads,
    })
}

/// The comparison, and why the first of the failed runs failed.
fn work(prepared: &mut Work, interrupt: &Interrupt) -> Result<(Comparison, Option<String>), Failure> {
    let bar = Bar::new("Comparing", interrupt);
    let keeper = prepared.keeper.take();
    let workers = Workers { threads: prepared.threads, stop: interrupt.shared() };
    let (prepared, observe) = (&prepared.prepared, |progress| bar.observe(progress));
    let measured = match keeper {
        Some(keeper) => tables::measure(prepared, keeper, &workers, observe),
        None => Ok(prepared.measure(prepared.plan.points(), &workers, |_, _| Ok(()), observe)),
    };
    drop(bar);
    let Measured { done, failed } = measured?;
    let failed =
        failed.map(|(point, why)| format!("{why}\nIt fails again with: {}", prepared.replay(&point)));
    Ok((Comparison::new(&prepared.plan, done), failed))
}

fn write_files(work: Work, comparison: &Comparison, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(target) = work.csv {
        let mut bytes = Vec::new();
        csv_table::write((comparison, &work.origin), &mut bytes)
            .map_err(|error| Failure::Work(error.to_string()))?;
        target.write(&bytes)?;
    }
    if let Some(target) = work.legend {
        let mut bytes = Vec::new();
        csv_table::write_legend(comparison, &mut bytes).map_err(|error| Failure::Work(error.to_string()))?;
        target.write(&bytes)?;
    }
    if let Some(target) = work.out {
        tables::write_runs(target, (&work.prepared.base, &work.origin), comparison)?;
    }
    if let Some(target) = work.report {
        let made = Made { command: &output::typed(), origin: &work.origin };
        let html = page(work.prepared, Shown { comparison, threads: work.threads, made }, interrupt)?;
        target.write(html.as_bytes())?;
    }
    Ok(())
}

/// Contents of a report on a comparison.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Threads for the examples.
    pub threads: usize,
    /// How it was made.
    pub made: Made<'a>,
}

/// The report of a comparison.
pub fn page(prepared: Prepared, shown: Shown<'_>, interrupt: &Interrupt) -> Result<String, Failure> {
    let Prepared { plan, scenarios, base } = prepared;
    let comparison = shown.comparison;
    let world = run::world(most_telling_scenario(&plan, &scenarios, comparison).unwrap_or(&base))?;
    let examples = examples(&plan, scenarios, shown, interrupt);
    let provenance = Provenance::of(&base, shown.made.command, shown.made.origin);
    let page = ComparePage { provenance: &provenance, world: &world, comparison, examples: &examples };
    page.render().map_err(|error| Failure::Work(format!("report: {error}")))
}

/// One run of each algorithm over time, where the algorithms differ most.
fn examples(plan: &Plan, scenarios: Vec<Scenario>, shown: Shown<'_>, interrupt: &Interrupt) -> Vec<Example> {
    let Shown { comparison, threads, .. } = shown;
    let Some(vary) = most_telling(comparison).map(<[Setting]>::to_vec).filter(|_| !interrupt.wanted()) else {
        return Vec::new();
    };
    let cells = plan.cells().into_iter().zip(scenarios).filter(|(cell, _)| cell.vary == vary).collect();
    let seed = plan.first_seed;
    let stop = interrupt.clone();
    let run = move |(cell, scenario): &(Cell, Scenario)| {
        let wanted =
            RunRequest { seed: Some(seed), series: true, stop: Some(stop.flag()), ..RunRequest::default() };
        let (cc, vary) = (cell.cc.clone(), cell.vary.clone());
        unless_stopped(simulate(scenario, wanted))
            .map(|run| run.map(|run| Example { cc, vary, seed, series: run.series }))
    };
    let bar = Bar::new("Examples ", interrupt);
    run_all(cells, threads, run, |progress| bar.observe(progress))
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .collect()
}
