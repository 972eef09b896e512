//! Loading sources into tables: several executions in a source become several systems.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use demi_schemas::summary::LoadSummary;

use crate::admit::{Admitted, Found, Known, Rows, Slots};
use crate::chunks::{Chunk, Message, parsers, read_sources, system_of};
use crate::stamps::Stamps;
use crate::transaction::{Tables, Transaction};
use crate::{StoreError, check_system_name};
use demi_formats::mapping::{Container, Mapper, Mapping};
use demi_formats::read::block::ParsedLine;
use demi_formats::read::source::Sources;
use demi_formats::{Fate, Redaction};

/// Dates written at the same time: each has an open file.
const MOST_DATES: usize = 16;
/// Chunks that wait between the reading and the writing thread, besides those that are being parsed.
const CHUNKS: usize = 4;
/// Systems loaded into at the same time; beyond it the one not used for longest is committed and closed.
const OPEN: usize = 8;
/// Most warnings kept of a system.
const MOST_WARNINGS: usize = 100;

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The system loaded into.
    pub system: String,
    /// Longest line that is read, in bytes; default 16 MiB. Longer ones go to quarantine.
    pub max_line_bytes: usize,
    /// Rows after which a commit is made; default 1 000 000.
    pub commit_rows: u64,
    /// Bytes of lines after which a commit is made; default 256 MB.
    pub commit_bytes: u64,
    /// What of the records is not written as it is.
    pub redact: Option<Arc<Redaction>>,
    /// Ends the load with [`StoreError::Stopped`] after so many commits, as if it had been killed.
    pub stop_after_commits: Option<u64>,
}

impl LoadOptions {
    /// The defaults, for one system.
    #[must_use]
    pub fn new(system: impl Into<String>) -> Self {
        LoadOptions {
            system: system.into(),
            max_line_bytes: 16 << 20,
            commit_rows: 1_000_000,
            commit_bytes: 256_000_000,
            redact: None,
            stop_after_commits: None,
        }
    }
}

/// How far a load is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The source being read.
    pub source: String,
    /// Lines read so far, empty ones left out.
    pub lines: u64,
    /// Unpacked bytes read so far.
    pub bytes: u64,
    /// Records added so far, committed or not.
    pub added: u64,
}

/// A source whose packed data is damaged or cut off. What came before was loaded; the rest of it could not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {reason}; what came before is loaded")]
pub struct Damage {
    /// The source.
    pub source_name: String,
    /// Where and how.
    pub reason: String,
}

/// What a load did.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// The counts, and what is complete.
    pub summary: LoadSummary,
    /// Unpacked bytes read.
    pub bytes: u64,
    /// Sources that could not be read to their end.
    pub damaged: Vec<Damage>,
}

/// A mapper of event records: they are a mapping too.
pub(crate) fn native() -> Result<Mapper, StoreError> {
    Ok(Mapper::new(&Mapping::named("native")?)?)
}

/// Loads sources into tables through a mapping, in their order.
pub(crate) fn load_into<T: Tables>(
    tables: &mut T,
    sources: Sources,
    options: &LoadOptions,
    mapper: Mapper,
    mut progress: impl FnMut(&Progress),
) -> Result<LoadReport, StoreError> {
    let (to, from) = sync_channel::<Message>(CHUNKS + parsers());
    let mut loads =
        Loads { options, counted: mapper.counts(), open: Vec::new(), done: Vec::new(), damaged: Vec::new() };
    if mapper.container() == Container::Native {
        // It is one system, whatever the sources hold.
        loads.of(None, tables)?;
    }
    let reading = options.clone();
    // Not joined when the load fails: the thread may wait for input that never comes.
    let reader = thread::spawn(move || read_sources(sources, mapper, &reading, &to));
    let mut now = Progress::default();
    for message in from {
        let mut chunk = message?.recv().map_err(|_| StoreError::ReaderLost)?;
        now.lines += chunk.lines;
        now.bytes += chunk.bytes;
        let loader = loads.of(chunk.execution.as_deref(), tables)?;
        let before = loader.report.summary.added;
        loader.take(&mut chunk)?;
        now.added += loader.report.summary.added - before;
        now.source = chunk.source;
        progress(&now);
    }
    reader.join().map_err(|_| StoreError::ReaderLost)?;
    let mut report = loads.finish(tables)?;
    report.bytes = now.bytes;
    Ok(report)
}

