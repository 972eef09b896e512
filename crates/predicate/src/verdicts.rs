//! What a predicate says of each of its rows and groups, while states and messages come in.
//!
//! A [`Checker`](crate::Checker) says whether a predicate fails, which is what a search asks. Here each row or group is judged for
//! itself, which is what people want to be told: one that fails hides no other, and values that do not compare leave their own row or
//! group without a verdict, and that only as long as they are there.

mod history;
mod messages;
mod saved;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::saved::SavedVerdicts;
use crate::Predicate;
use crate::eval::{self, Verdict};
use crate::row::{Delivered, Link, ReportedState, Row};
use crate::scope::{Scope, Visibility};
use crate::state::State;
use crate::term::{Column, Term};

/// A row or group of which a predicate does not hold, or of which it says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The row or group in words; empty for the table as a whole.
    pub of: String,
    /// Its actors, in the order of their names.
    pub affected: Vec<Arc<str>>,
    /// Why nothing is said of it; absent where the predicate does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
    /// How often in a row it was looked at and failed, as whoever asks counts it.
    pub looks: u64,
    /// Whether somebody was told.
    pub told: bool,
}

/// The key of a finding: one actor, or two, of a row that stands for itself; a group in words; a row that cannot be said to be of a
/// group, with nothing beside it.
type Key = (Arc<str>, Option<Arc<str>>);

/// The last state of an actor, and the one before in the same incarnation.
#[derive(Clone, Debug)]
struct ActorHistory {
    incarnation: u32,
    /// Whether the variables were the same before, in the same incarnation.
    still: bool,
    now: Arc<State>,
    before: Option<Arc<State>>,
}

/// Rows that count together.
#[derive(Clone, Debug)]
struct Group<T> {
    rows: Vec<T>,
    /// When something was added to it last, counted in looks.
    touched: u64,
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Group { rows: Vec::new(), touched: 0 }
    }
}

/// A predicate with what it says of each row and group so far.
#[derive(Clone, Debug)]
pub struct Verdicts<'p> {
    predicate: &'p Predicate,
    /// What it reads, each column once.
    columns: Vec<Column>,
    visibility: Visibility,
    /// By side of a pair: the conditions that it must meet whatever the other is.
    sided: [Vec<&'p Term>; 2],
    /// Most findings that are kept.
    most: usize,
    actors: BTreeMap<Arc<str>, ActorHistory>,
    /// Actors whose rows are to be judged at the next look.
    unseen: BTreeSet<Arc<str>>,
    /// Whether groups are to be judged at the next look, because an actor is gone.
    stale: bool,
    /// Actors that exchanged a message, each pair in both orders.
    met: BTreeSet<(Arc<str>, Arc<str>)>,
    /// Projections of rows of the past, with how many states of their group stood before them when they were last told.
    taken: HashMap<String, usize>,
    /// By key of the group: the states of the past with it.
    past: HashMap<String, Group<Link>>,
    /// By key of the group: the messages, or last messages of chains, with it.
    messages: HashMap<String, Group<Delivered>>,
    /// How many rows the groups have in all, and how often something was added.
    kept: usize,
    added: u64,
    found: BTreeMap<Key, Finding>,
    /// Those that were found to fail since somebody asked.
    fresh: BTreeSet<Key>,
    /// Findings for which there was no room.
    beyond: u64,
}

impl Predicate {
    /// The predicate before anything was told, with room for so many findings.
    #[must_use]
    pub fn verdicts(&self, most: usize) -> Verdicts<'_> {
        let mut columns: Vec<Column> = self.parsed.columns().into_iter().cloned().collect();
        columns.sort_unstable_by(|a, b| (a.side, &a.path).cmp(&(b.side, &b.path)));
        columns.dedup();
        Verdicts {
            predicate: self,
            columns,
            visibility: self.visibility(),
            sided: [self.parsed.of_side(0), self.parsed.of_side(1)],
            most,
            actors: BTreeMap::new(),
            unseen: BTreeSet::new(),
            stale: false,
            met: BTreeSet::new(),
            taken: HashMap::new(),
            past: HashMap::new(),
            messages: HashMap::new(),
            kept: 0,
            added: 0,
            found: BTreeMap::new(),
            fresh: BTreeSet::new(),
            beyond: 0,
        }
    }
}

