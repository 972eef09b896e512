//! A predicate over all pairs of states that can exist at the same time, whatever order the events are taken in.
//!
//! Two states of different actors lie in a common consistent cut if and only if neither ends before the other begins. So pairs need no
//! lattice of cuts, whose size is exponential (R. Cooper and K. Marzullo, "Consistent detection of global predicates", 1991): for each state of
//! one actor those of another that it meets are a range, which only moves on.

use std::sync::Arc;

use demi_predicate::{Class, Predicate, ReportedState, Row, Scope, State};
use rustc_hash::FxHashSet;

use super::check::{CheckAnswer, Failure, StateHistory};
use super::units::ExecutionUnits;
use super::{CutSpec, Query};
use crate::error::LineageError;

/// Most pairs of states of two actors that are looked at; equal pairs count once.
const MOST: usize = 1_000_000;

/// A state of an actor: the first event of the handler that left it, the record that told it, and the first event of the handler that
/// ends it. A handler is one step: what it sent before it told its state was sent with that state.
#[derive(Clone, Copy)]
struct StateInterval {
    head: u32,
    begin: u32,
    end: Option<u32>,
    /// Number of the record, and of its state.
    record: usize,
    state: usize,
}

/// A pair that fails: the place of the later record in the linear extension, both events, and what fails.
type FailingPair = (u32, [u32; 2], String);

impl Query {
    /// As [`check_history`](Self::check_told), of all pairs of states that can exist at the same time; handlers are one step. A predicate about pairs
    /// fails if it fails of one. A predicate about the table of all actors, or groups of it, fails if it fails of two states alone and of the
    /// smallest cut with both: that finds every failure of predicates such as "at most one". What is about something else is judged as
    /// there.
    ///
    /// # Errors
    /// When values cannot be compared as the predicate does, or a file cannot be read.
    pub fn check_pairs(
        &self,
        told: &StateHistory,
        predicate: &Predicate,
        class: &Class,
    ) -> Result<CheckAnswer, LineageError> {
        let spans = self.spans(told, class)?;
        if !predicate.is_of_cuts() || spans.len() < 2 {
            return self.check_history(told, predicate, class);
        }
        let actors: Vec<bool> = self.index.header().actors.iter().map(|a| class.has(&a.name, 0)).collect();
        let mut answer = CheckAnswer::new(predicate, told.absent(predicate, &actors).map(str::to_owned));
        answer.of_pairs = true;
        if answer.absent.is_some() {
            return Ok(answer);
        }
        let mut first: Option<FailingPair> = None;
        for (i, one) in spans.iter().enumerate() {
            for other in &spans[i + 1..] {
                let pairs = PairSearch { query: self, told, predicate, spans: &spans };
                let (checked, found) = pairs.of(one, other)?;
                answer.checked += checked;
                answer.unfinished |= checked >= MOST as u64 && found.is_none();
                if let Some(found) = found
                    && first.as_ref().is_none_or(|first| (found.0, found.1) < (first.0, first.1))
                {
                    first = Some(found);
                }
            }
        }
        if let Some((_, events, of)) = first {
            let later = if self.index.order(events[0])? > self.index.order(events[1])? { 0 } else { 1 };
            let from = self.index.name(events[later])?.to_string();
            (answer.holds, answer.failing) = (false, 1);
            answer.failures = vec![Failure { from, until: None, of }];
            answer.first = Some(self.state_of(&CutSpec::default(), &events)?);
        }
        Ok(answer)
    }

