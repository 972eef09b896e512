//! Requests of exporters that are sent again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::path::Path;

use demi_formats::Sources;
use demi_formats::otlp::{self, Item, OtlpOptions};
use demi_schemas::EventRecord;
use demi_store::{LoadOptions, Store};
use serde_json::json;

const SHOP: &str = include_str!("../../../formats/tests/otlp/shop.json");

fn events(items: Vec<Item>) -> Vec<EventRecord> {
    let event = |item| match item {
        Item::Event(record) => *record,
        Item::Rejected(rejected) => panic!("{rejected}"),
    };
    items.into_iter().map(event).collect()
}

fn lines(records: &[EventRecord]) -> String {
    records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect()
}

/// Loads records as a file of its own; says (added, duplicates, conflicts).
fn load(store: &mut Store, folder: &Path, name: &str, records: &[EventRecord]) -> (u64, u64, u64) {
    let path = folder.join(name);
    std::fs::write(&path, lines(records)).unwrap();
    let sources = Sources::plan(&[path.display().to_string()]).unwrap();
    let summary = demi_store::load(store, sources, &LoadOptions::new("s"), |_| {}).unwrap().summary;
    assert_eq!(summary.quarantined, 0, "{:?}", summary.quarantine_reasons);
    (summary.added, summary.duplicates, summary.conflicts)
}

#[test]
fn a_request_sent_again_adds_nothing_whatever_it_is_grouped_with() {
    let records = events(otlp::from_json(SHOP.as_bytes(), &OtlpOptions::default()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path().join("store")).unwrap();
    let (all, some) = (records.len() as u64, records.len() / 3);
    // The second part first, as after a retry of the first one; then everything.
    let rest = (records.len() - some) as u64;
    assert_eq!(load(&mut store, folder.path(), "b", &records[some..]), (rest, 0, 0));
    assert_eq!(load(&mut store, folder.path(), "all", &records), (some as u64, rest, 0));
    let mut changed: Vec<EventRecord> = records.iter().rev().cloned().collect();
    changed.iter_mut().filter(|r| r.attrs.contains_key("key")).for_each(|r| {
        r.attrs.insert("added_by_a_collector".into(), json!(true));
    });
    assert_eq!(load(&mut store, folder.path(), "changed", &changed), (0, all, 0));
    let loaded: u64 = store.event_files("s").unwrap().len() as u64;
    assert!(loaded > 0);
}
