//! The events of a delta, with the messages of the base that are on their way.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use demi_common::sealed::SealedFile;
use demi_schemas::EventId;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use super::{LARGEST, RebuildReason};
use crate::error::LineageError;
use crate::execution::writer;
use crate::index::Index;
use crate::read::{Loaded, Source, beside, columns, columns_of, operations, record_schema, records, rows_of};

/// The files of a store, and what became of those that the base was built of.
pub(crate) struct StoreFiles<'a> {
    /// All that the store has.
    all: &'a [SealedFile],
    /// Those that the base was not built of.
    new: &'a [SealedFile],
    /// Those that the base was built of and the store no longer has, as the base holds them.
    gone: &'a [SealedFile],
}

impl<'a> StoreFiles<'a> {
    /// All files, those that are new to the base, and those that only the base has.
    pub(crate) fn new(
        all: &'a [SealedFile],
        new: &'a [SealedFile],
        gone: &'a [SealedFile],
    ) -> StoreFiles<'a> {
        StoreFiles { all, new, gone }
    }
}

impl<'a> StoreFiles<'a> {
    /// All that the store has.
    pub(crate) fn all(&self) -> &'a [SealedFile] {
        self.all
    }
}

/// What stands in the columns of a row that no order needs and that answers show.
const CONTENT: [&str; 7] = ["actor", "incarnation", "seq", "source", "offset", "line", "digest"];

/// Rows that the base has, by what stands in them: equal for two sets of files where these hold equal rows.
#[derive(Default, PartialEq, Eq)]
struct KnownRows {
    events: FxHashSet<u32>,
    /// The sum of the rows' digests, whatever their order.
    content: u128,
}

impl KnownRows {
    fn add(&mut self, event: u32, batch: &RecordBatch, row: usize) -> Result<(), LineageError> {
        if !self.events.insert(event) {
            return Ok(());
        }
        let source = columns::at(columns::text(batch, "source")?, row);
        let (offset, line) = (columns::long(batch, "offset")?, columns::long(batch, "line")?);
        let number = |column: &arrow_array::Int64Array| column.is_valid(row).then(|| column.value(row));
        let digest = columns::long(batch, "digest")?.value(row);
        let shown = format!("{event} {digest} {:?} {:?} {source:?}", number(offset), number(line));
        self.content = self.content.wrapping_add(xxh3_128(shown.as_bytes()));
        Ok(())
    }
}

/// A record's columns, and the digest of its content.
fn with_digest() -> SchemaRef {
    let mut fields: Vec<_> = record_schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("digest", DataType::Int64, false)));
    Arc::new(Schema::new(fields))
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
        files: &StoreFiles<'_>,
        base: &Index,
        open: &Path,
        system: &str,
        scratch: &Path,
    ) -> Result<Result<Option<Delta>, RebuildReason>, LineageError> {
        let path = scratch.join("added.parquet");
        let (added, known) = copy_new(files.new, base, &path)?;
        // What stands in files that the base was built of is all in the base; the rest may be there again, rewritten.
        let mut rows = 0;
        for file in files.all.iter().filter(|f| !files.new.contains(f)) {
            rows += u64::from(rows_of(file)?);
        }
        let events = u64::from(base.header().events);
        if rows + known.events.len() as u64 != events {
            return Ok(Err(RebuildReason::Gone));
        }
        if rows_of_base(files.gone, base)? != known {
            return Ok(Err(RebuildReason::Changed));
        }
        if added == 0 {
            return Ok(Ok(None));
        }
        if added as f64 > events as f64 * LARGEST {
            return Ok(Err(RebuildReason::Large));
        }
        let files = vec![beside(open)?, beside(&path)?];
        let loaded = records::read(&files, system)?;
        let threads = operations::read(&files, &loaded.events, &loaded.placement)?.any;
        if loaded.clocked || loaded.has_spans || threads {
            return Ok(Err(RebuildReason::Clocks));
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
                    return Ok(Err(RebuildReason::Older));
                }
                in_base.push(found);
            }
        }
        Ok(Ok(Some(Delta { files, loaded, in_base })))
    }
}

/// Copies the rows of files that the base does not have, and gives how many there are, and those that it has.
fn copy_new(files: &[SealedFile], base: &Index, path: &Path) -> Result<(u64, KnownRows), LineageError> {
    let schema = record_schema();
    let mut out = writer::table(path, &schema, &["msg_id", "seq", "offset", "payload"])?;
    let (mut added, mut known) = (0, KnownRows::default());
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    for file in files {
        for batch in Source::open(file, &with_digest())? {
            let batch = batch?;
            let mut new = BooleanBuilder::with_capacity(batch.num_rows());
            for (row, found) in found_in(base, &batch)?.into_iter().enumerate() {
                new.append_value(found.is_none());
                if let Some(event) = found {
                    known.add(event, &batch, row)?;
                }
            }
            let batch = filter_record_batch(&batch.project(&columns)?, &new.finish())?;
            added += batch.num_rows() as u64;
            out.write(&batch).map_err(LineageError::table(path))?;
        }
    }
    writer::close(out, path)?;
    Ok((added, known))
}

/// The rows of files that the base was built of.
fn rows_of_base(files: &[SealedFile], base: &Index) -> Result<KnownRows, LineageError> {
    let mut known = KnownRows::default();
    let schema = columns_of(&with_digest(), &CONTENT);
    for file in files {
        for batch in Source::open(file, &schema)? {
            let batch = batch?;
            for (row, found) in found_in(base, &batch)?.into_iter().enumerate() {
                let event = found.ok_or_else(|| base.broken("an event of its rows is not in it".into()))?;
                known.add(event, &batch, row)?;
            }
        }
    }
    Ok(known)
}

/// The numbers that the rows of a batch have in the base.
fn found_in(base: &Index, batch: &RecordBatch) -> Result<Vec<Option<u32>>, LineageError> {
    let actor = columns::text(batch, "actor")?;
    let (incarnation, seq) = (columns::int(batch, "incarnation")?, columns::long(batch, "seq")?);
    let find = |row| {
        base.find(&EventId {
            actor: actor.value(row).to_owned(),
            incarnation: incarnation.value(row).unsigned_abs(),
            seq: seq.value(row).unsigned_abs(),
        })
    };
    (0..actor.len()).map(find).collect()
}
