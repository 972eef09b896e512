//! The ids of messages that a base has, to be found on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use demi_common::sealed::SealedWriter;
use parquet::file::reader::Length;
use rustc_hash::FxHashMap;

use crate::error::LineageError;
use crate::read::{IdHash, beside};

/// Ids of what was sent: hashes in order, 12 bytes each.
pub(super) const SENT: &str = "sent.bin";
/// Ids of what was received with no send.
pub(super) const RECEIVED: &str = "received.bin";
/// Hashes read at a time.
const BLOCK: usize = 1024;

/// Writes the hashes to a file of the folder.
pub(crate) fn write(folder: &Path, name: &str, mut ids: Vec<IdHash>) -> Result<(), LineageError> {
    ids.sort_unstable();
    let path = folder.join(name);
    let file = SealedWriter::new(File::create(&path).map_err(LineageError::io(&path))?);
    let mut out = BufWriter::with_capacity(1 << 17, file);
    for id in ids {
        out.write_all(&id.bytes()).map_err(LineageError::io(&path))?;
    }
    let file = out.into_inner().map_err(|e| LineageError::io(&path)(e.into_error()))?;
    file.finish(&path).map_err(LineageError::io(&path))
}

/// Which of these are in the folder's file, by their place in `wanted`.
///
/// Both are gone through in order, and blocks of the file in which nothing is looked for are left out.
pub(crate) fn known(folder: &Path, name: &str, wanted: &[IdHash]) -> Result<Vec<bool>, LineageError> {
    let path = folder.join(name);
    let file = beside(&path)?.open().map_err(LineageError::io(&path))?;
    let count = (file.len() / IdHash::SIZE as u64) as usize;
    let mut sorted: Vec<usize> = (0..wanted.len()).collect();
    sorted.sort_unstable_by_key(|&i| wanted[i]);
    let mut known = vec![false; wanted.len()];
    let read = |from: usize, to: usize| -> Result<Vec<IdHash>, LineageError> {
        let (start, length) = ((from * IdHash::SIZE) as u64, (to - from) * IdHash::SIZE);
        let bytes = file.read(start, length).map_err(LineageError::io(&path))?;
        Ok(bytes.chunks_exact(IdHash::SIZE).map(IdHash::from_bytes).collect())
    };
    let mut block = (usize::MAX, Vec::new());
    // The same blocks are asked about again and again.
    let mut firsts: FxHashMap<usize, Option<IdHash>> = FxHashMap::default();
    for i in sorted {
        let id = wanted[i];
        // The last hash that is no larger stands in the block found here.
        let (mut low, mut high) = (0, count.div_ceil(BLOCK));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let first = match firsts.get(&middle) {
                Some(first) => *first,
                None => {
                    let first = read(middle * BLOCK, middle * BLOCK + 1)?.first().copied();
                    firsts.insert(middle, first);
                    first
                }
            };
            if first <= Some(id) { low = middle } else { high = middle }
        }
        if low < high && block.0 != low {
            block = (low, read(low * BLOCK, count.min((low + 1) * BLOCK))?);
        }
        known[i] = block.1.binary_search(&id).is_ok();
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_there_is_found(there in proptest::collection::btree_set(0..9000_u32, 0..5000), asked in proptest::collection::vec(0..9000_u32, 0..60)) {
            let id = |n: &u32| IdHash::of(&n.to_string());
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), SENT, there.iter().map(id).collect()).unwrap();
            let wanted: Vec<IdHash> = asked.iter().map(id).collect();
            let expected: Vec<bool> = asked.iter().map(|n| there.contains(n)).collect();
            prop_assert_eq!(known(dir.path(), SENT, &wanted).unwrap(), expected);
        }
    }
}
