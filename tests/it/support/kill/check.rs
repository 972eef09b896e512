//! Whether everything is there once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use demi_daemon::verify;
use demi_store::Store;
use demi_store::{completeness, status};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::payload;

/// Rows of the files.
pub fn rows(files: &[impl AsRef<Path>]) -> u64 {
    let count = |path: &dyn AsRef<Path>| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path.as_ref()).unwrap()).unwrap();
        u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap()
    };
    files.iter().map(|file| count(file)).sum()
}

/// What the store holds of an actor's position.
#[derive(Debug)]
pub struct Told {
    pub kind: String,
    pub payload: String,
    pub msg_id: Option<String>,
}

/// All events by actor and position; none is there twice.
pub fn told(store: &Path) -> BTreeMap<String, BTreeMap<u64, Told>> {
    let store = Store::open(store).unwrap();
    let mut found: BTreeMap<String, BTreeMap<u64, Told>> = BTreeMap::new();
    for path in store.event_files("s").unwrap() {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
        for batch in reader {
            let batch = batch.unwrap();
            let text = |name: &str, row: usize| {
                let column = batch.column_by_name(name).unwrap().as_string::<i32>();
                column.is_valid(row).then(|| column.value(row).to_owned())
            };
            let seqs = batch.column_by_name("seq").unwrap().as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let (actor, seq) = (text("actor", row).unwrap(), seqs.value(row) as u64);
                let event = Told {
                    kind: text("kind", row).unwrap(),
                    payload: text("payload", row).unwrap_or_default(),
                    msg_id: text("msg_id", row),
                };
                let before = found.entry(actor.clone()).or_default().insert(seq, event);
                assert!(before.is_none(), "{actor}/{seq} is there twice");
            }
        }
    }
    found
}

/// Every record of every actor from 1 on, once, with its content; completeness and quarantine agree.
pub fn everything_once(dir: &Path, expected: &BTreeMap<String, u64>) {
    let store = Store::open(dir.join("store")).unwrap();
    let mut found: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (actor, events) in told(&dir.join("store")) {
        for (seq, event) in &events {
            if actor != "flood" {
                assert_eq!(event.payload, payload(&actor, *seq), "{actor}/{seq}");
            }
        }
        found.insert(actor, events.into_keys().collect());
    }
    let quarantined = rows(&store.quarantine_files("s").unwrap());
    assert_eq!(quarantined, 0, "nothing that was written is malformed");
    for (actor, count) in expected {
        let got = found.get(actor).map_or(0, BTreeSet::len) as u64;
        // A request that was refused for want of room may be in the store all the same.
        let more = u64::from(actor == "flood" && got == count + 1);
        assert_eq!(got - more, *count, "{actor}: missing {:?}", missing(found.get(actor), *count));
        assert_eq!(found[actor].last(), Some(&(count + more)), "{actor}");
    }
    assert_eq!(found.len(), expected.len(), "{:?}", found.keys());
    let told = completeness(&store).unwrap();
    assert_eq!(told.len(), expected.len());
    for row in &told {
        assert_eq!(
            row.counts.events,
            found[&row.counts.actor].len() as u64,
            "completeness of {}",
            row.counts.actor
        );
        assert_eq!((row.counts.missing, row.counts.conflicts, row.counts.gaps.len()), (0, 0, 0));
    }
    assert_eq!(status(&store, None).unwrap(), told);
    let verified = verify(&dir.join("store"), &dir.join("spool")).unwrap();
    assert!(verified.losses.is_empty() && verified.warnings.is_empty(), "{verified:?}");
    assert_eq!((verified.pending_lines, verified.torn_bytes), (0, 0));
}

fn missing(found: Option<&BTreeSet<u64>>, count: u64) -> Vec<u64> {
    (1..=count).filter(|n| !found.is_some_and(|f| f.contains(n))).take(20).collect()
}
