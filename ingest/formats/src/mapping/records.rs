//! Finding the records of a text log in its lines.

use std::borrow::Cow;

use super::engine::{Mapper, SKIPPED};
use super::unit::Unit;
use crate::fate::{Fate, not_utf8};
use crate::formats::{Decoded, Record};
use crate::read::lines::Line;

impl Mapper {
    /// Takes a line where each record is one: nothing is kept for later.
    pub(crate) fn single(&mut self, mut line: Line, bytes: &[u8], text: &str, out: &mut Vec<Unit>) {
        line.length = bytes.len() as u64;
        let text = text.strip_suffix('\r').unwrap_or(text);
        let found = self.source.patterns.iter_mut().find_map(|p| p.find(Cow::Borrowed(text)));
        let decoded = match found {
            Some(groups) => Fate::Row(Decoded::Record(Record::Parts(groups))),
            None if text.trim_ascii().is_empty() => return,
            None => self.not_found(text),
        };
        self.take(line, 1, bytes.to_vec(), decoded, out);
    }

    /// What becomes of text in which no pattern is found.
    fn not_found(&self, text: &str) -> Fate<Decoded<'static>> {
        if self.mapping.skip.iter().any(|s| s.is_match(text)) {
            return SKIPPED;
        }
        let reason = match self.source.patterns.len() {
            1 => "the pattern is not found in this line".to_owned(),
            n => format!("none of the {n} patterns is found in this line"),
        };
        Fate::rejected("no_match", reason)
    }

    /// Finds records at the front of the pending lines; with `end` all of them are dealt with.
    pub(crate) fn drain(&mut self, end: bool, out: &mut Vec<Unit>) {
        let by_start = self.mapping.start.is_some();
        let span = self.source.patterns.iter().map(|p| p.lines).max().unwrap_or(1);
        while !self.source.pending.is_empty() && (end || self.source.pending.len() >= span) {
            let available = self.source.pending.len();
            let mut found = None;
            for i in 0..self.source.patterns.len() {
                let wanted = self.source.patterns[i].lines;
                let lines = if by_start { available } else { wanted.min(available) };
                // At the end of a file that ends in a line feed the last line of a record may be empty.
                let short = !by_start && lines + 1 == wanted;
                if !by_start && lines < wanted && !short {
                    continue;
                }
                let mut text = self.joined(lines, true);
                if short {
                    text.push(b'\n');
                }
                let text = String::from_utf8(text)
                    .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
                if let Some(groups) = self.source.patterns[i].find(Cow::Owned(text)) {
                    found = Some((lines, Record::Parts(groups)));
                    break;
                }
            }
            match found {
                Some((lines, record)) => {
                    let (line, raw) = self.pop(lines);
                    let decoded = match std::str::from_utf8(&raw) {
                        Ok(_) => Fate::Row(Decoded::Record(record)),
                        Err(error) => Fate::rejected("not_utf8", not_utf8(&raw, error)),
                    };
                    self.take(line, lines as u64, raw, decoded, out);
                }
                None => {
                    let lines = if by_start { available } else { 1 };
                    let (line, raw) = self.pop(lines);
                    let text = String::from_utf8_lossy(&raw);
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    let decoded = match (self.not_found(&text), std::str::from_utf8(&raw)) {
                        (Fate::Quarantined(_), Err(error)) => {
                            Fate::rejected("not_utf8", not_utf8(&raw, error))
                        }
                        (decoded, _) => decoded,
                    };
                    self.take(line, lines as u64, raw, decoded, out);
                }
            }
        }
    }

    fn joined(&self, lines: usize, without_cr: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for (i, (_, bytes)) in self.source.pending.iter().take(lines).enumerate() {
            if i > 0 {
                text.push(b'\n');
            }
            let bytes = if without_cr { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
            text.extend_from_slice(bytes);
        }
        text
    }

    /// Takes lines off the front; as one line, with their bytes.
    fn pop(&mut self, lines: usize) -> (Line, Vec<u8>) {
        let raw = self.joined(lines, false);
        let first = self.source.pending.front().map(|(line, _)| line.clone());
        for (_, bytes) in self.source.pending.drain(..lines) {
            self.source.pending_bytes = self.source.pending_bytes.saturating_sub(bytes.len() + 1);
        }
        let mut line =
            first.unwrap_or(Line { offset: 0, number: 0, length: 0, terminated: false, overlong: None });
        line.length = raw.len() as u64;
        (line, raw)
    }

    /// Deals with pending lines as at an end.
    pub fn flush(&mut self, out: &mut Vec<Unit>) {
        self.drain(true, out);
    }
}
