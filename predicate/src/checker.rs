//! A predicate followed through an execution, state by state.
//!
//! Only what a new state can change is evaluated: a row where rows stand for themselves, the pairs of the actor that told it, the group
//! of the history that it belongs to. A state that changes no variable of the predicate is not evaluated at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Predicate;
use crate::row::{Row, State, Told};
use crate::scope::Scope;
use crate::term::Column;

/// What an actor told last, and before that in the same incarnation.
#[derive(Clone, Debug)]
struct Seen {
    incarnation: u32,
    now: Arc<State>,
    before: Option<Arc<State>>,
}

/// A state of the past, with the actor that told it.
type Past = (Arc<str>, Arc<State>);

/// A predicate followed through one execution.
#[derive(Clone, Debug)]
pub struct Checker<'p> {
    predicate: &'p Predicate,
    columns: Vec<Column>,
    actors: BTreeMap<Arc<str>, Seen>,
    /// Actors, or pairs of them, whose row fails now.
    failing: BTreeSet<(Arc<str>, Option<Arc<str>>)>,
    /// Projections of states of the past, with how many states of their group stood before them when they were last told.
    taken: HashMap<String, usize>,
    /// By key of the group: the states of the past with it, each projection once.
    groups: HashMap<String, Vec<Past>>,
    /// What fails, in words; of a history for good.
    failure: Option<String>,
}

impl Predicate {
    /// Follows the predicate through an execution from its beginning.
    #[must_use]
    pub fn checker(&self) -> Checker<'_> {
        let mut columns: Vec<Column> = self.parsed.columns().into_iter().cloned().collect();
        columns.sort_unstable_by(|a, b| (a.side, &a.path).cmp(&(b.side, &b.path)));
        columns.dedup();
        Checker {
            predicate: self,
            columns,
            actors: BTreeMap::new(),
            failing: BTreeSet::new(),
            taken: HashMap::new(),
            groups: HashMap::new(),
            failure: None,
        }
    }
}

