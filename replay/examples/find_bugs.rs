//! Looks for the bug of each scenario that comes with the tool and prints what it took.
//!
//! Run it with `cargo run --release -p demi-replay --example find_bugs`, optionally followed by the names of
//! scenarios (`raft-45`) and `--seed N`, `--seeds N`, `--runs N`, `--deliveries N`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::path::Path;
use std::time::Instant;

use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, Made, fuzz};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;

const ALL: [&str; 9] =
    ["raft-45", "raft-46", "raft-56", "raft-58a", "raft-58b", "raft-42", "raft-62", "raft-66", "two-phase"];

struct Search<'a> {
    scenario: &'a Scenario,
    options: FuzzOptions,
}

impl Visitor for Search<'_> {
    /// What was found, runs and deliveries made.
    type Output = Result<(Option<Found>, u64, u64), FuzzError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let mut made = Made::default();
        let found = fuzz(&mut sim, self.scenario, &self.options, &mut |so_far| {
            made = so_far;
            true
        })?;
        let made = found.as_ref().map_or(made, |found| found.made);
        Ok((found, made.runs, made.executed))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut names, mut seed, mut seeds, mut runs, mut deliveries) = (Vec::new(), 1, 1, 20_000, 2_000);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let target = match arg.as_str() {
            "--seed" => &mut seed,
            "--seeds" => &mut seeds,
            "--runs" => &mut runs,
            "--deliveries" => &mut deliveries,
            _ => {
                names.push(arg);
                continue;
            }
        };
        *target = args.next().ok_or("a number is missing")?.parse()?;
    }
    if names.is_empty() {
        names = ALL.map(str::to_owned).to_vec();
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    println!(
        "{:<10} {:>4} {:>7} {:>12} {:>9} {:>9}  violation",
        "scenario", "seed", "runs", "deliveries", "seconds", "length"
    );
    let mut missed = 0;
    for name in &names {
        let scenario = Scenario::parse(&std::fs::read_to_string(dir.join(format!("{name}.toml")))?)?;
        for seed in seed..seed + seeds {
            let options = FuzzOptions::new(seed, runs, deliveries);
            let start = Instant::now();
            let (found, runs, executed) = with_model(&scenario, Search { scenario: &scenario, options })??;
            let seconds = start.elapsed().as_secs_f64();
            missed += u32::from(found.is_none());
            let (length, violation) =
                found.map_or((0, "not found".into()), |f| (f.deliveries, f.violation.join(", ")));
            println!("{name:<10} {seed:>4} {runs:>7} {executed:>12} {seconds:>9.3} {length:>9}  {violation}");
        }
    }
    if missed > 0 { Err(format!("{missed} not found").into()) } else { Ok(()) }
}
