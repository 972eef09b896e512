//! What holds between the actors of a class, at one moment or over the whole history.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::evidence::{bits, changes};
use crate::moments::{MOST, each_moment, each_together, moments};
use crate::relation::{Relation, literal};
use crate::rows::holds;
use crate::steps::monotonic;
use crate::table::{Table, ValueKind};
use crate::{Candidate, Template};

/// Episodes that a relation with a key needs before it is proposed.
const SHARED: usize = 5;

/// Candidates: nothing here has been checked yet.
pub(crate) fn candidates(table: &Table, rows: &[usize], variables: &[usize]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for &x in variables {
        agreement(table, x, &mut found);
        for value in table.modes(x).unwrap_or_default() {
            at_most_one(table, (x, value), variables, &mut found);
            dominance(table, (x, value), variables, &mut found);
        }
        lists(table, rows, x, variables, &mut found);
    }
    for &k in variables {
        for &y in
            variables.iter().filter(|y| **y != k && !table.variables[**y].is_beside(&table.variables[k]))
        {
            key_decides(table, k, y, &mut found);
        }
    }
    inheritance(table, rows, variables, &mut found);
    found
}

fn sql(table: &Table, value: u32) -> String {
    literal(&table.values[value as usize])
}

fn agreement(table: &Table, x: usize, found: &mut Vec<Candidate>) {
    let variable = &table.variables[x];
    let n = moments(table, &[x]);
    let values: Vec<u32> = changes(table, &[x]).map(|row| variable.column[row]).filter(|v| *v != 0).collect();
    let p = collision(&values);
    let name = variable.text("");
    let mut all = vec![(format!("count(DISTINCT {name}) <= 1"), p)];
    if variable.sort == ValueKind::Number {
        all.extend((1..=2).map(|c| (format!("max({name}) - min({name}) <= {c}"), within(table, &values, c))));
    }
    let texts: Vec<String> = all.iter().map(|a| a.0.clone()).collect();
    for (i, (text, p)) in all.into_iter().enumerate() {
        let shadows = texts[i + 1..].to_vec();
        found.push(Candidate { shadows, ..Candidate::new(Template::Agreement, text, n, bits(p, n)) });
    }
}

/// The probability that two values drawn from these are equal.
fn collision(values: &[u32]) -> f64 {
    let mut counts: FxHashMap<u32, f64> = FxHashMap::default();
    values.iter().for_each(|v| *counts.entry(*v).or_default() += 1.0);
    let mut counts: Vec<f64> = counts.into_values().collect();
    counts.sort_by(f64::total_cmp);
    let all = values.len().max(1) as f64;
    if values.is_empty() { 1.0 } else { counts.iter().map(|c| (c / all).powi(2)).sum() }
}

/// The probability that two values drawn from these are at most `c` apart.
fn within(table: &Table, values: &[u32], c: i64) -> f64 {
    let mut numbers: Vec<f64> = values.iter().filter_map(|v| table.values[*v as usize].as_f64()).collect();
    numbers.sort_by(f64::total_cmp);
    let all = (numbers.len() * numbers.len()).max(1) as f64;
    let near: usize = numbers
        .iter()
        .map(|v| {
            numbers.partition_point(|w| *w <= v + c as f64) - numbers.partition_point(|w| *w < v - c as f64)
        })
        .sum();
    if numbers.is_empty() { 1.0 } else { near as f64 / all }
}

