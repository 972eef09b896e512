//! Removal of two or three steps at once, for witnesses that no single removal shortens.

use demi_replay::Model;

use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

/// Tries every pair of steps with each policy; after a success starts again.
pub fn pairs<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while one(reducer, policies, 2) {}
}

/// Tries every three steps with each policy; after a success starts again.
pub fn triples<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while one(reducer, policies, 3) {}
}

/// Leaves out the first `count` steps without which the witness still violates. Says whether there are such.
fn one<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy], count: usize) -> bool {
    let n = reducer.best.acts.len();
    for policy in policies {
        let mut places: Vec<usize> = (0..count).collect();
        let mut more = count <= n;
        while more {
            if reducer.ended() {
                return false;
            }
            let mut removed = vec![false; n];
            places.iter().for_each(|&at| removed[at] = true);
            if reducer.without(&removed, *policy) {
                return true;
            }
            more = advance(&mut places, n);
        }
    }
    false
}

/// The next set of places below `n` in lexical order; says whether there is one.
fn advance(places: &mut [usize], n: usize) -> bool {
    let count = places.len();
    let Some(at) = (0..count).rev().find(|&at| places[at] < n - count + at) else { return false };
    places[at] += 1;
    for later in at + 1..count {
        places[later] = places[later - 1] + 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_set_of_places_comes_once_and_in_order() {
        for n in 0..9_usize {
            for count in 1..=n.min(4) {
                let mut places: Vec<usize> = (0..count).collect();
                let mut met = vec![places.clone()];
                while advance(&mut places, n) {
                    met.push(places.clone());
                }
                let all: BTreeSet<Vec<usize>> = (0..1_u32 << n)
                    .filter(|set| set.count_ones() as usize == count)
                    .map(|set| (0..n).filter(|at| set >> at & 1 == 1).collect())
                    .collect();
                assert_eq!(met, all.into_iter().collect::<Vec<_>>(), "{count} of {n}");
            }
        }
    }
}
