//! Digests of the index's files, so that damage is refused and never answers.
//!
//! Beside each file stands one of the same name that ends in `.sum`: a digest (xxh3-64) of each stretch of [`STRETCH`]
//! bytes, and at last one of all these digests. A stretch is checked when it is read, so that a question costs no more
//! than what it reads.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::header::BLOCK;
use crate::error::LineageError;

/// Bytes with one digest. Blocks of numbers of any size begin and end with a stretch, or with the file.
const STRETCH: usize = BLOCK as usize;

/// The digests of a file.
pub(crate) struct Seal {
    sums: Vec<u64>,
}

/// Digests of a file that is being written.
#[derive(Default)]
pub(crate) struct Sealing {
    sums: Vec<u8>,
    /// The stretch that is not full yet.
    open: Vec<u8>,
}

fn path_of(file: &Path) -> PathBuf {
    file.with_extension("sum")
}

impl Sealing {
    /// Takes what is written.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = STRETCH - self.open.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.extend_from_slice(now);
            bytes = later;
            if self.open.len() == STRETCH {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.sums.extend_from_slice(&xxh3_64(&self.open).to_le_bytes());
        self.open.clear();
    }

    /// Writes the digests of `file`, which is whole.
    pub(crate) fn finish(mut self, file: &Path) -> Result<(), LineageError> {
        if !self.open.is_empty() {
            self.close();
        }
        let all = xxh3_64(&self.sums);
        self.sums.extend_from_slice(&all.to_le_bytes());
        let path = path_of(file);
        std::fs::write(&path, &self.sums).map_err(LineageError::io(&path))
    }
}

impl Seal {
    /// Reads the digests of a file of so many bytes.
    pub(crate) fn open(file: &Path, size: u64) -> Result<Seal, LineageError> {
        let path = path_of(file);
        let bytes = std::fs::read(&path).map_err(LineageError::io(&path))?;
        let sums: Vec<u64> =
            bytes.chunks_exact(8).filter_map(|c| c.first_chunk()).map(|c| u64::from_le_bytes(*c)).collect();
        let stretches = size.div_ceil(STRETCH as u64);
        match sums.split_last() {
            Some((all, sums))
                if bytes.len() as u64 == 8 * (stretches + 1)
                    && *all == xxh3_64(&bytes[..bytes.len() - 8]) =>
            {
                Ok(Seal { sums: sums.to_vec() })
            }
            _ => Err(damaged(&path)),
        }
    }

    /// Checks what was read at `first`, where a stretch begins. It ends with a stretch, or with the file.
    pub(crate) fn check(&self, file: &Path, first: u64, bytes: &[u8]) -> Result<(), LineageError> {
        let from = (first / STRETCH as u64) as usize;
        let whole = bytes
            .chunks(STRETCH)
            .enumerate()
            .all(|(i, stretch)| self.sums.get(from + i) == Some(&xxh3_64(stretch)));
        if whole { Ok(()) } else { Err(damaged(file)) }
    }
}

/// The error about a file that is not as it was written.
pub(crate) fn damaged(path: &Path) -> LineageError {
    let reason = "its content is not what was written: the file is damaged".into();
    LineageError::Index { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    #[test]
    fn what_is_written_in_any_pieces_is_checked_in_stretches() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.bin");
        for size in [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH + 7] {
            let bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
            let mut sealing = Sealing::default();
            bytes.chunks(1000).for_each(|piece| sealing.put(piece));
            sealing.finish(&file).unwrap();
            let seal = Seal::open(&file, size as u64).unwrap();
            for first in (0..size).step_by(STRETCH) {
                let mut read = bytes[first..].to_vec();
                seal.check(&file, first as u64, &read).unwrap();
                read[0] ^= 1;
                assert!(seal.check(&file, first as u64, &read).is_err());
            }
            assert!(Seal::open(&file, (size + STRETCH) as u64).is_err());
            let sums = folder.path().join("a.sum");
            let mut damaged = std::fs::read(&sums).unwrap();
            damaged[0] ^= 128;
            std::fs::write(&sums, damaged).unwrap();
            assert!(Seal::open(&file, size as u64).is_err());
        }
    }
}
