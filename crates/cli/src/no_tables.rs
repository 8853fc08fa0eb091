//! Replaces the module `tables` in a build without the feature `parquet`, and refuses every request for a table.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bentpipe_lab::columns::Column;
use bentpipe_lab::{Comparison, Measured, Origin, Prepared, Progress, RunOutput, Workers};
use bentpipe_scenario::Scenario;

use crate::absent;
use crate::failure::Failure;
use crate::output::Target;

pub type Keeper = ();
pub type Trace = ();

fn refuse<T>() -> Result<T, Failure> {
    Err(absent::failure("Parquet files and --keep", "parquet"))
}

pub fn open(path: Option<&PathBuf>) -> Result<Option<Target>, Failure> {
    path.map_or(Ok(None), |_| refuse())
}

pub fn keeper(_: &Path, _: &Prepared) -> Result<Keeper, Failure> {
    refuse()
}

pub fn measure(
    _: &Prepared,
    _: Keeper,
    _: &Workers,
    _: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, Failure> {
    refuse()
}

pub fn begin(_: &Scenario, _: &Target) -> Result<Trace, Failure> {
    refuse()
}

pub fn finish(_: Trace) -> Result<(), Failure> {
    refuse()
}

pub fn write_flows(_: Target, _: (&Scenario, &Origin), _: &RunOutput) -> Result<(), Failure> {
    refuse()
}

pub fn write_runs(_: Target, _: (&Scenario, &Origin), _: &Comparison) -> Result<(), Failure> {
    refuse()
}

pub fn write_columns(_: Target, _: (&Scenario, &Origin), _: Vec<Column>) -> Result<(), Failure> {
    refuse()
}
