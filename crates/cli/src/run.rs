//! `bentpipe run`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bentpipe_lab::columns::{self, Column};
use bentpipe_lab::report::{Provenance, RunPage, World};
use bentpipe_lab::{
    File, Origin, Place, RunOutput, RunRequest, WithOrigin, check, check_memory, check_only, csv_table,
    simulate, table, threads,
};
use bentpipe_scenario::{Scenario, Traffic};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;
use crate::{origin, show, tables};

/// The files to write.
struct Files {
    report: Option<Target>,
    packets: Option<Target>,
    trace: Option<Target>,
    /// What is kept of the events; all if empty.
    only: Vec<String>,
    /// The trace is to be a Parquet file.
    as_table: bool,
    out: Option<Target>,
    pages: Option<Lines>,
    paths: Option<Lines>,
}

/// A file of lines, and whether it is a table.
type Lines = (Target, bool);

/// Runs a scenario once and shows what came out.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut draft = show::draft(&args.world, &args.proxies)?;
    if let Some(cc) = &args.cc {
        draft.set_cc(cc)?;
    }
    let scenario = draft.scenario_for(args.seed)?;
    let place = args.pcap_link.clone().map_or(Place::Senders, Place::Link);
    check_memory(&scenario, 1, args.memory).map_err(Failure::Request)?;
    check(&scenario, &place)?;
    check_only(&scenario, &args.trace_only)?;
    refuse_browsers(args, &scenario)?;
    output::note_lacking([&scenario]);
    let files = open(args)?;
    let run = work(&scenario, &files, place, NonZeroUsize::new(threads(args.threads)))?;
    let origin = origin::of(draft.files());
    if args.json {
        output::print_json(&WithOrigin { document: &run.outcome, origin: &origin })?;
    } else {
        output::print(&format!("{}\n", table::outcome(&run.outcome, output::look())))?;
    }
    finish(files, (&scenario, &origin), &run)
}

/// A capture tells connections of one flow apart by their order in time; those of a browser run side by side.
fn refuse_browsers(args: &RunArgs, scenario: &Scenario) -> Result<(), Failure> {
    let browser = scenario.flows.iter().find(|flow| matches!(flow.traffic, Traffic::Web(_)));
    match browser.filter(|_| args.pcap.is_some()) {
        Some(flow) => Err(Failure::Request(format!(
            "--pcap: found flow.{} with traffic of kind \"web\", accepted: flows with one connection at a time",
            flow.name
        ))),
        None => Ok(()),
    }
}

/// A file of this name is to hold a table.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet")
}

fn open(args: &RunArgs) -> Result<Files, Failure> {
    let RunArgs { report, pcap, trace, trace_only, out, pages, paths, .. } = args;
    let all = [report, pcap, trace, out, pages, paths];
    output::refuse_twice(&all.map(Option::as_ref))?;
    let as_table = trace.as_deref().is_some_and(is_table);
    Ok(Files {
        report: output::open(report.as_ref(), Kind::Report)?,
        packets: output::open(pcap.as_ref(), Kind::Packets)?,
        trace: if as_table {
            tables::open(trace.as_ref())?
        } else {
            output::open(trace.as_ref(), Kind::Events)?
        },
        only: trace_only.clone(),
        as_table,
        out: tables::open(out.as_ref())?,
        pages: open_lines(pages.as_ref())?,
        paths: open_lines(paths.as_ref())?,
    })
}

fn open_lines(path: Option<&PathBuf>) -> Result<Option<Lines>, Failure> {
    let as_table = path.is_some_and(|path| is_table(path));
    let target = if as_table { tables::open(path)? } else { output::open(path, Kind::Lines)? };
    Ok(target.map(|target| (target, as_table)))
}

fn write_lines(
    (target, as_table): Lines,
    of: (&Scenario, &Origin),
    lines: Vec<Column>,
) -> Result<(), Failure> {
    if as_table {
        return tables::write_columns(target, of, lines);
    }
    let mut bytes = Vec::new();
    csv_table::write_columns(&lines, &mut bytes).map_err(|error| Failure::Work(error.to_string()))?;
    target.write(&bytes)
}

/// How a result was made.
#[derive(Clone, Copy)]
pub struct Made<'a> {
    /// The command that makes it again.
    pub command: &'a str,
    /// Build and input files.
    pub origin: &'a Origin,
}

/// What a report shows of `scenario`.
pub fn world(scenario: &Scenario) -> Result<World, Failure> {
    World::of(scenario).map_err(|error| Failure::Work(format!("report: {error}")))
}

fn work(
    scenario: &Scenario,
    files: &Files,
    place: Place,
    threads: Option<NonZeroUsize>,
) -> Result<RunOutput, Failure> {
    let interrupt = Interrupt::listen()?;
    let writer = |target: &Option<Target>| {
        target.as_ref().map(|target| Ok::<_, Failure>(Box::new(target.writer()?) as File)).transpose()
    };
    let mut events = None;
    let mut trace = None;
    if let Some(file) = files.trace.as_ref().filter(|_| files.as_table) {
        events = Some(tables::begin(scenario, file)?);
    } else if let Some(file) = &files.trace {
        trace = Some(file.events()?);
    }
    let progress = Bar::of_time(scenario.duration.as_secs_f64());
    let wanted = RunRequest {
        seed: None,
        series: files.report.is_some(),
        trace,
        only: &files.only,
        packets: writer(&files.packets)?.map(|file| (file, place)),
        observer: events.as_mut().map(|events| events as _),
        threads,
        stop: Some(interrupt.flag()),
        progress: Some(&progress),
    };
    let run = simulate(scenario, wanted)?;
    events.map_or(Ok(()), tables::finish)?;
    Ok(run)
}

fn finish(files: Files, (scenario, origin): (&Scenario, &Origin), run: &RunOutput) -> Result<(), Failure> {
    files.packets.map_or(Ok(()), Target::finish)?;
    files.trace.map_or(Ok(()), Target::finish)?;
    if let Some(target) = files.out {
        tables::write_flows(target, (scenario, origin), run)?;
    }
    if let Some(file) = files.pages {
        write_lines(file, (scenario, origin), columns::pages(&run.outcome))?;
    }
    if let Some(file) = files.paths {
        let paths = columns::paths(scenario).map_err(|error| Failure::Work(format!("paths: {error}")))?;
        write_lines(file, (scenario, origin), paths)?;
    }
    let Some(target) = files.report else { return Ok(()) };
    let (provenance, world) = (Provenance::of(scenario, &output::typed(), origin), world(scenario)?);
    let page = RunPage { provenance: &provenance, world: &world, outcome: &run.outcome, series: &run.series };
    let html = page.render().map_err(|error| Failure::Work(format!("report: {error}")))?;
    target.write(html.as_bytes())
}
