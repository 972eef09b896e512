//! Which events the store has, and whether one that comes again says the same.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use demi_schemas::EventId;
use demi_schemas::event::{CLOCK_POSITIONS, is_clock_position};
use demi_schemas::summary::ActorCompleteness;
use rustc_hash::FxHashMap;

use crate::locations::{Entry, Locations};
use crate::scan::scan;
use crate::{IngestError, IntervalSet};

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
    positions: IntervalSet,
    duplicates: u64,
    conflicts: u64,
}

/// The events of one system: those in the store, and those this load adds.
///
/// Positions are held as intervals, so a record that continues its actor's log needs no look-up. What the others
/// say is looked up in an index that is filled from the store when it is first needed.
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
                seen.lives[life as usize].positions.insert(seqs.value(row) as u64);
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
            positions: IntervalSet::new(),
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
        if self.lives[life as usize].positions.insert(entry.seq) {
            self.locations.add(life, entry).map_err(|e| self.index_error(e))?;
            return Ok(Verdict::New { seq: entry.seq });
        }
        let mut found = self.locations.find(life, entry.seq).map_err(|e| self.index_error(e))?;
        if found.is_none() && !self.unread.is_empty() {
            self.read_locations()?;
            found = self.locations.find(life, entry.seq).map_err(|e| self.index_error(e))?;
        }
        let Some(found) = found else {
            let event = EventId { actor: actor.to_owned(), incarnation, seq: entry.seq };
            return Err(IngestError::Vanished { dir: self.dir.clone(), event: event.to_string() });
        };
        if found.digest == entry.digest {
            self.lives[life as usize].duplicates += 1;
            return Ok(Verdict::Duplicate);
        }
        Ok(Verdict::Conflict { source: self.sources[found.source as usize].clone(), offset: found.offset })
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
                let last = life.positions.last().unwrap_or(0);
                let first = life.positions.first().unwrap_or(0);
                // Between positions taken from a clock nothing is missing.
                let gaps = || life.positions.gaps(1).take_while(|gap| !is_clock_position(gap.1 + 1));
                ActorCompleteness {
                    actor: life.actor.to_string(),
                    incarnation: life.incarnation,
                    events: life.positions.len(),
                    first_seq: first,
                    last_seq: last,
                    gaps: gaps().take(MOST_GAPS).collect(),
                    missing: if last < CLOCK_POSITIONS {
                        last.saturating_sub(life.positions.len())
                    } else {
                        gaps().map(|(from, to)| to - from + 1).sum()
                    },
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
mod tests {
    use super::*;

    #[test]
    fn the_first_one_wins_within_a_load() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![]).unwrap();
        let source = seen.source("f");
        let entry = |seq, digest| Entry { seq, digest, offset: seq * 10, source };
        assert_eq!(seen.offer("a", 0, entry(1, 5)).unwrap(), Verdict::New { seq: 1 });
        assert_eq!(seen.offer("a", 1, entry(1, 6)).unwrap(), Verdict::New { seq: 1 });
        assert_eq!(seen.offer("b", 0, entry(1, 7)).unwrap(), Verdict::New { seq: 1 });
        assert_eq!(seen.offer("a", 0, entry(4, 5)).unwrap(), Verdict::New { seq: 4 });
        assert_eq!(seen.offer("a", 0, entry(1, 5)).unwrap(), Verdict::Duplicate);
        let conflict = Verdict::Conflict { source: Arc::from("f"), offset: 10 };
        assert_eq!(seen.offer("a", 1, entry(1, 9)).unwrap(), conflict);
        assert_eq!(seen.offer("a", 1, entry(1, 6)).unwrap(), Verdict::Duplicate);
        let rows = seen.completeness();
        let got: Vec<_> =
            rows.iter().map(|r| (r.actor.as_str(), r.incarnation, r.events, r.missing)).collect();
        assert_eq!(got, [("a", 0, 2, 2), ("a", 1, 1, 0), ("b", 0, 1, 0)]);
        assert_eq!(rows[0].gaps, [(2, 3)]);
        assert_eq!((rows[1].duplicates, rows[1].conflicts), (1, 1));
    }

    #[test]
    fn events_of_one_time_are_moved_apart_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![]).unwrap();
        let source = seen.source("f");
        let time = CLOCK_POSITIONS + 5;
        let mut offer = |seq, digest| seen.offer("a", 0, Entry { seq, digest, offset: 0, source }).unwrap();
        assert_eq!(offer(time, 1), Verdict::New { seq: time });
        assert_eq!(offer(time, 2), Verdict::New { seq: time + 1 });
        assert_eq!(offer(time + 1, 3), Verdict::New { seq: time + 2 });
        assert_eq!(offer(time, 2), Verdict::Duplicate);
        assert_eq!(offer(time + 1, 3), Verdict::Duplicate);
        assert_eq!(offer(time + 9, 2), Verdict::New { seq: time + 9 });
        assert_eq!(offer(2, 9), Verdict::New { seq: 2 });
        let rows = seen.completeness();
        assert_eq!((rows[0].events, rows[0].missing, rows[0].conflicts), (5, 1, 0));
        assert_eq!(rows[0].gaps, [(1, 1)], "between clock positions nothing is missing");
    }
}
