//! The one road into the table: a record is new, known or in conflict, and becomes a row of the events or of the
//! quarantine. `load`, the daemon and `requeue` take it; they differ in where lines come from and when they commit.
//! Whatever a decoder, a mapping or a source made of a line comes here as a [`Fate`].

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::EventId;
use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::columns::Sink;
use crate::columns::{EventColumns, EventRow, QuarantineRow};
use crate::deleted::Deleted;
use crate::locations::Entry;
use crate::quarantine::{CONFLICT, Quarantine};
use crate::row_digest::TOLD;
use crate::seen::{Seen, Verdict};
use demi_formats::read::block::ParsedBlock;
use demi_formats::read::lines::Line;
use demi_formats::read::parse::{Row, bad_line_digest};
use demi_formats::read::plain::{LineTexts, PlainRow};
use demi_formats::{Fate, Redaction, Rejection};

/// Rows of a batch, and the bytes of lines after which it is handed over with fewer.
const BATCH_ROWS: usize = 16 * 1024;
const BATCH_BYTES: u64 = 4 << 20;

/// Where a line was found, and its bytes.
pub struct Found<'a> {
    /// The file or connection.
    pub source: &'a str,
    /// Its number in [`Seen`].
    pub number: u32,
    /// Where in it.
    pub line: &'a Line,
    /// Its bytes.
    pub raw: &'a [u8],
}

impl<'a> Found<'a> {
    /// A line of a chunk whose bytes are at `at`.
    pub fn new(source: &'a str, number: u32, line: &'a Line, chunk: &'a [u8], at: Range<usize>) -> Self {
        Found { source, number, line, raw: &chunk[at] }
    }
}

/// Numbers in [`Seen`] of the incarnations of a block's plain rows: of each actor that of the incarnation that came last, so that it is looked up once.
pub struct Slots(Vec<Option<(u32, u32)>>);

impl Slots {
    /// Of the actors of this block, none looked up yet.
    #[must_use]
    pub fn of(block: &ParsedBlock) -> Slots {
        Slots(vec![None; block.actors() as usize])
    }

    /// The number of an incarnation of the block's actor `actor`, if it was looked up last.
    #[must_use]
    pub fn get(&self, actor: u32, incarnation: u32) -> Option<u32> {
        let (last, slot) = self.0.get(actor as usize).copied().flatten()?;
        (last == incarnation).then_some(slot)
    }

    /// The number of an incarnation of the block's actor `actor`, by its name; a new one where it has none.
    pub fn find(&mut self, seen: &mut Seen, actor: u32, (name, incarnation): (&str, u32)) -> u32 {
        if let Some(slot) = self.get(actor, incarnation) {
            return slot;
        }
        let slot = seen.slot(name, incarnation);
        if let Some(last) = self.0.get_mut(actor as usize) {
            *last = Some((incarnation, slot));
        }
        slot
    }
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// A row of the events.
    Added,
    /// The store has the event.
    Duplicate,
    /// The store had the event, which was deleted.
    Deleted,
    /// The store has the event with other content; the line is in quarantine.
    Conflict,
    /// No event; the line is in quarantine.
    Rejected,
    /// No event, and none should be one.
    LeftOut,
}

/// What became of a record.
pub(crate) enum Offered {
    /// It is a row with this sequence number.
    Added(u64),
    Duplicate,
    Deleted,
    /// The reason, and the digest of the row that goes to quarantine.
    Conflict {
        why: Rejection,
        digest: u64,
    },
}

/// New events that wait to be written.
#[derive(Default)]
pub struct Rows {
    columns: EventColumns,
    bytes: u64,
}

impl Rows {
    /// Whether a batch is full.
    pub fn are_full(&self) -> bool {
        self.columns.rows() >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// The rows as a batch, if there are any.
    pub fn take(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        self.bytes = 0;
        Ok(if self.columns.rows() > 0 { Some(self.columns.finish()?) } else { None })
    }
}

/// What is there of one system.
pub(crate) struct There<'a> {
    /// Files of events.
    pub events: Vec<SealedFile>,
    /// Files of quarantined lines.
    pub quarantine: Vec<SealedFile>,
    /// What was deleted.
    pub deleted: &'a [Deleted],
    /// Whether rows that tell their digests are written without.
    pub told: bool,
}

/// What is known of one system: its events and its quarantine.
pub struct Known {
    /// Name of the system.
    pub system: String,
    /// Its events.
    pub seen: Seen,
    /// Its quarantine.
    pub quarantine: Quarantine,
    /// Whether rows that tell their digests are written without.
    pub(crate) told: bool,
    /// What of quarantined lines is not written as it is. Records come redacted.
    pub redact: Option<Arc<Redaction>>,
}

impl Known {
    /// Reads what is there of the system. Temporary data goes to `scratch`; `dir` names the place in messages.
    pub(crate) fn read(
        system: &str,
        there: There<'_>,
        dir: String,
        scratch: PathBuf,
    ) -> Result<Self, StoreError> {
        let seen = Seen::read(dir, scratch.clone(), there.events, there.deleted)?;
        let quarantine = Quarantine::new(there.quarantine, scratch);
        Ok(Known { system: system.to_owned(), seen, quarantine, told: there.told, redact: None })
    }

