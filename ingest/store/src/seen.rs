//! Which events the store has, and whether one that comes again says the same.

mod crowds;
mod names;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_formats::digest::Digester;
use demi_schemas::EventId;
use demi_schemas::event::is_clock_seq;
use demi_schemas::summary::ActorCompleteness;
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::deleted::Deleted;
use crate::locations::{Entry, Locations};
use crate::row_digest::{self, RowDigests};
use crate::scan::scan;
use crate::sequence::{Held, SequenceNumbers};
use crowds::{Crowds, Standing};
use names::{Names, Numbers, Pieces};

/// Most gaps listed of one incarnation.
const MOST_GAPS: usize = 100;

/// What the store says of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has no event of that name, or of a sequence number from a clock: this is the next one that is free.
    New {
        /// Its sequence number.
        seq: u64,
    },
    /// It has the event with equal content.
    Duplicate,
    /// It had the event, which was deleted.
    Deleted,
    /// It has the event with other content, from there.
    Conflict {
        /// Name of the source.
        source: Arc<str>,
        /// Where in it.
        offset: u64,
    },
}

/// An incarnation of an actor. There may be millions: it has no memory of its own.
#[derive(Debug)]
struct Incarnation {
    /// The number of the actor's name.
    actor: u32,
    incarnation: u32,
    numbers: SequenceNumbers,
}

/// What became known of an incarnation besides its events, since that was last written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// How often an event came again.
    pub duplicates: u64,
    /// How often another one came under the name of an event.
    pub conflicts: u64,
    /// Time of the event that came last.
    pub last_time: Option<Box<str>>,
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number; whether it was new.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & 1 << (number % 64) != 0)
    }
}

/// The events of one system: those in the store, and those this load adds.
///
/// A record that continues its actor's log needs no look-up. What the others say is looked up in an index that is
/// filled from the store when it is first needed.
pub struct Seen {
    dir: String,
    names: Names,
    /// By actor and incarnation.
    slots: Numbers,
    incarnations: Pieces<Incarnation>,
    /// Incarnations of which something changed since that was last written down.
    changed: Bits,
    noted: FxHashMap<u32, Noted>,
    /// The incarnation of the record that was offered last.
    last: u32,
    sources: Vec<Arc<str>>,
    source_numbers: FxHashMap<Arc<str>, u32>,
    locations: Locations,
    crowds: Crowds,
    locations_file: PathBuf,
    /// Files of the store whose events are not in the index yet.
    unread: Vec<SealedFile>,
}

