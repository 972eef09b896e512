//! What follows from what: an invariant that others imply stands in their shadow.

use rustc_hash::FxHashMap;

use crate::{Candidate, Invariant, Template, named};

/// Names what is left, and who implies it. What stands in a shadow is kept: it counts again when the other is refuted.
pub(crate) fn cast(found: &[Candidate], class: &str) -> Vec<Invariant> {
    let mut all: Vec<Invariant> = found.iter().map(|f| named(f, class)).collect();
    let ids: FxHashMap<String, usize> = all.iter().enumerate().map(|(i, f)| (f.holds.clone(), i)).collect();
    for (i, f) in found.iter().enumerate() {
        for shadow in f.shadows.iter().filter_map(|text| ids.get(text)) {
            let by = all[i].id.clone();
            all[*shadow].shadowed_by.push(by);
        }
    }
    let orders: Vec<(usize, (String, String))> = found
        .iter()
        .enumerate()
        .filter(|(_, f)| f.template == Template::Order)
        .filter_map(|(i, f)| Some((i, sides(&f.text)?)))
        .collect();
    for (i, (a, c)) in &orders {
        let through = orders.iter().find_map(|(j, (from, b))| {
            let on = |(k, (b2, c2)): &(usize, (String, String))| (b2 == b && c2 == c).then_some(*k);
            (from == a && b != c).then(|| orders.iter().find_map(on)).flatten().map(|k| (*j, k))
        });
        if let Some((j, k)) = through {
            let by = [all[j].id.clone(), all[k].id.clone()];
            all[*i].shadowed_by.extend(by);
        }
    }
    all
}

/// The two sides of `a < b` and `a <= b`.
fn sides(text: &str) -> Option<(String, String)> {
    let text = text.rsplit(" HAVING ").next()?;
    let (a, b) = text.split_once(" <= ").or_else(|| text.split_once(" < "))?;
    Some((a.to_owned(), b.to_owned()))
}
