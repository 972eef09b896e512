//! The reading side of a load: sources to parsed records, in order, on a thread of its own.

use std::sync::mpsc::SyncSender;

use demi_schemas::EventRecord;
use demi_schemas::event::MONITOR;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::digest::digest_into;
use crate::fate::{Fate, Rejection};
use crate::read::decompress::RawReadError;
use crate::read::lines::{KEPT_OF_OVERLONG, Line, LineReader, Next};
use crate::read::source::{Source, Sources};
use crate::time::utc_date;
use crate::{ReadError, Redaction};

/// Lines handed over together, and the bytes of them after which they are handed over.
const CHUNK_LINES: usize = 2048;
const CHUNK_BYTES: usize = 1 << 20;

/// A record on its way to a row.
pub struct Row {
    /// The record, redacted.
    pub record: Box<EventRecord>,
    /// The digest of its content.
    pub digest: u64,
    /// The day of its time, in days since 1970.
    pub date: Option<i32>,
}

/// A line that is not empty.
pub struct Item {
    /// Where it stands.
    pub line: Line,
    /// Where its bytes are in the chunk.
    pub raw: std::ops::Range<usize>,
    /// What becomes of it.
    pub fate: Fate<Row>,
}

/// Consecutive lines of one source.
pub struct Chunk {
    /// Name of the source.
    pub source: String,
    /// Bytes of the lines.
    pub raw: Vec<u8>,
    /// The lines.
    pub items: Vec<Item>,
    /// Bytes of the unpacked stream covered, empty lines and newlines included.
    pub bytes: u64,
    /// Whether the source ends here.
    pub end: bool,
    /// Why it ends, if what was packed is damaged.
    pub damage: Option<String>,
}

/// What the reading thread sends.
pub type Message = Result<Chunk, ReadError>;

/// Reads every source and sends what it finds, until the end or until nobody listens.
pub fn read_sources(sources: Sources, parser: &mut Parser<'_>, to: &SyncSender<Message>) {
    for source in sources.0 {
        match read_source(source, parser, to) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let _ = to.send(Err(error));
                return;
            }
        }
    }
}

/// Reads one source; says whether anybody still listens.
fn read_source(source: Source, parser: &mut Parser<'_>, to: &SyncSender<Message>) -> Result<bool, ReadError> {
    let (name, stream) = source.read()?;
    let mut reader = LineReader::new(stream, parser.limit, KEPT_OF_OVERLONG);
    loop {
        let begin = reader.offset();
        let mut chunk = Chunk {
            source: name.clone(),
            raw: Vec::with_capacity(CHUNK_BYTES / 4),
            items: Vec::with_capacity(CHUNK_LINES / 4),
            bytes: 0,
            end: false,
            damage: None,
        };
        while !chunk.end && chunk.items.len() < CHUNK_LINES && chunk.raw.len() < CHUNK_BYTES {
            let start = chunk.raw.len();
            match reader.next_line(&mut chunk.raw) {
                Next::Line(line) => parser.take(line, start, &mut chunk),
                Next::End => chunk.end = true,
                Next::Failed { partial, error } => {
                    if error.get_ref().is_some_and(|e| e.is::<RawReadError>()) {
                        return Err(ReadError::Read { path: name, source: error });
                    }
                    let line = partial.unwrap_or(Line::empty(reader.offset(), 0));
                    parser.damaged(line, start, &error.to_string(), &mut chunk);
                }
            }
        }
        chunk.bytes = reader.offset() - begin;
        let end = chunk.end;
        if to.send(Ok(chunk)).is_err() {
            return Ok(false);
        }
        if end {
            return Ok(true);
        }
    }
}

/// Why nobody but the daemon writes under the name of this record, if that is so.
///
/// Its monitors tell of violations as the actor [`MONITOR`], with an incarnation of their own. A system that tells of violations itself has the
/// first incarnation.
pub fn reserved(record: &EventRecord) -> Option<Rejection> {
    (record.actor == MONITOR && record.incarnation != 0).then(|| {
        let reason = format!(
            "only the daemon's monitors write as '{MONITOR}' with incarnation {}: a system that tells of violations itself has incarnation 0",
            record.incarnation
        );
        Rejection::new("reserved", reason)
    })
}

/// Makes events of lines.
pub struct Parser<'a> {
    system: &'a str,
    limit: usize,
    redact: Option<&'a Redaction>,
    /// Whether the daemon itself wrote what is parsed.
    own: bool,
    scratch: Vec<u8>,
}