    /// Takes a line, whatever becomes of it.
    pub fn admit(
        &mut self,
        found: &Found<'_>,
        fate: &mut Fate<Row>,
        rows: &mut Rows,
        quarantine: &mut impl Sink,
    ) -> Result<Admitted, StoreError> {
        match fate {
            Fate::LeftOut(_) => Ok(Admitted::LeftOut),
            Fate::Row(row) => match self.offer(found, row, rows)? {
                Offered::Added(_) => Ok(Admitted::Added),
                Offered::Duplicate => Ok(Admitted::Duplicate),
                Offered::Deleted => Ok(Admitted::Deleted),
                Offered::Conflict { why, digest } => {
                    // A line that is a record is kept as the record that it is after redaction.
                    let raw = self.redact.as_ref().and_then(|_| serde_json::to_vec(&row.record).ok());
                    let found = Found { raw: raw.as_deref().unwrap_or(found.raw), ..*found };
                    self.isolate(&found, &why, digest, quarantine)?;
                    Ok(Admitted::Conflict)
                }
            },
            Fate::Quarantined(why) => {
                let digest = bad_line_digest(found.source, found.line, why.code(), found.raw);
                match &self.redact {
                    None => self.isolate(found, why, digest, quarantine)?,
                    Some(redact) => {
                        let raw = redact.raw(&self.system, found.raw);
                        let why = why.clone().reworded(|text| redact.text(&self.system, text).into_owned());
                        self.isolate(&Found { raw: &raw, ..*found }, &why, digest, quarantine)?;
                    }
                }
                Ok(Admitted::Rejected)
            }
        }
    }

    /// Takes a line that holds a plain record, from the source of that name and number in [`Seen`], where its incarnation has the number `slot`.
    pub fn admit_plain(
        &mut self,
        (source, number): (&str, u32),
        slot: u32,
        row: &PlainRow,
        texts: &LineTexts,
        rows: &mut Rows,
        quarantine: &mut impl Sink,
    ) -> Result<Admitted, StoreError> {
        let start = row.start as usize;
        let raw = texts.lines().as_bytes().get(start..start + row.length as usize).unwrap_or_default();
        let line = Line { length: row.length.into(), ..Line::empty(row.offset, row.number) };
        let found = Found { source, number, line: &line, raw };
        match self.verdict(&found, slot, row.seq, row.digest)? {
            Offered::Added(seq) => {
                let digest = if self.told && row.told { TOLD } else { row.digest };
                let event =
                    EventRow { system: &self.system, date: row.date, source, offset: row.offset, digest };
                rows.columns.push_plain(row, seq, texts, &event);
                rows.bytes += u64::from(row.length);
                Ok(Admitted::Added)
            }
            Offered::Duplicate => Ok(Admitted::Duplicate),
            Offered::Deleted => Ok(Admitted::Deleted),
            Offered::Conflict { why, digest } => {
                self.isolate(&found, &why, digest, quarantine)?;
                Ok(Admitted::Conflict)
            }
        }
    }

    /// Takes a record. One that is new and whose sequence number was taken from a clock gets the next free number.
    pub(crate) fn offer(
        &mut self,
        found: &Found<'_>,
        row: &mut Row,
        rows: &mut Rows,
    ) -> Result<Offered, StoreError> {
        let Row { record, digest, told, date } = row;
        let slot = self.seen.slot(&record.actor, record.incarnation);
        let offered = self.verdict(found, slot, record.seq, *digest)?;
        if let Offered::Added(seq) = offered {
            record.seq = seq;
            let digest = if self.told && *told { TOLD } else { *digest };
            let (source, offset) = (found.source, found.line.offset);
            let row = EventRow { system: &self.system, date: *date, source, offset, digest };
            rows.columns.push(record, &row);
            rows.bytes += found.raw.len() as u64;
        }
        Ok(offered)
    }

    /// What becomes of an event: the number of its incarnation, its sequence number, and the digest of its content.
    fn verdict(
        &mut self,
        found: &Found<'_>,
        slot: u32,
        seq: u64,
        digest: u64,
    ) -> Result<Offered, StoreError> {
        let entry = Entry { seq, digest, offset: found.line.offset, source: found.number };
        match self.seen.offer_to(slot, entry)? {
            Verdict::New { seq } => Ok(Offered::Added(seq)),
            Verdict::Duplicate => Ok(Offered::Duplicate),
            Verdict::Deleted => Ok(Offered::Deleted),
            Verdict::Conflict { source, offset } => {
                let (actor, incarnation) = self.seen.key(slot);
                let event = EventId { actor: actor.to_owned(), incarnation, seq };
                let reason = format!(
                    "event {event} says something else than the one stored from {source} at byte {offset}"
                );
                let digest = xxh3_64(format!("conflict\n{digest}\n{event}").as_bytes());
                Ok(Offered::Conflict { why: Rejection::new(CONFLICT, reason), digest })
            }
        }
    }

    fn isolate(
        &mut self,
        found: &Found<'_>,
        why: &Rejection,
        digest: u64,
        writer: &mut impl Sink,
    ) -> Result<(), StoreError> {
        let row = QuarantineRow {
            system: &self.system,
            source: found.source,
            offset: found.line.offset,
            line: found.line.number,
            raw_length: found.line.length,
            raw: found.raw,
            code: why.code(),
            reason: why.reason(),
            digest,
        };
        self.quarantine.push(&row, writer)
    }
}
