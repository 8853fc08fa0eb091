//! What a run shows, in one vocabulary: its results, its time series, and what happens while it goes on.
//!
//! An [`Outcome`] is the document of `bentpipe run --json`; [`Series`] are what reports draw. An [`Observer`] is told of single packets and
//! connections. Whoever executes a run fills the counters in; here stand the measures that are calculated from them ([`Totals`],
//! [`GroupOutcome`], [`GoodputSampler`]) and the [`Recorder`] of time series.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod flow;
mod goodput;
mod network;
mod observer;
mod record;
mod run;
mod series;
mod thinned;

pub use bentpipe_traffic::{CallOutcome, PlayerOutcome, StreamOutcome, TransferOutcome};
pub use flow::{BundleOutcome, FlowOutcome, LegOutcome, RelayedOutcome, SplitOutcome};
pub use goodput::{GoodputSampler, SAMPLE_INTERVAL, convergence};
pub use network::{GapOutcome, LinkOutcome, MediumOutcome, NodeOutcome};
pub use observer::{LinkEvent, Observer, Passing};
pub use record::{Recorder, SenderToRecord};
pub use run::{GroupOutcome, Outcome, Totals};
pub use series::{FlowSeries, LinkSeries, Series};

/// For counters that a document leaves out where nothing was counted.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
