//! What each pass and each strategy is worth: executions are minimized under a fixed budget of states, once with everything
//! and once without each pass of the registry and each strategy of the plan.
//!
//! `cargo run --release -p demi-zoo --features measure --example ablation -- [--states N] [--seeds N] [--jobs N]
//! [--together NAME,NAME...] [NAME|FOLDER...]`. Parts that are named together are left out at once, in a last row. A name is a scenario of the zoo or an included one; a folder holds `scenario.toml` and `schedule.jsonl`.
//! Without names it takes included systems and the tuning half of the zoo. The table depends on no clock and no number of
//! threads.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use demi_included::Visitor;
use demi_minimize::reduce::registry::{PASSES, names};
use demi_minimize::{
    Budget, Criteria, MinimizeError, Objective, Options, Outcome, Phases, StopFlag, minimize_with,
};
use demi_replay::fuzz::FuzzError;
use demi_replay::{Model, Simulator};
use demi_schemas::scenario::ScenarioError;
use demi_schemas::{Scenario, Schedule};
use demi_zoo::recording::record;
use demi_zoo::{Half, ZOO};

/// Included scenarios with executions of the right size: Raft has a bound, Spark has none.
const INCLUDED: [&str; 5] = ["raft-45", "raft-46", "raft-66", "raft-58b", "spark-2294"];
/// Seeds that are tried for the executions of a system.
const SEEDS: u64 = 60;

/// An execution to minimize.
struct Case {
    name: String,
    scenario: Scenario,
    schedule: Schedule,
}

/// What one minimization came to.
struct Run {
    steps: i64,
    executed: u64,
    /// Deliveries that each pass executed.
    by_pass: BTreeMap<String, u64>,
}

struct Record<'a>(&'a Scenario, usize);

impl Visitor for Record<'_> {
    type Output = Result<Vec<(u64, Schedule)>, FuzzError>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let found = record(&sim, self.0, self.1, SEEDS)?;
        Ok(found.into_iter().map(|(seed, found)| (seed, found.schedule)).collect())
    }
}

struct Minimize<'a>(&'a Case, &'a Options, &'a [String]);

impl Visitor for Minimize<'_> {
    type Output = Result<Outcome, MinimizeError>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let without = self.2.to_vec();
        let criteria = Criteria { without, ..Criteria::default() };
        minimize_with(&sim, &self.0.schedule, None, self.1, &criteria, &|_| ())
    }
}

/// Visits a system of the zoo, or an included one.
fn with_model<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
    if ZOO.iter().any(|system| scenario.model == system.name) {
        return demi_zoo::with_model(scenario, visitor);
    }
    demi_included::with_model(scenario, visitor)
}

/// The executions of a name: of a folder, or recorded from a scenario.
fn cases(name: &str, seeds: usize) -> Result<Vec<Case>, Box<dyn Error>> {
    let folder = Path::new(name);
    if folder.is_dir() {
        let scenario = Scenario::parse(&std::fs::read_to_string(folder.join("scenario.toml"))?)?;
        let schedule = Schedule::parse(&std::fs::read_to_string(folder.join("schedule.jsonl"))?)?;
        return Ok(vec![Case { name: name.to_owned(), scenario, schedule }]);
    }
    let scenario = match demi_zoo::scenario(name) {
        Ok(scenario) => scenario,
        Err(_) => {
            let file = format!("../../replay/scenarios/{name}.toml");
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            Scenario::parse(&std::fs::read_to_string(file)?)?
        }
    };
    let found = with_model(&scenario, Record(&scenario, seeds))??;
    if found.is_empty() {
        return Err(format!("{name}: no execution of the right size").into());
    }
    let case =
        |(seed, schedule)| Case { name: format!("{name} {seed}"), scenario: scenario.clone(), schedule };
    Ok(found.into_iter().map(case).collect())
}

