//! The shortest violating execution over given external events, by exhaustive search under a bound.
//!
//! Breadth first over configurations: each is entered once, with the fewest deliveries that reach it, and left where
//! the model's lower bound ([`Model::bound`]) says that no violation is near enough. What is left when nothing is
//! found is a proof that nothing shorter exists (A* without a queue: all edges cost one; Hart, Nilsson and Raphael
//! 1968).

use demi_replay::model::Bound;
use demi_replay::script::Act;
use demi_replay::{Did, Model, Pending, World, network};
use demi_schemas::NetworkRule;
use rustc_hash::FxHashSet;

use crate::engine::{EXACT, Engine, Shared};

/// Configurations that one search remembers at most.
pub const MAX_STATES: usize = 10_000_000;
/// Configurations of one level that are held at most.
const MAX_LEVEL: usize = 1_000_000;

/// What a search came to.
#[derive(Debug)]
pub struct Searched<M: Model> {
    /// A shortest violating execution, if one was found within the limit.
    pub found: Option<Shared<M>>,
    /// No violating execution over these external events has fewer deliveries.
    pub at_least: usize,
    /// Whether the search ended by itself: then `found` is optimal, or there is nothing up to the limit.
    pub complete: bool,
    /// Configurations visited.
    pub states: u64,
    /// Why it ended otherwise.
    pub stopped: Option<&'static str>,
}

/// How a configuration was reached.
#[derive(Clone, Copy)]
struct Step {
    parent: u32,
    entry: u32,
}

/// Searches for a violating execution over the external events of `witness` with at most `limit` deliveries. Starts
/// come first and messages from outside may be taken at any time, each at most once.
///
/// Gives nothing if the witness has other external events than these.
pub fn shortest<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    bound: Option<&Bound<M>>,
    limit: usize,
) -> Option<Searched<M>> {
    let other = |act: &Act| !matches!(act, Act::Start(_) | Act::Deliver(_) | Act::Inject(..));
    if witness.acts.iter().any(other) {
        return None;
    }
    let (starts, root) = root(engine, witness);
    let mut steps = vec![Step { parent: 0, entry: 0 }];
    let mut seen: FxHashSet<u128> = FxHashSet::default();
    let mut level: Vec<(World<M>, u32)> = vec![(root, 0)];
    let mut searched = Searched { found: None, at_least: 0, complete: false, states: 0, stopped: None };
    let (mut candidates, mut done) = (Vec::new(), Vec::new());
    for depth in 1..=limit {
        // Everything with fewer deliveries was looked at, or cannot end within the limit.
        searched.at_least = depth;
        let mut next = Vec::new();
        for (world, at) in level.drain(..) {
            if engine.meter.ended().is_some() {
                searched.stopped = Some("budget");
                return Some(searched);
            }
            choices(engine, &world, &mut candidates);
            for &index in &candidates {
                let mut after = world.clone();
                done.clear();
                let violated = engine.deliver(&mut after, index, &mut done);
                searched.states += 1;
                if violated {
                    let path = path(&steps, at, index);
                    searched.found = witness_of(engine, witness, &starts, &path);
                    searched.complete = searched.found.is_some();
                    return Some(searched);
                }
                if idle(engine, &world, &after, index) {
                    continue;
                }
                if depth + missing(engine, &after, bound) > limit || !seen.insert(hash(engine, &after)) {
                    continue;
                }
                let Ok(number) = u32::try_from(steps.len()) else { return Some(searched) };
                steps.push(Step { parent: at, entry: index as u32 });
                next.push((after, number));
            }
            if seen.len() > MAX_STATES || next.len() > MAX_LEVEL {
                searched.stopped = Some("memory");
                return Some(searched);
            }
        }
        level = next;
        if level.is_empty() {
            break;
        }
    }
    searched.at_least = limit + 1;
    searched.complete = true;
    Some(searched)
}

