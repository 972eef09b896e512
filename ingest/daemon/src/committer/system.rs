//! What the committer knows of one system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_formats::read::plain::{LineTexts, PlainRow};
use demi_schemas::{EventRecord, Kind};
use serde_json::Value;

use crate::pairs::Pairs;
use demi_store::admit::Known;
use demi_store::completeness::CompletenessRow;
use demi_store::scan::scan;
use demi_store::stamps::Stamps;
use demi_store::{Store, StoreError};

/// Rows of the newest files that are read for the sends and receives in them.
const RECENT_ROWS: usize = 1_000_000;

/// Rows and counts of one system since the last commit.
#[derive(Default)]
pub(super) struct Counts {
    pub written: u64,
    pub duplicates: u64,
    pub backward_stamps: u64,
}

/// Actors whose gaps are metrics of their own.
const MOST_ACTORS: usize = 1000;

pub(super) struct System {
    pub known: Known,
    pub pairs: Pairs,
    pub counts: Counts,
    /// Stamps that run backwards through their logs.
    pub stamps: Stamps,
    /// By actor whose gaps are a metric: how many sequence numbers of each incarnation are missing.
    gaps: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl System {
    /// Reads what the store has of the system. Temporary data goes to `scratch`.
    pub(super) fn open(store: &Store, name: &str, scratch: PathBuf) -> Result<Self, StoreError> {
        let files = store.known_event_files(name)?;
        let mut pairs = Pairs::default();
        read_pairs(&files, &mut pairs)?;
        let known = store.known(name, scratch)?;
        let mut system = System {
            known,
            pairs,
            counts: Counts::default(),
            stamps: Stamps::default(),
            gaps: BTreeMap::new(),
        };
        for slot in system.known.seen.with_gaps() {
            system.measure(slot);
        }
        Ok(system)
    }

    /// Takes in an event that is new. Takes its time away: the row was made.
    pub(super) fn added(&mut self, record: &mut EventRecord) {
        self.counts.written += 1;
        self.pairs.take(record);
        match record.time.take() {
            Some(Value::String(time)) => self.known.seen.note_time(time),
            Some(time) => self.known.seen.note_time(time.to_string()),
            None => {}
        }
    }

    /// The same of a plain record.
    pub(super) fn added_plain(&mut self, row: &PlainRow, texts: &LineTexts) {
        self.counts.written += 1;
        let [id, _, to, ..] = row.texts.map(|text| texts.get(text));
        if let Some(id) = id {
            self.pairs.event(row.kind, id, to, texts.get(row.actor).unwrap_or_default());
        }
        if let Some(time) = texts.get(row.time) {
            self.known.seen.note_time(time.to_owned());
        }
    }

    /// By what the row of an incarnation is sorted.
    pub(super) fn key(&self, slot: u32) -> (&str, &str, u32) {
        let (actor, incarnation) = self.known.seen.key(slot);
        (&self.known.system, actor, incarnation)
    }

    /// The row of an incarnation in the completeness, where one stands there from before; `None` if it has no events any more.
    pub(super) fn row(&self, slot: u32, before: Option<CompletenessRow>) -> Option<CompletenessRow> {
        let seen = &self.known.seen;
        let mut counts = seen.complete(slot)?;
        let mut last_time = seen.noted(slot).and_then(|noted| noted.last_time.as_deref().map(str::to_owned));
        if let Some(before) = before {
            counts.duplicates += before.counts.duplicates;
            counts.conflicts += before.counts.conflicts;
            last_time = last_time.or(before.last_time);
        }
        Some(CompletenessRow { system: self.known.system.clone(), counts, last_time })
    }

    /// Takes note of the gaps of an incarnation that changed.
    pub(super) fn measure(&mut self, slot: u32) {
        let missing = self.known.seen.missing(slot);
        let (actor, incarnation) = self.known.seen.key(slot);
        let may_begin = missing > 0 && self.gaps.len() < MOST_ACTORS;
        match self.gaps.get_mut(actor) {
            Some(gaps) => drop(gaps.insert(incarnation, missing)),
            None if may_begin => {
                self.gaps.insert(actor.to_owned(), BTreeMap::from([(incarnation, missing)]));
            }
            None => {}
        }
    }

    /// By actor: how many sequence numbers are missing.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (&str, u64)> {
        self.gaps.iter().map(|(actor, gaps)| (actor.as_str(), gaps.values().sum()))
    }
}

/// Takes in the sends and receives of the newest files.
fn read_pairs(files: &[SealedFile], pairs: &mut Pairs) -> Result<(), StoreError> {
    let mut rows = 0;
    let mut first = files.len();
    while first > 0 && rows < RECENT_ROWS {
        first -= 1;
        rows += demi_store::scan::row_count(&files[first])?;
    }
    let columns = ["kind", "msg_id", "to", "actor"].map(|name| (name, DataType::Utf8));
    scan(&files[first..], &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let (Some(kind), true) = (Kind::from_name(text(0).value(row)), text(1).is_valid(row)) else {
                continue;
            };
            let to = text(2).is_valid(row).then(|| text(2).value(row));
            pairs.event(kind, text(1).value(row), to, text(3).value(row));
        }
        Ok(())
    })
}
