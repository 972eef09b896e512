//! The table `completeness`: what is there of each incarnation of each actor.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use deltalake_core::DeltaTable;
use demi_common::sealed::SealedFile;
use demi_schemas::summary::ActorCompleteness;
use demi_schemas::tables::store_completeness;
use serde::Serialize;

use crate::deleted::deleted;
use crate::delta::table_error;
use crate::delta::tags::sealed;
use crate::scan::scan;
use crate::seen::Seen;
use crate::{Store, StoreError};

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompletenessRow {
    /// The system.
    pub system: String,
    /// What is complete, and what came more than once since the store was made.
    #[serde(flatten)]
    pub counts: ActorCompleteness,
    /// Wall-clock time of the event that came last, as logged.
    pub last_time: Option<String>,
}

/// The table as its daemon left it, sorted by system, actor and incarnation; empty where no daemon ran.
///
/// # Errors
/// When it cannot be read.
pub fn completeness(store: &Store) -> Result<Vec<CompletenessRow>, StoreError> {
    store.completeness()?.map_or_else(|| Ok(Vec::new()), |(folder, table)| read(&folder, &table))
}

/// Completeness of each incarnation of each actor, of one system or all, sorted by system, actor and incarnation.
///
/// Sequence numbers are read from the events themselves. Duplicates, conflicts and last times come from the table that
/// the daemon keeps; a store that was only loaded into has none.
///
/// # Errors
/// When the store cannot be read.
pub fn status(store: &Store, system: Option<&str>) -> Result<Vec<CompletenessRow>, StoreError> {
    let counted = completeness(store)?;
    let systems = match system {
        Some(system) => vec![system.to_owned()],
        None => store.systems()?,
    };
    let mut rows = Vec::new();
    for system in systems {
        let files = match store.quarantine_files(&system)?.is_empty() {
            true => store.event_files(&system)?,
            // All of its lines may be there.
            false => store.known_event_files(&system)?,
        };
        let scratch = std::env::temp_dir();
        let seen = Seen::read(
            store.dir().display().to_string(),
            scratch,
            files,
            &deleted(&store.deleted_files(&system)?)?,
        )?;
        for mut counts in seen.completeness() {
            let found = find(&counted, &system, &counts);
            if let Some(row) = found {
                (counts.duplicates, counts.conflicts) = (row.counts.duplicates, row.counts.conflicts);
            }
            let last_time = found.and_then(|row| row.last_time.clone());
            rows.push(CompletenessRow { system: system.clone(), counts, last_time });
        }
    }
    Ok(rows)
}

/// The row of an incarnation among rows that are sorted by system, actor and incarnation.
pub fn find<'r>(
    rows: &'r [CompletenessRow],
    system: &str,
    of: &ActorCompleteness,
) -> Option<&'r CompletenessRow> {
    let wanted = (system, of.actor.as_str(), of.incarnation);
    rows.binary_search_by(|row| row.key().cmp(&wanted)).ok().map(|at| &rows[at])
}

impl CompletenessRow {
    /// System, actor and incarnation, by which rows are sorted.
    pub fn key(&self) -> (&str, &str, u32) {
        (&self.system, &self.counts.actor, self.counts.incarnation)
    }
}

/// The rows as a batch of the table.
pub fn batch(rows: &[CompletenessRow]) -> Result<RecordBatch, ArrowError> {
    let long = |f: fn(&ActorCompleteness) -> u64| -> ArrayRef {
        let mut column = Int64Builder::with_capacity(rows.len());
        rows.iter().for_each(|row| column.append_value(f(&row.counts) as i64));
        Arc::new(column.finish())
    };
    let text = |f: &dyn Fn(&CompletenessRow) -> Option<String>| -> ArrayRef {
        let mut column = StringBuilder::new();
        rows.iter().for_each(|row| column.append_option(f(row)));
        Arc::new(column.finish())
    };
    let mut incarnations = Int32Builder::with_capacity(rows.len());
    rows.iter().for_each(|row| incarnations.append_value(row.counts.incarnation as i32));
    let columns = vec![
        text(&|row| Some(row.system.clone())),
        text(&|row| Some(row.counts.actor.clone())),
        Arc::new(incarnations.finish()),
        long(|l| l.first_seq),
        long(|l| l.last_seq),
        long(|l| l.events),
        long(|l| l.missing),
        text(&|row| serde_json::to_string(&row.counts.gaps).ok()),
        long(|l| l.duplicates),
        long(|l| l.conflicts),
        text(&|row| row.last_time.clone()),
    ];
    RecordBatch::try_new(store_completeness(), columns)
}

/// Reads the table in `folder` as it is now.
pub fn read(folder: &Path, table: &DeltaTable) -> Result<Vec<CompletenessRow>, StoreError> {
    let dir = folder.display().to_string();
    let snapshot = table.snapshot().map_err(|e| table_error(&dir, "read this table", e))?;
    let files: Vec<_> = snapshot.log_data().into_iter().map(|file| sealed(folder, &file)).collect();
    let store = folder.parent().unwrap_or(folder);
    crate::delta::remote::fetch(store, files.iter().map(SealedFile::path))?;
    let mut rows = Vec::new();
    each(&files, |row| {
        rows.push(row);
        Ok(())
    })?;
    rows.sort_by(|a, b| a.key().cmp(&b.key()));
    Ok(rows)
}

/// Calls `take` with each row of the files, in order.
pub fn each(
    files: &[SealedFile],
    mut take: impl FnMut(CompletenessRow) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let columns = [
        ("system", DataType::Utf8),
        ("actor", DataType::Utf8),
        ("gaps", DataType::Utf8),
        ("last_time", DataType::Utf8),
        ("incarnation", DataType::Int32),
        ("first_seq", DataType::Int64),
        ("last_seq", DataType::Int64),
        ("events", DataType::Int64),
        ("missing", DataType::Int64),
        ("duplicates", DataType::Int64),
        ("conflicts", DataType::Int64),
    ];
    scan(files, &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        let long = |i: usize, row: usize| batch.column(i).as_primitive::<Int64Type>().value(row) as u64;
        for row in 0..batch.num_rows() {
            take(CompletenessRow {
                system: text(0).value(row).to_owned(),
                counts: ActorCompleteness {
                    actor: text(1).value(row).to_owned(),
                    incarnation: batch.column(4).as_primitive::<Int32Type>().value(row) as u32,
                    events: long(7, row),
                    first_seq: long(5, row),
                    last_seq: long(6, row),
                    gaps: serde_json::from_str(text(2).value(row)).unwrap_or_default(),
                    missing: long(8, row),
                    duplicates: long(9, row),
                    conflicts: long(10, row),
                },
                last_time: text(3).is_valid(row).then(|| text(3).value(row).to_owned()),
            })?;
        }
        Ok(())
    })
}
