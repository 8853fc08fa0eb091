//! The simulator: a world built from a scenario, and the event loop that runs it.
//!
//! [`run`] is all that most callers need. Reading order: `packet` (what travels), `engine::queue` (when things happen), `world` and
//! `network` (where), `app` (why), `host` (the connection ends), `simulation` (the event loop), `engine::windows` (logical processes, executed
//! in windows of time), `observe` (what observers are told, and what was measured), `check` (checkers, separate from what they check). The
//! types of the results are in the crate `outcome`.

mod app;
mod check;
mod engine;
mod error;
mod host;
mod ids;
mod network;
mod observe;
mod options;
mod packet;
mod run;
mod simulation;
mod world;

pub use error::BuildError;
pub use options::{Ended, RunOptions};
pub use run::{RunResult, run, run_observed};
