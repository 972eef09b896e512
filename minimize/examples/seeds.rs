//! Minimizes fuzzed executions that no one has seen, many seeds of each bug, and prints a table: how often and how
//! far the results miss the best that is known for the bug, the network rule and the invariant.
//!
//! Run it with `cargo run --release -p demi-minimize --example seeds`, optionally followed by names of scenarios
//! (`raft-45`) and these:
//!
//! * `--seeds N` executions of each (20), `--seed N` the first seed tried (1);
//! * `--least N`, `--most N`: deliveries of an execution (400 to 3000); seeds whose run is shorter are passed over;
//! * `--rules own|all`: the scenario's network rule (default), or every weaker one too;
//! * `--budget B` (60s) and `--jobs N` (all cores), as for `demi-lineage minimize`;
//! * `--save DIR`: writes `trace.md` and `schedule.jsonl` of each result.
//!
//! An execution is made under the scenario's own rule, so that it is one under every weaker rule as well. The best
//! known of a group is the smallest of its own results, chosen as `minimize` chooses between results.

#![expect(clippy::print_stdout, reason = "an example prints what it measures")]
#![expect(clippy::print_stderr, reason = "and its progress")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use demi_minimize::{Budget, Objective, Options, Outcome, Phases, Size, StopFlag, minimize, render};
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::models::{Visitor, with_model};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Scenario};

const ALL: [&str; 8] =
    ["raft-45", "raft-46", "raft-56", "raft-58a", "raft-58b", "raft-42", "raft-62", "raft-66"];
/// Runs that one seed may take to find a violation.
const RUNS: u64 = 20_000;
/// Seeds tried for each one that is wanted, at most.
const TRIES: u64 = 200;

/// What is asked for.
struct Args {
    names: Vec<String>,
    seed: u64,
    seeds: usize,
    least: u64,
    most: u64,
    all_rules: bool,
    budget: Budget,
    jobs: usize,
    save: Option<PathBuf>,
}

impl Args {
    fn read() -> Result<Args, Box<dyn Error>> {
        let mut args = Args {
            names: Vec::new(),
            seed: 1,
            seeds: 20,
            least: 400,
            most: 3000,
            all_rules: false,
            budget: Budget::Seconds(60.0),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            save: None,
        };
        let mut given = std::env::args().skip(1);
        while let Some(arg) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--seed" => args.seed = value()?.parse()?,
                "--seeds" => args.seeds = value()?.parse()?,
                "--least" => args.least = value()?.parse()?,
                "--most" => args.most = value()?.parse()?,
                "--jobs" => args.jobs = value()?.parse()?,
                "--budget" => args.budget = Budget::from_str(&value()?)?,
                "--save" => args.save = Some(value()?.into()),
                "--rules" => args.all_rules = value()? == "all",
                name if ALL.contains(&name) => args.names.push(arg),
                other => return Err(format!("'{other}' is neither a scenario nor an option").into()),
            }
        }
        if args.names.is_empty() {
            args.names = ALL.map(str::to_owned).to_vec();
        }
        Ok(args)
    }
}

struct Fuzz<'a>(&'a Scenario, FuzzOptions);

impl Visitor for Fuzz<'_> {
    type Output = Result<Option<Found>, FuzzError>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        fuzz(&mut sim, self.0, &self.1, &mut |_, _| true)
    }
}

/// The result and its trace.
struct Minimize<'a>(&'a Found, &'a Options);

impl Visitor for Minimize<'_> {
    type Output = Result<(Outcome, String), Box<dyn Error>>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let done = minimize(&sim, &self.0.schedule, None, self.1, &|_| ())?;
        let told = render::tell(&sim, &done.schedule, self.1.rule)?;
        let trace = render::trace_md(&told, &done.summary, &done.certificate);
        Ok((done, trace))
    }
}

/// One minimized execution.
struct Row {
    /// First result, then what else was found.
    sizes: Vec<Size>,
    seconds: f64,
    initial: u64,
    executed: u64,
    optimal: bool,
}

impl Row {
    fn size(&self) -> Size {
        self.sizes[0]
    }
}

