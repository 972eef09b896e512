//! Several causes at once, each with all that it brought about.
//!
//! One cause alone often cannot go: without one of two requests the counters of their receivers no longer stand to each other
//! as they did, and what follows comes out in another order. Without one request of *each* receiver they do. So what goes
//! together is one cause of each of several actors, or the same stretch of what each actor is told.

use demi_replay::script::Act;
use demi_replay::{ActorId, Model};

use super::structure::{cone, survey, try_all};
use crate::oracle::matcher::Policy;
use crate::plan::{JOINT_PAIRS, JOINT_STRETCHES};
use crate::reduce::reducer::Reducer;

/// Leaves out stretches of causes, of every actor the same ones, and pairs of causes, each with all that exists only because
/// of it. Causes are messages from outside, and timers.
pub fn cones<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    loop {
        let best = reducer.best.clone();
        let cause = survey(&mut reducer.engine, &best).cause;
        let outside = heads(&best.acts, |act| act.external.is_some());
        let timers = heads(&best.acts, |act| act.external.is_none() && act.timer);
        let together = |heads: &[usize]| {
            let mut inside = vec![false; best.acts.len()];
            for head in heads {
                cone(&cause, *head).iter().enumerate().for_each(|(at, of)| inside[at] |= of);
            }
            inside
        };
        let mut sets = stretches(&best.acts, &outside);
        sets.extend(pairs(&best.acts, &outside, &outside));
        sets.extend(stretches(&best.acts, &timers));
        sets.extend(pairs(&best.acts, &outside, &timers));
        sets.extend(pairs(&best.acts, &timers, &timers));
        if !try_all(reducer, policies, sets.iter().map(|set| together(set))) {
            return;
        }
    }
}

/// The places of deliveries of one kind.
fn heads(acts: &[Act], is: impl Fn(&demi_replay::script::Want) -> bool) -> Vec<usize> {
    let of = |act: &Act| matches!(act, Act::Deliver(want) if is(want));
    (0..acts.len()).filter(|at| of(&acts[*at])).collect()
}

/// The same stretch of what each actor takes, the longest first: of all actors the first half, the second half, and so on down
/// to one cause of each. Actors with fewer causes count from the beginning and, apart from that, from the end.
fn stretches(acts: &[Act], heads: &[usize]) -> Vec<Vec<usize>> {
    let mut actors: Vec<ActorId> = heads.iter().filter_map(|at| acts[*at].actor()).collect();
    actors.sort_unstable();
    actors.dedup();
    if actors.len() < 2 {
        return Vec::new();
    }
    let of = |actor: &ActorId| heads.iter().copied().filter(|at| acts[*at].actor() == Some(*actor)).collect();
    let lists: Vec<Vec<usize>> = actors.iter().map(of).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut sets = Vec::new();
    let mut width = longest.div_ceil(2);
    while width > 0 && sets.len() < JOINT_STRETCHES {
        for from in (0..longest).step_by(width) {
            let part = |list: &Vec<usize>| list.iter().skip(from).take(width).copied().collect::<Vec<_>>();
            sets.push(lists.iter().flat_map(part).collect());
            if lists.iter().any(|list| list.len() != longest) {
                let part =
                    |list: &Vec<usize>| list.iter().rev().skip(from).take(width).copied().collect::<Vec<_>>();
                sets.push(lists.iter().flat_map(part).collect());
            }
        }
        width = if width == 1 { 0 } else { width.div_ceil(2) };
    }
    sets.truncate(JOINT_STRETCHES);
    sets
}

/// Pairs of causes at different actors, those nearest to each other first.
fn pairs(acts: &[Act], some: &[usize], others: &[usize]) -> Vec<Vec<usize>> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for &a in some {
        let apart = |b: &&usize| acts[**b].actor() != acts[a].actor();
        let mut near: Vec<usize> = others.iter().filter(apart).copied().collect();
        near.sort_by_key(|b| (a.abs_diff(*b), *b));
        // Of many only the nearest: what is far apart rarely belongs together, and there are too many pairs.
        pairs.extend(
            near.into_iter().take(JOINT_PAIRS.div_ceil(some.len().max(1))).map(|b| (a.min(b), a.max(b))),
        );
    }
    pairs.sort_by_key(|(a, b)| (b - a, *a));
    pairs.dedup();
    pairs.truncate(JOINT_PAIRS);
    pairs.into_iter().map(|(a, b)| vec![a, b]).collect()
}
