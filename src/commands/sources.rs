//! Which files a command reads, and what is said of them.

use std::path::PathBuf;

use demi_ingest::{IngestError, Plan, Sources};

use demi_lineage::ui::Ui;

/// Most files that are named in a note.
const MOST_NAMES: usize = 10;

/// What the paths name. Files that are left out are told, and logs that were rotated.
pub fn planned(paths: &[String], ui: &Ui) -> Result<Sources, IngestError> {
    let plan = Plan::of(paths)?;
    for log in plan.rotated() {
        ui.note(&format!("read as one log, oldest first: {}", names(log)));
    }
    if let left_out @ [_, ..] = plan.left_out() {
        let n = left_out.len();
        let (files, are, them) = if n == 1 { ("file", "is", "it") } else { ("files", "are", "them") };
        ui.note(&format!(
            "left out: {n} {files} that {are} no log by name: {}; to load {them}, name {them}",
            names(left_out)
        ));
    }
    Ok(plan.sources())
}

/// The first few paths.
fn names(paths: &[PathBuf]) -> String {
    let mut text: Vec<String> = paths
        .iter()
        .take(MOST_NAMES)
        .map(|path| path.display().to_string().escape_debug().to_string())
        .collect();
    if paths.len() > MOST_NAMES {
        text.push(format!("and {} more", paths.len() - MOST_NAMES));
    }
    text.join(", ")
}
