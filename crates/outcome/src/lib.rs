//! Results of a run: final results, time series, and events during the run.
//!
//! An [`Outcome`] is the document of `bentpipe run --json`. [`Series`] are the input of report figures. An [`Observer`] receives
//! events of single packets and connections. The executor of a run fills in the counters. This crate computes measures from them
//! ([`Totals`], [`GroupOutcome`], [`GoodputSampler`]), and the [`Recorder`] makes time series.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod delay;
mod flow;
mod goodput;
mod network;
mod observer;
mod record;
mod run;
mod series;
mod thinned;
mod window;

pub use bentpipe_traffic::{CallOutcome, PlayerOutcome, StreamOutcome, Transfer, TransferOutcome};
pub use delay::{DelayHistogram, DelayOutcome, DelayOutcomes, Delays};
pub use flow::{BundleOutcome, FlowOutcome, LegOutcome, RelayedOutcome, SplitOutcome};
pub use goodput::{GoodputSampler, SAMPLE_INTERVAL};
pub use network::{GapOutcome, LinkOutcome, MediumOutcome, NodeOutcome};
pub use observer::{LinkEvent, Observer, Passing};
pub use record::{Recorder, SenderToRecord};
pub use run::{GroupOutcome, Outcome, Totals, comparable};
pub use series::{FlowSeries, LinkSeries, Series};

/// True for counters that a document leaves out because they are zero.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
