//! What people name on the command line, told in their words where a command wants something else.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use demi_common::regular;
use demi_common::text::shell_word;
use demi_lineage::execution::is_execution;
use serde_json::Value;

use crate::files::opened;
use crate::ui::program;

/// What a command wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A schedule, or a folder with one: to replay, to minimize.
    Schedule,
    /// A folder with claims: to verify.
    Claims,
    /// An execution or a result: to show, to export.
    Shown,
    /// An execution or a store: to ask about order.
    Order,
}

impl Wanted {
    fn in_words(self) -> &'static str {
        match self {
            Wanted::Schedule => {
                "an execution, a schedule (*.jsonl), or a folder written by fuzz, minimize or explore"
            }
            Wanted::Claims => "a folder written by minimize or explore",
            Wanted::Shown => {
                "an execution (from build), a folder written by minimize, explore or fuzz, or a schedule (*.jsonl) in it"
            }
            Wanted::Order => "an execution (from build) or an event store",
        }
    }
}

/// What is found under a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Store,
    Execution,
    Minimized,
    Explored,
    Fuzzed,
    Threads,
    Logs,
    Folder,
    Log,
    Schedule,
    CutOff,
    Scenario,
    Json,
    Text,
    Binary,
}

impl Found {
    fn at(path: &Path) -> Found {
        match path.metadata() {
            Err(_) => Found::Nothing,
            Ok(found) if found.is_dir() => Found::folder(path),
            Ok(_) => Found::file(path),
        }
    }

    fn folder(path: &Path) -> Found {
        let has = |name: &str| path.join(name).exists();
        let holds = |endings: &[&str]| {
            let names =
                std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            names.into_iter().any(|name| {
                let name = name.to_string_lossy();
                let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
                endings.iter().any(|ending| name.ends_with(ending))
            })
        };
        match path {
            _ if has("events/_delta_log") => Found::Store,
            _ if is_execution(path) => Found::Execution,
            _ if has("certificate.json") => Found::Minimized,
            _ if has("summary.json") && has("scenario.toml") => {
                let text = regular::read(&path.join("summary.json")).unwrap_or_default();
                let summary: Value = serde_json::from_slice(&text).unwrap_or_default();
                if summary.get("findings").is_some() { Found::Explored } else { Found::Fuzzed }
            }
            _ if holds(&[".summary.json"]) => Found::Threads,
            _ if holds(&[".jsonl", ".ndjson", ".log"]) => Found::Logs,
            _ => Found::Folder,
        }
    }

    fn file(path: &Path) -> Found {
        /// A longer first line is none of what is known here.
        const MOST: u64 = 1 << 20;
        let Ok(file) = opened(path) else { return Found::Text };
        let mut line = Vec::new();
        if BufReader::new(file).take(MOST).read_until(b'\n', &mut line).is_err() || line.contains(&0) {
            return Found::Binary;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(value)
                if value["schema"].as_str().is_some_and(|schema| schema.starts_with("demi-schedule/")) =>
            {
                Found::Schedule
            }
            Ok(value) if value.get("actor").is_some() && value.get("kind").is_some() => Found::Log,
            // A schedule that somebody wrote may have no header.
            Ok(value) if value.get("kind").is_some() => Found::Schedule,
            Ok(_) => Found::Json,
            Err(error) if error.is_eof() && line.starts_with(b"{") && !line.ends_with(b"\n") => Found::CutOff,
            Err(_) if line.starts_with(b"{") || line.starts_with(b"[") => Found::Json,
            Err(_) if path.extension().is_some_and(|ending| ending == "toml") => Found::Scenario,
            Err(_) if std::str::from_utf8(&line).is_err() => Found::Binary,
            Err(_) => Found::Text,
        }
    }

    /// Whether it may be what is wanted; what is wrong with it then is another matter.
    fn may_be(self, wanted: Wanted) -> bool {
        use Found::{CutOff, Execution, Explored, Fuzzed, Minimized, Schedule, Store};
        match wanted {
            Wanted::Schedule => matches!(self, Execution | Minimized | Explored | Fuzzed | Schedule | CutOff),
            Wanted::Claims => matches!(self, Minimized | Explored | Fuzzed),
            Wanted::Shown => matches!(self, Execution | Minimized | Explored | Fuzzed | Schedule),
            Wanted::Order => matches!(self, Execution | Store),
        }
    }
}

/// Says what a path is and what to do, where it is not what a command wants.
///
/// # Errors
/// Where it is something else.
pub fn expect(path: &Path, wanted: Wanted) -> Result<(), String> {
    let found = Found::at(path);
    if found.may_be(wanted) {
        return Ok(());
    }
    let text = path.display().to_string();
    let (here, program) = (shell_word(&text), program());
    let build = |of: &str| format!("{program} build {of} --out EXEC");
    let (is, then) = match found {
        Found::Nothing => return Err(format!("{text}: there is no such file or folder")),
        Found::Store if wanted == Wanted::Claims => ("is an event store", None),
        Found::Store => (
            "is an event store",
            Some(format!("build an execution from it: {}", build(&format!("--store {here} --system NAME")))),
        ),
        Found::Execution => ("is an execution, which claims nothing", None),
        Found::Minimized => ("is a result of minimize", None),
        Found::Explored => ("is a result of explore", None),
        Found::Fuzzed => ("is a run found by fuzz", None),
        Found::Threads if wanted == Wanted::Claims => (
            "has what tests of threads came to",
            Some(format!("check that with: demi-lineage threads verify {here}")),
        ),
        Found::Threads => (
            "has what tests of threads came to",
            Some(format!("print that with: demi-lineage threads show {here}")),
        ),
        Found::Logs if wanted == Wanted::Claims => ("is a folder of logs", None),
        Found::Logs => {
            ("is a folder of logs", Some(format!("build an execution from them: {}", build(&here))))
        }
        Found::Log if wanted == Wanted::Claims => ("is a log", None),
        Found::Log => ("is a log", Some(format!("build an execution from it: {}", build(&here)))),
        Found::Schedule => ("is a schedule", None),
        Found::CutOff => ("is cut off in its first line", None),
        Found::Scenario => ("is a TOML file", None),
        Found::Text if wanted != Wanted::Claims => (
            "is a text file",
            Some(format!(
                "if it is a log, build an execution from it with a mapping (`{program} ingest mappings` lists them): {} --mapping MAPPING",
                build(&here)
            )),
        ),
        Found::Text => ("is a text file", None),
        Found::Json => ("is a JSON file of another kind", None),
        Found::Folder => ("is a folder without anything that this program wrote", None),
        Found::Binary => ("is no text", None),
    };
    let then = then.map(|then| format!("; {then}")).unwrap_or_default();
    Err(format!("{text} {is}, and what is wanted here is {}{then}", wanted.in_words()))
}
