//! Events of a served page, counted in groups.

use std::collections::HashMap;

use demi_lineage::export;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Served;
use crate::error::ReportError;

/// What events are counted by.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    Type,
    Actor,
    Kind,
    #[serde(rename = "type and actor")]
    TypeAndActor,
}

/// Events that are alike. What the events are not counted by is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Group {
    /// Their type; absent where they have none, too.
    #[serde(rename = "type")]
    type_: Option<String>,
    /// Their kind, where they are counted by it or have no type.
    kind: Option<&'static str>,
    actor: Option<u32>,
    count: u64,
    /// How many actors they are of.
    actors: u64,
    first: u32,
    last: u32,
}

/// Events of one name and one actor: how many, the first and the last.
#[derive(Clone, Copy)]
struct Tally {
    count: u64,
    first: u32,
    last: u32,
}

/// By actor.
type Actors = FxHashMap<u32, Tally>;

fn note(actors: &mut Actors, actor: u32, e: u32) {
    let some = actors.entry(actor).or_insert(Tally { count: 0, first: e, last: e });
    some.count += 1;
    some.first = some.first.min(e);
    some.last = some.last.max(e);
}

impl Served {
    /// All events, counted.
    pub(crate) fn counts(&self, by: By) -> Result<Vec<Group>, ReportError> {
        let s = &self.skeleton;
        let mut types: HashMap<Box<str>, Actors> = HashMap::new();
        let mut kinds: FxHashMap<&'static str, Actors> = FxHashMap::default();
        let kind = |e: u32| if by == By::Actor { "" } else { s.kind[e as usize].as_str() };
        if matches!(by, By::Type | By::TypeAndActor) {
            export::contents(
                &self.exec,
                |_| true,
                |e, content| -> Result<(), ReportError> {
                    let actor = s.actor[e as usize];
                    match content.type_.as_deref() {
                        None => note(kinds.entry(kind(e)).or_default(), actor, e),
                        Some(name) => match types.get_mut(name) {
                            Some(actors) => note(actors, actor, e),
                            None => note(types.entry(name.into()).or_default(), actor, e),
                        },
                    }
                    Ok(())
                },
            )?;
        } else {
            for e in 0..s.len() as u32 {
                note(kinds.entry(kind(e)).or_default(), s.actor[e as usize], e);
            }
        }
        let types = types.iter().map(|(name, actors)| (Some(&**name), None, actors));
        let kinds = kinds.iter().map(|(kind, actors)| (None, (!kind.is_empty()).then_some(*kind), actors));
        let mut groups = Vec::new();
        for (type_, kind, actors) in types.chain(kinds) {
            let group = |actor: Option<u32>, some: Tally, actors: usize| Group {
                type_: type_.map(str::to_owned),
                kind,
                actor,
                count: some.count,
                actors: actors as u64,
                first: some.first,
                last: some.last,
            };
            if matches!(by, By::Actor | By::TypeAndActor) {
                groups.extend(actors.iter().map(|(actor, some)| group(Some(*actor), *some, 1)));
                continue;
            }
            let sum = |a: Tally, b: &Tally| Tally {
                count: a.count + b.count,
                first: a.first.min(b.first),
                last: a.last.max(b.last),
            };
            let none = Tally { count: 0, first: u32::MAX, last: 0 };
            groups.push(group(None, actors.values().fold(none, sum), actors.len()));
        }
        groups.sort_unstable_by_key(|group| (u64::MAX - group.count, group.first));
        Ok(groups)
    }
}
