//! Trying quarantined lines again, after the mapping (or this program) was mended.

use serde::Serialize;

use crate::admit::{Found, Known, Offered, Rows};
use crate::columns::{QuarantineColumns, QuarantineRow};
use crate::load::native;
use crate::quarantine::run_of;
use crate::writing::{Events, Quarantine, Writing};
use crate::{Store, StoreError};
use demi_formats::Fate;
use demi_formats::mapping::Mapper;
use demi_formats::read::lines::Line;
use demi_formats::read::parse::{Parser, Row, bad_line_digest};

/// What [`requeue`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requeued {
    /// Rows that were in quarantine.
    pub rows: u64,
    /// Events made of them that are new.
    pub added: u64,
    /// Events made of them that the store has already.
    pub duplicates: u64,
    /// Rows that left the quarantine without becoming events: the mapping says they are none.
    pub skipped: u64,
    /// Rows that left the quarantine because their events were deleted.
    pub deleted: u64,
    /// Rows that stay: still wrong, in conflict, or not kept whole.
    pub kept: u64,
}

/// Reads the quarantined lines of a system again, with a mapping or as event records, and moves those that are events
/// now into the events. Each line is read by itself.
///
/// Events are committed before the quarantine without them ([the order of all commits](crate::writing)): after a crash in
/// between, a second run finds the events there and only removes the lines.
///
/// # Errors
/// When the store cannot be read or written, or something else is writing into the system.
pub fn requeue(store: &mut Store, system: &str, mapper: Option<&mut Mapper>) -> Result<Requeued, StoreError> {
    let _lock = store.lock(system)?;
    store.refresh()?;
    let files = store.quarantine_files(system)?;
    let known = store.known(system, store.dir().to_owned())?;
    let mut records = native()?;
    let mut run = Run {
        mapper: mapper.unwrap_or(&mut records),
        parser: Parser::new(system),
        known,
        rows: Rows::default(),
        kept: QuarantineColumns::default(),
        writing: Writing::begin(store)?,
        done: Requeued::default(),
    };
    crate::quarantine::each(&files, system, |row| run.row(row))?;
    let gone = run.writing.quarantine().files_of(system)?;
    run.flush()?;
    let quarantine = match run.done.kept < run.done.rows {
        true => Quarantine::Replaced(gone),
        false => Quarantine::AsItWas,
    };
    if run.done.kept < run.done.rows && run.kept.rows() > 0 {
        run.writing.quarantine().write(run.kept.finish()?)?;
    }
    run.writing.commit::<StoreError>(quarantine, || Ok(()), (Events::IfAny, &[]))?;
    let done = run.done;
    store.refresh()?;
    Ok(done)
}

struct Run<'a> {
    mapper: &'a mut Mapper,
    parser: Parser,
    known: Known,
    rows: Rows,
    kept: QuarantineColumns,
    writing: Writing,
    done: Requeued,
}

impl Run<'_> {
    /// Takes a row; one of several lines line by line.
    fn row(&mut self, row: &QuarantineRow<'_>) -> Result<(), StoreError> {
        if run_of(row.reason).is_none() {
            return self.line(row);
        }
        let (mut offset, mut number) = (row.offset, row.line);
        for raw in row.raw.split(|byte| *byte == b'\n') {
            let line = Line { offset, number, length: raw.len() as u64, terminated: true, overlong: None };
            offset += line.length + 1;
            number += u64::from(number > 0);
            if raw.trim_ascii().is_empty() {
                continue;
            }
            let digest = bad_line_digest(row.source, &line, row.code, raw);
            let reason = "one of several lines that were no records";
            let (raw_length, offset, line) = (line.length, line.offset, line.number);
            self.line(&QuarantineRow { offset, line, raw_length, raw, reason, digest, ..*row })?;
        }
        Ok(())
    }

    fn line(&mut self, row: &QuarantineRow<'_>) -> Result<(), StoreError> {
        self.done.rows += 1;
        let whole = row.raw.len() as u64 == row.raw_length && !matches!(row.code, "conflict" | "truncated");
        let records = if whole { self.parse(row) } else { None };
        let Some(records) = records else {
            self.done.kept += 1;
            self.kept.push(row);
            if self.kept.is_full() {
                let batch = self.kept.finish()?;
                self.writing.quarantine().write(batch)?;
            }
            return Ok(());
        };
        if records.is_empty() {
            self.done.skipped += 1;
        }
        let number = self.known.seen.source(row.source);
        let line = line_of(row);
        let found = Found { source: row.source, number, line: &line, raw: row.raw };
        for mut record in records {
            match self.known.offer(&found, &mut record, &mut self.rows)? {
                Offered::Added(_) => self.done.added += 1,
                Offered::Duplicate => self.done.duplicates += 1,
                Offered::Deleted => self.done.deleted += 1,
                Offered::Conflict { why, digest } => {
                    self.done.kept += 1;
                    let (code, reason) = (why.code(), why.reason());
                    self.kept.push(&QuarantineRow { code, reason, digest, ..*row });
                }
            }
        }
        if self.rows.are_full() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.rows.take()?.map_or(Ok(()), |batch| self.writing.write(batch, || {}))
    }

    /// The events of a line, none if it is to be skipped; `None` if it is still wrong.
    fn parse(&mut self, row: &QuarantineRow<'_>) -> Option<Vec<Row>> {
        let mut units = Vec::new();
        self.mapper.begin(row.source, row.raw);
        self.mapper.line(line_of(row), row.raw, &mut units);
        self.mapper.end(&mut units);
        let mut rows = Vec::new();
        for unit in units {
            match unit.fate {
                Fate::LeftOut(_) => {}
                Fate::Quarantined(_) => return None,
                Fate::Row(events) => {
                    for record in events.records {
                        let Fate::Row(row) = self.parser.record(record) else { return None };
                        rows.push(row);
                    }
                }
            }
        }
        Some(rows)
    }
}

fn line_of(row: &QuarantineRow<'_>) -> Line {
    Line { offset: row.offset, number: row.line, length: row.raw_length, terminated: true, overlong: None }
}
