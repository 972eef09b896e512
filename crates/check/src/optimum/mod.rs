//! The fewest steps to a violation, found by a plain breadth-first search.
//!
//! It is the yardstick for minimization and shares nothing with it: no bound, no order, no symmetry, and queues of its own.
//! Of the simulator it uses only what runs one handler on one state. Every step of a schedule counts: starts, deliveries,
//! timers, faults. The external events are a subset of the recorded ones. Messages from outside belong to no channel, so they
//! may be delivered in any order; faults keep the recorded one; an actor may start at any time.

mod configuration;
mod handlers;
mod recorded;

use demi_replay::{Model, Simulator};
use demi_schemas::schedule::Step;
use demi_schemas::{NetworkRule, Schedule};
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use self::configuration::Configuration;
use self::handlers::Handlers;
pub use self::recorded::Unsupported;
use self::recorded::{Move, Recorded};

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub enum Optimum {
    /// No shorter execution exists; the schedule has as many steps.
    Proven(Schedule),
    /// The search ended before a violation was met: there is none with fewer steps than this.
    AtLeast(usize),
}

impl Optimum {
    /// The number of steps that every violating execution has at least.
    #[must_use]
    pub fn at_least(&self) -> usize {
        match self {
            Optimum::Proven(schedule) => schedule.steps.len(),
            Optimum::AtLeast(steps) => *steps,
        }
    }
}

/// A configuration that was met: where from, and by which step.
struct Met {
    parent: u32,
    step: Move,
}

/// Looks for a shortest execution that violates as `target` says, among those whose external events are recorded ones.
/// It ends without an answer once it has met `limit` configurations.
///
/// # Errors
/// When the schedule has steps that the search does not know.
pub fn optimum<M: Model>(
    sim: &Simulator<M>,
    recorded: &Schedule,
    rule: NetworkRule,
    target: &[String],
    limit: usize,
) -> Result<Optimum, Unsupported> {
    let mut sim = sim.clone();
    let recorded = Recorded::of(&mut sim, recorded)?;
    let mut handlers = Handlers::new(sim, rule, target);
    let first = Configuration::new(handlers.actors(), recorded.few.len());
    let mut seen: FxHashSet<u128> = [xxh3_128(&first.bytes())].into_iter().collect();
    let mut met: Vec<Met> = Vec::new();
    let mut layer = vec![(u32::MAX, first)];
    for depth in 1.. {
        let mut next = Vec::new();
        for (parent, configuration) in &layer {
            for step in recorded.moves(configuration, &mut handlers) {
                let Some(after) = handlers.apply(configuration, step, &recorded) else { continue };
                if !seen.insert(xxh3_128(&after.bytes())) {
                    continue;
                }
                met.push(Met { parent: *parent, step });
                if handlers.violates(&after) {
                    return Ok(Optimum::Proven(schedule(&handlers, &recorded, &met)));
                }
                if met.len() >= limit {
                    return Ok(Optimum::AtLeast(depth));
                }
                next.push((met.len() as u32 - 1, after));
            }
        }
        if next.is_empty() {
            return Ok(Optimum::AtLeast(depth));
        }
        layer = next;
    }
    Ok(Optimum::AtLeast(0))
}

/// The steps that led to the configuration that was met last.
fn schedule<M: Model>(handlers: &Handlers<M>, recorded: &Recorded, met: &[Met]) -> Schedule {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = met.len() as u32 - 1;
    while let Some(Met { parent, step }) = met.get(at as usize) {
        steps.push(handlers.step(*step, recorded));
        at = *parent;
    }
    steps.reverse();
    Schedule::new(steps)
}
