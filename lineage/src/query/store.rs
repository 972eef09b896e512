//! Asking a store directly: its execution is built once, and grown when events were added.

use std::path::{Path, PathBuf};

use demi_common::sealed::SealedFile;
use serde::{Deserialize, Serialize};

use crate::error::LineageError;
use crate::execution::{BASE_FOLDER, Folder, link};
use crate::grow::{self, Anew, Grown};
use crate::pipeline::build_base;

/// Name of the file that says what a folder was built from.
const SOURCES: &str = "sources.json";

/// What an execution was built from: names and sizes of the store's files, which never change once written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sources {
    version: String,
    files: Vec<(String, u64)>,
}

impl Sources {
    fn read(path: &Path) -> Option<Sources> {
        let text = std::fs::read(path).ok()?;
        serde_json::from_slice::<Sources>(&text).ok().filter(|s| s.version == env!("CARGO_PKG_VERSION"))
    }

    fn write(&self, path: &Path) -> Result<(), LineageError> {
        let text = serde_json::to_vec_pretty(self).map_err(LineageError::table(path))?;
        std::fs::write(path, text).map_err(LineageError::io(path))
    }

    fn of(files: &[SealedFile]) -> Result<Sources, LineageError> {
        let mut all = Vec::with_capacity(files.len());
        for path in files {
            let size = std::fs::metadata(path.path()).map_err(LineageError::io(path.path()))?.len();
            all.push((path.path().display().to_string(), size));
        }
        Ok(Sources { version: env!("CARGO_PKG_VERSION").to_owned(), files: all })
    }
}

/// What was done to bring an execution up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It was up to date.
    Current,
    /// Events that were added were put in order behind the others.
    Grown,
    /// It was built of all events, and why.
    Built(Anew),
}

/// Makes sure that `folder` holds the execution of all events of these files, no violation singled out. Events that were added since
/// are put in order behind the others where that gives the same answers, which takes the time of the added events; else all is built.
///
/// # Errors
/// As [`build()`](crate::build()).
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
    let known = Sources::read(&folder.join(SOURCES));
    if known.as_ref() == Some(&sources) {
        return Ok(Refreshed::Current);
    }
    let seal = |folder: &Folder, names: &[PathBuf]| -> Result<(), LineageError> {
        names.iter().try_for_each(|name| sources.write(&folder.path("").join(name)))
    };
    let base_sources = Path::new(BASE_FOLDER).join(SOURCES);
    let mut why = Anew::NoBase;
    if let Some(base) = Sources::read(&folder.join(&base_sources)) {
        let new: Vec<SealedFile> = files
            .iter()
            .zip(&sources.files)
            .filter(|(_, f)| !base.files.contains(f))
            .map(|(p, _)| p.clone())
            .collect();
        let mut keep = |to: &Folder| {
            link(&folder.join(&base_sources), &to.path("").join(&base_sources))?;
            seal(to, &[SOURCES.into()])
        };
        why = match grow::grow(files, &new, system, folder, progress, &mut keep)? {
            Grown::Done => return Ok(Refreshed::Grown),
            Grown::Anew(why) => why,
        };
    }
    build_base(files, system, folder, progress, &mut |to| seal(to, &[SOURCES.into(), base_sources.clone()]))?;
    Ok(Refreshed::Built(why))
}
