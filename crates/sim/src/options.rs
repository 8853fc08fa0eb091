//! What a run is asked for, and how it ends.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a scenario is run.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Seed of all random streams instead of the scenario's.
    pub seed: Option<u64>,
    /// Record time series for a report.
    pub record: bool,
    /// Let every packet carry real payload, and check from outside what the engine and the links do with it.
    pub verify: bool,
    /// Execute each arrival at a link as an event of its own, and all hosts by turns: slower, with the same results. For tests that compare.
    pub event_by_event: bool,
    /// How many threads may execute a world that can be divided among them: one of processes, or one whose routes change with flows that never have
    /// a link in common. One that somebody watches, or whose number of events is limited, takes one. No result depends on it.
    pub threads: Option<NonZeroUsize>,
    /// Stop after so many events.
    pub max_events: Option<u64>,
    /// Stop soon after this is raised.
    pub stop: Option<&'a AtomicBool>,
    /// Told the simulated seconds so far, now and then.
    pub progress: Option<&'a (dyn Fn(f64) + Sync)>,
}

impl RunOptions<'_> {
    /// The run is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The simulated time was over.
    InTime,
    /// The stop flag was raised.
    Stopped,
    /// The event budget was spent.
    OutOfEvents,
}
