//! The simulator: a world built from a scenario, and the event loop that runs it.
//!
//! [`run`] is all that most callers need. Reading order: `wheel` (when things happen), `ticket` and `arena` (what travels),
//! `world` (where), `traffic` (why), `simulation` (the loop), `junction` (how packets run ahead of it), `islands` and
//! `shores` (how hosts do), `step`, `station` and `wayfinder` (what packets meet besides links);
//! `watch`, `record` and `check` look on.

mod arena;
mod check;
mod dialogue;
mod error;
mod feed;
mod gathering;
mod islands;
mod junction;
mod mailroom;
mod measure;
mod media;
mod observe;
mod outcome;
mod pace;
mod paging;
mod party;
mod procession;
mod proxy;
mod record;
mod run;
mod seating;
mod shores;
mod simulation;
mod sky;
mod station;
mod step;
mod thinned;
mod ticket;
mod traffic;
mod watch;
mod wayfinder;
mod wheel;
mod witness;
mod world;

pub use error::BuildError;
pub use observe::{LinkEvent, Observer, Passing};
pub use outcome::{
    BundleOutcome, CallOutcome, FlowOutcome, FlowSeries, GapOutcome, GroupOutcome, LegOutcome, LinkOutcome,
    LinkSeries, MediumOutcome, NodeOutcome, Outcome, PlayerOutcome, RelayedOutcome, Series, SplitOutcome,
    StreamOutcome, Totals, TransferOutcome,
};
pub use run::{RunOptions, RunResult, run, run_observed};
pub use simulation::Ended;
