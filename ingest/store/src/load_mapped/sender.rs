//! From units to the chunks that the writing thread takes.

use std::sync::mpsc::SyncSender;

use super::{Mapped, system_of};
use crate::StoreError;
use crate::load::LoadOptions;
use demi_formats::digest::digest_into;
use demi_formats::mapping::Unit;
use demi_formats::read::parse::{Chunk, Item, Row, reserved};
use demi_formats::time::utc_date;
use demi_formats::{Events, Fate};

/// Units handed over together, and the bytes of them after which they are.
const CHUNK_UNITS: usize = 2048;
const CHUNK_BYTES: usize = 1 << 20;

/// Gathers units of one execution and sends them.
pub(super) struct Sender<'a> {
    pub(super) name: String,
    options: &'a LoadOptions,
    scratch: Vec<u8>,
    next: Option<Mapped>,
    /// Skipped lines that no execution has yet.
    skipped: u64,
    /// Execution of the units sent last.
    last: Option<String>,
    /// Bytes of the source that were told.
    told: u64,
    to: &'a SyncSender<Result<Mapped, StoreError>>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        name: String,
        options: &'a LoadOptions,
        to: &'a SyncSender<Result<Mapped, StoreError>>,
    ) -> Self {
        Sender { name, options, scratch: Vec::new(), next: None, skipped: 0, last: None, told: 0, to }
    }

    fn fresh(&self, execution: Option<String>) -> Mapped {
        let chunk = Chunk {
            source: self.name.clone(),
            raw: Vec::new(),
            items: Vec::new(),
            bytes: 0,
            end: false,
            damage: None,
        };
        Mapped { execution, chunk, lines: 0, skipped: 0, warnings: Vec::new() }
    }

    /// Takes a unit; says whether anybody still listens.
    pub(super) fn add(&mut self, unit: Unit, offset: u64) -> bool {
        if let Fate::LeftOut(_) = unit.fate {
            // It belongs to no execution in particular and opens none.
            self.skipped += unit.lines;
            return true;
        }
        let full = self.next.as_ref().is_some_and(|n| {
            n.execution != unit.execution
                || n.chunk.items.len() >= CHUNK_UNITS
                || n.chunk.raw.len() >= CHUNK_BYTES
        });
        if full && !self.send(offset, false, None) {
            return false;
        }
        let mut next = self.next.take().unwrap_or_else(|| self.fresh(unit.execution.clone()));
        next.lines += unit.lines;
        let start = next.chunk.raw.len();
        match unit.fate {
            Fate::LeftOut(_) => {}
            Fate::Quarantined(why) => {
                next.chunk.raw.extend_from_slice(&unit.raw);
                let raw = start..next.chunk.raw.len();
                next.chunk.items.push(Item { line: unit.line, raw, fate: Fate::Quarantined(why) });
            }
            Fate::Row(Events { records, warnings }) => {
                let system = system_of(&self.options.system, unit.execution.as_deref());
                let shown = |w: String| match &self.options.redact {
                    Some(redact) => redact.text(&system, &w).into_owned(),
                    None => w,
                };
                let place = |w: String| format!("{}:{}: {}", self.name, unit.line.number, shown(w));
                next.warnings.extend(warnings.into_iter().map(place));
                next.chunk.raw.extend_from_slice(&unit.raw);
                let raw = start..next.chunk.raw.len();
                for mut record in records {
                    if let Some(why) = reserved(&record) {
                        let fate = Fate::Quarantined(why);
                        next.chunk.items.push(Item { line: unit.line.clone(), raw: raw.clone(), fate });
                        continue;
                    }
                    if let Some(redact) = &self.options.redact {
                        redact.record(&system, &mut record);
                    }
                    let digest = digest_into(&record, &mut self.scratch);
                    let date = record.time.as_ref().and_then(utc_date);
                    let fate = Fate::Row(Row { record: Box::new(record), digest, date });
                    next.chunk.items.push(Item { line: unit.line.clone(), raw: raw.clone(), fate });
                }
            }
        }
        self.next = Some(next);
        true
    }

    fn send(&mut self, offset: u64, end: bool, damage: Option<String>) -> bool {
        let Some(mut next) = self.next.take() else { return true };
        let skipped = std::mem::take(&mut self.skipped);
        next.skipped += skipped;
        next.lines += skipped;
        self.last.clone_from(&next.execution);
        next.chunk.bytes = offset.saturating_sub(std::mem::replace(&mut self.told, offset));
        next.chunk.end = end;
        next.chunk.damage = damage;
        self.to.send(Ok(next)).is_ok()
    }

    pub(super) fn close(mut self, offset: u64, damage: Option<String>) -> bool {
        if self.next.is_none() {
            self.next = Some(self.fresh(self.last.clone()));
        }
        self.send(offset, true, damage)
    }
}
