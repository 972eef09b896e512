//! `demi-lineage ingest delete`: events that are to be there no longer.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use demi_common::durable::sync_folder;
use demi_common::owned::{Kind, remove};
#[cfg(feature = "daemon")]
use demi_daemon::Idle;
use demi_incidents::{Anywhere, IncidentId, Place, forget};
use demi_store::{Deletion, Doomed, Store, Waiting};
use serde::Serialize;

use super::Outcome;
#[cfg(not(feature = "daemon"))]
use super::spool_without_daemon::Idle;
use demi_commands::ui::Ui;

/// The folder of a store in which monitors have executions built.
const VIOLATIONS: &str = "violations";
/// The file in the folder of a violation that says what was violated.
const TOLD: &str = "violation.json";
/// With what the names of folders in the making begin.
const STAGE: &str = ".demi-new-";

/// Arguments of `ingest delete`.
#[derive(Args)]
pub struct DeleteArgs {
    /// Directory of the event store.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// The system whose events are deleted. With only --before it is optional: the default is all systems.
    #[arg(long, value_name = "NAME", required_unless_present = "before")]
    system: Option<String>,
    /// Delete events before this day (UTC), as 2026-01-31. Events without a time stay.
    #[arg(long, value_name = "DATE", required_unless_present = "actor")]
    before: Option<chrono::NaiveDate>,
    /// Delete events of this actor; may be given several times. With --before, only those before that day.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "NAME", requires = "system")]
    actor: Vec<String>,
    /// A spool that holds events of the store. Spools of daemons that wrote to the store are known; may be given several times.
    #[arg(long, value_name = "DIR")]
    spool: Vec<PathBuf>,
    /// Forget incidents of the store as well that hold what is deleted: their executions, schedules and pages, and what the journal says of them.
    #[arg(long)]
    incidents: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

/// The outcome of deleting one system.
#[derive(Serialize)]
struct DeletionReport {
    #[serde(flatten)]
    deletion: Deletion,
    /// Records and lines that were deleted of spools.
    spooled: u64,
    /// Executions and results below the store that held events of the system and are removed.
    removed: Vec<PathBuf>,
    /// Incidents that hold deleted events and are forgotten.
    incidents: Vec<IncidentId>,
    /// What may hold deleted events and was not reached, and why.
    left: Vec<Unreached>,
}

/// A place that was not reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Unreached {
    path: PathBuf,
    reason: String,
}

