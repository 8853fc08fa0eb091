//! Progress, and Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bentpipe_lab::Progress;
use pyo3::prelude::*;

/// Least time between two looks at the interpreter.
const PAUSE: Duration = Duration::from_millis(100);

/// Tells a Python function how far the work is, and hears Ctrl-C.
pub struct Watcher {
    callback: Option<Py<PyAny>>,
    /// Raised when the work is to stop.
    pub stop: Arc<AtomicBool>,
    state: Mutex<(Instant, Option<PyErr>)>,
}

impl Watcher {
    /// Calls `callback(done, total)` now and then, if there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, stop: Arc::default(), state: Mutex::new((Instant::now(), None)) }
    }

    /// So much is done.
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

    /// The same for [`bentpipe_lab::run_all`].
    pub fn observe(&self, progress: Progress) -> ControlFlow<()> {
        self.look(progress.done as f64, progress.total as f64);
        if self.stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What stopped the work: `KeyboardInterrupt`, or the exception of the callback.
    pub fn error(&self) -> Option<PyErr> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}
