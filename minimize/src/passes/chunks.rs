//! Delta debugging of steps: chunks of halving size are removed, the rest is matched by a policy, and each
//! success is the new starting point (complement tests of ddmin, Zeller and Hildebrandt 2002, without the
//! subset tests, which in schedules all but never succeed).

use demi_replay::Model;
use demi_replay::script::Act;

use super::Watch;
use crate::engine::{Engine, Shared};
use crate::matcher::Policy;

/// Which acts a sweep may remove.
pub type Select = fn(&Act) -> bool;

/// Deliveries that are not external: messages between actors, and timers.
#[must_use]
pub fn internal(act: &Act) -> bool {
    act.is_delivery() && !act.is_external()
}

/// External events.
#[must_use]
pub fn external(act: &Act) -> bool {
    act.is_external()
}

/// Everything.
#[must_use]
pub fn any(act: &Act) -> bool {
    !matches!(act, Act::Inject(..))
}

/// Sweeps with chunks from half of the elements down to `smallest` elements. Gives the smaller witness, if there
/// is one.
pub fn sweep<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policy: Policy,
    select: Select,
    smallest: usize,
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    let half = positions(start, select).len().div_ceil(2).max(1);
    from(engine, start, policy, select, (half, smallest), watch)
}

/// One sweep that removes single acts, left to right.
pub fn singles<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policy: Policy,
    select: Select,
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    from(engine, start, policy, select, (1, 1), watch)
}

fn from<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policy: Policy,
    select: Select,
    (largest, smallest): (usize, usize),
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    let mut best = start.clone();
    let mut elements = positions(&best, select);
    let mut chunk = largest;
    let mut removed = Vec::new();
    loop {
        let mut at = 0;
        while at < elements.len() {
            if engine.meter.ended().is_some() {
                return smaller(start, best);
            }
            removed.clear();
            removed.resize(best.acts.len(), false);
            for &element in &elements[at..(at + chunk).min(elements.len())] {
                removed[element] = true;
            }
            match engine.test(&best, &removed, policy, limit_for(&best, &removed)) {
                Some(found) => {
                    best = found;
                    watch.smaller(engine, &best);
                    elements = positions(&best, select);
                    chunk = chunk.min(elements.len().max(1));
                }
                None => at += chunk,
            }
        }
        if chunk <= smallest {
            return smaller(start, best);
        }
        chunk = (chunk / 2).max(smallest).max(1);
    }
}

/// A removed external may cost deliveries: fewer externals come first in the comparison.
fn limit_for<M: Model>(witness: &Shared<M>, removed: &[bool]) -> Option<usize> {
    let fewer = witness.acts.iter().zip(removed).any(|(a, r)| *r && a.is_external());
    fewer.then_some(witness.size.deliveries * 2 + 8)
}

fn positions<M: Model>(witness: &Shared<M>, select: Select) -> Vec<usize> {
    witness.acts.iter().enumerate().filter(|(_, a)| select(a)).map(|(i, _)| i).collect()
}

fn smaller<M: Model>(start: &Shared<M>, best: Shared<M>) -> Option<Shared<M>> {
    (best.size < start.size).then_some(best)
}
