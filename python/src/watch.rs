//! Progress, and Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bentpipe_lab::Progress;
use pyo3::prelude::*;

/// Minimum time between two checks of the interpreter.
const PAUSE: Duration = Duration::from_millis(100);

/// Reports the progress to a Python function, and handles Ctrl-C.
pub struct Watcher {
    callback: Option<Py<PyAny>>,
    /// Set when the work must stop.
    pub stop: Arc<AtomicBool>,
    state: Mutex<(Instant, Option<PyErr>)>,
}

impl Watcher {
    /// Makes a watcher that calls `callback(done, total)` periodically, if there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, stop: Arc::default(), state: Mutex::new((Instant::now(), None)) }
    }

    /// Reports that `done` of `total` is complete.
    pub fn look(&self, done: f64, total: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.is_some() || (state.0.elapsed() < PAUSE && done < total) {
            return;
        }
        state.0 = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, (done, total)).map(drop))
        });
        if let Err(error) = told {
            self.stop.store(true, Ordering::SeqCst);
            state.1 = Some(error);
        }
    }

    /// As `look`, for [`bentpipe_lab::run_all`].
    pub fn observe(&self, progress: Progress) -> ControlFlow<()> {
        self.look(progress.done as f64, progress.total as f64);
        if self.stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the reason for stopping: `KeyboardInterrupt`, or the exception of the
    /// callback.
    pub fn error(&self) -> Option<PyErr> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}