/// The loads into the systems of one base name.
struct Loads<'a, T: Tables> {
    options: &'a LoadOptions,
    /// Whether the mapping counts sequence numbers.
    counted: bool,
    /// Used last is last.
    open: Vec<(Option<String>, Loader<'a, T::Transaction>)>,
    done: Vec<LoadSummary>,
    damaged: Vec<Damage>,
}

impl<'a, T: Tables> Loads<'a, T> {
    fn of(
        &mut self,
        execution: Option<&str>,
        tables: &mut T,
    ) -> Result<&mut Loader<'a, T::Transaction>, StoreError> {
        match self.open.iter().position(|(open, _)| open.as_deref() == execution) {
            Some(at) => {
                let found = self.open.remove(at);
                self.open.push(found);
            }
            None => {
                if self.open.len() >= OPEN {
                    self.close(0, tables)?;
                }
                let system = system_of(&self.options.system, execution);
                let loader = Loader::open(tables, &system, self.options, self.counted)?;
                self.open.push((execution.map(str::to_owned), loader));
            }
        }
        match self.open.last_mut() {
            Some((_, loader)) => Ok(loader),
            None => Err(StoreError::ReaderLost),
        }
    }

    /// Commits and closes a load; what was loaded into the same system before is added to.
    fn close(&mut self, at: usize, tables: &mut T) -> Result<(), StoreError> {
        let (execution, loader) = self.open.remove(at);
        let report = loader.finish(tables)?;
        let mut summary = report.summary;
        summary.execution = execution;
        self.damaged.extend(report.damaged);
        match self.done.iter_mut().find(|d| d.execution == summary.execution) {
            None => self.done.push(summary),
            Some(before) => {
                add(before, &summary);
                before.actors = summary.actors;
            }
        }
        Ok(())
    }

    fn finish(mut self, tables: &mut T) -> Result<LoadReport, StoreError> {
        if self.open.is_empty() && self.done.is_empty() {
            self.of(None, tables)?;
        }
        while !self.open.is_empty() {
            self.close(0, tables)?;
        }
        let mut report = LoadReport { damaged: self.damaged, ..LoadReport::default() };
        if let ([only], true) = (self.done.as_slice(), self.done.iter().all(|d| d.execution.is_none())) {
            report.summary = only.clone();
        } else {
            self.options.system.clone_into(&mut report.summary.system);
            self.done.iter().for_each(|d| add(&mut report.summary, d));
            report.summary.executions = self.done;
        }
        Ok(report)
    }
}

/// Adds up counts.
fn add(sum: &mut LoadSummary, other: &LoadSummary) {
    sum.sources += other.sources;
    sum.lines += other.lines;
    sum.added += other.added;
    sum.duplicates += other.duplicates;
    sum.conflicts += other.conflicts;
    sum.quarantined += other.quarantined;
    sum.already_quarantined += other.already_quarantined;
    sum.skipped += other.skipped;
    sum.deleted += other.deleted;
    for (code, count) in &other.quarantine_reasons {
        *sum.quarantine_reasons.entry(code.clone()).or_default() += count;
    }
    sum.backwards.extend(other.backwards.iter().cloned());
    let room = MOST_WARNINGS.saturating_sub(sum.warnings.len());
    sum.warnings.extend(other.warnings.iter().take(room).cloned());
}

/// What was written since the last commit.
#[derive(Default)]
struct Window {
    rows: u64,
    bytes: u64,
    dates: Vec<Option<i32>>,
}

/// A load into one system.
struct Loader<'a, T> {
    options: &'a LoadOptions,
    known: Known,
    rows: Rows,
    transaction: T,
    since_commit: Window,
    commits: u64,
    stamps: Stamps,
    /// Whether sequence numbers were counted by a mapping: a conflict then means that it counted from another line.
    counted: bool,
    report: LoadReport,
}

