//! Sets of external events around those of a result, over which beams search.

use std::sync::Arc;

use demi_replay::names::TextId;
use demi_replay::script::Act;
use demi_replay::{ActorId, Model};
use rustc_hash::FxHashSet;

use crate::oracle::engine::Engine;
use crate::plan::{CHOICES, SMALL_FROM, SMALL_SETS};
use crate::problem::Problem;
use crate::problem::budget::Budget;
use crate::search;
use crate::solution::Solution;

/// A set of external events to search over.
#[derive(Clone)]
pub struct Set {
    /// The events.
    pub externals: Vec<Act>,
    /// How many of the messages the search is to choose; nothing if it may take all.
    pub choice: Option<usize>,
    /// Sets that are alike have the same.
    pub form: Form,
    /// The external events as text, for the ledger.
    pub told: String,
}

/// The external events of a result, and sets with a little less, a little more, or something else; the same of what is
/// left without repetitions. Before them come those from which the search is to choose. Of sets that differ only in which
/// of some interchangeable actors is which there is one.
pub fn around<M: Model>(problem: &Arc<Problem<M>>, best: &Solution, pool: &[Act]) -> Vec<Set> {
    let mut engine = Engine::new(problem, Budget::Replays(u64::MAX));
    let Some(witness) = engine.restore(&best.schedule) else { return Vec::new() };
    let own: Vec<Act> = witness.acts.iter().filter(|a| a.is_external()).copied().collect();
    let free = search::interchangeable(&mut engine, pool);
    let single = once(&own);
    // The nearest of both first.
    let lists = [&own, &single].map(|set| neighbours(set, pool, &free));
    let mut all = vec![own, single];
    for at in 0..lists[0].len() {
        lists.iter().for_each(|list| all.extend_from_slice(&list[at]));
    }
    keep_different(&mut all, &free);
    let set = |(externals, choice): (Vec<Act>, Option<usize>)| {
        let (form, told) = (form(&externals, &[]), told(&engine, &externals));
        Set { externals, choice, form, told }
    };
    let choices = choices(&all[0], pool, &free);
    choices.into_iter().chain(all.into_iter().map(|set| (set, None))).map(set).collect()
}

/// All sets of at most as many messages as a result has, the smallest first, and of those of one size first what has messages of its types. Actors start, and
/// faults happen, as in the result. Of sets that differ only in which message of a type an actor gets, or in which of some interchangeable actors
/// is which, there is one.
pub fn small<M: Model>(problem: &Arc<Problem<M>>, best: &Solution, pool: &[Act]) -> Vec<Set> {
    let mut engine = Engine::new(problem, Budget::Replays(u64::MAX));
    let Some(witness) = engine.restore(&best.schedule) else { return Vec::new() };
    let own: Vec<Act> = witness.acts.iter().filter(|a| a.is_external()).copied().collect();
    let free = search::interchangeable(&mut engine, pool);
    let (messages, others): (Vec<Act>, Vec<Act>) = own.iter().partition(|act| act.is_delivery());
    let starts = starts(&own);
    let mut from: Vec<Act> = Vec::new();
    for act in pool.iter().filter(|act| act.is_delivery()) {
        let there = starts.is_empty() || starts.iter().any(|start| start.actor() == act.actor());
        if there && from.iter().filter(|other| sort(other) == sort(act)).count() < 2 {
            from.push(*act);
        }
    }
    from.truncate(SMALL_FROM);
    let type_of = |act: &Act| sort(act).map(|(_, sort)| sort);
    let types: Vec<_> = messages.iter().map(type_of).collect();
    let strange = |set: &Vec<Act>| set.iter().filter(|act| !types.contains(&type_of(act))).count();
    let (mut seen, mut all) = (FxHashSet::default(), Vec::new());
    for size in 1..=messages.len() {
        let mut of_size = subsets(&from, size);
        of_size.sort_by_cached_key(strange);
        let with_others = |set: Vec<Act>| others.iter().copied().chain(set).collect::<Vec<Act>>();
        for externals in of_size.into_iter().map(with_others) {
            if all.len() < SMALL_SETS && seen.insert(form(&externals, &free)) {
                let (form, told) = (form(&externals, &[]), told(&engine, &externals));
                all.push(Set { externals, choice: None, form, told });
            }
        }
        if all.len() >= SMALL_SETS {
            break;
        }
    }
    all
}

/// The subsets of that size, in order, but not many more than are searched.
fn subsets<T: Copy>(of: &[T], size: usize) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = vec![Vec::new()];
    let mut at: Vec<usize> = vec![0];
    for _ in 0..size {
        let (mut longer, mut places) = (Vec::new(), Vec::new());
        for (set, first) in all.iter().zip(&at) {
            for (at, next) in of.iter().enumerate().skip(*first) {
                if longer.len() < 16 * SMALL_SETS {
                    longer.push(set.iter().chain([next]).copied().collect());
                    places.push(at + 1);
                }
            }
        }
        (all, at) = (longer, places);
    }
    all
}

