//! What is seen of a run: monitors of single events, checkers, and the results.

mod check;
pub(crate) mod goodput;
mod log;
pub(crate) mod measure;
pub(crate) mod monitor;
pub(crate) mod observer;
pub(crate) mod outcome;
mod record;
mod sample;
mod thinned;
pub(crate) mod watch;
