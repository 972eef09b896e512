//! The numbered journal.
//!
//! All shared state is `journal/N.json`, N = 1, 2, 3 and so on. Whoever wants to change it creates N + 1; who loses that race reads what the winner
//! wrote, and decides again. An entry is a line of JSON and a line with the BLAKE3 of the first, so that one that is damaged is known as such. Old
//! entries are packed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::event::{Entry, Event, JOURNAL_VERSION, MOST_BYTES, Told};
use crate::fold::State;
use crate::id::IncidentId;
use crate::objects::Objects;
use crate::packs;

/// The version of what entries come to. Snapshots of another one are as good as none: what they left out cannot be known.
const FOLD: u32 = 2;
/// How many packs are written after a snapshot, so that nobody waits long: more than entries come meanwhile.
const PACKS: usize = 10;
/// Entries that are read at a time.
const AT_A_TIME: usize = 32;
/// How many snapshots are kept.
const SNAPSHOTS: usize = 2;
/// Compression of snapshots.
const LEVEL: i32 = 3;
/// Largest snapshot that is read.
const MOST_SNAPSHOT: u64 = 4 << 30;

/// An error of the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// An entry is not as it was written.
    #[error(
        "entry {n} of the journal is damaged: {why}; nothing is written until it is repaired from a backup"
    )]
    Damaged {
        /// Its number.
        n: u64,
        /// What is wrong with it.
        why: String,
    },
    /// An entry of a later version.
    #[error(
        "entry {n} of the journal is of version {found}, and this program understands {JOURNAL_VERSION}: use a newer program"
    )]
    Newer {
        /// Its number.
        n: u64,
        /// Its version.
        found: u32,
    },
    /// What was decided does not fit into an entry.
    #[error("an entry of {0} bytes is too large")]
    TooLarge(usize),
    /// The system says no.
    #[error("the journal cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// After how many entries something is done with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// Somebody writes down what they come to.
    pub snapshot: u64,
    /// They are a pack. All who use a journal have the same.
    pub pack: u64,
}

impl Default for Rhythm {
    fn default() -> Self {
        Rhythm { snapshot: 500, pack: 100 }
    }
}

#[derive(Serialize, Deserialize)]
struct Sum {
    blake3: String,
    /// Of a snapshot: [`FOLD`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fold: Option<u32>,
}

/// The name of an entry.
fn name(n: u64) -> String {
    format!("journal/{n:020}.json")
}

/// The number in the name of an entry or a snapshot.
fn number(name: &str) -> Option<u64> {
    name.get(..20)?.parse().ok()
}

fn snapshot_name(n: u64) -> String {
    format!("snapshot/{n:020}.json.zst")
}

/// An entry as it is written.
fn written(entry: &Entry) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(entry).unwrap_or_default();
    let sum = Sum { blake3: blake3::hash(&bytes).to_hex().to_string(), fold: None };
    bytes.push(b'\n');
    bytes.extend(serde_json::to_vec(&sum).unwrap_or_default());
    bytes.push(b'\n');
    bytes
}

/// Reads an entry.
fn read(n: u64, bytes: &[u8]) -> Result<Entry, JournalError> {
    let damaged = |why: &str| JournalError::Damaged { n, why: why.to_owned() };
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it has no end"))?;
    let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
    let sum: Sum = serde_json::from_slice(rest).map_err(|_| damaged("it has no digest"))?;
    if sum.blake3 != blake3::hash(line).to_hex().as_str() {
        return Err(damaged("its digest is another one"));
    }
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let version: Version = serde_json::from_slice(line).map_err(|e| damaged(&e.to_string()))?;
    if version.v > JOURNAL_VERSION {
        return Err(JournalError::Newer { n, found: version.v });
    }
    let entry: Entry = serde_json::from_slice(line).map_err(|e| damaged(&e.to_string()))?;
    if entry.n != n {
        return Err(damaged(&format!("it says that it is entry {}", entry.n)));
    }
    Ok(entry)
}

