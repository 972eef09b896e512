//! Asking a store directly: its execution is built once, and again when events were added.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::build::{BuildOptions, build};
use crate::error::LineageError;
use crate::violation::{ViolationError, ViolationSpec};

/// Name of the file that says what a folder was built from.
const SOURCES: &str = "sources.json";

/// What an execution was built from: names and sizes of the store's files, which never change once written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sources {
    version: String,
    files: Vec<(String, u64)>,
}

impl Sources {
    fn of(files: &[PathBuf]) -> Result<Sources, LineageError> {
        let mut all = Vec::with_capacity(files.len());
        for path in files {
            let size = std::fs::metadata(path).map_err(LineageError::io(path))?.len();
            all.push((path.display().to_string(), size));
        }
        all.sort();
        Ok(Sources { version: env!("CARGO_PKG_VERSION").to_owned(), files: all })
    }
}

/// Makes sure that `folder` holds the execution of these files, and says whether it had to be built. The violation is the recorded
/// one, or none where nothing is recorded.
///
/// # Errors
/// As [`build()`].
pub fn refresh(
    files: &[PathBuf],
    system: &str,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<bool, LineageError> {
    let sources = Sources::of(files)?;
    let path = folder.join(SOURCES);
    let known = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Sources>(&text).ok());
    if known.as_ref() == Some(&sources) {
        return Ok(false);
    }
    let mut options = BuildOptions { system: system.to_owned(), ..BuildOptions::default() };
    match build(files, &options, folder, progress) {
        Err(LineageError::Violation(ViolationError::NoRecord(_) | ViolationError::NamesNobody { .. })) => {
            options.violation = ViolationSpec::None;
            build(files, &options, folder, progress)?;
        }
        other => {
            other?;
        }
    }
    let text = serde_json::to_vec_pretty(&sources).map_err(LineageError::table(&path))?;
    std::fs::write(&path, text).map_err(LineageError::io(&path))?;
    Ok(true)
}
