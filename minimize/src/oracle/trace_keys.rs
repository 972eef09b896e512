//! Keys of Mazurkiewicz traces: sequences of acts that differ only in the order of independent neighbours have one key.
//!
//! Two acts are dependent when they are at the same actor; acts of code outside the actors depend on everything. With this
//! dependence a trace is told by what each actor sees in which order (its projections; Cori and Perrin, Automates et
//! commutations partielles, 1985), as well as by its Foata normal form, so the key is made of a hash for each actor, in one pass.

use demi_replay::ActorId;
use demi_replay::script::Act;
use rustc_hash::FxHashMap;

/// An act by number, and at which actor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numbered {
    number: u32,
    actor: Option<ActorId>,
}

/// Makes keys; acts are numbered as they are met, so keys of one such value are comparable among themselves.
#[derive(Debug, Default)]
pub struct Traces {
    numbers: FxHashMap<Act, u32>,
    /// What each actor saw so far, as a hash; 0 where there was nothing.
    seen: Vec<u128>,
}

/// An odd constant with bits all over (the digits of the golden ratio).
const MIX: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

fn mix(hash: u128, more: u128) -> u128 {
    // The two are not treated alike, or one could undo the other.
    let mixed = (hash.wrapping_add(1).wrapping_mul(MIX).rotate_left(47) ^ more).wrapping_mul(MIX);
    mixed ^ (mixed >> 67)
}

impl Traces {
    /// The numbers of acts.
    pub fn numbered(&mut self, acts: &[Act]) -> Vec<Numbered> {
        let mut number = |act: &Act| {
            let next = self.numbers.len() as u32;
            Numbered { number: *self.numbers.entry(*act).or_insert(next), actor: act.actor() }
        };
        acts.iter().map(&mut number).collect()
    }

    /// The key of a sequence.
    pub fn key<'a>(&mut self, acts: impl Iterator<Item = &'a Numbered>) -> u128 {
        self.seen.clear();
        // What all actors saw by code outside of them.
        let mut all = 1;
        for Numbered { number, actor } in acts {
            let number = u128::from(*number);
            match actor {
                Some(actor) => {
                    let at = actor.index();
                    if self.seen.len() <= at {
                        self.seen.resize(at + 1, 0);
                    }
                    self.seen[at] = mix(self.seen[at], mix(all, number));
                }
                None => all = self.seen.iter().fold(mix(all, number), |all, seen| mix(all, *seen)),
            }
        }
        let last = self.seen.iter().rposition(|seen| *seen != 0).map_or(0, |last| last + 1);
        self.seen[..last].iter().fold(all, |all, seen| mix(all, *seen))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn act(which: u8) -> Act {
        match which {
            0..=3 => Act::Start(ActorId(u16::from(which))),
            4..=7 => Act::Crash(ActorId(u16::from(which - 4))),
            _ => Act::Action(u32::from(which)),
        }
    }

    fn dependent(a: Act, b: Act) -> bool {
        a.actor().is_none() || b.actor().is_none() || a.actor() == b.actor()
    }

    /// All sequences that exchanges of independent neighbours lead to.
    fn class(word: &[u8]) -> BTreeSet<Vec<u8>> {
        let (mut seen, mut open) = (BTreeSet::from([word.to_vec()]), vec![word.to_vec()]);
        while let Some(word) = open.pop() {
            for at in 1..word.len() {
                if !dependent(act(word[at - 1]), act(word[at])) {
                    let mut other = word.clone();
                    other.swap(at - 1, at);
                    if seen.insert(other.clone()) {
                        open.push(other);
                    }
                }
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn sequences_have_one_key_if_and_only_if_they_are_one_trace(
            words in prop::collection::vec(prop::collection::vec(0u8..10, 0..6), 1..30),
        ) {
            let mut traces = Traces::default();
            let mut keys: BTreeMap<u128, BTreeSet<Vec<u8>>> = BTreeMap::new();
            for word in &words {
                let class = class(word);
                let mut of_class: BTreeSet<u128> = BTreeSet::new();
                for word in &class {
                    let acts: Vec<Act> = word.iter().map(|w| act(*w)).collect();
                    let numbered = traces.numbered(&acts);
                    of_class.insert(traces.key(numbered.iter()));
                }
                prop_assert_eq!(of_class.len(), 1);
                let key = of_class.into_iter().next().unwrap_or_default();
                let known = keys.entry(key).or_insert_with(|| class.clone());
                prop_assert_eq!(&*known, &class);
            }
        }
    }
}
