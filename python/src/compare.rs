//! `compare`, as a whole or in parts.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_cli::embed::{self, Made, Shown};
use bentpipe_lab::table::{Look, comparison as as_text};
use bentpipe_lab::{
    Comparison, Measured, Origin, Point, Prepared, Sample, Vary, Wish, WithOrigin, Workers, columns, lacking,
    threads,
};
use bentpipe_table::{Keeper, Kept, Kind, RecordBatch, batch, decode, encode, from_bytes, measure, to_bytes};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault;
use crate::scenario::{PyScenario, typed};
use crate::table::PyTable;
use crate::watch::Watcher;

/// A comparison that is planned and checked, but not yet run.
#[pyclass(frozen, name = "Sweep", module = "bentpipe")]
pub struct PySweep {
    prepared: Prepared,
    origin: Origin,
    threads: usize,
    keeper: Mutex<Option<Keeper>>,
}

/// Maximum number of threads, above the cores of any machine.
const MOST_JOBS: usize = 4096;

/// Returns the number of threads for `jobs`.
pub fn jobs(jobs: Option<usize>) -> PyResult<usize> {
    let wrong = |found| fault::request(format!("jobs: found {found}, accepted: 1 to {MOST_JOBS}"));
    let jobs =
        jobs.map(|jobs| NonZeroUsize::new(jobs).filter(|n| n.get() <= MOST_JOBS).ok_or_else(|| wrong(jobs)));
    Ok(threads(jobs.transpose()?))
}

fn vary(all: Vec<(String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Vec<Vary>> {
    let one = |(key, values): (String, Vec<Bound<'_, PyAny>>)| {
        let values = values.iter().map(|value| typed(&key, value)).collect::<PyResult<_>>()?;
        Vary::new(key, values).map_err(fault::request)
    };
    all.into_iter().map(one).collect()
}

#[pymethods]
impl PySweep {
    #[new]
    #[pyo3(signature = (scenario, cc, vary, seeds, seed, jobs, memory, keep))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of bentpipe.compare")]
    fn new(
        scenario: &PyScenario,
        cc: Vec<String>,
        vary: Vec<(String, Vec<Bound<'_, PyAny>>)>,
        seeds: u32,
        seed: Option<u64>,
        jobs: Option<usize>,
        memory: Option<u64>,
        keep: Option<PathBuf>,
    ) -> PyResult<Self> {
        if !(1..=1_000_000).contains(&seeds) {
            return Err(fault::request(format!("seeds: found {seeds}, accepted: 1 to 1000000")));
        }
        let threads = self::jobs(jobs)?;
        let (draft, set) = (scenario.draft.clone(), scenario.set.clone());
        let wish =
            Wish { draft, set, cc, baseline: None, vary: self::vary(vary)?, seed, seeds, threads, memory };
        let prepared = wish.prepare().map_err(fault::request)?;
        let origin = embed::origin(wish.draft.files());
        let keeper =
            keep.map(|folder| Keeper::open(&folder, &prepared)).transpose().map_err(fault::request)?;
        Ok(Self { prepared, origin, threads, keeper: Mutex::new(keeper) })
    }

    /// Returns the number of all runs.
    #[getter]
    fn total(&self) -> usize {
        self.prepared.plan.points().len()
    }

    /// Returns the indices of the runs that are not in the store.
    fn missing(&self) -> Vec<usize> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |point: &Point| keeper.as_ref().is_some_and(|keeper| keeper.known(point).is_some());
        let points = self.prepared.plan.points();
        points.iter().enumerate().filter(|(_, point)| !is_known(point)).map(|(index, _)| index).collect()
    }

    /// Returns the requirements that algorithms miss in these scenarios, each sentence once.
    #[getter]
    fn lacking(&self) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for sentence in self.prepared.scenarios.iter().flat_map(lacking) {
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
        said
    }

    /// Executes all runs on threads of this process. Returns the result, and the reason if it stopped early.
    #[pyo3(signature = (progress=None))]
    fn measure(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PyComparison, Option<Py<PyAny>>)> {
        let watcher = Watcher::new(progress);
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        let measured = py.detach(|| {
            let workers = Workers { threads: self.threads, stop: Arc::clone(&watcher.stop) };
            measure(&self.prepared, keeper, &workers, |progress| watcher.observe(progress))
        });
        let Measured { done, failed } = measured.map_err(fault::work)?;
        let stopped = watcher.error().map(|error| error.into_value(py).into_any());
        let failed = failed
            .map(|(point, why)| format!("{why}\nIt fails again with: {}", self.prepared.replay(&point)));
        Ok((self.comparison(done, failed), stopped))
    }

    /// Executes some runs sequentially, and returns them as an Arrow stream for [`PySweep::gather`].
    fn measure_part<'py>(&self, py: Python<'py>, indices: Vec<usize>) -> PyResult<Bound<'py, PyBytes>> {
        let points = self.prepared.plan.points();
        let wrong =
            || fault::request(format!("points: found an index beyond {}, accepted: less", points.len()));
        let chosen: Option<Vec<Point>> = indices.iter().map(|index| points.get(*index).cloned()).collect();
        let chosen = chosen.ok_or_else(wrong)?;
        let watcher = Watcher::new(None);
        let measured = py.detach(|| {
            let workers = Workers { threads: 1, stop: Arc::clone(&watcher.stop) };
            self.prepared.measure(chosen, &workers, |_, _| Ok(()), |progress| watcher.observe(progress))
        });
        if let Some(error) = watcher.error() {
            return Err(error);
        }
        if let Some((point, why)) = measured.failed {
            return Err(fault::work(format!("{why}\nIt fails again with: {}", self.prepared.replay(&point))));
        }
        let entry = |(point, sample): (Point, Sample)| {
            let kept = Kept { values: sample.quantities().collect(), ..Kept::default() };
            ((point.cell.to_string(), point.seed), kept)
        };
        let bytes = to_bytes(&encode(&measured.done.into_iter().map(entry).collect::<Vec<_>>()))
            .map_err(fault::work)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Stores the runs of a part, if there is a store.
    fn keep_part(&self, part: &[u8]) -> PyResult<()> {
        let runs = self.runs(part)?;
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keeper) = keeper.as_ref() else { return Ok(()) };
        runs.iter().try_for_each(|(point, sample)| keeper.keep(point, sample)).map_err(fault::work)?;
        keeper.flush().map_err(fault::work)
    }

    /// Returns the comparison of the runs in these parts and in the store.
    fn gather(&self, parts: Vec<Bound<'_, PyBytes>>) -> PyResult<PyComparison> {
        let mut done: Vec<(Point, Sample)> = Vec::new();
        for part in parts {
            done.extend(self.runs(part.as_bytes())?);
        }
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = keeper.as_ref() {
            let here: HashSet<(usize, u64)> =
                done.iter().map(|(point, _)| (point.cell, point.seed)).collect();
            let others = self
                .prepared
                .plan
                .points()
                .into_iter()
                .filter(|point| !here.contains(&(point.cell, point.seed)));
            done.extend(others.filter_map(|point| Some((point.clone(), keeper.known(&point)?))));
        }
        Ok(self.comparison(done, None))
    }
}