    /// The pairs of states of different actors that can be there together, as numbers of the records that told them; handlers are one
    /// step. Of equal pairs of two actors the first is given, and of two actors no more than `most`.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn state_pairs(&self, told: &StateHistory, most: usize) -> Result<Vec<[usize; 2]>, LineageError> {
        let spans = self.spans(told, &Class::default())?;
        let mut pairs = Vec::new();
        for (i, one) in spans.iter().enumerate() {
            for other in &spans[i + 1..] {
                self.each_pair(&one.1, &other.1, most, &mut |met, span| {
                    pairs.push([met.record, span.record]);
                    Ok(true)
                })?;
            }
        }
        Ok(pairs)
    }

    /// Calls `f` with each pair of states of two actors that can be there together, once for equal ones, until it says no or there were
    /// `most`. Gives how many there were.
    fn each_pair(
        &self,
        one: &[StateInterval],
        other: &[StateInterval],
        most: usize,
        f: &mut dyn FnMut(&StateInterval, &StateInterval) -> Result<bool, LineageError>,
    ) -> Result<usize, LineageError> {
        let before = |end: Option<u32>, begin: u32| match end {
            Some(end) => self.precedes(end, begin),
            None => Ok(false),
        };
        let (mut from, mut to) = (0, 0);
        let mut seen: FxHashSet<(usize, usize)> = FxHashSet::default();
        for span in other {
            while from < one.len() && before(one[from].end, span.begin)? {
                from += 1;
            }
            to = to.max(from);
            while to < one.len() && !before(span.end, one[to].begin)? {
                to += 1;
            }
            for met in &one[from..to] {
                if seen.len() >= most || seen.insert((met.state, span.state)) && !f(met, span)? {
                    return Ok(seen.len());
                }
            }
        }
        Ok(seen.len())
    }

    /// The states of each actor that counts, in its order.
    fn spans(
        &self,
        told: &StateHistory,
        class: &Class,
    ) -> Result<Vec<(String, Vec<StateInterval>)>, LineageError> {
        let units = ExecutionUnits::new(self, &self.causes()?)?;
        let actors = &self.index.header().actors;
        let mut spans: Vec<(String, Vec<StateInterval>)> =
            actors.iter().map(|a| (a.name.clone(), Vec::new())).collect();
        let mut records: Vec<_> = told.records().iter().enumerate().collect();
        records.sort_unstable_by_key(|(_, record)| record.event);
        for (number, record) in records {
            let own = &mut spans[self.index.actor_of(record.event)].1;
            let head = units.head(units.of(record.event));
            // Of one handler the last state counts.
            own.pop_if(|last| last.head == head);
            if let Some(last) = own.last_mut() {
                last.end = Some(head);
            }
            own.push(StateInterval {
                head,
                begin: record.event,
                end: None,
                record: number,
                state: record.state,
            });
        }
        spans.retain(|(name, own)| !own.is_empty() && class.has(name, 0));
        Ok(spans)
    }
}

/// A search for pairs of states at which a predicate fails.
struct PairSearch<'a> {
    query: &'a Query,
    told: &'a StateHistory,
    predicate: &'a Predicate,
    spans: &'a [(String, Vec<StateInterval>)],
}

impl PairSearch<'_> {
    /// Looks at the pairs of two actors: how many, and the first that fails.
    fn of(
        &self,
        one: &(String, Vec<StateInterval>),
        other: &(String, Vec<StateInterval>),
    ) -> Result<(u64, Option<FailingPair>), LineageError> {
        let mut found = None;
        let seen = self.query.each_pair(&one.1, &other.1, MOST, &mut |met, span| {
            if let Some(of) = self.fails((&one.0, met), (&other.0, span))? {
                let events = [met.begin, span.begin];
                let at = self.query.index.order(events[0])?.max(self.query.index.order(events[1])?);
                found = Some((at, events, of));
            }
            Ok(found.is_none())
        })?;
        Ok((seen as u64, found))
    }

    /// What fails with two states.
    fn fails(
        &self,
        one: (&str, &StateInterval),
        other: (&str, &StateInterval),
    ) -> Result<Option<String>, LineageError> {
        let state = |span: &StateInterval| -> &Arc<State> { &self.told.states()[span.state] };
        let ask = |rows: &[Row<'_>]| self.predicate.failure(rows).map_err(LineageError::Question);
        let a = ReportedState { actor: one.0, state: state(one.1) };
        let b = ReportedState { actor: other.0, state: state(other.1) };
        if let Scope::Pairs(..) = self.predicate.scope() {
            return Ok(match ask(&[Row::pair(a, b)])? {
                Some(of) => Some(of),
                None => ask(&[Row::pair(b, a)])?,
            });
        }
        if ask(&[Row::one(a), Row::one(b)])?.is_none() {
            return Ok(None);
        }
        // The smallest cut with both.
        let mut rows = Vec::new();
        for (name, spans) in self.spans {
            let inside = |span: &StateInterval| -> Result<bool, LineageError> {
                for begin in [one.1.begin, other.1.begin] {
                    if span.begin == begin || self.query.precedes(span.head, begin)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            let (mut low, mut high) = (0, spans.len());
            while low < high {
                let middle = (low + high) / 2;
                if inside(&spans[middle])? { low = middle + 1 } else { high = middle }
            }
            if let Some(last) = low.checked_sub(1) {
                rows.push(Row::one(ReportedState { actor: name, state: state(&spans[last]) }));
            }
        }
        ask(&rows)
    }
}
