//! Coarse cuts of what comes from outside: one external message of a kind, or one actor less. They find minima
//! that no sequence of small removals reaches.

use demi_replay::Model;
use demi_replay::names::TextId;
use demi_replay::script::Act;

use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

/// For each type with several external messages, tries to keep only one of them, with each policy (the subset
/// tests of ddmin, Zeller and Hildebrandt 2002). The smallest result of all is kept.
pub fn keep_one<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    let start = reducer.best.clone();
    let mut types: Vec<TextId> = start.acts.iter().filter_map(external_type).collect();
    types.sort_unstable();
    types.dedup();
    for type_ in types {
        let of_type = |act: &Act| external_type(act) == Some(type_);
        let members: Vec<usize> = (0..start.acts.len()).filter(|&i| of_type(&start.acts[i])).collect();
        if members.len() < 2 {
            continue;
        }
        for policy in policies {
            for &kept in &members {
                if reducer.ended() {
                    return;
                }
                let removed: Vec<bool> =
                    start.acts.iter().enumerate().map(|(i, act)| i != kept && of_type(act)).collect();
                let found = reducer.engine.test(&start, &removed, *policy);
                reducer.keep(found);
            }
        }
    }
}

/// Tries to do without an actor altogether: its start, and everything it sends or takes, as one candidate. The
/// smallest result of all is kept.
pub fn without_actor<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    let start = reducer.best.clone();
    let actors = start.acts.iter().filter_map(|act| match act {
        Act::Start(actor) => Some(*actor),
        _ => None,
    });
    for actor in actors {
        let removed: Vec<bool> = start
            .acts
            .iter()
            .map(|act| match act {
                Act::Deliver(want) => want.to == actor || want.from == actor,
                other => other.actor() == Some(actor),
            })
            .collect();
        for policy in policies {
            if reducer.ended() {
                return;
            }
            let found = reducer.engine.test(&start, &removed, *policy);
            reducer.keep(found);
        }
    }
}

fn external_type(act: &Act) -> Option<TextId> {
    match act {
        Act::Deliver(want) if want.external.is_some() => Some(want.type_),
        _ => None,
    }
}
