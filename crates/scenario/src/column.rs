//! A column of a file with measurements, and mistakes in it.

use std::path::PathBuf;

use bentpipe_base::Duration;

/// Time series: one column of a CSV file over another one that holds times.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Path of the file in the scenario.
    pub file: String,
    /// Name of the column from the header line, or its number from 1.
    pub column: String,
    /// Unit of the column; empty if it has none, or if the fields include it.
    pub unit: String,
    /// Factor that the numbers of the column are multiplied by.
    pub factor: f64,
    /// Name of the time column; empty for the first column.
    pub time: String,
    /// Unit of the times, if they are numbers.
    pub time_unit: Duration,
    /// Time between two rows of a file without times.
    pub every: Option<Duration>,
    /// Values that mean that nothing was measured.
    pub missing: Vec<String>,
    /// Time when the series repeats.
    pub repeat: Repeat,
    /// Folder that the file's path is relative to.
    pub(crate) folder: PathBuf,
}

/// Time when a series repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// Never: the last row holds for the rest of the run.
    Never,
    /// After the last row, which lasts as long as the row before it.
    AtEnd,
    /// After this period.
    Every(Duration),
}

impl Default for Series {
    /// Returns a series without a file, with times in seconds in the first column.
    fn default() -> Self {
        Self {
            file: String::new(),
            column: String::new(),
            unit: String::new(),
            factor: 1.0,
            time: String::new(),
            time_unit: Duration::from_secs(1),
            every: None,
            missing: Vec::new(),
            repeat: Repeat::Never,
            folder: PathBuf::new(),
        }
    }
}

impl Series {
    /// False if the rows have no times, but follow one another at a fixed distance.
    pub(crate) fn has_times(&self) -> bool {
        self.every.is_none() || !self.time.is_empty()
    }
}

/// Mistake in a file, with its place, what was found and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    /// Line number from 1.
    pub line: usize,
    /// Column in characters from 1.
    pub column: usize,
    pub found: String,
    pub accepted: String,
}

impl Wrong {
    pub fn new(
        (line, column): (usize, usize),
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self { line, column, found: found.into(), accepted: accepted.into() }
    }
}
