//! What messages say, for those events of which it matters: where ids join each receive with its send, of none.

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::columns::{self, at};
use super::intern::NONE;
use super::placement::Placement;
use super::source::{BATCH_ROWS, chosen_batches, columns_of, record_schema};
use crate::error::LineageError;

/// Of how many events one has a content, so that a list of these is smaller than a place for each event.
const SPARSE: usize = 4;

/// Columns that say it.
const TOLD: [&str; 3] = ["type", "payload", "fingerprint"];

/// Contents of events, as 64-bit hashes of the type and the fingerprint, else the payload; compared within a channel only.
#[derive(Default)]
pub(crate) struct Contents {
    /// By event, if most have one.
    dense: Vec<u64>,
    /// Else events, in order, with theirs.
    sparse: Vec<(u32, u64)>,
}

impl Contents {
    /// Reads the contents of wanted events.
    pub(crate) fn read(
        files: &[SealedFile],
        placement: &Placement,
        wanted: &[bool],
    ) -> Result<Contents, LineageError> {
        Contents::read_with(files, placement, wanted, true)
    }

    /// [`Contents::read`] as if messages had no types.
    pub(crate) fn without_types(
        files: &[SealedFile],
        placement: &Placement,
        wanted: &[bool],
    ) -> Result<Contents, LineageError> {
        Contents::read_with(files, placement, wanted, false)
    }

    fn read_with(
        files: &[SealedFile],
        placement: &Placement,
        wanted: &[bool],
        typed: bool,
    ) -> Result<Contents, LineageError> {
        let count = wanted.iter().filter(|wanted| **wanted).count();
        let mut contents = Contents::default();
        if count > placement.events / SPARSE {
            contents.dense = vec![0; placement.events];
        } else {
            contents.sparse.reserve_exact(count);
        }
        if count == 0 {
            return Ok(contents);
        }
        let schema = columns_of(&record_schema(), &TOLD);
        each_chosen(files, placement, wanted, &schema, &mut |batch, events| {
            let contents_of = contents_of(batch, typed)?;
            for (row, &event) in events.iter().enumerate().filter(|(_, event)| is(**event, wanted)) {
                match contents.dense.get_mut(event as usize) {
                    Some(content) => *content = contents_of(row),
                    None => contents.sparse.push((event, contents_of(row))),
                }
            }
            Ok(())
        })?;
        contents.sparse.sort_unstable();
        Ok(contents)
    }

    /// The content of an event; that of one which was not wanted means nothing.
    pub(crate) fn of(&self, event: u32) -> u64 {
        if let Some(content) = self.dense.get(event as usize) {
            return *content;
        }
        let found = self.sparse.binary_search_by_key(&event, |(event, _)| *event);
        found.map_or(0, |at| self.sparse[at].1)
    }
}

/// The content of what says nothing: it has no type, payload and fingerprint.
pub(crate) fn nothing() -> u64 {
    xxh3_64_with_seed(b"", 0)
}

fn is(event: u32, wanted: &[bool]) -> bool {
    event != NONE && wanted[event as usize]
}

/// The contents of the rows of a batch, with their types or without.
pub(super) fn contents_of(
    batch: &RecordBatch,
    typed: bool,
) -> Result<impl Fn(usize) -> u64 + '_, LineageError> {
    let type_ = columns::text(batch, "type")?;
    let (payload, fingerprint) = (columns::text(batch, "payload")?, columns::text(batch, "fingerprint")?);
    Ok(move |row: usize| {
        // No type is another one than the empty.
        let type_ = at(type_, row).filter(|_| typed).map_or(0, |text| xxh3_64(text.as_bytes()) | 1);
        let content = at(fingerprint, row).or(at(payload, row)).unwrap_or("");
        xxh3_64_with_seed(content.as_bytes(), type_)
    })
}

/// A receiver of rows with their events.
type RowSink<'a> = dyn FnMut(&RecordBatch, &[u32]) -> Result<(), LineageError> + 'a;

/// Calls `f` with batches of rows that hold those of wanted events, and the events of the rows.
pub(super) fn each_chosen(
    files: &[SealedFile],
    placement: &Placement,
    wanted: &[bool],
    schema: &arrow_schema::SchemaRef,
    f: &mut RowSink<'_>,
) -> Result<(), LineageError> {
    for (number, file) in files.iter().enumerate() {
        let (chosen, events) = placement.reading(number, |event| wanted[event as usize]);
        let mut row = 0;
        for batch in chosen_batches(vec![(file.clone(), chosen)], schema, BATCH_ROWS) {
            let (_, batch) = batch?;
            let changed =
                || LineageError::table(file.path())("it has other rows than when it was first read");
            f(&batch, events.get(row..row + batch.num_rows()).ok_or_else(changed)?)?;
            row += batch.num_rows();
        }
    }
    Ok(())
}
