//! Classes of actors: those that run the same code, as far as names and variables tell.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;

use crate::Execution;

/// Actors about which the same is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// A pattern of names; the name itself where the class has one actor.
    pub names: Pattern,
    /// Its actors in all executions.
    pub actors: BTreeSet<String>,
}

/// The actors whose names differ only in a number at the end, or in the word after the last separator, and whose states have the same
/// variables.
///
/// Without classes equal actors give a copy of each relation each, and starve all of them of states.
///
/// An actor that one of the patterns of `named` matches is of that class, the first that does.
pub(crate) fn classes(executions: &[Execution], named: &[Pattern]) -> Vec<Class> {
    let mut variables: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in executions.iter().flat_map(|e| &e.records) {
        variables.entry(&record.actor).or_default().extend(record.state.variables());
    }
    let mut classes: BTreeMap<(&str, BTreeSet<&str>), BTreeSet<String>> = BTreeMap::new();
    let mut given: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (actor, variables) in variables {
        if let Some(class) = named.iter().position(|pattern| pattern.matches(actor)) {
            given.entry(class).or_default().insert(actor.to_owned());
            continue;
        }
        classes.entry((stem(actor), variables)).or_default().insert(actor.to_owned());
    }
    let mut found: Vec<Class> = classes
        .into_iter()
        .map(|((stem, _), actors)| Class {
            names: pattern(match actors.first() {
                Some(only) if actors.len() == 1 => Pattern::escape(only),
                _ => format!("{}*", Pattern::escape(stem)),
            }),
            actors,
        })
        .collect();
    found.extend(given.into_iter().map(|(i, actors)| Class { names: named[i].clone(), actors }));
    found.sort_by(|a, b| a.names.cmp(&b.names));
    found
}

/// What is escaped is always a pattern.
fn pattern(text: String) -> Pattern {
    Pattern::new(&text).unwrap_or_default()
}

/// What the names of a class have in common.
fn stem(name: &str) -> &str {
    match name.rfind(['-', '_', '.', '/', ':']) {
        Some(at) => &name[..=at],
        None => match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
            whole if whole.len() == name.len() => "",
            stem => stem,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::execution;

    #[test]
    fn names_that_differ_in_their_end_are_a_class() {
        let execution = execution(&[
            ("raft-1", r#"{"term":1}"#),
            ("raft-2", r#"{"term":1}"#),
            ("raft-x", r#"{"balance":1}"#),
            ("n1", r#"{"a":1}"#),
            ("n12", r#"{"a":2}"#),
            ("alice", r#"{"b":1}"#),
            ("bob", r#"{"b":1}"#),
            ("x[1]", r#"{"c":1}"#),
        ]);
        let patterns: Vec<String> =
            classes(&[execution], &[]).into_iter().map(|c| c.names.to_string()).collect();
        assert_eq!(patterns, ["*", "n*", "raft-*", "raft-x", "x[[]1[]]"]);
    }
}
