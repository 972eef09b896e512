//! Commits that a power cut left empty or torn, found before the table library passes over them in silence.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::commit_sum;
use crate::StoreError;
use crate::fs::FileSystem;

/// The files of a table's log that are read when the table is opened.
struct Log {
    /// The last checkpoint: the files of its version.
    checkpoint: Vec<PathBuf>,
    /// The commits since, oldest first.
    commits: Vec<(u64, PathBuf)>,
}

fn log(table: &Path) -> io::Result<Log> {
    let (mut found, mut checkpoints) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(table.join("_delta_log"))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((number, rest)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
        let Ok(version) = number.parse::<u64>() else { continue };
        if rest == "json" {
            found.push((version, entry.path()));
        } else if rest.starts_with("checkpoint.") && rest.ends_with("parquet") {
            checkpoints.push((version, entry.path()));
        }
    }
    let last: Option<u64> = checkpoints.iter().map(|(version, _)| *version).max();
    found.retain(|(version, _)| last.is_none_or(|last| *version > last));
    found.sort_unstable();
    let newest = checkpoints.into_iter().filter(|(version, _)| Some(*version) == last);
    Ok(Log { checkpoint: newest.map(|(_, path)| path).collect(), commits: found })
}

/// The commits in a table's log that are read when the table is opened: those since the last checkpoint, oldest first.
pub(super) fn commits(table: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    Ok(log(table)?.commits)
}

/// Whether a commit is there from its first line to its last.
fn is_whole(commit: &[u8]) -> bool {
    let mut lines = commit.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok())
}

/// Refuses a table with a commit that is not whole or not as it was written, if the commit is of a version after `known`; where none is known, with
/// such a checkpoint too.
pub(super) fn check_commits(table: &Path, known: Option<u64>) -> Result<(), StoreError> {
    let io = |action| move |source| StoreError::Io { path: table.join("_delta_log"), action, source };
    let log = log(table).map_err(io("list this folder"))?;
    for path in log.checkpoint.into_iter().filter(|_| known.is_none()) {
        match commit_sum::check_checkpoint(&path) {
            Ok(()) => {}
            // Another one took its place meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(StoreError::Io { path, action: "read this file", source }),
        }
    }
    for (version, path) in log.commits {
        if known.is_some_and(|known| version <= known) {
            continue;
        }
        match fs::read(&path) {
            Ok(commit) if !is_whole(&commit) => return Err(StoreError::TornCommit { path }),
            Ok(commit) if commit_sum::is_intact(&commit) => {}
            Ok(_) => return Err(StoreError::Damaged { path }),
            // A checkpoint took its place meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(StoreError::Io { path, action: "read this file", source }),
        }
    }
    Ok(())
}

/// Removes the first version of a table if it is all there is and is not whole. It holds no rows, so nothing is lost.
pub(super) fn remove_torn_first(files: &dyn FileSystem, table: &Path) -> io::Result<()> {
    let Ok(commits) = commits(table) else { return Ok(()) };
    if let [(0, first)] = commits.as_slice()
        && !is_whole(&fs::read(first)?)
    {
        files.remove(first)?;
    }
    Ok(())
}

/// Makes the newest commit durable, and the names of all. Whoever builds on what another process committed needs it: that process
/// may have ended before it could.
pub(super) fn sync_commits(files: &dyn FileSystem, table: &Path) -> io::Result<()> {
    if let Some((_, newest)) = commits(table)?.last() {
        files.open(newest)?.sync()?;
    }
    files.sync_dir(&table.join("_delta_log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_cut_anywhere_but_between_lines_are_not_whole() {
        let whole = b"{\"commitInfo\":{}}\n{\"add\":{\"path\":\"x\"}}";
        assert!(is_whole(whole));
        for cut in (0..whole.len()).filter(|cut| ![17, 18].contains(cut)) {
            assert!(!is_whole(&whole[..cut]), "{cut}");
        }
        assert!(!is_whole(&[0; 100]));
    }
}
