//! `demi-lineage ingest serve`, `validate`, `status` and `verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use demi_ingest::Store;
use demi_ingest::daemon::{self, Config, LedgerRow, Stopped, Verified};

use super::Outcome;
use crate::ui::Ui;

/// Arguments of `ingest serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// Configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Arguments of `ingest validate`.
#[derive(Args)]
pub struct ValidateArgs {
    /// Configuration file (TOML).
    #[arg(value_name = "FILE")]
    config: PathBuf,
}

/// Arguments of `ingest status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Only this system.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Print the rows as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `ingest verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Directory of the spool.
    #[arg(long, value_name = "DIR")]
    spool: PathBuf,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `ingest requeue`.
#[derive(Args)]
pub struct RequeueArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// The system whose quarantine is read again.
    #[arg(long, value_name = "NAME")]
    system: String,
    #[command(flatten)]
    mapping: super::ingest_parse::MappingArgs,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads quarantined lines again.
pub fn requeue(args: &RequeueArgs, ui: &Ui) -> Outcome {
    let mut mapper = args.mapping.mapper(false)?;
    let mut store = Store::open(&args.store)?;
    let done = demi_ingest::requeue(&mut store, &args.system, mapper.as_mut())?;
    if args.json {
        ui.json(&done)?;
    } else {
        ui.result(&format!(
            "{}: {} lines in quarantine; {} events added, {} there already, {} lines that are none, {} stay",
            args.system, done.rows, done.added, done.duplicates, done.skipped, done.kept
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the daemon until it is told to stop.
pub fn serve(args: &ServeArgs, ui: &Ui) -> Outcome {
    let config = Config::read(&args.config)?;
    daemon::start_log(&config.daemon)?;
    let stopped = daemon::run(&config, |started| {
        for (name, address) in &started.addresses {
            ui.result(&format!("{name} {address}"));
        }
        ui.result("ready");
    })?;
    if stopped == Stopped::LeftInSpool {
        ui.note("stopped before everything was in the store; the rest is in the spool and goes there at the next start");
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks a configuration file and the files it names.
pub fn validate(args: &ValidateArgs, ui: &Ui) -> Outcome {
    let config = Config::read(&args.config)?;
    daemon::check(&config)?;
    let found: Vec<String> =
        config.sources.iter().map(|(name, source)| format!("{name} (system {})", source.system)).collect();
    ui.result(&format!("{}: fine; sources: {}", args.config.display(), found.join(", ")));
    Ok(ExitCode::SUCCESS)
}

/// Prints what is complete.
pub fn status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let store = Store::open(&args.store)?;
    let rows = daemon::status(&store, args.system.as_deref())?;
    if args.json {
        ui.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut from = 0;
    while from < rows.len() {
        let system = &rows[from].system;
        let to = from + rows[from..].iter().take_while(|row| row.system == *system).count();
        ui.result(&system_text(&rows[from..to]));
        from = to;
    }
    Ok(ExitCode::SUCCESS)
}

fn system_text(rows: &[LedgerRow]) -> String {
    let lives: Vec<_> = rows.iter().map(|row| row.life.clone()).collect();
    let events: u64 = lives.iter().map(|life| life.events).sum();
    let missing: u64 = lives.iter().map(|life| life.missing).sum();
    let title = format!("{}: {events} events, {missing} missing", rows[0].system);
    format!("{title}\n\n{}\n", super::ingest::table(&lives))
}

/// Prints what a restart would lose or repeat. Exit status 1 if something is lost.
pub fn verify(args: &VerifyArgs, ui: &Ui) -> Outcome {
    let found = daemon::verify(&args.store, &args.spool)?;
    if args.json {
        ui.json(&found)?;
    } else {
        ui.result(&verify_text(&found));
    }
    Ok(if found.losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verify_text(found: &Verified) -> String {
    let mut out = format!(
        "spool: frames up to {}, in the store up to {}; a restart takes in {} frames ({} lines)\n",
        found.spooled, found.committed, found.pending_frames, found.pending_lines
    );
    if found.torn_bytes > 0 {
        out.push_str(&format!(
            "{} bytes at its end were never acknowledged and will be cut off\n",
            found.torn_bytes
        ));
    }
    for source in &found.sources {
        out.push_str(&format!("source {}: in the store up to frame {}\n", source.source, source.committed));
    }
    for file in &found.positions {
        let unread = match file.unread {
            Some(0) => "read to its end".to_owned(),
            Some(n) => format!("{n} bytes to read"),
            None => "not there any more, or packed".to_owned(),
        };
        out.push_str(&format!("{} {}: at byte {}, {unread}\n", file.source, file.path, file.offset));
    }
    for warning in &found.warnings {
        out.push_str(&format!("note: {warning}\n"));
    }
    for loss in &found.losses {
        out.push_str(&format!("LOST: {loss}\n"));
    }
    out.push_str(match found.losses.is_empty() {
        true => "a restart loses nothing and repeats nothing",
        false => "something is lost",
    });
    out
}
