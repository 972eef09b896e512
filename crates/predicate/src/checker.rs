//! A predicate followed through an execution, state by state.
//!
//! Only what a new state can change is evaluated: a row where rows stand for themselves, the pairs of the actor that told it, the group
//! of the history that it belongs to. A state that changes no variable of the predicate is not evaluated at all.

mod history;
mod messages;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Predicate;
use crate::near::{Judge, NearMiss};
use crate::row::{Delivered, Link, ReportedState, Row};
use crate::scope::{Scope, Visibility};
use crate::state::{Shape, State, Values};
use crate::term::{Column, Term};

/// The current state of an actor, and the one before in the same incarnation.
#[derive(Clone, Debug)]
struct CurrentState {
    now: Arc<State>,
    before: Option<Arc<State>>,
}

/// The last state of an actor, as a first look needs it.
#[derive(Clone, Debug)]
struct LastState {
    incarnation: u32,
    /// Whether the variables were the same before, in the same incarnation.
    still: bool,
    state: Arc<State>,
}

/// A predicate followed through one execution.
#[derive(Clone, Debug)]
pub struct Checker<'p> {
    predicate: &'p Predicate,
    judge: Judge<'p>,
    visibility: Visibility,
    last: FxHashMap<Arc<str>, LastState>,
    /// By shape of states, the last one met: where the columns' variables stand in it.
    slots: RefCell<Option<(Shape, Vec<Option<usize>>)>>,
    /// By side of a pair: the conditions that it must meet whatever the other is.
    sided: [Vec<&'p Term>; 2],
    /// The values that most states share, by whose numbers they are told apart.
    shared: Option<Arc<Values>>,
    actors: BTreeMap<Arc<str>, CurrentState>,
    /// Actors whose last states were taken without a look at what they change.
    unseen: BTreeSet<Arc<str>>,
    /// The actor whose state was taken last, until it was looked at.
    pending: Option<Arc<str>>,
    /// Actors, or pairs of them, whose row fails now.
    failing: BTreeSet<(Arc<str>, Option<Arc<str>>)>,
    /// Projections of states of the past, with how many states of their group stood before them when they were last told.
    taken: HashMap<String, usize>,
    /// By key of the group: the states of the past with it, each projection once.
    groups: HashMap<String, Vec<Link>>,
    /// By key of the group: the messages, or last messages of chains, with it.
    messages: HashMap<String, Vec<Delivered>>,
    /// Actors that exchanged a message, each pair in both orders.
    met: BTreeSet<(Arc<str>, Arc<str>)>,
    /// Whose states made a history, or a message, fail.
    culprits: Vec<Arc<str>>,
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
            visibility: self.visibility(),
            last: FxHashMap::default(),
            slots: RefCell::new(None),
            sided: [self.parsed.of_side(0), self.parsed.of_side(1)],
            shared: None,
            actors: BTreeMap::new(),
            unseen: BTreeSet::new(),
            pending: None,
            failing: BTreeSet::new(),
            taken: HashMap::new(),
            groups: HashMap::new(),
            messages: HashMap::new(),
            met: BTreeSet::new(),
            culprits: Vec::new(),
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
        if self.note(actor, incarnation, state) || !self.unseen.is_empty() {
            let mut changed = std::mem::take(&mut self.unseen);
            changed.extend(self.pending.take());
            for name in changed {
                let now = self.actors.get(&name).map(|seen| seen.now.clone());
                now.map_or(Ok(()), |now| self.changed(&name, &now))?;
            }
        }
        Ok(self.failure.as_deref())
    }

    /// Takes the next state without a look at what it changes; the next [`tell`](Self::tell) looks at it. A history is looked at all the same.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn pass_over(&mut self, actor: &str, incarnation: u32, state: &Arc<State>) -> Result<(), String> {
        if self.predicate.scope().is_history() {
            return self.tell(actor, incarnation, state).map(|_| ());
        }
        if self.note(actor, incarnation, state) {
            self.unseen.extend(self.pending.take());
        }
        Ok(())
    }

    /// Takes the next state; whether it changes what the predicate sees. Then its actor is pending.
    fn note(&mut self, actor: &str, incarnation: u32, state: &Arc<State>) -> bool {
        // A state that leaves the variables as they were changes nothing, unless it is compared with what was told before it.
        let known = self.last.get(actor);
        let same = known.is_some_and(|last| self.same(&last.state, state));
        let goes_on = known.is_some_and(|last| last.incarnation == incarnation);
        let still = same && goes_on;
        let skip = match self.visibility {
            Visibility::Now => same,
            Visibility::Step => still && known.is_some_and(|last| last.still),
            Visibility::Each => false,
        };
        match self.last.get_mut(actor) {
            Some(last) if skip => last.incarnation = incarnation,
            Some(last) => *last = LastState { incarnation, still, state: state.clone() },
            None => {
                self.last.insert(Arc::from(actor), LastState { incarnation, still, state: state.clone() });
            }
        }
        if skip {
            return false;
        }
        let name = match self.actors.get_key_value(actor) {
            Some((name, _)) => name.clone(),
            None => Arc::from(actor),
        };
        let before = self.actors.get(actor).filter(|_| goes_on).map(|seen| seen.now.clone());
        self.actors.insert(name.clone(), CurrentState { now: state.clone(), before });
        self.pending = Some(name);
        true
    }

    /// From here on what comes near to failing is looked for.
    #[must_use]
    pub fn watching(self) -> Self {
        self.judge.watch();
        self
    }

    /// From here on only what comes nearer than this is looked for.
    pub fn only_nearer(&mut self, near: &NearMiss) {
        self.judge.limit(near);
    }

    /// What came nearest to failing with the last state or message, of what was looked at anew for it.
    pub fn take_nearest(&mut self) -> Option<NearMiss> {
        self.judge.take()
    }

    /// What fails now, in words.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The actors whose states fail now, in the order of their names.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn affected(&self) -> Result<Vec<Arc<str>>, String> {
        let all: BTreeSet<Arc<str>> = match self.predicate.scope() {
            _ if self.failure.is_none() => BTreeSet::new(),
            Scope::Actors => {
                let (names, rows): (Vec<_>, Vec<_>) =
                    self.actors.iter().map(|(name, seen)| (name, seen.row(name))).unzip();
                let failing = self.predicate.failing(&rows)?.into_iter().next();
                failing
                    .into_iter()
                    .flat_map(|f| f.rows)
                    .filter_map(|row| names.get(row).copied().cloned())
                    .collect()
            }
            Scope::Pairs(..) | Scope::Neighbours(..) => match self.failing.first() {
                Some((a, b)) => [Some(a), b.as_ref()].into_iter().flatten().cloned().collect(),
                None => self.actors.keys().cloned().collect(),
            },
            _ => self.culprits.iter().cloned().collect(),
        };
        Ok(all.into_iter().collect())
    }

    /// Whether the predicate reads the state before the last, and that is no other.
    fn stays(&self, seen: &CurrentState) -> bool {
        self.predicate.reads_before()
            && seen.before.as_ref().is_none_or(|before| self.same(before, &seen.now))
    }

    fn same(&self, a: &State, b: &State) -> bool {
        if std::ptr::eq(a, b) {
            return true;
        }
        if !a.is_beside(b) {
            return self.judge.columns.iter().all(|c| c.is_actor() || a.get(c) == b.get(c));
        }
        let mut slots = self.slots.borrow_mut();
        if slots.as_ref().is_none_or(|(shape, _)| !Arc::ptr_eq(shape, a.shape())) {
            let columns = self.judge.columns.iter().filter(|c| !c.is_actor());
            *slots = Some((a.shape().clone(), columns.map(|c| c.among(a.shape())).collect()));
        }
        let (a, b) = (a.numbers(), b.numbers());
        // Values of one number are equal, and so is what is inside them.
        slots.iter().flat_map(|(_, slots)| slots).flatten().all(|slot| a[*slot] == b[*slot])
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
                    if self.failure.is_some() {
                        self.culprits.push(actor.clone());
                    }
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
        let Some((actor, own)) = self.actors.get_key_value(actor) else { return Ok(()) };
        let mut changed = Vec::new();
        for (other, seen) in &self.actors {
            if other == actor || !self.are_rows(actor, other) {
                continue;
            }
            for ((a, first), (b, second)) in [((actor, own), (other, seen)), ((other, seen), (actor, own))] {
                let fails = self.judge.ask(&[Row::pair(first.told(a), second.told(b))])?.is_some();
                if fails || !self.failing.is_empty() {
                    changed.push(((a.clone(), Some(b.clone())), fails));
                }
            }
        }
        changed.into_iter().for_each(|(row, fails)| self.mark(row, fails));
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
}

fn told_of(past: &Link) -> ReportedState<'_> {
    ReportedState { actor: &past.0, state: &past.1 }
}

impl CurrentState {
    fn told<'a>(&'a self, actor: &'a str) -> ReportedState<'a> {
        ReportedState { actor, state: &self.now }
    }

    fn row<'a>(&'a self, actor: &'a str) -> Row<'a> {
        Row::last(self.told(actor), self.before.as_deref().map(|state| ReportedState { actor, state }))
    }
}
