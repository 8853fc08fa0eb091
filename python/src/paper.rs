//! `paper`.

use std::path::PathBuf;

use bentpipe_cli::embed;
use bentpipe_study::{Form, Store, StudyOutcome, Unfinished, Wish, conduct, draw, load};
use pyo3::prelude::*;

use crate::fault;
use crate::watch::Watcher;

/// Result of studies.
#[pyclass(frozen, name = "NativePaper", module = "bentpipe")]
pub struct PyPaper {
    outcomes: Vec<StudyOutcome>,
}

/// Conducts studies.
#[pyfunction]
#[pyo3(signature = (study, figures, quick, seeds, jobs, keep, progress))]
#[expect(clippy::too_many_arguments, reason = "the parameters of bentpipe.paper")]
pub fn paper(
    py: Python<'_>,
    study: &str,
    figures: Vec<String>,
    quick: bool,
    seeds: Option<u32>,
    jobs: Option<usize>,
    keep: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyPaper> {
    if let Some(found) = seeds.filter(|seeds| !(1..=1_000_000).contains(seeds)) {
        return Err(fault::request(format!("seeds: found {found}, accepted: 1 to 1000000")));
    }
    let studies = load(study).map_err(fault::request)?;
    embed::refuse_unknown_figures(&studies, &figures).map_err(fault::of_command)?;
    let store = keep.map_or_else(|| Ok(Store::in_memory()), |folder| Store::open(&folder));
    let store = store.map_err(fault::request)?;
    let watcher = Watcher::new(progress);
    let threads = crate::compare::jobs(jobs)?;
    let wish =
        Wish { form: Form { quick, seeds }, figures, threads, memory: None, stop: watcher.stop.clone() };
    let done = py.detach(|| conduct(&studies, &wish, store, |progress| watcher.observe(progress)));
    match (done, watcher.error()) {
        (Ok(outcomes), _) => Ok(PyPaper { outcomes }),
        (Err(_), Some(error)) => Err(error),
        (Err(error @ Unfinished::Impossible(_)), None) => Err(fault::request(error)),
        (Err(error), None) => Err(fault::work(error)),
    }
}

#[pymethods]
impl PyPaper {
    /// Returns the document of `bentpipe paper --json`.
    #[getter]
    fn json(&self) -> PyResult<String> {
        embed::claims(&self.outcomes).map(|claims| claims.to_string()).map_err(fault::of_command)
    }

    /// Returns name, title and citation of each study.
    #[getter]
    fn studies(&self) -> Vec<(String, String, String)> {
        self.outcomes.iter().map(|of| (of.name.clone(), of.title.clone(), of.citation.clone())).collect()
    }

    /// Returns the numbers of the figures of a study.
    fn figures(&self, study: &str) -> Vec<String> {
        let of = self.outcomes.iter().filter(|outcome| outcome.name == study);
        of.flat_map(|outcome| outcome.figures.iter().map(|figure| figure.number.clone())).collect()
    }

    /// Returns the pictures of a figure as SVG.
    fn svg(&self, figure: &str) -> PyResult<Vec<String>> {
        let figures = || self.outcomes.iter().flat_map(|outcome| &outcome.figures);
        let Some(found) = figures().find(|one| one.number == figure) else {
            let known: Vec<&str> = figures().map(|figure| figure.number.as_str()).collect();
            return Err(fault::request(format!("figure: found {figure:?}, accepted: {}", known.join(", "))));
        };
        found.charts.iter().map(|chart| draw::svg(chart).map_err(fault::work)).collect()
    }

    /// Writes pages, pictures and verdicts to a folder, as `--report` does.
    fn write_report(&self, folder: PathBuf) -> PyResult<()> {
        embed::write_studies(&folder, &self.outcomes).map_err(fault::of_command)
    }
}
