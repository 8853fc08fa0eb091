//! Lists, reports and files of the commands, for other programs. Needs the feature `studies`.

use std::path::Path;
use std::sync::Arc;

use bentpipe_lab::report::{Provenance, RunPage};
use bentpipe_lab::{Comparison, Origin, Prepared, RunOutput, csv_table};
use bentpipe_scenario::Scenario;
use bentpipe_study::{Study, StudyOutcome};
use bentpipe_table::{RecordBatch, SchemaRef};
use clap::ValueEnum;
use serde_json::Value;

use crate::args::Listed;
pub use crate::compare::Shown;
pub use crate::failure::Failure;
use crate::interrupt::Interrupt;
pub use crate::origin::of as origin;
use crate::output::{Kind, Target};
pub use crate::run::Made;
pub use crate::tables::metadata;
use crate::{compare, list as lists, paper, run, tables};

/// Returns the document of `list WHAT --json`.
///
/// # Errors
/// [`Failure::Request`] with the known lists.
pub fn list(what: &str) -> Result<Value, Failure> {
    let known = || {
        Listed::value_variants().iter().filter_map(|one| Some(one.to_possible_value()?.get_name().to_owned()))
    };
    let unknown = || {
        Failure::Request(format!(
            "list: found {what:?}, accepted: {}",
            known().collect::<Vec<_>>().join(", ")
        ))
    };
    lists::document(Listed::from_str(what, false).map_err(|_| unknown())?)
}

/// Returns the document of `paper --json`.
///
/// # Errors
/// Those of the serialiser.
pub fn claims(outcomes: &[StudyOutcome]) -> Result<Value, Failure> {
    serde_json::to_value(paper::Document(outcomes)).map_err(|error| Failure::Work(error.to_string()))
}

/// Refuses figures that no study has.
///
/// # Errors
/// [`Failure::Request`] with the existing ones.
pub fn refuse_unknown_figures(studies: &[Study], figures: &[String]) -> Result<(), Failure> {
    paper::refuse_unknown_figures(studies, figures)
}

/// Writes the folder of `paper --report`.
///
/// # Errors
/// If it cannot be written.
pub fn write_studies(folder: &Path, outcomes: &[StudyOutcome]) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))?;
    paper::write(folder, outcomes)
}

/// Writes the file of `run --report`.
///
/// # Errors
/// If it cannot be drawn or written, or the path holds a file of another kind.
pub fn write_run(path: &Path, scenario: &Scenario, run: &RunOutput, made: Made<'_>) -> Result<(), Failure> {
    let provenance = Provenance::of(scenario, made.command, made.origin);
    let world = run::world(scenario)?;
    let page = RunPage { provenance: &provenance, world: &world, outcome: &run.outcome, series: &run.series };
    let html = page.render().map_err(|error| Failure::Work(format!("report: {error}")))?;
    Target::open(path, Kind::Report)?.write(html.as_bytes())
}

/// Writes the file of `compare --report`; it runs each algorithm once more, for curves over time.
///
/// # Errors
/// If it cannot be drawn or written, or the path holds a file of another kind.
pub fn write_comparison(path: &Path, prepared: Prepared, shown: Shown<'_>) -> Result<(), Failure> {
    let target = Target::open(path, Kind::Report)?;
    let html = compare::page(prepared, shown, &Interrupt::of(Arc::default()))?;
    target.write(html.as_bytes())
}

/// Writes the file of `compare --csv`.
///
/// # Errors
/// If it cannot be written, or the path holds a file of another kind.
pub fn write_csv(path: &Path, of: (&Comparison, &Origin)) -> Result<(), Failure> {
    let target = Target::open(path, Kind::Runs)?;
    let mut bytes = Vec::new();
    csv_table::write(of, &mut bytes).map_err(|error| Failure::Work(error.to_string()))?;
    target.write(&bytes)
}

/// Writes the file of `--out`.
///
/// # Errors
/// If it cannot be written, or the path holds a file of another kind.
pub fn write_table(path: &Path, batch: &RecordBatch) -> Result<(), Failure> {
    tables::write_table(Target::open(path, Kind::Table)?, batch)
}

/// As above, for several batches.
///
/// # Errors
/// If it cannot be written, or the path holds a file of another kind.
pub fn write_tables(path: &Path, table: (&SchemaRef, &[RecordBatch])) -> Result<(), Failure> {
    tables::write_tables(Target::open(path, Kind::Table)?, table)
}

/// A capture or trace during writing. The file has its name after [`Growing::finish`].
pub struct Growing(Target);

impl Growing {
    /// Opens the file of `--pcap`.
    ///
    /// # Errors
    /// If it cannot be written, or the path holds a file of another kind.
    pub fn packets(path: &Path) -> Result<Self, Failure> {
        Target::open(path, Kind::Packets).map(Self)
    }

    /// Opens the file of `--trace`, as a table or as lines.
    ///
    /// # Errors
    /// If it cannot be written, or the path holds a file of another kind.
    pub fn events(path: &Path) -> Result<(Self, bool), Failure> {
        let as_table = run::is_table(path);
        let kind = if as_table { Kind::Table } else { Kind::Events };
        Ok((Self(Target::open(path, kind)?), as_table))
    }

    /// Returns the writer of the file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn writer(&self) -> Result<bentpipe_lab::File, Failure> {
        Ok(Box::new(self.0.writer()?))
    }

    /// Returns the writer of event lines, compressed if the name ends in `.gz`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn events_writer(&self) -> Result<bentpipe_lab::File, Failure> {
        self.0.events()
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish()
    }
}
