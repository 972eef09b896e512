//! Searches with ever higher limits, so that a bound leaves out most of what lies beyond the shortest (iterative deepening; Korf
//! 1985, with breadth-first searches).

use std::sync::Arc;

use demi_replay::Model;
use demi_replay::model::DistanceOf;

use demi_space::Unsearchable;

use super::query::{Query, Searched};
use super::root::Root;
use crate::oracle::engine::Engine;
use crate::oracle::witness::Shared;
use crate::problem::size::starts_late;

/// Asks with ever more deliveries, up to those of the query, until something is found, which then is the shortest there is, or it
/// is proven that there is nothing, or the limit of configurations for all of it or the budget ends.
///
/// # Errors
/// As [`Query::run`] has them.
pub fn deepen<M: Model>(query: &Query<'_, M>, engine: &mut Engine<M>) -> Result<Searched<M>, Unsearchable> {
    if !query.is_bounded() {
        // Limits prune nothing then: one search goes as deep as it may.
        return query.clone().run(engine);
    }
    let (longest, most) = query.limits();
    let first = query.lower_bound(engine)?.min(longest.saturating_add(1));
    let (found, length, stopped) = (None, None, None);
    let mut best = Searched { found, length, at_least: first, complete: false, states: 0, stopped };
    for limit in first..=longest {
        let left = most.saturating_sub(best.states);
        let searched = query.clone().deliveries(limit).states(left).run(engine)?;
        best.states += searched.states;
        if !searched.complete {
            best.at_least = best.at_least.max(searched.at_least);
            best.stopped = searched.stopped;
            return Ok(best);
        }
        best.at_least = limit + 1;
        if searched.length.is_some() {
            best.at_least = limit;
            (best.found, best.length) = (searched.found, searched.length);
            break;
        }
    }
    best.complete = true;
    Ok(best)
}

/// Looks for something shorter than a witness over its external events, or proves that there is nothing. Without a bound not many
/// more than `few` configurations are visited, for then the end is out of reach; with one not many more than `most`.
/// Where an actor of the witness starts late something just as long is looked for too, in which all start first.
///
/// # Errors
/// As [`Query::run`] has them.
pub fn prove<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    bound: Option<&Arc<DistanceOf<M>>>,
    (few, most): (u64, u64),
    threads: usize,
) -> Result<Searched<M>, Unsearchable> {
    let late = usize::from(starts_late(&witness.acts));
    let longest = (witness.size.deliveries + late).saturating_sub(1);
    let states = if bound.is_none() { few } else { most };
    let query = Query::from(Root::Started).over(&witness.acts).bound(bound).threads(threads);
    deepen(&query.deliveries(longest).states(states), engine)
}
