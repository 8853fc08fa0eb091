//! Options of a run, and the reasons for its end.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

/// Options of a run.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Seed of all random streams instead of the scenario's.
    pub seed: Option<u64>,
    /// Record time series for a report.
    pub record: bool,
    /// True to give every packet real payload, and to check the engine and the links from outside.
    pub verify: bool,
    /// True to execute each arrival at a link as an event, and all hosts in turn: slower, with the same results. For tests that
    /// compare.
    pub event_by_event: bool,
    /// Maximum number of threads for a world that can be divided: one of processes, or one whose routes change with flows that never
    /// have a link in common. An observed run, or one with a limit of events, uses one thread. No result depends on this number.
    pub threads: Option<NonZeroUsize>,
    /// Number of events after which the run stops.
    pub max_events: Option<u64>,
    /// Stop soon after this is raised.
    pub stop: Option<&'a AtomicBool>,
    /// Called at intervals with the simulated seconds so far.
    pub progress: Option<&'a (dyn Fn(f64) + Sync)>,
    /// Clock that measures how long the run takes: time since any fixed moment. The result has a `wall_s` of 0 without it.
    pub clock: Option<fn() -> time::Duration>,
}

impl RunOptions<'_> {
    /// Time on the caller's clock.
    pub(crate) fn elapsed(&self) -> time::Duration {
        self.clock.map_or(time::Duration::ZERO, |clock| clock())
    }

    /// True if the run shall stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Reason for the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The simulated time was over.
    InTime,
    /// The stop flag was raised.
    Stopped,
    /// The event budget was spent.
    OutOfEvents,
}
