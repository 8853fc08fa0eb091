//! Ctrl-C: stops and keeps the finished work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Set by a request to stop.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles Ctrl-C and SIGTERM from now on. The second signal ends the process at once.
    pub fn listen() -> Result<Self, Failure> {
        let wanted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&wanted);
        let handler = move || {
            if seen.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Failure::Work(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Self(wanted))
    }

    /// Uses the flag of a program that handles signals itself.
    #[cfg(feature = "studies")]
    pub const fn of(wanted: Arc<AtomicBool>) -> Self {
        Self(wanted)
    }

    /// Returns the flag, for code that polls it during work.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Returns the flag, for work on other threads.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// True after Ctrl-C.
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
