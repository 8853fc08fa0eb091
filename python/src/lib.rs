//! Native part of the Python package `bentpipe`. `python/bentpipe` contains the Python part and the user documentation.
//!
//! Long operations run without the interpreter's lock. Results are passed as Arrow streams (the PyCapsule interface), not as
//! text.

mod compare;
mod fault;
mod gym;
mod paper;
mod pilot;
mod policy;
mod run;
mod scenario;
mod table;
mod watch;

use pyo3::prelude::*;

/// Returns the output of `bentpipe list WHAT --json`: numbers, lists and reports.
#[pyfunction]
fn list_json(what: &str) -> PyResult<String> {
    bentpipe_cli::embed::list(what).map(|document| document.to_string()).map_err(fault::of_command)
}

/// Executes a command line; returns the exit code.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<String>) -> u8 {
    py.detach(|| bentpipe_cli::command_line(words))
}

/// Native module of the package.
#[pymodule]
fn _bentpipe(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<scenario::PyScenario>()?;
    module.add_class::<table::PyTable>()?;
    module.add_class::<run::PyRun>()?;
    module.add_class::<compare::PySweep>()?;
    module.add_class::<compare::PyComparison>()?;
    module.add_class::<paper::PyPaper>()?;
    module.add_class::<gym::PyWorlds>()?;
    module.add_function(wrap_pyfunction!(list_json, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(paper::paper, module)?)?;
    module.add_function(wrap_pyfunction!(policy::register, module)?)?;
    module.add_function(wrap_pyfunction!(policy::cost, module)?)?;
    module.add("OBSERVATIONS", pilot::OBSERVATIONS.to_vec())?;
    Ok(())
}
