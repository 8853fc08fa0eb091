//! `bentpipe run`.

use std::path::PathBuf;

use bentpipe_lab::report::{Provenance, RunPage, World};
use bentpipe_lab::{File, Place, Simulated, Wanted, check, check_only, simulate, table};
use bentpipe_scenario::{Scenario, Traffic};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;
use crate::{memory, show};

/// The files to write.
struct Files {
    report: Option<Target>,
    packets: Option<Target>,
    trace: Option<Target>,
    /// What is kept of the events; all if empty.
    only: Vec<String>,
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
    memory::check(&scenario, 1, args.memory)?;
    check(&scenario, &place)?;
    check_only(&scenario, &args.trace_only)?;
    refuse_browsers(args, &scenario)?;
    output::note_lacking([&scenario]);
    let files = open([&args.report, &args.pcap, &args.trace], &args.trace_only)?;
    let run = work(&scenario, &files, place)?;
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

fn open([report, packets, trace]: [&Option<PathBuf>; 3], only: &[String]) -> Result<Files, Failure> {
    output::refuse_twice(&[report.as_ref(), packets.as_ref(), trace.as_ref()])?;
    Ok(Files {
        report: output::open(report.as_ref(), Kind::Report)?,
        packets: output::open(packets.as_ref(), Kind::Packets)?,
        trace: output::open(trace.as_ref(), Kind::Events)?,
        only: only.to_vec(),
    })
}

/// Where a report of `scenario` comes from.
pub fn provenance(scenario: &Scenario) -> Provenance {
    Provenance {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        toml: scenario.to_toml(),
        command: output::typed(),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

/// What a report shows of `scenario`.
pub fn world(scenario: &Scenario) -> Result<World, Failure> {
    World::of(scenario).map_err(|error| Failure::Work(format!("report: {error}")))
}

fn work(scenario: &Scenario, files: &Files, place: Place) -> Result<Simulated, Failure> {
    let interrupt = Interrupt::listen()?;
    let writer = |target: &Option<Target>| {
        target.as_ref().map(|target| Ok::<_, Failure>(Box::new(target.writer()?) as File)).transpose()
    };
    let progress = Bar::of_time(scenario.duration.as_secs_f64());
    let wanted = Wanted {
        seed: None,
        series: files.report.is_some(),
        trace: files.trace.as_ref().map(Target::events).transpose()?,
        only: &files.only,
        packets: writer(&files.packets)?.map(|file| (file, place)),
        stop: Some(interrupt.flag()),
        progress: Some(&progress),
    };
    Ok(simulate(scenario, wanted)?)
}

fn finish(files: Files, scenario: &Scenario, run: &Simulated) -> Result<(), Failure> {
    files.packets.map_or(Ok(()), Target::finish)?;
    files.trace.map_or(Ok(()), Target::finish)?;
    let Some(target) = files.report else { return Ok(()) };
    let (provenance, world) = (provenance(scenario), world(scenario)?);
    let page = RunPage { provenance: &provenance, world: &world, outcome: &run.outcome, series: &run.series };
    let html = page.render().map_err(|error| Failure::Work(format!("report: {error}")))?;
    target.write(html.as_bytes())
}
