//! `demi-lineage fuzz`: random runs of a model until one breaks an invariant, written as production would log it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use demi_common::{Kind, owned, path_name};
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::FuzzSummary;
use demi_schemas::{NetworkRule, Scenario};

use crate::Outcome;
use crate::files::{read_scenario, write_folder};
use crate::ui::Ui;

/// Arguments of `fuzz`.
#[derive(clap::Args, Debug)]
pub struct FuzzArgs {
    /// The scenario file.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// The seed of all random choices: the same seed writes the same files.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Largest number of runs.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Largest number of deliveries in a run.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    deliveries: u64,
    /// Client messages in a run; replaces the scenario's number.
    #[arg(long, value_name = "N")]
    externals: Option<u32>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    network: Option<NetworkRule>,
    /// The folder for logs, schedule, scenario and summary; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
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
pub fn run(args: FuzzArgs, models: &impl Registry, ui: &Ui) -> Outcome {
    let mut scenario = read_scenario(&args.scenario)?;
    let mut text = fs::read_to_string(&args.scenario)?;
    if let Some(rule) = args.network.filter(|&rule| rule != scenario.network) {
        scenario.network = rule;
        text = scenario.to_text();
    }
    owned::check(&args.out, Kind::Fuzzed, &[&args.scenario])?;
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
        !stop.load(Ordering::Relaxed) && models.fault().is_none()
    };
    let search = Search { scenario: &scenario, options, progress: &mut progress };
    let found = models.visit(&scenario, search).map_err(|e| format!("{}: {e}", args.scenario.display()));
    bar.finish_and_clear();
    let found = found??;

    let summary = summarize(&args, &scenario, found.as_ref(), made);
    if let Some(found) = &found {
        let files = files(found, text, &summary)?;
        let files: Vec<(&str, String)> =
            files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        write_folder(&args.out, Kind::Fuzzed, &[&args.scenario], &files)?;
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

/// The files to write, with their paths.
fn files(
    found: &Found,
    scenario: String,
    summary: &FuzzSummary,
) -> Result<Vec<(String, String)>, serde_json::Error> {
    let mut files = Vec::new();
    for (actor, records) in &found.records {
        let mut text = String::new();
        for record in records {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        files.push((format!("logs/{}.jsonl", path_name(actor)), text));
    }
    files.push(("schedule.jsonl".into(), found.schedule.to_text()));
    files.push(("scenario.toml".into(), scenario));
    files.push(("summary.json".into(), serde_json::to_string_pretty(summary)? + "\n"));
    Ok(files)
}
