//! Ctrl-C: stop, and keep what is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Whether somebody wants us to stop.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C and SIGTERM from now on. The second one ends the process at once.
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

    /// Of a program that listens itself and raises this flag.
    #[cfg(feature = "studies")]
    pub const fn of(wanted: Arc<AtomicBool>) -> Self {
        Self(wanted)
    }

    /// The flag itself, for those who look at it while they work.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// The flag, for work on other threads.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// True after Ctrl-C.
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
