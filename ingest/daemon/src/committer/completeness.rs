//! The table of completeness as the committer keeps it.
//!
//! There may be millions of rows, of which few change with a commit. They stand in order in several files; a commit writes those files anew
//! that have changes, a row at a time. So neither memory nor what is written grows with the actors that are silent.

use std::collections::{BTreeMap, BTreeSet};

use deltalake_core::kernel::Remove;
use demi_common::sealed::SealedFile;

use super::system::System;
use demi_store::StoreError;
use demi_store::completeness::{self, CompletenessRow};
use demi_store::delta::{Gone, TableWriter};
use demi_store::seen::Bits;

/// Most rows of a file that is written anew with a change in it.
const MOST_ROWS: usize = if cfg!(test) { 64 } else { 128 * 1024 };
/// Rows that are handed over together.
const BATCH: usize = 16 * 1024;

/// System, actor and incarnation.
type Key = (String, String, u32);

/// A file of the table.
struct Part {
    path: String,
    file: SealedFile,
    first: Key,
    rows: usize,
    /// Whether the table as it is now has it; otherwise its rows have to be written again.
    live: bool,
}

/// The rows as they were when the session began, or at the last commit.
enum Rows {
    /// In files, in the order of their rows.
    Parts(Vec<Part>),
    /// Sorted; they stand in no order in their files.
    Read(Vec<CompletenessRow>),
}

/// The table of completeness.
pub(super) struct Completeness {
    pub(super) writer: TableWriter,
    /// Whether it was committed and the events that it counts were not.
    pub(super) is_ahead: bool,
    rows: Rows,
    /// Rows that the last commit wrote.
    written: usize,
}

impl Completeness {
    /// The rows as of a version of the table, which has these files.
    pub(super) fn new(
        writer: TableWriter,
        is_ahead: bool,
        files: BTreeMap<String, (SealedFile, Remove)>,
    ) -> Result<Self, StoreError> {
        let live = writer.files()?;
        let mut parts = Vec::new();
        let mut last: BTreeMap<Key, Key> = BTreeMap::new();
        let mut in_order = true;
        for (path, (file, _)) in files {
            let (mut first, mut before, mut rows): (Option<Key>, Option<Key>, usize) = (None, None, 0);
            completeness::each(std::slice::from_ref(&file), |row| {
                let key = owned(row.key());
                in_order &= before.as_ref().is_none_or(|before| *before < key);
                first.get_or_insert_with(|| key.clone());
                before = Some(key);
                rows += 1;
                Ok(())
            })?;
            if let (Some(first), Some(end)) = (first, before) {
                in_order &= last.insert(first.clone(), end).is_none();
                let live = live.contains_key(&path);
                parts.push(Part { path, file, first, rows, live });
            }
        }
        parts.sort_by(|a, b| a.first.cmp(&b.first));
        let ends: Vec<(&Key, &Key)> = last.iter().collect();
        in_order &= ends.windows(2).all(|two| two[0].1 < two[1].0);
        let rows = if in_order {
            Rows::Parts(parts)
        } else {
            let mut all = Vec::new();
            let files: Vec<SealedFile> = parts.into_iter().map(|part| part.file).collect();
            completeness::each(&files, |row| {
                all.push(row);
                Ok(())
            })?;
            all.sort_by(|a, b| a.key().cmp(&b.key()));
            Rows::Read(all)
        };
        Ok(Completeness { writer, is_ahead, rows, written: 0 })
    }

    /// Holds what is written of a system against its events: what is not as it should be is written with the next commit.
    pub(super) fn compare(&self, system: &mut System) -> Result<(), StoreError> {
        let mut listed = Bits::default();
        let mut compare = |row: &CompletenessRow| {
            if row.system == system.known.system {
                system.known.seen.compare(&mut listed, &row.counts);
            }
        };
        match &self.rows {
            Rows::Read(rows) => rows.iter().for_each(&mut compare),
            Rows::Parts(parts) => {
                for part in parts {
                    completeness::each(std::slice::from_ref(&part.file), |row| {
                        compare(&row);
                        Ok(())
                    })?;
                }
            }
        }
        system.known.seen.compared(&listed);
        Ok(())
    }

