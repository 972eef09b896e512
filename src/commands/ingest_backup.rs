//! `demi-lineage ingest backup` and `restore`: copies of a store.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
#[cfg(feature = "daemon")]
use demi_daemon::{Idle, Restored, saved_positions};
use demi_store::{Copied, Store, back_up};
use serde::Serialize;

use super::Outcome;
#[cfg(not(feature = "daemon"))]
use super::spool_without_daemon::{Idle, Restored, saved_positions};
use demi_commands::ui::Ui;

/// The folder of a backup with what spools said of their sources.
const SPOOLS: &str = "spools";

/// Arguments of `ingest backup`.
#[derive(Args)]
pub struct BackupArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// The folder of the backup: absent, empty, or an earlier backup of the store, to which only what is new is added.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The spool of a daemon that writes into the store: the backup remembers where its sources stood. May be given several times.
    #[arg(long, value_name = "DIR")]
    spool: Vec<PathBuf>,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `ingest restore`.
#[derive(Args)]
pub struct RestoreArgs {
    /// The folder of a backup. Without it the store stands there already, restored by other means, and only spools are told.
    #[arg(value_name = "BACKUP")]
    backup: Option<PathBuf>,
    /// Directory of the event store; absent or empty where a backup is restored.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// The spool of a daemon that wrote into the store and will do so again. No daemon may be using it. May be given several times.
    #[arg(long, value_name = "DIR")]
    spool: Vec<PathBuf>,
    /// Give up the store that a daemon made in the place of this one while it was gone, and to which the frames of the spools went since.
    #[arg(long, requires = "spool")]
    instead: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

/// The outcome of `ingest restore`.
#[derive(Serialize)]
struct RestoreReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    copied: Option<Copied>,
    spools: Vec<SpoolReport>,
}

/// What a spool was told.
#[derive(Serialize)]
struct SpoolReport {
    path: PathBuf,
    #[serde(flatten)]
    restored: Restored,
}

/// Makes a backup.
pub fn backup(args: &BackupArgs, ui: &Ui) -> Outcome {
    // Before the store is read: what its positions say is in the store then.
    let mut positions = Vec::new();
    for spool in &args.spool {
        positions.push(saved_positions(spool)?);
    }
    let bar = ui.progress();
    bar.set_message("copying the store");
    let copied = back_up(&args.store, &args.out);
    bar.finish_and_clear();
    let copied = copied?;
    for (id, text) in positions {
        demi_common::durable::write(&of_spool(&args.out, id), &text)?;
    }
    if args.json {
        ui.json(&copied)?;
    } else {
        let Copied { files, bytes, there, removed, .. } = &copied;
        let removed = if *removed > 0 {
            format!(", {removed} removed that the store has no more")
        } else {
            String::new()
        };
        ui.result(&format!(
            "{}: {files} files, {bytes} bytes; {there} of them were there already{removed}",
            args.out.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Restores a backup.
pub fn restore(args: &RestoreArgs, ui: &Ui) -> Outcome {
    let mut spools = Vec::new();
    for spool in &args.spool {
        spools.push((spool.clone(), Idle::take(spool)?));
    }
    // Before anything is copied: a store that is there is in the way of the next try.
    if !args.instead && !spools.is_empty() {
        let store = Store::open(args.backup.as_deref().unwrap_or(&args.store))?;
        spools.iter().try_for_each(|(_, spool)| spool.fits(&store))?;
    }
    let copied = match &args.backup {
        Some(backup) => {
            let bar = ui.progress();
            bar.set_message("copying the backup");
            let copied = demi_store::restore(backup, &args.store);
            bar.finish_and_clear();
            Some(copied?)
        }
        None => None,
    };
    let store = Store::open(&args.store)?;
    let mut report = RestoreReport { copied, spools: Vec::new() };
    for (path, spool) in spools {
        let id = spool.id()?;
        let at_backup = match &args.backup {
            Some(backup) => read(&of_spool(backup, id))?,
            None => None,
        };
        let restored = spool.restored(&store, at_backup.as_deref())?;
        store.note_spool(&path)?;
        report.spools.push(SpoolReport { path, restored });
    }
    if args.json {
        ui.json(&report)?;
    } else {
        if let Some(Copied { files, bytes, .. }) = &report.copied {
            ui.result(&format!("{}: {files} files, {bytes} bytes", args.store.display()));
        }
        report.spools.iter().for_each(|spool| ui.result(&text(spool)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a backup keeps the positions of a spool.
fn of_spool(backup: &Path, id: u64) -> PathBuf {
    backup.join(SPOOLS).join(format!("{id:016x}.json"))
}

fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match demi_common::regular::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn text(spool: &SpoolReport) -> String {
    let SpoolReport { path, restored } = spool;
    let Restored { committed, was_committed, again, lost } = restored;
    let path = path.display();
    let mut text = format!("{path}: the store has frames up to {committed}");
    if was_committed > committed {
        text.push_str(&format!(" (it had {was_committed}); the daemon takes {again} from the spool"));
    }
    if let Some((first, last)) = lost {
        text.push_str(&format!(
            "\n{path}: frames {first} to {last} are neither in the store nor in the spool: files are read again from where they stood; what came \
             by a connection has to be sent again"
        ));
    }
    text
}
