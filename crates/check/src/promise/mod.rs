//! Whether a promise is kept, found out once more by code that shares nothing with the search.
//!
//! The search takes moments in the order of what they cost and knows them by a hash. Here they are taken in the order of their steps, all
//! after one step, then all after two; they are compared themselves, and each is gone on from again where an execution comes to it
//! for less. What may happen, what it costs and which recorded step comes next is written a second time, on the simulator alone.

mod beginning;
mod known;
mod possible;

use demi_replay::fuzz::{FuzzError, Program};
use demi_replay::script::{Act, ScriptError};
use demi_replay::{ActorId, Model, OUTSIDE, Simulator, World};
use demi_schemas::{NetworkRule, Scenario, Schedule};

use self::known::Known;
use crate::cost::Cost;

/// What is claimed: no execution within these limits violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is counted.
    pub cost: Cost,
    /// Most that an execution spends of it.
    pub bound: u32,
    /// Most faults of an execution.
    pub faults: u32,
    /// Most steps of an execution; nothing where the claim is about executions of any length.
    pub steps: Option<u32>,
}

/// Where executions begin.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At the scenario's beginning, with so many client messages, which the seed decides.
    Beginning {
        /// How many.
        clients: u32,
        /// What they are.
        seed: u64,
    },
    /// At a recorded execution, after so many of its deliveries.
    Recorded(&'a Schedule, u64),
}

/// Why a claim cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecheckError {
    /// The scenario makes no sense to the model.
    #[error(transparent)]
    Settings(#[from] FuzzError),
    /// The recorded execution makes no sense to the model.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The model cannot follow the recorded execution to where executions begin.
    #[error("the recorded execution cannot be followed to its delivery {0}")]
    Diverged(u64),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No execution violates.
    Kept {
        /// How many different configurations there are.
        configurations: u64,
    },
    /// One does.
    Broken {
        /// What it violates.
        violation: Vec<String>,
        /// What it costs.
        cost: u32,
        /// Its faults.
        faults: u32,
        /// Its steps.
        steps: u32,
    },
    /// The caller stopped it.
    Stopped,
}

/// A point of an execution.
struct Point<M: Model> {
    world: World<M>,
    /// How much of the test driver's program is done.
    done: usize,
    /// How many client messages were sent.
    sent: usize,
    /// How much of the recording is done or passed over.
    at: usize,
    /// Whether client messages may come.
    open: bool,
    /// Who took something last.
    last: Option<ActorId>,
}

impl<M: Model> Clone for Point<M> {
    fn clone(&self) -> Self {
        let Point { done, sent, at, open, last, .. } = *self;
        Point { world: self.world.clone(), done, sent, at, open, last }
    }
}

/// What all executions have in common.
struct Frame {
    rule: NetworkRule,
    repeats: bool,
    cost: Cost,
    wait_for: Option<String>,
    program: Program,
    clients: Vec<u64>,
    /// What was recorded: the number of each step, and what it does.
    log: Vec<(u32, Act)>,
}

/// Enumerates all executions that a claim is about. `go_on` is told now and then how many steps were made, and answers whether to make more.
///
/// # Errors
/// When the scenario or the recording makes no sense to the model.
pub fn recheck<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    claim: Claim,
    start: Start<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Answer, RecheckError> {
    let (frame, first) = match start {
        Start::Beginning { clients, seed } => beginning::of(sim, scenario, claim.cost, clients, seed)?,
        Start::Recorded(recorded, deliveries) => {
            beginning::around(sim, scenario, claim.cost, recorded, deliveries)?
        }
    };
    if let Some(violation) = broken(sim, &first.world) {
        return Ok(Answer::Broken { violation, cost: 0, faults: 0, steps: 0 });
    }
    let mut known = Known::default();
    let mut layer = vec![(first, 0, 0)];
    let (mut steps, mut made) = (0, 0);
    while !layer.is_empty() && claim.steps.is_none_or(|most| steps < most) {
        steps += 1;
        let mut next = Vec::new();
        for (point, cost, faults) in layer {
            if !go_on(made) {
                return Ok(Answer::Stopped);
            }
            if !known.is_new(sim, &frame, &point, (cost, faults)) {
                continue;
            }
            for event in possible::events(sim, &frame, &point) {
                let (cost, faults) = (cost + event.cost, faults + event.faults);
                if cost > claim.bound || faults > claim.faults {
                    continue;
                }
                made += 1;
                let (after, violation) = frame.after(sim, &point, &event)?;
                if let Some(violation) = violation {
                    return Ok(Answer::Broken { violation, cost, faults, steps });
                }
                next.push((after, cost, faults));
            }
        }
        layer = next;
    }
    // What comes after the last step was judged, and is not gone on from.
    for (point, cost, faults) in layer {
        known.is_new(sim, &frame, &point, (cost, faults));
    }
    Ok(Answer::Kept { configurations: known.count() })
}

/// What a world violates by itself.
fn broken<M: Model>(sim: &Simulator<M>, world: &World<M>) -> Option<Vec<String>> {
    let mut found = Vec::new();
    if let Err(panic) = sim.judge(world, &mut M::History::default(), &mut found) {
        return (panic.actor == OUTSIDE).then(|| vec![sim.explain(&panic)]);
    }
    let mut names: Vec<String> = found.into_iter().map(|violation| violation.fingerprint).collect();
    names.sort();
    (!names.is_empty()).then_some(names)
}
