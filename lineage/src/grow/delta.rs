//! The events of a delta, with the messages of the base that are on their way.

use std::path::{Path, PathBuf};

use arrow_array::builder::BooleanBuilder;
use arrow_array::{Array, RecordBatch};
use arrow_select::filter::filter_record_batch;
use demi_common::sealed::SealedFile;
use demi_schemas::EventId;
use rustc_hash::FxHashSet;

use super::{Anew, LARGEST};
use crate::error::LineageError;
use crate::execution::writer;
use crate::index::Index;
use crate::read::{Loaded, Source, beside, columns, record_schema, records};

/// The files of a store.
pub(crate) struct Files<'a> {
    /// All of them.
    pub(crate) all: &'a [SealedFile],
    /// Those that the base was not built of.
    pub(crate) new: &'a [SealedFile],
    /// The base's messages on their way.
    pub(crate) open: PathBuf,
}

/// Events of a delta and open sends of the base, sorted by actor and sequence number: in each log the base's come first.
pub(crate) struct Delta {
    /// The files that they were read from.
    pub(crate) files: Vec<SealedFile>,
    /// The events.
    pub(crate) loaded: Loaded,
    /// By event: its number in the base, or nothing for what was added.
    pub(crate) in_base: Vec<Option<u32>>,
}

impl Delta {
    /// Reads what the base does not have.
    pub(crate) fn read(
        files: &Files<'_>,
        base: &Index,
        system: &str,
        scratch: &Path,
    ) -> Result<Result<Delta, Anew>, LineageError> {
        let path = scratch.join("added.parquet");
        let (added, known) = copy_new(files.new, base, &path)?;
        // What stands in files that the base was built of is all in the base; the rest may be there again, rewritten.
        let mut rows = 0;
        for file in files.all.iter().filter(|f| !files.new.contains(f)) {
            rows += rows_of(file)?;
        }
        let events = u64::from(base.header().events);
        if rows + known != events {
            return Ok(Err(Anew::Gone));
        }
        if added as f64 > events as f64 * LARGEST {
            return Ok(Err(Anew::Large));
        }
        let files = vec![beside(&files.open)?, beside(&path)?];
        let loaded = records::read(&files, system)?;
        if loaded.clocked || loaded.has_parents {
            return Ok(Err(Anew::Clocks));
        }
        let events = &loaded.events;
        let mut in_base = Vec::with_capacity(events.len());
        for actor in 0..events.actors.len() as u32 {
            let last = match base.find_actor(events.actor_name(actor)) {
                None => None,
                Some(a) => Some(base.name(base.events_of(a).end - 1)?),
            };
            for e in events.of_actor(actor) {
                let id = events.name(e);
                let found = base.find(&id)?;
                let here = (id.incarnation, id.seq);
                if found.is_none() && last.as_ref().is_some_and(|l| here < (l.incarnation, l.seq)) {
                    return Ok(Err(Anew::Older));
                }
                in_base.push(found);
            }
        }
        Ok(Ok(Delta { files, loaded, in_base }))
    }
}

fn rows_of(file: &SealedFile) -> Result<u64, LineageError> {
    let opened = file.open().map_err(LineageError::io(file.path()))?;
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(opened);
    let rows = reader.map_err(LineageError::table(file.path()))?.metadata().file_metadata().num_rows();
    Ok(rows.unsigned_abs())
}

/// Copies the rows of files that the base does not have, and gives how many there are, and how many it has.
fn copy_new(files: &[SealedFile], base: &Index, path: &Path) -> Result<(u64, u64), LineageError> {
    let schema = record_schema();
    let mut out = writer::table(path, &schema, &["msg_id", "seq", "offset", "payload"])?;
    let (mut added, mut known) = (0, FxHashSet::default());
    for file in files {
        for batch in Source::open(file, &schema)? {
            let batch = batch?;
            let new = is_new(&batch, base, &mut known)?;
            let batch = filter_record_batch(&batch, &new)?;
            added += batch.num_rows() as u64;
            out.write(&batch).map_err(LineageError::table(path))?;
        }
    }
    writer::close(out, path)?;
    Ok((added, known.len() as u64))
}

fn is_new(
    batch: &RecordBatch,
    base: &Index,
    known: &mut FxHashSet<u32>,
) -> Result<arrow_array::BooleanArray, LineageError> {
    let actor = columns::text(batch, "actor")?;
    let (incarnation, seq) = (columns::int(batch, "incarnation")?, columns::long(batch, "seq")?);
    let mut new = BooleanBuilder::with_capacity(batch.num_rows());
    for row in 0..actor.len() {
        let id = EventId {
            actor: actor.value(row).to_owned(),
            incarnation: incarnation.value(row).unsigned_abs(),
            seq: seq.value(row).unsigned_abs(),
        };
        let found = base.find(&id)?;
        known.extend(found);
        new.append_value(found.is_none());
    }
    Ok(new.finish())
}