impl<'a, T: Transaction> Loader<'a, T> {
    /// Begins a load into `system`.
    fn open(
        tables: &mut impl Tables<Transaction = T>,
        system: &str,
        options: &'a LoadOptions,
        counted: bool,
    ) -> Result<Loader<'a, T>, StoreError> {
        check_system_name(system)?;
        let (known, transaction) = tables.begin(system)?;
        let mut loader = Loader {
            options,
            known: Known { redact: options.redact.clone(), ..known },
            rows: Rows::default(),
            transaction,
            since_commit: Window::default(),
            commits: 0,
            stamps: Stamps::default(),
            counted,
            report: LoadReport::default(),
        };
        system.clone_into(&mut loader.report.summary.system);
        Ok(loader)
    }

    fn take(&mut self, chunk: &mut Chunk) -> Result<(), StoreError> {
        let number = self.known.seen.source(&chunk.source);
        let mut entries = chunk.block.take_entries();
        let mut slots = Slots::of(&chunk.block);
        for entry in &mut entries {
            let quarantine = self.transaction.quarantine();
            let (admitted, date, line) = match entry {
                ParsedLine::Plain(row, actor) => {
                    let texts = chunk.block.texts();
                    let name = texts.get(row.actor).unwrap_or_default();
                    let slot = slots.find(&mut self.known.seen, *actor, (name, row.incarnation));
                    if let Some(stamp) = &row.stamp {
                        let event = (name, row.incarnation, row.seq);
                        self.stamps.take_stamp(event, **stamp, &chunk.source, row.number);
                    }
                    self.since_commit.bytes += u64::from(row.length);
                    let admitted = self.known.admit_plain(
                        (&chunk.source, number),
                        slot,
                        row,
                        texts,
                        &mut self.rows,
                        quarantine,
                    )?;
                    (admitted, row.date, row.number)
                }
                ParsedLine::Other { line, raw, fate } => {
                    let mut date = None;
                    if let Fate::Row(row) = &*fate {
                        self.stamps.take(&row.record, &chunk.source, line.number);
                        date = row.date;
                    }
                    self.since_commit.bytes += raw.len() as u64;
                    let found = Found::new(&chunk.source, number, line, chunk.block.bytes(), raw.clone());
                    (self.known.admit(&found, fate, &mut self.rows, quarantine)?, date, line.number)
                }
            };
            let summary = &mut self.report.summary;
            match admitted {
                Admitted::Duplicate => summary.duplicates += 1,
                Admitted::Deleted => summary.deleted += 1,
                Admitted::Conflict if self.counted => {
                    let event = match &*entry {
                        ParsedLine::Other { fate: Fate::Row(row), .. } => row.record.id().to_string(),
                        _ => String::new(),
                    };
                    let source_name = chunk.source.clone();
                    let system = self.known.system.clone();
                    return Err(StoreError::Counted { source_name, line, event, system });
                }
                Admitted::Conflict => summary.conflicts += 1,
                Admitted::Rejected | Admitted::LeftOut => {}
                Admitted::Added => {
                    summary.added += 1;
                    self.since_commit.rows += 1;
                    if !self.since_commit.dates.contains(&date) {
                        self.since_commit.dates.push(date);
                    }
                    if self.rows.are_full() {
                        self.flush()?;
                    }
                }
            }
            self.commit_if_due()?;
        }
        let summary = &mut self.report.summary;
        // A record may be several lines, and a line several events.
        summary.lines += chunk.lines;
        summary.skipped += chunk.skipped;
        let room = MOST_WARNINGS.saturating_sub(summary.warnings.len());
        summary.warnings.extend(chunk.warnings.drain(..).take(room));
        summary.sources += u64::from(chunk.end);
        if let Some(reason) = &chunk.damage {
            self.report.damaged.push(Damage { source_name: chunk.source.clone(), reason: reason.clone() });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let Some(batch) = self.rows.take()? else { return Ok(()) };
        self.transaction.events(batch)
    }

    fn commit_if_due(&mut self) -> Result<(), StoreError> {
        let window = &self.since_commit;
        if window.rows >= self.options.commit_rows
            || window.bytes >= self.options.commit_bytes
            || window.dates.len() > MOST_DATES
        {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits what was taken, in the order of all commits.
    fn commit(&mut self) -> Result<(), StoreError> {
        self.since_commit = Window::default();
        self.flush()?;
        self.known.quarantine.flush(self.transaction.quarantine())?;
        if self.transaction.commit()? {
            self.commits += 1;
            if self.options.stop_after_commits == Some(self.commits) {
                return Err(StoreError::Stopped { commits: self.commits });
            }
        }
        Ok(())
    }

    fn finish(mut self, tables: &mut impl Tables<Transaction = T>) -> Result<LoadReport, StoreError> {
        self.commit()?;
        let summary = &mut self.report.summary;
        summary.quarantined = self.known.quarantine.added.values().sum();
        summary.already_quarantined = self.known.quarantine.known_again;
        summary.quarantine_reasons = self.known.quarantine.added;
        summary.actors = self.known.seen.completeness();
        summary.warnings.extend(self.stamps.behind());
        summary.backwards = tables.end(&summary.system, self.transaction, self.stamps)?;
        Ok(self.report)
    }
}
