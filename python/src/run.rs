//! `run`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use bentpipe_cli::embed::{self, Growing, Made};
use bentpipe_lab::columns::{self, Part};
use bentpipe_lab::table::{Look, outcome};
use bentpipe_lab::{
    Names, Origin, Place, RunError, RunOutput, RunRequest, WithOrigin, check, check_memory, check_only,
    lacking, simulate,
};
use bentpipe_outcome::Observer;
use bentpipe_scenario::Scenario;
use bentpipe_table::{Kind, RecordBatch, SchemaRef, Trace, TraceError, batch};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::fault;
use crate::scenario::PyScenario;
use crate::table::PyTable;
use crate::watch::Watcher;

/// Result of a run.
#[pyclass(frozen, name = "Run", module = "bentpipe")]
pub struct PyRun {
    scenario: Scenario,
    origin: Origin,
    run: RunOutput,
    trace: Option<(SchemaRef, Vec<RecordBatch>)>,
    lacking: Vec<String>,
}

/// Files that a run writes.
#[derive(Default)]
struct Files {
    pcap: Option<(Growing, Place)>,
    trace: Option<(Growing, bool)>,
    report: Option<PathBuf>,
    out: Option<PathBuf>,
}

fn files(options: &Bound<'_, PyDict>) -> PyResult<Files> {
    let path = |key: &str| options.get_item(key)?.map(|path| path.extract::<PathBuf>()).transpose();
    let link = options.get_item("pcap_link")?.map(|link| link.extract::<String>()).transpose()?;
    let place = link.map_or(Place::Senders, Place::Link);
    let pcap = path("pcap")?.map(|path| Growing::packets(&path).map(|file| (file, place))).transpose();
    let trace = path("trace_file")?.map(|path| Growing::events(&path)).transpose();
    Ok(Files {
        pcap: pcap.map_err(fault::of_command)?,
        trace: trace.map_err(fault::of_command)?,
        report: path("report")?,
        out: path("out")?,
    })
}

/// Runs a scenario once. `options` are paths of output files, keyed by name; `bentpipe.run` documents
/// them.
#[pyfunction]
#[pyo3(signature = (scenario, seed, trace, options, memory, progress))]
#[expect(clippy::too_many_arguments, reason = "the parameters of bentpipe.run")]
pub fn run(
    py: Python<'_>,
    scenario: &PyScenario,
    seed: Option<u64>,
    trace: Option<Vec<String>>,
    options: &Bound<'_, PyDict>,
    memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyRun> {
    let draft = &scenario.draft;
    let scenario = draft.scenario_for(seed).map_err(fault::request)?;
    let origin = embed::origin(draft.files());
    check_memory(&scenario, 1, memory).map_err(fault::request)?;
    check(&scenario, &Place::Senders).map_err(fault::of_run)?;
    let only = trace.clone().unwrap_or_default();
    check_only(&scenario, &only).map_err(fault::of_run)?;
    let files = files(options)?;
    if let Some((_, place)) = &files.pcap {
        check(&scenario, place).map_err(fault::of_run)?;
    }
    let watcher = Watcher::new(progress);
    let lacking = lacking(&scenario);
    let done = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            work((&scenario, &origin), trace.is_some().then_some(&only), files, &watcher)
        }))
        .unwrap_or_else(|panic| Err(fault::of_panic(panic)))
    });
    if let Some(error) = watcher.error() {
        return Err(error);
    }
    let (run, trace) = done?;
    Ok(PyRun { scenario, origin, run, trace, lacking })
}

type Done = (RunOutput, Option<(SchemaRef, Vec<RecordBatch>)>);

