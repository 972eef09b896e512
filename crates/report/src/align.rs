//! Which event of a recorded execution a step of the minimized one is alike: same actor, kind, sender, receiver, type, content.
//!
//! A minimized schedule keeps the order of most of what it keeps, so a longest common subsequence would be the best
//! answer; taking, for each step, the first such event after the one before it, and else the first at all, is as good to
//! look at and linear.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::data::{Columns, Difference, NOTHING, TraceData};

/// The parts by which events are alike.
type Key<'a> = (&'a str, u8, &'a str, &'a str, &'a str, &'a str);

fn keys(trace: &TraceData) -> impl Iterator<Item = Key<'_>> {
    let c: &Columns = &trace.columns;
    let text = |n: i64| usize::try_from(n).ok().and_then(|n| c.texts.get(n)).map_or("", String::as_str);
    (0..c.actor.len()).map(move |i| {
        let actor = trace.actors.get(c.actor[i] as usize).map_or("", String::as_str);
        // A log may say that its own actor is the sender, or leave that to be understood.
        let end = |n: i64| Some(text(n)).filter(|name| *name != actor).unwrap_or_default();
        (actor, c.kind[i], end(c.from[i]), end(c.to[i]), text(c.type_[i]), text(c.payload[i]))
    })
}

/// By event of `small`: the event of `large` that is alike, or [`NOTHING`]; no event of `large` twice.
pub(crate) fn align(small: &TraceData, large: &TraceData) -> Vec<i64> {
    let mut places: FxHashMap<Key<'_>, Vec<(u32, bool)>> = FxHashMap::default();
    for (at, key) in keys(large).enumerate() {
        places.entry(key).or_default().push((at as u32, false));
    }
    let mut last = 0;
    keys(small)
        .map(|key| {
            let Some(list) = places.get_mut(&key) else { return NOTHING };
            let later = list.iter().position(|(at, used)| !used && *at >= last);
            let Some(found) = later.or_else(|| list.iter().position(|(_, used)| !used)) else {
                return NOTHING;
            };
            list[found].1 = true;
            last = list[found].0;
            i64::from(last)
        })
        .collect()
}

/// Where the log of each actor first differs between two traces: not the same kind, sender, type and content. The earliest comes first;
/// events in no log's order are left out.
pub(crate) fn differences(first: &TraceData, second: &TraceData) -> Vec<Difference> {
    /// The events of an actor, in the order of its log.
    type Logs<'a> = BTreeMap<&'a str, Vec<(usize, Key<'a>)>>;
    fn logs(trace: &TraceData) -> Logs<'_> {
        let mut logs = Logs::new();
        for (at, key) in keys(trace).enumerate().filter(|(at, _)| trace.columns.place[*at] != NOTHING) {
            logs.entry(key.0).or_default().push((at, key));
        }
        logs
    }
    let (first, second) = (logs(first), logs(second));
    let actors: BTreeSet<&str> = first.keys().chain(second.keys()).copied().collect();
    let mut differences: Vec<Difference> = actors
        .into_iter()
        .filter_map(|actor| {
            let (a, b) = (
                first.get(actor).map_or(&[][..], Vec::as_slice),
                second.get(actor).map_or(&[][..], Vec::as_slice),
            );
            let same = a.iter().zip(b).take_while(|(a, b)| a.1 == b.1).count();
            let at = |log: &[(usize, Key<'_>)]| log.get(same).map_or(NOTHING, |event| event.0 as i64);
            let difference = Difference { actor: actor.to_owned(), first: at(a), second: at(b) };
            (difference.first != NOTHING || difference.second != NOTHING).then_some(difference)
        })
        .collect();
    differences.sort_by_key(|d| [d.first, d.second].into_iter().filter(|at| *at != NOTHING).min());
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(payloads: &[&str]) -> TraceData {
        let mut columns = Columns::default();
        for payload in payloads {
            columns.payload.push(columns.texts.len() as i64);
            columns.texts.push((*payload).to_owned());
            columns.actor.push(0);
            columns.kind.push(2);
            columns.from.push(NOTHING);
            columns.to.push(NOTHING);
            columns.type_.push(NOTHING);
            columns.place.push(columns.place.len() as i64);
        }
        TraceData { actors: vec!["a".into()], columns, ..TraceData::default() }
    }

    #[test]
    fn like_events_are_found_in_order_and_once() {
        let large = trace(&["x", "y", "x", "z", "x"]);
        assert_eq!(align(&trace(&["y", "x", "x", "x", "q"]), &large), [1, 2, 4, 0, NOTHING]);
    }
    #[test]
    fn its_own_actor_may_be_told_as_sender_or_left_out() {
        let (mut told, mut other) = (trace(&["x"]), trace(&["x"]));
        told.columns.texts.push("a".to_owned());
        told.columns.from[0] = 1;
        assert_eq!(align(&told, &trace(&["x"])), [0]);
        other.columns.texts.push("b".to_owned());
        other.columns.to[0] = 1;
        assert_eq!(align(&other, &told), [NOTHING], "another receiver makes another message");
    }

    #[test]
    fn executions_differ_first_where_a_log_goes_another_way() {
        let at = |first, second| vec![Difference { actor: "a".into(), first, second }];
        assert_eq!(differences(&trace(&["x", "y", "z"]), &trace(&["x", "z", "y"])), at(1, 1));
        assert_eq!(differences(&trace(&["x", "y"]), &trace(&["x"])), at(1, NOTHING));
        assert_eq!(differences(&trace(&["x"]), &trace(&["x", "y"])), at(NOTHING, 1));
        assert_eq!(differences(&trace(&["x", "y"]), &trace(&["x", "y"])), []);
        // An event in no log's order has no place at which it could differ.
        let mut loose = trace(&["x", "y"]);
        loose.columns.place[1] = NOTHING;
        assert_eq!(differences(&loose, &trace(&["x"])), []);
        let other = TraceData { actors: vec!["b".into()], ..trace(&["x"]) };
        let found = differences(&trace(&["x"]), &other);
        assert_eq!(
            found.iter().map(|d| (d.actor.as_str(), d.first, d.second)).collect::<Vec<_>>(),
            [("a", 0, NOTHING), ("b", NOTHING, 0)]
        );
    }
}
