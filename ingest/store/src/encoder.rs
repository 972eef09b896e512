//! Batches as a Parquet file, whose columns are encoded side by side.
//!
//! A column is encoded by itself, so the bytes are the same however many threads there are.

use std::io::Write;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

/// Rows of a batch from which on it is worth the while to wake other threads.
const MANY_ROWS: usize = 2048;

/// Encodes batches of one schema, in which no column has parts, into a file.
pub(crate) struct Encoder<W: Write + Send> {
    file: SerializedFileWriter<W>,
    groups: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// Rows of a row group.
    most: usize,
    /// Columns of the row group at hand, and its rows.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
    /// How many row groups are written.
    written: usize,
}

impl<W: Write + Send> Encoder<W> {
    /// Begins a file.
    pub(crate) fn new(out: W, schema: SchemaRef, properties: WriterProperties) -> Result<Self> {
        let most = properties.max_row_group_row_count().unwrap_or(usize::MAX).max(1);
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
        let (file, groups) = writer.into_serialized_writer()?;
        Ok(Encoder { file, groups, schema, most, columns: Vec::new(), rows: 0, written: 0 })
    }

    /// Adds a batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let length = (batch.num_rows() - from).min(self.most - self.rows);
            self.write_part(&batch.slice(from, length))?;
            from += length;
            if self.rows == self.most {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.rows == 0 {
            self.columns = self.groups.create_column_writers(self.written)?;
        }
        if self.columns.len() != self.schema.fields().len() || batch.num_columns() != self.columns.len() {
            return Err(ParquetError::General("a column has parts, or is missing".to_owned()));
        }
        self.rows += batch.num_rows();
        let of = |((column, field), array): ((&mut ArrowColumnWriter, &FieldRef), &ArrayRef)| {
            compute_leaves(field, array)?.iter().try_for_each(|leaf| column.write(leaf))
        };
        let fields: &[FieldRef] = self.schema.fields();
        if batch.num_rows() < MANY_ROWS {
            return self.columns.iter_mut().zip(fields).zip(batch.columns()).try_for_each(of);
        }
        let columns = self.columns.par_iter_mut().zip(fields).zip(batch.columns());
        columns.with_max_len(1).try_for_each(of)
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns);
        let chunks: Vec<ArrowColumnChunk> = if self.rows < MANY_ROWS {
            columns.into_iter().map(ArrowColumnWriter::close).collect::<Result<_>>()?
        } else {
            columns.into_par_iter().with_max_len(1).map(ArrowColumnWriter::close).collect::<Result<_>>()?
        };
        let mut group = self.file.next_row_group()?;
        chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))?;
        group.close()?;
        self.rows = 0;
        self.written += 1;
        Ok(())
    }

    /// What is written to.
    pub(crate) fn out(&mut self) -> &mut W {
        self.file.inner_mut()
    }

    /// Ends the file, and says what is in it.
    pub(crate) fn finish(&mut self) -> Result<ParquetMetaData> {
        self.end_group()?;
        self.file.finish()
    }

    /// Ends the file.
    pub(crate) fn into_inner(mut self) -> Result<W> {
        self.end_group()?;
        self.file.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn batches(sizes: &[usize]) -> Vec<RecordBatch> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, false),
            Field::new("text", DataType::Utf8, true),
            Field::new("none", DataType::Utf8, true),
        ]));
        let mut from = 0;
        let of = |size: &usize| {
            let rows = from..from + *size as i64;
            from = rows.end;
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from_iter_values(rows.clone())),
                Arc::new(StringArray::from_iter(
                    rows.clone().map(|n| (n % 3 > 0).then(|| format!("{}", n * n % 97))),
                )),
                arrow_array::new_null_array(&DataType::Utf8, rows.count()),
            ];
            RecordBatch::try_new(schema.clone(), columns).unwrap()
        };
        sizes.iter().map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// The file is the one that the library writes with one thread, however many there are.
        #[test]
        fn the_bytes_are_those_of_one_thread(
            sizes in proptest::collection::vec(prop_oneof![0usize..50, 0usize..9000], 1..5), group in 700usize..9000, threads in 1usize..5,
        ) {
            let batches = batches(&sizes);
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
            let schema = batches[0].schema();
            let mut alone = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.clone())).unwrap();
            batches.iter().for_each(|batch| alone.write(batch).unwrap());
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let together = pool.install(|| {
                let mut encoder = Encoder::new(Vec::new(), schema, properties).unwrap();
                batches.iter().for_each(|batch| encoder.write(batch).unwrap());
                encoder.into_inner().unwrap()
            });
            prop_assert!(together == alone.into_inner().unwrap());
        }
    }
}
