//! The quarantine of one system: what is there, and what this load adds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;

use crate::StoreError;
use crate::columns::Sink;
use crate::columns::{QuarantineColumns, QuarantineRow};
use crate::locations::{Entry, Locations};
use crate::scan::scan;

/// Calls `each` with every quarantined line of a system, from its files.
pub fn each(
    files: &[SealedFile],
    system: &str,
    mut each: impl FnMut(&QuarantineRow<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let columns = [
        ("source", DataType::Utf8),
        ("code", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("raw", DataType::Binary),
        ("offset", DataType::Int64),
        ("line", DataType::Int64),
        ("raw_length", DataType::Int64),
        ("digest", DataType::Int64),
    ];
    scan(files, &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        let long = |i: usize, row: usize| batch.column(i).as_primitive::<Int64Type>().value(row) as u64;
        for row in 0..batch.num_rows() {
            each(&QuarantineRow {
                system,
                source: text(0).value(row),
                offset: long(4, row),
                line: long(5, row),
                raw_length: long(6, row),
                raw: batch.column(3).as_binary::<i32>().value(row),
                code: text(1).value(row),
                reason: text(2).value(row),
                digest: long(7, row),
            })?;
        }
        Ok(())
    })
}

/// Refused lines in a row from which on they are one row.
pub const RUN: usize = 16;

/// The reason of a row that has several lines in a row: that of the first one, how many there are, and number and offset of the last one.
pub fn of_run(reason: &str, lines: u64, (number, offset): (u64, u64)) -> String {
    format!("{reason} ({lines} in a row, up to line {number} at byte {offset})")
}

/// How many lines a row has, by its reason.
pub fn lines_of(reason: &str) -> u64 {
    run_of(reason).or_else(|| elements_of(reason)).unwrap_or(1)
}

/// How many lines a row of several lines has.
pub fn run_of(reason: &str) -> Option<u64> {
    let (lines, rest) =
        reason.strip_suffix(')')?.rsplit_once(" (")?.1.split_once(" in a row, up to line ")?;
    let (number, offset) = rest.split_once(" at byte ")?;
    offset.parse::<u64>().ok()?;
    number.parse::<u64>().ok()?;
    lines.parse().ok()
}

/// How many elements of a request a row stands for.
fn elements_of(reason: &str) -> Option<u64> {
    let (places, _) = reason.strip_prefix("resource")?.split_once(" in a row: ")?;
    places.split_once("] to resource")?.1.rsplit_once("], ")?.1.parse().ok()
}

/// Lines on their way to the quarantine, each let through once.
///
/// The digests of what is there are read when the first line arrives. Memory holds the newest of them, the others are in unnamed files.
pub struct Quarantine {
    files: Vec<SealedFile>,
    /// Where the digests go that are not in memory.
    scratch: PathBuf,
    known: Option<Locations>,
    columns: QuarantineColumns,
    /// Lines let through, by code.
    pub added: BTreeMap<String, u64>,
    /// Lines held back because they are there.
    pub known_again: u64,
}

impl Quarantine {
    /// The quarantine whose rows are in `files`. Temporary data goes to `scratch`.
    pub fn new(files: Vec<SealedFile>, scratch: PathBuf) -> Self {
        Quarantine {
            files,
            scratch,
            known: None,
            columns: QuarantineColumns::default(),
            added: BTreeMap::new(),
            known_again: 0,
        }
    }

    /// Adds a line unless one of its digest is there.
    pub fn push(&mut self, row: &QuarantineRow<'_>, writer: &mut impl Sink) -> Result<(), StoreError> {
        let known = match &mut self.known {
            Some(known) => known,
            None => self.known.insert(read_digests(&self.files, &self.scratch)?),
        };
        if !insert(known, row.digest, &self.scratch)? {
            self.known_again += 1;
            return Ok(());
        }
        match self.added.get_mut(row.code) {
            Some(count) => *count += lines_of(row.reason),
            None => {
                self.added.insert(row.code.to_owned(), lines_of(row.reason));
            }
        }
        self.columns.push(row);
        if self.columns.is_full() {
            self.flush(writer)?;
        }
        Ok(())
    }

    /// Hands what was gathered to the writer.
    pub fn flush(&mut self, writer: &mut impl Sink) -> Result<(), StoreError> {
        if self.columns.rows() > 0 {
            writer.write(self.columns.finish()?)?;
        }
        Ok(())
    }
}

fn read_digests(files: &[SealedFile], scratch: &Path) -> Result<Locations, StoreError> {
    let mut known = Locations::new(scratch);
    scan(files, &[("digest", DataType::Int64)], |batch| {
        for digest in batch.column(0).as_primitive::<Int64Type>().values() {
            insert(&mut known, *digest as u64, scratch)?;
        }
        Ok(())
    })?;
    Ok(known)
}

/// Adds a digest; whether it was new.
fn insert(known: &mut Locations, digest: u64, scratch: &Path) -> Result<bool, StoreError> {
    let mut add = || {
        if known.find(0, digest)?.is_some() {
            return Ok(false);
        }
        known.add(0, Entry { seq: digest, digest: 0, offset: 0, source: 0 })?;
        Ok(true)
    };
    let action = "use a temporary file here";
    add().map_err(|source| StoreError::Io { path: scratch.to_owned(), action, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refused lines come without end: each digest is known again, and memory is bounded.
    #[test]
    fn digests_without_end_are_held_in_bounded_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = Locations::new(folder.path());
        let digest = |n: u64| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes());
        let count = 600_000;
        for n in 0..count {
            assert!(insert(&mut known, digest(n), folder.path()).unwrap());
        }
        assert!(known.bytes() < 64 << 20, "{}", known.bytes());
        for n in (0..count).step_by(997) {
            assert!(!insert(&mut known, digest(n), folder.path()).unwrap());
        }
    }
}