/// A reader and writer of the journal. Several in one process can share what it comes to ([`Journal::share`]).
pub struct Journal<O> {
    objects: O,
    by: String,
    folded: Arc<Mutex<Arc<State>>>,
    conflicts: u64,
    rhythm: Rhythm,
}

/// Makes tags of one process differ.
static TAGS: AtomicU64 = AtomicU64::new(0);

impl<O: Objects> Journal<O> {
    /// Reads the journal that lies in `objects`; there may be none. `by` is who writes.
    ///
    /// # Errors
    /// When an entry cannot be read or is not understood.
    pub fn open(objects: O, by: impl Into<String>) -> Result<Self, JournalError> {
        Self::open_with(objects, by, Rhythm::default())
    }

    /// The same, with another rhythm.
    ///
    /// # Errors
    /// When an entry cannot be read or is not understood.
    pub fn open_with(objects: O, by: impl Into<String>, rhythm: Rhythm) -> Result<Self, JournalError> {
        let state = latest_snapshot(&objects)?.unwrap_or_default();
        let folded = Arc::new(Mutex::new(Arc::new(state)));
        let rhythm = Rhythm { snapshot: rhythm.snapshot.max(1), pack: rhythm.pack.max(1) };
        let mut journal = Journal { objects, by: by.into(), folded, conflicts: 0, rhythm };
        journal.follow()?;
        Ok(journal)
    }

    /// Another reader and writer, who shares what the journal comes to: it is in memory once.
    #[must_use]
    pub fn share(&self, by: impl Into<String>) -> Self
    where
        O: Clone,
    {
        let (objects, folded) = (self.objects.clone(), self.folded.clone());
        Journal { objects, by: by.into(), folded, conflicts: 0, rhythm: self.rhythm }
    }

    /// What the journal comes to, as far as it was read. It stays as it is while somebody holds it; who holds it long makes others copy it.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where it lies.
    #[must_use]
    pub fn objects(&self) -> &O {
        &self.objects
    }

    /// Who writes.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// How often somebody else was faster.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Takes in what others have written; how many entries that were.
    ///
    /// # Errors
    /// When an entry cannot be read or is not understood.
    pub fn follow(&mut self) -> Result<u64, JournalError> {
        let mut state = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read_now = 0;
        loop {
            let from = state.last() + 1;
            let (_, last) = packs::range(from, self.rhythm.pack);
            let (found, damage) = self.read(from, last)?;
            for entry in &found {
                Arc::make_mut(&mut state).apply(entry);
            }
            read_now += found.len() as u64;
            match damage {
                Some(damage) => return Err(damage),
                None if state.last() < last => return Ok(read_now),
                None => {}
            }
        }
    }

    /// The steps of an incident, as text. They are many, so that they stay in the entry that told them.
    ///
    /// # Errors
    /// When that entry cannot be read.
    pub fn story(&self, id: IncidentId) -> Result<Vec<String>, JournalError> {
        let told = self.state().incidents().get(&id).and_then(crate::Incident::story_entry);
        let Some(entry) = told.map(|n| self.entry(n)).transpose()?.flatten() else { return Ok(Vec::new()) };
        let of = |told: &Told| match told {
            Told::Known(Event::Stage { id: of, findings: Some(findings), .. })
            | Told::Known(Event::Done { id: of, findings, .. })
                if *of == id =>
            {
                Some(findings.story.clone())
            }
            _ => None,
        };
        Ok(entry.events.iter().rev().find_map(of).unwrap_or_default())
    }

    /// An entry, if it is there.
    ///
    /// # Errors
    /// When it cannot be read or is not understood.
    pub fn entry(&self, n: u64) -> Result<Option<Entry>, JournalError> {
        let (found, damage) = self.read(n, n)?;
        damage.map_or(Ok(found.into_iter().next()), Err)
    }

