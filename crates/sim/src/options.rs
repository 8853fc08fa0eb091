//! Options of a run, and how it ends.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a scenario is run.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Seed of all random streams instead of the scenario's.
    pub seed: Option<u64>,
    /// Record time series for a report.
    pub record: bool,
    /// Let every packet carry real payload, and check conservation of packets and bytes from outside.
    pub verify: bool,
    /// Execute the world event by event, each arrival at a link as an event of its own: slower, with the same results. For tests that compare.
    pub event_by_event: bool,
    /// Threads that may execute the logical processes of a world. A world takes one thread if it cannot be divided, if it is watched, or if the
    /// number of its events is limited. No result depends on it.
    pub threads: Option<NonZeroUsize>,
    /// Stop after this number of events.
    pub max_events: Option<u64>,
    /// Stop soon after this is raised.
    pub stop: Option<&'a AtomicBool>,
    /// Called with the simulated seconds so far, from time to time.
    pub progress: Option<&'a (dyn Fn(f64) + Sync)>,
}

impl RunOptions<'_> {
    /// The run is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ended {
    /// The simulated time was over.
    #[default]
    InTime,
    /// The stop flag was raised.
    Stopped,
    /// The event budget was spent.
    OutOfEvents,
}
