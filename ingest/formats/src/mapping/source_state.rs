//! What a mapper remembers of the source that it reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use regex::Regex;

use super::patterns::Pattern;
use crate::documents::Documents;
use crate::formats::Record;
use crate::read::lines::Line;

/// A unit whose record is known and whose events are not.
pub(crate) struct Held {
    pub(crate) line: Line,
    pub(crate) lines: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) record: Record<'static>,
    pub(crate) carried: Arc<BTreeMap<String, String>>,
}

/// What is remembered of the source being read.
#[derive(Default)]
pub(crate) struct SourceState {
    pub(crate) name: String,
    /// The name without its folder and endings.
    pub(crate) stem: String,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) delimiter: Option<Regex>,
    /// Lines of the header that are still to come.
    pub(crate) header: VecDeque<(&'static str, Option<String>)>,
    pub(crate) columns: Option<Arc<[String]>>,
    pub(crate) pending: VecDeque<(Line, Vec<u8>)>,
    pub(crate) pending_bytes: usize,
    /// Of a source that is made of documents.
    pub(crate) documents: Option<Box<Documents>>,
    /// Name of the execution being read.
    pub(crate) execution: Option<String>,
    /// Executions begun.
    pub(crate) number: u64,
    /// Whether the execution being read has records.
    pub(crate) begun: bool,
    pub(crate) held: Vec<Held>,
    pub(crate) held_bytes: usize,
    /// Values that hold until another record or line tells others.
    pub(crate) carried: Arc<BTreeMap<String, String>>,
}
