//! What the commands of the daemon say in a build without it.

use super::{Outcome, left_out};
use demi_commands::ui::Ui;

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
