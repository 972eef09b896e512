//! How much speaks for a relation that was never seen to fail, in bits.
//!
//! A relation that independent values would fit with probability p, and that N episodes fit, has -N · log2 p bits. Repeated samples are
//! no evidence: an episode is a change of the variables in question, not a record (as against M. D. Ernst et al., "The Daikon system",
//! Science of Computer Programming 69, 2007, which counts samples).

use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::relation::Relation;
use crate::table::Table;

/// Independent draws from which a probability is estimated.
const DRAWS: usize = 2_000;

/// Bits of `n` episodes of which each had the probability `p`.
pub(crate) fn bits(p: f64, n: usize) -> f64 {
    -(n as f64) * p.clamp(1e-9, 1.0).log2()
}

/// Rows at which the values of these variables differ from those of the state before. The first state of an incarnation is none.
pub(crate) fn changes<'t>(table: &'t Table, variables: &'t [usize]) -> impl Iterator<Item = usize> + 't {
    (0..table.rows.len()).filter(move |&row| {
        table.rows[row].before.is_some_and(|before| {
            variables.iter().any(|v| {
                let column = &table.variables[*v].column;
                column[row] != column[before as usize]
            })
        })
    })
}

/// The values of these variables at their changes, each combination once, and how many changes there were.
fn tuples(table: &Table, variables: &[usize]) -> (FxHashSet<[u32; 4]>, usize) {
    let mut episodes = 0;
    let mut found = FxHashSet::default();
    for row in changes(table, variables) {
        // No relation has more variables.
        let mut tuple = [0; 4];
        tuple.iter_mut().zip(variables).for_each(|(t, v)| *t = table.variables[*v].column[row]);
        if !tuple[..variables.len().min(4)].contains(&0) {
            episodes += 1;
            found.insert(tuple);
        }
    }
    (found, episodes)
}

/// The number of episodes of a relation within a row, and its bits.
pub(crate) fn of_relation(table: &Table, relation: &Relation) -> (usize, f64) {
    let variables = relation.variables();
    match relation {
        Relation::OneOf(x, values) => {
            let mut rarest: FxHashMap<u32, usize> = values.iter().map(|v| (*v, 0)).collect();
            for row in changes(table, &[*x]) {
                *rarest.entry(table.variables[*x].column[row]).or_default() += 1;
            }
            let n = values.iter().filter_map(|v| rarest.get(v)).min().copied().unwrap_or(0);
            (n, bits(0.5, n))
        }
        Relation::AtLeast(x, c) | Relation::AtMost(x, c) => {
            let column = &table.variables[*x].column;
            let at_bound = |row: &usize| table.values[column[*row] as usize].as_i64() == Some(*c);
            let n = changes(table, &[*x]).filter(at_bound).count();
            (n, bits(0.5, n))
        }
        Relation::Implies(x, v, then) => {
            let inner = then.variables();
            let rows = 0..table.rows.len();
            let known: Vec<bool> = rows.filter_map(|row| then.fits_row(table, &inner, row)).collect();
            let fit = known.iter().filter(|yes| **yes).count();
            let p = (fit + 1) as f64 / (known.len() + 2) as f64;
            let column = &table.variables[*x].column;
            let n = changes(table, &variables).filter(|row| column[*row] == *v).count();
            let tuples: FxHashSet<Vec<u32>> = changes(table, &variables)
                .filter(|row| column[*row] == *v)
                .map(|row| inner.iter().map(|v| table.variables[*v].column[row]).collect())
                .collect();
            let n = n.min(tuples.len());
            (n, bits(p, n))
        }
        _ => {
            let (tuples, episodes) = tuples(table, &variables);
            let n = tuples.len().min(episodes);
            (n, bits(chance(table, relation, &variables), n))
        }
    }
}

/// The probability that values drawn independently, each from its own distribution over the changes of its variable, fit.
fn chance(table: &Table, relation: &Relation, variables: &[usize]) -> f64 {
    let drawn: Vec<Vec<u32>> = variables
        .iter()
        .map(|v| {
            let column = &table.variables[*v].column;
            changes(table, &[*v]).map(|row| column[row]).filter(|n| *n != 0).collect()
        })
        .collect();
    if drawn.iter().any(Vec::is_empty) {
        return 1.0;
    }
    if let Relation::Equal(..) = relation {
        let shares = |values: &[u32]| {
            let mut shares: FxHashMap<u32, f64> = FxHashMap::default();
            values.iter().for_each(|v| *shares.entry(*v).or_default() += 1.0 / values.len() as f64);
            shares
        };
        let (x, y) = (shares(&drawn[0]), shares(&drawn[1]));
        let mut both: Vec<(u32, f64)> = x.iter().filter_map(|(v, p)| Some((*v, p * y.get(v)?))).collect();
        both.sort_unstable_by_key(|b| b.0);
        return both.iter().map(|b| b.1).sum();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let fits = (0..DRAWS).filter(|_| {
        let numbers: Vec<u32> =
            drawn.iter().map(|values| values[random.random_range(0..values.len())]).collect();
        relation.fits(table, &numbers) == Some(true)
    });
    (fits.count() + 1) as f64 / (DRAWS + 2) as f64
}
