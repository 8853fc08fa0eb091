//! `bentpipe compare`.

use bentpipe_lab::report::{ComparePage, Example};
use bentpipe_lab::{
    Cell, Comparison, Metric, Place, Plan, Point, Sample, Setting, Simulated, Unsimulated, Wanted, check,
    csv_table, most_telling, run_all, simulate, table, threads,
};
use bentpipe_scenario::{Draft, Scenario, own_algorithms};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;
use crate::{memory, run, show};

/// Everything that was worked out before the work.
struct Prepared {
    plan: Plan,
    /// One scenario for each cell of the plan.
    scenarios: Vec<Scenario>,
    csv: Option<Target>,
    report: Option<Target>,
    threads: usize,
    /// The scenario before anything varies.
    base: Scenario,
}

/// Compares and shows.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let prepared = prepare(args)?;
    let interrupt = Interrupt::listen()?;
    let (comparison, failed) = work(&prepared, &interrupt);
    if args.json {
        output::print_json(&comparison)?;
    } else if !comparison.rows.is_empty() {
        output::print(&format!("{}\n", table::comparison(&comparison, output::look())))?;
    }
    let total = prepared.plan.points().len();
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

fn prepare(args: &CompareArgs) -> Result<Prepared, Failure> {
    output::refuse_twice(&[args.csv.as_ref(), args.report.as_ref()])?;
    let draft = show::draft(&args.world, &args.proxies)?;
    let base = draft.scenario()?;
    let plan = Plan {
        scenario: base.name.clone(),
        algorithms: algorithms(&args.cc)?,
        vary: args.vary.clone(),
        first_seed: args.seed.unwrap_or(base.seed),
        seeds: args.seeds,
        measures: Metric::of_scenario(&base),
    };
    refuse_repeated_keys(args)?;
    let threads = threads(args.jobs);
    refuse_too_many(&plan)?;
    let at_once = threads.min(plan.points().len());
    let scenarios: Vec<Scenario> = plan
        .cells()
        .iter()
        .map(|cell| {
            let scenario = scenario(&draft, cell)?;
            memory::check(&scenario, at_once, args.memory)?;
            check(&scenario, &Place::Senders)?;
            Ok::<_, Failure>(scenario)
        })
        .collect::<Result<_, _>>()?;
    output::note_lacking(&scenarios);
    let (csv, report) =
        (output::open(args.csv.as_ref(), Kind::Runs)?, output::open(args.report.as_ref(), Kind::Report)?);
    Ok(Prepared { plan, scenarios, csv, report, threads, base })
}

/// What stands in place of an algorithm where every flow keeps that of the scenario.
const OWN: &str = "as-it-is";

/// More runs than this nobody waits for, and the results of each are kept.
const MOST_RUNS: usize = 1_000_000;

fn refuse_too_many(plan: &Plan) -> Result<(), Failure> {
    let cells =
        plan.vary.iter().fold(plan.algorithms.len(), |cells, vary| cells.saturating_mul(vary.values.len()));
    match cells.saturating_mul(plan.seeds as usize) {
        runs if runs > MOST_RUNS => {
            let seeds = plan.seeds;
            Err(Failure::Request(format!(
                "found {cells} points with {seeds} seeds, accepted: at most {MOST_RUNS} runs in all"
            )))
        }
        _ => Ok(()),
    }
}

