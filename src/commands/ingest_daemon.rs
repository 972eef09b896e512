//! `demi-lineage ingest serve`, `validate` and `verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use demi_daemon::config::DaemonConfig;
use demi_daemon::{Config, Stopped, Verified};

use super::Outcome;
use demi_commands::ui::Ui;

/// The configuration file, which `serve` and `validate` take alike.
#[derive(Args)]
pub struct ConfigArgs {
    /// Configuration file (TOML).
    #[arg(value_name = "FILE", required_unless_present = "config", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The same, by name.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    fn path(&self) -> Result<&Path, &'static str> {
        self.file.as_deref().or(self.config.as_deref()).ok_or("name a configuration file")
    }
}

/// Arguments of `ingest verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// Directory of the spool.
    #[arg(long, value_name = "DIR")]
    spool: PathBuf,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the daemon until it is told to stop.
pub fn serve(args: &ConfigArgs, ui: &Ui) -> Outcome {
    let config = Config::read(args.path()?)?;
    demi_daemon::start_log(&config.daemon)?;
    let stopped = demi_daemon::run(&config, args.path()?, |started| {
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
pub fn validate(args: &ConfigArgs, ui: &Ui) -> Outcome {
    let config = Config::read(args.path()?)?;
    // What is doubtful, and not refused, is a warning of the log.
    let log = DaemonConfig { log: "warn".to_owned(), log_json: false, ..DaemonConfig::default() };
    demi_daemon::start_log(&log)?;
    demi_daemon::check(&config)?;
    let found: Vec<String> =
        config.sources.iter().map(|(name, source)| format!("{name} (system {})", source.system)).collect();
    ui.result(&format!("{}: fine; sources: {}", args.path()?.display(), found.join(", ")));
    let watched: Vec<String> =
        config.monitors.iter().map(|(name, m)| format!("{name} (system {})", m.system)).collect();
    if !watched.is_empty() {
        ui.result(&format!("monitors: {}", watched.join(", ")));
    }
    if config.incidents.is_some() {
        let named = |names: Vec<&String>| match names.is_empty() {
            true => "none".to_owned(),
            false => names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        let (models, receivers) = (config.models.models.keys(), config.receivers.keys());
        let (models, receivers) = (named(models.collect()), named(receivers.collect()));
        ui.result(&format!("incidents: models: {models}; receivers: {receivers}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what a restart would lose or repeat. Exit status 1 if something is lost.
pub fn verify(args: &VerifyArgs, ui: &Ui) -> Outcome {
    let found = demi_daemon::verify(&args.store, &args.spool)?;
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
            "{} bytes at its end are no whole frame, and nothing says that they were acknowledged: they will be cut off\n",
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
