//! Algorithms written in Python.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use bentpipe_base::Duration;
use bentpipe_cc::{CongestionControl, Custom, Start};
use bentpipe_scenario::bring_algorithms;
use pyo3::prelude::*;

use crate::fault;
use crate::pilot::{Action, Every, LEAST_INTERVAL, Observation, Pilot};

/// Factory of policies for connections, and their decision interval.
struct Maker {
    factory: Py<PyAny>,
    every: Every,
    cost: Arc<Cost>,
}

/// Cost of a policy's decisions.
#[derive(Default)]
struct Cost {
    decisions: AtomicU64,
    nanos: AtomicU64,
}

/// Factories, keyed by name. A notebook may redefine a name repeatedly.
static MAKERS: LazyLock<Mutex<HashMap<String, Maker>>> = LazyLock::new(Mutex::default);

/// Ends the run with Python's error, which `run_all` and `run` convert to theirs.
fn give_up(name: &str, error: PyErr) -> ! {
    resume_unwind(Box::new(format!("the policy {name}: {error}")))
}

/// Returns the requested interval.
pub fn every(interval_s: Option<f64>) -> PyResult<Every> {
    let least_s = LEAST_INTERVAL.as_secs_f64();
    match interval_s {
        None => Ok(Every::RoundTrip),
        Some(seconds) if (least_s..=3600.0).contains(&seconds) => {
            Ok(Every::Time(Duration::from_secs_f64(seconds)))
        }
        Some(found) => Err(fault::request(format!(
            "every: found {found}, accepted: \"rtt\", or {least_s} to 3600 seconds"
        ))),
    }
}

/// Makes an algorithm from `factory(mss, initial_window, seed)`, which returns a function. It maps an observation to a window in
/// segments and a pacing rate in bit/s (0 for none). The name of an earlier policy may be reused.
#[pyfunction]
pub fn register(name: String, factory: Py<PyAny>, interval_s: Option<f64>) -> PyResult<()> {
    let every = every(interval_s)?;
    let mut makers = MAKERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !makers.contains_key(&name) {
        // Algorithm names exist until the process ends.
        let leaked: &'static str = Box::leak(name.clone().into_boxed_str());
        bring_algorithms(&[Custom::new(leaked, move |start: &Start| build(leaked, start))])
            .map_err(fault::request)?;
    }
    let former = makers.insert(name, Maker { factory, every, cost: Arc::default() });
    drop(makers);
    drop(former); // dropping it may run Python code, which may register another
    Ok(())
}

/// Returns the number of decisions since a policy's registration, and their total time in seconds. It includes waiting for the
/// interpreter.
#[pyfunction]
pub fn cost(name: &str) -> Option<(u64, f64)> {
    let makers = MAKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let cost = &makers.get(name)?.cost;
    Some((cost.decisions.load(Ordering::Relaxed), cost.nanos.load(Ordering::Relaxed) as f64 / 1e9))
}

fn build(name: &'static str, start: &Start) -> Box<dyn CongestionControl> {
    let makers = MAKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let (every, cost) = (makers[name].every, Arc::clone(&makers[name].cost));
    drop(makers);
    let about = (start.mss, start.initial_window, start.seed);
    // Made at the first decision: a world that is only inspected needs none.
    let mut policy: Option<Py<PyAny>> = None;
    let decide = move |observation: &Observation| {
        let began = Instant::now();
        let ask = |py: Python<'_>| -> PyResult<(f64, f64)> {
            let policy = match &policy {
                Some(policy) => policy,
                None => policy.insert(factory(py, name).call1(py, about)?),
            };
            policy.call1(py, (observation.to_vec(),))?.extract(py)
        };
        let action = Python::attach(ask);
        cost.decisions.fetch_add(1, Ordering::Relaxed);
        cost.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let (window, pacing_bps) = action.unwrap_or_else(|error| give_up(name, error));
        Action { window, pacing_bps }
    };
    Box::new(Pilot::new(start, every, Box::new(decide)))
}

fn factory(py: Python<'_>, name: &str) -> Py<PyAny> {
    let makers = MAKERS.lock().unwrap_or_else(PoisonError::into_inner);
    makers[name].factory.clone_ref(py)
}
