//! Other endings: from a place on the witness, the shortest way to the violation by exhaustive search.
//!
//! Places are tried from the end on. What comes before stays as it is, and all messages from outside that come after
//! may be taken at any time or never, so an ending is found that no removal and no small change of order makes. With a
//! bound of the model the search reaches far back; without one some ten deliveries.

use demi_replay::Model;
use demi_replay::script::Act;

use crate::reduce::reducer::Reducer;
use crate::search::{Query, Root};

/// Deliveries between two places that are tried.
const STRIDE: usize = 2;
/// Places in a row at which the search may end before it is done.
const GIVE_UP: usize = 2;

/// Looks for shorter endings, and for endings with fewer messages from outside, on `jobs` threads, with not many more
/// than `most` configurations for each place. Goes on until there are none.
pub fn search<M: Model>(reducer: &mut Reducer<'_, M>, most: u64, jobs: usize) {
    while once(reducer, most, jobs) && !reducer.ended() {}
}

/// Says whether something was found.
fn once<M: Model>(reducer: &mut Reducer<'_, M>, most: u64, jobs: usize) -> bool {
    let bound = reducer.engine.bound();
    let witness = reducer.best.clone();
    let start = |act: &Act| matches!(act, Act::Start(_));
    let after_starts = witness.acts.iter().rposition(start).map_or(0, |at| at + 1);
    let first = after_starts.max(witness.pinned);
    let (mut at, mut cut) = (witness.acts.len(), 0);
    while at >= first + STRIDE && cut < GIVE_UP && !reducer.ended() {
        at -= STRIDE;
        let left = witness.acts[at..].iter().filter(|a| a.is_delivery()).count();
        if left < STRIDE {
            continue;
        }
        let ending = |without, deliveries| {
            let query = Query::from(Root::Before { witness: &witness, at, without });
            query.deliveries(deliveries).states(most).bound(bound.as_ref()).threads(jobs)
        };
        let searched = ending(None, left - 1).run(&mut reducer.engine);
        let Some(searched) = reducer.searched(searched) else { return false };
        cut = if searched.complete { 0 } else { cut + 1 };
        if reducer.keep(searched.found) {
            return true;
        }
        if !searched.complete {
            continue;
        }
        // One message from outside less, and no more deliveries; of each sort the last.
        let mut tried = Vec::new();
        for place in (at..witness.acts.len()).rev() {
            let Act::Deliver(want) = &witness.acts[place] else { continue };
            if want.external.is_none() || tried.contains(&(want.to, want.type_)) {
                continue;
            }
            tried.push((want.to, want.type_));
            let searched = ending(Some(place), left).run(&mut reducer.engine);
            let searched = reducer.searched(searched);
            if searched.is_some_and(|searched| reducer.keep(searched.found)) {
                return true;
            }
        }
    }
    false
}
