//! Random runs that look for a violation, and the logs that production would have written of the run found.
//!
//! A run draws from a stream of random numbers that only the seed and the run's number decide; the same seed gives
//! the same logs, byte for byte. While runs are made only the choices are kept: the violating run is made again to
//! write its logs.

mod candidates;
mod choice;
mod logger;
mod order;
mod program;
mod run;
mod strategy;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use demi_schemas::{EventRecord, Scenario, Schedule};

pub use self::choice::{Choice, apply};
pub use self::order::RandomOrder;
pub use self::program::Program;
pub use self::run::settings;

use crate::model::{Model, Violation};
use crate::sim::Simulator;

/// Threads that make runs beside each other, at most.
const MOST_THREADS: usize = 15;

/// How much to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuzzOptions {
    /// Decides everything that is random.
    pub seed: u64,
    /// Runs to make at most.
    pub runs: u64,
    /// Deliveries a run at most.
    pub deliveries: u64,
    /// Client messages a run, instead of the scenario's number.
    pub externals: Option<u32>,
    /// Deliveries that a run that counts has at least. Shorter ones are passed over.
    pub at_least: u64,
    /// Whether the logs tell the state of each actor after each of its handlers, where it changed.
    pub states: bool,
}

impl FuzzOptions {
    /// So many runs of so many deliveries; of client messages as many as the scenario says, of violating runs the first, and no states in
    /// the logs.
    #[must_use]
    pub const fn new(seed: u64, runs: u64, deliveries: u64) -> FuzzOptions {
        FuzzOptions { seed, runs, deliveries, externals: None, at_least: 0, states: false }
    }
}

/// The random number of an exploration's `n`-th client message (SplitMix64; Steele, Lea and Flood, OOPSLA 2014, fig. 14).
#[must_use]
pub fn client_number(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What was made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Runs.
    pub runs: u64,
    /// Their deliveries.
    pub executed: u64,
    /// Runs that were too short to count.
    pub passed_over: u64,
    /// Runs that broke an invariant where healthy ones are wanted.
    pub broke: u64,
}

/// A violating run.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What was made until it was found; it is the last of the runs.
    pub made: Made,
    /// The log of each actor, in the order of their names.
    pub records: Vec<(String, Vec<EventRecord>)>,
    /// The same run as one schedule, in the order in which it happened, as no log tells it.
    pub schedule: Schedule,
    /// By choice of the run: how many steps of the schedule come before it.
    pub steps_before: Vec<usize>,
    /// Fingerprints of the violation.
    pub violation: Vec<String>,
    /// Names of the actors whose state breaks the invariants.
    pub affected: Vec<String>,
    /// Deliveries of the run.
    pub deliveries: u64,
    /// Its external events: delivered messages from outside, starts, injected crashes and restarts.
    pub externals: u64,
}

/// Why a scenario cannot be fuzzed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FuzzError {
    /// The model does not know the condition that client messages wait for.
    #[error("fuzz.wait_for: {0}")]
    Condition(String),
    /// The model does not know something that the program says.
    #[error("fuzz.program: {0}")]
    Program(String),
    /// A weight or probability that is negative, not a number or beyond 1.
    #[error("fuzz.{0} is out of range: {1}")]
    Range(&'static str, String),
}

/// Makes random runs until one breaks an invariant, the runs are used up, or `progress`, which is told what
/// was made so far, answers that it is enough.
///
/// A violation counts only if the last configuration also breaks the invariant by itself, judged without memory of
/// earlier ones.
///
/// # Errors
/// When the scenario's `[fuzz]` settings make no sense for the model.
pub fn fuzz<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    options: &FuzzOptions,
    progress: &mut dyn FnMut(Made) -> bool,
) -> Result<Option<Found>, FuzzError> {
    let wanted = Wanted { violating: true, count: 1 };
    Ok(each(sim, scenario, options, wanted, progress)?.pop())
}

/// Makes random runs, and writes the logs of those that break no invariant and have at least as many deliveries as the options
/// ask for, until there are `count`, the runs are used up, or `progress` answers that it is enough.
///
/// # Errors
/// When the scenario's `[fuzz]` settings make no sense for the model.
pub fn healthy<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    (options, count): (&FuzzOptions, u64),
    progress: &mut dyn FnMut(Made) -> bool,
) -> Result<Vec<Found>, FuzzError> {
    each(sim, scenario, options, Wanted { violating: false, count }, progress)
}

/// Which runs are kept, and how many.
#[derive(Clone, Copy)]
struct Wanted {
    violating: bool,
    count: u64,
}

