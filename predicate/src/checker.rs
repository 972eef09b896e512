//! A predicate followed through an execution, state by state.
//!
//! Only what a new state can change is evaluated: a row where rows stand for themselves, the pairs of the actor that told it, the group
//! of the history that it belongs to. A state that changes no variable of the predicate is not evaluated at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Predicate;
use crate::near::{Judge, Near};
use crate::row::{Delivered, Row, State, Told};
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
    judge: Judge<'p>,
    actors: BTreeMap<Arc<str>, Seen>,
    /// Actors, or pairs of them, whose row fails now.
    failing: BTreeSet<(Arc<str>, Option<Arc<str>>)>,
    /// Projections of states of the past, with how many states of their group stood before them when they were last told.
    taken: HashMap<String, usize>,
    /// By key of the group: the states of the past with it, each projection once.
    groups: HashMap<String, Vec<Past>>,
    /// By key of the group: the messages, or last messages of chains, with it.
    messages: HashMap<String, Vec<Delivered>>,
    /// Actors that exchanged a message, each pair in both orders.
    met: BTreeSet<(Arc<str>, Arc<str>)>,
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
            judge: Judge::new(self, columns),
            actors: BTreeMap::new(),
            failing: BTreeSet::new(),
            taken: HashMap::new(),
            groups: HashMap::new(),
            messages: HashMap::new(),
            met: BTreeSet::new(),
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
            && !(self.predicate.scope().is_history() && self.predicate.parsed.counts_rows())
            && self.actors.get(actor).is_some_and(|seen| self.same(&seen.now, state));
        let seen = Seen { incarnation, now: state.clone(), before };
        self.actors.insert(name.clone(), seen);
        if !same {
            self.changed(&name, state)?;
        }
        Ok(self.failure.as_deref())
    }

    /// From here on what comes near to failing is looked for.
    #[must_use]
    pub fn watching(self) -> Self {
        self.judge.watch();
        self
    }

    /// What came nearest to failing with the last state or message, of what was looked at anew for it.
    pub fn take_nearest(&mut self) -> Option<Near> {
        self.judge.take()
    }

    /// What fails now, in words.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether the predicate reads the state before the last, and that is no other.
    fn stays(&self, seen: &Seen) -> bool {
        self.predicate.reads_before()
            && seen.before.as_ref().is_none_or(|before| self.same(before, &seen.now))
    }

    fn same(&self, a: &State, b: &State) -> bool {
        self.judge.columns.iter().all(|c| c.is_actor() || a.get(&c.path) == b.get(&c.path))
    }

    fn changed(&mut self, actor: &Arc<str>, state: &Arc<State>) -> Result<(), String> {
        match self.predicate.scope() {
            Scope::Actors if self.predicate.parsed.groups.is_some() => {
                let rows: Vec<Row<'_>> = self.actors.iter().map(|(name, seen)| seen.row(name)).collect();
                self.failure = self.judge.ask(&rows)?;
            }
            Scope::Actors => {
                let failure = match self.actors.get(actor) {
                    // A state that is as it was says nothing of steps.
                    Some(seen) if self.stays(seen) => self.predicate.failure(&[seen.row(actor)])?,
                    Some(seen) => self.judge.ask(&[seen.row(actor)])?,
                    None => None,
                };
                self.mark((actor.clone(), None), failure.is_some());
                self.name_first()?;
            }
            Scope::Pairs(..) | Scope::Neighbours(..) => self.pairs(actor)?,
            Scope::Messages(_) | Scope::Chain => {}
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
            let this = &*self;
            let all = this.actors.iter().flat_map(|(a, first)| {
                let others = this.actors.iter().filter(move |(b, _)| *b != a && this.are_rows(a, b));
                others.map(move |(b, second)| Row::pair(first.told(a), second.told(b)))
            });
            let rows: Vec<Row<'_>> = all.collect();
            self.failure = self.judge.ask(&rows)?;
            return Ok(());
        }
        let others = self.actors.keys().filter(|name| *name != actor && self.are_rows(actor, name));
        for other in others.cloned().collect::<Vec<_>>() {
            for (a, b) in [(actor, &other), (&other, actor)] {
                let (Some(first), Some(second)) = (self.actors.get(a), self.actors.get(b)) else { continue };
                let fails = self.judge.ask(&[Row::pair(first.told(a), second.told(b))])?.is_some();
                self.mark((a.clone(), Some(b.clone())), fails);
            }
        }
        self.name_first()
    }

    /// Whether two different actors are a row.
    fn are_rows(&self, a: &Arc<str>, b: &Arc<str>) -> bool {
        match self.predicate.scope() {
            Scope::Neighbours(..) => self.met.contains(&(a.clone(), b.clone())),
            _ => true,
        }
    }

    /// Takes the next message that was delivered, when its receiver has told its state after it; returns what fails then, in words.
    /// Where rows are messages and stand for themselves, that is this message.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn deliver(&mut self, delivered: &Delivered) -> Result<Option<&str>, String> {
        let predicate = self.predicate;
        let row = match predicate.scope() {
            Scope::Neighbours(..) => {
                self.meet(delivered)?;
                return Ok(self.failure.as_deref());
            }
            Scope::Messages(kind) if kind.as_deref().is_none_or(|kind| kind == &*delivered.kind) => {
                Row::message(delivered)
            }
            Scope::Chain => Row::chain(delivered, predicate.chain_length()),
            Scope::Messages(_) => None,
            _ => return Ok(self.failure.as_deref()),
        };
        if predicate.parsed.groups.is_none() {
            self.failure = row.map_or(Ok(None), |row| self.judge.ask(&[row]))?;
        } else if let (None, Some(row)) = (&self.failure, row) {
            self.failure = self.collect(row, delivered)?;
        }
        Ok(self.failure.as_deref())
    }

    /// Two actors exchange a message: they are neighbours from there on.
    fn meet(&mut self, delivered: &Delivered) -> Result<(), String> {
        let [(receiver, _), (sender, _), ..] = delivered.links.as_slice() else { return Ok(()) };
        if sender == receiver || !self.met.insert((sender.clone(), receiver.clone())) {
            return Ok(());
        }
        self.met.insert((receiver.clone(), sender.clone()));
        if self.actors.contains_key(sender) && self.actors.contains_key(receiver) {
            self.pairs(receiver)?;
        }
        Ok(())
    }

    /// Adds a message, or a chain that it ends, to its group; what fails with it.
    fn collect(&mut self, row: Row<'_>, delivered: &Delivered) -> Result<Option<String>, String> {
        let Some(key) = self.predicate.key(row)? else { return self.left_out(row) };
        let projected: Vec<String> = self.judge.columns.iter().map(|c| row.get(c).to_string()).collect();
        if !self.predicate.parsed.counts_rows() && self.taken.insert(projected.join("\u{1f}"), 0).is_some() {
            return Ok(None);
        }
        let group = self.messages.entry(key).or_default();
        group.push(delivered.clone());
        let length = self.predicate.chain_length();
        let row =
            |d| if *self.predicate.scope() == Scope::Chain { Row::chain(d, length) } else { Row::message(d) };
        let rows: Vec<Row<'_>> = group.iter().filter_map(row).collect();
        self.judge.ask(&rows)
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

    /// What fails with a row that WHERE leaves out: the table as a whole may, when it has no other.
    fn left_out(&self, row: Row<'_>) -> Result<Option<String>, String> {
        let whole = self.predicate.parsed.groups.as_ref().is_some_and(Vec::is_empty);
        match whole && self.groups.is_empty() && self.messages.is_empty() {
            true => self.predicate.failure(&[row]),
            false => Ok(None),
        }
    }

    /// Adds a state to the history; what fails with it.
    fn remember(&mut self, actor: &Arc<str>, state: &Arc<State>) -> Result<Option<String>, String> {
        let told = Told { actor, state };
        let row = Row::one(told);
        let one_side = |column: &Column| Column { side: 0, path: column.path.clone() };
        let projected = self.judge.columns.iter().map(|c| row.get(&one_side(c)).to_string());
        let projected = projected.collect::<Vec<_>>().join("\u{1f}");
        let Some(key) = self.predicate.key(row)? else { return self.left_out(row) };
        let group = self.groups.entry(key).or_default();
        let known = self.taken.insert(projected, group.len());
        if matches!(self.predicate.scope(), Scope::EverPairs(..)) {
            // The pairs with what stood before it the last time were looked at then.
            for past in group.iter().skip(known.unwrap_or(0)) {
                let found = self.judge.ask(&[Row::pair(told_of(past), told)])?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        let pairs = matches!(self.predicate.scope(), Scope::EverPairs(..));
        if known.is_some() && (pairs || !self.predicate.parsed.counts_rows()) {
            return Ok(None);
        }
        group.push((actor.clone(), state.clone()));
        if pairs {
            return Ok(None);
        }
        if self.predicate.parsed.groups.is_none() {
            return self.judge.ask(&[row]);
        }
        let rows: Vec<Row<'_>> = group.iter().map(|past| Row::one(told_of(past))).collect();
        self.judge.ask(&rows)
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
mod tests;
