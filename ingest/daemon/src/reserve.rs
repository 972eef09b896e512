//! Room for the committer on a disk that it shares with the spool.
//!
//! A spool that fills the disk can be emptied only by a commit, and a commit needs room itself. So the daemon holds a file of some size beside
//! the store's tables, and removes it when a commit finds the disk full. Until the room is there again, nothing new is taken.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

/// Name of the file, in the store's folder.
const NAME: &str = ".demi-reserve";

/// The room that is held.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    held: AtomicBool,
}

impl Reserve {
    /// Room of so many bytes in the store's folder, which is there; none with 0. What an earlier process held is held still.
    pub(super) fn new(store: &Path, bytes: u64) -> Reserve {
        let reserve = Reserve { path: store.join(NAME), bytes, held: AtomicBool::new(false) };
        let there = fs::metadata(&reserve.path).is_ok_and(|file| file.len() >= bytes);
        reserve.held.store(there || bytes == 0, Ordering::Relaxed);
        reserve
    }

    /// Whether the room is held: then a commit cannot fail for want of it.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Most bytes of lines of a commit. While the room is given up a commit must fit into it, with what is kept until a segment of the spool is free.
    pub(super) fn most_bytes(&self, otherwise: u64) -> u64 {
        if self.is_held() { otherwise } else { otherwise.min(self.bytes / 8) }
    }

    /// Takes the room, unless it is held.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn take(&self) -> io::Result<()> {
        if self.is_held() {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?;
        let taken = match fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            // A file system that cannot promise room: its length at least says what is wanted.
            Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(self.bytes),
            taken => taken.map_err(io::Error::from),
        };
        match taken {
            Ok(()) => self.held.store(true, Ordering::Relaxed),
            // Part of the room is no use to anybody.
            Err(_) => drop(fs::remove_file(&self.path)),
        }
        taken
    }

    /// Gives the room up for a commit; says whether there was any.
    pub(super) fn give_up(&self) -> bool {
        self.bytes > 0 && self.held.swap(false, Ordering::Relaxed) && fs::remove_file(&self.path).is_ok()
    }
}

/// Whether something failed because a disk or a quota is full.
pub(super) fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        // The table library keeps some causes as texts only.
        let text = || error.to_string();
        if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
            || text().contains("(os error 28)")
            || text().contains("(os error 122)")
        {
            return true;
        }
        at = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;
    use demi_store::StoreError;

    #[test]
    fn room_is_taken_given_up_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(dir.path(), 1 << 20);
        assert!(!reserve.is_held() && !reserve.give_up());
        reserve.take().unwrap();
        reserve.take().unwrap();
        assert!(reserve.is_held() && Reserve::new(dir.path(), 1 << 20).is_held());
        assert_eq!(fs::metadata(dir.path().join(NAME)).unwrap().len(), 1 << 20);
        assert!(!Reserve::new(dir.path(), 2 << 20).is_held(), "more is wanted");
        assert_eq!(reserve.most_bytes(u64::MAX), u64::MAX);
        assert!(reserve.give_up() && !reserve.give_up());
        assert!(!reserve.is_held() && !dir.path().join(NAME).exists());
        assert_eq!((reserve.most_bytes(u64::MAX), reserve.most_bytes(5)), (1 << 17, 5));
        assert!(reserve.take().is_ok() && reserve.is_held());
        // More than any disk has: nothing of it stays.
        let much = Reserve::new(dir.path(), 1 << 60);
        assert!(much.take().is_err());
        assert!(!much.is_held() && !dir.path().join(NAME).exists());
        let none = Reserve::new(dir.path(), 0);
        assert!(none.is_held() && none.take().is_ok() && !none.give_up());
    }

    #[test]
    fn a_full_disk_is_known_from_its_causes() {
        let path = PathBuf::from("x");
        let error = |code| StoreError::Io {
            path: path.clone(),
            action: "write this file",
            source: io::Error::from_raw_os_error(code),
        };
        assert!(is_full(&error(28)) && is_full(&error(122)) && !is_full(&error(5)));
        let text: Box<dyn std::error::Error> = io::Error::from_raw_os_error(28).to_string().into();
        assert!(is_full(text.as_ref()));
    }
}
