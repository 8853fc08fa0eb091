//! The simulator: a world built from a scenario, and the event loop that runs it.
//!
//! [`run`] is enough for most callers. Reading order: `packet`, `engine::wheel` (the event queue), `world` and `network`, `app`, `host`
//! (connection ends), `simulation` (the event loop), `engine::follow` and `engine::process` (execution ahead of the event loop),
//! `observe` (observers and measurements). The types of results are in the crate `outcome`, checkers in `check`.

mod app;
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
