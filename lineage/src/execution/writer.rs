//! Writing the tables of an execution, beside the thread that makes the rows.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, RecordBatchWriter};
use arrow_schema::{Schema, SchemaRef};
use demi_common::sealed::SealedWriter;
use demi_schemas::tables;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::error::LineageError;

/// Rows of a row group: what the writer holds in memory.
const GROUP_ROWS: usize = 256 * 1024;

/// A file of rows, with its digests.
pub(crate) type RowFile = ArrowWriter<SealedWriter<File>>;

/// Opens a zstd Parquet file for rows of that schema; `plain` columns have hardly any value twice.
pub(crate) fn table(path: &Path, schema: &SchemaRef, plain: &[&str]) -> Result<RowFile, LineageError> {
    let file = SealedWriter::new(File::create(path).map_err(LineageError::io(path))?);
    table_in(file, path, schema, plain)
}

/// The same, without digests: `out` is the file of that path.
pub(crate) fn table_in<W: Write + Send>(
    out: W,
    path: &Path,
    schema: &SchemaRef,
    plain: &[&str],
) -> Result<ArrowWriter<W>, LineageError> {
    let properties = properties(plain).build();
    ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(LineageError::table(path))
}

/// How tables are written.
pub(crate) fn properties(plain: &[&str]) -> WriterPropertiesBuilder {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by("demi-lineage".into());
    for column in plain {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), false);
    }
    properties
}

/// Ends the file, and writes its digests beside it.
pub(crate) fn close(rows: RowFile, path: &Path) -> Result<(), LineageError> {
    let file = rows.into_inner().map_err(LineageError::table(path))?;
    file.finish(path).map_err(LineageError::io(path))
}

/// The schema with the version of the tables in its metadata.
pub(crate) fn versioned(schema: &SchemaRef) -> SchemaRef {
    let metadata = [("demi.schema".to_owned(), tables::TABLES_VERSION.to_owned())];
    Arc::new(Schema::clone(schema).with_metadata(metadata.into()))
}

/// Begins the table of events of an execution.
pub(crate) fn event_table(path: &Path) -> Result<TableWriter, LineageError> {
    TableWriter::begin(path, &tables::execution_events(), &["msg_id", "seq", "offset", "order", "payload"])
}

/// Begins the table of messages of an execution.
pub(crate) fn message_table(path: &Path) -> Result<TableWriter, LineageError> {
    TableWriter::begin(path, &tables::execution_messages(), &["msg_id", "send_seq", "receive_seq"])
}

/// A table written by a thread of its own.
pub(crate) struct TableWriter {
    schema: SchemaRef,
    rows: SyncSender<RecordBatch>,
    thread: JoinHandle<Result<(), LineageError>>,
}

impl TableWriter {
    /// Begins the table.
    pub(crate) fn begin(
        path: &Path,
        schema: &SchemaRef,
        plain: &[&str],
    ) -> Result<TableWriter, LineageError> {
        let schema = versioned(schema);
        let mut writer = table(path, &schema, plain)?;
        let (rows, queue): (_, Receiver<RecordBatch>) = sync_channel(2);
        let path = path.to_owned();
        let thread = std::thread::spawn(move || {
            for batch in queue {
                RecordBatchWriter::write(&mut writer, &batch).map_err(LineageError::table(&path))?;
            }
            close(writer, &path)
        });
        Ok(TableWriter { schema, rows, thread })
    }

    /// The schema with its metadata.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Adds rows; an error of the thread is told by [`TableWriter::finish`].
    pub(crate) fn add(&self, batch: RecordBatch) -> Result<(), LineageError> {
        self.rows.send(batch).map_err(|_| LineageError::WriterGone)
    }

    /// Waits until all is written.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        drop(self.rows);
        self.thread.join().unwrap_or(Err(LineageError::WriterGone))
    }
}
