//! Loading sources into tables.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use demi_schemas::summary::LoadSummary;

use crate::admit::{Admitted, Found, Known, Rows};
use crate::stamps::Stamps;
use crate::transaction::{Tables, Transaction};
use crate::{StoreError, check_system_name};
use demi_formats::Fate;
use demi_formats::Redaction;
use demi_formats::read::parse::{Chunk, Item, Message, Parser, read_sources};
use demi_formats::read::source::Sources;

/// Dates written at the same time: each has an open file.
const MOST_DATES: usize = 16;
/// Chunks that wait between the reading and the writing thread.
pub(crate) const CHUNKS: usize = 4;

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

/// Loads sources into tables, in their order.
pub(crate) fn load_into(
    tables: &mut impl Tables,
    sources: Sources,
    options: &LoadOptions,
    mut progress: impl FnMut(&Progress),
) -> Result<LoadReport, StoreError> {
    let mut loader = Loader::open(tables, &options.system, options)?;
    let (to, from) = sync_channel::<Message>(CHUNKS);
    let options = options.clone();
    // Not joined when the load fails: the thread may wait for input that never comes.
    let reader = thread::spawn(move || {
        let parser = Parser::new(&options.system, options.max_line_bytes);
        read_sources(sources, &mut parser.redacted(options.redact.as_deref()), &to);
    });
    let mut now = Progress::default();
    for message in from {
        let mut chunk = message?;
        now.lines += chunk.items.len() as u64;
        now.bytes += chunk.bytes;
        loader.take(&mut chunk)?;
        now.added = loader.report.summary.added;
        now.source = chunk.source;
        progress(&now);
    }
    reader.join().map_err(|_| StoreError::ReaderLost)?;
    loader.report.bytes = now.bytes;
    loader.finish(tables)
}

/// What was written since the last commit.
#[derive(Default)]
struct Window {
    rows: u64,
    bytes: u64,
    dates: Vec<Option<i32>>,
}

/// A load into one system.
pub(crate) struct Loader<'a, T> {
    options: &'a LoadOptions,
    known: Known,
    rows: Rows,
    transaction: T,
    since_commit: Window,
    commits: u64,
    stamps: Stamps,
    /// Whether sequence numbers were counted by a mapping: a conflict then means that it counted from another line.
    pub(crate) counted: bool,
    pub(crate) report: LoadReport,
}

impl<'a, T: Transaction> Loader<'a, T> {
    /// Begins a load into `system`.
    pub(crate) fn open(
        tables: &mut impl Tables<Transaction = T>,
        system: &str,
        options: &'a LoadOptions,
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
            counted: false,
            report: LoadReport::default(),
        };
        system.clone_into(&mut loader.report.summary.system);
        Ok(loader)
    }

    pub(crate) fn take(&mut self, chunk: &mut Chunk) -> Result<(), StoreError> {
        let number = self.known.seen.source(&chunk.source);
        for Item { line, raw, fate } in &mut chunk.items {
            self.since_commit.bytes += raw.len() as u64;
            let summary = &mut self.report.summary;
            if !matches!(fate, Fate::Quarantined(why) if why.code() == "truncated") {
                summary.lines += 1;
            }
            if let Fate::Row(row) = &*fate {
                self.stamps.take(&row.record, &chunk.source, line.number);
            }
            let found = Found::new(&chunk.source, number, line, &chunk.raw, raw.clone());
            match self.known.admit(&found, fate, &mut self.rows, self.transaction.quarantine())? {
                Admitted::Duplicate => summary.duplicates += 1,
                Admitted::Deleted => summary.deleted += 1,
                Admitted::Conflict if self.counted => {
                    let event = match fate {
                        Fate::Row(row) => row.record.id().to_string(),
                        _ => String::new(),
                    };
                    return Err(StoreError::Counted {
                        source_name: chunk.source.clone(),
                        line: line.number,
                        event,
                        system: self.known.system.clone(),
                    });
                }
                Admitted::Conflict => summary.conflicts += 1,
                Admitted::Rejected | Admitted::LeftOut => {}
                Admitted::Added => {
                    summary.added += 1;
                    self.since_commit.rows += 1;
                    if let Fate::Row(row) = fate
                        && !self.since_commit.dates.contains(&row.date)
                    {
                        self.since_commit.dates.push(row.date);
                    }
                    if self.rows.are_full() {
                        self.flush()?;
                    }
                }
            }
            self.commit_if_due()?;
        }
        if chunk.end {
            self.report.summary.sources += 1;
        }
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

    /// Commits what was taken, in [the order of all commits](crate::admit).
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

    pub(crate) fn finish(
        mut self,
        tables: &mut impl Tables<Transaction = T>,
    ) -> Result<LoadReport, StoreError> {
        self.commit()?;
        let summary = &mut self.report.summary;
        summary.quarantined = self.known.quarantine.added.values().sum();
        summary.already_quarantined = self.known.quarantine.known_again;
        summary.quarantine_reasons = self.known.quarantine.added;
        summary.actors = self.known.seen.completeness();
        summary.backwards = tables.end(&summary.system, self.transaction, self.stamps)?;
        Ok(self.report)
    }
}
