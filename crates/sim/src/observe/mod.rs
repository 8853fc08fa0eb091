//! What is seen of a run: monitors of single events and of what is recorded, and the results.

mod bottlenecks;
pub(crate) mod measure;
pub(crate) mod monitor;
mod sample;
pub(crate) mod watch;