/// Bug, rule and invariant.
type Group = (String, &'static str, String);

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::read()?;
    let mut groups: BTreeMap<Group, Vec<Row>> = BTreeMap::new();
    for name in &args.names {
        run(name, &args, &mut groups)?;
    }
    println!(
        "| bug | network | invariant | executions | deliveries before | best: deliveries (externals) | median | worst \
         | at the best | ratio: median, worst | shortest of all | proven optimal | seconds: median, worst |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    groups.iter().for_each(|(group, rows)| print(group, rows));
    Ok(())
}

/// Makes the executions of one scenario and minimizes each under each rule.
fn run(name: &str, args: &Args, groups: &mut BTreeMap<Group, Vec<Row>>) -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../replay/scenarios/{name}.toml"));
    let scenario = Scenario::parse(&std::fs::read_to_string(file)?)?;
    let weaker = match scenario.network {
        NetworkRule::Fifo => &[NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered][..],
        NetworkRule::FifoLoss => &[NetworkRule::FifoLoss, NetworkRule::Unordered],
        NetworkRule::Unordered => &[NetworkRule::Unordered],
    };
    let rules = if args.all_rules { weaker } else { &weaker[..1] };
    let (mut made, mut seed) = (0, args.seed);
    while made < args.seeds && seed < args.seed + args.seeds as u64 * TRIES {
        let options = FuzzOptions { seed, runs: RUNS, deliveries: args.most, externals: None };
        let found = with_model(&scenario, Fuzz(&scenario, options))??;
        seed += 1;
        let Some(found) = found.filter(|f| f.deliveries >= args.least) else { continue };
        made += 1;
        for &rule in rules {
            let options = Options {
                rule,
                budget: args.budget,
                jobs: args.jobs,
                phases: Phases::All,
                objective: Objective::default(),
                stop: StopFlag::default(),
            };
            let (done, trace) = with_model(&scenario, Minimize(&found, &options))??;
            let summary = &done.summary;
            let size = |deliveries: u64, externals: u64| Size {
                deliveries: deliveries as usize,
                externals: externals as usize,
            };
            let mut sizes = vec![size(summary.deliveries, summary.externals)];
            sizes.extend(summary.others.iter().map(|o| size(o.deliveries, o.externals)));
            let invariant =
                summary.violation.first().and_then(|v| v.split(':').next()).unwrap_or_default().to_owned();
            eprintln!(
                "{name} {rule} seed {} {invariant}: {} ({}) -> {} ({}), else {:?}, {:.1} s, {} M executed, {}",
                seed - 1,
                summary.initial_deliveries,
                summary.initial_externals,
                summary.deliveries,
                summary.externals,
                sizes[1..].iter().map(|s| (s.deliveries, s.externals)).collect::<Vec<_>>(),
                summary.seconds,
                summary.executed / 1_000_000,
                summary.ended,
            );
            if let Some(dir) = &args.save {
                let dir = dir.join(format!("{name}-{rule}-{}", seed - 1));
                std::fs::create_dir_all(&dir)?;
                std::fs::write(dir.join("trace.md"), trace)?;
                std::fs::write(dir.join("schedule.jsonl"), done.schedule.to_text())?;
                std::fs::write(dir.join("recorded.jsonl"), found.schedule.to_text())?;
                std::fs::write(dir.join("summary.json"), serde_json::to_string_pretty(summary)?)?;
            }
            groups.entry((name.to_owned(), rule.as_str(), invariant)).or_default().push(Row {
                sizes,
                seconds: summary.seconds,
                initial: summary.initial_deliveries,
                executed: summary.executed,
                optimal: done.certificate.shortest.as_ref().is_some_and(|s| s.optimal),
            });
        }
    }
    Ok(())
}

fn print((name, rule, invariant): &Group, rows: &[Row]) {
    let objective = Objective::default();
    let results: Vec<Size> = rows.iter().map(Row::size).collect();
    let Some(best) = objective.choose(results.iter().copied()).map(|i| results[i]) else { return };
    let mut ratios: Vec<f64> = results.iter().map(|s| s.deliveries as f64 / best.deliveries as f64).collect();
    ratios.sort_by(f64::total_cmp);
    let mut sorted = results.clone();
    sorted.sort_by_key(|s| objective.key(*s));
    let mut seconds: Vec<f64> = rows.iter().map(|r| r.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let initial = rows.iter().map(|r| r.initial);
    let shortest = rows.iter().flat_map(|r| &r.sizes).min_by_key(|s| (s.deliveries, s.externals));
    let text = |s: Size| format!("{} ({})", s.deliveries, s.externals);
    println!(
        "| {name} | {rule} | {invariant} | {} | {}–{} | {} | {} | {} | {} | {:.2}, {:.2} | {} | {} | {:.1}, {:.1} |",
        rows.len(),
        initial.clone().min().unwrap_or(0),
        initial.max().unwrap_or(0),
        text(best),
        text(sorted[(sorted.len() - 1) / 2]),
        text(sorted[sorted.len() - 1]),
        results.iter().filter(|s| **s == best).count(),
        ratios[(ratios.len() - 1) / 2],
        ratios[ratios.len() - 1],
        shortest.map_or_else(String::new, |s| text(*s)),
        rows.iter().filter(|r| r.optimal).count(),
        seconds[(seconds.len() - 1) / 2],
        seconds[seconds.len() - 1],
    );
    let executed: u64 = rows.iter().map(|r| r.executed).sum();
    eprintln!("{name} {rule} {invariant}: {executed} deliveries executed in all");
}
