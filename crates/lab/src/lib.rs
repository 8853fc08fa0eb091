//! The laboratory: comparisons over algorithms, varied values and seeds on all cores; statistics, tables, reports.
//!
//! Reading order: [`Plan`] describes the runs, [`run_all`] executes them, [`Comparison`] is the result, and `table`, [`csv_table`]
//! and [`report`] show it. [`columns`] holds the result for every kind of file.

mod carriage;
mod clock;
mod column;
pub mod columns;
mod comparison;
pub mod csv_table;
#[cfg(test)]
mod example;
mod filter;
mod headline;
mod lacking;
mod memory;
mod metric;
pub mod number;
mod origin;
mod paired;
mod plan;
mod pool;
mod quoted;
pub mod report;
mod room;
mod service;
mod simulate;
pub mod stats;
mod sweep;
#[cfg(feature = "text-tables")]
pub mod table;
mod together;
mod watch;

pub use comparison::{Comparison, Row, Sample, Share};
pub use filter::Filter;
pub use headline::{most_telling, most_telling_scenario};
pub use lacking::lacking;
pub use memory::estimate;
pub use metric::Metric;
pub use origin::{Build, Origin, WithOrigin};
pub use paired::Difference;
pub use plan::{BadSetting, Cell, Plan, Point, Setting, Value, Vary};
pub use pool::{Progress, Workers, run_all, threads};
pub use quoted::quoted;
pub use room::check_memory;
pub use simulate::{
    File, Place, RunError, RunOutput, RunRequest, check, check_only, simulate, unless_stopped,
};
pub use stats::Summary;
pub use sweep::{MOST_RUNS, Measured, OWN, Prepared, Wish};
pub use watch::Names;
