//! Upkeep of a table between commits: small files merged, old ones removed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{ArrowError, SchemaRef};
use chrono::TimeDelta;
use deltalake_core::kernel::Remove;
use deltalake_core::operations::vacuum::VacuumMode;
use deltalake_core::writer::{DeltaWriter, RecordBatchWriter};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::table::{TableWriter, properties};
use crate::IngestError;

/// Bytes of small files merged at a time, so that commits are not held up for long.
const MOST_BYTES: u64 = 256 << 20;
/// When files are small, and few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallFiles {
    /// Size below which a file is small, in bytes.
    pub bytes: u64,
    /// Small files of a partition that are merged when there are so many.
    pub count: usize,
}

/// Small files of one partition, oldest first.
#[derive(Default)]
struct Small {
    files: Vec<(i64, String, u64, Remove)>,
}

/// Merges the small files of the first partition that has enough of them; says how many.
pub(crate) fn merge(table: &mut TableWriter, few: SmallFiles) -> Result<u64, IngestError> {
    let mut partitions: BTreeMap<Vec<(String, Option<String>)>, Small> = BTreeMap::new();
    let snapshot = table.table.snapshot().map_err(table.error("read the table"))?;
    for file in snapshot.log_data() {
        let size = u64::try_from(file.size()).unwrap_or(0);
        if size >= few.bytes {
            continue;
        }
        let mut key: Vec<_> = file.partition_values_map().into_iter().collect();
        key.sort();
        let entry = (file.modification_time(), file.path().into_owned(), size, file.remove_action(false));
        partitions.entry(key).or_default().files.push(entry);
    }
    let Some((partition, mut small)) =
        partitions.into_iter().find(|(_, small)| small.files.len() >= few.count.max(2))
    else {
        return Ok(0);
    };
    small.files.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let mut bytes = 0;
    small.files.retain(|file| {
        bytes += file.2;
        bytes <= MOST_BYTES
    });
    // The merged file stands where the last of its parts stood in the order of the files.
    let time = small.files.last().map_or(0, |file| file.0);
    let runtime = table.runtime().clone();
    let folder = table.folder().to_owned();
    let delta = table.table.clone();
    let merged = runtime.block_on(async {
        let mut writer = RecordBatchWriter::for_table(&delta)?.with_writer_properties(properties()?);
        let schema = writer.arrow_schema();
        for (_, path, _, _) in &small.files {
            let file = std::fs::File::open(folder.join(path))?;
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                .and_then(|builder| builder.with_batch_size(8192).build())
                .map_err(|source| deltalake_core::DeltaTableError::Parquet { source })?;
            for batch in reader {
                let whole = batch.and_then(|batch| with_partition(&batch, &schema, &partition));
                writer
                    .write(whole.map_err(|source| deltalake_core::DeltaTableError::Arrow { source })?)
                    .await?;
            }
        }
        writer.flush().await
    });
    let mut adds = merged.map_err(table.error("merge small files"))?;
    adds.iter_mut().for_each(|add| add.modification_time = time);
    let count = small.files.len() as u64;
    table.rewrite(adds, small.files.into_iter().map(|file| file.3).collect())?;
    Ok(count)
}

/// A batch of a data file with all columns of the table: partition values are in the file's path, and columns that
/// are younger than the file are null.
fn with_partition(
    batch: &RecordBatch,
    schema: &SchemaRef,
    partition: &[(String, Option<String>)],
) -> Result<RecordBatch, ArrowError> {
    let rows = batch.num_rows();
    let columns = schema.fields().iter().map(|field| {
        if let Some(column) = batch.column_by_name(field.name()) {
            return arrow_cast::cast(column, field.data_type());
        }
        match partition.iter().find(|(name, _)| name == field.name()) {
            Some((_, Some(value))) => {
                let text: ArrayRef =
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)));
                arrow_cast::cast(&text, field.data_type())
            }
            _ => Ok(new_null_array(field.data_type(), rows)),
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}

/// Removes data files that have not been part of the table for so long.
pub(crate) fn vacuum(table: &mut TableWriter, keep: Duration) -> Result<(), IngestError> {
    let keep = TimeDelta::from_std(keep).unwrap_or(TimeDelta::MAX);
    let delta = table.table.clone();
    let done = table.runtime().block_on(async {
        // How long files are kept is for the configuration to say.
        let vacuum = delta.vacuum().with_retention_period(keep).with_enforce_retention_duration(false);
        vacuum.with_mode(VacuumMode::Full).await
    });
    let (_, removed) = done.map_err(table.error("remove old files"))?;
    if !removed.files_deleted.is_empty() {
        tracing::info!(
            files = removed.files_deleted.len(),
            "removed files that are no longer part of the store"
        );
    }
    table.update().map_err(table.error("read the table"))
}

#[cfg(test)]
mod tests;
