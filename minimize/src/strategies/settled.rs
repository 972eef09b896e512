//! A proof that nothing smaller exists with any subset of the recorded external events: then there is nothing left to look for.
//!
//! An execution has fewer steps than the result only if it starts some of the recorded actors and then takes so many deliveries
//! less. So there is one search for each set of actors. In all of them messages come in any order, for what holds then holds
//! under every rule, and of executions whose actors start late ([`Query::in_any_order`]).

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::certificate::Settled;

use crate::plan::{SETTLED, SETTLED_EXTERNALS, SETTLED_STARTS};
use crate::problem::size::{Objective, Size};
use crate::reduce::reducer::Reducer;
use crate::search::{Query, Root, Searched};

/// Tries to prove that no violating execution with any subset of the recorded external events has fewer steps than `best`. Gives nothing where that
/// takes too much work, where one has, and where the recording has other external events than first starts and messages.
pub fn settled<M: Model>(reducer: &mut Reducer<'_, M>, best: Size) -> Option<Settled> {
    let problem = reducer.engine.problem.clone();
    if problem.options.objective != Objective::Steps || reducer.ended() {
        return None;
    }
    let recorded = &problem.script.acts;
    let sets = sets(recorded)?;
    let bound = reducer.engine.own_bound();
    let jobs = problem.options.jobs.max(1);
    let mut states = 0;
    let mut smaller = false;
    reducer.phase("search over everything recorded", |s| {
        for set in &sets {
            let Some(limit) = best.steps.checked_sub(set.len() + 1).filter(|limit| *limit > 0) else {
                continue;
            };
            let most = SETTLED.saturating_sub(states);
            let query = Query::from(Root::Only(set)).over(recorded).in_any_order();
            let query = query.deliveries(limit).states(most).bound(bound.as_ref()).threads(jobs);
            let searched = query.run(&mut s.engine);
            match s.searched(searched).filter(Searched::nothing) {
                Some(none) if states + none.states <= SETTLED => states += none.states,
                _ => {
                    smaller = true;
                    return;
                }
            }
        }
    });
    (!smaller).then_some(Settled { steps: best.steps as u64, bounded: bound.is_some(), states })
}

/// Every set of starts; nothing where there are too many, or other external events.
fn sets(recorded: &[Act]) -> Option<Vec<Vec<Act>>> {
    let mut starts: Vec<Act> = Vec::new();
    let mut messages = 0;
    for act in recorded {
        match act {
            Act::Start(_) if !starts.contains(act) => starts.push(*act),
            Act::Deliver(want) => messages += usize::from(want.external.is_some()),
            Act::Inject(..) | Act::Noted(_) => {}
            _ => return None,
        }
    }
    if starts.len() > SETTLED_STARTS || messages > SETTLED_EXTERNALS {
        return None;
    }
    let of = |set: usize| (0..starts.len()).filter(|at| set >> at & 1 == 1).map(|at| starts[at]).collect();
    let mut sets: Vec<Vec<Act>> = (0..1_usize << starts.len()).map(of).collect();
    // The largest sets are most likely to have something smaller, and then there is no more to do.
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    Some(sets)
}
