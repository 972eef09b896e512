//! Upkeep of a table between commits: small files merged, old ones removed.

mod order;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use chrono::TimeDelta;
use deltalake_core::kernel::Remove;
use deltalake_core::operations::vacuum::VacuumMode;
use deltalake_core::writer::{DeltaWriter, RecordBatchWriter};
use demi_common::sealed::{Contained, SealedFile};
use parquet::file::metadata::SortingColumn;

use self::order::Order;
use super::partition::with_partition;
use super::table::TableWriter;
use super::{tags, tiers};
use crate::StoreError;
use crate::data_file::properties;
use crate::scan::builder;

/// Bytes of small files merged at a time, so that commits are not held up for long.
const MOST_BYTES: u64 = 256 << 20;
/// How many times what a table has its dead files may be, after a vacuum.
const DEAD: u64 = 2;
/// How long a dead file stays in any case, for readers that are at it.
const LEAST_KEEP: Duration = Duration::from_secs(30);

/// When files are small, and few.
#[derive(Clone, Copy, Debug)]
pub struct SmallFiles {
    /// Size below which a file is small, in bytes.
    pub bytes: u64,
    /// Small files of a partition that are merged when there are so many.
    pub count: usize,
}

/// Small files of one partition, oldest first.
#[derive(Default)]
struct Small {
    files: Vec<(i64, SealedFile, u64, Remove)>,
}

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Files merged into one.
    pub files: u64,
    /// Their bytes, which are dead from then on.
    pub bytes: u64,
}

/// Merges small files of like size of the first partition that has enough of them, and says how many. Rows that have the name of an event
/// are brought into the order of these names, unless there are too many.
pub fn merge(table: &mut TableWriter, few: SmallFiles) -> Result<Merged, StoreError> {
    let mut partitions: BTreeMap<Vec<(String, Option<String>)>, Small> = BTreeMap::new();
    let snapshot = table.table.snapshot().map_err(table.error("read the table"))?;
    for file in snapshot.log_data() {
        let size = u64::try_from(file.size()).unwrap_or(0);
        if size >= few.bytes {
            continue;
        }
        let mut key: Vec<_> = file.partition_values_map().into_iter().collect();
        key.sort();
        let sealed = tags::sealed(table.folder(), &file);
        let entry = (file.modification_time(), sealed, size, file.remove_action(false));
        partitions.entry(key).or_default().files.push(entry);
    }
    let chosen = partitions.into_iter().find_map(|(partition, mut small)| {
        small.files.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let sizes: Vec<u64> = small.files.iter().map(|file| file.2).collect();
        let run = tiers::run(&sizes, few.count, MOST_BYTES)?;
        small.files = small.files.drain(run).collect();
        Some((partition, small))
    });
    let Some((partition, small)) = chosen else { return Ok(Merged::default()) };
    // The merged file stands where the last of its parts stood in the order of the files.
    let time = small.files.last().map_or(0, |file| file.0);
    let runtime = table.runtime().clone();
    let delta = table.table.clone();
    let files: Vec<SealedFile> = small.files.iter().map(|file| file.1.clone()).collect();
    table.fetch(files.iter())?;
    let writer = RecordBatchWriter::for_table(&delta).map_err(table.error("merge small files"))?;
    let schema = writer.arrow_schema();
    let named = ["actor", "incarnation", "seq"].iter().all(|name| schema.index_of(name).is_ok());
    let order = if named { Order::of(&files)? } else { None };
    let whole = |batch: &RecordBatch| with_partition(batch, &schema, &partition);
    let merged = runtime.block_on(async {
        let in_order = order.is_some().then(|| sorted_by(&schema, &partition));
        let mut writer = writer.with_writer_properties(properties(in_order)?);
        if let Some(order) = &order {
            for batch in order.stretches(&schema, whole) {
                writer.write(batch?).await?;
            }
            return writer.flush().await;
        }
        for file in &files {
            let reader = builder(file)
                .and_then(|builder| builder.with_batch_size(8192).build())
                .map_err(|source| deltalake_core::DeltaTableError::Parquet { source })?;
            for batch in Contained::from(reader) {
                let whole = batch.and_then(|batch| whole(&batch));
                writer
                    .write(whole.map_err(|source| deltalake_core::DeltaTableError::Arrow { source })?)
                    .await?;
            }
        }
        writer.flush().await
    });
    let mut adds = merged.map_err(table.error("merge small files"))?;
    adds.iter_mut().for_each(|add| add.modification_time = time);
    let done = Merged { files: small.files.len() as u64, bytes: small.files.iter().map(|file| file.2).sum() };
    table.rewrite(adds, small.files.into_iter().map(|file| file.3).collect())?;
    Ok(done)
}

/// By which columns of a data file its rows are in order: the place of each in the file, which lacks those of the partition.
fn sorted_by(schema: &SchemaRef, partition: &[(String, Option<String>)]) -> Vec<SortingColumn> {
    let kept = schema.fields().iter().filter(|field| partition.iter().all(|(name, _)| name != field.name()));
    let names: Vec<&str> = kept.map(|field| field.name().as_str()).collect();
    let place = |wanted: &&str| names.iter().position(|name| name == wanted);
    let places = ["actor", "incarnation", "seq"].iter().filter_map(place);
    let by = |place| SortingColumn { column_idx: place as i32, descending: false, nulls_first: false };
    places.map(by).collect()
}

/// Removes data files that have not been part of the table for so long, and earlier where they are more than twice what the table has;
/// none before a reader that holds the version before had a moment.
pub fn vacuum(table: &mut TableWriter, keep: Duration) -> Result<(), StoreError> {
    let mut keep = keep;
    loop {
        remove(table, keep)?;
        let (live, dead) = live_and_dead(table)?;
        if dead <= live.saturating_mul(DEAD) || keep <= LEAST_KEEP {
            return Ok(());
        }
        keep = (keep / 4).max(LEAST_KEEP);
    }
}

/// Bytes of the files that the table has, and of those beside them that it had.
fn live_and_dead(table: &TableWriter) -> Result<(u64, u64), StoreError> {
    let snapshot = table.table.snapshot().map_err(table.error("read the table"))?;
    let live: u64 = snapshot.log_data().iter().map(|file| u64::try_from(file.size()).unwrap_or(0)).sum();
    let all = bytes_of(table.folder()).map_err(|source| StoreError::Io {
        path: table.folder().to_owned(),
        action: "list the files",
        source,
    })?;
    Ok((live, all.saturating_sub(live)))
}

/// Bytes of the files below a folder, the log left out.
fn bytes_of(folder: &Path) -> std::io::Result<u64> {
    let mut all = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != "_delta_log" {
                folders.push(entry.path());
            } else if kind.is_file() {
                // A file that went while it was looked at is no burden.
                all += entry.metadata().map_or(0, |m| m.len());
            }
        }
    }
    Ok(all)
}

fn remove(table: &mut TableWriter, keep: Duration) -> Result<(), StoreError> {
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