/// The starts of a set.
pub fn starts(set: &[Act]) -> Vec<Act> {
    set.iter().filter(|act| matches!(act, Act::Start(_))).copied().collect()
}

/// Much to choose from: the actors of a set, one less, or all that there are, with the faults that the set has of them and some messages of
/// each type to each, and how many of these may be taken: as many as the set has, one less or one more.
fn choices(own: &[Act], pool: &[Act], free: &[ActorId]) -> Vec<(Vec<Act>, Option<usize>)> {
    let (mine, everybody) = (starts(own), starts(pool));
    let (actors, messages) = (mine.len(), own.iter().filter(|act| act.is_delivery()).count());
    let rich = |starts: &[Act]| rich(starts, own, pool);
    let without = |gone: &Act| mine.iter().copied().filter(|start| start != gone).collect::<Vec<_>>();
    let mut fewer: Vec<Vec<Act>> = mine.iter().map(|gone| rich(&without(gone))).collect();
    keep_different(&mut fewer, free);
    let mut all = Vec::new();
    let mut most = |sets: &[Vec<Act>], more: isize| {
        let messages = messages.saturating_add_signed(more);
        all.extend(sets.iter().map(|set| (set.clone(), Some(messages))));
    };
    let mine = [rich(&mine)];
    most(&mine, 0);
    most(&fewer, 0);
    most(&fewer, 1);
    most(&mine, -1);
    if everybody.len() > actors {
        let everybody = [rich(&everybody)];
        most(&everybody, 0);
        most(&everybody, -1);
    }
    most(&fewer, -1);
    most(&mine, 1);
    all.truncate(CHOICES);
    all
}

/// Starts, the faults that a set has of these actors, and two recorded messages of each type to each of them, but of the first type to an
/// actor one.
fn rich(starts: &[Act], own: &[Act], pool: &[Act]) -> Vec<Act> {
    let starting = |act: &Act| starts.iter().any(|start| start.actor() == act.actor());
    let mut kept: Vec<Act> = starts.to_vec();
    kept.extend(own.iter().filter(|act| act.is_fault() && starting(act)));
    for act in pool.iter().filter(|act| act.is_delivery()) {
        let there = starting(act);
        let of_sort = |other: &&Act| sort(other) == sort(act);
        let first = |other: &&Act| other.is_delivery() && other.actor() == act.actor();
        let most = match kept.iter().find(first) {
            Some(first) if of_sort(&first) => 1,
            _ => 2,
        };
        if there && kept.iter().filter(of_sort).count() < most {
            kept.push(*act);
        }
    }
    kept
}

/// Sets near one, in lists: an actor less, with all that it is told, an actor more, with what it is told first, an event
/// less, an event more, and what two such steps lead to.
fn neighbours(own: &[Act], pool: &[Act], free: &[ActorId]) -> [Vec<Vec<Act>>; 5] {
    let fewer = |sets: &[Vec<Act>]| sets.iter().flat_map(|set| one_less(set)).collect::<Vec<_>>();
    let more = |sets: &[Vec<Act>]| sets.iter().flat_map(|set| one_more(set, pool)).collect::<Vec<_>>();
    let without = starts(own)
        .into_iter()
        .map(|start| own.iter().filter(|act| act.actor() != start.actor()).copied().collect::<Vec<Act>>());
    let with = starts(pool).into_iter().filter(|start| !own.contains(start)).map(|start| {
        let first = pool.iter().find(|act| act.is_delivery() && act.actor() == start.actor());
        [start].into_iter().chain(own.iter().copied()).chain(first.copied()).collect::<Vec<Act>>()
    });
    let (mut left, mut joined): (Vec<_>, Vec<_>) = (without.collect(), with.collect());
    keep_different(&mut left, free);
    keep_different(&mut joined, free);
    let (less, one) = (one_less(own), one_more(own, pool));
    let two: Vec<Vec<Act>> = [more(&left), fewer(&joined), fewer(&less), more(&less)].concat();
    [left, joined, less, one, two]
}

/// The set with one message of each type to each actor, the first.
fn once(set: &[Act]) -> Vec<Act> {
    let mut kept: Vec<Act> = Vec::new();
    for act in set {
        if sort(act).is_none() || !kept.iter().any(|other| sort(other) == sort(act)) {
            kept.push(*act);
        }
    }
    kept
}

/// The set without each of its messages from outside and its faults, the last first.
fn one_less(set: &[Act]) -> Vec<Vec<Act>> {
    let events = (0..set.len()).rev().filter(|at| !matches!(set[*at], Act::Start(_)));
    events.map(|at| set.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, act)| *act).collect()).collect()
}

