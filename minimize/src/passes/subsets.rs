//! Keeping one external message of a kind: the subset tests of ddmin (Zeller and Hildebrandt 2002), which find
//! minima that no sequence of small removals reaches.

use demi_replay::Model;
use demi_replay::script::Act;

use super::Watch;
use crate::engine::{Engine, Shared};
use crate::matcher::Policy;

/// For each type with several external messages, tries to keep only one of them, with each policy; takes the
/// smallest result.
pub fn keep_one<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policies: &[Policy],
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    let mut best = start.clone();
    let mut types: Vec<_> = external_types(start).collect();
    types.sort_unstable();
    types.dedup();
    for type_ in types {
        let members: Vec<usize> =
            (0..start.acts.len()).filter(|&i| external_type(&start.acts[i]) == Some(type_)).collect();
        if members.len() < 2 {
            continue;
        }
        for policy in policies {
            for &kept in &members {
                if engine.meter.ended().is_some() {
                    break;
                }
                let mut removed = vec![false; start.acts.len()];
                for &member in members.iter().filter(|&&m| m != kept) {
                    removed[member] = true;
                }
                let limit = Some(start.size.deliveries * 2 + 8);
                if let Some(found) = engine.test(start, &removed, *policy, limit)
                    && found.size < best.size
                {
                    best = found;
                    watch.smaller(engine, &best);
                }
            }
        }
    }
    (best.size < start.size).then_some(best)
}

/// Tries to do without an actor altogether: its start, and everything it sends or takes, as one candidate.
pub fn without_actor<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policies: &[Policy],
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    let mut best = start.clone();
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
            let limit = Some(start.size.deliveries * 2 + 8);
            if let Some(found) = engine.test(start, &removed, *policy, limit)
                && found.size < best.size
            {
                best = found;
                watch.smaller(engine, &best);
            }
        }
    }
    (best.size < start.size).then_some(best)
}

fn external_type(act: &Act) -> Option<demi_replay::names::TextId> {
    match act {
        Act::Deliver(want) if want.external.is_some() => Some(want.type_),
        _ => None,
    }
}

fn external_types<M: Model>(witness: &Shared<M>) -> impl Iterator<Item = demi_replay::names::TextId> {
    witness.acts.iter().filter_map(external_type)
}
