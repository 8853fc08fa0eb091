//! Conversion of columns to an Arrow batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use bentpipe_lab::columns::{Column, Values};

/// Content of a table, stored in its metadata as `bentpipe.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One row per run of a comparison.
    Runs,
    /// One row per point of a comparison, over its seeds.
    Summaries,
    /// One row per flow, link, channel or node of a run.
    Run,
    /// One row per event of a run.
    Trace,
    /// One row per quantity of finished runs.
    Store,
}

impl Kind {
    /// Returns the metadata value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Summaries => "summaries",
            Self::Run => "run",
            Self::Trace => "trace",
            Self::Store => "store",
        }
    }

    /// Returns the metadata of a table: its content, and the version of Bentpipe that wrote it.
    pub(crate) fn metadata(self) -> HashMap<String, String> {
        let version = env!("CARGO_PKG_VERSION");
        [("bentpipe.kind", self.name()), ("bentpipe.version", version)]
            .map(|(k, v)| (k.into(), v.into()))
            .into()
    }
}

/// Returns the columns as one batch with additional metadata. The metadata of a column holds its
/// `unit`.
///
/// # Panics
/// If the columns differ in length; `bentpipe_lab::columns` makes them equal.
pub fn batch(kind: Kind, columns: Vec<Column>, more: &[(&str, String)]) -> RecordBatch {
    let mut metadata = kind.metadata();
    metadata.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().map(field).unzip();
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), arrays).expect("every column has a value for each line")
}

fn field(column: Column) -> (Field, ArrayRef) {
    let unit = column.unit();
    let (kind, array): (DataType, ArrayRef) = match column.values {
        Values::Text(values) => (DataType::Utf8, Arc::new(StringArray::from(values))),
        Values::Whole(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values))),
        Values::Number(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
        Values::Typed(values) => {
            let number = |value: &bentpipe_lab::Value| {
                value.quantity().filter(|(_, unit)| unit.is_empty()).map(|(number, _)| number)
            };
            match values.iter().map(number).collect::<Option<Vec<f64>>>() {
                Some(numbers) => (DataType::Float64, Arc::new(Float64Array::from(numbers))),
                None => {
                    (DataType::Utf8, Arc::new(StringArray::from_iter_values(values.iter().map(|v| &v.0))))
                }
            }
        }
    };
    let metadata =
        if unit.is_empty() { HashMap::new() } else { HashMap::from([("unit".to_owned(), unit.to_owned())]) };
    (Field::new(column.name, kind, true).with_metadata(metadata), array)
}
