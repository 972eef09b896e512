//! Fuzzes three executions of each bug of the zoo, minimizes each, and prints a Markdown table: how many steps the result
//! has, and how many the shortest execution has, which an independent search finds.
//!
//! Run it with `cargo run --release -p demi-zoo --features measure --example measure`, optionally followed by `--half tuning` or
//! `--half measuring`, `--budget 60s`, `--system NAME`, `--seed N` (of the recording) and `--configurations N` (of the independent search). With
//! `--progress yes` each improvement goes to standard error, and where a result is longer than the shortest execution, both do.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it finds")]

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use demi_check::optimum::{Optimum, optimum};
use demi_included::Visitor;
use demi_minimize::{Budget, Objective, Options, Phases, Progress, StopFlag, minimize};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use demi_zoo::recording::record;
use demi_zoo::{Half, System, ZOO, scenario, with_model};

/// Executions of each bug.
const EXECUTIONS: usize = 3;
/// Seeds to look for them.
const SEEDS: u64 = 30;

/// What was asked for.
struct Ask {
    half: Option<Half>,
    system: Option<String>,
    seed: Option<u64>,
    progress: bool,
    budget: Budget,
    configurations: usize,
}

/// One execution, minimized.
struct Row {
    half: Half,
    result: usize,
    optimum: Optimum,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.result as f64 / self.optimum.at_least() as f64
    }
}

struct Measure<'a> {
    system: &'a System,
    scenario: &'a Scenario,
    ask: &'a Ask,
}

impl Visitor for Measure<'_> {
    type Output = Result<Vec<Row>, Box<dyn Error>>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let Measure { system, scenario, ask } = self;
        let mut rows = Vec::new();
        for (seed, found) in record(&sim, scenario, EXECUTIONS, SEEDS)? {
            if ask.seed.is_some_and(|only| only != seed) {
                continue;
            }
            let (began, least) = (Instant::now(), AtomicUsize::new(usize::MAX));
            let tell = |progress: &Progress<'_>| {
                let steps = progress.size.steps;
                if ask.progress && least.fetch_min(steps, Ordering::Relaxed) > steps {
                    eprintln!("{:6.2} s  {steps} steps  {}", began.elapsed().as_secs_f64(), progress.phase);
                }
            };
            let options = Options {
                rule: scenario.network,
                budget: ask.budget,
                jobs: std::thread::available_parallelism().map_or(1, usize::from),
                phases: Phases::All,
                objective: Objective::default(),
                stop: StopFlag::default(),
            };
            let outcome = minimize(&sim, &found.schedule, None, &options, &tell)?;
            let optimum =
                optimum(&sim, &found.schedule, scenario.network, &found.violation, ask.configurations)?;
            let row = Row { half: system.half, result: outcome.schedule.steps.len(), optimum };
            let (shortest, proven) = match &row.optimum {
                Optimum::Proven(schedule) => (schedule.steps.len().to_string(), "yes"),
                Optimum::AtLeast(steps) => (format!("≥ {steps}"), "no"),
            };
            println!(
                "| {} | {} {} | {} | {} ({}) | {} | {shortest} | {}{:.2} | {proven} | {} |",
                system.title,
                system.switch,
                seed,
                found.schedule.steps.len(),
                found.deliveries,
                found.externals,
                row.result,
                if proven == "yes" { "" } else { "≤ " },
                row.ratio(),
                outcome.certificate.shortest.map_or("nothing".to_owned(), |s| match s.optimal {
                    true => "optimal".to_owned(),
                    false => format!("{} deliveries at least", s.at_least),
                }),
            );
            if let Optimum::Proven(shortest) = &row.optimum
                && row.result > shortest.steps.len()
            {
                eprintln!(
                    "# the result\n{}# the shortest\n{}",
                    outcome.schedule.to_text(),
                    shortest.to_text()
                );
            }
            rows.push(row);
        }
        Ok(rows)
    }
}

/// The value at a share of a sorted list.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn summarize(name: &str, half: Half, rows: &[Row]) {
    let of = |proven: bool| {
        let mut ratios: Vec<f64> = rows
            .iter()
            .filter(|r| r.half == half && matches!(r.optimum, Optimum::Proven(_)) == proven)
            .map(Row::ratio)
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let (proven, open) = (of(true), of(false).len());
    if proven.is_empty() && open == 0 {
        return;
    }
    let (median, ninetieth) = (quantile(&proven, 0.5), quantile(&proven, 0.9));
    let above = proven.iter().filter(|r| **r > 1.3).count();
    println!(
        "{name}: {} rows with a proven optimum, median {median:.2}, 90th percentile {ninetieth:.2}, {above} above 1.30; \
         {open} rows without",
        proven.len()
    );
}

fn ask() -> Result<Ask, Box<dyn Error>> {
    let mut ask = Ask {
        half: None,
        system: None,
        seed: None,
        progress: false,
        budget: Budget::Seconds(60.0),
        configurations: 3_000_000,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match (arg.as_str(), value.as_str()) {
            ("--half", "tuning") => ask.half = Some(Half::Tuning),
            ("--half", "measuring") => ask.half = Some(Half::Measuring),
            ("--budget", text) => ask.budget = text.parse()?,
            ("--system", name) => ask.system = Some(name.to_owned()),
            ("--seed", number) => ask.seed = Some(number.parse()?),
            ("--progress", "yes") => ask.progress = true,
            ("--configurations", number) => ask.configurations = number.parse()?,
            _ => return Err(format!("'{arg} {value}' is not understood").into()),
        }
    }
    Ok(ask)
}

fn main() -> Result<(), Box<dyn Error>> {
    let ask = ask()?;
    println!(
        "| system | bug, seed | recorded steps | deliveries (external events) | result | shortest | ratio | shortest is proven | certificate |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut rows = Vec::new();
    for system in ZOO {
        let wanted = ask.half.is_none_or(|h| h == system.half);
        if wanted && ask.system.as_ref().is_none_or(|name| name == system.name) {
            let scenario = scenario(system.name)?;
            rows.extend(with_model(&scenario, Measure { system, scenario: &scenario, ask: &ask })??);
        }
    }
    println!();
    summarize("tuning", Half::Tuning, &rows);
    summarize("measuring", Half::Measuring, &rows);
    Ok(())
}
