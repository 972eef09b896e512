//! Minimizes fuzzed executions of the included scenarios under a fixed budget of states and prints sizes and digests.
//!
//! A change that is to leave results alone leaves this output as it is, byte for byte:
//! `cargo run -p demi-minimize --features measure --example gate -- [--states N] [--jobs N] [NAME...]`.

#![expect(clippy::print_stdout, reason = "an example prints what it measures")]

#[allow(dead_code, reason = "it reads folders too")]
#[path = "../seeds/cases.rs"]
mod cases;

use std::error::Error;

use demi_included::{Visitor, with_model};
use demi_minimize::{Budget, MinimizeError, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Schedule};
use xxhash_rust::xxh3::xxh3_64;

/// Scenarios whose executions are minimized quickly.
const QUICK: [&str; 8] =
    ["raft-45", "raft-46", "raft-56", "raft-42", "raft-66", "raft-58b", "two-phase", "spark-2294"];

struct Minimize<'a>(&'a Schedule, &'a Options);

impl Visitor for Minimize<'_> {
    type Output = Result<Outcome, MinimizeError>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        minimize(&sim, self.0, None, self.1, &|_| ())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut states, mut jobs, mut names) = (3_000_000, 1, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--states" => states = value()?.parse()?,
            "--jobs" => jobs = value()?.parse()?,
            _ => names.push(arg),
        }
    }
    if names.is_empty() {
        names = QUICK.map(str::to_owned).to_vec();
    }
    for name in &names {
        let range = if name.starts_with("raft") { (300, 2_000) } else { (1, 2_000) };
        cases::made(name, (1, 1), range, &mut |case| {
            let weaker = [case.scenario.network, NetworkRule::Unordered];
            let rules = if weaker[0] == weaker[1] { &weaker[..1] } else { &weaker[..] };
            for &rule in rules {
                let options = Options {
                    rule,
                    budget: Budget::States(states),
                    jobs,
                    phases: Phases::All,
                    objective: Objective::default(),
                    stop: StopFlag::default(),
                };
                let done = with_model(&case.scenario, Minimize(&case.schedule, &options))??;
                let summary = &done.summary;
                let told = |s: &Schedule| {
                    format!("{} steps {:016x}", s.steps.len(), xxh3_64(s.to_text().as_bytes()))
                };
                let others: Vec<String> = done.others.iter().map(|(_, s)| told(s)).collect();
                println!(
                    "{name} {rule} seed {}: {} ({}) -> {} ({}), {}, at least {:?}, {} executed, others {others:?}",
                    case.seed,
                    summary.initial_deliveries,
                    summary.initial_externals,
                    summary.deliveries,
                    summary.externals,
                    told(&done.schedule),
                    summary.at_least,
                    summary.executed,
                );
            }
            Ok(())
        })?;
    }
    Ok(())
}
