//! Tables for Python, through the Arrow PyCapsule interface.

use std::path::PathBuf;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use bentpipe_table::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::fault;

/// Columns that pyarrow, pandas, polars and DuckDB read without conversion.
#[pyclass(frozen, name = "Table", module = "bentpipe")]
pub struct PyTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl PyTable {
    /// Makes a table of batches with one schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Makes a table of one batch.
    pub fn of(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

#[pymethods]
impl PyTable {
    /// Returns the number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// Returns the names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the units of the columns that have one, by name.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for field in self.schema.fields() {
            if let Some(unit) = field.metadata().get("unit") {
                units.set_item(field.name(), unit.to_string())?;
            }
        }
        Ok(units)
    }

    /// Returns the content kind of the table, the version that made it, and the scenario as TOML
    /// if it has one.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (key, value) in self.schema.metadata() {
            all.set_item(key.to_string(), value.to_string())?;
        }
        Ok(all)
    }

    /// Writes the table as a Parquet file, which is complete or absent.
    fn write_parquet(&self, path: PathBuf) -> PyResult<()> {
        bentpipe_cli::embed::write_tables(&path, (&self.schema, &self.batches)).map_err(fault::of_command)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested types.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.schema.clone()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(fault::work)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
