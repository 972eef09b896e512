//! `demi-lineage ingest delete`: events that are to be there no longer.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use demi_ingest::{Deletion, Doomed, Store};

use super::Outcome;
use demi_lineage::ui::Ui;

/// Arguments of `ingest delete`.
#[derive(Args)]
pub struct DeleteArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR", env = "DEMI_STORE")]
    store: PathBuf,
    /// The system whose events are deleted. With --before alone it may be left out: then of all systems.
    #[arg(long, value_name = "NAME", required_unless_present = "before")]
    system: Option<String>,
    /// Delete events before this day (UTC), as 2026-01-31. Events without a time stay.
    #[arg(long, value_name = "DATE", required_unless_present = "actor")]
    before: Option<chrono::NaiveDate>,
    /// Delete events of this actor; may be given several times. With --before, only those before that day.
    #[arg(long, value_name = "NAME", requires = "system")]
    actor: Vec<String>,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

/// Deletes.
pub fn run(args: &DeleteArgs, ui: &Ui) -> Outcome {
    let mut store = Store::open(&args.store)?;
    let doomed = Doomed { actors: args.actor.iter().cloned().collect(), before: args.before };
    let systems = match &args.system {
        Some(system) => {
            // A name that is not there is a mistake, and nothing is made for it.
            store.event_files(system)?;
            vec![system.clone()]
        }
        None => store.systems()?,
    };
    let mut done = Vec::new();
    for system in &systems {
        let bar = ui.progress();
        bar.set_message(format!("deleting from {}", system.escape_debug()));
        let deleted = demi_ingest::delete(&mut store, system, &doomed);
        bar.finish_and_clear();
        done.push(deleted?);
        super::built::forget(&store, system)?;
    }
    if args.json {
        ui.json(&done)?;
    } else {
        done.iter().for_each(|one| ui.result(&text(one)));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(done: &Deletion) -> String {
    let system = done.system.escape_debug();
    let mut text = format!("{system}: {} events deleted, {} stay", done.events, done.kept);
    if done.quarantined + done.quarantined_kept > 0 {
        text.push_str(&format!(
            "; {} quarantined lines deleted, {} stay",
            done.quarantined, done.quarantined_kept
        ));
    }
    text
}
