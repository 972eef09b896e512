//! How near a predicate that holds is to failing.

use std::cell::RefCell;

use crate::Predicate;
use crate::eval::{self, TermScope};
use crate::print::column_name;
use crate::row::Row;
use crate::term::{Column, Compare, Parsed, Term};
use crate::value::Value;

/// A row or group that came near to breaking a predicate that held of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NearMiss {
    /// How far the values compared were from failing: the least distance of numbers, 0 where one more row could break it. Of an equality with
    /// a remainder: how far the number was from its divisor, 0 where the remainder is not the number itself.
    pub slack: f64,
    /// How many rows it had.
    pub rows: usize,
    /// The row or group in words; empty for the table as a whole.
    pub of: String,
    /// What the predicate reads, with the values of its first row.
    pub values: Vec<(String, String)>,
}

impl NearMiss {
    /// Whether this came nearer than another.
    #[must_use]
    pub fn is_nearer(&self, other: &NearMiss) -> bool {
        is_nearer((self.slack, self.rows), (other.slack, other.rows))
    }
}

/// Whether one slack, with a number of rows, is nearer to failing than another.
fn is_nearer((slack, rows): (f64, usize), than: (f64, usize)) -> bool {
    match slack.total_cmp(&than.0) {
        std::cmp::Ordering::Equal => rows > than.1,
        order => order.is_lt(),
    }
}

/// The nearest miss so far, and the distance from which on one is wanted.
#[derive(Clone, Debug)]
struct Watch {
    /// The names of the columns.
    names: Vec<String>,
    /// What does not come nearer than this is of no use.
    limit: Option<(f64, usize)>,
    best: Option<NearMiss>,
}

impl Watch {
    fn wants(&self, near: (f64, usize)) -> bool {
        let best = self.best.as_ref().map(|near| (near.slack, near.rows));
        best.into_iter().chain(self.limit).all(|known| is_nearer(near, known))
    }
}

/// Asks a predicate, and keeps what came nearest to failing where that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Judge<'p> {
    predicate: &'p Predicate,
    /// The columns that the predicate reads, each once.
    pub(crate) columns: Vec<Column>,
    watch: RefCell<Option<Watch>>,
}

impl<'p> Judge<'p> {
    pub(crate) fn new(predicate: &'p Predicate, columns: Vec<Column>) -> Judge<'p> {
        Judge { predicate, columns, watch: RefCell::new(None) }
    }

    /// From here on what comes near is kept.
    pub(crate) fn watch(&self) {
        let names = self.columns.iter().map(|c| column_name(&self.predicate.parsed.scope, c)).collect();
        self.watch.replace(Some(Watch { names, limit: None, best: None }));
    }

    /// From here on only what comes nearer than this is kept.
    pub(crate) fn limit(&mut self, near: &NearMiss) {
        if let Some(watch) = self.watch.get_mut() {
            watch.limit = Some((near.slack, near.rows));
        }
    }

    /// What came nearest since this was last called.
    pub(crate) fn take(&mut self) -> Option<NearMiss> {
        self.watch.get_mut().as_mut()?.best.take()
    }

    /// Asks the predicate of rows; what fails, in words.
    pub(crate) fn ask(&self, rows: &[Row<'_>]) -> Result<Option<String>, String> {
        let failure = self.predicate.failure(rows)?;
        if failure.is_none()
            && let Some(watch) = &mut *self.watch.borrow_mut()
        {
            look(&self.predicate.parsed, rows, &self.columns, watch);
        }
        Ok(failure)
    }
}

/// Looks for the row or group of these rows that is nearest to breaking the predicate; for none where it fails or says nothing.
fn look(predicate: &Parsed, rows: &[Row<'_>], columns: &[Column], watch: &mut Watch) {
    // Where values cannot be compared the predicate says so.
    let _ = eval::each_group(predicate, rows, &mut |key, _, members, scope| {
        let Some(slack) = slack(&predicate.holds, scope).filter(|s| s.is_finite()) else { return Ok(true) };
        let rows = members.len().max(1);
        if let Some(row) = scope.one.filter(|_| watch.wants((slack, rows))) {
            let values =
                watch.names.iter().zip(columns).map(|(name, c)| (name.clone(), row.get(c).to_string()));
            let values = values.collect();
            watch.best = Some(NearMiss { slack, rows, of: eval::named(predicate, key, Some(row)), values });
        }
        Ok(true)
    });
}

/// How far a term that is true is from being false; infinite where no number says so, nothing where it is not true.
fn slack(term: &Term, scope: TermScope<'_>) -> Option<f64> {
    match term {
        Term::And(two) => Some(slack(&two.0, scope)?.min(slack(&two.1, scope)?)),
        Term::Or(two) => match (slack(&two.0, scope), slack(&two.1, scope)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
        _ if eval::truth(term, scope) != Ok(Some(true)) => None,
        Term::Compare(Compare::Equal, two) => {
            Some(to_divisor(&two.0, scope).or_else(|| to_divisor(&two.1, scope)).unwrap_or(0.0))
        }
        Term::Compare(_, two) => {
            let (a, b) = (eval::value(&two.0, scope).ok()?, eval::value(&two.1, scope).ok()?);
            Some(distance(&a, &b))
        }
        Term::Not(_) | Term::IsNull(_) => Some(f64::INFINITY),
        _ => Some(0.0),
    }
}

/// How far the number in the first remainder of a term is from its divisor: below it the remainder says nothing that equality does not.
fn to_divisor(term: &Term, scope: TermScope<'_>) -> Option<f64> {
    let Term::Calculate(sign, two) = term else { return None };
    if *sign != '%' {
        return to_divisor(&two.0, scope).or_else(|| to_divisor(&two.1, scope));
    }
    let of = |term| eval::value(term, scope).ok().and_then(|value| value.number());
    Some((of(&two.1)?.abs() - of(&two.0)?.abs()).max(0.0))
}

fn distance(a: &Value<'_>, b: &Value<'_>) -> f64 {
    match (a, b) {
        // Whole numbers beyond 2^53 are not what they were as others.
        (Value::Int(a), Value::Int(b)) => a.abs_diff(*b) as f64,
        _ => a.number().zip(b.number()).map_or(f64::INFINITY, |(a, b)| (a - b).abs()),
    }
}
