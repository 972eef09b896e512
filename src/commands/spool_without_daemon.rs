//! A spool in a build that cannot read one.

use std::error::Error;
use std::path::Path;

use demi_store::{Doomed, Store, Waiting};

use super::left_out;

/// A spool, which this build cannot read.
pub enum Idle {}

/// What was deleted of one.
pub struct Forgotten {
    /// Records and lines that are gone.
    pub records: u64,
    /// Files that cannot be read.
    pub unread: Vec<String>,
}

impl Idle {
    /// Takes a spool for itself.
    pub fn take(_: &Path) -> Result<Idle, Box<dyn Error>> {
        Err(left_out("ingest daemon", "daemon"))
    }

    /// Adds the records that have to go.
    pub fn waiting(&self, _: &Store, _: &str, _: &Doomed, _: &mut Waiting) -> Result<(), Box<dyn Error>> {
        match *self {}
    }

    /// Deletes records.
    pub fn forget(&self, _: &str, _: &Doomed) -> Result<Forgotten, Box<dyn Error>> {
        match *self {}
    }
}
