//! Relations between a state and the one before it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::evidence::{bits, changes};
use crate::relation::literal;
use crate::table::{Part, Table, ValueKind};
use crate::{Candidate, Template};

/// A variable that never falls, in any execution, and how often it changes.
pub(crate) fn monotonic(table: &Table, variable: usize) -> Option<usize> {
    if table.variables[variable].sort != ValueKind::Number {
        return None;
    }
    let mut n = 0;
    for row in changes(table, &[variable]) {
        let (before, now) = pair(table, variable, row)?;
        if let (Some(before), Some(now)) = (before.as_f64(), now.as_f64()) {
            if now < before {
                return None;
            }
            n += 1;
        }
    }
    (n > 0).then_some(n)
}

fn pair(table: &Table, variable: usize, row: usize) -> Option<(&serde_json::Value, &serde_json::Value)> {
    let before = table.rows[row].before?;
    Some((table.value(variable, before as usize), table.value(variable, row)))
}

/// Steps and transitions of these variables.
pub(crate) fn steps(table: &Table, variables: &[usize]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for &x in variables {
        let variable = &table.variables[x];
        let (name, before) = (variable.text(""), variable.text("prev"));
        if let Some(n) = monotonic(table, x) {
            let shadows = match variable.part {
                Part::Length => Vec::new(),
                _ => vec![format!("length({name}) >= length({before})")],
            };
            found.push(Candidate {
                shadows,
                ..Candidate::new(Template::Step, format!("{name} >= {before}"), n, bits(0.5, n))
            });
        }
        match variable.sort {
            ValueKind::Number => found.extend(small_steps(table, x)),
            ValueKind::List => {
                let pairs: Vec<_> = changes(table, &[x])
                    .filter_map(|row| pair(table, x, row))
                    .filter(|(b, now)| b.is_array() && now.is_array())
                    .collect();
                let grows = |(b, now): &(&serde_json::Value, &serde_json::Value)| match (
                    now.as_array(),
                    b.as_array(),
                ) {
                    (Some(now), Some(b)) => now.starts_with(b),
                    _ => false,
                };
                if !pairs.is_empty() && pairs.iter().all(grows) {
                    let n = pairs.len();
                    let text = format!("starts_with({name}, {before})");
                    let shadows = vec![format!("length({name}) >= length({before})")];
                    found
                        .push(Candidate { shadows, ..Candidate::new(Template::Step, text, n, bits(0.5, n)) });
                }
            }
            ValueKind::Text | ValueKind::Truth => {}
        }
        found.extend(transitions(table, x));
    }
    found
}

fn small_steps(table: &Table, x: usize) -> Option<Candidate> {
    let pairs: Vec<(i64, i64)> = changes(table, &[x])
        .filter_map(|row| pair(table, x, row))
        .filter_map(|(before, now)| Some((before.as_i64()?, now.as_i64()?)))
        .collect();
    let small = |(before, now): &(i64, i64)| now.checked_sub(*before).is_some_and(|d| (-1..=1).contains(&d));
    if pairs.is_empty() || !pairs.iter().all(small) {
        return None;
    }
    let (name, before) = (table.variables[x].text(""), table.variables[x].text("prev"));
    let text = format!("{name} - {before} BETWEEN -1 AND 1");
    Some(Candidate::new(Template::Step, text, pairs.len(), bits(0.5, pairs.len())))
}

/// Which value of an enumerable variable follows which, where not every one follows every other.
fn transitions(table: &Table, x: usize) -> Option<Candidate> {
    let values = table.modes(x)?;
    let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut n = 0;
    for row in changes(table, &[x]) {
        let (before, now) = pair(table, x, row)?;
        if !before.is_null() && !now.is_null() {
            next.entry(literal(before)).or_default().insert(literal(now));
            n += 1;
        }
    }
    let seen: usize = next.values().map(BTreeSet::len).sum();
    if n == 0 || seen >= values.len() * (values.len() - 1) {
        return None;
    }
    let (name, before) = (table.variables[x].text(""), table.variables[x].text("prev"));
    let ways = next.iter().map(|(from, to)| {
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        format!("({before} = {from} AND {name} IN ({}))", to.join(", "))
    });
    let text = std::iter::once(format!("{before} = {name}")).chain(ways).collect::<Vec<_>>().join(" OR ");
    Some(Candidate::new(Template::Transition, text, n, bits(0.5, n)))
}
