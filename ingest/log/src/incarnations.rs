//! Counting incarnations across processes.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::LogError;

/// A file with the largest number of an incarnation that was ever begun.
pub(crate) struct Incarnations {
    path: PathBuf,
    first: u32,
    reached: Mutex<u32>,
}

impl Incarnations {
    /// Reads the file, if it is there, and notes that a new process begins.
    pub(crate) fn open(path: PathBuf) -> Result<Incarnations, LogError> {
        let first = match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse::<u32>() {
                Ok(last) => last.saturating_add(1),
                Err(_) => return Err(LogError::NotANumber { path, text: text.trim().to_owned() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(source) => return Err(LogError::Incarnations { path, source }),
        };
        if let Err(source) = write(&path, first) {
            return Err(LogError::Incarnations { path, source });
        }
        Ok(Incarnations { path, first, reached: Mutex::new(first) })
    }

    /// The number of the incarnations that begin with this process.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Notes that an incarnation of that number began. Rare, so it is written at once, by the thread that restarts the actor.
    pub(crate) fn reached(&self, number: u32) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        // What could not be written is written with the next one.
        if number > *reached && write(&self.path, number).is_ok() {
            *reached = number;
        }
    }
}

/// Replaces the file as a whole, so that a power cut leaves the old number or the new one, and after the return the new one.
fn write(path: &Path, number: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = fs::File::create(&new)?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    fs::rename(new, path)?;
    sync_folder(path)
}

/// Puts the names in a file's folder on the disk: a rename that is not there is one that did not happen.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

/// Other systems put the names on the disk themselves.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