fn at_most_one(table: &Table, (x, value): (usize, u32), variables: &[usize], found: &mut Vec<Candidate>) {
    let (name, of) = (table.variables[x].text(""), sql(table, value));
    let column = &table.variables[x].column;
    let share = column.iter().filter(|v| **v == value).count() as f64 / column.len().max(1) as f64;
    let mut actors: Vec<u32> = table.rows.iter().map(|r| r.actor).collect();
    actors.sort_unstable();
    actors.dedup();
    let others = actors.len().saturating_sub(1) as f64;
    if others == 0.0 {
        return;
    }
    // Of a pair only one other can have it too.
    let others = if table.pairs.is_empty() { others } else { 1.0 };
    let chance = |collision: f64| 1.0 - (share * collision * others).min(1.0);
    let unkeyed = format!("WHERE {name} = {of} HAVING count(*) <= 1");
    let keys: Vec<usize> = variables
        .iter()
        .copied()
        .filter(|k| *k != x && matches!(table.variables[*k].sort, ValueKind::Number | ValueKind::Text))
        .filter(|k| !table.variables[*k].is_beside(&table.variables[x]))
        .collect();
    let keyed = |k: usize| {
        format!("WHERE {name} = {of} GROUP BY {} HAVING count(*) <= 1", table.variables[k].text(""))
    };
    let n = if table.pairs.is_empty() { moments(table, &[x]) } else { stays(table, (x, value)) };
    let shadows = keys.iter().map(|k| keyed(*k)).collect();
    found
        .push(Candidate { shadows, ..Candidate::new(Template::AtMostOne, unkeyed, n, bits(chance(1.0), n)) });
    let mut together = 0;
    each_together(table, &[x], &mut |_, now| {
        together += usize::from(now.iter().filter(|(_, v)| v[0] == value).count() > 1);
        together < SHARED
    });
    for &k in &keys {
        let key = &table.variables[k].column;
        let there: Vec<u32> = (0..column.len()).filter(|r| column[*r] == value).map(|r| key[r]).collect();
        if together >= SHARED {
            let n = if table.pairs.is_empty() { moments(table, &[x, k]) } else { stays(table, (x, value)) };
            found.push(Candidate::new(Template::AtMostOne, keyed(k), n, bits(chance(collision(&there)), n)));
        }
        found.extend(owner(table, (x, value), k).map(|o| Candidate { shadows: vec![keyed(k)], ..o }));
    }
}

/// How often an actor began to have a value while another could have had it too: each time it might have gone wrong.
fn stays(table: &Table, (x, value): (usize, u32)) -> usize {
    let column = &table.variables[x].column;
    let mut met = vec![false; column.len()];
    table.pairs.iter().flatten().for_each(|row| met[*row as usize] = true);
    // The rows of a stay are those of an actor, one after the other.
    let mut begun: FxHashMap<(u32, u32), bool> = FxHashMap::default();
    let mut stays = 0;
    for (row, at) in table.rows.iter().enumerate() {
        let counted = begun.entry((at.execution, at.actor)).or_default();
        if column[row] != value {
            *counted = false;
        } else if met[row] && !std::mem::replace(counted, true) {
            stays += 1;
        }
    }
    stays
}

/// Who has a value owns the key, for good.
fn owner(table: &Table, (x, value): (usize, u32), k: usize) -> Option<Candidate> {
    let mut owners: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (row, at) in table.rows.iter().enumerate() {
        let key = table.variables[k].column[row];
        if table.variables[x].column[row] == value && key != 0 {
            // Another owner speaks against it.
            if *owners.entry((at.execution, key)).or_insert(at.actor) != at.actor {
                return None;
            }
        }
    }
    let mut counts: FxHashMap<u32, f64> = FxHashMap::default();
    owners.values().for_each(|actor| *counts.entry(*actor).or_default() += 1.0);
    let n = owners.len();
    let mut counts: Vec<f64> = counts.into_values().collect();
    counts.sort_by(f64::total_cmp);
    let p: f64 = counts.iter().map(|c| (c / n as f64).powi(2)).sum();
    let (name, of, key) = (table.variables[x].text(""), sql(table, value), table.variables[k].text(""));
    let text = format!("EVER WHERE {name} = {of} GROUP BY {key} HAVING count(DISTINCT actor) <= 1");
    (n > 0).then(|| Candidate::new(Template::Owner, text, n, bits(p, n)))
}

