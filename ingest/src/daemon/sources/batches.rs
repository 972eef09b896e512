//! What was made of a log or a request, as items in batches that a frame of the spool can hold.

use bytes::Bytes;
use demi_schemas::EventRecord;

use crate::daemon::batch::{Item, MAX_BATCH, Outcome as Fate};
use crate::mapping::{Outcome, Unit};
use crate::read::lines::KEPT_OF_OVERLONG;

/// Most bytes of what one record became, and about as many of what is spooled together.
pub(super) const MOST_TOGETHER: usize = MAX_BATCH / 4;

/// Bytes that an item takes besides its content.
const ITEM: usize = 128;

/// Appends what a unit became: items, and about how many bytes they are when they are spooled.
pub(super) fn append(unit: Unit, system: &str, items: &mut Vec<Item>) -> usize {
    let Unit { line, raw, execution, outcome, .. } = unit;
    let mut size = 0;
    let mut push = |fate: Fate, bytes: usize| {
        size += bytes + ITEM;
        items.push(Item { offset: line.offset, line: line.number, outcome: fate });
    };
    let rejected = |raw: Vec<u8>, code: &str, reason: String| {
        let bytes = raw.len() + reason.len();
        (Fate::Rejected { raw: Bytes::from(raw), code: code.to_owned(), reason }, bytes)
    };
    match outcome {
        Outcome::Skipped(_) => {}
        Outcome::Rejected { code, reason } => {
            let (fate, bytes) = rejected(raw, code, reason);
            push(fate, bytes);
        }
        Outcome::Events { .. } if execution.is_some() => {
            let reason =
                "its file holds several executions, and a source writes one system: use `ingest load`";
            let (fate, bytes) = rejected(raw, "execution", reason.to_owned());
            push(fate, bytes);
        }
        Outcome::Events { records, .. } => {
            let fates: Vec<Fate> = records.iter().map(|record| of_system(record, system)).collect();
            if fates.iter().map(bytes_of).sum::<usize>() > MOST_TOGETHER {
                let reason = format!("the events of this record are more than {MOST_TOGETHER} bytes");
                let kept = raw[..raw.len().min(KEPT_OF_OVERLONG)].to_vec();
                let (fate, bytes) = rejected(kept, "too_long", reason);
                push(fate, bytes);
                return size;
            }
            for fate in fates {
                let bytes = bytes_of(&fate);
                push(fate, bytes);
            }
        }
    }
    size
}

/// The record, unless it says that it is of another system or its incarnation cannot be stored.
///
/// Here it is serialized, once: the spool takes these bytes, and the committer reads them.
pub(super) fn of_system(record: &EventRecord, system: &str) -> Fate {
    // A record that was parsed can be written.
    let json = Bytes::from(serde_json::to_vec(record).unwrap_or_default());
    let reason = match &record.system {
        Some(own) if own != system => format!("the record is of system '{own}', the source of '{system}'"),
        _ if i32::try_from(record.incarnation).is_err() => {
            format!("incarnation {} is beyond {}", record.incarnation, i32::MAX)
        }
        _ if json.len() > MOST_TOGETHER => {
            let reason = format!("the event of this record is more than {MOST_TOGETHER} bytes");
            let raw = json.slice(..KEPT_OF_OVERLONG);
            return Fate::Rejected { raw, code: "too_long".to_owned(), reason };
        }
        _ => return Fate::Record(json),
    };
    Fate::Rejected { raw: json, code: "rule".to_owned(), reason }
}

fn bytes_of(fate: &Fate) -> usize {
    match fate {
        Fate::Record(json) => json.len(),
        Fate::Rejected { raw, reason, .. } => raw.len() + reason.len(),
    }
}

/// Gathers items, and gives them in batches that a frame of the spool can hold.
pub(super) struct Batches<'a> {
    give: Box<dyn FnMut(Vec<Item>) -> bool + 'a>,
    now: Vec<Item>,
    size: usize,
    /// Bytes that may yet be given.
    left: u64,
    /// Whether somebody listens.
    open: bool,
}

impl<'a> Batches<'a> {
    /// Gives batches to `give`, which says whether it wants more, until they come to `most` bytes.
    pub(super) fn new(most: u64, give: impl FnMut(Vec<Item>) -> bool + 'a) -> Self {
        Batches { give: Box::new(give), now: Vec::new(), size: 0, left: most, open: true }
    }

    /// Appends what a unit became; says whether somebody listens.
    pub(super) fn add(&mut self, unit: Unit, system: &str) -> bool {
        let from = self.now.len();
        let size = append(unit, system, &mut self.now);
        if self.size + size > MOST_TOGETHER && from > 0 {
            let rest = self.now.split_off(from);
            self.give(rest);
        }
        self.count(size)
    }

    /// Appends an item; says whether somebody listens.
    pub(super) fn push(&mut self, item: Item) -> bool {
        let size = bytes_of(&item.outcome) + ITEM;
        if self.size + size > MOST_TOGETHER && !self.now.is_empty() {
            self.give(Vec::new());
        }
        if self.open {
            self.now.push(item);
        }
        self.count(size)
    }

    fn count(&mut self, size: usize) -> bool {
        self.size += size;
        match self.left.checked_sub(size as u64) {
            Some(left) => self.left = left,
            None => (self.left, self.open) = (0, false),
        }
        self.open
    }

    /// Gives what is at hand; what comes next begins with `rest`.
    fn give(&mut self, rest: Vec<Item>) {
        let items = std::mem::replace(&mut self.now, rest);
        self.open = self.open && (self.give)(items);
        self.size = 0;
    }

    /// Gives the rest; says whether somebody listened to the end.
    pub(super) fn end(mut self) -> bool {
        if self.open && !self.now.is_empty() {
            self.give(Vec::new());
        }
        self.open
    }
}
