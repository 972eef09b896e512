//! Digests of the stretches of a file, so that damage is refused and never answers.
//!
//! A stretch is checked when it is read, so that a question costs no more than what it reads. The digests are kept with what refers to the
//! file, or beside it.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What the text of digests begins with.
const KIND: &str = "xxh3-64";

/// The digests (xxh3-64) of a file's stretches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digests {
    stretch: u64,
    length: u64,
    sums: Vec<u64>,
}

impl Digests {
    /// The length of the file, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes with one digest; the last stretch may be shorter.
    #[must_use]
    pub fn stretch(&self) -> u64 {
        self.stretch
    }

    /// Whether what was read at `first`, where a stretch begins, is what was written. It ends with a stretch, or with the file.
    #[must_use]
    pub fn match_at(&self, first: u64, bytes: &[u8]) -> bool {
        let from = usize::try_from(first / self.stretch).unwrap_or(usize::MAX);
        let stretches = bytes.chunks(usize::try_from(self.stretch).unwrap_or(usize::MAX)).enumerate();
        stretches
            .into_iter()
            .all(|(at, bytes)| from.checked_add(at).and_then(|at| self.sums.get(at)) == Some(&xxh3_64(bytes)))
    }

    /// One digest of all of them, and of the length.
    #[must_use]
    pub fn digest(&self) -> u64 {
        xxh3_64(self.to_text().as_bytes())
    }

    /// As bytes for a file of their own: the digests, and at last one of them all; little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// From [`Digests::to_bytes`], for a file of that length. `None` where they are damaged or of another file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], stretch: u64, length: u64) -> Option<Digests> {
        let (sums, all) = bytes.split_at(bytes.len().checked_sub(8)?);
        let whole = bytes.len() as u64 == 8 * (length.div_ceil(stretch) + 1);
        if !whole || all != xxh3_64(sums).to_le_bytes() {
            return None;
        }
        let sums =
            sums.chunks_exact(8).filter_map(|sum| sum.first_chunk()).map(|sum| u64::from_le_bytes(*sum));
        Some(Digests { stretch, length, sums: sums.collect() })
    }

    /// As text: what they are, bytes of a stretch, bytes of the file, and the digests in hexadecimal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let sums: String = self.sums.iter().map(|sum| format!("{sum:016x}")).collect();
        format!("{KIND}/{}/{}/{sums}", self.stretch, self.length)
    }

    /// From [`Digests::to_text`]. `None` where the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digests> {
        let mut parts = text.split('/');
        let (kind, stretch, length, sums) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (stretch, length): (u64, u64) = (stretch.parse().ok()?, length.parse().ok()?);
        if kind != KIND || parts.next().is_some() || stretch == 0 || !sums.is_ascii() {
            return None;
        }
        if sums.len() as u64 != length.div_ceil(stretch).checked_mul(16)? {
            return None;
        }
        let digits = (0..sums.len()).step_by(16).map(|at| u64::from_str_radix(&sums[at..at + 16], 16));
        Some(Digests { stretch, length, sums: digits.collect::<Result<_, _>>().ok()? })
    }
}

/// Digests of a file that is being written.
pub struct Digester {
    stretch: usize,
    sums: Vec<u64>,
    length: u64,
    /// The stretch that is not full yet, and how much it has.
    open: Xxh3,
    filled: usize,
}

impl Digester {
    /// Of nothing, with so many bytes to a stretch.
    #[must_use]
    pub fn new(stretch: usize) -> Digester {
        Digester { stretch: stretch.max(1), sums: Vec::new(), length: 0, open: Xxh3::new(), filled: 0 }
    }

    /// Takes what is written.
    pub fn put(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at((self.stretch - self.filled).min(bytes.len()));
            self.open.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == self.stretch {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.sums.push(self.open.digest());
        self.open.reset();
        self.filled = 0;
    }

    /// The digests of all that was written.
    #[must_use]
    pub fn finish(mut self) -> Digests {
        if self.filled > 0 {
            self.close();
        }
        Digests { stretch: self.stretch as u64, length: self.length, sums: self.sums }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    fn bytes(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at * 31 % 251) as u8).collect()
    }

    #[test]
    fn what_is_written_in_any_pieces_is_checked_in_stretches() {
        for size in [0, 1, 99, 100, 101, 307] {
            let bytes = bytes(size);
            let mut summing = Digester::new(100);
            bytes.chunks(7).for_each(|piece| summing.put(piece));
            let sums = summing.finish();
            assert_eq!(sums.length(), size as u64);
            for first in (0..size).step_by(100) {
                let mut read = bytes[first..].to_vec();
                assert!(sums.match_at(first as u64, &read));
                read[0] ^= 1;
                assert!(!sums.match_at(first as u64, &read));
            }
            assert!(!sums.match_at(400, &[0]));
            assert_eq!(Digests::parse(&sums.to_text()), Some(sums.clone()));
            assert_eq!(Digests::from_bytes(&sums.to_bytes(), 100, size as u64), Some(sums.clone()));
            assert_eq!(Digests::from_bytes(&sums.to_bytes(), 100, size as u64 + 100), None);
        }
    }

    #[test]
    fn damaged_digests_are_none() {
        let mut summing = Digester::new(100);
        summing.put(&bytes(250));
        let sums = summing.finish();
        for at in 0..sums.to_bytes().len() {
            let mut damaged = sums.to_bytes();
            damaged[at] ^= 4;
            assert_eq!(Digests::from_bytes(&damaged, 100, 250), None, "{at}");
        }
        for text in [
            "",
            "xxh3-64/0/0/",
            "xxh3-64/100/250/00",
            "other/100/0/",
            "xxh3-64/1/1/é0000000000000",
            "xxh3-64/1/0//",
        ] {
            assert_eq!(Digests::parse(text), None, "{text}");
        }
        assert!(Digests::parse("xxh3-64/100/0/").is_some());
    }
}
