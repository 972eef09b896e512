//! The reading side of a load: sources to chunks of rows, in order, on a thread of its own.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::StoreError;
use crate::load::LoadOptions;
use demi_formats::mapping::{Mapper, Unit};
use demi_formats::read::lines::Line;
use demi_formats::read::parse::{Parser, Row};
use demi_formats::read::source::Sources;
use demi_formats::{Events, Fate, Redaction};

/// Units handed over together, and the bytes of them after which they are.
const CHUNK_UNITS: usize = 2048;
const CHUNK_BYTES: usize = 1 << 20;

/// What becomes of a line.
pub(crate) struct Item {
    /// Where it stands.
    pub(crate) line: Line,
    /// Where its bytes are in the chunk.
    pub(crate) raw: Range<usize>,
    pub(crate) fate: Fate<Row>,
}

/// Consecutive lines of one execution in one source.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Name of the execution, where the source holds several.
    pub(crate) execution: Option<String>,
    /// Name of the source.
    pub(crate) source: String,
    /// Bytes of the lines.
    pub(crate) raw: Vec<u8>,
    pub(crate) items: Vec<Item>,
    /// How many lines it covers, empty ones left out, and how many of them are left out.
    pub(crate) lines: u64,
    pub(crate) skipped: u64,
    /// What is odd about the events.
    pub(crate) warnings: Vec<String>,
    /// Bytes of the unpacked stream covered.
    pub(crate) bytes: u64,
    /// Whether the source ends here.
    pub(crate) end: bool,
    /// Why it ends, if what was packed is damaged.
    pub(crate) damage: Option<String>,
}

/// The name of an execution's system.
pub(crate) fn system_of(base: &str, execution: Option<&str>) -> String {
    execution.map_or_else(|| base.to_owned(), |e| format!("{base}/{e}"))
}

/// Reads every source and sends what it finds, until the end or until nobody listens.
pub(crate) fn read_sources(
    sources: Sources,
    mut mapper: Mapper,
    options: &LoadOptions,
    to: &SyncSender<Result<Chunk, StoreError>>,
) {
    mapper.limit_records(options.max_line_bytes);
    for source in sources.0 {
        let mut chunks = Chunks::new(options, to);
        let mut take = |name: &str, unit, read| chunks.add(name, unit, read);
        let listened = match mapper.read(source, options.max_line_bytes, &mut take) {
            Ok(None) => false,
            Ok(Some(read)) => chunks.close(&read.name, read.bytes, read.damage.map(|damage| damage.reason)),
            Err(error) => to.send(Err(error.into())).is_err(),
        };
        if !listened {
            return;
        }
    }
}

/// Gathers units of one execution and sends them.
struct Chunks<'a> {
    options: &'a LoadOptions,
    redact: Option<Arc<Redaction>>,
    parser: Parser,
    next: Option<Chunk>,
    /// Skipped lines that no execution has yet.
    skipped: u64,
    /// Execution of the units sent last.
    last: Option<String>,
    /// Bytes of the source that were told.
    told: u64,
    to: &'a SyncSender<Result<Chunk, StoreError>>,
}

impl<'a> Chunks<'a> {
    fn new(options: &'a LoadOptions, to: &'a SyncSender<Result<Chunk, StoreError>>) -> Self {
        let redact = options.redact.clone();
        let parser = Parser::new(&options.system).redacted(redact.clone());
        Chunks { options, redact, parser, next: None, skipped: 0, last: None, told: 0, to }
    }

    fn fresh(&mut self, source: &str, execution: Option<String>) -> Chunk {
        let system = system_of(&self.options.system, execution.as_deref());
        if self.parser.system() != system {
            self.parser = Parser::new(&system).redacted(self.redact.clone());
        }
        Chunk { execution, source: source.to_owned(), ..Chunk::default() }
    }

    /// Takes a unit; says whether anybody still listens.
    fn add(&mut self, source: &str, unit: Unit, read: u64) -> bool {
        if let Fate::LeftOut(_) = unit.fate {
            // It belongs to no execution in particular and opens none.
            self.skipped += unit.lines;
            return true;
        }
        let full = self.next.as_ref().is_some_and(|next| {
            next.execution != unit.execution
                || next.items.len() >= CHUNK_UNITS
                || next.raw.len() >= CHUNK_BYTES
        });
        if full && !self.send(read, false, None) {
            return false;
        }
        let mut next = match self.next.take() {
            Some(next) => next,
            None => self.fresh(source, unit.execution),
        };
        next.lines += unit.lines;
        let start = next.raw.len();
        next.raw.extend_from_slice(&unit.raw);
        let (line, raw) = (unit.line, start..next.raw.len());
        match unit.fate {
            Fate::LeftOut(_) => {}
            Fate::Quarantined(why) => next.items.push(Item { line, raw, fate: Fate::Quarantined(why) }),
            Fate::Row(Events { records, warnings }) => {
                let shown = |warning: String| match &self.redact {
                    Some(redact) => redact.text(self.parser.system(), &warning).into_owned(),
                    None => warning,
                };
                let place = |warning| format!("{source}:{}: {}", line.number, shown(warning));
                next.warnings.extend(warnings.into_iter().map(place));
                for record in records {
                    let fate = self.parser.record(record);
                    next.items.push(Item { line: line.clone(), raw: raw.clone(), fate });
                }
            }
        }
        self.next = Some(next);
        true
    }

    fn send(&mut self, read: u64, end: bool, damage: Option<String>) -> bool {
        let Some(mut next) = self.next.take() else { return true };
        let skipped = std::mem::take(&mut self.skipped);
        next.skipped += skipped;
        next.lines += skipped;
        self.last.clone_from(&next.execution);
        next.bytes = read.saturating_sub(std::mem::replace(&mut self.told, read));
        (next.end, next.damage) = (end, damage);
        self.to.send(Ok(next)).is_ok()
    }

    /// Sends what is left of the source; says whether anybody still listens.
    fn close(mut self, source: &str, read: u64, damage: Option<String>) -> bool {
        if self.next.is_none() {
            let last = self.last.clone();
            self.next = Some(self.fresh(source, last));
        }
        self.send(read, true, damage)
    }
}