/// Actors with one key have one value, at a moment or ever.
fn key_decides(table: &Table, k: usize, y: usize, found: &mut Vec<Candidate>) {
    let (sort, of) = (table.variables[k].sort, table.variables[y].sort);
    if !matches!(sort, ValueKind::Number | ValueKind::Text) || of == ValueKind::Truth {
        return;
    }
    let (key, name) = (table.variables[k].text(""), table.variables[y].text(""));
    let now = format!("GROUP BY {key} HAVING count(DISTINCT {name}) <= 1");
    let mut first: FxHashMap<(u32, u32), (u32, u32)> = FxHashMap::default();
    let mut shared: FxHashSet<(u32, u32, u32)> = FxHashSet::default();
    let mut ever = true;
    for (row, at) in table.rows.iter().enumerate() {
        let (key, value) = (table.variables[k].column[row], table.variables[y].column[row]);
        if key != 0 && value != 0 {
            let &mut (actor, known) = first.entry((at.execution, key)).or_insert((at.actor, value));
            ever &= known == value;
            if known == value && actor != at.actor {
                shared.insert((at.execution, key, value));
            }
        }
    }
    if ever && shared.len() >= SHARED {
        let text = format!("EVER {now}");
        let n = shared.len();
        let shadows = vec![now.clone()];
        found.push(Candidate { shadows, ..Candidate::new(Template::KeyDecides, text, n, bits(0.5, n)) });
    }
    let mut together: FxHashSet<(u32, u32, u32)> = FxHashSet::default();
    let mut fails = false;
    each_together(table, &[k, y], &mut |execution, now| {
        for (i, (_, a)) in now.iter().enumerate() {
            for (_, b) in now[i + 1..].iter().filter(|(_, b)| a[0] == b[0] && a[0] != 0) {
                fails |= a[1] != 0 && b[1] != 0 && a[1] != b[1];
                if a[1] == b[1] && a[1] != 0 {
                    together.insert((execution, a[0], a[1]));
                }
            }
        }
        !fails
    });
    if !fails && together.len() >= SHARED {
        found.push(Candidate::new(Template::KeyDecides, now, together.len(), bits(0.5, together.len())));
    }
}

fn lists(table: &Table, rows: &[usize], l: usize, variables: &[usize], found: &mut Vec<Candidate>) {
    if table.variables[l].sort != ValueKind::List {
        return;
    }
    let name = table.variables[l].text("");
    let mut pairs: FxHashSet<(u32, u32)> = FxHashSet::default();
    each_together(table, &[l], &mut |_, now| {
        for (i, (_, a)) in now.iter().enumerate() {
            for (_, b) in &now[i + 1..] {
                let some = |v: u32| table.values[v as usize].as_array().is_some_and(|all| !all.is_empty());
                if a[0] != b[0] && some(a[0]) && some(b[0]) {
                    pairs.insert((a[0].min(b[0]), a[0].max(b[0])));
                }
            }
        }
        pairs.len() < MOST
    });
    let n = pairs.len();
    let cuts = cuts(table, rows, l, variables);
    let heads: Vec<String> =
        cuts.iter().map(|c| format!("prefixes(head({name}, {}))", table.variables[*c].text(""))).collect();
    let aligned = format!("aligned({name})");
    let mut shadows = heads.clone();
    shadows.push(aligned.clone());
    shadows.push(format!("GROUP BY length({name}) HAVING count(DISTINCT {name}) <= 1"));
    found.push(Candidate {
        shadows,
        ..Candidate::new(Template::Lists, format!("prefixes({name})"), n, bits(0.5, n))
    });
    found.push(Candidate::new(Template::Lists, aligned, n, bits(0.5, n)));
    found.push(Candidate::new(Template::Lists, format!("disjoint({name})"), n, bits(0.5, n)));
    for (c, text) in cuts.into_iter().zip(heads) {
        let n = heads_seen(table, l, c);
        found.push(Candidate::new(Template::Lists, text, n, bits(0.5, n)));
    }
}

/// Numbers that are never more than a list is long: how much of it counts.
fn cuts(table: &Table, rows: &[usize], l: usize, variables: &[usize]) -> Vec<usize> {
    let Some(length) =
        (0..table.variables.len()).find(|v| table.variables[*v].is_length_of(&table.variables[l]))
    else {
        return Vec::new();
    };
    let numbers = variables.iter().copied().filter(|c| table.variables[*c].sort == ValueKind::Number);
    numbers.filter(|c| *c != length && holds(table, &Relation::NotMore(*c, length), rows)).collect()
}

/// Different pairs of beginnings, neither empty, that two actors had at once.
fn heads_seen(table: &Table, l: usize, c: usize) -> usize {
    let mut pairs: FxHashSet<[Vec<u32>; 2]> = FxHashSet::default();
    each_together(table, &[l, c], &mut |_, now| {
        let some: Vec<&Vec<u32>> =
            now.iter().map(|(_, v)| v).filter(|v| table.values[v[1] as usize].as_i64() > Some(0)).collect();
        for (i, a) in some.iter().enumerate() {
            for b in some[i + 1..].iter().filter(|b| *b != a) {
                let mut pair = [(*a).clone(), (*b).clone()];
                pair.sort_unstable();
                pairs.insert(pair);
            }
        }
        pairs.len() < MOST
    });
    pairs.len()
}

