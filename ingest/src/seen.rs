//! Which events the store has, and whether one that comes again says the same.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_schemas::EventId;
use demi_schemas::event::is_clock_seq;
use demi_schemas::summary::ActorCompleteness;
use rustc_hash::FxHashMap;

use crate::IngestError;
use crate::deleted::Deleted;
use crate::locations::{Entry, Locations};
use crate::scan::scan;
use crate::sequence::{Held, SequenceNumbers};

/// Most gaps listed of one incarnation.
const MOST_GAPS: usize = 100;

/// What the store says of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has no event of that name, or of a sequence number from a clock: this is the next one that is free.
    New { seq: u64 },
    /// It has the event with equal content.
    Duplicate,
    /// It had the event, which was deleted.
    Deleted,
    /// It has the event with other content, from there.
    Conflict { source: Arc<str>, offset: u64 },
}

struct Incarnation {
    actor: Arc<str>,
    incarnation: u32,
    numbers: SequenceNumbers,
    duplicates: u64,
    conflicts: u64,
}

/// The events of one system: those in the store, and those this load adds.
///
/// A record that continues its actor's log needs no look-up. What the others say is looked up in an index that is
/// filled from the store when it is first needed.
pub(crate) struct Seen {
    dir: String,
    actors: FxHashMap<Arc<str>, Vec<(u32, u32)>>,
    incarnations: Vec<Incarnation>,
    sources: Vec<Arc<str>>,
    source_numbers: FxHashMap<Arc<str>, u32>,
    locations: Locations,
    locations_file: PathBuf,
    /// Files of the store whose events are not in the index yet.
    unread: Vec<SealedFile>,
}

impl Seen {
    /// Reads the sequence numbers in `files`; the index goes to an unnamed file in `folder`.
    /// `deleted` is what was deleted of the system.
    pub(crate) fn read(
        dir: String,
        folder: PathBuf,
        files: Vec<SealedFile>,
        deleted: &[Deleted],
    ) -> Result<Self, IngestError> {
        let file = tempfile::tempfile_in(&folder).map_err(|source| IngestError::Io {
            path: folder.clone(),
            action: "make a temporary file here",
            source,
        })?;
        let mut seen = Seen {
            dir,
            actors: FxHashMap::default(),
            incarnations: Vec::new(),
            sources: Vec::new(),
            source_numbers: FxHashMap::default(),
            locations: Locations::new(file),
            locations_file: folder,
            unread: Vec::new(),
        };
        for run in deleted {
            let slot = seen.slot(&run.actor, run.incarnation) as usize;
            seen.incarnations[slot].numbers.delete(run.first_seq, run.last_seq);
        }
        let columns = [("actor", DataType::Utf8), ("incarnation", DataType::Int32), ("seq", DataType::Int64)];
        scan(&files, &columns, |batch| {
            let actors = batch.column(0).as_string::<i32>();
            let numbers = batch.column(1).as_primitive::<Int32Type>();
            let seqs = batch.column(2).as_primitive::<Int64Type>();
            let mut last: Option<(&str, i32, u32)> = None;
            for row in 0..batch.num_rows() {
                let (actor, incarnation) = (actors.value(row), numbers.value(row));
                let slot = match last {
                    Some((a, i, slot)) if a == actor && i == incarnation => slot,
                    _ => seen.slot(actor, incarnation as u32),
                };
                last = Some((actor, incarnation, slot));
                seen.incarnations[slot as usize].numbers.add(seqs.value(row) as u64);
            }
            Ok(())
        })?;
        seen.unread = files;
        Ok(seen)
    }

    /// The number of an incarnation, given out at first sight.
    fn slot(&mut self, actor: &str, incarnation: u32) -> u32 {
        let known = self.actors.get(actor).and_then(|l| l.iter().find(|(i, _)| *i == incarnation));
        if let Some((_, slot)) = known {
            return *slot;
        }
        let name = match self.actors.get_key_value(actor) {
            Some((name, _)) => name.clone(),
            None => Arc::from(actor),
        };
        let slot = self.incarnations.len() as u32;
        self.actors.entry(name.clone()).or_default().push((incarnation, slot));
        self.incarnations.push(Incarnation {
            actor: name,
            incarnation,
            numbers: SequenceNumbers::default(),
            duplicates: 0,
            conflicts: 0,
        });
        slot
    }

    /// The number of a source, given out at first sight.
    pub(crate) fn source(&mut self, name: &str) -> u32 {
        if let Some(number) = self.source_numbers.get(name) {
            return *number;
        }
        let name: Arc<str> = Arc::from(name);
        let number = self.sources.len() as u32;
        self.sources.push(name.clone());
        self.source_numbers.insert(name, number);
        number
    }

    /// Takes the record as stored if its name is new; otherwise compares it with the one that is there.
    ///
    /// Several events may have one time: at a sequence number taken from a clock a record with other content is tried at the
    /// next, so a record that comes again finds itself.
    pub(crate) fn offer(
        &mut self,
        actor: &str,
        incarnation: u32,
        mut entry: Entry,
    ) -> Result<Verdict, IngestError> {
        let slot = self.slot(actor, incarnation);
        loop {
            let verdict = self.offer_at(slot, actor, incarnation, entry)?;
            match verdict {
                Verdict::Conflict { .. } if is_clock_seq(entry.seq) && entry.seq < i64::MAX as u64 => {
                    entry.seq += 1;
                }
                Verdict::Conflict { .. } => {
                    self.incarnations[slot as usize].conflicts += 1;
                    return Ok(verdict);
                }
                Verdict::New { .. } | Verdict::Duplicate | Verdict::Deleted => return Ok(verdict),
            }
        }
    }

