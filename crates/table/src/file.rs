//! Parquet files.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// Text near the end of every Parquet file written by Bentpipe, and of no other file.
pub const MARK: &[u8] = b"bentpipe.kind";

/// Writer of a Parquet file. The file is readable only after [`Parquet::finish`].
pub struct Parquet<W: Write + Send> {
    writer: ArrowWriter<W>,
}

pub(crate) fn failed(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

impl<W: Write + Send> Parquet<W> {
    /// Starts a file with this schema.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, schema: SchemaRef) -> io::Result<Self> {
        // The file contains the Arrow schema in encoded form; this adds its metadata as plain text.
        let mut metadata: Vec<KeyValue> = schema
            .metadata()
            .iter()
            .map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()))
            .collect();
        metadata.sort_by(|a, b| a.key.cmp(&b.key));
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(metadata))
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("Bentpipe ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Ok(Self { writer: ArrowWriter::try_new(out, schema, Some(properties)).map_err(failed)? })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(failed)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(failed)
    }
}

/// Writes a table as a file.
///
/// # Errors
/// The errors of `out`.
pub fn write(batch: &RecordBatch, out: impl Write + Send) -> io::Result<()> {
    let mut file = Parquet::new(out, batch.schema())?;
    file.write(batch)?;
    file.finish()?.flush()
}

/// Returns a table as an Arrow IPC stream, for [`from_bytes`] and any Arrow library.
///
/// # Errors
/// The errors of the writer.
pub fn to_bytes(batch: &RecordBatch) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let written = StreamWriter::try_new(&mut bytes, &batch.schema()).and_then(|mut writer| {
        writer.write(batch)?;
        writer.finish()
    });
    written.map(|()| bytes).map_err(|error| error.to_string())
}

/// Returns the batches of a table written by [`to_bytes`].
///
/// # Errors
/// If the bytes are not an Arrow IPC stream.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<RecordBatch>, String> {
    let reader = StreamReader::try_new(bytes, None).and_then(Iterator::collect);
    reader.map_err(|error: ArrowError| error.to_string())
}
