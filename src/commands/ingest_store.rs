//! `demi-lineage ingest status` and `requeue`: what asks and mends a store.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use demi_store::{CompletenessRow, Quarantined, Store};

use super::Outcome;
use demi_commands::ui::Ui;

/// Arguments of `ingest status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// Only this system.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Print the rows as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `ingest requeue`.
#[derive(Args)]
pub struct RequeueArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// The system whose quarantine is read again; optional if the store holds only one.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    #[command(flatten)]
    mapping: super::ingest_parse::MappingArgs,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads quarantined lines again.
pub fn requeue(args: &RequeueArgs, ui: &Ui) -> Outcome {
    let mut mapper = args.mapping.mapper(false)?;
    let mut store = Store::open(&args.store)?;
    let system = super::built::system(&store, args.system.as_deref())?;
    let done = demi_store::requeue(&mut store, &system, mapper.as_mut())?;
    if args.json {
        ui.json(&done)?;
    } else {
        let deleted =
            if done.deleted > 0 { format!(", {} deleted before", done.deleted) } else { String::new() };
        ui.result(&format!(
            "{}: {} lines in quarantine; {} events added, {} there already, {} lines that are none{deleted}, {} stay",
            system, done.rows, done.added, done.duplicates, done.skipped, done.kept
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what is complete.
pub fn status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let store = Store::open(&args.store)?;
    let completeness = demi_store::status(&store, args.system.as_deref())?;
    let quarantine = demi_store::quarantined(&store, args.system.as_deref())?;
    if args.json {
        ui.json(&Status { completeness, quarantine })?;
        return Ok(ExitCode::SUCCESS);
    }
    for rows in completeness.chunk_by(|a, b| a.system == b.system) {
        ui.result(&system_text(rows));
    }
    for rows in quarantine.chunk_by(|a, b| a.system == b.system) {
        ui.result(&quarantine_text(rows));
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Status {
    /// One row an incarnation of an actor.
    completeness: Vec<CompletenessRow>,
    /// One row a system and code.
    quarantine: Vec<Quarantined>,
}

/// How many records of a system are in quarantine and why, the commonest reasons first.
fn quarantine_text(rows: &[Quarantined]) -> String {
    let all: u64 = rows.iter().map(|row| row.rows).sum();
    let mut text = format!("{}: {all} in quarantine\n", rows[0].system.escape_debug());
    for row in rows {
        let (source, reason) = (row.source.escape_debug(), row.reason.escape_debug());
        text.push_str(&format!("  {:>8}  {}; first {source}:{}: {reason}\n", row.rows, row.code, row.line));
    }
    text
}

fn system_text(rows: &[CompletenessRow]) -> String {
    let incarnations: Vec<_> = rows.iter().map(|row| row.counts.clone()).collect();
    let events: u64 = incarnations.iter().map(|counts| counts.events).sum();
    let missing: u64 = incarnations.iter().map(|counts| counts.missing).sum();
    let title = format!("{}: {events} events, {missing} missing", rows[0].system);
    format!("{title}\n\n{}\n", super::ingest_load::table(&incarnations))
}