    fn offer_at(
        &mut self,
        slot: u32,
        actor: &str,
        incarnation: u32,
        entry: Entry,
    ) -> Result<Verdict, IngestError> {
        let held = self.incarnations[slot as usize].numbers.holds(entry.seq);
        let found = match held {
            Held::Deleted => return Ok(Verdict::Deleted),
            Held::No => None,
            Held::Yes | Held::Perhaps => self.find(slot, entry.seq)?,
        };
        let found = match (found, held) {
            (Some(found), _) => found,
            (None, Held::Yes) => {
                let event = EventId { actor: actor.to_owned(), incarnation, seq: entry.seq };
                return Err(IngestError::Vanished { dir: self.dir.clone(), event: event.to_string() });
            }
            (None, Held::No | Held::Perhaps | Held::Deleted) => {
                self.incarnations[slot as usize].numbers.add(entry.seq);
                self.locations.add(slot, entry).map_err(|e| self.index_error(e))?;
                return Ok(Verdict::New { seq: entry.seq });
            }
        };
        if found.digest == entry.digest {
            self.incarnations[slot as usize].duplicates += 1;
            return Ok(Verdict::Duplicate);
        }
        Ok(Verdict::Conflict { source: self.sources[found.source as usize].clone(), offset: found.offset })
    }

    /// Looks up an event, those that the store had before too.
    fn find(&mut self, slot: u32, seq: u64) -> Result<Option<Entry>, IngestError> {
        let mut found = self.locations.find(slot, seq).map_err(|e| self.index_error(e))?;
        if found.is_none() && !self.unread.is_empty() {
            self.read_locations()?;
            found = self.locations.find(slot, seq).map_err(|e| self.index_error(e))?;
        }
        Ok(found)
    }

    /// Adds what earlier processes counted of an incarnation.
    pub(crate) fn add_counts(&mut self, actor: &str, incarnation: u32, duplicates: u64, conflicts: u64) {
        let slot = self.slot(actor, incarnation) as usize;
        self.incarnations[slot].duplicates += duplicates;
        self.incarnations[slot].conflicts += conflicts;
    }

    fn index_error(&self, source: io::Error) -> IngestError {
        let action = "use a temporary file here";
        IngestError::Io { path: self.locations_file.clone(), action, source }
    }

    /// Fills the index with what the store had when the load began.
    fn read_locations(&mut self) -> Result<(), IngestError> {
        let files = std::mem::take(&mut self.unread);
        let columns = [
            ("actor", DataType::Utf8),
            ("incarnation", DataType::Int32),
            ("seq", DataType::Int64),
            ("digest", DataType::Int64),
            ("source", DataType::Utf8),
            ("offset", DataType::Int64),
        ];
        scan(&files, &columns, |batch| {
            let actors = batch.column(0).as_string::<i32>();
            let numbers = batch.column(1).as_primitive::<Int32Type>();
            let long = |i: usize| batch.column(i).as_primitive::<Int64Type>();
            let (seqs, digests, offsets) = (long(2), long(3), long(5));
            let sources = batch.column(4).as_string::<i32>();
            let mut last: Option<(&str, i32, u32)> = None;
            let mut last_source: Option<(&str, u32)> = None;
            for row in 0..batch.num_rows() {
                let (actor, incarnation, name) = (actors.value(row), numbers.value(row), sources.value(row));
                let slot = match last {
                    Some((a, i, slot)) if a == actor && i == incarnation => slot,
                    _ => self.slot(actor, incarnation as u32),
                };
                last = Some((actor, incarnation, slot));
                let source = match last_source {
                    Some((n, source)) if n == name => source,
                    _ => self.source(name),
                };
                last_source = Some((name, source));
                let entry = Entry {
                    seq: seqs.value(row) as u64,
                    digest: digests.value(row) as u64,
                    offset: offsets.value(row) as u64,
                    source,
                };
                self.locations.add(slot, entry).map_err(|e| self.index_error(e))?;
            }
            Ok(())
        })
    }

    /// What is complete, by actor and incarnation.
    pub(crate) fn completeness(&self) -> Vec<ActorCompleteness> {
        let mut rows: Vec<ActorCompleteness> = self
            .incarnations
            .iter()
            .filter(|slot| slot.numbers.len() > 0)
            .map(|slot| {
                let numbers = &slot.numbers;
                ActorCompleteness {
                    actor: slot.actor.to_string(),
                    incarnation: slot.incarnation,
                    events: numbers.len(),
                    first_seq: numbers.first().unwrap_or(0),
                    last_seq: numbers.last().unwrap_or(0),
                    gaps: numbers.gaps().take(MOST_GAPS).collect(),
                    missing: numbers.missing(),
                    duplicates: slot.duplicates,
                    conflicts: slot.conflicts,
                }
            })
            .collect();
        rows.sort_by(|a, b| (&a.actor, a.incarnation).cmp(&(&b.actor, b.incarnation)));
        rows
    }
}

#[cfg(test)]
mod tests;