/// Searches with ever higher limits until something shorter than the witness is found, which then is the shortest
/// there is, or it is proven that there is nothing, or the budget ends. Without a bound at most `few` configurations
/// are visited, for then the end is out of reach.
pub fn prove<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    bound: Option<&Bound<M>>,
    few: u64,
) -> Option<Searched<M>> {
    let (_, world) = root(engine, witness);
    let first = missing(engine, &world, bound);
    let mut best = Searched { found: None, at_least: first, complete: false, states: 0, stopped: None };
    for limit in first..witness.size.deliveries {
        let searched = shortest(engine, witness, bound, limit)?;
        best.states += searched.states;
        if !searched.complete {
            best.at_least = best.at_least.max(searched.at_least);
            best.stopped = searched.stopped;
            return Some(best);
        }
        best.at_least = limit + 1;
        if searched.found.is_some() {
            best.at_least = limit;
            best.found = searched.found;
            break;
        }
        if bound.is_none() && best.states > few {
            best.stopped = Some("no bound");
            return Some(best);
        }
    }
    best.complete = true;
    Some(best)
}

/// All actors started and all messages from outside pending.
fn root<M: Model>(engine: &mut Engine<M>, witness: &Shared<M>) -> (Vec<Act>, World<M>) {
    let starts: Vec<Act> = witness.acts.iter().filter(|a| matches!(a, Act::Start(_))).copied().collect();
    let mut world = engine.sim.empty_world();
    for act in &starts {
        engine.follow(&mut world, act);
    }
    for act in &witness.acts {
        if let Act::Deliver(want) = act
            && let Some(msg) = want.external
        {
            engine.sim.inject(&mut world, want.to, msg);
        }
    }
    (starts, world)
}

/// What may be delivered next, of equal entries only one.
fn choices<M: Model>(engine: &Engine<M>, world: &World<M>, into: &mut Vec<usize>) {
    into.clear();
    let pending = world.pending();
    for (index, entry) in pending.iter().enumerate() {
        let twin = |p: &Pending| {
            p.to == entry.to
                && p.from == entry.from
                && p.channel == entry.channel
                && p.msg == entry.msg
                && p.kind == entry.kind
        };
        if engine.sim.deliverable(world, index, engine.rule) && !pending[..index].iter().any(twin) {
            into.push(index);
        }
    }
}

/// Whether the delivery only used something up. Not to deliver it leaves as much or more to go on with, unless it
/// stands in the way of what is behind it.
fn idle<M: Model>(engine: &Engine<M>, before: &World<M>, after: &World<M>, index: usize) -> bool {
    let entry = &before.pending()[index];
    let in_the_way = engine.rule == NetworkRule::Fifo && network::ordered(entry);
    !in_the_way
        && engine.sim.did().iter().all(|d| matches!(d, Did::TimerCancelled(_)))
        && after.same_states(before)
}

fn missing<M: Model>(engine: &Engine<M>, world: &World<M>, bound: Option<&Bound<M>>) -> usize {
    let Some(bound) = bound else { return 1 };
    bound(&engine.sim.view(world), &engine.sim.waiting(world)).max(1)
}

/// Timers count by what they are, not by their number.
fn hash<M: Model>(engine: &Engine<M>, world: &World<M>) -> u128 {
    let sim = &engine.sim;
    world.configuration_hash(engine.in_order(), |p| {
        let info = sim.info(p.msg);
        if p.kind.is_timer() { info.fingerprint.0 } else { p.msg.0 }
    })
}

fn path(steps: &[Step], at: u32, last: usize) -> Vec<usize> {
    let mut path = vec![last];
    let mut at = at as usize;
    while at != 0 {
        path.push(steps[at].entry as usize);
        at = steps[at].parent as usize;
    }
    path.reverse();
    path
}

/// Follows the path and has it verified.
fn witness_of<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    starts: &[Act],
    path: &[usize],
) -> Option<Shared<M>> {
    let (_, mut world) = root(engine, witness);
    let mut acts = starts.to_vec();
    for &index in path {
        engine.deliver(&mut world, index, &mut acts);
    }
    engine.first_witness(&acts, EXACT)
}