fn each<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    options: &FuzzOptions,
    wanted: Wanted,
    progress: &mut dyn FnMut(Made) -> bool,
) -> Result<Vec<Found>, FuzzError> {
    let settings = settings(scenario)?;
    let program = Program::new(sim, &settings.program)?;
    let (mut executed, mut passed_over, mut broke) = (0, 0, 0);
    let mut found = Vec::new();
    let mut take = |sim: &mut Simulator<M>, number: u64, done: Done| {
        executed += done.deliveries;
        if done.violations.is_empty() != wanted.violating {
            if done.deliveries < options.at_least {
                passed_over += 1;
            } else {
                let at = Made { runs: number + 1, executed, passed_over, broke };
                let logger = logger::Logger::new(sim, &program, scenario.network, options.states);
                found.push(logged(logger, &done.choices, &done.violations, at));
            }
        } else if !wanted.violating {
            broke += 1;
        }
        progress(Made { runs: number + 1, executed, passed_over, broke })
            && (found.len() as u64) < wanted.count
    };
    let run = |sim: &mut Simulator<M>, number: u64, stop: &AtomicBool| {
        let mut run = run::Run::new(sim, scenario, (&settings, &program), options, number);
        let violations = run.go(stop)?;
        Ok(Done { violations, deliveries: run.deliveries(), choices: run.into_choices() })
    };
    if sim.model().runtime().is_billed() {
        side_by_side(sim, options.runs, &run, &mut take)?;
    } else {
        for number in 0..options.runs {
            let done = run(sim, number, &AtomicBool::new(false))?;
            if !take(sim, number, done) {
                break;
            }
        }
    }
    Ok(found)
}

/// A run that was made.
struct Done {
    violations: Vec<Violation>,
    deliveries: u64,
    choices: Vec<Choice>,
}

/// What makes the run of a number, until nobody wants to know any more.
type Make<'a, M> = dyn Fn(&mut Simulator<M>, u64, &AtomicBool) -> Result<Done, FuzzError> + Sync + 'a;

/// Makes runs beside each other, since who waits for a process leaves the machine idle, and takes them in the order of their numbers: what comes
/// of them is the same as one after the other.
fn side_by_side<M: Model>(
    sim: &mut Simulator<M>,
    runs: u64,
    run: &Make<'_, M>,
    take: &mut dyn FnMut(&mut Simulator<M>, u64, Done) -> bool,
) -> Result<(), FuzzError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_THREADS) + 1;
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (give, given) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (mut sim, give) = (sim.clone(), give.clone());
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody hears of it where enough was found.
                    if number >= runs || give.send((number, run(&mut sim, number, stop))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(give);
        let mut early = BTreeMap::new();
        let (mut due, mut result) = (0, Ok(()));
        'all: for (number, done) in &given {
            early.insert(number, done);
            while let Some(done) = early.remove(&due) {
                let go_on = match done {
                    Ok(done) => take(sim, due, done),
                    Err(error) => {
                        result = Err(error);
                        false
                    }
                };
                if !go_on {
                    break 'all;
                }
                due += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(given);
        result
    })
}

/// Makes a run again that ends in these violations, and writes the logs and the schedule of it.
pub fn written<M: Model>(
    sim: &mut Simulator<M>,
    (scenario, program): (&Scenario, &Program),
    choices: &[Choice],
    violations: &[Violation],
    made: Made,
) -> Found {
    logged(logger::Logger::new(sim, program, scenario.network, false), choices, violations, made)
}

/// As [`written`]; logs also tell the state of an actor at the end of each handler that changed it.
pub fn written_with_states<M: Model>(
    sim: &mut Simulator<M>,
    (scenario, program): (&Scenario, &Program),
    choices: &[Choice],
    violations: &[Violation],
) -> Found {
    let logger = logger::Logger::new(sim, program, scenario.network, true);
    logged(logger, choices, violations, Made::default())
}

fn logged<M: Model>(
    mut logger: logger::Logger<'_, M>,
    choices: &[Choice],
    violations: &[Violation],
    made: Made,
) -> Found {
    let violation: Vec<String> = violations.iter().map(|v| v.fingerprint.clone()).collect();
    let mut affected: Vec<String> =
        violations.iter().flat_map(|v| &v.affected).map(|&a| logger.name(a).to_owned()).collect();
    affected.sort_unstable();
    affected.dedup();
    let mut steps_before = Vec::with_capacity(choices.len());
    for choice in choices {
        steps_before.push(logger.steps());
        logger.apply(choice);
    }
    let (deliveries, externals) = logger.counts();
    let network = logger.rule();
    let (records, steps) = logger.finish(&violation, &affected);
    let mut schedule = Schedule::new(steps);
    schedule.header.network = Some(network);
    schedule.header.violation.clone_from(&violation);
    schedule.header.affected.clone_from(&affected);
    schedule.header.deliveries = Some(deliveries);
    Found { made, records, schedule, steps_before, violation, affected, deliveries, externals }
}
