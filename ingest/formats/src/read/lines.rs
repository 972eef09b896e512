//! Lines of a byte stream, with a bound on what is held of any one of them.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes of an overlong line that are read at a time.
const SCRATCH: u64 = 64 * 1024;

/// Where a line is and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte offset of its first byte in the (unpacked) stream.
    pub offset: u64,
    /// Its number, from 1; empty lines count.
    pub number: u64,
    /// Its length in bytes without the newline, however much of it was kept.
    pub length: u64,
    /// Whether a newline ended it.
    pub terminated: bool,
    /// For a line longer than the limit: xxh3-64 of all its bytes, of which only the first were kept.
    pub overlong: Option<u64>,
}

/// Bytes kept of an overlong line.
pub const KEPT_OF_OVERLONG: usize = 64 * 1024;

/// The byte order mark of UTF-8, which may stand in front of a file.
pub const MARK: [u8; 3] = *b"\xef\xbb\xbf";

/// A text without the byte order mark in front of it.
#[must_use]
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(&MARK).unwrap_or(text)
}

impl Line {
    /// The bytes of this line without the byte order mark, which stands in front of the first one.
    #[must_use]
    pub fn text<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        if self.offset == 0 { without_mark(bytes) } else { bytes }
    }

    /// No bytes at that place.
    pub fn empty(offset: u64, number: u64) -> Self {
        Line { offset, number, length: 0, terminated: false, overlong: None }
    }

    /// Why a line that is too long is no record.
    pub fn too_long(&self, limit: usize, kept: usize) -> String {
        format!(
            "the line is {} bytes long, more than the limit of {limit}; its first {kept} bytes are kept",
            self.length
        )
    }
}

/// Whole lines of a stream, one behind the other.
#[derive(Debug)]
pub struct Block {
    /// Their bytes with line feeds; only the last line of a stream may be without.
    pub bytes: Vec<u8>,
    /// Where the first one begins in the (unpacked) stream.
    pub offset: u64,
    /// Its number, from 1.
    pub number: u64,
}

/// Cuts bytes in memory into lines, as [`LineReader`] cuts a stream: each with the range of its bytes that are kept.
pub struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    offset: u64,
    number: u64,
    limit: usize,
}

impl<'a> Lines<'a> {
    /// Lines of `bytes`, which begin at `offset` of their source; the first has that number, 0 where nobody counts.
    pub fn new(bytes: &'a [u8], offset: u64, number: u64, limit: usize) -> Self {
        Lines { bytes, at: 0, offset, number, limit }
    }
}

impl Iterator for Lines<'_> {
    type Item = (Line, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let newline = memchr::memchr(b'\n', rest);
        let length = newline.unwrap_or(rest.len());
        let long = length > self.limit;
        let kept = if long { KEPT_OF_OVERLONG.min(length) } else { length };
        let line = Line {
            offset: self.offset + self.at as u64,
            number: self.number,
            length: length as u64,
            terminated: newline.is_some(),
            overlong: long.then(|| xxh3_64(&rest[..length])),
        };
        let range = self.at..self.at + kept;
        self.at += length + 1;
        self.number += u64::from(self.number > 0);
        Some((line, range))
    }
}

/// What [`LineReader::next_line`] found.
#[derive(Debug)]
pub enum Next {
    /// A line; its bytes were appended to the buffer.
    Line(Line),
    /// The stream ended.
    End,
    /// The stream broke. What came of the line before that was appended to the buffer.
    Failed {
        /// The broken-off line, if it had begun.
        partial: Option<Line>,
        /// What the stream said.
        error: io::Error,
    },
}

/// Cuts a stream into lines. A line longer than the limit is read past, never held: its first bytes are kept, the
/// rest is only counted and hashed.
pub struct LineReader<R> {
    inner: R,
    offset: u64,
    number: u64,
    limit: usize,
    keep: usize,
    scratch: Vec<u8>,
}

impl<R: BufRead> LineReader<R> {
    /// Reads lines of up to `limit` bytes, and the first `keep` bytes of those that are longer.
    pub fn new(inner: R, limit: usize, keep: usize) -> Self {
        LineReader { inner, offset: 0, number: 0, limit, keep, scratch: Vec::new() }
    }

    /// Reads on where so many bytes and lines of a stream were read already.
    #[must_use]
    pub fn behind(self, offset: u64, lines: u64) -> Self {
        LineReader { offset, number: lines, ..self }
    }

    /// Offset of the next byte to be read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many lines were read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }

    /// Appends the next line, without its newline, to `out`.
    pub fn next_line(&mut self, out: &mut Vec<u8>) -> Next {
        let start = out.len();
        let mut line = Line {
            offset: self.offset,
            number: self.number + 1,
            length: 0,
            terminated: false,
            overlong: None,
        };
        let most = (self.limit as u64).saturating_add(1);
        let read = self.inner.by_ref().take(most).read_until(b'\n', out);
        let got = (out.len() - start) as u64;
        self.offset += got;
        line.length = got;
        if got > 0 {
            self.number += 1;
        }
        if let Err(error) = read {
            return Next::Failed { partial: (got > 0).then_some(line), error };
        }
        if got == 0 {
            return Next::End;
        }
        if out.last() == Some(&b'\n') {
            out.pop();
            line.length -= 1;
            line.terminated = true;
        } else if got == most {
            return self.skip_rest(line, out, start);
        }
        Next::Line(line)
    }

