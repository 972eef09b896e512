//! What `demi-lineage lineage` says in a build without plans.

use demi_commands::ui::Ui;

use super::{Outcome, left_out};

/// What to do with the tables of lineage.
#[derive(clap::Subcommand)]
pub enum LineageCommand {
    /// Bring a store's tables of lineage up to date: who sent to whom, and what each log had heard of.
    Refresh(RefreshArgs),
}

/// Arguments that nothing reads.
#[derive(clap::Args)]
pub struct RefreshArgs {
    /// What the command takes where it is there.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Runs the command.
pub fn run(command: &LineageCommand, _: &Ui) -> Outcome {
    let LineageCommand::Refresh(RefreshArgs { rest: _ }) = command;
    Err(left_out("tables of lineage", "plans"))
}
