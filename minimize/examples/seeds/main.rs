//! Minimizes fuzzed executions that no one has seen, many seeds of each bug, and prints a table: how often and how
//! far the results miss the best that is known for the bug, the network rule and the invariant.
//!
//! Run it with `cargo run --release -p demi-minimize --features measure --example seeds`, optionally followed by names of scenarios
//! (`raft-45`) and these:
//!
//! * `--seeds N` executions of each (20), `--seed N` the first seed tried (1);
//! * `--least N`, `--most N`: deliveries of an execution (400 to 3000); seeds whose run is shorter are passed over;
//! * `--lengths A,B,...` instead: so many deliveries, an eighth more or less, each length a line of its own;
//! * `--recorded DIR`: an execution made before instead of fuzzed ones, with `schedule.jsonl` and `scenario.toml`;
//! * `--rules own|weaker|all`: the scenario's network rule (default), every weaker one, or both;
//! * `--phases all|ddmin|probdd`: everything (default), or delta debugging alone, by halves or by probabilities;
//! * `--no-guidance`: without what the model knows of itself;
//! * `--objective steps|externals`, `--budget B` (60s) and `--jobs N` (all cores), as for `demi-lineage minimize`;
//! * `--save DIR`: writes `trace.md`, `schedule.jsonl` and more of each result.
//!
//! An execution is made under the scenario's own rule, so that it is one under every weaker rule as well.

#![expect(clippy::print_stdout, reason = "an example prints what it measures")]
#![expect(clippy::print_stderr, reason = "and its progress")]

mod args;
mod cases;
mod table;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use demi_included::{Visitor, with_model};
use demi_minimize::{Options, Outcome, Size, StopFlag, minimize, report};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Schedule};

use args::{Args, Rules};
use cases::Case;
use table::{Group, Row};

/// The result and its trace.
struct Minimize<'a>(&'a Schedule, &'a Options, bool);

impl Visitor for Minimize<'_> {
    type Output = Result<(Outcome, String), Box<dyn Error>>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let sim = if self.2 { sim } else { sim.without_guidance() };
        let done = minimize(&sim, self.0, None, self.1, &|_| ())?;
        let told = report::tell(&sim, &done.schedule, self.1.rule)?;
        let trace = report::trace_md(&told, &done.summary, &done.certificate);
        Ok((done, trace))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::read()?;
    let mut groups: BTreeMap<Group, Vec<Row>> = BTreeMap::new();
    for folder in &args.recorded {
        run(&cases::read(folder)?, (0, 0), &args, &mut groups)?;
    }
    for name in &args.names {
        for &range in &args.lengths {
            cases::made(name, (args.seed, args.seeds), range, &mut |case| {
                run(case, range, &args, &mut groups)
            })?;
        }
    }
    table::head();
    groups.iter().for_each(|(group, rows)| table::line(group, rows, args.objective));
    Ok(())
}

/// Minimizes one execution under each rule.
fn run(
    case: &Case,
    range: (u64, u64),
    args: &Args,
    groups: &mut BTreeMap<Group, Vec<Row>>,
) -> Result<(), Box<dyn Error>> {
    let weaker = match case.scenario.network {
        NetworkRule::Fifo => &[NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered][..],
        NetworkRule::FifoLoss => &[NetworkRule::FifoLoss, NetworkRule::Unordered],
        NetworkRule::Unordered => &[NetworkRule::Unordered],
    };
    let rules = match args.rules {
        Rules::Own => &weaker[..1],
        Rules::Weaker => &weaker[1..],
        Rules::All => weaker,
    };
    for &rule in rules {
        let options = Options {
            rule,
            budget: args.budget,
            jobs: args.jobs,
            phases: args.phases,
            objective: args.objective,
            stop: StopFlag::default(),
        };
        let (done, trace) = with_model(&case.scenario, Minimize(&case.schedule, &options, args.guided))??;
        let summary = &done.summary;
        let size = |steps: u64, deliveries: u64, externals: u64| Size {
            steps: steps as usize,
            deliveries: deliveries as usize,
            externals: externals as usize,
        };
        let mut sizes = vec![size(summary.steps, summary.deliveries, summary.externals)];
        sizes.extend(
            summary
                .others
                .iter()
                .filter(|o| o.without.is_empty())
                .map(|o| size(o.steps, o.deliveries, o.externals)),
        );
        let invariant =
            summary.violation.first().and_then(|v| v.split(':').next()).unwrap_or_default().to_owned();
        eprintln!(
            "{} {rule} seed {} {invariant}: {} ({}) -> {} ({}), else {:?}, smaller contents {:?}, at least {:?}, \
             {:.1} s, {} M executed, {}, {}; reduced to {} ({}) in {:.2} s",
            case.name,
            case.seed,
            summary.initial_deliveries,
            summary.initial_externals,
            summary.deliveries,
            summary.externals,
            sizes[1..].iter().map(|s| (s.deliveries, s.externals)).collect::<Vec<_>>(),
            summary
                .others
                .iter()
                .filter(|o| !o.without.is_empty())
                .map(|o| (o.deliveries, o.externals))
                .collect::<Vec<_>>(),
            summary.at_least,
            summary.seconds,
            summary.executed / 1_000_000,
            summary.ended,
            done.certificate.shortest.as_ref().and_then(|s| s.limit()).unwrap_or("no limit"),
            summary.reduced.as_ref().map_or(0, |r| r.deliveries),
            summary.reduced.as_ref().map_or(0, |r| r.externals),
            summary.reduced.as_ref().map_or(0.0, |r| r.seconds),
        );
        if let Some(dir) = &args.save {
            save(&dir.join(format!("{}-{rule}-{}", case.name, case.seed)), case, (&done, &trace))?;
        }
        groups.entry((case.name.clone(), rule.as_str(), invariant, range)).or_default().push(Row {
            sizes,
            seconds: summary.seconds,
            initial: summary.initial_deliveries,
            executed: summary.executed,
            optimal: done.certificate.shortest.as_ref().is_some_and(|s| s.optimal),
        });
    }
    Ok(())
}

/// Writes a result, and what it was made from under the names that `--recorded` reads in a folder beside it.
fn save(dir: &Path, case: &Case, (done, trace): (&Outcome, &str)) -> Result<(), Box<dyn Error>> {
    let before = dir.join("recorded");
    std::fs::create_dir_all(&before)?;
    std::fs::write(before.join("schedule.jsonl"), case.schedule.to_text())?;
    std::fs::write(before.join("scenario.toml"), case.scenario.to_text())?;
    std::fs::write(dir.join("trace.md"), trace)?;
    std::fs::write(dir.join("schedule.jsonl"), done.schedule.to_text())?;
    std::fs::write(dir.join("scenario.toml"), case.scenario.to_text())?;
    std::fs::write(dir.join("summary.json"), serde_json::to_string_pretty(&done.summary)?)?;
    std::fs::write(dir.join("certificate.json"), serde_json::to_string_pretty(&done.certificate)?)?;
    for (other, schedule) in &done.others {
        std::fs::write(dir.join(&other.file), schedule.to_text())?;
    }
    Ok(())
}
