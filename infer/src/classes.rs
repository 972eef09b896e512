//! Classes of actors: those that run the same code, as far as names and variables tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::Execution;

/// Actors about which the same is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// A pattern of names, in which `*` stands for any letters; the name itself where the class has one actor.
    pub pattern: String,
    /// Its actors in all executions.
    pub actors: BTreeSet<String>,
}

/// The actors whose names differ only in a number at the end, or in the word after the last separator, and whose states have the same
/// variables.
///
/// Without classes equal actors give a copy of each relation each, and starve all of them of states.
pub(crate) fn classes(executions: &[Execution]) -> Vec<Class> {
    let mut variables: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in executions.iter().flat_map(|e| &e.records) {
        variables.entry(&record.actor).or_default().extend(record.state.variables());
    }
    let mut classes: BTreeMap<(&str, BTreeSet<&str>), BTreeSet<String>> = BTreeMap::new();
    for (actor, variables) in variables {
        classes.entry((stem(actor), variables)).or_default().insert(actor.to_owned());
    }
    let mut found: Vec<Class> = classes
        .into_iter()
        .map(|((stem, _), actors)| Class {
            pattern: match actors.first() {
                Some(only) if actors.len() == 1 => only.clone(),
                _ => format!("{stem}*"),
            },
            actors,
        })
        .collect();
    found.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    found
}

/// Whether a name fits a pattern, in which `*` stands for any letters and nothing else is special.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
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
    fn patterns_have_stars() {
        for (pattern, name, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("raft-*", "raft-12", true),
            ("raft-*", "raft", false),
            ("*", "", true),
            ("*-x", "a-x", true),
            ("a*b*c", "a1b2c", true),
            ("a*a", "a", false),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

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
        ]);
        let patterns: Vec<String> = classes(&[execution]).into_iter().map(|c| c.pattern).collect();
        assert_eq!(patterns, ["*", "n*", "raft-*", "raft-x"]);
    }
}
