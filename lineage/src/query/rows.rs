//! Where an event's row stands: in the tables that an execution was built with, or in those of what was added.

use std::ops::Range;

use crate::execution::Part;
use crate::index::IndexHeader;

/// The rows of events, by number.
pub(crate) struct Rows<'a> {
    header: &'a IndexHeader,
}

impl<'a> Rows<'a> {
    /// The rows of an index's events.
    pub(crate) fn new(header: &'a IndexHeader) -> Rows<'a> {
        Rows { header }
    }

    /// By actor, the numbers of its events in a part.
    fn spans(&self, part: Part) -> impl Iterator<Item = Range<u32>> + '_ {
        self.header.actors.iter().enumerate().map(move |(i, actor)| {
            let end = self.header.events_of(i).end;
            let middle = end.saturating_sub(actor.appended);
            match part {
                Part::Built => actor.first..middle,
                Part::Added => middle..end,
            }
        })
    }

    /// The numbers of the events of a part.
    pub(crate) fn numbering(&self, part: Part) -> Numbering {
        let mut stretches: Vec<(u32, u32)> = Vec::new();
        let (mut rows, mut next) = (0, None);
        for span in self.spans(part).filter(|span| !span.is_empty()) {
            if next != Some(span.start) {
                stretches.push((rows, span.start));
            }
            rows += span.len() as u32;
            next = Some(span.end);
        }
        Numbering { stretches, rows }
    }

    /// The rows of a part that hold events of these ranges, which are in order.
    pub(crate) fn rows_of(&self, part: Part, ranges: &[Range<u32>]) -> Vec<Range<u32>> {
        let mut rows: Vec<Range<u32>> = Vec::new();
        let (mut at, mut next) = (0, 0);
        for span in self.spans(part) {
            while next < ranges.len() && ranges[next].end <= span.start {
                next += 1;
            }
            for range in ranges[next..].iter().take_while(|r| r.start < span.end) {
                let here = range.start.max(span.start)..range.end.min(span.end);
                if here.is_empty() {
                    continue;
                }
                let here = here.start - span.start + at..here.end - span.start + at;
                match rows.last_mut() {
                    Some(last) if last.end == here.start => last.end = here.end,
                    _ => rows.push(here),
                }
            }
            at += span.len() as u32;
        }
        rows
    }
}

/// The numbers of the events in the rows of a part.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// The first row of each stretch of rows with consecutive events, and its event.
    stretches: Vec<(u32, u32)>,
    /// How many rows there are.
    rows: u32,
}

impl Numbering {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }
}

impl Numbering {
    /// The event in a row, if there is such a row.
    pub(crate) fn of(&self, row: u32) -> Option<u32> {
        let before = self.stretches.partition_point(|(first, _)| *first <= row);
        let (first, event) = *self.stretches.get(before.checked_sub(1)?)?;
        (row < self.rows).then_some(event + row - first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::ActorEntry;

    proptest! {
        #[test]
        fn each_event_has_one_row(
            logs in proptest::collection::vec((0..6_u32, 0..4_u32), 1..6),
            chosen in proptest::collection::btree_set(0..60_u32, 0..30),
        ) {
            let logs: Vec<_> = logs.into_iter().filter(|(built, added)| built + added > 0).collect();
            let mut events = 0;
            let mut actors = Vec::new();
            for (i, (built, appended)) in logs.iter().enumerate() {
                let name = format!("{i}");
                actors.push(ActorEntry {
                    name, first: events, first_run: 0, first_state: 0, appended: *appended, first_out: None, last_in: None,
                });
                events += built + appended;
            }
            let header = IndexHeader {
                schema: String::new(), events, actors, runs: 0, states: 0, links: 0, uncertain: 0, alone: 0,
                environment: None, stride: 0, sealed: false, digest: None,
            };
            let rows = Rows::new(&header);
            let ranges: Vec<_> = chosen.iter().filter(|&&e| e < events).map(|&e| e..e + 1).collect();
            let mut found = Vec::new();
            for part in [Part::Built, Part::Added] {
                let numbers: Vec<u32> = rows.spans(part).flatten().collect();
                let numbering = rows.numbering(part);
                prop_assert!((0..numbers.len()).all(|row| numbering.of(row as u32) == Some(numbers[row])));
                prop_assert_eq!(numbering.of(numbers.len() as u32), None);
                let here = rows.rows_of(part, &ranges);
                prop_assert!(here.windows(2).all(|w| w[0].end < w[1].start));
                found.extend(here.into_iter().flatten().map(|row| numbers[row as usize]));
            }
            found.sort_unstable();
            let expected: Vec<u32> = chosen.into_iter().filter(|&e| e < events).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
