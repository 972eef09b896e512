//! Spans and log records that wait for what stands behind them: the attributes of their scope or resource.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};

use super::kept::Part;
use super::out::Out;
use super::scan::Tag;
use super::telemetry::rejected;
use crate::read::lines::Line;

/// Bytes that are held in memory; what is more goes to an unnamed file.
const IN_MEMORY: usize = 4 << 20;

/// Something that waits.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) tag: Tag,
    /// Where it stands in its document.
    pub(super) path: String,
    pub(super) part: Part,
}

/// A queue whose memory is bounded.
#[derive(Default)]
pub(super) struct Held {
    memory: Vec<u8>,
    file: Option<File>,
    /// Bytes of the file that were written whole.
    written: u64,
    entries: u64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Appends something.
    ///
    /// # Errors
    /// When the file cannot be written; it is not appended then.
    pub(super) fn push(&mut self, entry: &Entry) -> io::Result<()> {
        if self.memory.len() > IN_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(tempfile::tempfile()?),
            };
            file.seek(SeekFrom::Start(self.written))?;
            file.write_all(&self.memory)?;
            self.written += self.memory.len() as u64;
            self.memory.clear();
        }
        let tag: u64 = match entry.tag {
            Tag::Span => 0,
            Tag::Log => 1,
            _ => 2,
        };
        let Part { line, last, raw } = &entry.part;
        let (path, raw_length) = (entry.path.as_bytes(), raw.len() as u64);
        for number in [tag, line.offset, line.number, line.length, *last, path.len() as u64, raw_length] {
            self.memory.extend_from_slice(&number.to_le_bytes());
        }
        self.memory.extend_from_slice(path);
        self.memory.extend_from_slice(raw);
        self.entries += 1;
        Ok(())
    }

    /// Takes out everything, first in, first out.
    ///
    /// # Errors
    /// When the file cannot be read; with how many entries are lost.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Entry)) -> Result<(), (u64, io::Error)> {
        let Held { memory, file, written, entries } = std::mem::take(self);
        let mut left = entries;
        let read = || -> io::Result<()> {
            let file: Box<dyn Read> = match file {
                Some(mut file) => {
                    file.seek(SeekFrom::Start(0))?;
                    Box::new(file)
                }
                None => Box::new(io::empty()),
            };
            let mut stream =
                BufReader::with_capacity(1 << 17, file.take(written).chain(Cursor::new(&memory)));
            while left > 0 {
                each(read(&mut stream)?);
                left -= 1;
            }
            Ok(())
        };
        read().map_err(|error| (left, error))
    }
}

/// Takes out what was held.
pub(super) fn drained(mut held: Held, out: &mut Out<'_>, mut each: impl FnMut(Entry, &mut Out<'_>)) {
    if let Err((lost, error)) = held.drain(|entry| each(entry, out)) {
        let line = Line::empty(0, 0);
        let reason = format!(
            "{lost} spans or log records that waited for what they belong to cannot be read again: {error}"
        );
        out.done(Part { line, last: 0, raw: Vec::new() }, rejected("", "held", &reason));
    }
}

fn read(stream: &mut impl Read) -> io::Result<Entry> {
    let mut numbers = [0_u64; 7];
    for number in &mut numbers {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes)?;
        *number = u64::from_le_bytes(bytes);
    }
    let [tag, offset, number, length, last, path_length, raw_length] = numbers;
    let mut bytes = |length: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        stream.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length {
            Ok(bytes)
        } else {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        }
    };
    let path = String::from_utf8_lossy(&bytes(path_length)?).into_owned();
    let raw = bytes(raw_length)?;
    let tag = match tag {
        0 => Tag::Span,
        1 => Tag::Log,
        _ => Tag::Scope,
    };
    let line = Line { offset, number, length, terminated: true, overlong: None };
    Ok(Entry { tag, path, part: Part { line, last, raw } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_in_memory_and_file_comes_out_in_its_order() {
        let entry = |n: u64| {
            let line = Line { offset: n, number: n + 1, length: 100_000, terminated: true, overlong: None };
            let raw = vec![n as u8; 100_000];
            let tag = [Tag::Span, Tag::Log, Tag::Scope][n as usize % 3];
            Entry { tag, path: format!("[{n}]"), part: Part { line, last: n + 2, raw } }
        };
        let mut held = Held::default();
        for round in [3, 200] {
            (0..round).for_each(|n| held.push(&entry(n)).unwrap());
            assert_eq!(held.file.is_some(), round == 200);
            assert!(held.memory.len() < IN_MEMORY + 200_000);
            let mut n = 0;
            held.drain(|found| {
                assert_eq!(found, entry(n));
                n += 1;
            })
            .unwrap();
            assert_eq!(n, round);
            assert!(held.is_empty());
        }
    }
}
