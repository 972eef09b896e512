//! `demi-lineage fuzz`: random runs of a model until one breaks an invariant, written as production would log it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use demi_common::{Kind, owned};
use demi_minimize::Budget;
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, Made, fuzz, healthy};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{FuzzSummary, ProgramWork};
use demi_schemas::{NetworkRule, Scenario};

use crate::Outcome;
use crate::files::{read_scenario, write_folder};
use crate::logs::logs;
use crate::minimize::{self, MinimizeArgs};
use crate::permission;
use crate::program;
use crate::status::{Expect, Status};
use crate::tolerance::Tolerance;
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
    /// The most runs to make.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// The time after which no further run begins, as 60s or 10m. How many runs that are depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// The most deliveries in a run.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    deliveries: u64,
    /// The fewest deliveries in a run that counts: runs that break an invariant sooner are skipped.
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_deliveries: u64,
    /// The number of client messages in a run; replaces the scenario's.
    #[arg(long, value_name = "N")]
    externals: Option<u32>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    network: Option<NetworkRule>,
    /// The folder for logs, schedule, scenario and summary; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Record in the logs the state of an actor after each handler that changed it.
    #[arg(long)]
    state: bool,
    /// Write the logs and schedules of N runs without a violation, each to a folder run-N of its own, for `infer`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["minimize", "expect"])]
    healthy: Option<u64>,
    /// Minimize the violation, as `minimize` does by default, and write the result to this folder.
    #[arg(long, value_name = "DIR")]
    minimize: Option<PathBuf>,
    /// The work that --minimize may do: time, replays or states, as in `minimize`.
    #[arg(long, value_name = "BUDGET", requires = "minimize", default_value = "60s")]
    budget: Budget,
    /// The outcome that counts as success in the exit status.
    #[arg(long, value_enum, default_value_t, value_name = "OUTCOME")]
    expect: Expect,
    /// Print the summary as JSON; with --minimize, the summary of the result is a second object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tolerance: Tolerance,
}

/// A time of the command line.
fn time(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(Budget::Seconds(seconds)) => {
            Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
        }
        _ => Err("a time is written as 60s or 10m".to_owned()),
    }
}

/// Makes the runs with whichever model the scenario names.
struct Search<'a> {
    scenario: &'a Scenario,
    options: FuzzOptions,
    progress: &'a mut dyn FnMut(Made) -> bool,
}

impl Visitor for Search<'_> {
    type Output = Result<Option<Found>, FuzzError>;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        fuzz(&mut simulator, self.scenario, &self.options, self.progress)
    }
}

/// Makes runs that break no invariant.
struct Healthy<'a> {
    scenario: &'a Scenario,
    options: FuzzOptions,
    wanted: u64,
    progress: &'a mut dyn FnMut(Made) -> bool,
}

impl Visitor for Healthy<'_> {
    type Output = Result<Vec<Found>, FuzzError>;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        healthy(&mut simulator, self.scenario, (&self.options, self.wanted), self.progress)
    }
}

/// Writes runs without a violation, each to a folder of its own; fewer than were asked for are a failure.
fn write_healthy(
    args: &FuzzArgs,
    scenario: &Scenario,
    text: String,
    (runs, made): (&[Found], Made),
    ui: &Ui,
) -> Outcome {
    let mut summary = summarize(args, scenario, None, made);
    summary.healthy = Some(runs.len() as u64);
    let mut files = vec![
        ("scenario.toml".to_owned(), text),
        ("summary.json".to_owned(), serde_json::to_string_pretty(&summary)? + "\n"),
    ];
    for (i, run) in runs.iter().enumerate() {
        let folder = format!("run-{:04}", i + 1);
        files.push((format!("{folder}/schedule.jsonl"), run.schedule.to_text()));
        files.extend(logs(run)?.into_iter().map(|(path, text)| (format!("{folder}/{path}"), text)));
    }
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    write_folder(&args.out, Kind::Fuzzed, &[&args.scenario], &files)?;
    permission::wrote(&args.out, scenario, ui);
    let (out, executed) = (args.out.display(), made.executed);
    match args.json {
        true => ui.json(&summary)?,
        false => ui.result(&format!(
            "{} runs without a violation, of {} made ({executed} deliveries, {}){}\nwrote {out}",
            runs.len(),
            made.runs,
            scenario.network,
            match made.broke {
                0 => String::new(),
                n => format!("; {n} broke an invariant and are not kept"),
            },
        )),
    }
    let fewer = args.healthy.is_some_and(|wanted| wanted > runs.len() as u64);
    Ok(ExitCode::from(u8::from(fewer)))
}

