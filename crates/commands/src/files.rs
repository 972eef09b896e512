//! Files that commands read and write.

use std::error::Error;
use std::fs::File;
use std::path::Path;

use demi_common::{FolderError, Kind, Replacement, durable, regular};
use demi_schemas::{Scenario, Schedule};

use crate::input::{Wanted, expect};

/// Opens a file. Whoever names a pipe of the system, such as `/dev/stdin`, means it; one in a folder is no file.
pub(crate) fn opened(path: &Path) -> std::io::Result<File> {
    match path.starts_with("/dev") || path.starts_with("/proc") {
        true => File::open(path),
        false => regular::open(path),
    }
}

pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    std::io::read_to_string(opened(path)?)
}

/// Reads a scenario file; errors name it.
pub fn read_scenario(path: &Path) -> Result<Scenario, Box<dyn Error>> {
    let text = text_of(path).map_err(|e| match path.is_dir() {
        true => format!("{} is a folder, and a scenario is a file in TOML: --scenario FILE", path.display()),
        false => format!("{}: {e}", path.display()),
    })?;
    Ok(Scenario::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Reads a schedule file, that of a folder that `fuzz` or `minimize` wrote, or the schedule of an execution: all that was recorded,
/// or what was kept of it.
pub fn read_schedule(path: &Path, kept: bool) -> Result<Schedule, Box<dyn Error>> {
    expect(path, Wanted::Schedule)?;
    let inside = path.join("schedule.jsonl");
    let path = if inside.is_file() && !demi_lineage::execution::is_execution(path) { &inside } else { path };
    if path.is_dir() {
        let window = demi_lineage::execution::load_summary(path)?.window;
        if let Some(window) = window.filter(|window| !window.replayable) {
            return Err(format!(
                "{} begins at a cut ({}), not at the start of the system, so no replay can follow it: build it without --last, --since and --around",
                path.display(),
                window.asked
            )
            .into());
        }
        return Ok(demi_lineage::execution::load_schedule(path, kept)?);
    }
    let text = text_of(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Schedule::parse(&text).map_err(|e| {
        // A file that was copied in part, or is still being written.
        let cut = if text.ends_with('\n') || text.is_empty() { "" } else { ": its last line is cut off" };
        format!("{}: {e}{cut}", path.display())
    })?)
}

/// Writes a folder of files that takes the place of `out` when it is complete. Only what this program wrote is
/// replaced, and nothing that is read.
pub fn write_folder(
    out: &Path,
    kind: Kind,
    inputs: &[&Path],
    files: &[(&str, String)],
) -> Result<(), FolderError> {
    let new = Replacement::begin(out, kind, inputs)?;
    write_files(new.path(), files)?;
    new.finish()
}

/// Writes files with these paths from the folder on.
pub fn write_files(folder: &Path, files: &[(&str, String)]) -> Result<(), FolderError> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| FolderError::Io { path: path.clone(), source })?;
    }
    Ok(())
}

/// Writes a file that takes the place of `path` when it is complete; errors name it.
pub fn replace_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    durable::replace(path, fill).map_err(|e| format!("{}: {e}", path.display()).into())
}
