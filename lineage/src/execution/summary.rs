//! The summary of an execution.

use std::path::Path;

use demi_common::sealed;
use demi_schemas::summary::BuildSummary;

use super::names::SUMMARY;
use crate::error::LineageError;
use crate::read::beside;

/// Reads the summary of an execution.
///
/// # Errors
/// When the file is missing or is no summary of a build.
pub fn load_summary(exec_dir: &Path) -> Result<BuildSummary, LineageError> {
    let path = exec_dir.join(SUMMARY);
    let text = beside(&path)?.read_to_string().map_err(LineageError::io(&path))?;
    serde_json::from_str(&text).map_err(LineageError::table(&path))
}

/// Writes the summary to that file.
pub(crate) fn write_summary(summary: &BuildSummary, path: &Path) -> Result<(), LineageError> {
    let mut text = serde_json::to_string_pretty(summary).map_err(LineageError::table(path))?;
    text.push('\n');
    sealed::write(path, text.as_bytes()).map_err(LineageError::io(path))
}
