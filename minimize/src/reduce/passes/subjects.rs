//! Everything about one request, slot, key or client at once, and everything about all others.
//!
//! What belongs to one request is scattered over a run, and what a request brought about is not always caused by its message:
//! a queue stands between them. But messages say what they are about. Here a *reading* is a place in the content of one type of
//! message, such as the first number of `Prepare(48, 7)`, with the places of other types in which the same values stand. It
//! sorts steps by subject. Nothing of this is asked of the model, and nothing of it needs to be right: each candidate is run.

use std::collections::BTreeSet;

use demi_replay::Model;
use demi_replay::names::TextId;
use demi_replay::script::Act;
use rustc_hash::FxHashMap;

use super::structure::try_all;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::plan::{READINGS, SUBJECT_STEPS, SUBJECTS};
use crate::reduce::reducer::Reducer;

/// For each step which subject it is about, and how many subjects there are.
struct Reading {
    of: Vec<Option<usize>>,
    subjects: usize,
}

/// Keeps only one subject, two, or three; then leaves out chunks of subjects, down to one. Steps that are about none stay.
pub fn slices<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while readings(&reducer.engine, &reducer.best.acts)
        .iter()
        .any(|reading| one_gain(reducer, policies, reading))
    {}
}

/// Tries what one reading offers, until something gains.
fn one_gain<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy], reading: &Reading) -> bool {
    let without = |gone: &dyn Fn(usize) -> bool| -> Vec<bool> {
        reading.of.iter().map(|subject| subject.is_some_and(gone)).collect()
    };
    let few = |kept: &[usize]| without(&|subject| !kept.contains(&subject));
    let n = reading.subjects;
    // The last subjects first: the violation is about one of them.
    let last = || (0..n).rev();
    let ones = last().map(|a| vec![a]);
    let twos = last().flat_map(move |a| (0..a).rev().map(move |b| vec![a, b]));
    if try_all(reducer, policies, ones.chain(twos).map(|kept| few(&kept)).filter(|r| r.contains(&false))) {
        return true;
    }
    let mut width = n / 2;
    while width > 0 {
        let chunks: Vec<usize> = (0..n).step_by(width).collect();
        let gone = chunks.into_iter().map(|from| without(&|s| from <= s && s < from + width));
        if try_all(reducer, policies, gone) {
            return true;
        }
        width /= 2;
    }
    // One of three subjects in a candidate: as many steps as there are for each two of them.
    let affordable = n * n / 2 * reading.of.len() <= SUBJECT_STEPS;
    let threes = last()
        .take(if affordable { n } else { 1 })
        .flat_map(move |a| (0..a).rev().flat_map(move |b| (0..b).rev().map(move |c| vec![a, b, c])));
    let threes = threes.take(SUBJECT_STEPS / reading.of.len().max(1)).map(|kept| few(&kept));
    try_all(reducer, policies, threes)
}

/// The readings of a run, those first that sort most steps.
fn readings<M: Model>(engine: &Engine<M>, acts: &[Act]) -> Vec<Reading> {
    let words: Vec<Option<(TextId, Vec<&str>)>> = acts.iter().map(|act| words(engine, act)).collect();
    let mut places: FxHashMap<(TextId, usize), Vec<(usize, &str)>> = FxHashMap::default();
    for (at, (type_, words)) in words.iter().enumerate().filter_map(|(at, w)| Some((at, w.as_ref()?))) {
        for (place, word) in words.iter().enumerate() {
            places.entry((*type_, place)).or_default().push((at, word));
        }
    }
    let mut keys: Vec<(TextId, usize)> = places.keys().copied().collect();
    keys.sort_unstable();
    let mut readings: Vec<Reading> = Vec::new();
    for key in &keys {
        // In the order in which they come up.
        let mut values: Vec<&str> = Vec::new();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (_, word) in &places[key] {
            if known.insert(word) {
                values.push(word);
            }
        }
        if values.len() < 2 || values.len() > SUBJECTS {
            continue;
        }
        let mut of: Vec<Option<usize>> = vec![None; acts.len()];
        let mut best: FxHashMap<TextId, (usize, usize)> = FxHashMap::default();
        for other in &keys {
            let (type_, place) = *other;
            let fits = match other == key {
                true => usize::MAX,
                false => places[other].iter().filter(|(_, word)| known.contains(word)).count(),
            };
            let entry = best.entry(type_).or_insert((0, place));
            if fits > entry.0 {
                *entry = (fits, place);
            }
        }
        for (type_, (fits, place)) in best {
            let there = &places[&(type_, place)];
            // A place in which the values stand by chance only says nothing.
            if fits != usize::MAX && fits * 2 < there.len() {
                continue;
            }
            for (at, word) in there {
                of[*at] = values.iter().position(|value| value == word);
            }
        }
        let sorted = of.iter().flatten().count();
        if sorted > 1 && !readings.iter().any(|known| known.of == of) {
            readings.push(Reading { of, subjects: values.len() });
        }
    }
    readings.sort_by_key(|reading| std::cmp::Reverse(reading.of.iter().flatten().count()));
    readings.truncate(READINGS);
    readings
}

/// The type and the words of what a step delivers.
fn words<'e, M: Model>(engine: &'e Engine<M>, act: &Act) -> Option<(TextId, Vec<&'e str>)> {
    let Act::Deliver(want) = act else { return None };
    let text = engine.sim.text(want.payload);
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    Some((want.type_, words.collect()))
}