    /// Rows that the last commit wrote.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Commits the changes of these systems, which are sorted by name: by system its incarnations that changed, in order.
    pub(super) fn commit(
        &mut self,
        changes: &[(&System, &[u32])],
        progress: &[(String, u64)],
    ) -> Result<(), StoreError> {
        let all = changes.iter().flat_map(|(system, slots)| slots.iter().map(move |slot| (*system, *slot)));
        let mut changes = all.peekable();
        let mut out = Out {
            writer: &mut self.writer,
            rows: Vec::new(),
            of_file: 0,
            most: MOST_ROWS,
            first: None,
            parts: Vec::new(),
            written: 0,
        };
        let mut kept = Vec::new();
        match std::mem::replace(&mut self.rows, Rows::Parts(Vec::new())) {
            Rows::Read(rows) => {
                for row in rows {
                    out.merge(row, &mut changes)?;
                }
                out.rest(&mut changes, None)?;
            }
            Rows::Parts(parts) => {
                let mut parts = parts.into_iter().peekable();
                while let Some(part) = parts.next() {
                    let end =
                        parts.peek().map(|next| (next.first.0.as_str(), next.first.1.as_str(), next.first.2));
                    let is_of = |change: &(&System, u32)| end.is_none_or(|end| change.0.key(change.1) < end);
                    if part.live && !changes.peek().is_some_and(is_of) {
                        kept.push(part);
                        continue;
                    }
                    // It is divided before it is too large.
                    out.most = if part.rows < MOST_ROWS / 4 * 3 { MOST_ROWS } else { MOST_ROWS / 2 };
                    completeness::each(std::slice::from_ref(&part.file), |row| out.merge(row, &mut changes))?;
                    out.rest(&mut changes, end)?;
                    out.cut()?;
                }
                out.rest(&mut changes, None)?;
            }
        }
        out.cut()?;
        let (new, written) = (out.parts, out.written);
        let stays: BTreeSet<&str> = kept.iter().map(|part| part.path.as_str()).collect();
        let gone = self.writer.files()?.into_iter().filter(|(path, _)| !stays.contains(path.as_str()));
        let gone = gone.map(|(_, (_, remove))| remove).collect();
        self.is_ahead = true;
        self.writer.commit(progress, Gone::Files(gone))?;
        let mut live = self.writer.files()?;
        for (path, first, rows) in new {
            if let Some((file, _)) = live.remove(&path) {
                kept.push(Part { path, file, first, rows, live: true });
            }
        }
        kept.sort_by(|a, b| a.first.cmp(&b.first));
        (self.rows, self.written) = (Rows::Parts(kept), written);
        Ok(())
    }
}

fn owned((system, actor, incarnation): (&str, &str, u32)) -> Key {
    (system.to_owned(), actor.to_owned(), incarnation)
}

/// Rows on their way into files.
struct Out<'w> {
    writer: &'w mut TableWriter,
    rows: Vec<CompletenessRow>,
    /// Rows of the file at hand, how many it may have, and the first.
    of_file: usize,
    most: usize,
    first: Option<Key>,
    /// Files that were written: path, first row, how many rows.
    parts: Vec<(String, Key, usize)>,
    written: usize,
}

impl Out<'_> {
    fn push(&mut self, row: Option<CompletenessRow>) -> Result<(), StoreError> {
        let Some(row) = row else { return Ok(()) };
        self.first.get_or_insert_with(|| owned(row.key()));
        self.rows.push(row);
        self.of_file += 1;
        self.written += 1;
        match self.of_file >= self.most {
            true => self.cut(),
            false if self.rows.len() >= BATCH => self.hand_over(),
            false => Ok(()),
        }
    }

    /// Takes a row as it was, with what changed before it and of it.
    fn merge<'s>(
        &mut self,
        row: CompletenessRow,
        changes: &mut std::iter::Peekable<impl Iterator<Item = (&'s System, u32)>>,
    ) -> Result<(), StoreError> {
        self.rest(changes, Some(row.key()))?;
        match changes.next_if(|(system, slot)| system.key(*slot) == row.key()) {
            Some((system, slot)) => self.push(system.row(slot, Some(row))),
            None => self.push(Some(row)),
        }
    }

    /// Takes what changed before a row.
    fn rest<'s>(
        &mut self,
        changes: &mut std::iter::Peekable<impl Iterator<Item = (&'s System, u32)>>,
        end: Option<(&str, &str, u32)>,
    ) -> Result<(), StoreError> {
        let is_before = |change: &(&System, u32)| end.is_none_or(|end| change.0.key(change.1) < end);
        while let Some((system, slot)) = changes.next_if(is_before) {
            self.push(system.row(slot, None))?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), StoreError> {
        if !self.rows.is_empty() {
            let batch = completeness::batch(&self.rows)?;
            self.rows.clear();
            self.writer.write(batch)?;
        }
        Ok(())
    }

    fn cut(&mut self) -> Result<(), StoreError> {
        self.hand_over()?;
        let rows = std::mem::take(&mut self.of_file);
        if let (Some(first), Some(path)) = (self.first.take(), self.writer.cut()?) {
            self.parts.push((path, first, rows));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
