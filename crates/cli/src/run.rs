//! `bentpipe run`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bentpipe_lab::report::{Provenance, RunPage, World};
use bentpipe_lab::{
    File, Place, Simulated, Wanted, check, check_memory, check_only, simulate, table, threads,
};
use bentpipe_scenario::{Scenario, Traffic};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;
use crate::{show, tables};

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
}

/// Runs a scenario once and shows what came out.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut draft = show::draft(&args.world, &args.proxies)?;
    if let Some(cc) = &args.cc {
        draft.set_cc(cc)?;
    }
    let mut scenario = draft.scenario()?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let place = args.pcap_link.clone().map_or(Place::Senders, Place::Link);
    check_memory(&scenario, 1, args.memory).map_err(Failure::Request)?;
    check(&scenario, &place)?;
    check_only(&scenario, &args.trace_only)?;
    refuse_browsers(args, &scenario)?;
    output::note_lacking([&scenario]);
    let files = open([&args.report, &args.pcap, &args.trace, &args.out], &args.trace_only)?;
    let run = work(&scenario, &files, place, NonZeroUsize::new(threads(args.threads)))?;
    if args.json {
        output::print_json(&run.outcome)?;
    } else {
        output::print(&format!("{}\n", table::outcome(&run.outcome, output::look())))?;
    }
    finish(files, &scenario, &run)
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

fn open([report, packets, trace, out]: [&Option<PathBuf>; 4], only: &[String]) -> Result<Files, Failure> {
    output::refuse_twice(&[report.as_ref(), packets.as_ref(), trace.as_ref(), out.as_ref()])?;
    let as_table = trace.as_deref().is_some_and(is_table);
    Ok(Files {
        report: output::open(report.as_ref(), Kind::Report)?,
        packets: output::open(packets.as_ref(), Kind::Packets)?,
        trace: if as_table {
            tables::open(trace.as_ref())?
        } else {
            output::open(trace.as_ref(), Kind::Events)?
        },
        only: only.to_vec(),
        as_table,
        out: tables::open(out.as_ref())?,
    })
}

/// Where a report of `scenario` that `command` made comes from.
pub fn provenance(scenario: &Scenario, command: &str) -> Provenance {
    Provenance {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        toml: scenario.to_toml(),
        command: command.to_owned(),
        version: env!("CARGO_PKG_VERSION").into(),
    }
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
) -> Result<Simulated, Failure> {
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
    let wanted = Wanted {
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

fn finish(files: Files, scenario: &Scenario, run: &Simulated) -> Result<(), Failure> {
    files.packets.map_or(Ok(()), Target::finish)?;
    files.trace.map_or(Ok(()), Target::finish)?;
    if let Some(target) = files.out {
        tables::write_flows(target, scenario, run)?;
    }
    let Some(target) = files.report else { return Ok(()) };
    let (provenance, world) = (provenance(scenario, &output::typed()), world(scenario)?);
    let page = RunPage { provenance: &provenance, world: &world, outcome: &run.outcome, series: &run.series };
    let html = page.render().map_err(|error| Failure::Work(format!("report: {error}")))?;
    target.write(html.as_bytes())
}
