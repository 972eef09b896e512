//! The folder of an execution: it appears complete or not at all.

use std::path::{Path, PathBuf};

use demi_common::sealed::{SealedFile, sums_of};
use demi_common::{Kind, Replacement};

use super::names::BASE_FOLDER;
use crate::error::LineageError;
use crate::index::INDEX_FOLDER;

/// A folder that takes the place of an older execution when it is complete, and never before.
pub(crate) struct Folder(Replacement);

impl Folder {
    /// Prepares to write `out`: absent, empty, or an execution written before and nothing else. `inputs` are read.
    pub(crate) fn begin(out: &Path, inputs: &[SealedFile]) -> Result<Folder, LineageError> {
        let inputs: Vec<&Path> = inputs.iter().map(SealedFile::path).collect();
        Ok(Folder(Replacement::begin(out, Kind::Execution, &inputs)?))
    }

    /// Where to write a file of the execution.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
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
        self.0.scratch()
    }

    /// Makes the folders.
    pub(crate) fn make(&self) -> Result<(), LineageError> {
        for path in [self.scratch(), self.index()] {
            std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
        }
        Ok(())
    }

    /// Puts the complete folder in its place.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        Ok(self.0.finish()?)
    }
}

/// A file and its digests under second names.
pub(crate) fn link_sealed(from: &Path, to: &Path) -> Result<(), LineageError> {
    link(from, to)?;
    link(&sums_of(from), &sums_of(to))
}

/// The files of a folder under second names in `to`, which is made.
pub(crate) fn link_folder(from: &Path, to: &Path) -> Result<(), LineageError> {
    std::fs::create_dir(to).map_err(LineageError::io(to))?;
    link_files(from, to)
}

/// The files of a folder under second names in another.
pub(crate) fn link_files(from: &Path, to: &Path) -> Result<(), LineageError> {
    for entry in std::fs::read_dir(from).map_err(LineageError::io(from))? {
        let entry = entry.map_err(LineageError::io(from))?;
        link(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The same file under a second name; a copy where the file system has no such names.
pub(crate) fn link(from: &Path, to: &Path) -> Result<(), LineageError> {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).map_err(LineageError::io(from))?;
    }
    Ok(())
}