    /// Counts and hashes what remains of an overlong line.
    fn skip_rest(&mut self, mut line: Line, out: &mut Vec<u8>, start: usize) -> Next {
        let mut hash = Xxh3::new();
        hash.update(&out[start..]);
        out.truncate(start + self.keep.min(out.len() - start));
        let mut failed = None;
        loop {
            self.scratch.clear();
            let read = self.inner.by_ref().take(SCRATCH).read_until(b'\n', &mut self.scratch);
            self.offset += self.scratch.len() as u64;
            let ended = self.scratch.last() == Some(&b'\n');
            if ended {
                self.scratch.pop();
            }
            hash.update(&self.scratch);
            line.length += self.scratch.len() as u64;
            line.terminated = ended;
            match read {
                Err(error) => {
                    failed = Some(error);
                    break;
                }
                Ok(n) if ended || n == 0 => break,
                Ok(_) => {}
            }
        }
        line.overlong = Some(hash.digest());
        match failed {
            Some(error) => Next::Failed { partial: Some(line), error },
            None => Next::Line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    /// A stream that gives what it has in pieces of the given sizes.
    struct Pieces<'a> {
        data: &'a [u8],
        sizes: Vec<usize>,
        at: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes[self.at % self.sizes.len()].max(1);
            self.at += 1;
            let n = size.min(buf.len()).min(self.data.len());
            buf[..n].copy_from_slice(&self.data[..n]);
            self.data = &self.data[n..];
            Ok(n)
        }
    }

    type Row = (u64, u64, u64, Vec<u8>, bool);

    fn read_all(data: &[u8], sizes: Vec<usize>, capacity: usize, limit: usize, keep: usize) -> Vec<Row> {
        let pieces = Pieces { data, sizes, at: 0 };
        let mut reader = LineReader::new(BufReader::with_capacity(capacity, pieces), limit, keep);
        let mut rows = Vec::new();
        let mut out = Vec::new();
        loop {
            out.clear();
            match reader.next_line(&mut out) {
                Next::Line(line) => {
                    rows.push((line.offset, line.number, line.length, out.clone(), line.overlong.is_some()));
                }
                Next::End => return rows,
                Next::Failed { error, .. } => panic!("{error}"),
            }
        }
    }

    fn naive(data: &[u8], limit: usize, keep: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut offset = 0;
        let mut pieces: Vec<&[u8]> = data.split(|b| *b == b'\n').collect();
        if pieces.last().is_some_and(|p| p.is_empty()) {
            pieces.pop();
        }
        for (i, piece) in pieces.iter().enumerate() {
            let long = piece.len() > limit;
            let kept = if long { &piece[..keep.min(piece.len()).min(limit + 1)] } else { piece };
            rows.push((offset, i as u64 + 1, piece.len() as u64, kept.to_vec(), long));
            offset += piece.len() as u64 + 1;
        }
        rows
    }

    proptest! {
        #[test]
        fn agrees_with_a_naive_split(
            data in proptest::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n'), 1 => any::<u8>()], 0..400),
            sizes in proptest::collection::vec(1usize..40, 1..8),
            capacity in 1usize..50, limit in 1usize..60, keep in 0usize..80,
        ) {
            prop_assert_eq!(read_all(&data, sizes, capacity, limit, keep), naive(&data, limit, keep));
        }

        #[test]
        fn bytes_in_memory_are_cut_as_a_stream_is(
            data in proptest::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n')], 0..200),
            limit in 1usize..60,
        ) {
            let mut reader = LineReader::new(&data[..], limit, KEPT_OF_OVERLONG);
            let mut out = Vec::new();
            for (line, range) in Lines::new(&data, 0, 1, limit) {
                out.clear();
                let Next::Line(expected) = reader.next_line(&mut out) else { panic!("no line") };
                prop_assert_eq!(line, expected);
                // A limit below what is kept of an overlong line: the stream was not read so far.
                prop_assert!(data[range].starts_with(&out));
            }
            prop_assert!(matches!(reader.next_line(&mut out), Next::End));
        }
    }

    #[test]
    fn a_hundred_megabytes_in_one_line_are_not_held() {
        let long = io::repeat(b'z').take(100_000_000);
        let stream = BufReader::new(long.chain(&b"\nnext\n"[..]));
        let mut reader = LineReader::new(stream, 1 << 20, 100);
        let mut out = Vec::new();
        let Next::Line(line) = reader.next_line(&mut out) else { panic!("no line") };
        assert_eq!((line.length, line.overlong.is_some(), out.len()), (100_000_000, true, 100));
        assert!(out.capacity() <= 4 << 20, "held {}", out.capacity());
        out.clear();
        let Next::Line(line) = reader.next_line(&mut out) else { panic!("no line") };
        assert_eq!((out.as_slice(), line.offset, line.number), (&b"next"[..], 100_000_001, 2));
    }

    #[test]
    fn overlong_lines_with_one_beginning_have_different_hashes() {
        let hash = |data: &[u8]| {
            let mut reader = LineReader::new(data, 4, 2);
            match reader.next_line(&mut Vec::new()) {
                Next::Line(line) => line.overlong.unwrap(),
                other => panic!("{other:?}"),
            }
        };
        assert_ne!(hash(b"aaaaaaab\n"), hash(b"aaaaaaac\n"));
        assert_eq!(hash(b"aaaaaaab\n"), hash(b"aaaaaaab"));
    }
}
