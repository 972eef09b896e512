//! The order of events in a build that reads no stores.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::builder::PathBufValueParser;
use demi_commands::ui::Ui;
use demi_common::sealed::SealedFile;
use demi_lineage::BuildOptions;
use demi_lineage::window::Window;
use demi_schemas::summary::{BackwardStamps, BuildSummary};

use tempfile::TempDir;

use super::incomplete::Incomplete;
use super::left_out;

/// Whether a folder is an event store.
pub fn is_store(path: &Path) -> bool {
    path.join("events").join("_delta_log").is_dir()
}

/// The folder of a store.
pub fn folder_of(place: &Path) -> Result<PathBuf, Box<dyn Error>> {
    Ok(place.to_owned())
}

/// What reads the place of a store on the command line.
pub fn place() -> PathBufValueParser {
    PathBufValueParser::new()
}

/// The systems of a store.
pub fn systems(_: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    Err(left_out("event store", "store"))
}

/// An execution that was built of a store.
pub struct Built {
    pub summary: BuildSummary,
    pub incomplete: Incomplete,
}

impl Built {
    /// Notes the folder of the execution beside the store.
    pub fn note(&self, _: &Path) {}
}

/// Builds an execution of a store.
pub fn build(
    _: &Path,
    _: Option<&str>,
    _: BuildOptions,
    _: &Window,
    _: bool,
    _: &Path,
    _: &Ui,
) -> Result<Built, Box<dyn Error>> {
    Err(left_out("event store", "store"))
}

/// Builds an execution of files that hold a past of a system of a store.
pub fn build_of(
    _: &Path,
    _: Vec<SealedFile>,
    _: BuildOptions,
    _: bool,
    _: &Path,
    _: &Ui,
) -> Result<Built, Box<dyn Error>> {
    Err(left_out("event store", "store"))
}

/// An order of events.
pub struct Order {
    /// Its folder.
    pub folder: PathBuf,
    /// Where the folder is, if it is not kept: never.
    pub temporary: Option<TempDir>,
}

/// The order of an execution's folder.
pub fn order(target: &Path, _: Option<&str>, _: &Ui) -> Result<Order, Box<dyn Error>> {
    match is_store(target) {
        true => Err(left_out("event store", "store")),
        false => Ok(Order { folder: target.to_owned(), temporary: None }),
    }
}

impl Order {
    /// What is missing in the store.
    pub fn incomplete(&self) -> Result<Option<Incomplete>, Box<dyn Error>> {
        Ok(None)
    }

    /// Actors whose stamps run backwards, as loads into the store found them.
    pub fn backward_stamps(&self) -> Result<Option<Vec<BackwardStamps>>, Box<dyn Error>> {
        Ok(None)
    }

    /// The files of the store's quarantine.
    pub fn quarantine_files(&self) -> Result<Option<Vec<SealedFile>>, Box<dyn Error>> {
        Ok(None)
    }

    /// Builds the order of a store anew where a question failed over what was kept of it, and gives whether it did.
    pub fn mend(&mut self, _: &(dyn Error + 'static), _: &Ui) -> Result<bool, Box<dyn Error>> {
        Ok(false)
    }
}
