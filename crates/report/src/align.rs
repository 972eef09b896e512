//! Which event of a recorded execution a step of the minimized one is alike: same actor, kind, sender, type, content.
//!
//! A minimized schedule keeps the order of most of what it keeps, so a longest common subsequence would be the best
//! answer; taking, for each step, the first such event after the one before it, and else the first at all, is as good to
//! look at and linear.

use rustc_hash::FxHashMap;

use crate::data::{Columns, NOTHING, TraceData};

/// The parts by which events are alike.
type Key<'a> = (&'a str, u8, &'a str, &'a str, &'a str);

fn keys(trace: &TraceData) -> impl Iterator<Item = Key<'_>> {
    let c: &Columns = &trace.columns;
    let text = |n: i64| usize::try_from(n).ok().and_then(|n| c.texts.get(n)).map_or("", String::as_str);
    (0..c.actor.len()).map(move |i| {
        let actor = trace.actors.get(c.actor[i] as usize).map_or("", String::as_str);
        (actor, c.kind[i], text(c.from[i]), text(c.type_[i]), text(c.payload[i]))
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
            columns.type_.push(NOTHING);
        }
        TraceData { actors: vec!["a".into()], columns, ..TraceData::default() }
    }

    #[test]
    fn like_events_are_found_in_order_and_once() {
        let large = trace(&["x", "y", "x", "z", "x"]);
        assert_eq!(align(&trace(&["y", "x", "x", "x", "q"]), &large), [1, 2, 4, 0, NOTHING]);
    }
}
