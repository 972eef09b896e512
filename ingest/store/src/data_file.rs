//! Data files in Parquet: those of tables, and those that one build reads.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use demi_common::sealed::{SealedFile, SealedWriter};
use demi_schemas::tables::TABLES_VERSION;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::StoreError;
use crate::columns::Sink;
use crate::encoder::Encoder;

/// Rows of a row group.
const ROW_GROUP: usize = 128 * 1024;
const ZSTD_LEVEL: i32 = 3;
/// Columns of numbers that have hardly any value twice, and mostly grow from row to row: what they grow by is small. To look for a value that
/// was there before would cost more than all else.
const NUMBERS: [&str; 3] = ["seq", "offset", "line"];
/// Such columns of texts, of which one mostly begins as the one before.
const TEXTS: [&str; 3] = ["msg_id", "payload", "time"];

/// How files of the store's tables are written, whose rows are in the order of these columns.
pub(crate) fn properties(in_order: Option<Vec<SortingColumn>>) -> Result<WriterProperties, ParquetError> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL)?;
    let version = KeyValue::new("demi.schema".to_owned(), TABLES_VERSION.to_owned());
    let mut properties = WriterProperties::builder();
    let numbers = NUMBERS.map(|column| (column, Encoding::DELTA_BINARY_PACKED));
    let texts = TEXTS.map(|column| (column, Encoding::DELTA_BYTE_ARRAY));
    for (column, encoding) in numbers.into_iter().chain(texts) {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(column), false)
            .set_column_encoding(ColumnPath::from(column), encoding);
    }
    Ok(properties
        .set_created_by(concat!("demi-lineage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_key_value_metadata(Some(vec![version]))
        .set_sorting_columns(in_order)
        .build())
}

/// Writes a data file that belongs to no table. It is made with its first rows.
pub(crate) struct DataFileWriter {
    path: PathBuf,
    /// The columns of the table that stand in the path of its files, and not in the files.
    partitions: &'static [&'static str],
    writer: Option<Encoder<SealedWriter<BufWriter<File>>>>,
}

impl DataFileWriter {
    /// A writer of the file at `path`, without the columns of `partitions`.
    pub(crate) fn new(path: PathBuf, partitions: &'static [&'static str]) -> Self {
        DataFileWriter { path, partitions, writer: None }
    }

    /// Ends the file, which is on the disk then; `None` where no row came.
    pub(crate) fn finish(self) -> Result<Option<SealedFile>, StoreError> {
        let Some(writer) = self.writer else { return Ok(None) };
        let path = self.path;
        let sealing = writer.into_inner().map_err(failed(&path))?;
        let done = sealing.finish(&path).and_then(|()| File::open(&path)?.sync_all());
        let sealed = done.and_then(|()| SealedFile::beside(&path));
        sealed.map(Some).map_err(|source| StoreError::Io { path, action: "write this file", source })
    }

    fn begin(
        &mut self,
        schema: SchemaRef,
    ) -> Result<&mut Encoder<SealedWriter<BufWriter<File>>>, StoreError> {
        let file = File::create_new(&self.path).map_err(|source| StoreError::Io {
            path: self.path.clone(),
            action: "make this file",
            source,
        })?;
        let properties = properties(None).map_err(failed(&self.path))?;
        let out = SealedWriter::new(BufWriter::new(file));
        let writer = Encoder::new(out, schema, properties).map_err(failed(&self.path))?;
        Ok(self.writer.insert(writer))
    }
}

impl Sink for DataFileWriter {
    fn write(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        let schema = batch.schema();
        let kept: Vec<usize> = (0..schema.fields().len())
            .filter(|at| !self.partitions.contains(&schema.field(*at).name().as_str()))
            .collect();
        let batch = batch.project(&kept)?;
        let failed = failed(&self.path);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.begin(batch.schema())?,
        };
        writer.write(&batch).map_err(failed)
    }
}

fn failed(path: &Path) -> impl Fn(ParquetError) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::DataFile { path: path.clone(), source: Box::new(source) }
}