impl Checker<'_> {
    /// Takes the next state; returns what fails then, in words, or nothing where the predicate holds.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn tell(
        &mut self,
        actor: &str,
        incarnation: u32,
        state: &Arc<State>,
    ) -> Result<Option<&str>, String> {
        let name = match self.actors.get_key_value(actor) {
            Some((name, _)) => name.clone(),
            None => Arc::from(actor),
        };
        let past = self.actors.get(actor).filter(|seen| seen.incarnation == incarnation);
        let before = past.map(|seen| seen.now.clone());
        // A state that leaves the variables as they were changes nothing, unless it is compared with what was told before it.
        let same = !self.predicate.reads_before()
            && !matches!(self.predicate.scope(), Scope::EverPairs(..))
            && self.actors.get(actor).is_some_and(|seen| self.same(&seen.now, state));
        let seen = Seen { incarnation, now: state.clone(), before };
        self.actors.insert(name.clone(), seen);
        if !same {
            self.changed(&name, state)?;
        }
        Ok(self.failure.as_deref())
    }

    fn same(&self, a: &State, b: &State) -> bool {
        self.columns.iter().all(|c| c.is_actor() || a.get(&c.path) == b.get(&c.path))
    }

    fn changed(&mut self, actor: &Arc<str>, state: &Arc<State>) -> Result<(), String> {
        match self.predicate.scope() {
            Scope::Actors if self.predicate.parsed.groups.is_some() => {
                let rows: Vec<Row<'_>> = self.actors.iter().map(|(name, seen)| seen.row(name)).collect();
                self.failure = self.predicate.failure(&rows)?;
            }
            Scope::Actors => {
                let failure = match self.actors.get(actor) {
                    Some(seen) => self.predicate.failure(&[seen.row(actor)])?,
                    None => None,
                };
                self.mark((actor.clone(), None), failure.is_some());
                self.name_first()?;
            }
            Scope::Pairs(..) => self.pairs(actor)?,
            Scope::Ever | Scope::EverPairs(..) => {
                if self.failure.is_none() {
                    self.failure = self.remember(actor, state)?;
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, row: (Arc<str>, Option<Arc<str>>), fails: bool) {
        match fails {
            true => self.failing.insert(row),
            false => self.failing.remove(&row),
        };
    }

    /// The pairs of an actor that told a state, anew.
    fn pairs(&mut self, actor: &Arc<str>) -> Result<(), String> {
        if self.predicate.parsed.groups.is_some() {
            // All pairs count together.
            let all = self.actors.iter().flat_map(|(a, first)| {
                let others = self.actors.iter().filter(move |(b, _)| *b != a);
                others.map(move |(b, second)| Row::pair(first.told(a), second.told(b)))
            });
            let rows: Vec<Row<'_>> = all.collect();
            self.failure = self.predicate.failure(&rows)?;
            return Ok(());
        }
        let others: Vec<Arc<str>> = self.actors.keys().filter(|name| *name != actor).cloned().collect();
        for other in others {
            for (a, b) in [(actor, &other), (&other, actor)] {
                let (Some(first), Some(second)) = (self.actors.get(a), self.actors.get(b)) else { continue };
                let fails = self.predicate.failure(&[Row::pair(first.told(a), second.told(b))])?.is_some();
                self.mark((a.clone(), Some(b.clone())), fails);
            }
        }
        self.name_first()
    }

    /// Says which row fails: the first by names.
    fn name_first(&mut self) -> Result<(), String> {
        let row = self.failing.iter().find_map(|(a, b)| {
            let first = self.actors.get(a)?;
            Some(match b {
                None => first.row(a),
                Some(b) => Row::pair(first.told(a), self.actors.get(b)?.told(b)),
            })
        });
        self.failure = match row {
            Some(row) => self.predicate.failure(&[row])?,
            None => None,
        };
        Ok(())
    }

    /// Adds a state to the history; what fails with it.
    fn remember(&mut self, actor: &Arc<str>, state: &Arc<State>) -> Result<Option<String>, String> {
        let told = Told { actor, state };
        let row = Row::one(told);
        let one_side = |column: &Column| Column { side: 0, path: column.path.clone() };
        let projected = self.columns.iter().map(|c| row.get(&one_side(c)).to_string());
        let projected = projected.collect::<Vec<_>>().join("\u{1f}");
        let Some(key) = self.predicate.key(row)? else { return Ok(None) };
        let group = self.groups.entry(key).or_default();
        let known = self.taken.insert(projected, group.len());
        if matches!(self.predicate.scope(), Scope::EverPairs(..)) {
            // The pairs with what stood before it the last time were looked at then.
            for past in group.iter().skip(known.unwrap_or(0)) {
                let found = self.predicate.failure(&[Row::pair(told_of(past), told)])?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        if known.is_some() {
            return Ok(None);
        }
        group.push((actor.clone(), state.clone()));
        if matches!(self.predicate.scope(), Scope::EverPairs(..)) {
            return Ok(None);
        }
        if self.predicate.parsed.groups.is_none() {
            return self.predicate.failure(&[row]);
        }
        let rows: Vec<Row<'_>> = group.iter().map(|past| Row::one(told_of(past))).collect();
        self.predicate.failure(&rows)
    }
}

fn told_of(past: &Past) -> Told<'_> {
    Told { actor: &past.0, state: &past.1 }
}

impl Seen {
    fn told<'a>(&'a self, actor: &'a str) -> Told<'a> {
        Told { actor, state: &self.now }
    }

    fn row<'a>(&'a self, actor: &'a str) -> Row<'a> {
        Row::last(self.told(actor), self.before.as_deref().map(|state| Told { actor, state }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PREDICATES: [&str; 16] = [
        "x >= prev.x",
        "x >= prev.x OR y = 0",
        "x <= y + 1",
        "WHERE x > 0 HAVING y < 2",
        "count(*) FILTER (WHERE x = 2) <= 1",
        "WHERE x = 2 GROUP BY y HAVING count(*) <= 1",
        "max(x) - min(x) <= 1",
        "prefixes(l)",
        "PAIRS a, b HAVING a.x + b.x < 4",
        "PAIRS a, b WHERE a.x > b.x HAVING a.y >= b.y",
        "PAIRS a, b GROUP BY a.x HAVING count(DISTINCT b.y) <= 2",
        "EVER HAVING x + y < 4",
        "EVER WHERE x = 2 GROUP BY y HAVING count(DISTINCT actor) <= 1",
        "EVER GROUP BY x HAVING count(DISTINCT y) <= 2",
        "EVER HAVING max(x) + max(y) < 4",
        "EVER PAIRS old, new WHERE new.x > old.x HAVING new.y >= old.y",
    ];

    /// All rows of the scope after the last of these states, and whether the predicate fails of them: nothing is kept from before.
    fn naive(predicate: &Predicate, told: &[(String, u32, Arc<State>)]) -> bool {
        let row = |(actor, _, state): &(String, u32, Arc<State>)| (actor.clone(), state.clone());
        let mut last: BTreeMap<&str, (usize, Option<usize>)> = BTreeMap::new();
        for (i, (actor, incarnation, _)) in told.iter().enumerate() {
            let before = last.get(actor.as_str()).map(|l| l.0).filter(|l| told[*l].1 == *incarnation);
            last.insert(actor, (i, before));
        }
        let told_at = |i: usize| Told { actor: &told[i].0, state: &told[i].2 };
        let fails = |rows: &[Row<'_>]| predicate.failure(rows).unwrap().is_some();
        match predicate.scope() {
            Scope::Actors => {
                fails(&last.values().map(|(i, b)| Row::last(told_at(*i), b.map(told_at))).collect::<Vec<_>>())
            }
            Scope::Pairs(..) => {
                let all: Vec<usize> = last.values().map(|l| l.0).collect();
                let pairs =
                    all.iter().flat_map(|i| all.iter().filter(move |j| *j != i).map(move |j| (*i, *j)));
                fails(&pairs.map(|(i, j)| Row::pair(told_at(i), told_at(j))).collect::<Vec<_>>())
            }
            Scope::Ever => (1..=told.len()).any(|n| {
                let rows: Vec<_> = told[..n].iter().map(row).collect();
                fails(&rows.iter().map(|(a, s)| Row::one(Told { actor: a, state: s })).collect::<Vec<_>>())
            }),
            Scope::EverPairs(..) => {
                (0..told.len()).any(|j| (0..j).any(|i| fails(&[Row::pair(told_at(i), told_at(j))])))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// What is evaluated step by step is what is evaluated anew each time.
        #[test]
        fn step_by_step_is_anew(
            which in 0..PREDICATES.len(),
            told in proptest::collection::vec((0..3_u8, 0..5_u8, 0..3_i64, 0..3_i64, proptest::collection::vec(0..2_u8, 0..3)), 1..14),
        ) {
            let predicate = Predicate::parse(PREDICATES[which]).unwrap();
            let mut incarnations = [0_u32; 3];
            let told: Vec<(String, u32, Arc<State>)> = told
                .into_iter()
                .map(|(actor, restarts, x, y, l)| {
                    let incarnation = &mut incarnations[usize::from(actor)];
                    *incarnation += u32::from(restarts == 0);
                    let text = format!(r#"{{"x":{x},"y":{y},"l":{l:?}}}"#);
                    (format!("n{actor}"), *incarnation, Arc::new(State::parse(&text)))
                })
                .collect();
            let mut checker = predicate.checker();
            for (i, (actor, incarnation, state)) in told.iter().enumerate() {
                let found = checker.tell(actor, *incarnation, state).unwrap().is_some();
                prop_assert_eq!(found, naive(&predicate, &told[..=i]), "{} after {}", PREDICATES[which], i);
            }
        }
    }
}
