//! The simulator: a world built from a scenario, and the event loop that runs it.
//!
//! [`run`] is enough for most callers. The state is in parts: `scheduler` (clock and event queue), `network` (links, routes and the
//! packets on their way), `host` (connection ends and proxies), `app` (flows and their applications), `observe` (observers), and
//! `parallel` (execution ahead of the event loop). `world` builds the parts of a scenario. `simulation` has them all; its event loop
//! carries packets and events from part to part. No part knows the simulation. The types of results are in the crate `outcome`,
//! checkers in `check`.

mod app;
mod error;
mod host;
mod ids;
mod network;
mod observe;
mod options;
mod packet;
mod parallel;
mod run;
mod scheduler;
mod simulation;
mod tuning;
mod world;

pub use error::BuildError;
pub use options::{Ended, RunOptions};
pub use run::{RunResult, run, run_observed};
