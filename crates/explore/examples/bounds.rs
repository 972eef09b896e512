//! Explores the scenarios that come with the tool, one cost after the other, and prints what it took.
//!
//! Run it with `cargo run --release -p demi-explore --example bounds`, optionally followed by the number of threads and by
//! rows `SCENARIO:COST:BOUND:DEPTH`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::path::Path;
use std::time::Duration;

use demi_explore::{Bounds, ExploreOptions, Explored, Scene, SceneError, Spent, explore};
use demi_included::with_model;
use demi_minimize::oracle::engine::Engine;
use demi_minimize::search::{Query, Root};
use demi_minimize::{Budget, Objective, Problem};
use demi_replay::script::Script;
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::Scenario;
use rustix::time::{ClockId, clock_gettime};

/// As in the released program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: [&str; 8] = [
    "two-phase:deviation:3:60",
    "two-phase:delay:3:60",
    "raft-46:deviation:2:40",
    "raft-66:delay:6:60",
    "raft-45:deviation:3:40",
    "raft-56:deviation:3:40",
    "raft-58b:deviation:3:40",
    "raft-42:deviation:2:60",
];
/// Client messages, where the scenario has any.
const CLIENTS: u32 = 4;

struct Task<'a>(&'a Scenario, Bounds, usize);

impl Visitor for Task<'_> {
    type Output = Result<Explored, SceneError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let clients = self.0.fuzz.as_ref().map_or(0, |fuzz| fuzz.client_messages()).min(CLIENTS);
        let (scene, first) = Scene::of(&mut sim, self.0, Some(clients), 1)?;
        let options = ExploreOptions { jobs: self.2, ..ExploreOptions::default() };
        explore(&mut sim, (&scene, first), self.1, options, &mut |_| true)
    }
}

/// Searches from the scenario's beginning without a bound, a target or symmetry, and gives the deliveries that it made.
struct Packed<'a>(&'a Scenario, u64);

impl Visitor for Packed<'_> {
    type Output = Result<u64, SceneError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let (_, first) = Scene::of(&mut sim, self.0, Some(CLIENTS), 1)?;
        // Who is named by the target is nobody's equal.
        let names = (0..sim.names().len() as u16).map(|at| sim.names().get(demi_replay::ActorId(at)));
        let target = vec![names.collect::<Vec<_>>().join(":")];
        let problem = Problem::plain(sim, Script::default(), self.0.network, target, Objective::Steps);
        let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
        let query = Query::from(Root::World(&first.world)).states(self.1);
        Ok(query.run(&mut engine).map_or(0, |searched| searched.states))
    }
}

/// The processor time of this process: the machine may do other things.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let jobs = match args.first().and_then(|first| first.parse().ok()) {
        Some(jobs) => {
            args.remove(0);
            jobs
        }
        None => 1,
    };
    let rows: Vec<&str> =
        if args.is_empty() { ROWS.to_vec() } else { args.iter().map(String::as_str).collect() };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../replay/scenarios");
    println!("scenario    cost       bound  steps      configurations  seconds  steps/s   found");
    for row in rows {
        let [name, cost, bound, depth] = row.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!("'{row}' is no SCENARIO:COST:BOUND:DEPTH").into());
        };
        let scenario = Scenario::parse(&std::fs::read_to_string(dir.join(format!("{name}.toml")))?)?;
        let most = Spent { cost: bound.parse()?, faults: 0, steps: depth.parse()? };
        let bounds = Bounds { cost: cost.parse()?, most };
        let start = spent();
        let explored = with_model(&scenario, Task(&scenario, bounds, jobs))??;
        let seconds = (spent() - start).as_secs_f64();
        let steps: u64 = explored.levels.iter().map(|level| level.steps).sum();
        let found = explored.findings.first().map_or("nothing".to_owned(), |finding| {
            let name = &finding.violations[0].fingerprint;
            format!("{name} at {} after {} steps", finding.spent.cost, finding.spent.steps)
        });
        println!(
            "{name:<11} {cost:<10} {bound:>5}  {steps:>9}  {:>14}  {seconds:>7.2}  {:>7.0}   {found}",
            explored.met,
            steps as f64 / seconds
        );
        let start = spent();
        let states = with_model(&scenario, Packed(&scenario, 3_000_000))??;
        let seconds = (spent() - start).as_secs_f64();
        println!(
            "{name:<11} packed search     {states:>9}  {:>14}  {seconds:>7.2}  {:>7.0}",
            "",
            states as f64 / seconds
        );
    }
    Ok(())
}
