//! The summary of an execution.

use std::path::Path;

use demi_schemas::summary::BuildSummary;

use super::names::SUMMARY;
use crate::error::LineageError;

/// Reads the summary of an execution.
///
/// # Errors
/// When the file is missing or is no summary of a build.
pub fn load_summary(exec_dir: &Path) -> Result<BuildSummary, LineageError> {
    let path = exec_dir.join(SUMMARY);
    let text = std::fs::read(&path).map_err(LineageError::io(&path))?;
    serde_json::from_slice(&text).map_err(LineageError::table(&path))
}

/// Writes the summary to that file.
pub(crate) fn write_summary(summary: &BuildSummary, path: &Path) -> Result<(), LineageError> {
    let mut text = serde_json::to_string_pretty(summary).map_err(LineageError::table(path))?;
    text.push('\n');
    std::fs::write(path, text).map_err(LineageError::io(path))
}
