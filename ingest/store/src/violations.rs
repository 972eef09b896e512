//! Violation records that came into the store since a version of its table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arrow_array::{Array, Int32Array, Int64Array, StringArray};
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_schemas::Kind;
use serde_json::Value;

use crate::scan::scan;
use crate::{Store, StoreError};

/// A violation record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolationRow {
    /// The system.
    pub system: String,
    /// Whose record it is.
    pub actor: String,
    /// Of which incarnation.
    pub incarnation: u32,
    /// Its number.
    pub seq: u64,
    /// Its type.
    pub type_: Option<String>,
    /// What it says, as text.
    pub payload: Option<String>,
    /// Its fields, as JSON.
    pub fields: Option<String>,
    /// When it happened, as the log says.
    pub time: Option<String>,
    /// Fields that are not known, as JSON.
    pub attrs: Option<String>,
}

/// Violation records of commits after `version`, in the order of systems and files. A record may come more than once, and one of an earlier commit may be
/// among them: files are merged. None of a later commit is missing.
///
/// # Errors
/// When a table cannot be read.
pub fn violations_since(store: &Store, version: u64) -> Result<Vec<ViolationRow>, StoreError> {
    let added = added_since(store.dir(), version, store.version());
    let mut rows = Vec::new();
    for system in store.systems()? {
        let mut files = store.event_files(&system)?;
        if let Some(added) = &added {
            files.retain(|file| name_of(file.path()).is_some_and(|name| added.contains_key(name)));
        }
        read(&system, &files, &mut rows)?;
    }
    Ok(rows)
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The data files that commits after a version added and that may hold violations, by name; nothing where a commit is not there any more.
fn added_since(store: &Path, version: u64, last: u64) -> Option<BTreeMap<String, ()>> {
    let log = store.join("events").join("_delta_log");
    let mut added = BTreeMap::new();
    for n in version + 1..=last {
        let text = fs::read_to_string(log.join(format!("{n:020}.json"))).ok()?;
        for line in text.lines() {
            let Ok(action) = serde_json::from_str::<Value>(line) else { continue };
            let Some(add) = action.get("add") else { continue };
            let path = add.get("path").and_then(Value::as_str)?;
            if may_hold_violations(add) {
                added.insert(path.rsplit('/').next().unwrap_or(path).to_owned(), ());
            }
        }
    }
    Some(added)
}

/// By the bounds of its kinds, where the commit has them.
fn may_hold_violations(add: &Value) -> bool {
    let stats =
        add.get("stats").and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let bound = |name: &str| Some(stats.as_ref()?.get(name)?.get("kind")?.as_str()?.to_owned());
    let kind = Kind::Violation.as_str();
    match (bound("minValues"), bound("maxValues")) {
        (Some(min), Some(max)) => min.as_str() <= kind && kind <= max.as_str(),
        _ => true,
    }
}

fn read(system: &str, files: &[SealedFile], rows: &mut Vec<ViolationRow>) -> Result<(), StoreError> {
    let columns = [
        ("kind", DataType::Utf8),
        ("actor", DataType::Utf8),
        ("incarnation", DataType::Int32),
        ("seq", DataType::Int64),
        ("type", DataType::Utf8),
        ("fields", DataType::Utf8),
        ("time", DataType::Utf8),
        ("attrs", DataType::Utf8),
        ("payload", DataType::Utf8),
    ];
    scan(files, &columns, |batch| {
        let text = |at: usize| batch.column(at).as_any().downcast_ref::<StringArray>();
        let numbers = (
            batch.column(2).as_any().downcast_ref::<Int32Array>(),
            batch.column(3).as_any().downcast_ref::<Int64Array>(),
        );
        let (Some(kinds), Some(actors), (Some(incarnations), Some(seqs))) = (text(0), text(1), numbers)
        else {
            return Ok(());
        };
        for row in (0..batch.num_rows()).filter(|row| kinds.value(*row) == Kind::Violation.as_str()) {
            let optional = |at: usize| {
                text(at).filter(|column| column.is_valid(row)).map(|column| column.value(row).to_owned())
            };
            rows.push(ViolationRow {
                system: system.to_owned(),
                actor: actors.value(row).to_owned(),
                incarnation: u32::try_from(incarnations.value(row)).unwrap_or(0),
                seq: u64::try_from(seqs.value(row)).unwrap_or(0),
                type_: optional(4),
                fields: optional(5),
                time: optional(6),
                attrs: optional(7),
                payload: optional(8),
            });
        }
        Ok(())
    })
}
