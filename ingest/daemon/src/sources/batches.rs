//! What was made of a log or a request, as items in batches that a frame of the spool can hold.

use bytes::Bytes;
use demi_schemas::EventRecord;

use crate::batch::{Item, MAX_BATCH, Outcome as Fate};
use demi_formats::mapping::{Outcome, Unit};
use demi_formats::read::lines::KEPT_OF_OVERLONG;
use demi_store::quarantine::{RUN, of_run};

/// Most bytes of what one record became.
pub(super) const MOST_TOGETHER: usize = MAX_BATCH / 4;
/// Bytes of items that are spooled together, unless one of them has more. Several batches are on their way at a time, and what is small in the
/// spool takes some times its bytes in memory.
const GATHERED: usize = 2 << 20;

/// Bytes of a record from which on room that it does not use is given back.
const LARGE: usize = 64 << 10;
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
    let mut json = serde_json::to_vec(record).unwrap_or_default();
    if json.len() > LARGE {
        json.shrink_to_fit();
    }
    let json = Bytes::from(json);
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

/// Bytes of refused lines that one row has.
const MOST_OF_RUN: usize = 256 << 10;

/// Whether an item is a refused line that may stand in one row with others: all of it is there.
fn is_line(item: &Item) -> bool {
    match &item.outcome {
        Fate::Rejected { raw, code, .. } => {
            item.line > 0 && code != "too_long" && code != "truncated" && !raw.contains(&b'\n')
        }
        Fate::Record(_) => false,
    }
}

/// Puts many refused lines in a row into one item, which has the bytes of all of them.
pub(super) fn folded(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    // Refused lines at hand, and their bytes.
    let (mut run, mut bytes): (Vec<Item>, usize) = (Vec::new(), 0);
    for item in items {
        let line = is_line(&item);
        if !line || bytes > MOST_OF_RUN {
            out.extend(fold(&mut run));
            bytes = 0;
        }
        match line {
            true => {
                bytes += bytes_of(&item.outcome);
                run.push(item);
            }
            false => out.push(item),
        }
    }
    out.extend(fold(&mut run));
    out
}

/// The refused lines as one item if they are many.
fn fold(run: &mut Vec<Item>) -> Vec<Item> {
    let lines = std::mem::take(run);
    if lines.len() < RUN {
        return lines;
    }
    let mut all = Vec::new();
    let mut last = (0, 0);
    for line in &lines {
        if let Fate::Rejected { raw, .. } = &line.outcome {
            if last.0 > 0 {
                all.push(b'\n');
            }
            all.extend_from_slice(raw);
        }
        last = (line.line, line.offset);
    }
    let count = lines.len() as u64;
    let first = lines.into_iter().next().map(|item| {
        let outcome = match item.outcome {
            Fate::Rejected { code, reason, .. } => {
                let reason = of_run(&reason, count, last);
                Fate::Rejected { raw: Bytes::from(all), code, reason }
            }
            record @ Fate::Record(_) => record,
        };
        Item { outcome, ..item }
    });
    first.into_iter().collect()
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
        if self.size + size > GATHERED && from > 0 {
            let rest = self.now.split_off(from);
            self.give(rest);
        }
        self.count(size)
    }

    /// Appends an item; says whether somebody listens.
    pub(super) fn push(&mut self, item: Item) -> bool {
        let size = bytes_of(&item.outcome) + ITEM;
        if self.size + size > GATHERED && !self.now.is_empty() {
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
        self.open = self.open && (self.give)(folded(items));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a failed expectation is a failed test")]

    use proptest::prelude::*;

    use super::*;
    use demi_store::quarantine::lines_of;

    proptest! {
        /// Each line is there once, in order, and a long run of refused ones is one item.
        #[test]
        fn each_line_is_in_one_item(kinds in prop::collection::vec((0usize..3, 1usize..40), 0..8)) {
            let kinds: Vec<usize> = kinds.into_iter().flat_map(|(kind, n)| std::iter::repeat_n(kind, n)).collect();
            let item = |(n, kind): (usize, &usize)| {
                let raw = Bytes::from(n.to_string());
                let rejected = |code: &str| Fate::Rejected { raw: raw.clone(), code: code.to_owned(), reason: "r".to_owned() };
                let outcome = match kind {
                    0 => Fate::Record(raw),
                    1 => rejected("too_long"),
                    _ => rejected("not_json"),
                };
                Item { offset: n as u64 * 10, line: n as u64 + 1, outcome }
            };
            let items: Vec<Item> = kinds.iter().enumerate().map(item).collect();
            let mut told = Vec::new();
            for item in folded(items.clone()) {
                let (raw, lines) = match &item.outcome {
                    Fate::Record(raw) => (raw, 1),
                    Fate::Rejected { raw, reason, .. } => (raw, lines_of(reason)),
                };
                let text = std::str::from_utf8(raw).unwrap_or_default();
                let some: Vec<&str> = text.split('\n').collect();
                prop_assert_eq!(some.len() as u64, lines);
                prop_assert!(lines == 1 || lines >= RUN as u64);
                prop_assert_eq!(some[0], (item.line - 1).to_string());
                told.extend(some.into_iter().map(str::to_owned));
            }
            prop_assert_eq!(told, (0..kinds.len()).map(|n| n.to_string()).collect::<Vec<_>>());
        }
    }
}
