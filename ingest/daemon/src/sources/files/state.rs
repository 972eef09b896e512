//! What is known of a followed file: how far it was read, and how to know it again under any name.
//!
//! A file is known by its content, never by its inode alone: by a fingerprint of its first bytes that were read, and
//! one of the last bytes before the place reached. Inodes are used again, names change, copies are made and packed;
//! none of that changes these bytes.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use demi_formats::read::names;

/// Most bytes of the fingerprint of the beginning.
pub(super) const HEAD: usize = 1024;
/// Most bytes of the fingerprint of the place reached.
pub(super) const TAIL: usize = 256;

/// The position of a file, as it is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Name under which it was last seen, as text.
    pub path: String,
    /// Its bytes, where they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_path: Option<Vec<u8>>,
    pub device: u64,
    pub inode: u64,
    /// Bytes read and durable; of a packed file unpacked.
    pub offset: u64,
    /// Number of the next line, from 1.
    pub line: u64,
    /// xxh3-64 of the first min([`HEAD`], offset) bytes.
    pub head: u64,
    /// xxh3-64 of the last min([`TAIL`], offset) bytes before `offset`.
    pub tail: u64,
    /// Whether what follows belongs to a line that was too long.
    #[serde(default)]
    pub skipping: bool,
    /// Whether it is packed (gzip or zstd).
    #[serde(default)]
    pub packed: bool,
    /// For packed files that were read to the end: their size then.
    #[serde(default)]
    pub done_size: Option<u64>,
    /// Seconds since 1970 when it was last seen.
    #[serde(default)]
    pub seen: u64,
    /// Whether it was known as a copy of another file when it was found.
    #[serde(default)]
    pub copied: bool,
    /// What the mapping remembers of this file, where lines are mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Value>,
}

impl State {
    /// A file of which nothing was read.
    pub(super) fn new(path: &Path, meta: &Metadata, packed: bool) -> Self {
        let mut state = State {
            path: String::new(),
            raw_path: None,
            device: meta.dev(),
            inode: meta.ino(),
            offset: 0,
            line: 1,
            head: xxh3_64(b""),
            tail: xxh3_64(b""),
            skipping: false,
            packed,
            done_size: None,
            seen: 0,
            copied: false,
            mapping: None,
        };
        state.rename(path);
        state
    }

    /// The file has another name now.
    pub(super) fn rename(&mut self, path: &Path) {
        self.path = names::text(path);
        self.raw_path = path.to_str().is_none().then(|| path.as_os_str().as_bytes().to_vec());
    }

    /// Where the file was last seen.
    pub(super) fn place(&self) -> &Path {
        let raw = self.raw_path.as_deref().unwrap_or(self.path.as_bytes());
        Path::new(OsStr::from_bytes(raw))
    }

    /// Goes on where `other` is, in a file of the same content.
    pub(super) fn take_over(&mut self, other: State) {
        let State { offset, line, head, tail, skipping, mapping, .. } = other;
        *self = State { offset, line, head, tail, skipping, mapping, ..self.clone() };
    }

    /// Whether the file system says it is this file; inodes are used again, so this proves nothing by itself.
    pub(super) fn is_at(&self, meta: &Metadata) -> bool {
        (self.device, self.inode) == (meta.dev(), meta.ino())
    }

    pub(super) fn head_len(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(HEAD).min(HEAD)
    }

    pub(super) fn tail_len(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(TAIL).min(TAIL)
    }

    /// Whether `start`, the beginning of some stream, begins as this file does. Without anything read nothing is
    /// known, and everything begins so.
    pub(super) fn begins(&self, start: &[u8]) -> bool {
        start.get(..self.head_len()).is_some_and(|head| xxh3_64(head) == self.head)
    }

    /// Whether the plain file holds what was read, up to the place reached.
    pub(super) fn continues(&self, file: &File) -> io::Result<bool> {
        let len = file.metadata()?.len();
        if len < self.offset {
            return Ok(false);
        }
        let mut buffer = [0; HEAD];
        let head = &mut buffer[..self.head_len()];
        if !read_exact(file, head, 0)? || xxh3_64(head) != self.head {
            return Ok(false);
        }
        let tail = &mut buffer[..self.tail_len()];
        Ok(read_exact(file, tail, self.offset - tail.len() as u64)? && xxh3_64(tail) == self.tail)
    }

    /// The state at a place further on, of a file that has nothing but NULs before it.
    pub(super) fn behind_nuls(&self, file: &File, to: u64) -> io::Result<Self> {
        let mut next = State { offset: to, ..self.clone() };
        let mut buffer = [0; HEAD];
        let head = &mut buffer[..next.head_len()];
        file.read_exact_at(head, 0)?;
        next.head = xxh3_64(head);
        let tail = &mut buffer[..next.tail_len()];
        file.read_exact_at(tail, to - tail.len() as u64)?;
        next.tail = xxh3_64(tail);
        Ok(next)
    }

    /// The state after `bytes` more, which follow what was read; `before` are the bytes before them, as far as they
    /// are at hand (all of them where there are less than [`HEAD`]).
    pub(super) fn after(&self, before: &[u8], bytes: &[u8], lines: u64) -> Self {
        let mut next = self.clone();
        next.offset += bytes.len() as u64;
        next.line += lines;
        if self.offset < HEAD as u64 {
            let mut head = before[before.len() - self.head_len()..].to_vec();
            head.extend_from_slice(&bytes[..bytes.len().min(HEAD - head.len())]);
            next.head = xxh3_64(&head);
        }
        if bytes.len() >= TAIL {
            next.tail = xxh3_64(&bytes[bytes.len() - TAIL..]);
        } else {
            let mut tail = before.to_vec();
            tail.extend_from_slice(bytes);
            next.tail = xxh3_64(&tail[tail.len() - next.tail_len()..]);
        }
        next
    }
}

/// Fills `into` from `offset`; says whether there were so many bytes.
fn read_exact(file: &File, into: &mut [u8], offset: u64) -> io::Result<bool> {
    match file.read_exact_at(into, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes before `offset`, as many as [`State::after`] wants.
pub(super) fn bytes_before(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let most = HEAD.max(TAIL) as u64;
    let mut bytes = vec![0; usize::try_from(offset.min(most)).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset - offset.min(most))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_file_is_known_again_wherever_it_was_cut(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 1..6), other: u8, at: usize,
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut state = State::new(Path::new("p"), &file.metadata().unwrap(), false);
            for piece in &pieces {
                let before = bytes_before(&file, state.offset).unwrap();
                file.write_all(piece).unwrap();
                state = state.after(&before, piece, 1);
                prop_assert!(state.continues(&file).unwrap());
            }
            let all = pieces.concat();
            prop_assert_eq!(state.offset as usize, all.len());
            prop_assert!(state.begins(&all));
            prop_assert_eq!(state.head, xxh3_64(&all[..all.len().min(HEAD)]));
            prop_assert_eq!(state.tail, xxh3_64(&all[all.len().saturating_sub(TAIL)..]));
            if !all.is_empty() {
                // Another byte in what the fingerprints cover is another file; so is a shorter one.
                let at = at % all.len();
                if (at < HEAD || at + TAIL >= all.len()) && all[at] != other {
                    file.write_all_at(&[other], at as u64).unwrap();
                    prop_assert!(!state.continues(&file).unwrap());
                }
                file.set_len(all.len() as u64 - 1).unwrap();
                prop_assert!(!state.continues(&file).unwrap());
            }
        }
    }
}
