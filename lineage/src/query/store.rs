//! Asking a store directly: its execution is built once, and grown when events were added.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use demi_common::owned::{Kind, is_whole};
use demi_common::sealed::SealedFile;
use serde::{Deserialize, Serialize};

use crate::error::LineageError;
use crate::execution::references::{ROWS, name_of};
use crate::execution::{BASE_FOLDER, Folder, link};
use crate::grow::{self, Grown, RebuildReason};
use crate::matching::RULES;
use crate::pipeline::build_base;
use crate::read::beside;

/// Name of the file that says what a folder was built from.
const SOURCES: &str = "sources.json";

/// The files of a store that an execution was built from, which never change once written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sources {
    version: String,
    /// In the order in which they were read.
    files: Vec<StoreFile>,
}

/// A file of a store, wherever the store is: a moved or copied store has the same files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct StoreFile {
    name: String,
    bytes: u64,
    /// What tells its content from that of another file of this name: a digest, or where the store keeps none, when it was written.
    content: String,
}

impl StoreFile {
    fn of(file: &SealedFile) -> Result<StoreFile, LineageError> {
        let path = file.path();
        let found = std::fs::metadata(path).map_err(LineageError::io(path))?;
        let content = match file.digest() {
            Some(digest) => format!("xxh3-64/{digest:016x}"),
            None => {
                let time = found.modified().map_err(LineageError::io(path))?.duration_since(UNIX_EPOCH);
                format!("written/{}", time.unwrap_or_default().as_nanos())
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(StoreFile { name, bytes: found.len(), content })
    }
}

impl Sources {
    fn read(path: &Path) -> Option<Sources> {
        let text = demi_common::regular::read(path).ok()?;
        serde_json::from_slice::<Sources>(&text).ok().filter(|s| s.version == RULES)
    }

    fn write(&self, path: &Path) -> Result<(), LineageError> {
        let text = serde_json::to_vec_pretty(self).map_err(LineageError::table(path))?;
        std::fs::write(path, text).map_err(LineageError::io(path))
    }

    fn of(files: &[SealedFile]) -> Result<Sources, LineageError> {
        let files = files.iter().map(StoreFile::of).collect::<Result<_, _>>()?;
        Ok(Sources { version: RULES.to_owned(), files })
    }
}

/// The way in which an execution was brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It was up to date.
    Current,
    /// Events that were added were put in order behind the others.
    Grown,
    /// It was built of all events, and why.
    Built(RebuildReason),
}

/// Makes sure that `folder` holds the execution of all events of these files, no violation singled out. Events that were added since
/// are put in order behind the others where that gives the same answers, which takes the time of the added events; else all is built.
///
/// # Errors
/// As [`build()`](crate::build()). What is wrong with the folder is none: the execution is built anew.
pub fn refresh(
    files: &[SealedFile],
    system: &str,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Refreshed, LineageError> {
    let mut files = files.to_vec();
    files.sort();
    let files = files.as_slice();
    let sources = Sources::of(files)?;
    let mut why = RebuildReason::NoBase;
    if let Some(known) = Sources::read(&folder.join(SOURCES)) {
        why = RebuildReason::Damaged;
        if is_whole(folder, Kind::Execution) {
            if known == sources {
                return Ok(Refreshed::Current);
            }
            // Where growing fails over what is kept, building does not; where it fails over the store, building says so.
            match grow_to(files, &sources, system, folder, progress) {
                Ok(Grown::Done) => return Ok(Refreshed::Grown),
                Ok(Grown::Rebuild(reason)) => why = reason,
                Err(_) => {}
            }
        }
    }
    build_from(files, &sources, system, folder, progress)?;
    Ok(Refreshed::Built(why))
}

/// Builds the execution of all events of these files, whatever is in the folder.
///
/// # Errors
/// As [`build()`](crate::build()).
pub fn rebuild(
    files: &[SealedFile],
    system: &str,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LineageError> {
    let mut files = files.to_vec();
    files.sort();
    build_from(&files, &Sources::of(&files)?, system, folder, progress)
}

fn build_from(
    files: &[SealedFile],
    sources: &Sources,
    system: &str,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LineageError> {
    let mut seal = |to: &Folder| {
        let names = [PathBuf::from(SOURCES), Path::new(BASE_FOLDER).join(SOURCES)];
        names.iter().try_for_each(|name| sources.write(&to.path("").join(name)))
    };
    build_base(files, system, folder, progress, &mut seal)?;
    Ok(())
}

fn grow_to(
    files: &[SealedFile],
    sources: &Sources,
    system: &str,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Grown, LineageError> {
    let base_sources = Path::new(BASE_FOLDER).join(SOURCES);
    let Some(base) = Sources::read(&folder.join(&base_sources)) else {
        return Ok(Grown::Rebuild(RebuildReason::NoBase));
    };
    let there: HashSet<&StoreFile> = sources.files.iter().collect();
    let built_of: HashSet<&StoreFile> = base.files.iter().collect();
    let new = files.iter().zip(&sources.files).filter(|(_, file)| !built_of.contains(file));
    let new: Vec<SealedFile> = new.map(|(file, _)| file.clone()).collect();
    let gone = base.files.iter().enumerate().filter(|(_, file)| !there.contains(file));
    let held = |(at, _): (usize, &StoreFile)| beside(&folder.join(ROWS).join(name_of(at)));
    let gone: Vec<SealedFile> = gone.map(held).collect::<Result<_, _>>()?;
    let mut seal = |to: &Folder| {
        link(&folder.join(&base_sources), &to.path("").join(&base_sources))?;
        sources.write(&to.path(SOURCES))
    };
    let files = grow::StoreFiles::new(files, &new, &gone);
    grow::grow(&files, system, folder, progress, &mut seal)
}
