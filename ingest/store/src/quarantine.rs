//! The quarantine of one system: what is there, and what this load adds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use xxhash_rust::xxh3::xxh3_64;

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

/// The code of a record that says something else than the event that is stored. Its digest is of both, not of its place.
pub const CONFLICT: &str = "conflict";
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
    known: Option<Digests>,
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
            None => self.known.insert(Digests::read(&self.files, &self.scratch)?),
        };
        if !known.insert((row.source, row.offset), row.code, row.digest)? {
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

/// The digests that are known. Those of refused lines by where these stand: lines of a source come in the order of their places, and what comes in order
/// is found without reading. Conflicts are known wherever they come from, so their digests are looked for by themselves.
struct Digests {
    scratch: PathBuf,
    /// The first digest of each place.
    lines: Locations,
    /// Digests of conflicts, and further ones of places that have one.
    others: Locations,
}

impl Digests {
    /// Reads what is in these files.
    fn read(files: &[SealedFile], scratch: &Path) -> Result<Self, StoreError> {
        let (lines, others) = (Locations::new(scratch), Locations::new(scratch));
        let mut known = Digests { scratch: scratch.to_owned(), lines, others };
        let columns = [
            ("source", DataType::Utf8),
            ("code", DataType::Utf8),
            ("offset", DataType::Int64),
            ("digest", DataType::Int64),
        ];
        scan(files, &columns, |batch| {
            let text = |i: usize| batch.column(i).as_string::<i32>();
            let long = |i: usize, row: usize| batch.column(i).as_primitive::<Int64Type>().value(row) as u64;
            for row in 0..batch.num_rows() {
                let place = (text(0).value(row), long(2, row));
                known.insert(place, text(1).value(row), long(3, row))?;
            }
            Ok(())
        })?;
        Ok(known)
    }

    /// Adds the digest of a line of that source, at that offset, refused with that code; whether it was new.
    fn insert(&mut self, (source, offset): (&str, u64), code: &str, digest: u64) -> Result<bool, StoreError> {
        // Two sources of one number cost time where they have the same offsets, and nothing else.
        let source = xxh3_64(source.as_bytes()) as u32;
        let mut add = || {
            if code != CONFLICT {
                match self.lines.find(source, offset)? {
                    Some(there) if there.digest == digest => return Ok(false),
                    Some(_) => {}
                    None => {
                        self.lines.add(source, Entry { seq: offset, digest, offset: 0, source: 0 })?;
                        return Ok(true);
                    }
                }
            }
            if self.others.find(0, digest)?.is_some() {
                return Ok(false);
            }
            self.others.add(0, Entry { seq: digest, digest, offset: 0, source: 0 })?;
            Ok(true)
        };
        let action = "use a temporary file here";
        add().map_err(|source| StoreError::Io { path: self.scratch.clone(), action, source })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Refused lines come without end, from two sources: each digest is known again, and memory is bounded.
    #[test]
    fn digests_without_end_are_held_in_bounded_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = Digests::read(&[], folder.path()).unwrap();
        let digest = |n: u64| xxh3_64(&n.to_le_bytes());
        let place = |n: u64| (["a", "b"][n as usize % 2], n / 3 * 10);
        let code = |n: u64| if n.is_multiple_of(7) { CONFLICT } else { "not_json" };
        let count = 600_000;
        for n in 0..count {
            assert!(known.insert(place(n), code(n), digest(n)).unwrap());
        }
        let bytes = known.lines.bytes() + known.others.bytes();
        assert!(bytes < 128 << 20, "{bytes}");
        for n in (0..count).step_by(997) {
            assert!(!known.insert(place(n), code(n), digest(n)).unwrap());
        }
    }

    proptest! {
        /// A refused line is known where it stands, a conflict wherever it stands, as a set of all of them says.
        #[test]
        fn what_is_known_is_what_was_added(
            rows in prop::collection::vec((0u8..2, 0u64..4, any::<bool>(), 0u64..5), 0..60),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut known = Digests::read(&[], folder.path()).unwrap();
            let mut all = std::collections::BTreeSet::new();
            for (source, offset, is_conflict, content) in rows {
                let source = ["a", "b"][usize::from(source)];
                let (code, digest) = match is_conflict {
                    true => (CONFLICT, xxh3_64(format!("conflict {content}").as_bytes())),
                    // As the digest of a refused line is made, of its place too.
                    false => ("rule", xxh3_64(format!("{source} {offset} {content}").as_bytes())),
                };
                prop_assert_eq!(known.insert((source, offset), code, digest).unwrap(), all.insert(digest));
            }
        }
    }
}