fn work(
    of @ (scenario, origin): (&Scenario, &Origin),
    only: Option<&Vec<String>>,
    files: Files,
    watcher: &Watcher,
) -> PyResult<Done> {
    let names = Names::of(scenario).map_err(|error| fault::of_run(error.into()))?;
    let mut memory = only.map(|_| Trace::in_memory(&names));
    let (mut table, mut lines) = (None, None);
    if let Some((file, as_table)) = &files.trace {
        match as_table {
            true => {
                let out = file.writer().map_err(fault::of_command)?;
                table = Some(Trace::in_file(&names, out).map_err(fault::work)?);
            }
            false => lines = Some(file.events_writer().map_err(fault::of_command)?),
        }
    }
    let total = scenario.duration.as_secs_f64();
    let look = |done: f64| watcher.look(done, total);
    let mut observers = (memory.as_mut(), table.as_mut());
    let observed = observers.0.is_some() || observers.1.is_some();
    let packets = files
        .pcap
        .as_ref()
        .map(|(file, place)| Ok::<_, PyErr>((file.writer().map_err(fault::of_command)?, place.clone())));
    let wanted = RunRequest {
        series: files.report.is_some(),
        trace: lines,
        only: only.map_or(&[], Vec::as_slice),
        packets: packets.transpose()?,
        observer: observed.then_some(&mut observers as &mut dyn Observer),
        stop: Some(&watcher.stop),
        progress: Some(&look),
        ..RunRequest::default()
    };
    let run = simulate(scenario, wanted).map_err(fault::of_run)?;
    let unwritten = |error: TraceError| match error {
        TraceError::Unwritten(error) => fault::of_run(RunError::Unwritten(error)),
        TraceError::TooMany => fault::request(error),
    };
    table.map(Trace::finish).transpose().map_err(unwritten)?;
    let trace = memory.map(Trace::finish).transpose().map_err(unwritten)?;
    let mut files_finished =
        files.trace.map(|(file, _)| file).into_iter().chain(files.pcap.map(|(file, _)| file));
    files_finished.try_for_each(Growing::finish).map_err(fault::of_command)?;
    if let Some(path) = files.report {
        embed::write_run(&path, scenario, &run, Made { command: "bentpipe.run(...) in Python", origin })
            .map_err(fault::of_command)?;
    }
    if let Some(path) = files.out {
        embed::write_table(&path, &part(of, &run, Part::Flows)).map_err(fault::of_command)?;
    }
    Ok((run, trace))
}

fn part(of: (&Scenario, &Origin), run: &RunOutput, part: Part) -> RecordBatch {
    batch(Kind::Run, columns::outcome(&run.outcome, part), &embed::metadata(of))
}

impl PyRun {
    fn part(&self, part: Part) -> PyTable {
        PyTable::of(self::part((&self.scenario, &self.origin), &self.run, part))
    }
}

#[pymethods]
impl PyRun {
    /// Returns the document of `bentpipe run --json`.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&WithOrigin { document: &self.run.outcome, origin: &self.origin })
            .map_err(fault::work)
    }

    #[getter]
    fn flows(&self) -> PyTable {
        self.part(Part::Flows)
    }

    #[getter]
    fn links(&self) -> PyTable {
        self.part(Part::Links)
    }

    #[getter]
    fn media(&self) -> PyTable {
        self.part(Part::Media)
    }

    #[getter]
    fn nodes(&self) -> PyTable {
        self.part(Part::Nodes)
    }

    #[getter]
    fn trace(&self) -> Option<PyTable> {
        self.trace.as_ref().map(|(schema, batches)| PyTable::new(schema.clone(), batches.clone()))
    }

    #[getter]
    fn scenario(&self) -> String {
        self.scenario.name.clone()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    #[getter]
    fn version(&self) -> &'static str {
        self.run.outcome.version
    }

    #[getter]
    fn toml(&self) -> String {
        self.scenario.to_toml()
    }

    #[getter]
    fn goodput_bps(&self) -> f64 {
        self.run.outcome.totals.goodput_bps
    }

    /// Returns the requirements that algorithms miss in this scenario, as sentences.
    #[getter]
    fn lacking<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.lacking)
    }

    fn __str__(&self) -> String {
        outcome(&self.run.outcome, Look::default())
    }
}
