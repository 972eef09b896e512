//! Folders that this program writes as a whole, and replaces only if they are its own.
//!
//! Each such folder carries a marker, [`MARKER`], with the marker's version, what kind of folder it is and every file
//! that was written to it. A folder is replaced only if it is absent, empty, or carries such a marker of the same kind
//! and holds no other file; and never if something lies in it that is being read. What other commands write into a folder later on stands
//! in [`Kind`], and folders in it that carry a marker of their own are held to that.

mod check;
mod sweep;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable;

pub use check::{check, is_whole};

/// Name of the marker.
pub const MARKER: &str = ".demi-lineage.json";
/// Version of the marker's format that is written and understood.
pub const MARKER_VERSION: u32 = 1;
/// What the names of folders in the making begin with.
const STAGE: &str = ".demi-new-";

/// The kind of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What `build` writes.
    Execution,
    /// What `minimize` writes.
    Minimized,
    /// What `fuzz` writes.
    Fuzzed,
    /// What `demo` writes.
    Demo,
    /// What `explore` writes.
    Explored,
}

impl Kind {
    /// In words: "an execution".
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Kind::Execution => "an execution (from build)",
            Kind::Minimized => "a result of minimize",
            Kind::Fuzzed => "a run found by fuzz",
            Kind::Demo => "a demo",
            Kind::Explored => "a result of explore",
        }
    }

    /// What other commands write into such a folder later on, from the folder on. One `*` stands for any text; what ends in `/` is a folder
    /// and all that is in it.
    fn later(self) -> &'static [&'static str] {
        match self {
            Kind::Execution => &["tables/messages.parquet", "tables/messages.sum", "tables/.demi-*/"],
            Kind::Demo => &["logs.jsonl.zst", "min.ledger", "report.html"],
            Kind::Minimized | Kind::Fuzzed | Kind::Explored => &[],
        }
    }

    /// Whether other commands write this file into such a folder.
    fn is_later(self, file: &str) -> bool {
        self.later().iter().any(|entry| match (entry.split_once('*'), entry.strip_suffix('/')) {
            (None, _) => *entry == file,
            (Some((before, _)), Some(_)) => file.strip_prefix(before).is_some_and(|rest| rest.contains('/')),
            (Some((before, after)), None) => {
                file.len() >= before.len() + after.len() && file.starts_with(before) && file.ends_with(after)
            }
        })
    }
}

/// The content of a marker.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    written_by: String,
    version: u32,
    kind: Kind,
    /// Every file in the folder. Earlier versions named folders here too, with `/` at the end.
    files: Vec<String>,
}

/// An error of replacing a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It is a file.
    #[error("{} is not a folder; it is left alone", .0.display())]
    NoFolder(PathBuf),
    /// It has something in it and no marker.
    #[error(
        "{} holds files that this program did not write, such as '{example}' (it has no {MARKER}); it is left alone: \
         name another folder, or remove it yourself", .path.display()
    )]
    Unmarked {
        /// The folder.
        path: PathBuf,
        /// One of the files in it.
        example: String,
    },
    /// Its marker cannot be read, or another version wrote it.
    #[error("{} was not written by this version: its {MARKER} {why}; it is left alone: name another folder, or remove it yourself", .path.display())]
    OtherMarker {
        /// The folder.
        path: PathBuf,
        /// What is wrong with the marker.
        why: String,
    },
    /// It holds another kind of result.
    #[error("{} holds {}, and {} would take its place; it is left alone: name another folder", .path.display(), .there.in_words(), .new.in_words())]
    OtherKind {
        /// The folder.
        path: PathBuf,
        /// What is there.
        there: Kind,
        /// What was to be written.
        new: Kind,
    },
    /// Somebody put a file into it.
    #[error("{} holds a file that this program did not write: '{file}'; the folder is left alone: move the file away, or name another folder", .path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The file, from the folder on.
        file: String,
    },
    /// What is read lies in it.
    #[error("{} would be replaced, but {} in it is being read: name another folder", .path.display(), .input.display())]
    Input {
        /// The folder.
        path: PathBuf,
        /// What is read.
        input: PathBuf,
    },
    /// The file system says no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FolderError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
        let path = path.to_owned();
        move |source| FolderError::Io { path, source }
    }
}

/// A folder in the making, which takes the place of another one when it is complete.
pub struct Replacement {
    out: PathBuf,
    kind: Kind,
    inputs: Vec<PathBuf>,
    stage: sweep::Stage,
}

impl Replacement {
    /// Prepares to write `out`; `inputs` are the files and folders that are read.
    ///
    /// # Errors
    /// When `out` is there and may not be replaced, as [`check()`] says, or cannot be written.
    pub fn begin(out: &Path, kind: Kind, inputs: &[&Path]) -> Result<Replacement, FolderError> {
        check(out, kind, inputs)?;
        // A link stays, and what it leads to is replaced.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let parent = durable::folder_of(&out);
        std::fs::create_dir_all(parent).map_err(FolderError::io(parent))?;
        sweep::sweep(parent);
        let stage = sweep::Stage::make(parent).map_err(FolderError::io(parent))?;
        let inputs = inputs.iter().map(|&path| path.to_owned()).collect();
        let new = Replacement { out, kind, inputs, stage };
        std::fs::create_dir(new.path()).map_err(FolderError::io(new.path()))?;
        Ok(new)
    }

    /// The folder to write to.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.stage.new_folder()
    }

    /// A place for temporary files on the same file system; it is removed at the end.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.stage.scratch()
    }

    /// Writes the marker, syncs everything, and puts the folder in its place, at once where the system can.
    ///
    /// # Errors
    /// When something came into the old folder meanwhile, or the file system fails.
    pub fn finish(self) -> Result<(), FolderError> {
        let new = self.path();
        let files = check::files_in(new)?;
        let marker =
            Marker { written_by: "demi-lineage".into(), version: MARKER_VERSION, kind: self.kind, files };
        let path = new.join(MARKER);
        let text = serde_json::to_string_pretty(&marker).unwrap_or_default() + "\n";
        std::fs::write(&path, text).map_err(FolderError::io(&path))?;
        durable::sync_tree(new).map_err(FolderError::io(new))?;
        let inputs: Vec<&Path> = self.inputs.iter().map(PathBuf::as_path).collect();
        check(&self.out, self.kind, &inputs)?;
        self.stage.exchange(&self.out).map_err(FolderError::io(&self.out))?;
        let parent = durable::folder_of(&self.out);
        durable::sync_folder(parent).map_err(FolderError::io(parent))
    }
}

/// Removes a folder of this kind with all that is in it, if it is there, and what a killed process had begun to remove beside it. It goes from its place at
/// once, so that a process that is killed leaves no half of a folder, which nobody could tell from one of somebody else.
///
/// # Errors
/// When it may not be replaced, as [`check()`] says, or the file system fails.
pub fn remove(folder: &Path, kind: Kind) -> Result<(), FolderError> {
    let parent = durable::folder_of(folder);
    if !parent.is_dir() {
        return Ok(());
    }
    sweep::sweep(parent);
    check(folder, kind, &[])?;
    if folder.symlink_metadata().is_ok() {
        let stage = sweep::Stage::make(parent).map_err(FolderError::io(parent))?;
        std::fs::rename(folder, stage.scratch()).map_err(FolderError::io(folder))?;
        durable::sync_folder(parent).map_err(FolderError::io(parent))?;
        stage.close().map_err(FolderError::io(parent))?;
    }
    durable::sync_folder(parent).map_err(FolderError::io(parent))
}

#[cfg(test)]
mod tests;