impl<'a> Parser<'a> {
    /// A parser of records of `system`, of lines that are no longer than `limit`.
    pub fn new(system: &'a str, limit: usize) -> Self {
        Parser { system, limit, redact: None, own: false, scratch: Vec::new() }
    }

    /// Redacts what it reads.
    pub fn redacted(self, redact: Option<&'a Redaction>) -> Self {
        Parser { redact, ..self }
    }

    /// Reads what the daemon itself wrote, if `own` is set.
    pub fn of_daemon(self, own: bool) -> Self {
        Parser { own, ..self }
    }

    /// Adds a line to the chunk, unless it is empty.
    fn take(&mut self, line: Line, start: usize, chunk: &mut Chunk) {
        let raw = start..chunk.raw.len();
        let bytes = &chunk.raw[raw.clone()];
        if line.overlong.is_some() {
            let fate = Fate::rejected("too_long", line.too_long(self.limit, bytes.len()));
            chunk.items.push(Item { line, raw, fate });
            return;
        }
        if bytes.trim_ascii().is_empty() {
            chunk.raw.truncate(start);
            return;
        }
        let fate = self.parse(bytes, &line);
        chunk.items.push(Item { line, raw, fate });
    }

    /// Ends the chunk with the damage of its source. What came of the last line is a record if it is a whole one.
    fn damaged(&mut self, line: Line, start: usize, error: &str, chunk: &mut Chunk) {
        let bytes = &chunk.raw[start..];
        chunk.end = true;
        let place = line.offset + line.length;
        let reason = format!("the packed data is damaged or cut off after {place} unpacked bytes: {error}");
        chunk.damage = Some(reason.clone());
        let raw = start..chunk.raw.len();
        let whole = line.overlong.is_none() && !bytes.trim_ascii().is_empty();
        let truncated = Fate::rejected("truncated", reason);
        if whole && let fate @ Fate::Row(_) = self.parse(bytes, &line) {
            chunk.items.push(Item { line: line.clone(), raw, fate });
            let line = Line { offset: place, number: line.number + 1, length: 0, overlong: None, ..line };
            let raw = chunk.raw.len()..chunk.raw.len();
            chunk.items.push(Item { line, raw, fate: truncated });
            return;
        }
        chunk.items.push(Item { line, raw, fate: truncated });
    }

    /// What becomes of a line that holds an event record.
    pub fn parse(&mut self, bytes: &[u8], line: &Line) -> Fate<Row> {
        let bytes =
            if line.offset == 0 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        let record = EventRecord::parse_boxed(bytes).map_err(Rejection::from);
        record.and_then(|record| self.checked(record, line)).into()
    }

    fn checked(&mut self, mut record: Box<EventRecord>, line: &Line) -> Result<Row, Rejection> {
        let rule = |reason: String| Rejection::new("rule", reason);
        if let Some(own) = &record.system
            && own != self.system
        {
            return Err(rule(format!("the record is of system '{own}', the load is into '{}'", self.system)));
        }
        if let (false, Some(reserved)) = (self.own, reserved(&record)) {
            return Err(reserved);
        }
        if i32::try_from(record.incarnation).is_err() {
            return Err(rule(format!("incarnation {} is beyond {}", record.incarnation, i32::MAX)));
        }
        if let Some(redact) = self.redact {
            redact.record(self.system, &mut record);
        }
        let digest = digest_into(&record, &mut self.scratch);
        let date = record.time.as_ref().and_then(utc_date);
        // The columns of these names say where this load found the record; what a logger wrote there is kept.
        if let Some(source) = record.source.take() {
            record.attrs.entry("logged_source".to_owned()).or_insert(Value::from(source));
        }
        if let Some(offset) = record.offset.take() {
            record.attrs.entry("logged_offset".to_owned()).or_insert(Value::from(offset));
        }
        record.line = (line.number > 0).then_some(line.number);
        Ok(Row { record, digest, date })
    }
}

/// The digest of a quarantined line: of its place, what is wrong, and all its bytes.
pub fn bad_line_digest(source: &str, line: &Line, code: &str, raw: &[u8]) -> u64 {
    let content = line.overlong.unwrap_or_else(|| xxh3_64(raw));
    let key = format!("{code}\n{}\n{}\n{content}\n{source}", line.offset, line.length);
    xxh3_64(key.as_bytes())
}
