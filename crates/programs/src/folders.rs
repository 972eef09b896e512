//! Folders in which processes work, and their end: none is left, however this process ends.
//!
//! All folders of a run stand in one. When the last process is gone, it is removed. A shell waits for the end of a pipe and removes it where this process is
//! killed before. What is left even so, because both were killed, is removed by the next run: nobody holds its lock then.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

/// How the names of such folders begin.
const PREFIX: &str = "demi-node-";
/// The file in a run's folder that the run holds a lock of.
const LOCK: &str = "lock";
const CARRIER_NAME: &str = "carrier";

/// A program that does nothing, into whose process the shim loads programs that are linked statically; empty where it could not be compiled.
static CARRIER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/carrier"));

/// The folder of all processes of this run.
pub(crate) struct RunFolder {
    folder: PathBuf,
    _lock: File,
    remover: Option<(Child, ChildStdin)>,
}

static RUN: Mutex<Weak<RunFolder>> = Mutex::new(Weak::new());

impl RunFolder {
    /// That of this run, made where there is none.
    pub(crate) fn of_this_run() -> io::Result<Arc<RunFolder>> {
        let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = run.upgrade() {
            return Ok(there);
        }
        let made = Arc::new(RunFolder::new(&std::env::temp_dir())?);
        *run = Arc::downgrade(&made);
        Ok(made)
    }

    fn new(parent: &Path) -> io::Result<RunFolder> {
        sweep(parent);
        // It gets its name once its lock is held: what has the name and no lock is nobody's.
        let made = tempfile::Builder::new().prefix(".demi-").tempdir_in(parent)?;
        let lock = File::create(made.path().join(LOCK))?;
        lock.lock()?;
        let name =
            made.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = parent.join(name.replacen(".demi-", PREFIX, 1));
        std::fs::rename(made.path(), &folder)?;
        let _ = made.keep();
        let remover = remover(&folder);
        let carrier = File::create(folder.join(CARRIER_NAME))?;
        carrier.set_permissions(std::fs::Permissions::from_mode(0o755))?;
        (&carrier).write_all(CARRIER)?;
        Ok(RunFolder { folder, _lock: lock, remover })
    }

    /// The program into whose process those are loaded that load nothing.
    pub(crate) fn carrier(&self) -> PathBuf {
        self.folder.join(CARRIER_NAME)
    }

    /// A folder for one process.
    pub(crate) fn one(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix("p").tempdir_in(&self.folder)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some((mut child, input)) = self.remover.take() {
            drop(input);
            let _ = child.wait();
        }
    }
}

/// Removes the folder once its input ends, which is when this process does. Nothing where there is no shell.
fn remover(folder: &Path) -> Option<(Child, ChildStdin)> {
    // Processes of the program end when this one does; one that still writes then makes the first try fail.
    let script = "cat >/dev/null; rm -rf -- \"$1\" || { sleep 1; rm -rf -- \"$1\"; }";
    let mut child = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // What a terminal sends to this process is not meant for it.
        .process_group(0)
        .spawn()
        .ok()?;
    let input = child.stdin.take()?;
    Some((child, input))
}

/// Removes folders of runs that are gone.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        match lock.try_lock() {
            Ok(()) => drop(std::fs::remove_dir_all(entry.path())),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_runs_that_are_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let alive = RunFolder::new(parent.path()).unwrap();
        let left = parent.path().join("demi-node-left");
        std::fs::create_dir_all(left.join("p1/work")).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let foreign = parent.path().join("demi-node-foreign");
        std::fs::create_dir(&foreign).unwrap();
        sweep(parent.path());
        assert!(!left.exists() && foreign.exists() && alive.folder.exists());
        let folder = alive.folder.clone();
        drop(alive);
        assert!(!folder.exists());
    }
}
