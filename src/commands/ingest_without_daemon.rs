//! What the commands of the daemon say in a build without it.

use std::error::Error;
use std::path::Path;

use demi_ingest::{Doomed, Store, Waiting};

use super::{Outcome, left_out};
use demi_lineage::ui::Ui;

/// Arguments that nothing reads.
#[derive(clap::Args)]
pub struct ConfigArgs {
    /// What the command takes where it is there.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Arguments that nothing reads.
pub type VerifyArgs = ConfigArgs;

/// Runs `ingest serve`.
pub fn serve(args: &ConfigArgs, _: &Ui) -> Outcome {
    let ConfigArgs { rest: _ } = args;
    Err(left_out("ingest daemon", "daemon"))
}

/// Runs `ingest validate`.
pub fn validate(args: &ConfigArgs, ui: &Ui) -> Outcome {
    serve(args, ui)
}

/// Runs `ingest verify`.
pub fn verify(args: &VerifyArgs, ui: &Ui) -> Outcome {
    serve(args, ui)
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

    /// Adds the records that have to go.
    pub fn waiting(&self, _: &Store, _: &str, _: &Doomed, _: &mut Waiting) -> Result<(), Box<dyn Error>> {
        match *self {}
    }

    /// Deletes records.
    pub fn forget(&self, _: &str, _: &Doomed) -> Result<Forgotten, Box<dyn Error>> {
        match *self {}
    }
}
