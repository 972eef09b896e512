//! Which programs the scenarios of folders may start.
//!
//! A scenario may name a program that is its model. Whoever gives the scenario on the command line means that program. The scenario in a folder
//! that somebody sent means whatever its sender wants, so its program runs only if this user's own commands wrote just this folder with just
//! this program before, or the user says so. What they wrote is remembered in the user's state folder.

use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use demi_common::regular;
use demi_common::text::{printable, shell_words};
use demi_schemas::{ChildModel, Scenario};
use serde_json::json;

use crate::files::read_scenario;
use crate::tolerance::InChild;
use crate::ui::Ui;

/// Arguments of commands that read the scenario of a folder.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct RunArgs {
    /// Start the program that the scenario in the folder names as its model, even if another user made the folder.
    #[arg(long)]
    pub run_command: bool,
    /// Whether handlers run in a process of their own first.
    #[command(flatten)]
    pub in_child: InChild,
}

/// Reads the scenario that lies in a folder. Where its model is a program that the user did not ask for, it is shown and asked for.
///
/// # Errors
/// When the file cannot be read, or the program may not run.
pub fn scenario_of(folder: &Path, args: RunArgs, ui: &Ui) -> Result<Scenario, Box<dyn Error>> {
    let path = folder.join("scenario.toml");
    let scenario = read_scenario(&path)?;
    let Some(child) = scenario.model.child() else { return Ok(scenario) };
    let here = std::env::current_dir().map_err(|e| format!("the present folder: {e}"))?;
    if args.run_command || is_known(folder, child, &here) {
        return Ok(scenario);
    }
    let what = match &child.socket {
        Some(socket) => format!("{} has its model at the socket {}", path.display(), printable(socket)),
        None => format!("{} starts a program as its model: {}", path.display(), shell_words(&child.command)),
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(format!(
            "{what}; this user did not make this folder with it, so it is not run: --run-command runs it, if you trust it"
        )
        .into());
    }
    if !asked(&format!("{what}\nRun it in {}? [y/N] ", here.display()), ui)? {
        return Err(format!("{what}; it is not run").into());
    }
    remember(folder, child, &here, ui);
    Ok(scenario)
}

/// Asks on the terminal.
fn asked(question: &str, ui: &Ui) -> Result<bool, Box<dyn Error>> {
    ui.ask(question);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Notes that this user's command wrote the folder with the program of this scenario, which starts in the present folder. Where that
/// cannot be noted, it is asked for later.
pub fn wrote(folder: &Path, scenario: &Scenario, ui: &Ui) {
    if let (Some(child), Ok(here)) = (scenario.model.child(), std::env::current_dir()) {
        remember(folder, child, &here, ui);
    }
}

/// As [`wrote`], of a program that starts in the folder itself.
pub fn wrote_project(folder: &Path, scenario: &Scenario, ui: &Ui) {
    if let Some(child) = scenario.model.child() {
        remember(folder, child, folder, ui);
    }
}

fn remember(folder: &Path, child: &ChildModel, here: &Path, ui: &Ui) {
    let Some((place, text)) = entry(folder, child, here) else { return };
    if let Err(error) = write(&place, &text) {
        let (folder, place) = (folder.display(), place.display());
        ui.note(&format!("note: that you made {folder} is not remembered: {place}: {error}"));
    }
}

/// From so many entries on, those are removed whose folder is gone.
const MANY: usize = 1000;

fn forget_gone(folder: &Path) -> std::io::Result<()> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    if entries.len() < MANY {
        return Ok(());
    }
    for entry in entries {
        let known: Option<serde_json::Value> =
            regular::read(&entry).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let place = known.as_ref().and_then(|known| known["folder"].as_str());
        if place.is_none_or(|place| !Path::new(place).exists()) {
            std::fs::remove_file(entry)?;
        }
    }
    Ok(())
}

fn write(place: &Path, text: &str) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    // Nothing depends on it.
    let _ = forget_gone(folder);
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.create(folder)?;
    demi_common::durable::replace(place, |file| -> Result<(), std::io::Error> {
        file.write_all(text.as_bytes())
    })
}

fn is_known(folder: &Path, child: &ChildModel, here: &Path) -> bool {
    let Some((place, text)) = entry(folder, child, here) else { return false };
    std::fs::read_to_string(place).is_ok_and(|known| known == text)
}

/// Where it stands that a program may run for a folder, and what stands there. `None` where there is no place.
fn entry(folder: &Path, child: &ChildModel, here: &Path) -> Option<(PathBuf, String)> {
    let place = folder.canonicalize().ok()?;
    // A program may have another name in another folder, so the folder that it is started in counts, too.
    let what = json!({
        "folder": place.to_str()?,
        "started_in": here.canonicalize().ok()?.to_str()?,
        "command": child.command,
        "socket": child.socket,
    });
    let text = format!("{what}\n");
    let name = blake3::hash(text.as_bytes()).to_hex();
    Some((state_folder()?.join("commands").join(name.as_str()), text))
}

/// The folder of what this user's commands remember.
fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("demi-lineage"))
}
