//! Loading sources through a mapping: several executions in a source become several systems.

mod sender;

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use demi_schemas::summary::LoadSummary;

use self::sender::Sender;
use crate::StoreError;
use crate::load::{CHUNKS, LoadOptions, LoadReport, Loader, Progress};
use crate::transaction::Tables;
use demi_formats::ReadError;
use demi_formats::mapping::{HEAD, Mapper, read_documents};
use demi_formats::read::decompress::RawReadError;
use demi_formats::read::lines::{KEPT_OF_OVERLONG, Line, LineReader, Next};
use demi_formats::read::parse::Chunk;
use demi_formats::read::source::{Source, Sources};

/// Systems loaded into at the same time; beyond it the one not used for longest is committed and closed.
const OPEN: usize = 8;
/// Most warnings kept of a system.
const MOST_WARNINGS: usize = 100;

/// Units of one execution.
struct Mapped {
    execution: Option<String>,
    chunk: Chunk,
    lines: u64,
    skipped: u64,
    warnings: Vec<String>,
}

/// The name of an execution's system.
fn system_of(base: &str, execution: Option<&str>) -> String {
    execution.map_or_else(|| base.to_owned(), |e| format!("{base}/{e}"))
}

/// Loads sources into tables through a mapping.
pub(crate) fn load_mapped_into<T: Tables>(
    tables: &mut T,
    sources: Sources,
    options: &LoadOptions,
    mapper: Mapper,
    mut progress: impl FnMut(&Progress),
) -> Result<LoadReport, StoreError> {
    let (to, from) = sync_channel::<Result<Mapped, StoreError>>(CHUNKS);
    let counted = mapper.counts();
    let reading = options.clone();
    let mut mapper = mapper;
    mapper.limit_records(options.max_line_bytes);
    let reader = thread::spawn(move || read_sources(sources, mapper, &reading, &to));
    let mut loads = Loads { options, counted, open: Vec::new(), done: Vec::new(), damaged: Vec::new() };
    let mut now = Progress::default();
    for message in from {
        let mut mapped = message?;
        now.lines += mapped.lines;
        now.bytes += mapped.chunk.bytes;
        let loader = loads.of(mapped.execution.as_deref(), tables)?;
        let before = loader.report.summary.added;
        loader.take(&mut mapped.chunk)?;
        let summary = &mut loader.report.summary;
        // The loader counted items; a record may be several lines, and a line several events.
        summary.skipped += mapped.skipped;
        let room = MOST_WARNINGS.saturating_sub(summary.warnings.len());
        summary.warnings.extend(mapped.warnings.into_iter().take(room));
        now.added += summary.added - before;
        loads.count(mapped.execution.as_deref(), mapped.lines);
        now.source = mapped.chunk.source;
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
    /// Used last is last; with the lines read.
    open: Vec<(Option<String>, Loader<'a, T::Transaction>, u64)>,
    done: Vec<LoadSummary>,
    damaged: Vec<crate::load::Damage>,
}

impl<'a, T: Tables> Loads<'a, T> {
    fn of(
        &mut self,
        execution: Option<&str>,
        tables: &mut T,
    ) -> Result<&mut Loader<'a, T::Transaction>, StoreError> {
        match self.open.iter().position(|(e, ..)| e.as_deref() == execution) {
            Some(at) => {
                let found = self.open.remove(at);
                self.open.push(found);
            }
            None => {
                if self.open.len() >= OPEN {
                    self.close(0, tables)?;
                }
                let system = system_of(&self.options.system, execution);
                let mut loader = Loader::open(tables, &system, self.options)?;
                loader.counted = self.counted;
                self.open.push((execution.map(str::to_owned), loader, 0));
            }
        }
        match self.open.last_mut() {
            Some((_, loader, _)) => Ok(loader),
            None => Err(StoreError::ReaderLost),
        }
    }

    fn count(&mut self, execution: Option<&str>, lines: u64) {
        if let Some((.., count)) = self.open.iter_mut().find(|(e, ..)| e.as_deref() == execution) {
            *count += lines;
        }
    }

    /// Commits and closes a load; what was loaded into the same system before is added to.
    fn close(&mut self, at: usize, tables: &mut T) -> Result<(), StoreError> {
        let (execution, loader, lines) = self.open.remove(at);
        let report = loader.finish(tables)?;
        let mut summary = report.summary;
        summary.lines = lines;
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

fn read_sources(
    sources: Sources,
    mut mapper: Mapper,
    options: &LoadOptions,
    to: &SyncSender<Result<Mapped, StoreError>>,
) {
    for source in sources.0 {
        match read_source(source, &mut mapper, options, to) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let _ = to.send(Err(error));
                return;
            }
        }
    }
}

/// A stream that breaks, once.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Reads one source; says whether anybody still listens.
fn read_source(
    source: Source,
    mapper: &mut Mapper,
    options: &LoadOptions,
    to: &SyncSender<Result<Mapped, StoreError>>,
) -> Result<bool, StoreError> {
    let (name, mut stream) = source.or_decoded(mapper.encoding()).read()?;
    let mut head = Vec::new();
    let broken = stream.by_ref().take(HEAD as u64).read_to_end(&mut head).err();
    mapper.begin(&name, &head);
    let rest: Box<dyn Read> = match broken {
        Some(error) => Box::new(Broken(Some(error))),
        None => Box::new(stream),
    };
    let mut stream = BufReader::with_capacity(1 << 17, Cursor::new(head).chain(rest));
    let mut sender = Sender::new(name, options, to);
    if mapper.reads_documents() {
        return read_documents_of(&mut stream, mapper, sender);
    }
    let mut reader = LineReader::new(stream, options.max_line_bytes, KEPT_OF_OVERLONG);
    let (mut units, mut bytes) = (Vec::new(), Vec::new());
    let mut damage = None;
    loop {
        bytes.clear();
        let mut end = false;
        match reader.next_line(&mut bytes) {
            Next::Line(line) => mapper.line(line, &bytes, &mut units),
            Next::End => end = true,
            Next::Failed { partial, error } => {
                if error.get_ref().is_some_and(|e| e.is::<RawReadError>()) {
                    return Err(ReadError::Read { path: sender.name, source: error }.into());
                }
                let line = partial.unwrap_or(Line::empty(reader.offset(), 0));
                let place = line.offset + line.length;
                let reason = damaged(place, &error);
                mapper.broken(line, &bytes, reason.clone(), &mut units);
                damage = Some(reason);
                end = true;
            }
        }
        if end {
            mapper.end(&mut units);
        }
        for unit in units.drain(..) {
            if !sender.add(unit, reader.offset()) {
                return Ok(false);
            }
        }
        if end {
            return Ok(sender.close(reader.offset(), damage));
        }
    }
}

fn damaged(place: u64, error: &io::Error) -> String {
    format!("the packed data is damaged or cut off after {place} unpacked bytes: {error}")
}

/// Reads one source that is made of documents; says whether anybody still listens.
fn read_documents_of(
    stream: &mut impl BufRead,
    mapper: &mut Mapper,
    mut sender: Sender<'_>,
) -> Result<bool, StoreError> {
    let (mut end, mut units) = (0, Vec::new());
    let read = read_documents(stream, mapper, &mut end, &mut |unit, read| sender.add(unit, read));
    let damage = match read {
        Ok(true) => None,
        Ok(false) => return Ok(false),
        Err(error) if error.get_ref().is_some_and(|e| e.is::<RawReadError>()) => {
            return Err(ReadError::Read { path: sender.name, source: error }.into());
        }
        Err(error) => {
            let reason = damaged(end, &error);
            mapper.end_bytes(&mut |unit| units.push(unit));
            mapper.broken(Line::empty(end, 0), &[], reason.clone(), &mut units);
            Some(reason)
        }
    };
    mapper.end(&mut units);
    Ok(units.into_iter().all(|unit| sender.add(unit, end)) && sender.close(end, damage))
}