/// `all` is every registered algorithm, and those of the program; nothing is compared with itself.
fn algorithms(names: &[String]) -> Result<Vec<String>, Failure> {
    if names.is_empty() {
        return Ok(vec![OWN.to_owned()]);
    }
    let twice =
        |(index, name): &(usize, &String)| names[..*index].iter().any(|other| other.trim() == name.trim());
    if let Some((_, name)) = names.iter().enumerate().find(twice) {
        return Err(Failure::Request(format!("--cc: found {name} twice, accepted: each algorithm once")));
    }
    let expand = |name: &String| match name.trim() {
        "all" => {
            let registered = bentpipe_cc::REGISTRY.iter().map(|entry| entry.name);
            registered.chain(own_algorithms().iter().map(|own| own.name)).map(str::to_owned).collect()
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

fn refuse_repeated_keys(args: &CompareArgs) -> Result<(), Failure> {
    for (index, vary) in args.vary.iter().enumerate() {
        let set = args.world.set.iter().any(|setting| setting.key == vary.key);
        if set || args.vary[..index].iter().any(|other| other.key == vary.key) {
            let key = &vary.key;
            return Err(Failure::Request(format!("{key} is given twice; name all its values in one --vary")));
        }
    }
    Ok(())
}

fn scenario(draft: &Draft, cell: &Cell) -> Result<Scenario, Failure> {
    let mut draft = draft.clone();
    if cell.cc != OWN {
        draft.set_cc(&cell.cc)?;
    }
    for setting in &cell.vary {
        draft.set(&setting.to_string())?;
    }
    Ok(draft.scenario()?)
}

/// The comparison, and why the first of the failed runs failed.
fn work(prepared: &Prepared, interrupt: &Interrupt) -> (Comparison, Option<String>) {
    let (points, scenarios) = (prepared.plan.points(), prepared.scenarios.clone());
    let stop = interrupt.clone();
    let run = move |point: &Point| {
        let wanted = Wanted { seed: Some(point.seed), stop: Some(stop.flag()), ..Wanted::default() };
        let scenario = &scenarios[point.cell];
        run_one(scenario, wanted).map(|run| run.map(|run| Sample::of(&run.outcome, &scenario.flows)))
    };
    let bar = Bar::new("Comparing", interrupt);
    let results = run_all(points.clone(), prepared.threads, run, |progress| bar.observe(progress));
    drop(bar);
    let mut failed = None;
    let mut done = Vec::new();
    for (point, result) in points.into_iter().zip(results) {
        match result {
            Some(Ok(Some(sample))) => done.push((point, sample)),
            Some(Err(why)) if failed.is_none() => failed = Some(replay(prepared, &point, &why)),
            _ => {}
        }
    }
    (Comparison::new(&prepared.plan, done), failed)
}

/// `None` if it was stopped.
fn run_one(scenario: &Scenario, wanted: Wanted<'_>) -> Result<Option<Simulated>, String> {
    match simulate(scenario, wanted) {
        Ok(run) => Ok(Some(run)),
        Err(Unsimulated::Stopped) => Ok(None),
        Err(Unsimulated::Impossible(why)) => Err(why),
        Err(Unsimulated::Unwritten(error)) => Err(error.to_string()),
    }
}

/// What failed and the command that shows it again.
fn replay(prepared: &Prepared, point: &Point, why: &str) -> String {
    let cell = &prepared.plan.cells()[point.cell];
    let sets = cell.vary.iter().map(|setting| format!(" --set '{setting}'")).collect::<String>();
    let scenario = &prepared.plan.scenario;
    let cc = if cell.cc == OWN { String::new() } else { format!(" --cc {}", cell.cc) };
    format!("{why}\nIt fails again with: bentpipe run {scenario}{cc} --seed {}{sets}", point.seed)
}

fn write_files(prepared: Prepared, comparison: &Comparison, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(target) = prepared.csv {
        let mut bytes = Vec::new();
        csv_table::write(comparison, &mut bytes).map_err(|error| Failure::Work(error.to_string()))?;
        target.write(&bytes)?;
    }
    if let Some(target) = prepared.report {
        let world =
            run::world(drawn((&prepared.plan, &prepared.scenarios), comparison).unwrap_or(&prepared.base))?;
        let examples =
            examples(&prepared.plan, prepared.scenarios, (comparison, prepared.threads, interrupt));
        let provenance = run::provenance(&prepared.base);
        let page = ComparePage { provenance: &provenance, world: &world, comparison, examples: &examples };
        let html = page.render().map_err(|error| Failure::Work(format!("report: {error}")))?;
        target.write(html.as_bytes())?;
    }
    Ok(())
}

/// The scenario that the report draws: where the algorithms differ most.
fn drawn<'a>((plan, scenarios): (&Plan, &'a [Scenario]), comparison: &Comparison) -> Option<&'a Scenario> {
    let vary = most_telling(comparison)?;
    plan.cells().into_iter().zip(scenarios).find(|(cell, _)| cell.vary == vary).map(|(_, scenario)| scenario)
}

/// One run of each algorithm over time, where the algorithms differ most.
fn examples(plan: &Plan, scenarios: Vec<Scenario>, of: (&Comparison, usize, &Interrupt)) -> Vec<Example> {
    let (comparison, threads, interrupt) = of;
    let Some(vary) = most_telling(comparison).map(<[Setting]>::to_vec).filter(|_| !interrupt.wanted()) else {
        return Vec::new();
    };
    let cells = plan.cells().into_iter().zip(scenarios).filter(|(cell, _)| cell.vary == vary).collect();
    let seed = plan.first_seed;
    let stop = interrupt.clone();
    let run = move |(cell, scenario): &(Cell, Scenario)| {
        let wanted = Wanted { seed: Some(seed), series: true, stop: Some(stop.flag()), ..Wanted::default() };
        let (cc, vary) = (cell.cc.clone(), cell.vary.clone());
        run_one(scenario, wanted).map(|run| run.map(|run| Example { cc, vary, seed, series: run.series }))
    };
    let bar = Bar::new("Examples ", interrupt);
    run_all(cells, threads, run, |progress| bar.observe(progress))
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .collect()
}
