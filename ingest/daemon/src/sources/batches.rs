//! What was made of a log or a request, as items in batches that a frame of the spool can hold.

use bytes::Bytes;
use demi_schemas::EventRecord;

use crate::batch::{Item, MAX_BATCH};
use demi_formats::mapping::Unit;
use demi_formats::read::lines::KEPT_OF_OVERLONG;
use demi_formats::{Fate, Rejection};
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
    let Unit { line, raw, execution, fate, .. } = unit;
    let item = |bytes: Bytes, rejected| Item { offset: line.offset, line: line.number, bytes, rejected };
    let from = items.len();
    match fate {
        Fate::LeftOut(_) => {}
        Fate::Quarantined(why) => items.push(item(raw.into(), Some(why))),
        Fate::Row(_) if execution.is_some() => {
            let reason =
                "its file holds several executions, and a source writes one system: use `ingest load`";
            items.push(item(raw.into(), Some(Rejection::new("execution", reason))));
        }
        Fate::Row(events) => {
            items.extend(events.records.iter().map(|record| {
                let (bytes, rejected) = of_system(record, system);
                item(bytes, rejected)
            }));
            if items[from..].iter().map(Item::len).sum::<usize>() > MOST_TOGETHER {
                let reason = format!("the events of this record are more than {MOST_TOGETHER} bytes");
                let kept = raw[..raw.len().min(KEPT_OF_OVERLONG)].to_vec();
                items.truncate(from);
                items.push(item(kept.into(), Some(Rejection::new("too_long", reason))));
            }
        }
    }
    items[from..].iter().map(|item| item.len() + ITEM).sum()
}

/// The record as JSON; and why it is rejected, if it says that it is of another system or cannot be stored.
///
/// Here it is serialized, once: the spool takes these bytes, and the committer reads them.
pub(super) fn of_system(record: &EventRecord, system: &str) -> (Bytes, Option<Rejection>) {
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
            return (json.slice(..KEPT_OF_OVERLONG), Some(Rejection::new("too_long", reason)));
        }
        _ => return (json, None),
    };
    (json, Some(Rejection::new("rule", reason)))
}

/// Bytes of refused lines that one row has.
const MOST_OF_RUN: usize = 256 << 10;

/// Whether an item is a refused line that may stand in one row with others: all of it is there.
fn is_line(item: &Item) -> bool {
    let may = |why: &Rejection| !matches!(why.code(), "too_long" | "truncated");
    item.line > 0 && item.rejected.as_ref().is_some_and(may) && !item.bytes.contains(&b'\n')
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
                bytes += item.len();
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
    let last = lines.last().map_or((0, 0), |line| (line.line, line.offset));
    let all = lines.iter().map(|line| &line.bytes[..]).collect::<Vec<_>>().join(&b'\n');
    let count = lines.len() as u64;
    let first = lines.into_iter().next().map(|item| {
        let rejected = item.rejected.map(|why| why.reworded(|reason| of_run(reason, count, last)));
        Item { bytes: all.into(), rejected, ..item }
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
        let size = item.len() + ITEM;
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
                let rejected = ["", "too_long", "not_json"][*kind];
                let rejected = (*kind > 0).then(|| Rejection::new(rejected, "r"));
                Item { offset: n as u64 * 10, line: n as u64 + 1, bytes: n.to_string().into(), rejected }
            };
            let items: Vec<Item> = kinds.iter().enumerate().map(item).collect();
            let mut told = Vec::new();
            for item in folded(items.clone()) {
                let lines = item.rejected.as_ref().map_or(1, |why| lines_of(why.reason()));
                let text = std::str::from_utf8(&item.bytes).unwrap_or_default();
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
