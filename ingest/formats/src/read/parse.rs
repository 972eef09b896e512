//! From event records to rows: what is checked, redacted and added before a record is admitted, whoever brings it.

use std::ops::Range;
use std::sync::Arc;

use demi_schemas::event::MONITOR;
use demi_schemas::{EventRecord, Via};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::Redaction;
use crate::digest::{Content, Digester, FOUND};
use crate::fate::{Fate, Rejection};
use crate::read::lines::Line;
use crate::read::plain::{Anew, PlainRecord, PlainRow};
use crate::time::{Stamp, utc_date};

/// A record on its way to a row.
pub struct Row {
    /// The record, redacted.
    pub record: Box<EventRecord>,
    /// The digest of its content.
    pub digest: u64,
    /// Whether the row tells the digest.
    pub told: bool,
    /// The day of its time, in days since 1970.
    pub date: Option<i32>,
}

/// Why nobody but the daemon writes under the name of this record, if that is so.
///
/// Its monitors tell of violations as the actor [`MONITOR`], with an incarnation of their own. A system that tells of violations itself has the
/// first incarnation.
fn reserved(record: &EventRecord) -> Option<Rejection> {
    is_reserved(&record.actor, record.incarnation).then(|| {
        let reason = format!(
            "only the daemon's monitors write as '{MONITOR}' with incarnation {}: a system that tells of violations itself has incarnation 0",
            record.incarnation
        );
        Rejection::new("reserved", reason)
    })
}

fn is_reserved(actor: &str, incarnation: u32) -> bool {
    actor == MONITOR && incarnation != 0
}

/// Makes rows of the records of one system: checks them, redacts them, and adds digest and day.
pub struct Parser {
    system: String,
    redact: Option<Arc<Redaction>>,
    /// Whether the daemon itself wrote what is parsed.
    own: bool,
    digester: Digester,
}

impl Parser {
    /// A parser of records of `system`.
    pub fn new(system: &str) -> Self {
        Parser { system: system.to_owned(), redact: None, own: false, digester: Digester::default() }
    }

    /// Redacts what it reads.
    pub fn redacted(self, redact: Option<Arc<Redaction>>) -> Self {
        Parser { redact, ..self }
    }

    /// Reads what the daemon itself wrote, if `own` is set.
    pub fn of_daemon(self, own: bool) -> Self {
        Parser { own, ..self }
    }

    /// Name of the system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// What becomes of a line that holds an event record.
    pub fn line(&mut self, bytes: &[u8], line: &Line) -> Fate<Row> {
        let parsed = EventRecord::parse_boxed(line.text(bytes)).map_err(Rejection::from);
        let row = parsed.and_then(|mut record| {
            record.line = (line.number > 0).then_some(line.number);
            self.checked(record)
        });
        row.into()
    }

    /// The row of a line that holds a plain event record; its bytes are at `raw` in `lines`, the byte order mark left out. What the row says stands
    /// there and in `anew`. `None` says nothing of the line: [`Parser::line`] tells what becomes of it.
    pub fn plain(
        &mut self,
        lines: &str,
        raw: Range<usize>,
        line: &Line,
        anew: &mut Anew,
    ) -> Option<PlainRow> {
        if self.redact.is_some() {
            return None;
        }
        let before = anew.length();
        let row = self.plain_row(lines, raw, line, anew);
        if row.is_none() {
            anew.take_back(before);
        }
        row
    }

    fn plain_row(
        &mut self,
        lines: &str,
        raw: Range<usize>,
        line: &Line,
        anew: &mut Anew,
    ) -> Option<PlainRow> {
        let record = PlainRecord::read(lines, raw.clone(), anew)?;
        let actor = anew.get(lines, record.actor)?;
        if anew.get(lines, record.system).is_some_and(|own| own != self.system)
            || !self.own && is_reserved(actor, record.incarnation)
            || i32::try_from(record.incarnation).is_err()
        {
            return None;
        }
        let more = record.more();
        let timer = more.timer.as_ref().map(|timer| serde_json::to_value(timer).unwrap_or(Value::Null));
        let value = |value| anew.values().part(value);
        let attrs: Vec<_> = more.attrs.iter().map(|(name, attr)| (name.as_str(), value(attr))).collect();
        let (digest, told) = self.digester.content_told(&Content {
            actor,
            incarnation: record.incarnation,
            seq: record.seq,
            kind: record.kind().as_str(),
            texts: record.texts.map(|text| anew.get(lines, text)),
            via: record.via.map(Via::as_str),
            external: record.external,
            timer: timer.as_ref(),
            fields: more.fields.as_ref().map(value),
            state: more.state.as_ref().map(value),
            time: record.time.as_ref(),
            vector_clock: more.vector_clock.as_ref(),
            attrs: &attrs,
        });
        let (time, values) = record.write(anew)?;
        Some(PlainRow {
            offset: line.offset,
            number: line.number,
            start: u32::try_from(raw.start).ok()?,
            length: u32::try_from(raw.len()).ok()?,
            actor: record.actor,
            incarnation: record.incarnation,
            seq: record.seq,
            kind: record.kind(),
            via: record.via,
            external: record.external,
            texts: record.texts,
            time,
            values,
            digest,
            told,
            date: record.time.as_ref().and_then(utc_date),
            stamp: record.time.as_ref().and_then(Stamp::read).map(Box::new),
        })
    }

    /// What becomes of a record.
    pub fn record(&mut self, record: EventRecord) -> Fate<Row> {
        self.checked(Box::new(record)).into()
    }

    fn checked(&mut self, mut record: Box<EventRecord>) -> Result<Row, Rejection> {
        let rule = |reason: String| Rejection::new("rule", reason);
        if let Some(own) = &record.system
            && *own != self.system
        {
            return Err(rule(format!("the record is of system '{own}', the load is into '{}'", self.system)));
        }
        if let (false, Some(reserved)) = (self.own, reserved(&record)) {
            return Err(reserved);
        }
        if i32::try_from(record.incarnation).is_err() {
            return Err(rule(format!("incarnation {} is beyond {}", record.incarnation, i32::MAX)));
        }
        if let Some(redact) = &self.redact {
            redact.record(&self.system, &mut record);
        }
        let (digest, told) = self.digester.told(&record);
        let date = record.time.as_ref().and_then(utc_date);
        // The columns of these names say where this load found the record; what a logger wrote there is kept.
        if let Some(source) = record.source.take() {
            record.attrs.entry(FOUND[0].to_owned()).or_insert(Value::from(source));
        }
        if let Some(offset) = record.offset.take() {
            record.attrs.entry(FOUND[1].to_owned()).or_insert(Value::from(offset));
        }
        Ok(Row { record, digest, told, date })
    }
}

/// The digest of a quarantined line: of its place, what is wrong, and all its bytes.
pub fn bad_line_digest(source: &str, line: &Line, code: &str, raw: &[u8]) -> u64 {
    let content = line.overlong.unwrap_or_else(|| xxh3_64(raw));
    let key = format!("{code}\n{}\n{}\n{content}\n{source}", line.offset, line.length);
    xxh3_64(key.as_bytes())
}
