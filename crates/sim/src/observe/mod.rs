//! Observation of a run: monitors of single events and of recorded series, and the results.

pub(crate) mod bottlenecks;
mod log;
pub(crate) mod measure;
pub(crate) mod monitor;
mod sample;
pub(crate) mod watch;
