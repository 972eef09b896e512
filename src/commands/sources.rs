//! Which files a command reads, and what is said of them.

use std::path::PathBuf;
use std::time::Duration;

use demi_formats::mapping::Container;
use demi_formats::{Encoding, Plan, ReadError, Share, Sources, likely_reason};
use demi_store::Progress;

use demi_commands::ui::Ui;

/// Most files that are named in a note.
const MOST_NAMES: usize = 10;

/// What the paths name. Files that are left out are told, and logs that were rotated.
pub fn planned(paths: &[String], ui: &Ui) -> Result<Sources, ReadError> {
    let plan = Plan::of(paths)?;
    for log in plan.rotated() {
        ui.note(&format!("read as one log, oldest first: {}", names(log)));
    }
    if let copies @ [_, ..] = plan.copies() {
        let told = |(copy, of): &(PathBuf, PathBuf)| {
            let [copy, of] = [copy, of].map(|path| path.display().to_string().escape_debug().to_string());
            format!("{copy} (as {of})")
        };
        let mut told: Vec<String> = copies.iter().take(MOST_NAMES).map(told).collect();
        if copies.len() > MOST_NAMES {
            told.push(format!("and {} more", copies.len() - MOST_NAMES));
        }
        ui.note(&format!("not read twice: {}", told.join(", ")));
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

/// Why nothing was taken, told from the first file. Standard input was read and is gone.
pub fn why_nothing(
    paths: &[String],
    encoding: Option<Encoding>,
    container: Container,
    wrapped: bool,
) -> Option<String> {
    let paths: Vec<String> = paths.iter().filter(|path| *path != "-").cloned().collect();
    let sources = Sources::plan(&paths).ok()?.decoded(encoding);
    likely_reason(sources.0.into_iter().next()?, container, wrapped)
}

/// How far the reading is.
pub fn progress_line(now: &Progress, share: &Share, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let megabytes = now.bytes as f64 / 1e6;
    let part = share.part().map_or_else(String::new, |part| format!("{:.0} %, ", part * 100.0));
    format!(
        "{part}{} lines ({:.0}/s), {megabytes:.0} MB ({:.0} MB/s), {} added, reading {}",
        now.lines,
        now.lines as f64 / seconds,
        megabytes / seconds,
        now.added,
        now.source
    )
}
