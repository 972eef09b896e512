//! What was found, and the lines that each of it stands in.

use super::kept::Part;
use crate::fate::{Events, Fate};
use crate::formats::Decoded;

/// What was found in a document.
#[derive(Debug)]
pub(crate) struct Found {
    /// Where it stands.
    pub(crate) part: Part,
    /// Lines that were not counted before it.
    pub(crate) lines: u64,
    /// What becomes of it.
    pub(crate) fate: Fate<Decoded<'static>>,
}

/// Counts lines: each once, whatever stands in it.
#[derive(Default)]
pub(super) struct Count {
    /// Last line that was counted.
    counted: u64,
    /// Found last; lines behind it that hold nothing are added to it.
    held: Option<Found>,
}

/// Where the handlers give what they find.
pub(super) struct Out<'a> {
    pub(super) count: &'a mut Count,
    pub(super) sink: &'a mut dyn FnMut(Found),
}

impl Out<'_> {
    /// Gives what was found.
    pub(super) fn give(&mut self, part: Part, fate: Fate<Decoded<'static>>) {
        let lines = part.last.saturating_sub(self.count.counted);
        self.count.counted = self.count.counted.max(part.last);
        if let Some(before) = self.count.held.replace(Found { part, lines, fate }) {
            (self.sink)(before);
        }
    }

    /// Gives events, or why there are none.
    pub(super) fn done(&mut self, part: Part, fate: Fate<Events>) {
        let fate = match fate {
            Fate::Row(events) => Fate::Row(Decoded::Events(events)),
            Fate::LeftOut(why) => Fate::LeftOut(why),
            Fate::Quarantined(why) => Fate::Quarantined(why),
        };
        self.give(part, fate);
    }

    /// Counts the rest of a document, up to that line, to what was found last, and lets go of that.
    pub(super) fn document_ends(&mut self, last: u64) {
        if let Some(mut before) = self.count.held.take() {
            before.lines += last.saturating_sub(self.count.counted);
            (self.sink)(before);
        }
        self.count.counted = self.count.counted.max(last);
    }

    /// Leaves empty lines before a document uncounted.
    pub(super) fn document_begins(&mut self, first: u64) {
        self.count.counted = self.count.counted.max(first.saturating_sub(1));
    }
}
