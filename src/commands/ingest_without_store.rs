//! What the commands of the event store say in a build without it.

use demi_commands::ui::Ui;

use super::{Outcome, left_out};

/// Arguments that nothing reads.
#[derive(clap::Args)]
pub struct LoadArgs {
    /// What the command takes where it is there.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Arguments that nothing reads.
pub type StatusArgs = LoadArgs;
/// Arguments that nothing reads.
pub type RequeueArgs = LoadArgs;
/// Arguments that nothing reads.
pub type DeleteArgs = LoadArgs;
/// Arguments that nothing reads.
pub type BackupArgs = LoadArgs;
/// Arguments that nothing reads.
pub type RestoreArgs = LoadArgs;

/// Runs `ingest load`.
pub fn load(args: &LoadArgs, _: &Ui) -> Outcome {
    let LoadArgs { rest: _ } = args;
    Err(left_out("event store", "store"))
}

/// Runs `ingest status`.
pub fn status(args: &StatusArgs, ui: &Ui) -> Outcome {
    load(args, ui)
}

/// Runs `ingest requeue`.
pub fn requeue(args: &RequeueArgs, ui: &Ui) -> Outcome {
    load(args, ui)
}

/// Runs `ingest delete`.
pub fn delete(args: &DeleteArgs, ui: &Ui) -> Outcome {
    load(args, ui)
}

/// Runs `ingest backup`.
pub fn backup(args: &BackupArgs, ui: &Ui) -> Outcome {
    load(args, ui)
}

/// Runs `ingest restore`.
pub fn restore(args: &RestoreArgs, ui: &Ui) -> Outcome {
    load(args, ui)
}
