//! What the committer knows of one system.

use std::path::PathBuf;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_schemas::{EventRecord, Kind};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::admit::Known;
use crate::completeness::CompletenessRow;
use crate::daemon::pairs::Pairs;
use crate::scan::scan;
use crate::stamps::Stamps;
use crate::{IngestError, Store};

/// Rows of the newest files that are read for the sends and receives in them.
const RECENT_ROWS: usize = 1_000_000;

/// Rows and counts of one system since the last commit.
#[derive(Default)]
pub(super) struct Counts {
    pub written: u64,
    pub duplicates: u64,
    pub backward_stamps: u64,
}

pub(super) struct System {
    pub known: Known,
    pub pairs: Pairs,
    pub counts: Counts,
    /// Stamps that run backwards through their logs.
    pub stamps: Stamps,
    /// By actor and incarnation: time of the event that came last.
    last_times: FxHashMap<String, Vec<(u32, Value)>>,
}

impl System {
    /// Reads what the store has of the system; `completeness` holds what was counted before. Temporary data goes to
    /// `scratch`.
    pub(super) fn open(
        store: &Store,
        name: &str,
        completeness: &[CompletenessRow],
        scratch: PathBuf,
    ) -> Result<Self, IngestError> {
        let files = store.known_event_files(name)?;
        let mut pairs = Pairs::default();
        read_pairs(&files, &mut pairs)?;
        let mut known = Known::read(store, name, scratch)?;
        let mut last_times: FxHashMap<String, Vec<(u32, Value)>> = FxHashMap::default();
        for row in completeness.iter().filter(|row| row.system == name) {
            let counts = &row.counts;
            known.seen.add_counts(&counts.actor, counts.incarnation, counts.duplicates, counts.conflicts);
            if let Some(time) = &row.last_time {
                let time = Value::String(time.clone());
                last_times.entry(counts.actor.clone()).or_default().push((counts.incarnation, time));
            }
        }
        Ok(System { known, pairs, counts: Counts::default(), stamps: Stamps::default(), last_times })
    }

    /// Takes in an event that is new. Takes its time away: the row was made.
    pub(super) fn added(&mut self, record: &mut EventRecord) {
        self.counts.written += 1;
        self.pairs.take(record);
        let Some(time) = record.time.take() else { return };
        let incarnations = match self.last_times.get_mut(&record.actor) {
            Some(incarnations) => incarnations,
            None => self.last_times.entry(std::mem::take(&mut record.actor)).or_default(),
        };
        match incarnations.iter_mut().find(|(incarnation, _)| *incarnation == record.incarnation) {
            Some((_, last)) => *last = time,
            None => incarnations.push((record.incarnation, time)),
        }
    }

    /// The system's rows of the completeness.
    pub(super) fn completeness(&self) -> Vec<CompletenessRow> {
        let time = |actor: &str, incarnation: u32| {
            let (_, time) = self.last_times.get(actor)?.iter().find(|(i, _)| *i == incarnation)?;
            Some(time.as_str().map_or_else(|| time.to_string(), str::to_owned))
        };
        let rows = self.known.seen.completeness().into_iter();
        rows.map(|counts| CompletenessRow {
            system: self.known.system.clone(),
            last_time: time(&counts.actor, counts.incarnation),
            counts,
        })
        .collect()
    }
}

/// Takes in the sends and receives of the newest files.
fn read_pairs(files: &[SealedFile], pairs: &mut Pairs) -> Result<(), IngestError> {
    let mut rows = 0;
    let mut first = files.len();
    while first > 0 && rows < RECENT_ROWS {
        first -= 1;
        rows += crate::scan::row_count(&files[first])?;
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
