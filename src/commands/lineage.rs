//! `demi-lineage lineage`: the tables that engines of relational plans read.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_commands::ui::Ui;
use demi_lineage::query::Query;
use demi_store::Store;

use super::engine::ExplainArgs;
use super::{Outcome, built};

/// What to do with the tables of lineage.
#[derive(clap::Subcommand)]
pub enum LineageCommand {
    /// Bring a store's tables of lineage up to date: who sent to whom, and what each log had heard of.
    ///
    /// They stand beside the events as Delta tables, and engines find causal pasts in them. Only what was added is written; logs to which something came late
    /// are written anew.
    Refresh(RefreshArgs),
}

/// Arguments of `lineage refresh`.
#[derive(clap::Args)]
pub struct RefreshArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// Only this system; otherwise all.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Write all rows anew.
    #[arg(long)]
    rebuild: bool,
    #[command(flatten)]
    explain: ExplainArgs,
    /// One JSON object a system.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &LineageCommand, ui: &Ui) -> Outcome {
    let LineageCommand::Refresh(args) = command;
    if args.explain.tables(ui)? {
        return Ok(ExitCode::SUCCESS);
    }
    let systems = match &args.system {
        Some(system) => vec![system.clone()],
        None => Store::open(&args.store)?.systems()?,
    };
    if systems.is_empty() {
        return Err("the store holds no events".into());
    }
    for system in systems {
        let order = built::order(&args.store, Some(&system), ui)?;
        let Some((store, system)) = &order.store else {
            return Err(format!("{} is no event store", args.store.display()).into());
        };
        let query = Query::open(&order.folder, false)?;
        let done = demi_plans::refresh(store, system, &query, store.version(), args.rebuild)?;
        if args.json {
            ui.result(&serde_json::to_string(&done)?);
            continue;
        }
        let changed = match done.changed {
            0 => String::new(),
            n => format!("; {n} logs to which something came late were written anew"),
        };
        ui.result(&format!(
            "{}: {} messages between {} logs, of version {} of the events; wrote {} messages and {} rows of checkpoints{changed}",
            done.system, done.messages, done.logs, done.events_version, done.messages_written, done.checkpoints_written
        ));
    }
    Ok(ExitCode::SUCCESS)
}
