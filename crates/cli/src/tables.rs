//! Results and traces as Parquet files, and the store of finished runs: `--out`, `--trace FILE.parquet`, `--keep`.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bentpipe_lab::columns::{self, Column, Part};
use bentpipe_lab::{Comparison, Measured, Names, Origin, Prepared, Progress, RunError, RunOutput, Workers};
use bentpipe_scenario::Scenario;
pub use bentpipe_table::{Keeper, Trace};
use bentpipe_table::{Kind as Rows, Parquet, RecordBatch, SchemaRef, TraceError, batch};

use crate::failure::Failure;
use crate::output::{self, Kind, Target, Writer};

/// Opens the file of a table if there is a path.
pub fn open(path: Option<&PathBuf>) -> Result<Option<Target>, Failure> {
    output::open(path, Kind::Table)
}

/// The store of `--keep`, for the runs of `prepared`.
pub fn keeper(folder: &Path, prepared: &Prepared) -> Result<Keeper, Failure> {
    Keeper::open(folder, prepared).map_err(Failure::Request)
}

/// Measures the runs of a comparison that `keeper` does not have.
pub fn measure(
    prepared: &Prepared,
    keeper: Keeper,
    workers: &Workers,
    observe: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, Failure> {
    bentpipe_table::measure(prepared, Some(keeper), workers, observe).map_err(Failure::Work)
}

/// Opens the table of a trace.
pub fn begin(scenario: &Scenario, target: &Target) -> Result<Trace, Failure> {
    let names = Names::of(scenario).map_err(RunError::from)?;
    Ok(Trace::in_file(&names, Box::new(target.writer()?)).map_err(RunError::from)?)
}

/// Completes the file of a trace.
pub fn finish(trace: Trace) -> Result<(), Failure> {
    match trace.finish() {
        Ok(_) => Ok(()),
        Err(TraceError::Unwritten(error)) => Err(RunError::Unwritten(error).into()),
        Err(error @ TraceError::TooMany) => Err(Failure::Work(error.to_string())),
    }
}

/// Writes one row per flow of a run of `scenario`.
pub fn write_flows(target: Target, of: (&Scenario, &Origin), run: &RunOutput) -> Result<(), Failure> {
    let flows = columns::outcome(&run.outcome, Part::Flows);
    write_table(target, &batch(Rows::Run, flows, &metadata(of)))
}

/// Writes these columns of a run of a scenario.
pub fn write_columns(target: Target, of: (&Scenario, &Origin), columns: Vec<Column>) -> Result<(), Failure> {
    write_table(target, &batch(Rows::Run, columns, &metadata(of)))
}

/// Scenario and origin, for the metadata of a table.
pub fn metadata((scenario, origin): (&Scenario, &Origin)) -> Vec<(&'static str, String)> {
    [("bentpipe.scenario", scenario.to_toml())].into_iter().chain(origin.metadata()).collect()
}

/// Writes one row per run of a comparison over `base`.
pub fn write_runs(target: Target, of: (&Scenario, &Origin), comparison: &Comparison) -> Result<(), Failure> {
    write_table(target, &batch(Rows::Runs, columns::runs(comparison), &metadata(of)))
}

/// Writes a table and gives the complete file its name.
pub fn write_table(target: Target, batch: &RecordBatch) -> Result<(), Failure> {
    write_tables(target, (&batch.schema(), std::slice::from_ref(batch)))
}

/// Writes a table of several batches and gives the complete file its name.
pub fn write_tables(target: Target, (schema, batches): (&SchemaRef, &[RecordBatch])) -> Result<(), Failure> {
    let write = |writer: Writer| {
        let mut file = Parquet::new(writer, schema.clone())?;
        batches.iter().try_for_each(|batch| file.write(batch))?;
        file.finish()?.flush()
    };
    write(target.writer()?).map_err(|error| Failure::Work(format!("cannot write {error}")))?;
    target.finish()
}