/// Where some have a value and others not, the most of those with it is at least that of the others.
fn dominance(table: &Table, (x, value): (usize, u32), variables: &[usize], found: &mut Vec<Candidate>) {
    for &y in variables.iter().filter(|y| **y != x && table.variables[**y].sort == ValueKind::Number) {
        let mut pairs: FxHashSet<(u32, u32)> = FxHashSet::default();
        let number = |v: u32| table.values[v as usize].as_f64();
        each_moment(table, &[x, y], &mut |_, now| {
            let most = |with: bool| {
                let side = now.iter().filter(|(_, v)| v[0] != 0 && (v[0] == value) == with);
                side.filter_map(|(_, v)| Some((number(v[1])?, v[1])))
                    .max_by(|a, b| a.0.total_cmp(&b.0))
                    .map(|m| m.1)
            };
            let both = most(true).zip(most(false));
            pairs.extend(both);
            both.is_none_or(|(with, without)| number(with) >= number(without))
        });
        if pairs.len() < SHARED || pairs.iter().any(|(a, b)| number(*a) < number(*b)) {
            continue;
        }
        let all = pairs.len() as f64 * pairs.len() as f64;
        let mut others: Vec<f64> = pairs.iter().filter_map(|(_, b)| number(*b)).collect();
        others.sort_by(f64::total_cmp);
        let fit: usize =
            pairs.iter().filter_map(|(a, _)| number(*a)).map(|a| others.partition_point(|b| *b <= a)).sum();
        let (name, of, y) = (table.variables[x].text(""), sql(table, value), table.variables[y].text(""));
        let text = format!("max({y}) FILTER (WHERE {name} = {of}) >= max({y}) FILTER (WHERE {name} <> {of})");
        found.push(Candidate::new(
            Template::Dominance,
            text,
            pairs.len(),
            bits(fit as f64 / all, pairs.len()),
        ));
    }
}

/// The variable that orders what happens to the class: it never falls, in no execution, and changes most often.
fn clock(table: &Table, variables: &[usize]) -> Option<usize> {
    let monotonic = variables.iter().filter_map(|v| Some((monotonic(table, *v)?, std::cmp::Reverse(*v))));
    monotonic.max().map(|(_, v)| v.0)
}

/// Who has a value has all that counted when its key was lower (leader completeness is one).
fn inheritance(table: &Table, rows: &[usize], variables: &[usize], found: &mut Vec<Candidate>) {
    let Some(k) = clock(table, variables) else { return };
    for &x in variables {
        for value in table.modes(x).unwrap_or_default() {
            if owner(table, (x, value), k).is_none() {
                continue;
            }
            for &l in variables.iter().filter(|l| table.variables[**l].sort == ValueKind::List) {
                for c in cuts(table, rows, l, variables).into_iter().filter(|c| *c != k) {
                    let n = inherited(table, (x, value), k, c);
                    let names = [x, k, l, c]
                        .map(|v| (table.variables[v].text("new"), table.variables[v].text("old")));
                    let [(x, _), (new_k, old_k), (new_l, old_l), (_, old_c)] = names;
                    let of = sql(table, value);
                    let text = format!(
                        "EVER PAIRS old, new WHERE {x} = {of} AND {new_k} > {old_k} HAVING contains({new_l}, head({old_l}, {old_c}))"
                    );
                    found.push(Candidate::new(Template::Inheritance, text, n, bits(0.5, n)));
                }
            }
        }
    }
}

/// Keys under which an actor had the value when something counted under a lower one.
fn inherited(table: &Table, (x, value): (usize, u32), k: usize, c: usize) -> usize {
    let mut seen: FxHashSet<(u32, u32, u32)> = FxHashSet::default();
    let mut least: FxHashMap<u32, f64> = FxHashMap::default();
    for (row, at) in table.rows.iter().enumerate() {
        let key = table.variables[k].column[row];
        let Some(number) = table.values[key as usize].as_f64() else { continue };
        let counted = least.get(&at.execution).is_some_and(|low| *low < number);
        if table.variables[x].column[row] == value && counted {
            seen.insert((at.execution, at.actor, key));
        }
        if table.value(c, row).as_i64() > Some(0) {
            let low = least.entry(at.execution).or_insert(number);
            *low = low.min(number);
        }
    }
    seen.len()
}
