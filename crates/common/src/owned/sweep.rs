//! Folders in the making: where they stand, how they change places with finished ones, and how those are removed whose
//! process was killed.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::STAGE;

/// The file that the process holds a lock on as long as it works.
const LOCK: &str = "lock";
/// Where an older folder is put on systems that cannot exchange two folders at once.
const OLD: &str = "old";

/// A folder beside the target, in which the new one is made.
pub(super) struct Stage {
    dir: tempfile::TempDir,
    new: PathBuf,
    _lock: File,
}

impl Stage {
    /// Makes one in this folder.
    pub(super) fn make(parent: &Path) -> io::Result<Stage> {
        let dir = tempfile::Builder::new().prefix(STAGE).tempdir_in(parent)?;
        // The lock appears under its name when it is held, so that no sweep takes a new folder for an abandoned one.
        let unnamed = dir.path().join("lock.new");
        let lock = File::create(&unnamed)?;
        // Where the file system knows no locks, folders of killed processes stay.
        if lock.lock().is_ok() {
            std::fs::rename(unnamed, dir.path().join(LOCK))?;
        }
        let new = dir.path().join("new");
        Ok(Stage { dir, new, _lock: lock })
    }

    /// Removes it, and says whether that failed.
    pub(super) fn close(self) -> io::Result<()> {
        self.dir.close()
    }

    /// Where the new folder is made.
    pub(super) fn new_folder(&self) -> &Path {
        &self.new
    }

    /// Where temporary files go.
    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    /// Puts the new folder in the place of `out`; what was there is removed with the rest of the stage.
    pub(super) fn exchange(&self, out: &Path) -> io::Result<()> {
        if !out.exists() {
            return std::fs::rename(&self.new, out);
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            if renameat_with(CWD, &self.new, CWD, out, RenameFlags::EXCHANGE).is_ok() {
                return Ok(());
            }
        }
        let old = self.dir.path().join(OLD);
        std::fs::rename(out, &old)?;
        std::fs::rename(&self.new, out).inspect_err(|_| {
            // Better the old one than none.
            let _ = std::fs::rename(&old, out);
        })
    }
}

/// Removes what killed processes left in this folder. Nothing depends on it, so failures are passed over.
pub(super) fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let staged = entry.file_name().to_string_lossy().starts_with(STAGE)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        // Between two renames the older folder stands in the stage and nowhere else.
        if !staged || path.join(OLD).exists() {
            continue;
        }
        if let Ok(lock) = File::open(path.join(LOCK)) {
            match lock.try_lock() {
                Ok(()) => drop(std::fs::remove_dir_all(&path)),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            }
        }
    }
}
