//! Relations within one state: they are proposed from the first rows, and each row that does not fit removes one.

use rustc_hash::FxHashSet;

use crate::evidence::{bits, changes};
use crate::relation::{Relation, wholes};
use crate::table::{Table, ValueKind};

/// Divisors that truncation leaves behind: bytes, words, powers of ten.
const DIVISORS: [i64; 8] = [10, 100, 256, 1_000, 10_000, 65_536, 1_000_000, 4_294_967_296];
/// Most values that a relation between three variables is proposed for.
const THREE: usize = 16;

/// Each combination of values once: the rows that relations within a row are asked of.
pub(crate) fn distinct(table: &Table) -> Vec<usize> {
    let mut seen: FxHashSet<u128> = FxHashSet::default();
    let mut bytes = Vec::with_capacity(table.variables.len() * 4);
    let all = 0..table.rows.len();
    all.filter(|&row| {
        bytes.clear();
        table.variables.iter().for_each(|v| bytes.extend(v.column[row].to_le_bytes()));
        // 128 bits tell more rows apart than there are.
        seen.insert(xxhash_rust::xxh3::xxh3_128(&bytes))
    })
    .collect()
}

/// Whether no row speaks against the relation, and some row speaks for it.
pub(crate) fn holds(table: &Table, relation: &Relation, rows: &[usize]) -> bool {
    let variables = relation.variables();
    let mut known = false;
    for &row in rows {
        match relation.fits_row(table, &variables, row) {
            Some(false) => return false,
            Some(true) => known = true,
            None => {}
        }
    }
    known
}

/// Variables that are always equal speak through the first of them: the others, each with its first.
pub(crate) fn equal(table: &Table, rows: &[usize]) -> Vec<(usize, usize)> {
    let mut leaders: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for v in 0..table.variables.len() {
        let same = |l: &&usize| {
            table.variables[**l].sort == table.variables[v].sort
                && holds(table, &Relation::Equal(**l, v), rows)
        };
        match leaders.iter().find(same) {
            Some(leader) => found.push((*leader, v)),
            None => leaders.push(v),
        }
    }
    found
}

/// The relations within a row that hold, of these variables.
pub(crate) fn relations(table: &Table, rows: &[usize], variables: &[usize]) -> Vec<Relation> {
    let of = |sort| variables.iter().copied().filter(move |v| table.variables[*v].sort == sort);
    let numbers: Vec<usize> = of(ValueKind::Number).collect();
    let mut found = Vec::new();
    for &x in variables {
        found.extend(table.few(x).map(|values| Relation::OneOf(x, values)));
        found.extend(bounds(table, x));
    }
    let most =
        |x: usize| table.variables[x].values.iter().filter_map(|v| table.values[*v as usize].as_i64()).max();
    let mut keep = |relation: Relation| {
        let yes = holds(table, &relation, rows);
        if yes {
            found.push(relation);
        }
        yes
    };
    for (i, &x) in numbers.iter().enumerate() {
        for &y in &numbers[i + 1..] {
            // The strongest that holds is enough.
            let _ = [
                Relation::Less(x, y),
                Relation::Less(y, x),
                Relation::NotMore(x, y),
                Relation::NotMore(y, x),
                Relation::Unequal(x, y),
            ]
            .into_iter()
            .any(&mut keep);
            if let Some(line) = line(table, x, y, rows) {
                keep(line);
            }
            for (x, y) in [(x, y), (y, x)] {
                // Where nothing is as large as the divisor it is equality.
                for m in DIVISORS.into_iter().filter(|m| most(x) >= Some(*m)) {
                    keep(Relation::Residue { y, x, m });
                }
            }
        }
    }
    if numbers.len() <= THREE {
        for &z in &numbers {
            for (i, &x) in numbers.iter().enumerate() {
                for &y in &numbers[i + 1..] {
                    if z != x && z != y {
                        keep(Relation::Sum(z, x, y));
                        keep(Relation::Product(z, x, y));
                    }
                }
            }
        }
    }
    for list in of(ValueKind::List) {
        for other in of(ValueKind::List).filter(|k| *k != list) {
            keep(Relation::StartsWith(list, other));
        }
        for &x in variables {
            // The last of a list is in it.
            if table.variables[x].sort != ValueKind::List
                && !table.variables[x].is_beside(&table.variables[list])
            {
                keep(Relation::Contains(list, x));
            }
        }
    }
    found
}

