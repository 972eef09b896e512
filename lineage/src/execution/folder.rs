//! The folder of an execution: it appears complete or not at all.

use std::path::{Path, PathBuf};

use super::names::BASE_FOLDER;
use super::summary::load_summary;
use crate::error::LineageError;
use crate::index::INDEX_FOLDER;

/// A folder that takes the place of `out` when it is complete, and never before.
pub(crate) struct Folder {
    out: PathBuf,
    new: tempfile::TempDir,
}

impl Folder {
    /// Prepares to write `out`: absent, empty, or an execution written before.
    pub(crate) fn begin(out: &Path) -> Result<Folder, LineageError> {
        if !replaceable(out)? {
            return Err(LineageError::Foreign(out.to_owned()));
        }
        let parent = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(LineageError::io(parent))?;
        let new = tempfile::Builder::new().prefix(".demi-build-").tempdir_in(parent);
        Ok(Folder { out: out.to_owned(), new: new.map_err(LineageError::io(parent))? })
    }

    /// Where to write a file of the execution.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.new.path().join("execution").join(name)
    }

    /// The folder of the order index.
    pub(crate) fn index(&self) -> PathBuf {
        self.path(INDEX_FOLDER)
    }

    /// The folder of what an execution is grown from.
    pub(crate) fn base(&self) -> PathBuf {
        self.path(BASE_FOLDER)
    }

    /// Where temporary files go.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.new.path().join("scratch")
    }

    /// Makes the folders.
    pub(crate) fn make(&self) -> Result<(), LineageError> {
        for path in [self.path(""), self.scratch(), self.index()] {
            std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
        }
        Ok(())
    }

    /// Puts the complete folder in its place.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        let out = &self.out;
        if out.exists() {
            let old = self.new.path().join("old");
            std::fs::rename(out, old).map_err(LineageError::io(out))?;
        }
        std::fs::rename(self.path(""), out).map_err(LineageError::io(out))
    }
}

fn replaceable(out: &Path) -> Result<bool, LineageError> {
    if !out.exists() {
        return Ok(true);
    }
    if !out.is_dir() {
        return Ok(false);
    }
    let mut entries = std::fs::read_dir(out).map_err(LineageError::io(out))?;
    Ok(entries.next().is_none() || load_summary(out).is_ok())
}
