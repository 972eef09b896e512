//! Digests of the index's files, so that damage is refused and never answers: beside each stands one of the same name that ends in `.sum`.

use std::path::{Path, PathBuf};

use demi_common::sums::{Digester, Digests};

use super::header::BLOCK;
use crate::error::LineageError;

/// Bytes with one digest. Blocks of numbers of any size begin and end with a stretch, or with the file.
const STRETCH: usize = BLOCK as usize;

/// The digests of a file.
pub(crate) struct Seal(Digests);

/// Digests of a file that is being written.
pub(crate) struct IndexDigests(Digester);

impl Default for IndexDigests {
    fn default() -> Self {
        IndexDigests(Digester::new(STRETCH))
    }
}

fn path_of(file: &Path) -> PathBuf {
    file.with_extension("sum")
}

impl IndexDigests {
    /// Takes what is written.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.put(bytes);
    }

    /// Writes the digests of `file`, which is whole.
    pub(crate) fn finish(self, file: &Path) -> Result<(), LineageError> {
        let path = path_of(file);
        std::fs::write(&path, self.0.finish().to_bytes()).map_err(LineageError::io(&path))
    }
}

impl Seal {
    /// Reads the digests of a file of so many bytes.
    pub(crate) fn open(file: &Path, size: u64) -> Result<Seal, LineageError> {
        let path = path_of(file);
        let bytes = demi_common::regular::read(&path).map_err(LineageError::io(&path))?;
        Digests::from_bytes(&bytes, STRETCH as u64, size).map(Seal).ok_or_else(|| damaged(&path))
    }

    /// Checks what was read at `first`, where a stretch begins. It ends with a stretch, or with the file.
    pub(crate) fn check(&self, file: &Path, first: u64, bytes: &[u8]) -> Result<(), LineageError> {
        if self.0.match_at(first, bytes) { Ok(()) } else { Err(damaged(file)) }
    }
}

/// The error about a file that is not as it was written.
pub(crate) fn damaged(path: &Path) -> LineageError {
    let reason = demi_common::sealed::DAMAGED.into();
    LineageError::Index { path: path.to_owned(), reason }
}
