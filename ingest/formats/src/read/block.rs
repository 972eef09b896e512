//! From a block of lines to what becomes of each line. Loads and the daemon read event records here.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::Fate;
use crate::read::lines::{Block, Line, Lines};
use crate::read::parse::{Parser, Row};
use crate::read::plain::{Anew, LineTexts, PlainRow};

/// What was read of a line.
pub enum ParsedLine {
    /// It holds a plain record, of the actor of that number in the block.
    Plain(PlainRow, u32),
    /// It holds anything else.
    Other {
        /// Where it stands.
        line: Line,
        /// Where its bytes are in the block, the byte order mark left out.
        raw: Range<usize>,
        /// What became of it.
        fate: Fate<Row>,
    },
}

/// Lines, and what becomes of each. Empty lines have no entry.
#[derive(Default)]
pub struct ParsedBlock {
    /// Bytes of the lines, unless they are in `texts`.
    raw: Vec<u8>,
    texts: LineTexts,
    entries: Vec<ParsedLine>,
    actors: u32,
}

impl ParsedBlock {
    /// Reads the lines of a block; of a line that is longer than `limit` not more than one byte behind the limit is kept. With `plain`, plain records
    /// are read where they stand.
    pub fn read(block: Block, plain: bool, parser: &mut Parser, limit: usize) -> ParsedBlock {
        let Block { bytes, offset, number } = block;
        let (text, raw) = if plain {
            match String::from_utf8(bytes) {
                Ok(text) => (text, Vec::new()),
                Err(error) => (String::new(), error.into_bytes()),
            }
        } else {
            (String::new(), bytes)
        };
        let bytes = if raw.is_empty() { text.as_bytes() } else { &raw };
        let is_text = raw.is_empty();
        let mut anew = Anew::default();
        let mut actors: FxHashMap<&str, u32> = FxHashMap::default();
        // Room that is not used is never touched.
        let mut entries = Vec::with_capacity(bytes.len() / 32);
        for (line, mut raw) in Lines::new(bytes, offset, number, limit) {
            raw.end = raw.end.min(raw.start.saturating_add(limit).saturating_add(1));
            let whole = &bytes[raw.clone()];
            raw.start = raw.end - line.text(whole).len();
            let fate = if line.overlong.is_some() {
                Fate::rejected("too_long", line.too_long(limit, raw.len()))
            } else if bytes[raw.clone()].trim_ascii().is_empty() {
                continue;
            } else {
                if is_text && let Some(row) = parser.plain(&text, raw.clone(), &line, &mut anew) {
                    let numbers = actors.len() as u32;
                    let known = |actor| *actors.entry(actor).or_insert(numbers);
                    let actor = row.actor.in_lines(&text).map_or(u32::MAX, known);
                    entries.push(ParsedLine::Plain(row, actor));
                    continue;
                }
                parser.line(whole, &line)
            };
            entries.push(ParsedLine::Other { line, raw, fate });
        }
        let actors = actors.len() as u32;
        ParsedBlock { raw, texts: LineTexts::new(text, anew), entries, actors }
    }

    /// Lines that something else read.
    #[must_use]
    pub fn of(raw: Vec<u8>, entries: Vec<ParsedLine>) -> ParsedBlock {
        ParsedBlock { raw, entries, ..ParsedBlock::default() }
    }

    /// Bytes of the lines.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if self.raw.is_empty() { self.texts.lines().as_bytes() } else { &self.raw }
    }

    /// The texts of plain rows.
    #[must_use]
    pub fn texts(&self) -> &LineTexts {
        &self.texts
    }

    /// How many actors of plain rows have a number; others have one beyond.
    #[must_use]
    pub fn actors(&self) -> u32 {
        self.actors
    }

    /// What became of the lines, in their order.
    #[must_use]
    pub fn entries(&self) -> &[ParsedLine] {
        &self.entries
    }

    /// Takes out what became of the lines.
    pub fn take_entries(&mut self) -> Vec<ParsedLine> {
        std::mem::take(&mut self.entries)
    }

    /// Puts others in their place.
    #[must_use]
    pub fn with_entries(self, entries: Vec<ParsedLine>) -> ParsedBlock {
        ParsedBlock { entries, ..self }
    }
}