impl PySweep {
    fn runs(&self, part: &[u8]) -> PyResult<Vec<(Point, Sample)>> {
        let mut runs = Vec::new();
        let cells = self.prepared.scenarios.len();
        for batch in from_bytes(part).map_err(|why| {
            fault::request(format!(
                "part: found no Arrow stream ({why}), accepted: what measure_part returned"
            ))
        })? {
            for ((cell, seed), kept) in decode(&batch).map_err(fault::request)? {
                let sample = Sample::from_quantities(seed, &kept.values);
                let cell = cell.parse().ok().filter(|cell| *cell < cells);
                let wrong = || {
                    fault::request(
                        "part: found no runs of this comparison, accepted: what measure_part returned",
                    )
                };
                let (cell, sample) = cell.zip(sample).ok_or_else(wrong)?;
                runs.push((Point { cell, seed }, sample));
            }
        }
        Ok(runs)
    }

    fn comparison(&self, done: Vec<(Point, Sample)>, failed: Option<String>) -> PyComparison {
        let comparison = Comparison::new(&self.prepared.plan, done);
        let (prepared, origin) = (self.prepared.clone(), self.origin.clone());
        PyComparison { prepared, origin, comparison, threads: self.threads, failed }
    }
}

/// Result of a comparison.
#[pyclass(frozen, name = "NativeComparison", module = "bentpipe")]
pub struct PyComparison {
    prepared: Prepared,
    origin: Origin,
    comparison: Comparison,
    threads: usize,
    failed: Option<String>,
}

#[pymethods]
impl PyComparison {
    /// Returns the document of `bentpipe compare --json`.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&WithOrigin { document: &self.comparison, origin: &self.origin })
            .map_err(fault::work)
    }

    /// Returns one row per run.
    #[getter]
    fn runs(&self) -> PyTable {
        self.table(Kind::Runs, columns::runs(&self.comparison))
    }

    /// Returns one row per point, over its seeds.
    #[getter]
    fn summary(&self) -> PyTable {
        self.table(Kind::Summaries, columns::summaries(&self.comparison))
    }

    #[getter]
    fn complete(&self) -> bool {
        self.comparison.complete
    }

    /// Returns the number of finished runs, and of all runs.
    #[getter]
    fn done(&self) -> (usize, usize) {
        let done = self.comparison.rows.iter().map(|row| row.samples.len()).sum();
        (done, self.prepared.plan.points().len())
    }

    /// Returns the reason of the first failed run, with the command that repeats it.
    #[getter]
    fn failed(&self) -> Option<String> {
        self.failed.clone()
    }

    /// Returns the base scenario as TOML.
    #[getter]
    fn toml(&self) -> String {
        self.prepared.base.to_toml()
    }

    /// Returns the scenario's main metric: its key, title and display unit, and the size of that unit in the document's unit.
    #[getter]
    fn measures(&self) -> (&'static str, &'static str, &'static str, f64) {
        let (title, unit, divisor) = self.comparison.measures.shown();
        (self.comparison.measures.key(), title, unit, divisor)
    }

    fn write_csv(&self, path: PathBuf) -> PyResult<()> {
        embed::write_csv(&path, (&self.comparison, &self.origin)).map_err(fault::of_command)
    }

    fn write_parquet(&self, path: PathBuf) -> PyResult<()> {
        embed::write_table(&path, &self.batch(Kind::Runs, columns::runs(&self.comparison)))
            .map_err(fault::of_command)
    }

    fn write_report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let made = Made { command: "bentpipe.compare(...) in Python", origin: &self.origin };
        let shown = Shown { comparison: &self.comparison, threads: self.threads, made };
        let written = py.detach(|| embed::write_comparison(&path, self.prepared.clone(), shown));
        written.map_err(fault::of_command)
    }

    fn __str__(&self) -> String {
        as_text(&self.comparison, Look::default())
    }
}

impl PyComparison {
    fn table(&self, kind: Kind, columns: Vec<columns::Column>) -> PyTable {
        PyTable::of(self.batch(kind, columns))
    }

    fn batch(&self, kind: Kind, columns: Vec<columns::Column>) -> RecordBatch {
        batch(kind, columns, &embed::metadata((&self.prepared.base, &self.origin)))
    }
}
