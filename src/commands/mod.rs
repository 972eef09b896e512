//! One file a command: its arguments, and how its result is shown.

use std::path::Path;

use demi_schemas::{Scenario, Schedule};

pub mod build;
pub mod demo;
pub mod export;
pub mod fuzz;
pub mod ingest;
pub mod ingest_daemon;
pub mod ingest_parse;
pub mod minimize;
pub mod query;
pub mod replay;
pub mod report;
pub mod verify;

/// What a command gives back: an exit status, or an error to explain (exit status 2).
pub type Outcome = Result<std::process::ExitCode, Box<dyn std::error::Error>>;

/// Reads a scenario file; errors name it.
pub fn read_scenario(path: &Path) -> Result<Scenario, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Scenario::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Reads a schedule file, or the schedule of an execution: all that was recorded, or what was kept of it.
pub fn read_schedule(path: &Path, kept: bool) -> Result<Schedule, Box<dyn std::error::Error>> {
    if path.is_dir() {
        return Ok(demi_lineage::execution::load_schedule(path, kept)?);
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Schedule::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Writes a folder of files that takes the place of `out` when it is complete. A folder that does not look like
/// an earlier result (no `summary.json` in it) is not replaced.
pub fn write_folder(out: &Path, files: &[(&str, String)]) -> Result<(), Box<dyn std::error::Error>> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| format!("{path}: {e}")
    };
    let empty = || out.read_dir().map(|mut d| d.next().is_none()).unwrap_or(false);
    if out.exists() && !out.join("summary.json").exists() && !empty() {
        return Err(format!(
            "{} is there and is no earlier result (it has no summary.json); it is left alone",
            out.display()
        )
        .into());
    }
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(at(parent))?;
    let new = tempfile::Builder::new().prefix(".demi-").tempdir_in(parent).map_err(at(parent))?;
    let (fresh, old) = (new.path().join("new"), new.path().join("old"));
    std::fs::create_dir(&fresh).map_err(at(&fresh))?;
    for (name, text) in files {
        let path = fresh.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(at(folder))?;
        }
        std::fs::write(&path, text).map_err(at(&path))?;
    }
    if out.exists() {
        std::fs::rename(out, &old).map_err(at(out))?;
    }
    std::fs::rename(&fresh, out).map_err(at(out))?;
    Ok(())
}

/// What fills a file.
pub type Fill<'a> = dyn FnMut(&std::fs::File) -> Result<(), Box<dyn std::error::Error>> + 'a;

/// Writes a file that takes the place of `path` when it is complete.
pub fn replace_file(path: &Path, fill: &mut Fill<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|e| at(&e))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".demi-");
    // Readable as any file that a program writes, not for its owner alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let file = builder.tempfile_in(parent).map_err(|e| at(&e))?;
    fill(file.as_file())?;
    file.persist(path).map_err(|e| at(&e.error))?;
    Ok(())
}
