//! Classes of actors: those that run the same code, as far as names and variables tell.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;

use crate::Execution;
use crate::roles::role;

/// Actors about which the same is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// A pattern of names; the name itself where the class has one actor.
    pub names: Pattern,
    /// Its actors in all executions.
    pub actors: BTreeSet<String>,
    /// Variables that bear the names of their actors, as patterns that each actor has one of.
    pub roles: BTreeSet<String>,
}

/// The actors whose names differ only in a number at the end, or in the word after the last separator, and whose states have the same
/// variables, as far as these do not bear the actors' names ([`roles`]).
///
/// Without classes equal actors give a copy of each relation each, and starve all of them of states.
///
/// An actor that one of the patterns of `named` matches is of that class, the first that does.
pub(crate) fn classes(executions: &[Execution], named: &[Pattern]) -> Vec<Class> {
    let mut variables: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in executions.iter().flat_map(|e| &e.records) {
        variables.entry(&record.actor).or_default().extend(record.state.variables());
    }
    let mut stems: BTreeMap<&str, BTreeMap<&str, &BTreeSet<&str>>> = BTreeMap::new();
    let mut given: BTreeMap<usize, BTreeMap<&str, &BTreeSet<&str>>> = BTreeMap::new();
    for (actor, variables) in &variables {
        match named.iter().position(|pattern| pattern.matches(actor)) {
            Some(class) => given.entry(class).or_default().insert(actor, variables),
            None => stems.entry(stem(actor)).or_default().insert(actor, variables),
        };
    }
    let mut found = Vec::new();
    for (stem, mut actors) in stems {
        let names = |actors: &BTreeSet<String>| {
            pattern(match actors.first() {
                Some(only) if actors.len() == 1 => Pattern::escape(only),
                _ => format!("{}*", Pattern::escape(stem)),
            })
        };
        let mut shapes: BTreeMap<&BTreeSet<&str>, BTreeSet<String>> = BTreeMap::new();
        if let Some((roles, members)) = role(&actors, stem) {
            for member in &members {
                actors.remove(member);
            }
            let actors = members.into_iter().map(str::to_owned).collect();
            found.push(Class { names: names(&actors), actors, roles });
        }
        for (actor, variables) in actors {
            shapes.entry(variables).or_default().insert(actor.to_owned());
        }
        found.extend(shapes.into_values().map(|actors| Class {
            names: names(&actors),
            actors,
            roles: BTreeSet::new(),
        }));
    }
    found.extend(given.into_iter().map(|(i, actors)| Class {
        names: named[i].clone(),
        roles: role(&actors, "").map(|(roles, _)| roles).unwrap_or_default(),
        actors: actors.into_keys().map(str::to_owned).collect(),
    }));
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

    /// The classes of actors with these variables: pattern, actors, and names with stars.
    fn found(actors: &[(&str, &[&str])], named: &[&str]) -> Vec<(String, usize, Vec<String>)> {
        let state = |names: &[&str]| {
            let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        let told: Vec<(&str, String)> = actors.iter().map(|(actor, names)| (*actor, state(names))).collect();
        let told: Vec<(&str, &str)> = told.iter().map(|(actor, state)| (*actor, state.as_str())).collect();
        let named: Vec<Pattern> = named.iter().map(|text| Pattern::new(text).unwrap()).collect();
        let classes = classes(&[execution(&told)], &named);
        classes
            .into_iter()
            .map(|c| (c.names.to_string(), c.actors.len(), c.roles.into_iter().collect()))
            .collect()
    }

    #[test]
    fn variables_that_bear_the_names_of_their_actors_are_one() {
        for (actors, pattern, stars) in [
            // A number that is in the name, or is none of it.
            (
                &[
                    ("p-1", &["eating_1", "meals"][..]),
                    ("p-2", &["eating_2", "meals"]),
                    ("p-3", &["eating_3", "meals"]),
                ][..],
                "p-*",
                &["eating_*"][..],
            ),
            (&[("1003", &["main_7_eating3"]), ("1004", &["main_7_eating4"])], "*", &["main_7_eating*"]),
            // The name, or its last word, as a word of its own or before a capital.
            (
                &[("alice", &["alice.state", "aliceMeals"]), ("bob", &["bob.state", "bobMeals"])],
                "*",
                &["*.state", "*Meals"],
            ),
            (&[("node-a", &["node-a/role"]), ("node-b", &["node-b/role"])], "node-*", &["node-*/role"]),
            // Two numbers that change together with nothing else.
            (&[("p-1", &["fork_7_of_1"]), ("p-2", &["fork_9_of_2"])], "p-*", &["fork_*_of_*"]),
        ] {
            let expected =
                vec![(pattern.to_owned(), actors.len(), stars.iter().map(|s| (*s).to_owned()).collect())];
            assert_eq!(found(actors, &[]), expected);
        }
    }

    #[test]
    fn variables_that_only_look_alike_stay_apart() {
        for actors in [
            // Nothing of the names tells the actors.
            &[("p-1", &["leader"][..]), ("p-2", &["follower"])][..],
            // Which of two forks is meant, nobody can say.
            &[("p-1", &["fork1", "fork2"]), ("p-2", &["fork2", "fork3"])],
            // They have the same variables, whose numbers mean something else.
            &[("p-1", &["term1", "term2"]), ("p-2", &["term1", "term2"])],
        ] {
            assert!(found(actors, &[]).iter().all(|(_, _, stars)| stars.is_empty()), "{actors:?}");
        }
        // One that has others is not of the class.
        let mixed = found(&[("p-1", &["eating_1"]), ("p-2", &["eating_2"]), ("p-x", &["free"])], &[]);
        assert_eq!(
            mixed,
            [("p-*".to_owned(), 2, vec!["eating_*".to_owned()]), ("p-x".to_owned(), 1, vec![])]
        );
    }

    #[test]
    fn a_class_that_is_given_joins_actors_whose_names_do_not() {
        let actors = [("left:red", &["eating_1"][..]), ("right:blue", &["eating_2"])];
        assert_eq!(found(&actors, &[]).len(), 2);
        assert_eq!(found(&actors, &["*:*"]), [("*:*".to_owned(), 2, vec!["eating_*".to_owned()])]);
    }
}
