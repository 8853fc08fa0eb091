//! Tables: results and traces as Arrow columns and Parquet files, and a store of finished runs.
//!
//! `bentpipe_lab::columns` computes the columns, [`batch`] makes an Arrow batch of them, and [`Parquet`] writes batches to a
//! file. A [`Trace`] receives the events of a run. A [`Store`] keeps finished runs, so that none is repeated. `docs/tables.md`
//! lists all columns.

mod batch;
mod file;
mod keeper;
mod store;
mod trace;

pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;
pub use batch::{Kind, batch};
pub use file::{MARK, Parquet, from_bytes, to_bytes, write};
pub use keeper::{Keeper, measure};
pub use store::{Course, Kept, Store, StoreError, Values, decode, encode, refuse_own, world_name};
pub use trace::{MOST_EVENTS, Trace, TraceError, trace_schema};
