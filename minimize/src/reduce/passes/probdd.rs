//! Probabilistic delta debugging (ProbDD; Wang, Shen, Chen, Xiong, Zhang: Probabilistic Delta Debugging, ESEC/FSE 2021,
//! section 4): every element has a probability that it is needed, each test removes the elements that promise most, and
//! a test that fails makes all of them more likely to be needed.
//!
//! Schedules change when they are matched: a step whose message is gone vanishes with those that were removed, and what
//! blocked a channel comes in. So probabilities go with steps from one witness to the next, and steps that are new begin
//! as all did.

use demi_replay::Model;
use demi_replay::script::Act;

use super::chunks::{Select, positions};
use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

/// The probability of each element at the beginning, as in the paper.
const FIRST: f64 = 0.1;
/// From which probability on an element is taken to be needed.
const SURE: f64 = 0.999_999;

/// Removes elements until each of the rest is known to be needed, alone or by what its tests told.
pub fn sweep<M: Model>(reducer: &mut Reducer<'_, M>, policy: Policy, select: Select) {
    let mut needed = vec![FIRST; reducer.best.acts.len()];
    while !reducer.ended() {
        let elements = positions(reducer, select);
        let Some(chosen) = promising(&elements, &needed) else { return };
        let mut removed = vec![false; reducer.best.acts.len()];
        chosen.iter().for_each(|&at| removed[at] = true);
        let before = reducer.best.clone();
        if reducer.without(&removed, policy) {
            let kept = before.acts.iter().zip(&needed).zip(&removed).filter(|(_, gone)| !**gone);
            needed = carried(kept.map(|((act, p), _)| (act, *p)), &reducer.best.acts);
        } else {
            learn(&mut needed, &chosen);
        }
    }
}

/// The elements whose removal promises most: `k` of the least probable, with the largest `k` times the probability that
/// none of them is needed. Nothing if all are known to be needed.
fn promising(elements: &[usize], needed: &[f64]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = elements.iter().copied().filter(|&at| needed[at] < SURE).collect();
    // Ties keep the order of the schedule, so that what is removed together stood together.
    order.sort_by(|&a, &b| needed[a].total_cmp(&needed[b]));
    let (mut none, mut best, mut count) = (1.0, 0.0, 0);
    for (taken, &at) in order.iter().enumerate() {
        none *= 1.0 - needed[at];
        let gain = (taken + 1) as f64 * none;
        if gain <= best {
            break;
        }
        (best, count) = (gain, taken + 1);
    }
    order.truncate(count);
    (count > 0).then_some(order)
}

/// After a failed removal at least one of the elements is needed: each probability is what it was, given that.
fn learn(needed: &mut [f64], chosen: &[usize]) {
    let none: f64 = chosen.iter().map(|&at| 1.0 - needed[at]).product();
    for &at in chosen {
        needed[at] = (needed[at] / (1.0 - none)).min(1.0);
    }
}

/// Probabilities of the acts of a new witness: those of the old ones that were kept, in order; of new ones the first.
fn carried<'a>(kept: impl Iterator<Item = (&'a Act, f64)>, acts: &[Act]) -> Vec<f64> {
    let kept: Vec<(&Act, f64)> = kept.collect();
    let mut from = 0;
    acts.iter()
        .map(|act| {
            let Some(at) = kept[from..].iter().position(|(old, _)| alike(old, act)) else { return FIRST };
            from += at + 1;
            kept[from - 1].1
        })
        .collect()
}

/// Whether an act is what became of another when the schedule was matched.
fn alike(old: &Act, new: &Act) -> bool {
    match (old, new) {
        (Act::Deliver(old), Act::Deliver(new)) => {
            (old.from, old.to, old.type_) == (new.from, new.to, new.type_)
        }
        _ => old == new,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_removed_as_promise_most() {
        // Ten elements of 0.1: k * 0.9^k grows up to k = 9 and is the same for 10.
        let needed = vec![FIRST; 30];
        let all: Vec<usize> = (0..30).collect();
        let count = promising(&all, &needed).unwrap().len();
        assert!((9..=10).contains(&count), "{count}");
        // What is surely needed is never chosen, what is least probable comes first.
        assert_eq!(promising(&[0, 1, 2], &[1.0, 0.7, 0.6]), Some(vec![2]));
        assert_eq!(promising(&[0, 1], &[1.0, 1.0]), None);
    }

    #[test]
    fn a_failed_test_tells_as_bayes_does() {
        let mut needed = vec![0.5, 0.5, 0.1];
        learn(&mut needed, &[0, 1]);
        // P(first | first or second) = 0.5 / 0.75.
        assert!((needed[0] - 2.0 / 3.0).abs() < 1e-12 && needed[0] == needed[1]);
        assert_eq!(needed[2], 0.1);
        learn(&mut needed, &[2]);
        assert_eq!(needed[2], 1.0);
    }
}