/// Runs `fuzz`.
pub fn run(args: FuzzArgs, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
    args.tolerance.apply(models);
    if args.min_deliveries > args.deliveries {
        let (least, most) = (args.min_deliveries, args.deliveries);
        return Err(format!("--min-deliveries {least} is more than a run has: --deliveries is {most}").into());
    }
    let mut scenario = read_scenario(&args.scenario)?;
    let mut text = fs::read_to_string(&args.scenario)?;
    let own = scenario.clone();
    args.tolerance.ask(&mut scenario);
    scenario.network = args.network.unwrap_or(scenario.network);
    if scenario != own {
        text = scenario.to_text();
    }
    owned::check(&args.out, Kind::Fuzzed, &[&args.scenario])?;
    if let Some(result) = &args.minimize {
        // The folder of the run is an input of what comes after it.
        owned::check(result, Kind::Minimized, &[&args.scenario, &args.out])?;
    }
    let options = FuzzOptions {
        seed: args.seed,
        runs: args.runs,
        deliveries: args.deliveries,
        externals: args.externals,
        at_least: args.min_deliveries,
        states: args.state,
    };

    let stop = minimize::interruptible();
    models.stop_with(stop.shared());
    let bar = ui.progress();
    let start = Instant::now();
    let mut made = Made::default();
    let mut progress = |so_far: Made| {
        made = so_far;
        let rate = made.executed as f64 / start.elapsed().as_secs_f64().max(1e-3);
        let (runs, executed) = (made.runs, made.executed);
        bar.set_message(format!("{runs} of {} runs, {executed} deliveries, {rate:.0}/s", args.runs));
        !stop.is_set() && models.fault().is_none() && args.time.is_none_or(|time| start.elapsed() < time)
    };
    if let Some(wanted) = args.healthy {
        let search = Healthy { scenario: &scenario, options, wanted, progress: &mut progress };
        let runs = models.visit(&scenario, search).map_err(|e| format!("{}: {e}", args.scenario.display()));
        bar.finish_and_clear();
        let mut runs = runs??;
        let failed = models.fault().is_some();
        // What the model could not answer counts as no violation: the run in which that was is not known to be healthy. It is the last that was taken.
        if failed && runs.last().is_some_and(|last| last.made.runs == made.runs) {
            runs.pop();
        }
        let outcome = write_healthy(&args, &scenario, text, (&runs, made), ui)?;
        return Ok(if failed { Status::Failed.into() } else { outcome });
    }
    let search = Search { scenario: &scenario, options, progress: &mut progress };
    let found = models.visit(&scenario, search).map_err(|e| format!("{}: {e}", args.scenario.display()));
    bar.finish_and_clear();
    let found = found??;
    if found.is_none() && models.fault().is_some() {
        // What the model could not answer counts as no violation, so nothing is known.
        return Ok(Status::Failed.into());
    }

    let mut summary = summarize(&args, &scenario, found.as_ref(), made);
    if let Some(found) = &found {
        let mut files = files(found, text, &summary)?;
        files.extend(program::history(&scenario, &found.schedule));
        let files: Vec<(&str, String)> =
            files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        write_folder(&args.out, Kind::Fuzzed, &[&args.scenario], &files)?;
        permission::wrote(&args.out, &scenario, ui);
    }
    // How many processes there were is up to chance, and files of one seed are always the same.
    summary.programs = models.programs();
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, &args.out));
    }
    if let (false, Some(work)) = (args.json, &summary.programs) {
        ui.note(&answered(work, found.is_some()));
        if found.is_some() && summary.deliveries == 0 {
            ui.note(
                "it is there before anything is delivered: the program ends as it starts, and `program check` shows what it says then",
            );
        }
    }
    if found.is_none() && stop.is_set() {
        ui.note("interrupted: not all runs were made");
    } else if found.is_none() && summary.runs < args.runs {
        ui.note(&format!("the time is over: {} of {} runs were made", summary.runs, args.runs));
    }
    if let (Some(result), true) = (&args.minimize, found.is_some()) {
        let schedule = args.out.join("schedule.jsonl");
        let mut task = MinimizeArgs::plain(&schedule, &args.out.join("scenario.toml"), result)?;
        (task.budget, task.json) = (args.budget, args.json);
        minimize::run_until(task, models, ui, stop)?;
    }
    if let (Expect::None, Some(work), None) = (args.expect, &summary.programs, &found)
        && work.operations > 0
        && work.answered == work.refused
    {
        return Err("no operation was done, so that nothing is known of the program".into());
    }
    Ok(args.expect.status(u8::from(found.is_none())))
}

/// How many operations were answered. Where it is none, nothing is known of the program, unless that is what was found.
fn answered(work: &ProgramWork, is_found: bool) -> String {
    let (operations, answered) = (work.operations, work.answered);
    match answered {
        0 if operations > 0 && !is_found => format!(
            "none of {operations} operations was answered, so nothing is known of the program; try `program check`"
        ),
        _ => {
            let refused = match work.refused {
                0 => String::new(),
                all if all == answered => ", and every answer is that it was not done".to_owned(),
                some => format!(", {some} of them with the word that they were not done"),
            };
            format!("{answered} of {operations} operations were answered{refused}")
        }
    }
}

fn summarize(args: &FuzzArgs, scenario: &Scenario, found: Option<&Found>, made: Made) -> FuzzSummary {
    let made = found.map_or(made, |f| f.made);
    FuzzSummary {
        found: found.is_some(),
        violation: found.map(|f| f.violation.clone()).unwrap_or_default(),
        affected: found.map(|f| f.affected.clone()).unwrap_or_default(),
        seed: args.seed,
        run: found.map_or(0, |f| f.made.runs - 1),
        runs: made.runs,
        passed_over: made.passed_over,
        deliveries: found.map_or(0, |f| f.deliveries),
        externals: found.map_or(0, |f| f.externals),
        executed: made.executed,
        network: scenario.network,
        healthy: None,
        programs: None,
    }
}

fn describe(s: &FuzzSummary, out: &Path) -> String {
    if !s.found {
        let sooner = match s.passed_over {
            0 => String::new(),
            n => format!("; {n} runs broke an invariant before --min-deliveries"),
        };
        let (runs, executed) = (s.runs, s.executed);
        return format!("no violation in {runs} runs ({executed} deliveries, {}){sooner}", s.network);
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
    let mut files = logs(found)?;
    files.push(("schedule.jsonl".into(), found.schedule.to_text()));
    files.push(("scenario.toml".into(), scenario));
    files.push(("summary.json".into(), serde_json::to_string_pretty(summary)? + "\n"));
    Ok(files)
}
