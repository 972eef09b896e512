//! Without one step, the orders of what is left, nearest first: prioritized DPOR (NSDI'16 section 4, over optimal DPOR).
//!
//! The first schedule delivers what is left in its order, each step served by a pending entry of the same kind; then
//! come those in which races are decided the other way ([`crate::dpor`]), those with the fewest reversals first. Where the
//! model has a bound, they are taken once more with those first that branch off where the violation is nearest. Each time
//! each order that matters is tried once.

use demi_replay::script::Act;
use demi_replay::{Model, Simulator, World};

use super::chunks;
use crate::dpor::step::{Choice, Ground, Proc, Step, Tracked};
use crate::dpor::{Explorer, Guide, Limits, Priority};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::matcher::Matcher;
use crate::oracle::witness::Shared;
use crate::problem::budget::Meter;
use crate::reduce::reducer::Reducer;

/// Worlds that one exploration keeps.
const SNAPSHOTS: usize = 4_096;

/// Removes each step alone, external events first, and explores at most `executions` orders of the rest for each.
pub fn remove<M: Model>(reducer: &mut Reducer<'_, M>, executions: u64) {
    for which in [chunks::external, chunks::internal] {
        let mut at = 0;
        while at < reducer.best.acts.len() && !reducer.ended() {
            let best = reducer.best.clone();
            let tried =
                which(&best.acts[at]) && at >= best.pinned && !matches!(best.acts[at], Act::Action(_));
            // Nearest to what was recorded, then nearest to the violation.
            let near = reducer.engine.own_bound().map(Priority::Distance);
            let mut complete = !tried;
            let gained = [Some(Priority::Closeness), near].into_iter().flatten().any(|priority| {
                if complete {
                    return false;
                }
                let found;
                (found, complete) = without(&mut reducer.engine, &best, at, (priority, executions));
                reducer.keep(found)
            });
            if !gained {
                at += 1;
            }
        }
    }
}

/// Explores orders of a witness's steps without one, so many at most; gives a smaller witness if one is met, and
/// whether all orders were explored.
pub fn without<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    removed: usize,
    (priority, executions): (Priority<M>, u64),
) -> (Option<Shared<M>>, bool) {
    let (mut world, mut done) = engine.world_at(witness, removed);
    let wanted: Vec<Act> = witness.acts[removed + 1..].to_vec();
    let mut faults = Vec::new();
    for act in &wanted {
        match act {
            Act::Start(_) => {
                engine.follow(&mut world, act);
                done.push(*act);
            }
            Act::Deliver(want) => {
                if let Some(msg) = want.external {
                    engine.sim.inject(&mut world, want.to, msg);
                }
            }
            Act::Crash(_)
            | Act::Restart(_)
            | Act::Isolate(_)
            | Act::Heal(_)
            | Act::Stop(_)
            | Act::Duplicate(_)
            | Act::Action(_) => {
                faults.push(*act);
            }
            Act::Inject(..) | Act::Noted(_) | Act::Sent => {}
        }
    }
    let fewer = usize::from(witness.acts[removed].is_external());
    let depth = engine.limit(witness, fewer).saturating_sub(done.len());
    let meter = engine.meter.clone();
    let snapshots = SNAPSHOTS.min(engine.worlds_at_most());
    let mut guide = Follow { wanted: &wanted, target: engine.problem.target.clone(), meter };
    let ground =
        Ground { sim: &mut engine.sim, rule: engine.rule, faults: &faults, actions: &engine.actions };
    let first = ground.begin(world);
    let limits = Limits { executions, depth, snapshots };
    let explored = Explorer::new(ground, first, &mut guide, priority, limits).explore();
    engine.meter.replays += explored.executions + explored.blocked;
    engine.meter.executed += explored.steps;
    let Some(found) = explored.found else { return (None, explored.complete) };
    done.extend(found);
    let found = engine.first_witness(&done, EXACT).filter(|found| engine.smaller(found.size, witness.size));
    (found, explored.complete)
}

/// Follows the wanted steps in their order and leaves out those that nothing serves.
struct Follow<'a> {
    wanted: &'a [Act],
    target: Vec<String>,
    /// Of what may be spent; the time of it ends an exploration.
    meter: Meter,
}

impl<M: Model> Guide<M> for Follow<'_> {
    fn pick(
        &mut self,
        sim: &Simulator<M>,
        at: &Tracked<M>,
        mark: &mut usize,
        awake: &[(Proc, Choice)],
    ) -> Option<usize> {
        if self.meter.late() {
            return None;
        }
        let place = |choice: Choice| awake.iter().position(|(_, awake)| *awake == choice);
        while let Some(act) = self.wanted.get(*mark) {
            *mark += 1;
            let found = match act {
                Act::Deliver(want) => Matcher::TypeNewest
                    .find(sim, &at.world, want, |index, _| place(Choice::Deliver(index)).is_some())
                    .and_then(|index| place(Choice::Deliver(index))),
                Act::Start(_) | Act::Inject(..) | Act::Noted(_) | Act::Sent => None,
                _ => place(Choice::Fault),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn executed(&mut self, _: &[Step]) -> bool {
        !self.meter.late()
    }

    fn found(&mut self, sim: &Simulator<M>, world: &World<M>) -> bool {
        let mut found = Vec::new();
        sim.check(world, &mut M::History::default(), &mut found);
        found.iter().any(|v| self.target.contains(&v.fingerprint))
    }
}
