//! What a mapper gives back, and what a command line may tell it.

use crate::fate::{Events, Fate};
use crate::read::lines::Line;

/// What a command line may say beside a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The pattern of a text log, in place of the mapping's and of the file's own.
    pub parser: Option<String>,
    /// The delimiter of executions, in place of the mapping's and of the file's own.
    pub delimiter: Option<String>,
    /// Whether several sources are mapped: executions of delimited files are then named after their file too.
    pub several: bool,
}

/// Consecutive lines that are one record, or one line that is none. Empty lines between records are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The first line; its length is that of all of them.
    pub line: Line,
    /// How many lines.
    pub lines: u64,
    /// Their bytes.
    pub raw: Vec<u8>,
    /// Name of the execution, where the source holds several.
    pub execution: Option<String>,
    /// What they became.
    pub fate: Fate<Events>,
}
