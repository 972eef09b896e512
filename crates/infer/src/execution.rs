//! What is inferred from: executions, as the states that their actors told.

use std::sync::Arc;

use demi_predicate::{Delivered, Predicate, ReportedState, Row, State};
use glob::Pattern;

/// A state that an actor told.
#[derive(Clone, Debug)]
pub struct Record {
    /// The actor's name.
    pub actor: Arc<str>,
    /// Its incarnation.
    pub incarnation: u32,
    /// The state.
    pub state: Arc<State>,
}

/// An execution: its states in an order in which each beginning is a consistent cut.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// What people call it.
    pub name: String,
    /// The states.
    pub records: Vec<Record>,
    /// The messages that were delivered, with the states of those that they concerned, in an order like that of the states.
    pub messages: Vec<Arc<Delivered>>,
    /// For each state the number of the moment with which it is there; states of one moment stand together. Empty where each is a moment
    /// of its own.
    pub moments: Vec<u32>,
    /// Pairs of states of different actors that can be there together, whatever order the events are taken in, as numbers of records.
    /// Empty where only moments are looked at.
    pub pairs: Vec<[usize; 2]>,
}

/// Whether a message, or the chain that ends with it, is between actors of these classes, one a place.
pub(crate) fn is_between(delivered: &Delivered, places: &[Pattern]) -> bool {
    // The first place is that of the last link.
    let links = delivered.links.get(..places.len());
    links.is_some_and(|l| l.iter().rev().zip(places).all(|(link, place)| place.matches(&link.0)))
}

impl Execution {
    /// The same execution, of the actors of a class alone.
    pub(crate) fn among(&self, class: &Pattern) -> Execution {
        let is_among = |record: &&Record| class.matches(&record.actor);
        let moments = self.moments.iter().zip(&self.records).filter(|(_, record)| is_among(record));
        let mut among = 0;
        let mut place = |record: &Record| {
            let yes = class.matches(&record.actor);
            among += usize::from(yes);
            yes.then(|| among - 1)
        };
        let places: Vec<Option<usize>> = match self.pairs.is_empty() {
            true => Vec::new(),
            false => self.records.iter().map(&mut place).collect(),
        };
        let pair = |pair: &[usize; 2]| {
            let at = |record: usize| places.get(record).copied().flatten();
            Some([at(pair[0])?, at(pair[1])?])
        };
        Execution {
            pairs: self.pairs.iter().filter_map(pair).collect(),
            name: self.name.clone(),
            moments: moments.map(|(moment, _)| *moment).collect(),
            records: self.records.iter().filter(is_among).cloned().collect(),
            messages: Vec::new(),
        }
    }

    /// The moment of a state.
    pub(crate) fn moment(&self, record: usize) -> u32 {
        self.moments.get(record).copied().unwrap_or(record as u32)
    }

    /// Whether a state is the last of its moment.
    pub(crate) fn ends_moment(&self, record: usize) -> bool {
        record + 1 >= self.records.len() || self.moment(record) != self.moment(record + 1)
    }

    /// Whether a predicate about messages or chains holds of all between actors of these classes, one a place; not where its values cannot
    /// be compared.
    pub(crate) fn fits_messages(&self, predicate: &Predicate, places: &[Pattern]) -> bool {
        let mut checker = predicate.checker();
        let mut among = self.messages.iter().filter(|delivered| is_between(delivered, places));
        among.all(|delivered| matches!(checker.deliver(delivered), Ok(None)))
    }

    /// Whether a predicate holds of each pair of states alone; not where its values cannot be compared. That is exact for predicates that
    /// fail of more states if they fail of two.
    pub(crate) fn fits_pairs(&self, predicate: &Predicate) -> bool {
        let row = |at: usize| {
            let record = &self.records[at];
            Row::one(ReportedState { actor: &record.actor, state: &record.state })
        };
        self.pairs.iter().all(|[one, other]| matches!(predicate.failure(&[row(*one), row(*other)]), Ok(None)))
    }

    /// Whether a predicate holds throughout; not where its values cannot be compared.
    pub(crate) fn fits(&self, predicate: &Predicate) -> bool {
        let mut checker = predicate.checker();
        // What is about one actor's steps is judged at each.
        let steps = predicate.reads_before();
        let mut told = self.records.iter().enumerate();
        told.all(|(i, r)| match steps || self.ends_moment(i) {
            true => matches!(checker.tell(&r.actor, r.incarnation, &r.state), Ok(None)),
            false => checker.pass_over(&r.actor, r.incarnation, &r.state).is_ok(),
        })
    }
}
