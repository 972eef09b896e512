//! The states of all actors of a class at one moment: one moment a state record, or a ground state.

use rustc_hash::FxHashSet;

use crate::table::Table;

/// The values of an actor: its number, and the number of each value.
pub(crate) type Snapshot = (u32, Vec<u32>);

/// Calls `f` with the values of these variables of all actors that have told one, at each moment at which one changed, in the order
/// of the actors, until it says that it has seen enough. A new execution begins with nothing.
pub(crate) fn each_moment(table: &Table, variables: &[usize], f: &mut dyn FnMut(u32, &[Snapshot]) -> bool) {
    let mut now: Vec<Snapshot> = Vec::new();
    let mut execution = None;
    let mut changed = false;
    for (row, at) in table.rows.iter().enumerate() {
        if execution != Some(at.execution) {
            execution = Some(at.execution);
            now.clear();
        }
        let value = |v: &usize| table.variables[*v].column[row];
        match now.binary_search_by_key(&at.actor, |(actor, _)| *actor) {
            Ok(i) if now[i].1.iter().copied().eq(variables.iter().map(value)) => {}
            Ok(i) => {
                now[i].1.iter_mut().zip(variables).for_each(|(known, v)| *known = value(v));
                changed = true;
            }
            Err(i) => {
                now.insert(i, (at.actor, variables.iter().map(value).collect()));
                changed = true;
            }
        }
        let next = table.rows.get(row + 1);
        let ends = next.is_none_or(|next| (next.execution, next.moment) != (at.execution, at.moment));
        if ends && std::mem::take(&mut changed) && !f(at.execution, &now) {
            return;
        }
    }
}

/// As [`each_moment`], with the values of two actors that can be there together where pairs are looked at. For what is as wrong of more
/// actors as it is of two.
pub(crate) fn each_together(table: &Table, variables: &[usize], f: &mut dyn FnMut(u32, &[Snapshot]) -> bool) {
    if table.pairs.is_empty() {
        return each_moment(table, variables, f);
    }
    let now = |row: u32| -> Snapshot {
        let values = variables.iter().map(|v| table.variables[*v].column[row as usize]);
        (table.rows[row as usize].actor, values.collect())
    };
    for [one, other] in &table.pairs {
        let mut both = [now(*one), now(*other)];
        both.sort_unstable_by_key(|(actor, _)| *actor);
        if !f(table.rows[*one as usize].execution, &both) {
            return;
        }
    }
}

/// Moments that are told apart. What so many speak for is beyond doubt, and keeping all would take the memory of the execution.
pub(crate) const MOST: usize = 10_000;

/// How many different moments there were of at least two actors, whichever actor had which values; no more than [`MOST`].
pub(crate) fn moments(table: &Table, variables: &[usize]) -> usize {
    let mut seen: FxHashSet<Vec<Vec<u32>>> = FxHashSet::default();
    each_together(table, variables, &mut |_, now| {
        if now.len() > 1 {
            let mut values: Vec<Vec<u32>> = now.iter().map(|(_, v)| v.clone()).collect();
            values.sort_unstable();
            seen.insert(values);
        }
        seen.len() < MOST
    });
    seen.len()
}