    /// Entries from a number on, in their order, some at a time; none where there are no more.
    ///
    /// # Errors
    /// When the first of them cannot be read or is not understood.
    pub fn entries(&self, from: u64) -> Result<Vec<Entry>, JournalError> {
        let (found, damage) = self.read(from, packs::range(from, self.rhythm.pack).1)?;
        damage.filter(|_| found.is_empty()).map_or(Ok(found), Err)
    }

    /// Entries of one pack, as far as they are there and whole, and what is wrong with the next.
    fn read(&self, from: u64, last: u64) -> Result<(Vec<Entry>, Option<JournalError>), JournalError> {
        let singles = self.singles(from, last)?;
        // Asked for last: entries go when their pack is there, and only what is in no pack counts by itself.
        let written: Vec<Vec<u8>> = match self.packed(from)? {
            Some(packed) => {
                let skip = from - packs::range(from, self.rhythm.pack).0;
                packed.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).collect()
            }
            None => singles,
        };
        let mut found = Vec::new();
        for (n, bytes) in (from..=last).zip(&written) {
            match read(n, bytes) {
                Ok(entry) => found.push(entry),
                Err(damage) => return Ok((found, Some(damage))),
            }
        }
        Ok((found, None))
    }

    /// Entries that stand by themselves, as they were written, up to the first that does not.
    fn singles(&self, from: u64, last: u64) -> Result<Vec<Vec<u8>>, JournalError> {
        let mut found = Vec::new();
        let (mut next, mut count) = (from, 1);
        while next <= last {
            let names: Vec<String> = (next..=last).take(count).map(name).collect();
            for bytes in self.objects.read_each(&names)? {
                match bytes {
                    Some(bytes) => found.push(bytes),
                    None => return Ok(found),
                }
            }
            next += names.len() as u64;
            count = AT_A_TIME;
        }
        Ok(found)
    }

    /// The entries of the pack in which an entry is, as they were written, where there is one.
    fn packed(&self, n: u64) -> Result<Option<Vec<Vec<u8>>>, JournalError> {
        let range = packs::range(n, self.rhythm.pack);
        let Some(bytes) = self.objects.read(&packs::name(range))? else { return Ok(None) };
        let why = || JournalError::Damaged { n, why: "its pack is damaged".to_owned() };
        packs::unpack(&bytes, range).map(Some).ok_or_else(why)
    }

    /// The numbers in the names of a folder, in their order.
    fn numbers(&self, folder: &str) -> Result<Vec<u64>, JournalError> {
        Ok(self.objects.list(folder)?.iter().filter_map(|name| number(name)).collect())
    }

    /// Packs entries behind the last snapshot but one, at most so many packs; how many it wrote. Whoever is killed on the way leaves the rest to the
    /// next.
    ///
    /// # Errors
    /// When entries cannot be read, or packs not be written.
    pub fn pack(&self, most: usize) -> Result<usize, JournalError> {
        let snapshots = self.numbers("snapshot")?;
        let Some(behind) = snapshots.iter().rev().nth(1) else { return Ok(0) };
        let mut ranges: Vec<(u64, u64)> =
            self.numbers("journal")?.into_iter().map(|n| packs::range(n, self.rhythm.pack)).collect();
        ranges.dedup();
        let mut done = 0;
        for range in ranges.into_iter().filter(|(_, last)| last <= behind) {
            if done == most {
                break;
            }
            done += usize::from(self.pack_range(range)?);
        }
        Ok(done)
    }

    /// Packs these entries; whether they are packed now.
    fn pack_range(&self, (first, last): (u64, u64)) -> Result<bool, JournalError> {
        let names: Vec<String> = (first..=last).map(name).collect();
        let pack = packs::name((first, last));
        let Some(mut packed) = self.packed(first)? else {
            let singles = self.singles(first, last)?;
            if singles.len() < names.len() {
                // Somebody else has packed them meanwhile.
                return Ok(false);
            }
            for (n, bytes) in (first..=last).zip(&singles) {
                read(n, bytes)?;
            }
            self.objects.create(&pack, &packs::pack(&singles)?)?;
            // What is there now counts, whoever wrote it.
            return if self.packed(first)?.is_some() { self.pack_range((first, last)) } else { Ok(false) };
        };
        let mut changed = false;
        for ((n, bytes), single) in (first..=last).zip(&mut packed).zip(self.objects.read_each(&names)?) {
            let Some(single) = single.filter(|single| single != bytes) else { continue };
            // Of the same writing, it was forgotten what it said; of another one, nobody believes it.
            let (Ok(before), Ok(after)) = (read(n, bytes), read(n, &single)) else { continue };
            if (before.by, before.tag) == (after.by, after.tag) {
                (*bytes, changed) = (single, true);
            }
        }
        if changed {
            self.objects.replace(&pack, &packs::pack(&packed)?)?;
        }
        self.objects.remove_each(&names)?;
        // After a power cut too: what is forgotten later is not to come back.
        self.objects.sync("journal")?;
        Ok(true)
    }

    /// Writes what `decide` makes of the state as one entry, after everything that is there. It is asked again whenever somebody else was faster. The
    /// number of the entry, or nothing where there was nothing to decide. When it returns, the entry outlives a power cut.
    ///
    /// # Errors
    /// When the journal cannot be read or written, or too much was decided at once.
    pub fn commit(
        &mut self,
        mut decide: impl FnMut(&State) -> Vec<Event>,
    ) -> Result<Option<u64>, JournalError> {
        loop {
            self.follow()?;
            let (n, events) = {
                let state = self.state();
                (state.last() + 1, decide(&state))
            };
            if events.is_empty() {
                return Ok(None);
            }
            let entry = Entry {
                v: JOURNAL_VERSION,
                n,
                by: self.by.clone(),
                tag: self.tag(),
                at: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
                events: events.into_iter().map(|event| Told::Known(event.bounded())).collect(),
            };
            if self.write(&entry)? {
                return Ok(Some(n));
            }
            self.conflicts += 1;
        }
    }

    /// Writes what somebody says, if it is valid now: the number of the entry.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn say(&mut self, event: Event) -> Result<Option<u64>, JournalError> {
        self.commit(|state| if state.allows(&event) { vec![event.clone()] } else { Vec::new() })
    }

    /// Changes what entries say; whether any changed. Only what is forgotten does so: each keeps its number, its writer and its time.
    ///
    /// # Errors
    /// When an entry cannot be read or written.
    pub(crate) fn rewrite(&mut self, mut change: impl FnMut(&mut Event)) -> Result<bool, JournalError> {
        self.follow()?;
        let mut ever = false;
        let mut changed = |n: u64, bytes: &[u8]| -> Result<Option<Vec<u8>>, JournalError> {
            let before = read(n, bytes)?;
            let mut after = before.clone();
            for told in &mut after.events {
                if let Told::Known(event) = told {
                    change(event);
                }
            }
            Ok((after != before).then(|| written(&after)))
        };
        // Packs may come meanwhile: what nothing changes in has all of it.
        loop {
            let mut any = false;
            // Before packs: who packs an entry meanwhile looks again at what it says by itself.
            self.objects.sync("journal")?;
            for n in self.numbers("journal")? {
                let Some(bytes) = self.objects.read(&name(n))? else { continue };
                if let Some(after) = changed(n, &bytes)? {
                    self.objects.replace(&name(n), &after)?;
                    any = true;
                }
            }
            for first in self.numbers("pack")? {
                let Some(mut packed) = self.packed(first)? else { continue };
                let mut here = false;
                for (n, bytes) in (first..).zip(&mut packed) {
                    if let Some(after) = changed(n, bytes)? {
                        (*bytes, here) = (after, true);
                    }
                }
                if here {
                    let name = packs::name(packs::range(first, self.rhythm.pack));
                    self.objects.replace(&name, &packs::pack(&packed)?)?;
                    any = true;
                }
            }
            if !any {
                return Ok(ever);
            }
            ever = true;
        }
    }

    /// Removes all snapshots: they are made anew of what the entries say.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub(crate) fn remove_snapshots(&mut self) -> Result<(), JournalError> {
        for file in self.objects.list("snapshot")? {
            self.objects.remove(&format!("snapshot/{file}"))?;
        }
        Ok(self.objects.sync("snapshot")?)
    }

    /// Whether this entry is the one of its number now.
    fn write(&mut self, entry: &Entry) -> Result<bool, JournalError> {
        let bytes = written(entry);
        if bytes.len() > MOST_BYTES {
            return Err(JournalError::TooLarge(bytes.len()));
        }
        let created = self.objects.create(&name(entry.n), &bytes);
        let won = match created {
            // The name is free again once its entry is packed. Whoever slept so long comes too late.
            Ok(true) => match self.packed(entry.n)? {
                None => true,
                Some(_) => {
                    let own = self.is_own(entry)?;
                    if !own {
                        self.objects.remove(&name(entry.n))?;
                    }
                    own
                }
            },
            // A name is taken though the answer was lost: by its tag an entry knows whose it is.
            Ok(false) => self.is_own(entry)?,
            Err(error) => match self.is_own(entry) {
                Ok(true) => true,
                _ => return Err(error.into()),
            },
        };
        if won {
            // What is applied is what others read. Who shares the state may have done so meanwhile.
            let entry = read(entry.n, &bytes)?;
            let mut state = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut state).apply(&entry);
            drop(state);
            if entry.n.is_multiple_of(self.rhythm.snapshot) {
                self.snapshot();
            }
        }
        Ok(won)
    }

    fn is_own(&self, entry: &Entry) -> Result<bool, JournalError> {
        let there = self.entry(entry.n)?;
        Ok(there.is_some_and(|there| there.by == entry.by && there.tag == entry.tag))
    }

    fn tag(&self) -> String {
        let count = TAGS.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let time = Utc::now().timestamp_nanos_opt().unwrap_or(0).to_le_bytes();
        let process = std::process::id().to_le_bytes();

        crate::id::hex_of(&[self.by.as_bytes(), &count, &time, &process])
    }

    /// Writes down what the journal comes to, now and then. It only makes a start faster, so that it may fail.
    fn snapshot(&self) {
        let (n, text) = {
            let state = self.state();
            (state.last(), serde_json::to_vec(&*state))
        };
        let Ok(text) = text else { return };
        let sum = Sum { blake3: blake3::hash(&text).to_hex().to_string(), fold: Some(FOLD) };
        let mut bytes = serde_json::to_vec(&sum).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend(text);
        let Ok(packed) = zstd::encode_all(&*bytes, LEVEL) else { return };
        let written = self.objects.create(&snapshot_name(n), &packed);
        let Ok(names) = self.objects.list("snapshot") else { return };
        if written.is_ok() && names.len() > SNAPSHOTS {
            for old in &names[..names.len() - SNAPSHOTS] {
                let _ = self.objects.remove(&format!("snapshot/{old}"));
            }
        }
        let _ = self.pack(PACKS);
    }
}

/// The last snapshot that can be read.
fn latest_snapshot(objects: &impl Objects) -> Result<Option<State>, JournalError> {
    for file in objects.list("snapshot")?.iter().rev() {
        let Some(packed) = objects.read(&format!("snapshot/{file}"))? else { continue };
        let unpack = || -> Option<State> {
            let mut bytes = Vec::new();
            let reader = zstd::Decoder::new(&*packed).ok()?;
            io::copy(&mut io::Read::take(reader, MOST_SNAPSHOT), &mut bytes).ok()?;
            let end = bytes.iter().position(|byte| *byte == b'\n')?;
            let sum: Sum = serde_json::from_slice(&bytes[..end]).ok()?;
            let text = &bytes[end + 1..];
            (sum.fold == Some(FOLD) && sum.blake3 == blake3::hash(text).to_hex().as_str())
                .then(|| serde_json::from_slice(text).ok())?
        };
        // One of an older program, or a damaged one: the journal has all of it.
        if let Some(state) = unpack() {
            return Ok(Some(state));
        }
    }
    Ok(None)
}
