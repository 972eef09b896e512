//! A digest in each commit of a table, and beside each checkpoint, so that a changed byte in the table's log is refused.
//!
//! A commit's digest stands at the beginning of its `commitInfo`, where the format leaves writers free to say what they like. It is that of the
//! commit without it.

use std::path::{Path, PathBuf};

use demi_common::sealed::{DAMAGED, STRETCH, SealedFile};
use demi_common::sums::{Digester, Digests};
use xxhash_rust::xxh3::Xxh3;

/// What begins the line in which the digest stands.
const INFO: &[u8] = b"{\"commitInfo\":{";
/// What begins the digest, right behind.
const SUM: &[u8] = b"\"demiSum\":\"";
/// Hexadecimal digits of a digest, and what ends it.
const DIGITS: usize = 16;
const END: &[u8] = b"\",";

/// A commit with its digest. One without `commitInfo`, or with nothing in it, is left as it is.
pub(super) fn sealed(commit: &[u8]) -> Vec<u8> {
    let Some(at) = place(commit).filter(|at| commit.get(*at) == Some(&b'"')) else { return commit.to_vec() };
    let (before, after) = commit.split_at(at);
    [before, SUM, format!("{:016x}", digest(before, after)).as_bytes(), END, after].concat()
}

/// Whether a commit is as it was written. One of an earlier version, or of another program, has no digest, and is taken as it is.
pub(super) fn is_intact(commit: &[u8]) -> bool {
    let Some(at) = place(commit) else { return true };
    let (before, rest) = commit.split_at(at);
    let Some(rest) = rest.strip_prefix(SUM) else { return true };
    let Some((digits, after)) = rest.split_at_checked(DIGITS) else { return false };
    let Some(after) = after.strip_prefix(END) else { return false };
    format!("{:016x}", digest(before, after)).as_bytes() == digits
}

/// Where the digest stands or would stand.
fn place(commit: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in commit.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(INFO) {
            return Some(at + INFO.len());
        }
        at += line.len();
    }
    None
}

fn digest(before: &[u8], after: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(before);
    hasher.update(after);
    hasher.digest()
}

/// Where the digests of a checkpoint stand; nothing for other files. Readers of the log pass over names that begin with an underscore.
pub(super) fn beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let is_checkpoint = name.contains(".checkpoint.") && name.ends_with(".parquet");
    is_checkpoint.then(|| path.with_file_name(format!("_{name}.sum")))
}

/// The digests of a checkpoint, as they are kept.
pub(super) fn of_checkpoint<'a>(content: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut summing = Digester::new(STRETCH);
    content.for_each(|bytes| summing.put(bytes));
    summing.finish().to_bytes()
}

/// Whether a checkpoint is as it was written. One without digests is taken as it is.
///
/// # Errors
/// When it cannot be read.
pub(super) fn check_checkpoint(path: &Path) -> std::io::Result<()> {
    let Some(sums) = beside(path) else { return Ok(()) };
    let sums = match std::fs::read(sums) {
        Ok(sums) => sums,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = std::fs::metadata(path)?.len();
    let sums = Digests::from_bytes(&sums, STRETCH as u64, length);
    let sums = sums.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidData, DAMAGED))?;
    SealedFile::new(path.to_owned(), Some(sums)).verify()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;
    use crate::Store;

    const COMMIT: &[u8] =
        b"{\"add\":{\"path\":\"a\"}}\n{\"commitInfo\":{\"timestamp\":1}}\n{\"add\":{\"path\":\"b\"}}";

    #[test]
    fn each_bit_of_a_commit_counts() {
        let commit = sealed(COMMIT);
        assert!(is_intact(&commit) && commit.len() == COMMIT.len() + SUM.len() + DIGITS + END.len());
        serde_json::from_slice::<serde_json::Value>(commit.split(|b| *b == b'\n').nth(1).unwrap()).unwrap();
        let info = COMMIT.iter().position(|b| *b == b'\n').unwrap_or_default() + 1;
        // Where the name of the digest is damaged, or the line does not begin there any more, the commit counts as one without; the rest of it is intact.
        let name = info - 1..info + INFO.len() + SUM.len();
        for bit in 0..commit.len() * 8 {
            let mut changed = commit.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(is_intact(&changed), name.contains(&(bit / 8)), "{bit}");
        }
    }

    #[test]
    fn a_changed_commit_or_checkpoint_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let log = store.dir().join("events/_delta_log");
        let checkpoint = log.join("00000000000000000000.checkpoint.parquet");
        let refused = |path: &Path, expected: &str| {
            let whole = std::fs::read(path).unwrap();
            for at in [whole.len() / 5, whole.len() / 2, whole.len() - 20] {
                let mut changed = whole.clone();
                changed[at] ^= 2;
                std::fs::write(path, changed).unwrap();
                let error = Store::open(dir.path()).unwrap_err();
                let cause = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
                assert!(format!("{error} {cause}").contains(expected), "{at}: {error} {cause}");
            }
            std::fs::write(path, whole).unwrap();
            Store::open(dir.path()).unwrap();
        };
        refused(&log.join("00000000000000000000.json"), "");
        let writer = store.events_writer().unwrap();
        writer
            .runtime()
            .block_on(deltalake_core::checkpoints::create_checkpoint(&writer.table, None))
            .unwrap();
        assert!(checkpoint.is_file() && beside(&checkpoint).unwrap().is_file());
        refused(&checkpoint, DAMAGED);
    }

    #[test]
    fn commits_without_a_place_stay_as_they_are() {
        for commit in [&b""[..], b"{\"add\":{}}", b"{\"commitInfo\":{}}"] {
            assert_eq!(sealed(commit), commit);
            assert!(is_intact(commit));
        }
    }
}
