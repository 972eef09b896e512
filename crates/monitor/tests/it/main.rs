//! Monitors over logs that come in any order.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod anything;
mod arrival;
mod crowd;
mod judged;
mod system;
mod uncertain;

use demi_monitor::{Invariant, Monitor, Options, Violation};
use demi_schemas::EventRecord;

/// Invariants of these predicates, called by their numbers.
fn invariants(predicates: &[&str]) -> Vec<Invariant> {
    let entry = |(i, p): (usize, &&str)| format!("[[invariant]]\nid = \"i{i}\"\nholds = {p:?}\n");
    let text: String = predicates.iter().enumerate().map(entry).collect();
    Invariant::read(&format!("schema = \"demi-invariants/1\"\n{text}")).unwrap()
}

fn record(line: &str) -> EventRecord {
    EventRecord::parse(line.as_bytes()).unwrap()
}

/// Takes these records, each a frame of its own, one a millisecond.
fn take<'r>(monitor: &mut Monitor<'_>, records: impl IntoIterator<Item = &'r EventRecord>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (i, record) in records.into_iter().enumerate() {
        let record = monitor.interest().record(record);
        monitor.take(record, i as u64 + 1, i as u64, &mut found);
    }
    found
}

fn options() -> Options {
    Options { quiet_millis: 0, ..Options::default() }
}
