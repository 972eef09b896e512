//! Flat files of numbers, read a block at a time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::header::BLOCK;
use super::seal::Seal;
use crate::error::LineageError;

/// Blocks kept in memory at most, for each file: 64 MiB of 32-bit numbers.
const KEPT: usize = 4096;

/// A number of a fixed size.
pub(crate) trait Number: Copy {
    /// Its size in the file, in bytes.
    const SIZE: usize;
    /// From its bytes.
    fn read(bytes: &[u8]) -> Self;
}

impl Number for u8 {
    const SIZE: usize = 1;
    fn read(bytes: &[u8]) -> Self {
        bytes.first().copied().unwrap_or_default()
    }
}

impl Number for u32 {
    const SIZE: usize = 4;
    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
    }
}

impl Number for u64 {
    const SIZE: usize = 8;
    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
    }
}

/// A block that was read last, and the others.
struct Cache<T> {
    file: File,
    last: (u32, Rc<[T]>),
    blocks: FxHashMap<u32, Rc<[T]>>,
}

/// A file of numbers.
pub(crate) struct Pages<T> {
    path: PathBuf,
    len: u32,
    /// Blocks kept in memory at most.
    kept: usize,
    cache: RefCell<Cache<T>>,
    seal: Option<Seal>,
}

impl<T: Number> Pages<T> {
    /// Opens a file that must hold `len` numbers; one that is `sealed` has a file of digests beside it.
    pub(crate) fn open(path: &Path, len: u32, sealed: bool) -> Result<Pages<T>, LineageError> {
        let file = demi_common::regular::open(path).map_err(LineageError::io(path))?;
        let size = file.metadata().map_err(LineageError::io(path))?.len();
        if size != u64::from(len) * T::SIZE as u64 {
            let reason = format!("{size} bytes, where {} were to be", u64::from(len) * T::SIZE as u64);
            return Err(LineageError::Index { path: path.to_owned(), reason });
        }
        let cache = Cache { file, last: (u32::MAX, Rc::from([])), blocks: FxHashMap::default() };
        let seal = if sealed { Some(Seal::open(path, size)?) } else { None };
        Ok(Pages { path: path.to_owned(), len, kept: KEPT, cache: RefCell::new(cache), seal })
    }

    /// The number at `i`.
    pub(crate) fn get(&self, i: u32) -> Result<T, LineageError> {
        let block = i / BLOCK;
        {
            let cache = self.cache.borrow();
            if cache.last.0 == block
                && let Some(&value) = cache.last.1.get((i % BLOCK) as usize)
            {
                return Ok(value);
            }
        }
        self.block(block)?.get((i % BLOCK) as usize).copied().ok_or_else(|| self.beyond(i))
    }

    /// The block of that number: up to [`BLOCK`] numbers.
    pub(crate) fn block(&self, block: u32) -> Result<Rc<[T]>, LineageError> {
        let mut cache = self.cache.borrow_mut();
        if cache.last.0 == block {
            return Ok(cache.last.1.clone());
        }
        if let Some(found) = cache.blocks.get(&block) {
            let found = found.clone();
            cache.last = (block, found.clone());
            return Ok(found);
        }
        let first = u64::from(block) * u64::from(BLOCK);
        let count = u64::from(self.len).saturating_sub(first).min(u64::from(BLOCK)) as usize;
        if count == 0 {
            return Err(self.beyond(first as u32));
        }
        let mut bytes = vec![0_u8; count * T::SIZE];
        cache.file.seek(SeekFrom::Start(first * T::SIZE as u64)).map_err(LineageError::io(&self.path))?;
        cache.file.read_exact(&mut bytes).map_err(LineageError::io(&self.path))?;
        if let Some(seal) = &self.seal {
            seal.check(&self.path, first * T::SIZE as u64, &bytes)?;
        }
        let values: Rc<[T]> = bytes.chunks_exact(T::SIZE).map(T::read).collect();
        if cache.blocks.len() >= self.kept {
            cache.blocks.clear();
        }
        cache.blocks.insert(block, values.clone());
        cache.last = (block, values.clone());
        Ok(values)
    }

    /// An error about what stands in the file.
    pub(crate) fn broken(&self, reason: String) -> LineageError {
        LineageError::Index { path: self.path.clone(), reason }
    }

    fn beyond(&self, i: u32) -> LineageError {
        self.broken(format!("number {i} is asked for, of {}", self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_however_few_blocks_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("numbers.bin");
        let count = 5 * BLOCK + 77;
        let number = |i: u32| i.wrapping_mul(2_654_435_761);
        let bytes: Vec<u8> = (0..count).flat_map(|i| number(i).to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        for kept in [1, 2, 3, 100] {
            let pages = Pages { kept, ..Pages::<u32>::open(&path, count, false).unwrap() };
            // Steps that come back to blocks which were let go.
            let mut at = 0;
            for _ in 0..5000 {
                assert_eq!(pages.get(at).unwrap(), number(at));
                assert!(pages.cache.borrow().blocks.len() <= kept.max(1));
                at = (at + 7919) % count;
            }
            assert!(pages.get(count).is_err());
        }
    }
}