/// What holds where a variable with few values has one of them, and not always.
pub(crate) fn implications(
    table: &Table,
    rows: &[usize],
    variables: &[usize],
    known: &[Relation],
) -> Vec<Relation> {
    let mut found = Vec::new();
    for &x in variables {
        for value in table.modes(x).unwrap_or_default() {
            let there: Vec<usize> =
                rows.iter().copied().filter(|row| table.variables[x].column[*row] == value).collect();
            for &y in variables.iter().filter(|y| **y != x) {
                for &z in variables.iter().filter(|z| **z > y && **z != x) {
                    found.extend(
                        strongest(table, (y, z), &there)
                            .filter(|r| !known.contains(r))
                            .map(|r| (x, value, r)),
                    );
                }
                let first = there.iter().map(|row| table.variables[y].column[*row]).find(|v| *v != 0);
                // No literal of the language is a list.
                let is =
                    first.filter(|_| table.variables[y].sort != ValueKind::List).map(|v| Relation::Is(y, v));
                found.extend(is.filter(|r| holds(table, r, &there)).map(|r| (x, value, r)));
            }
        }
    }
    // It says something only where it does not hold anyway.
    found.retain(|(_, _, then)| !holds(table, then, rows));
    found.into_iter().map(|(x, v, then)| Relation::Implies(x, v, Box::new(then))).collect()
}

/// The strongest comparison of two variables that holds in these rows.
fn strongest(table: &Table, (x, y): (usize, usize), rows: &[usize]) -> Option<Relation> {
    let (a, b) = (table.variables[x].sort, table.variables[y].sort);
    if a != b {
        return None;
    }
    let mut all = vec![Relation::Equal(x, y)];
    if a == ValueKind::Number {
        all.extend([
            Relation::Less(x, y),
            Relation::Less(y, x),
            Relation::NotMore(x, y),
            Relation::NotMore(y, x),
            Relation::Unequal(x, y),
        ]);
    }
    all.into_iter().find(|r| holds(table, r, rows))
}

/// Bounds, where the values gather at them (the test of M. D. Ernst et al., "The Daikon system", 2007).
fn bounds(table: &Table, x: usize) -> Vec<Relation> {
    let Some(mut values) = wholes(table, x) else { return Vec::new() };
    values.sort_unstable();
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Vec::new() };
    if values.len() <= 3 {
        // Those few are told one by one.
        return Vec::new();
    }
    let column = &table.variables[x].column;
    let samples: Vec<i64> =
        changes(table, &[x]).filter_map(|row| table.values[column[row] as usize].as_i64()).collect();
    let count = |v: i64| samples.iter().filter(|s| **s == v).count() as f64;
    let range = (high.saturating_sub(low)).min(100) as f64 + 1.0;
    let expected = samples.len() as f64 / range;
    let gathers = |bound: i64, inward: i64| {
        let here = count(bound);
        let least = if bound == 0 && inward > 0 { expected / 5.0 } else { expected };
        let even = (0..3).all(|i| count(bound.saturating_add(i * inward)) >= least / 2.0);
        here >= 3.0 && (here >= 5.0 * least || even) && bits(0.5, here as usize) > 0.0
    };
    let mut found = Vec::new();
    if gathers(low, 1) {
        found.push(Relation::AtLeast(x, low));
    }
    if gathers(high, -1) {
        found.push(Relation::AtMost(x, high));
    }
    found
}

/// The line through two rows that differ, in whole numbers, where it is no equality.
fn line(table: &Table, x: usize, y: usize, rows: &[usize]) -> Option<Relation> {
    let point = |row: &usize| Some((table.value(x, *row).as_i64()?, table.value(y, *row).as_i64()?));
    let mut points = rows.iter().filter_map(point);
    let first = points.next()?;
    let second = points.find(|p| p.0 != first.0)?;
    let (rise, run) = (second.1.checked_sub(first.1)?, second.0.checked_sub(first.0)?);
    let (y, x, a, b) = match (rise.checked_rem(run), run.checked_rem(rise)) {
        (Some(0), _) => (y, x, rise / run, first.1.checked_sub((rise / run).checked_mul(first.0)?)?),
        (_, Some(0)) => (x, y, run / rise, first.0.checked_sub((run / rise).checked_mul(first.1)?)?),
        _ => return None,
    };
    (a != 0 && (a, b) != (1, 0)).then_some(Relation::Linear { y, x, a, b })
}