/// Deletes.
pub fn delete(args: &DeleteArgs, ui: &Ui) -> Outcome {
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
    let copies = store.copies()?;
    let mut left = BTreeSet::new();
    let mut spools = Vec::new();
    for spool in &args.spool {
        spools.push((spool.clone(), Idle::take(spool)?));
    }
    let named: BTreeSet<PathBuf> = args.spool.iter().filter_map(|spool| spool.canonicalize().ok()).collect();
    for spool in copies.spools.iter().filter(|spool| !named.contains(*spool)) {
        match Idle::take(spool) {
            Ok(idle) => spools.push((spool.clone(), idle)),
            Err(error) => {
                let reason = format!("the spool cannot be reached: {error}");
                left.insert(Unreached { path: spool.clone(), reason });
            }
        }
    }
    for path in copies.executions.iter().filter(|path| path.exists()) {
        let reason =
            "an execution built from the store: remove it and everything made from it, or build it again";
        left.insert(Unreached { path: path.clone(), reason: reason.into() });
    }
    for path in copies.backups.iter().filter(|path| path.exists()) {
        let reason = "a backup of the store: remove it, or make it again";
        left.insert(Unreached { path: path.clone(), reason: reason.into() });
    }
    let mut done = Vec::new();
    for system in &systems {
        let bar = ui.progress();
        bar.set_message(format!("deleting from {}", system.escape_debug()));
        let one = one(&mut store, system, &doomed, &spools, &left);
        let one = one.and_then(|mut one| incidents(args, system, &mut one).map(|()| one));
        bar.finish_and_clear();
        done.push(one?);
    }
    if args.json {
        ui.json(&done)?;
    } else {
        done.iter().for_each(|one| ui.result(&text(one)));
    }
    let nothing = |one: &DeletionReport| one.deletion.events + one.deletion.quarantined + one.spooled == 0;
    if !args.actor.is_empty() && done.iter().all(nothing) {
        ui.note("nothing in the store or its spools is of these actors");
    }
    let not_reached: BTreeSet<&Unreached> = done.iter().flat_map(|one| &one.left).collect();
    for Unreached { path, reason } in not_reached {
        ui.note(&format!("not deleted from: {}: {reason}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes from one system: from the store first, so that nothing comes back from a spool.
fn one(
    store: &mut Store,
    system: &str,
    doomed: &Doomed,
    spools: &[(PathBuf, Idle)],
    left: &BTreeSet<Unreached>,
) -> Result<DeletionReport, Box<dyn Error>> {
    let mut waiting = Waiting::default();
    for (_, spool) in spools {
        spool.waiting(store, system, doomed, &mut waiting)?;
    }
    let deletion = demi_store::delete(store, system, doomed, &waiting)?;
    let mut left = left.clone();
    let mut spooled = 0;
    for (path, spool) in spools {
        let forgotten = spool.forget(system, doomed)?;
        spooled += forgotten.records;
        let reason = "it cannot be read, and may hold deleted events: remove it";
        let unread = forgotten.unread.into_iter().map(|name| path.join(name));
        left.extend(unread.map(|path| Unreached { path, reason: reason.into() }));
    }
    store.forget_order(system)?;
    let removed = if doomed.is_nothing() { Vec::new() } else { violations(store.dir(), system, &mut left)? };
    let left = left.into_iter().collect();
    Ok(DeletionReport { deletion, spooled, removed, incidents: Vec::new(), left })
}

/// Forgets the incidents that hold what was deleted, or tells of them. Which hold what happened before some day is not written down: those that were
/// opened before it are forgotten, and the others are told of.
fn incidents(args: &DeleteArgs, system: &str, done: &mut DeletionReport) -> Result<(), Box<dyn Error>> {
    let place = Place::of(&args.store);
    if !place.root().is_dir() && !place.is_far() {
        return Ok(());
    }
    let mut journal = Anywhere::journal(&place, "ingest delete")?;
    let of_system: BTreeSet<IncidentId> = forget::of_system(&journal.state(), system).into_iter().collect();
    let mut holding = of_system.clone();
    if !args.actor.is_empty() {
        holding.clear();
        for actor in &args.actor {
            holding.extend(forget::naming(&journal, &place, actor)?);
        }
        holding.retain(|id| of_system.contains(id));
    }
    let surely: BTreeSet<IncidentId> = match args.before {
        Some(day) => forget::before(&journal.state(), &day.to_string()).into_iter().collect(),
        None => holding.clone(),
    };
    let (going, staying): (Vec<IncidentId>, Vec<IncidentId>) =
        holding.into_iter().partition(|id| args.incidents && surely.contains(id));
    let reason = match args.incidents {
        true => "an incident that may hold events of before that day: demi-lineage incident purge",
        false => "an incident that may hold deleted events: --incidents forgets it",
    };
    done.left.extend(staying.iter().map(|id| Unreached { path: place.data(*id), reason: reason.to_owned() }));
    if !going.is_empty() {
        forget::purge(&mut journal, &place, &going, "ingest delete")?;
        // Executions that were told of may have been theirs.
        done.left.retain(|one| one.path.exists());
    }
    done.incidents = going;
    Ok(())
}

/// Removes what monitors had built of a system: each execution has a name of its own for the store's files as they were, or a copy.
fn violations(
    store: &Path,
    system: &str,
    left: &mut BTreeSet<Unreached>,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = store.join(VIOLATIONS);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut removed = Vec::new();
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    all.sort_unstable();
    for violation in all {
        let text = std::fs::read(violation.join(TOLD)).unwrap_or_default();
        let told: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        match told.get("system").and_then(serde_json::Value::as_str) {
            Some(of) if of == system => {}
            Some(_) => continue,
            None => {
                let reason = "its violation.json does not say of which system it is: remove it".into();
                left.insert(Unreached { path: violation, reason });
                continue;
            }
        }
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(&violation)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
        // The file that says whose it is goes last, so that this can be done again.
        entries.sort_unstable_by_key(|path| (path.ends_with(TOLD), path.clone()));
        let mut stays = false;
        for path in entries {
            if stays && path.ends_with(TOLD) {
                break;
            }
            if let Err(reason) = clear(&path) {
                stays = true;
                left.insert(Unreached { path, reason });
            }
        }
        if std::fs::read_dir(&violation)?.next().is_none() {
            std::fs::remove_dir(&violation)?;
            removed.push(violation);
        }
    }
    sync_folder(&folder)?;
    Ok(removed)
}

/// Removes what this program made in the folder of a violation.
///
/// # Errors
/// Why it is left alone.
fn clear(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let done = match &*name {
        "execution" => return remove(path, Kind::Execution).map_err(|error| error.to_string()),
        "minimized" => return remove(path, Kind::Minimized).map_err(|error| error.to_string()),
        // A minimization that was broken off left the last two.
        TOLD | "failed.txt" | "minimized.best.jsonl" | "minimized.reduced.jsonl" => {
            std::fs::remove_file(path)
        }
        _ if name.starts_with(STAGE) && path.is_dir() => std::fs::remove_dir_all(path),
        _ => return Err("this program did not write it".into()),
    };
    match done {
        // What was in the making is swept with what it was made beside.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn text(done: &DeletionReport) -> String {
    let DeletionReport { deletion, spooled, removed, .. } = done;
    let system = deletion.system.escape_debug();
    let mut text = format!("{system}: {} events deleted, {} stay", deletion.events, deletion.kept);
    if deletion.quarantined + deletion.quarantined_kept > 0 {
        text.push_str(&format!(
            "; {} quarantined lines deleted, {} stay",
            deletion.quarantined, deletion.quarantined_kept
        ));
    }
    if *spooled > 0 {
        text.push_str(&format!("; {spooled} lines deleted from the spool"));
    }
    if !done.incidents.is_empty() {
        text.push_str(&format!("; {} incidents are forgotten", done.incidents.len()));
    }
    for path in removed {
        text.push_str(&format!("\nremoved {}", path.display()));
    }
    text
}
