//! Which events the store has, and whether one that comes again says the same.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use demi_schemas::EventId;
use demi_schemas::event::is_clock_position;
use demi_schemas::summary::ActorCompleteness;
use rustc_hash::FxHashMap;

use crate::IngestError;
use crate::locations::{Entry, Locations};
use crate::positions::{Held, Positions};
use crate::scan::scan;

/// Most gaps listed of one life.
const MOST_GAPS: usize = 100;

/// What the store says of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has no event of that name, or of a position from a clock: this is the next one that is free.
    New { seq: u64 },
    /// It has the event with equal content.
    Duplicate,
    /// It has the event with other content, from there.
    Conflict { source: Arc<str>, offset: u64 },
}

struct Life {
    actor: Arc<str>,
    incarnation: u32,
    positions: Positions,
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
    lives: Vec<Life>,
    sources: Vec<Arc<str>>,
    source_numbers: FxHashMap<Arc<str>, u32>,
    locations: Locations,
    locations_file: PathBuf,
    /// Files of the store whose events are not in the index yet.
    unread: Vec<PathBuf>,
}

impl Seen {
    /// Reads the positions in `files`; the index goes to an unnamed file in `folder`.
    pub(crate) fn read(dir: String, folder: PathBuf, files: Vec<PathBuf>) -> Result<Self, IngestError> {
        let file = tempfile::tempfile_in(&folder).map_err(|source| IngestError::Io {
            path: folder.clone(),
            action: "make a temporary file here",
            source,
        })?;
        let mut seen = Seen {
            dir,
            actors: FxHashMap::default(),
            lives: Vec::new(),
            sources: Vec::new(),
            source_numbers: FxHashMap::default(),
            locations: Locations::new(file),
            locations_file: folder,
            unread: Vec::new(),
        };
        let columns = [("actor", DataType::Utf8), ("incarnation", DataType::Int32), ("seq", DataType::Int64)];
        scan(&files, &columns, |batch| {
            let actors = batch.column(0).as_string::<i32>();
            let lives = batch.column(1).as_primitive::<Int32Type>();
            let seqs = batch.column(2).as_primitive::<Int64Type>();
            let mut last: Option<(&str, i32, u32)> = None;
            for row in 0..batch.num_rows() {
                let (actor, incarnation) = (actors.value(row), lives.value(row));
                let life = match last {
                    Some((a, i, life)) if a == actor && i == incarnation => life,
                    _ => seen.life(actor, incarnation as u32),
                };
                last = Some((actor, incarnation, life));
                seen.lives[life as usize].positions.add(seqs.value(row) as u64);
            }
            Ok(())
        })?;
        seen.unread = files;
        Ok(seen)
    }

