//! The simulator: a world built from a scenario, and the event loop that runs it.
//!
//! [`run`] is all that most callers need. Reading order: `packet` (what travels), `engine::wheel` (when things happen), `world` and
//! `network` (where), `app` (why), `host` (the connection ends), `simulation` (the event loop), `engine::follow` and `engine::process`
//! (how packets and hosts are executed ahead of it), `observe` (what is told to those who look on, and what was measured). The results
//! themselves stand in the crate `outcome`, checkers in `check`.

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