impl Verdicts<'_> {
    /// Takes the next state of an actor, and looks at what it changes.
    pub fn tell(&mut self, actor: &str, incarnation: u32, state: &Arc<State>) {
        self.pass_over(actor, incarnation, state);
        self.look();
    }

    /// Takes the next state without a look at what it changes; the next look is at it too. A history is looked at all the same.
    pub fn pass_over(&mut self, actor: &str, incarnation: u32, state: &Arc<State>) {
        let noted = self.note(actor, incarnation, state);
        // What an actor tells again may be judged now, or be in a group that has failed since.
        let again =
            || self.actors.get_key_value(actor).filter(|_| self.asks_again()).map(|(name, _)| name.clone());
        let Some(name) = noted.or_else(again) else { return };
        match self.predicate.scope() {
            Scope::Ever if self.predicate.is_of_groups() => self.remember(&name, state),
            Scope::Ever => self.judge_state(&name, state),
            Scope::EverPairs(..) => self.remember_pairs(&name, state),
            Scope::Messages(_) | Scope::Chain => {}
            Scope::Actors | Scope::Pairs(..) | Scope::Neighbours(..) => {
                self.unseen.insert(name);
            }
        }
    }

    /// Whether it must be told a state even if no variable of it changed.
    #[must_use]
    pub fn takes_each(&self) -> bool {
        self.visibility != Visibility::Now || self.asks_again()
    }

    /// Whether what was told before has to be looked at when it is told again.
    fn asks_again(&self) -> bool {
        *self.predicate.scope() == Scope::Ever && !self.found.is_empty()
    }

    /// Whether it must be told the next state of any actor, because something that was judged has changed without one.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// All rows and groups of which the predicate does not hold, or says nothing.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.found.values()
    }

    /// The same, to note that somebody was told.
    pub fn findings_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.found.values_mut()
    }

    /// Calls `take` with each row or group that was found to fail since this was last called, also with those that failed before. What
    /// it does not take is looked at again with the next state, if that can make it another.
    pub fn each_fresh(&mut self, mut take: impl FnMut(&mut Finding) -> bool) {
        for key in std::mem::take(&mut self.fresh) {
            let Some(finding) = self.found.get_mut(&key).filter(|finding| finding.unjudged.is_none()) else {
                continue;
            };
            if take(finding) {
                continue;
            }
            if self.is_of_last_states() {
                let actors = &self.actors;
                let known = self.found.get(&key).into_iter().flat_map(|finding| &finding.affected);
                self.unseen.extend(known.filter(|name| actors.contains_key(*name)).cloned());
                self.stale = true;
            } else {
                self.fresh.insert(key);
            }
        }
    }

    /// Whether something was found to fail since somebody asked.
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Whether what failed once has failed for good.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        let scope = self.predicate.scope();
        scope.is_history() || scope.is_of_messages() && self.predicate.is_of_groups()
    }

    /// How many findings there was no room for.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Takes the next state; the actor's name if it changes what the predicate sees.
    fn note(&mut self, actor: &str, incarnation: u32, state: &Arc<State>) -> Option<Arc<str>> {
        // A state that leaves the variables as they were changes nothing, unless it is compared with what was told before it.
        let known = self.actors.get(actor);
        let goes_on = known.is_some_and(|seen| seen.incarnation == incarnation);
        let same = known.is_some_and(|seen| self.same(&seen.now, state));
        let still = same && goes_on;
        let skip = match self.visibility {
            Visibility::Now => same,
            Visibility::Step => still && known.is_some_and(|seen| seen.still),
            Visibility::Each => false,
        };
        if let Some(seen) = self.actors.get_mut(actor) {
            if skip {
                seen.incarnation = incarnation;
                return None;
            }
            let before = std::mem::replace(&mut seen.now, state.clone());
            (seen.incarnation, seen.still) = (incarnation, still);
            seen.before = goes_on.then_some(before);
            return self.actors.get_key_value(actor).map(|(name, _)| name.clone());
        }
        let name: Arc<str> = Arc::from(actor);
        self.actors
            .insert(name.clone(), ActorHistory { incarnation, still, now: state.clone(), before: None });
        Some(name)
    }

    fn same(&self, a: &Arc<State>, b: &Arc<State>) -> bool {
        Arc::ptr_eq(a, b) || self.columns.iter().all(|c| c.is_actor() || a.get(c) == b.get(c))
    }

    /// Judges what has changed since the last look.
    fn look(&mut self) {
        if !self.stale && self.unseen.is_empty() {
            return;
        }
        let names = std::mem::take(&mut self.unseen);
        self.stale = false;
        if self.predicate.is_of_groups() {
            return self.judge_groups();
        }
        match self.predicate.scope() {
            Scope::Actors => names.iter().for_each(|name| self.judge_actor(name)),
            Scope::Pairs(..) | Scope::Neighbours(..) => names.iter().for_each(|name| self.judge_pairs(name)),
            Scope::Ever | Scope::EverPairs(..) | Scope::Messages(_) | Scope::Chain => {}
        }
    }

    fn judge_actor(&mut self, name: &Arc<str>) {
        let Some(seen) = self.actors.get(name) else { return };
        let row = seen.row(name);
        let says = eval::verdict_of_row(&self.predicate.parsed, row).unwrap_or(Verdict::Holds);
        let of = if says == Verdict::Holds { String::new() } else { row.named(self.predicate.scope()) };
        self.put((name.clone(), None), of, vec![name.clone()], says);
    }

    /// The pairs of an actor with all others, in both orders.
    fn judge_pairs(&mut self, name: &Arc<str>) {
        let Some(own) = self.actors.get(name) else { return };
        let mut judged = Vec::new();
        for (other, seen) in
            self.actors.iter().filter(|(other, _)| *other != name && self.are_rows(name, other))
        {
            for ((a, first), (b, second)) in [((name, own), (other, seen)), ((other, seen), (name, own))] {
                let row = Row::pair(first.told(a), second.told(b));
                let says = eval::verdict_of_row(&self.predicate.parsed, row).unwrap_or(Verdict::Holds);
                let of =
                    if says == Verdict::Holds { String::new() } else { row.named(self.predicate.scope()) };
                if says != Verdict::Holds || !self.found.is_empty() {
                    judged.push(((a.clone(), Some(b.clone())), of, says));
                }
            }
        }
        for ((a, b), of, says) in judged {
            let affected = std::iter::once(&a).chain(&b).cloned().collect();
            self.put((a, b), of, affected, says);
        }
    }

    /// All rows, which count together.
    fn judge_groups(&mut self) {
        let (mut names, mut rows) = (Vec::new(), Vec::new());
        match self.predicate.scope() {
            Scope::Pairs(..) | Scope::Neighbours(..) => {
                for (a, first) in &self.actors {
                    for (b, second) in self.actors.iter().filter(|(b, _)| *b != a && self.are_rows(a, b)) {
                        names.push([Some(a), Some(b)]);
                        rows.push(Row::pair(first.told(a), second.told(b)));
                    }
                }
            }
            _ => {
                for (a, seen) in &self.actors {
                    names.push([Some(a), None]);
                    rows.push(seen.row(a));
                }
            }
        }
        let judged = eval::judge_groups(&self.predicate.parsed, &rows);
        let judged = judged.into_iter().map(|judged| {
            let affected = judged.rows.iter().filter_map(|row| names.get(*row)).flatten().flatten();
            (judged.of, affected.copied().cloned().collect(), judged.says)
        });
        let judged: Vec<(String, Vec<Arc<str>>, Verdict)> = judged.collect();
        // A group that is not among them holds, or is no more.
        let mut before = std::mem::take(&mut self.found);
        for (of, affected, says) in judged {
            let key: Key = (Arc::from(of.as_str()), None);
            if let Some(known) = before.remove(&key) {
                self.found.insert(key.clone(), known);
            }
            self.put(key, of, affected, says);
        }
    }

    /// Whether two different actors are a row.
    fn are_rows(&self, a: &Arc<str>, b: &Arc<str>) -> bool {
        match self.predicate.scope() {
            Scope::Neighbours(..) => self.met.contains(&(a.clone(), b.clone())),
            _ => true,
        }
    }

    /// Takes in what is said of a row or group.
    fn put(&mut self, key: Key, of: String, mut affected: Vec<Arc<str>>, says: Verdict) {
        let unjudged = match says {
            Verdict::Holds => {
                self.found.remove(&key);
                return;
            }
            Verdict::Fails => None,
            Verdict::Unjudged(reason) => Some(reason),
        };
        affected.sort_unstable();
        affected.dedup();
        let fails = unjudged.is_none();
        let full = self.found.len() >= self.most;
        match self.found.get_mut(&key) {
            Some(known) if known.unjudged.is_none() == fails => {
                (known.of, known.affected, known.unjudged) = (of, affected, unjudged);
            }
            Some(known) => *known = Finding { of, affected, unjudged, looks: 0, told: false },
            None if full => {
                self.beyond += 1;
                return;
            }
            None => {
                self.found.insert(key.clone(), Finding { of, affected, unjudged, looks: 0, told: false });
            }
        }
        if fails {
            self.fresh.insert(key);
        }
    }

    /// Whether a row or group has failed. Of a history that is for good.
    fn has_failed(&self, key: &Key) -> bool {
        self.found.get(key).is_some_and(|finding| finding.unjudged.is_none())
    }
}

impl ActorHistory {
    fn told<'a>(&'a self, actor: &'a str) -> ReportedState<'a> {
        ReportedState { actor, state: &self.now }
    }

    fn row<'a>(&'a self, actor: &'a str) -> Row<'a> {
        Row::last(self.told(actor), self.before.as_deref().map(|state| ReportedState { actor, state }))
    }
}
