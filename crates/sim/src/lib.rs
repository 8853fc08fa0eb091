//! The simulator: a world built from a scenario, and the event loop that runs it.

mod outcome;

pub use outcome::{FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, Outcome, Series, Totals};