    /// The number of a life, given out at first sight.
    fn life(&mut self, actor: &str, incarnation: u32) -> u32 {
        let known = self.actors.get(actor).and_then(|l| l.iter().find(|(i, _)| *i == incarnation));
        if let Some((_, life)) = known {
            return *life;
        }
        let name = match self.actors.get_key_value(actor) {
            Some((name, _)) => name.clone(),
            None => Arc::from(actor),
        };
        let life = self.lives.len() as u32;
        self.actors.entry(name.clone()).or_default().push((incarnation, life));
        self.lives.push(Life {
            actor: name,
            incarnation,
            positions: Positions::default(),
            duplicates: 0,
            conflicts: 0,
        });
        life
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
    /// Several events may have one time: at a position taken from a clock a record with other content is tried at the
    /// next, so a record that comes again finds itself.
    pub(crate) fn offer(
        &mut self,
        actor: &str,
        incarnation: u32,
        mut entry: Entry,
    ) -> Result<Verdict, IngestError> {
        let life = self.life(actor, incarnation);
        loop {
            let verdict = self.offer_at(life, actor, incarnation, entry)?;
            match verdict {
                Verdict::Conflict { .. } if is_clock_position(entry.seq) && entry.seq < i64::MAX as u64 => {
                    entry.seq += 1;
                }
                Verdict::Conflict { .. } => {
                    self.lives[life as usize].conflicts += 1;
                    return Ok(verdict);
                }
                Verdict::New { .. } | Verdict::Duplicate => return Ok(verdict),
            }
        }
    }

    fn offer_at(
        &mut self,
        life: u32,
        actor: &str,
        incarnation: u32,
        entry: Entry,
    ) -> Result<Verdict, IngestError> {
        let held = self.lives[life as usize].positions.holds(entry.seq);
        let found = match held {
            Held::No => None,
            Held::Yes | Held::Perhaps => self.find(life, entry.seq)?,
        };
        let found = match (found, held) {
            (Some(found), _) => found,
            (None, Held::Yes) => {
                let event = EventId { actor: actor.to_owned(), incarnation, seq: entry.seq };
                return Err(IngestError::Vanished { dir: self.dir.clone(), event: event.to_string() });
            }
            (None, Held::No | Held::Perhaps) => {
                self.lives[life as usize].positions.add(entry.seq);
                self.locations.add(life, entry).map_err(|e| self.index_error(e))?;
                return Ok(Verdict::New { seq: entry.seq });
            }
        };
        if found.digest == entry.digest {
            self.lives[life as usize].duplicates += 1;
            return Ok(Verdict::Duplicate);
        }
        Ok(Verdict::Conflict { source: self.sources[found.source as usize].clone(), offset: found.offset })
    }

    /// Looks up an event, those that the store had before too.
    fn find(&mut self, life: u32, seq: u64) -> Result<Option<Entry>, IngestError> {
        let mut found = self.locations.find(life, seq).map_err(|e| self.index_error(e))?;
        if found.is_none() && !self.unread.is_empty() {
            self.read_locations()?;
            found = self.locations.find(life, seq).map_err(|e| self.index_error(e))?;
        }
        Ok(found)
    }

    /// Adds what earlier processes counted of a life.
    pub(crate) fn add_counts(&mut self, actor: &str, incarnation: u32, duplicates: u64, conflicts: u64) {
        let life = self.life(actor, incarnation) as usize;
        self.lives[life].duplicates += duplicates;
        self.lives[life].conflicts += conflicts;
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
            let lives = batch.column(1).as_primitive::<Int32Type>();
            let long = |i: usize| batch.column(i).as_primitive::<Int64Type>();
            let (seqs, digests, offsets) = (long(2), long(3), long(5));
            let sources = batch.column(4).as_string::<i32>();
            let mut last: Option<(&str, i32, u32)> = None;
            let mut last_source: Option<(&str, u32)> = None;
            for row in 0..batch.num_rows() {
                let (actor, incarnation, name) = (actors.value(row), lives.value(row), sources.value(row));
                let life = match last {
                    Some((a, i, life)) if a == actor && i == incarnation => life,
                    _ => self.life(actor, incarnation as u32),
                };
                last = Some((actor, incarnation, life));
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
                self.locations.add(life, entry).map_err(|e| self.index_error(e))?;
            }
            Ok(())
        })
    }

    /// What is complete, by actor and life.
    pub(crate) fn completeness(&self) -> Vec<ActorCompleteness> {
        let mut rows: Vec<ActorCompleteness> = self
            .lives
            .iter()
            .map(|life| {
                let positions = &life.positions;
                ActorCompleteness {
                    actor: life.actor.to_string(),
                    incarnation: life.incarnation,
                    events: positions.len(),
                    first_seq: positions.first().unwrap_or(0),
                    last_seq: positions.last().unwrap_or(0),
                    gaps: positions.gaps().take(MOST_GAPS).collect(),
                    missing: positions.missing(),
                    duplicates: life.duplicates,
                    conflicts: life.conflicts,
                }
            })
            .collect();
        rows.sort_by(|a, b| (&a.actor, a.incarnation).cmp(&(&b.actor, b.incarnation)));
        rows
    }
}

#[cfg(test)]
mod tests;