fn run(case: &Case, states: u64, without: &[String]) -> Result<Run, String> {
    let options = Options {
        rule: case.scenario.network,
        budget: Budget::States(states),
        jobs: 1,
        phases: Phases::All,
        objective: Objective::default(),
        stop: StopFlag::default(),
    };
    let done = with_model(&case.scenario, Minimize(case, &options, without))
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())?;
    Ok(Run {
        steps: done.schedule.steps.len() as i64,
        executed: done.summary.executed,
        by_pass: done.summary.passes.iter().map(|y| (y.pass.clone(), y.executed)).collect(),
    })
}

/// Runs every case with everything and without each part, on several threads; the results are in order.
fn all(cases: &[Case], states: u64, jobs: usize, parts: &[Vec<String>]) -> Result<Vec<Vec<Run>>, String> {
    let variants: Vec<Vec<String>> = std::iter::once(Vec::new()).chain(parts.iter().cloned()).collect();
    let total = cases.len() * variants.len();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= total {
                        return;
                    }
                    let result = run(&cases[at / variants.len()], states, &variants[at % variants.len()]);
                    if let Ok(mut done) = done.lock() {
                        done.insert(at, result);
                    }
                }
            });
        }
    });
    let done = done.into_inner().map_err(|e| e.to_string())?;
    let mut rows: Vec<Vec<Run>> = cases.iter().map(|_| Vec::new()).collect();
    for (at, result) in done {
        rows[at / variants.len()].push(result?);
    }
    Ok(rows)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut states, mut seeds, mut jobs, mut asked) = (1_000_000, 1, 1, Vec::new());
    let mut parts: Vec<Vec<String>> = names().into_iter().map(|name| vec![name.to_owned()]).collect();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--states" => states = value()?.parse()?,
            "--seeds" => seeds = value()?.parse()?,
            "--together" => parts.push(value()?.split(',').map(str::to_owned).collect()),
            "--jobs" => jobs = value()?.parse()?,
            _ => asked.push(arg),
        }
    }
    if asked.is_empty() {
        let tuning = ZOO.iter().filter(|system| system.half == Half::Tuning).map(|system| system.name);
        asked = INCLUDED.into_iter().chain(tuning).map(str::to_owned).collect();
    }
    let mut given = Vec::new();
    for name in &asked {
        given.extend(cases(name, seeds)?);
    }
    table(&given, &all(&given, states, jobs, &parts)?, &parts);
    Ok(())
}

/// Prints, for each part, by how many steps results are longer without it, and what it executed with everything. The cases
/// that differ are named; a negative figure is a result that is shorter without the part.
fn table(cases: &[Case], rows: &[Vec<Run>], parts: &[Vec<String>]) {
    let total = |at: usize| {
        let steps: i64 = rows.iter().map(|row| row[at].steps).sum();
        (steps, rows.iter().map(|row| row[at].executed).sum::<u64>())
    };
    let (steps, executed) = total(0);
    println!("{} executions, with everything {steps} steps, {executed} deliveries executed:", cases.len());
    let each = |(case, row): (&Case, &Vec<Run>)| format!("{} {}", case.name, row[0].steps);
    println!("{}\n", cases.iter().zip(rows).map(each).collect::<Vec<_>>().join(", "));
    println!("| left out | steps more | it executed | in all without it | where |");
    println!("| --- | --- | --- | --- | --- |");
    for (at, part) in parts.iter().enumerate() {
        let name = part.join(", ");
        let (without, in_all) = total(at + 1);
        let own: u64 = rows.iter().filter_map(|row| row[0].by_pass.get(&name)).sum();
        let own = if at < PASSES.len() { own.to_string() } else { "–".to_owned() };
        let differ = |(case, row): (&Case, &Vec<Run>)| {
            let more = row[at + 1].steps - row[0].steps;
            (more != 0).then(|| format!("{} {more:+}", case.name))
        };
        let differ: Vec<String> = cases.iter().zip(rows).filter_map(differ).collect();
        println!("| {name} | {} | {own} | {in_all} | {} |", without - steps, differ.join(", "));
    }
}
