//! What is kept of a stretch of a stream: all of it up to a bound, else its beginning.

use xxhash_rust::xxh3::Xxh3;

use crate::read::lines::{KEPT_OF_OVERLONG, Line};

/// A stretch of the stream, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Where it begins, and how long it is.
    pub(crate) line: Line,
    /// Number of the line in which it ends.
    pub(crate) last: u64,
    /// Its bytes; of one that is longer than the limit its first ones.
    pub(crate) raw: Vec<u8>,
}

/// A stretch that is being read.
pub(super) struct Kept {
    begin: u64,
    number: u64,
    /// The first byte of the piece at hand that was not taken yet.
    pub(super) from: usize,
    raw: Vec<u8>,
    length: u64,
    limit: usize,
    /// Of one that is longer than the limit.
    hash: Option<Box<Xxh3>>,
}

impl Kept {
    /// One that begins at that byte of the stream, in that line, and is the byte `from` of the piece at hand.
    pub(super) fn new(begin: u64, number: u64, from: usize, limit: usize) -> Self {
        Kept { begin, number, from, raw: Vec::new(), length: 0, limit, hash: None }
    }

    /// Takes the piece up to `to`.
    pub(super) fn take(&mut self, piece: &[u8], to: usize) {
        let bytes = piece.get(self.from..to).unwrap_or_default();
        self.from = to.max(self.from);
        self.length += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        } else if self.raw.len() + bytes.len() <= self.limit {
            self.raw.extend_from_slice(bytes);
        } else {
            let mut hash = Box::new(Xxh3::new());
            hash.update(&self.raw);
            hash.update(bytes);
            self.hash = Some(hash);
            let room = KEPT_OF_OVERLONG.min(self.limit);
            self.raw.truncate(room);
            let more = bytes.len().min(room - self.raw.len());
            self.raw.extend_from_slice(&bytes[..more]);
            self.raw.shrink_to_fit();
        }
    }

    /// Line in which it begins.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether all of it is kept.
    pub(super) fn is_whole(&self) -> bool {
        self.hash.is_none()
    }

    /// Its bytes, of one that is too long its first ones.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Keeps no more than the beginning from now on.
    pub(super) fn limit(&mut self, limit: usize) {
        self.limit = limit;
        if self.raw.len() > limit && self.hash.is_none() {
            let mut hash = Box::new(Xxh3::new());
            hash.update(&self.raw);
            self.hash = Some(hash);
            self.raw.truncate(limit);
        }
    }

    /// The stretch, which ends in line `last`.
    pub(super) fn part(self, last: u64) -> Part {
        let line = Line {
            offset: self.begin,
            number: self.number,
            length: self.length,
            terminated: true,
            overlong: self.hash.map(|hash| hash.digest()),
        };
        Part { line, last, raw: self.raw }
    }
}
