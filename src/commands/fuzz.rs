//! `demi-lineage fuzz`: random runs of a model until one breaks an invariant, written as production would log it.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::models::{Visitor, with_model};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::FuzzSummary;
use demi_schemas::{NetworkRule, Scenario};

use super::Outcome;
use crate::ui::Ui;

/// Arguments of `fuzz`.
#[derive(clap::Args, Debug)]
pub struct FuzzArgs {
    /// The scenario file.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// Decides everything that is random: the same seed writes the same files.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Runs to make at most.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Deliveries a run at most.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    deliveries: u64,
    /// Client messages a run, instead of the scenario's number.
    #[arg(long, value_name = "N")]
    externals: Option<u32>,
    /// The network rule, instead of the scenario's: unordered, fifo-loss or fifo.
    #[arg(long, value_name = "RULE")]
    network: Option<NetworkRule>,
    /// The folder to write logs, scenario and summary to; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Why `fuzz` failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot {what} {path}")]
    Io {
        what: &'static str,
        path: String,
        source: io::Error,
    },
    #[error("{0} is not empty and was not written by fuzz: name another folder")]
    Foreign(String),
    #[error("{path}: {source}")]
    Scenario { path: String, source: demi_schemas::ScenarioError },
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::Io { what, path, source }
}

/// Makes the runs with whichever model the scenario names.
struct Search<'a> {
    scenario: &'a Scenario,
    options: FuzzOptions,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Visitor for Search<'_> {
    type Output = Result<Option<Found>, FuzzError>;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        fuzz(&mut simulator, self.scenario, &self.options, self.progress)
    }
}

/// Runs `fuzz`.
pub fn run(args: FuzzArgs, ui: &Ui) -> Outcome {
    let text = fs::read_to_string(&args.scenario).map_err(io_error("read", &args.scenario))?;
    let in_file = |source| Error::Scenario { path: args.scenario.display().to_string(), source };
    let mut scenario = Scenario::parse(&text).map_err(in_file)?;
    let text = match args.network {
        Some(rule) if rule != scenario.network => {
            scenario.network = rule;
            scenario.to_text()
        }
        _ => text,
    };
    refuse_foreign(&args.out)?;
    let options = FuzzOptions {
        seed: args.seed,
        runs: args.runs,
        deliveries: args.deliveries,
        externals: args.externals,
    };

    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    let bar = ui.progress();
    let start = Instant::now();
    let mut made = (0, 0);
    let mut progress = |runs: u64, executed: u64| {
        made = (runs, executed);
        let rate = executed as f64 / start.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{runs} of {} runs, {executed} deliveries, {rate:.0}/s", args.runs));
        !stop.load(Ordering::Relaxed)
    };
    let search = Search { scenario: &scenario, options, progress: &mut progress };
    let found = with_model(&scenario, search).map_err(in_file);
    bar.finish_and_clear();
    let found = found??;

    let summary = summarize(&args, &scenario, found.as_ref(), made);
    if let Some(found) = &found {
        write_logs(&args.out, found, &text, &summary)?;
    }
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, &args.out));
    }
    if found.is_none() && stop.load(Ordering::Relaxed) {
        ui.note("interrupted: not all runs were made");
    }
    Ok(ExitCode::from(u8::from(found.is_none())))
}

fn summarize(args: &FuzzArgs, scenario: &Scenario, found: Option<&Found>, made: (u64, u64)) -> FuzzSummary {
    let run = found.map(|f| f.run);
    FuzzSummary {
        found: found.is_some(),
        violation: found.map(|f| f.violation.clone()).unwrap_or_default(),
        affected: found.map(|f| f.affected.clone()).unwrap_or_default(),
        seed: args.seed,
        run: run.unwrap_or(0),
        runs: run.map_or(made.0, |run| run + 1),
        deliveries: found.map_or(0, |f| f.deliveries),
        externals: found.map_or(0, |f| f.externals),
        executed: found.map_or(made.1, |f| f.executed),
        network: scenario.network,
    }
}

fn describe(s: &FuzzSummary, out: &Path) -> String {
    if !s.found {
        return format!("no violation in {} runs ({} deliveries, {})", s.runs, s.executed, s.network);
    }
    format!(
        "{} at {}\nrun {} of seed {}: {} deliveries, {} externals ({}); {} deliveries in all\nwrote {}",
        s.violation.join(", "),
        s.affected.join(", "),
        s.run,
        s.seed,
        s.deliveries,
        s.externals,
        s.network,
        s.executed,
        out.display(),
    )
}

/// Refuses a folder that has something in it that `fuzz` did not write.
fn refuse_foreign(out: &Path) -> Result<(), Error> {
    let mut entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("open", out)(error)),
    };
    let ours = ["logs", "scenario.toml", "summary.json"];
    let foreign = entries.any(|e| e.is_ok_and(|e| !ours.iter().any(|&name| e.file_name() == *name)));
    let complete = || out.join("logs").is_dir() && out.join("summary.json").is_file();
    let empty = fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if foreign || !(empty || complete()) {
        return Err(Error::Foreign(out.display().to_string()));
    }
    Ok(())
}

/// Writes everything beside `out` and then puts it in its place.
fn write_logs(out: &Path, found: &Found, scenario: &str, summary: &FuzzSummary) -> Result<(), Error> {
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(io_error("create", parent))?;
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = parent.join(format!(".{name}.{}.tmp", std::process::id()));
    let result = fill(&temporary, found, scenario, summary).and_then(|()| {
        refuse_foreign(out)?;
        if out.exists() {
            fs::remove_dir_all(out).map_err(io_error("replace", out))?;
        }
        fs::rename(&temporary, out).map_err(io_error("write", out))
    });
    if result.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    result
}

fn fill(dir: &Path, found: &Found, scenario: &str, summary: &FuzzSummary) -> Result<(), Error> {
    let logs = dir.join("logs");
    fs::create_dir_all(&logs).map_err(io_error("create", &logs))?;
    for (actor, records) in &found.records {
        let path = logs.join(format!("{}.jsonl", file_name(actor)));
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(fs::File::create_new(&path)?);
            for record in records {
                serde_json::to_writer(&mut file, record)?;
                file.write_all(b"\n")?;
            }
            file.flush()
        };
        write().map_err(io_error("write", &path))?;
    }
    let path = dir.join("scenario.toml");
    fs::write(&path, scenario).map_err(io_error("write", &path))?;
    let path = dir.join("summary.json");
    let text = serde_json::to_string_pretty(summary).unwrap_or_default() + "\n";
    fs::write(&path, text).map_err(io_error("write", &path))
}

/// An actor's name as part of a path: all but letters, digits and `._-$` is percent-encoded, and a dot in front.
fn file_name(actor: &str) -> String {
    let mut name = String::new();
    for (at, &byte) in actor.as_bytes().iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"_-$".contains(&byte) || (byte == b'.' && at > 0);
        if plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_actors_are_no_paths() {
        assert_eq!(file_name("raft-member-1"), "raft-member-1");
        assert_eq!(file_name("../../etc/x"), "%2E.%2F..%2Fetc%2Fx");
        assert_eq!(file_name("a b$1.é"), "a%20b$1.%C3%A9");
    }
}
