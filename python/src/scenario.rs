//! Scenarios.

use bentpipe_lab::{Value, check_memory};
use bentpipe_scenario::{Draft, Scenario};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::fault;

/// Scenario as written, with later changes; it is checked only when used.
#[pyclass(name = "Scenario", module = "bentpipe")]
#[derive(Clone)]
pub struct PyScenario {
    pub draft: Draft,
    /// Keys that were set.
    pub set: Vec<String>,
    name: String,
    /// Source for pickling: the text; `None` if it was loaded by name.
    text: Option<String>,
    changes: Vec<Change>,
}

/// Change of a scenario: `set`, `cc` or `proxies`; a key or `None`; a value.
type Change = (String, Option<String>, String);

/// Name, text and changes of a scenario.
type Origin = (String, Option<String>, Vec<Change>);

/// Converts a value to the text that a user would type after `KEY=`.
pub fn typed(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let wrong = |found: String| {
        let accepted = "a finite number, True or False, or text as in a scenario file such as \"50 Mbit/s\"";
        fault::request(format!("{key}: found {found}, accepted: {accepted}"))
    };
    if value.is_instance_of::<PyBool>() {
        return Ok(Value(if value.extract()? { "true" } else { "false" }.into()));
    }
    if value.is_instance_of::<PyFloat>() || value.hasattr("dtype")? && value.hasattr("item")? {
        let item =
            if value.is_instance_of::<PyFloat>() { value.clone() } else { value.call_method0("item")? };
        if item.is_instance_of::<PyInt>() {
            return Ok(Value(item.str()?.to_string()));
        }
        let number: f64 = item.extract().map_err(|_| wrong(format!("{item}")))?;
        return if number.is_finite() {
            Ok(Value(format!("{number:?}")))
        } else {
            Err(wrong(format!("{number}")))
        };
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value(value.str()?.to_string()));
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(Value(text.to_string())),
        Err(_) => Err(wrong(format!("{} of type {}", value.repr()?, value.get_type().name()?))),
    }
}

impl PyScenario {
    /// Returns the typed scenario.
    pub fn checked(&self) -> PyResult<Scenario> {
        self.draft.scenario().map_err(fault::request)
    }
}

#[pymethods]
impl PyScenario {
    #[staticmethod]
    #[pyo3(signature = (text, name="scenario"))]
    fn parse(text: &str, name: &str) -> PyResult<Self> {
        let draft = Draft::parse(name, text).map_err(fault::request)?;
        let (name, text) = (name.to_owned(), Some(text.to_owned()));
        Ok(Self { draft, set: Vec::new(), name, text, changes: Vec::new() })
    }

    #[staticmethod]
    fn load(path_or_name: &str) -> PyResult<Self> {
        let draft = Draft::load(path_or_name).map_err(fault::request)?;
        Ok(Self { draft, set: Vec::new(), name: path_or_name.to_owned(), text: None, changes: Vec::new() })
    }

    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = typed(key, value)?;
        self.draft.set(&format!("{key}={value}")).map_err(fault::request)?;
        self.set.push(key.trim().to_owned());
        self.changes.push(("set".to_owned(), Some(key.to_owned()), value.0));
        Ok(())
    }

    fn set_cc(&mut self, name: &str) -> PyResult<()> {
        self.draft.set_cc(name).map_err(fault::request)?;
        self.changes.push(("cc".to_owned(), None, name.to_owned()));
        Ok(())
    }

    /// Configures the proxies from a configuration of `bentpipe pep`, or from one of its classes: `--proxy` and
    /// `--proxy-class`.
    #[pyo3(signature = (path, name=None))]
    fn set_proxies(&mut self, path: &str, name: Option<&str>) -> PyResult<()> {
        self.draft.set_proxies(path, name).map_err(fault::request)?;
        self.changes.push(("proxies".to_owned(), name.map(str::to_owned), path.to_owned()));
        Ok(())
    }

    /// Raises an exception with all mistakes, also if this machine lacks the memory for the world.
    fn validate(&self) -> PyResult<()> {
        let scenario = self.checked()?;
        check_memory(&scenario, 1, None).map_err(fault::request)?;
        bentpipe_lab::check(&scenario, &bentpipe_lab::Place::Senders).map_err(fault::of_run)
    }

    fn to_toml(&self) -> PyResult<String> {
        Ok(self.checked()?.to_toml())
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.checked()?.name)
    }

    #[getter]
    fn seed(&self) -> PyResult<u64> {
        Ok(self.checked()?.seed)
    }

    /// Returns the flow group under comparison, and its number of flows.
    #[getter]
    fn compared(&self) -> PyResult<Option<(String, u32)>> {
        Ok(self.checked()?.compared_flow().map(|flow| (flow.name.clone(), flow.count)))
    }

    #[getter]
    fn duration_s(&self) -> PyResult<f64> {
        Ok(self.checked()?.duration.as_secs_f64())
    }

    fn copy(&self) -> Self {
        self.clone()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Origin)> {
        let again = py.import("bentpipe._bentpipe")?.getattr("Scenario")?.getattr("_again")?;
        Ok((again, (self.name.clone(), self.text.clone(), self.changes.clone())))
    }

    #[staticmethod]
    fn _again(py: Python<'_>, name: &str, text: Option<&str>, changes: Vec<Change>) -> PyResult<Self> {
        let mut scenario = match text {
            Some(text) => Self::parse(text, name)?,
            None => Self::load(name)?,
        };
        for (what, key, value) in changes {
            match (what.as_str(), key) {
                ("set", Some(key)) => scenario.set(&key, PyString::new(py, &value).as_any())?,
                ("proxies", name) => scenario.set_proxies(&value, name.as_deref())?,
                _ => scenario.set_cc(&value)?,
            }
        }
        Ok(scenario)
    }

    fn __repr__(&self) -> String {
        let changes = self
            .changes
            .iter()
            .map(|(what, key, value)| format!(", {}={value}", key.as_deref().unwrap_or(what)));
        format!("<bentpipe.Scenario {}{}>", self.name, changes.collect::<String>())
    }
}
