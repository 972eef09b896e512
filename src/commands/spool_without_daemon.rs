//! A spool in a build that cannot read one.

use std::error::Error;
use std::path::Path;

use demi_store::{Doomed, Store, Waiting};

use super::left_out;

/// What a spool was told of a restored store.
#[derive(serde::Serialize)]
pub struct Restored {
    /// The last frame in the store.
    pub committed: u64,
    /// The last frame that had been in the store.
    pub was_committed: u64,
    /// Frames that will be taken again.
    pub again: u64,
    /// First and last of the frames that are gone.
    pub lost: Option<(u64, u64)>,
}

/// Where the sources of a spool stand.
pub fn saved_positions(_: &Path) -> Result<(u64, Vec<u8>), Box<dyn Error>> {
    Err(left_out("ingest daemon", "daemon"))
}

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

    /// Its number.
    pub fn id(&self) -> Result<u64, Box<dyn Error>> {
        match *self {}
    }

    /// Whether its frames went to this store.
    pub fn fits(&self, _: &Store) -> Result<(), Box<dyn Error>> {
        match *self {}
    }

    /// Tells it that the store is an earlier one.
    pub fn restored(&self, _: &Store, _: Option<&[u8]>) -> Result<Restored, Box<dyn Error>> {
        match *self {}
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
