//! Observation of a run: monitors of single events and of recorded series.

mod log;
pub(crate) mod monitor;
pub(crate) mod watch;