impl Seen {
    /// Reads the sequence numbers in `files`; the index goes to unnamed files in `folder`.
    /// `deleted` is what was deleted of the system.
    pub(crate) fn read(
        dir: String,
        folder: PathBuf,
        files: Vec<SealedFile>,
        deleted: &[Deleted],
    ) -> Result<Self, StoreError> {
        let mut seen = Seen {
            dir,
            names: Names::default(),
            slots: Numbers::default(),
            incarnations: Pieces::default(),
            changed: Bits::default(),
            noted: FxHashMap::default(),
            last: 0,
            sources: Vec::new(),
            source_numbers: FxHashMap::default(),
            locations: Locations::new(&folder),
            crowds: Crowds::default(),
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
    pub fn slot(&mut self, actor: &str, incarnation: u32) -> u32 {
        let actor = self.names.number(actor);
        if let Some(slot) = self.find_slot(actor, incarnation) {
            return slot;
        }
        let slot = self.incarnations.len() as u32;
        self.incarnations.push(Incarnation { actor, incarnation, numbers: SequenceNumbers::default() });
        let (names, incarnations) = (&self.names, &self.incarnations);
        let hash = |of: &Incarnation| hash(names, of.actor, of.incarnation);
        self.slots
            .add(hash(&incarnations[slot as usize]), slot, |other| hash(&incarnations[*other as usize]));
        slot
    }

    fn find_slot(&self, actor: u32, incarnation: u32) -> Option<u32> {
        let is = |slot: &u32| {
            let known = &self.incarnations[*slot as usize];
            known.actor == actor && known.incarnation == incarnation
        };
        self.slots.find(hash(&self.names, actor, incarnation), is)
    }

    /// How many incarnations there are, of all actors.
    pub fn incarnations(&self) -> usize {
        self.incarnations.len()
    }

    /// How many incarnations there are, where long names count as several.
    pub fn weight(&self) -> u64 {
        (self.incarnations.len() + self.names.more()) as u64
    }

    /// Whether something is known of an incarnation.
    pub fn knows(&self, actor: &str, incarnation: u32) -> bool {
        self.names.find(actor).is_some_and(|actor| self.find_slot(actor, incarnation).is_some())
    }

    /// Bytes that it takes, but for what is noted until it is written down.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.names.bytes() + self.slots.bytes() + self.incarnations.bytes() + self.changed.0.capacity() * 8
    }

    /// The number of a source, given out at first sight.
    pub fn source(&mut self, name: &str) -> u32 {
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
    pub fn offer(&mut self, actor: &str, incarnation: u32, entry: Entry) -> Result<Verdict, StoreError> {
        let slot = self.slot(actor, incarnation);
        self.offer_to(slot, entry)
    }

    /// The same of the incarnation with a number.
    pub fn offer_to(&mut self, slot: u32, mut entry: Entry) -> Result<Verdict, StoreError> {
        self.last = slot;
        let first = entry.seq;
        let moves = is_clock_seq(first);
        if moves {
            match self.crowds.standing(slot, first, entry.digest) {
                Standing::There => {
                    self.note(slot).duplicates += 1;
                    return Ok(Verdict::Duplicate);
                }
                Standing::NotBefore(seq) => entry.seq = seq,
            }
        }
        let from = entry.seq;
        let mut passed = Vec::new();
        let verdict = loop {
            match self.offer_at(slot, entry)? {
                Ok(verdict) => break verdict,
                Err(found) if moves && entry.seq < i64::MAX as u64 => {
                    passed.push(found.digest);
                    entry.seq += 1;
                }
                Err(found) => {
                    self.note(slot).conflicts += 1;
                    let source = self.sources[found.source as usize].clone();
                    return Ok(Verdict::Conflict { source, offset: found.offset });
                }
            }
        };
        if moves {
            if let Verdict::New { .. } | Verdict::Duplicate = verdict {
                passed.push(entry.digest);
            }
            self.crowds.learn((slot, first), from, &passed);
        }
        Ok(verdict)
    }

    /// What becomes of an event at its number, or what else is there.
    fn offer_at(&mut self, slot: u32, entry: Entry) -> Result<Result<Verdict, Entry>, StoreError> {
        let held = self.incarnations[slot as usize].numbers.holds(entry.seq);
        let found = match held {
            Held::Deleted => return Ok(Ok(Verdict::Deleted)),
            Held::No => None,
            Held::Yes | Held::Perhaps => self.find(slot, entry.seq)?,
        };
        let found = match (found, held) {
            (Some(found), _) => found,
            (None, Held::Yes) => {
                let (actor, incarnation) = self.key(slot);
                let event = EventId { actor: actor.to_owned(), incarnation, seq: entry.seq };
                return Err(StoreError::Vanished { dir: self.dir.clone(), event: event.to_string() });
            }
            (None, Held::No | Held::Perhaps | Held::Deleted) => {
                self.incarnations[slot as usize].numbers.add(entry.seq);
                self.changed.insert(slot);
                self.locations.add(slot, entry).map_err(|e| self.index_error(e))?;
                return Ok(Ok(Verdict::New { seq: entry.seq }));
            }
        };
        if found.digest == entry.digest {
            self.note(slot).duplicates += 1;
            return Ok(Ok(Verdict::Duplicate));
        }
        Ok(Err(found))
    }

    /// Looks up an event, those that the store had before too.
    fn find(&mut self, slot: u32, seq: u64) -> Result<Option<Entry>, StoreError> {
        let mut found = self.locations.find(slot, seq).map_err(|e| self.index_error(e))?;
        if found.is_none() && !self.unread.is_empty() {
            self.read_locations()?;
            found = self.locations.find(slot, seq).map_err(|e| self.index_error(e))?;
        }
        Ok(found)
    }

    /// Takes note of the time of the record that was offered last.
    pub fn note_time(&mut self, time: String) {
        self.note(self.last).last_time = Some(time.into());
    }

    fn note(&mut self, slot: u32) -> &mut Noted {
        self.changed.insert(slot);
        self.noted.entry(slot).or_default()
    }

    fn index_error(&self, source: io::Error) -> StoreError {
        let action = "use a temporary file here";
        StoreError::Io { path: self.locations_file.clone(), action, source }
    }

    /// Fills the index with what the store had when the load began.
    fn read_locations(&mut self) -> Result<(), StoreError> {
        let mut digester = Digester::default();
        for file in std::mem::take(&mut self.unread) {
            scan(std::slice::from_ref(&file), &row_digest::COLUMNS, |batch| {
                let rows = RowDigests::new(batch);
                let mut last: Option<((&str, u32), u32)> = None;
                let mut last_source: Option<(&str, u32)> = None;
                for row in 0..batch.num_rows() {
                    let key = rows.key(row);
                    let slot = match last {
                        Some((known, slot)) if known == key => slot,
                        _ => self.slot(key.0, key.1),
                    };
                    last = Some((key, slot));
                    let (name, offset) = rows.place(row);
                    let source = match last_source {
                        Some((n, source)) if n == name => source,
                        _ => self.source(name),
                    };
                    last_source = Some((name, source));
                    let digest = rows.of(row, &mut digester, file.path())?;
                    let entry = Entry { seq: rows.seq(row), digest, offset, source };
                    self.locations.add(slot, entry).map_err(|e| self.index_error(e))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// What is complete, by actor and incarnation.
    pub fn completeness(&self) -> Vec<ActorCompleteness> {
        self.in_order(|_| true).into_iter().filter_map(|slot| self.complete(slot)).collect()
    }

    /// What is complete of an incarnation, and what was noted of it; `None` where nothing is there.
    pub fn complete(&self, slot: u32) -> Option<ActorCompleteness> {
        let Incarnation { incarnation, numbers, .. } = &self.incarnations[slot as usize];
        let noted = self.noted.get(&slot);
        (numbers.len() > 0).then(|| ActorCompleteness {
            actor: self.name(slot).to_owned(),
            incarnation: *incarnation,
            events: numbers.len(),
            first_seq: numbers.first().unwrap_or(0),
            last_seq: numbers.last().unwrap_or(0),
            gaps: numbers.gaps().take(MOST_GAPS).collect(),
            missing: numbers.missing(),
            duplicates: noted.map_or(0, |noted| noted.duplicates),
            conflicts: noted.map_or(0, |noted| noted.conflicts),
        })
    }

    /// Actor and incarnation.
    pub fn key(&self, slot: u32) -> (&str, u32) {
        (self.name(slot), self.incarnations[slot as usize].incarnation)
    }

    fn name(&self, slot: u32) -> &str {
        self.names.get(self.incarnations[slot as usize].actor)
    }

    /// How many sequence numbers of an incarnation are missing.
    pub fn missing(&self, slot: u32) -> u64 {
        self.incarnations[slot as usize].numbers.missing()
    }

    /// What was noted of an incarnation besides its events.
    pub fn noted(&self, slot: u32) -> Option<&Noted> {
        self.noted.get(&slot)
    }

    /// Of how many incarnations something is noted.
    pub fn notes(&self) -> usize {
        self.noted.len()
    }

    /// The incarnations that something is missing of, in order.
    pub fn with_gaps(&self) -> Vec<u32> {
        self.in_order(|slot| self.missing(slot) > 0)
    }

    /// The incarnations of which something changed, in order.
    pub fn changes(&self) -> Vec<u32> {
        self.in_order(|slot| self.changed.contains(slot))
    }

    /// What changed is written down.
    pub fn settle(&mut self) {
        self.changed.0.fill(0);
        self.noted = FxHashMap::default();
    }

    /// Holds what was written down of an incarnation against what is there. `listed` are those that were held so far.
    pub fn compare(&mut self, listed: &mut Bits, counts: &ActorCompleteness) {
        let slot = self.slot(&counts.actor, counts.incarnation);
        let numbers = &self.incarnations[slot as usize].numbers;
        let is = (numbers.len(), numbers.first(), numbers.last(), numbers.missing());
        if is != (counts.events, Some(counts.first_seq), Some(counts.last_seq), counts.missing) {
            self.changed.insert(slot);
        }
        listed.insert(slot);
    }

    /// All that was written down was held against what is there: what was not among it is to be.
    pub fn compared(&mut self, listed: &Bits) {
        for slot in (0..self.incarnations.len() as u32).filter(|slot| !listed.contains(*slot)) {
            self.changed.insert(slot);
        }
    }

    /// These incarnations, sorted by actor and incarnation.
    fn in_order(&self, which: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut slots: Vec<u32> = (0..self.incarnations.len() as u32).filter(|slot| which(*slot)).collect();
        slots.sort_unstable_by(|a, b| self.key(*a).cmp(&self.key(*b)));
        slots
    }
}

fn hash(names: &Names, actor: u32, incarnation: u32) -> u64 {
    names.hash(&(u64::from(actor) << 32 | u64::from(incarnation)).to_le_bytes())
}

#[cfg(test)]
mod tests;