/// The set with one recorded event more: of the messages of each receiver and type, and of the faults of each actor and kind, the first that is
/// not there.
fn one_more(set: &[Act], pool: &[Act]) -> Vec<Vec<Act>> {
    let mut more: Vec<Act> = Vec::new();
    for act in pool.iter().filter(|act| act.is_delivery() || act.is_fault()) {
        let there = set.iter().any(|a| a.actor() == act.actor() && matches!(a, Act::Start(_)));
        let known = |other: &Act| same_event(other, act);
        if there && !set.iter().any(known) && !more.iter().any(|other| sort(other) == sort(act)) {
            more.push(*act);
        }
    }
    more.iter().map(|extra| set.iter().chain([extra]).copied().collect()).collect()
}

/// Keeps the first of sets that are alike.
fn keep_different(sets: &mut Vec<Vec<Act>>, free: &[ActorId]) {
    let mut seen = Vec::new();
    sets.retain(|set| {
        let form = form(set, free);
        let new = !seen.contains(&form);
        seen.push(form);
        new
    });
}

/// What an actor is sent from outside, and what happens to it: how many acts, and of which sorts.
type Told = (usize, Vec<Sort>);

/// What makes two external events of one actor alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    /// Messages of that type.
    Message(TextId),
    /// The network repeats a message of that type.
    Repeated(TextId),
    /// The failure of the actor.
    Crash,
    /// Its next incarnation.
    Restart,
    /// It is cut off.
    Isolate,
    /// It is back.
    Heal,
    /// Its end.
    Stop,
}

/// How many acts of each sort a set has, by actor.
pub type Form = Vec<(Option<ActorId>, Told)>;

/// The form of a set; interchangeable actors without their names.
fn form(set: &[Act], free: &[ActorId]) -> Form {
    let mut actors: Vec<Option<ActorId>> = set.iter().map(Act::actor).collect();
    actors.sort_unstable();
    actors.dedup();
    let told = |actor: Option<ActorId>| {
        let acts = set.iter().filter(|act| act.actor() == actor);
        let mut types: Vec<Sort> = acts.clone().filter_map(|act| sort(act).map(|(_, t)| t)).collect();
        types.sort_unstable();
        (acts.count(), types)
    };
    let name = |actor: &ActorId| !free.contains(actor);
    let mut form: Vec<_> = actors.into_iter().map(|actor| (actor.filter(name), told(actor))).collect();
    form.sort_unstable();
    form
}

/// The actor and the sort of a message from outside or a fault.
fn sort(act: &Act) -> Option<(ActorId, Sort)> {
    let sort = match act {
        Act::Deliver(want) => Sort::Message(want.type_),
        Act::Duplicate(want) => Sort::Repeated(want.type_),
        Act::Crash(_) => Sort::Crash,
        Act::Restart(_) => Sort::Restart,
        Act::Isolate(_) => Sort::Isolate,
        Act::Heal(_) => Sort::Heal,
        Act::Stop(_) => Sort::Stop,
        _ => return None,
    };
    act.actor().map(|actor| (actor, sort))
}

/// A set as text.
fn told<M: Model>(engine: &Engine<M>, externals: &[Act]) -> String {
    let name = |act: &Act| act.actor().map_or("", |actor| engine.sim.names().get(actor)).to_owned();
    let payload = |act: &Act| match (act, sort(act)) {
        (Act::Deliver(want), _) => engine.sim.text(want.payload).to_owned(),
        (Act::Duplicate(want), _) => format!("twice {}", engine.sim.text(want.payload)),
        (_, Some((_, fault))) => format!("{fault:?}"),
        _ => String::new(),
    };
    externals.iter().map(|act| format!("{} {}\n", name(act), payload(act))).collect()
}

/// Whether two acts are the same external event.
pub fn same_event(a: &Act, b: &Act) -> bool {
    match (a, b) {
        (Act::Deliver(a), Act::Deliver(b)) => {
            a.external.is_some() && a.external == b.external && a.to == b.to
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_each_subset_of_a_size_once() {
        assert_eq!(subsets(&['a', 'b', 'c'], 2), [['a', 'b'], ['a', 'c'], ['b', 'c']]);
        assert_eq!(subsets(&['a'], 2), [] as [Vec<char>; 0]);
        let of: Vec<u8> = (0..7).collect();
        for (size, count) in [(0, 1), (1, 7), (3, 35), (7, 1)] {
            let all = subsets(&of, size);
            let distinct: FxHashSet<&Vec<u8>> = all.iter().collect();
            assert_eq!((all.len(), distinct.len()), (count, count), "{size}");
            assert!(all.iter().all(|set| set.is_sorted() && set.len() == size));
        }
        assert!(subsets(&(0..60).collect::<Vec<u8>>(), 6).len() <= 16 * SMALL_SETS);
    }
}
