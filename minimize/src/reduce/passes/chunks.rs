//! Delta debugging of steps: chunks of halving size are removed, the rest is matched by a policy, and each
//! success is the new starting point (complement tests of ddmin, Zeller and Hildebrandt 2002, without the
//! subset tests, which in schedules all but never succeed).

use demi_replay::Model;
use demi_replay::script::Act;

use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

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

/// Sweeps with chunks from half of the elements down to `smallest` elements.
pub fn sweep<M: Model>(reducer: &mut Reducer<'_, M>, policy: Policy, select: Select, smallest: usize) {
    let half = positions(reducer, select).len().div_ceil(2).max(1);
    from(reducer, policy, select, (half, smallest));
}

/// All policies with chunks of the same size before any tries smaller ones: of a long recording most can leave out half where one cannot leave
/// out anything, and which one that is nobody knows. Ends with chunks of `smallest` elements.
pub fn race<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy], select: Select, smallest: usize) {
    let mut parts = 2;
    loop {
        let elements = positions(reducer, select).len();
        let chunk = elements.div_ceil(parts).max(smallest);
        for policy in policies {
            from(reducer, *policy, select, (chunk, chunk));
        }
        let left = positions(reducer, select).len();
        if reducer.ended() || left <= smallest {
            return;
        }
        if left * 2 <= elements {
            parts = 2;
        } else if chunk == smallest {
            return;
        } else {
            parts *= 2;
        }
    }
}

/// One sweep that removes single acts, left to right.
pub fn singles<M: Model>(reducer: &mut Reducer<'_, M>, policy: Policy, select: Select) {
    from(reducer, policy, select, (1, 1));
}

fn from<M: Model>(
    reducer: &mut Reducer<'_, M>,
    policy: Policy,
    select: Select,
    (largest, smallest): (usize, usize),
) {
    let mut elements = positions(reducer, select);
    let mut chunk = largest;
    let mut removed = Vec::new();
    loop {
        let mut at = 0;
        while at < elements.len() {
            if reducer.ended() {
                return;
            }
            removed.clear();
            removed.resize(reducer.best.acts.len(), false);
            for &element in &elements[at..(at + chunk).min(elements.len())] {
                removed[element] = true;
            }
            if reducer.without(&removed, policy) {
                elements = positions(reducer, select);
                chunk = chunk.min(elements.len().max(1));
            } else {
                at += chunk;
            }
        }
        if chunk <= smallest {
            return;
        }
        chunk = (chunk / 2).max(smallest).max(1);
    }
}

/// The places of the acts that may be removed.
pub fn positions<M: Model>(reducer: &Reducer<'_, M>, select: Select) -> Vec<usize> {
    reducer.best.acts.iter().enumerate().filter(|(_, a)| select(a)).map(|(i, _)| i).collect()
}
