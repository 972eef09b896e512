//! How near a predicate that holds is to failing.

use std::cell::RefCell;

use crate::Predicate;
use crate::eval::{self, Scope};
use crate::print::column_name;
use crate::row::Row;
use crate::term::{Column, Compare, Parsed, Term};
use crate::value::Value;

/// A row or group that came near to breaking a predicate that held of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// How far the values compared were from failing: the least distance of numbers, 0 where one more row could break it.
    pub slack: f64,
    /// How many rows it had.
    pub rows: usize,
    /// The row or group in words; empty for the table as a whole.
    pub of: String,
    /// What the predicate reads, with the values of its first row.
    pub values: Vec<(String, String)>,
}

impl Near {
    /// Whether this came nearer than another.
    #[must_use]
    pub fn is_nearer(&self, other: &Near) -> bool {
        match self.slack.total_cmp(&other.slack) {
            std::cmp::Ordering::Equal => self.rows > other.rows,
            order => order.is_lt(),
        }
    }
}

/// Asks a predicate, and keeps what came nearest to failing where that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Judge<'p> {
    predicate: &'p Predicate,
    /// The columns that the predicate reads, each once.
    pub(crate) columns: Vec<Column>,
    nearest: RefCell<Option<Option<Near>>>,
}

impl<'p> Judge<'p> {
    pub(crate) fn new(predicate: &'p Predicate, columns: Vec<Column>) -> Judge<'p> {
        Judge { predicate, columns, nearest: RefCell::new(None) }
    }

    /// From here on what comes near is kept.
    pub(crate) fn watch(&self) {
        self.nearest.replace(Some(None));
    }

    /// What came nearest since this was last called.
    pub(crate) fn take(&mut self) -> Option<Near> {
        self.nearest.get_mut().as_mut()?.take()
    }

    /// Asks the predicate of rows; what fails, in words.
    pub(crate) fn ask(&self, rows: &[Row<'_>]) -> Result<Option<String>, String> {
        let failure = self.predicate.failure(rows)?;
        if failure.is_none()
            && let Some(known) = &mut *self.nearest.borrow_mut()
            && let Some(near) = nearest(&self.predicate.parsed, rows, &self.columns)
            && known.as_ref().is_none_or(|known| near.is_nearer(known))
        {
            *known = Some(near);
        }
        Ok(failure)
    }
}

/// The row or group of these rows that is nearest to breaking the predicate; nothing where it fails or says nothing.
fn nearest(predicate: &Parsed, rows: &[Row<'_>], columns: &[Column]) -> Option<Near> {
    let mut best: Option<Near> = None;
    eval::each_group(predicate, rows, &mut |key, _, members, scope| {
        let Some(slack) = slack(&predicate.holds, scope).filter(|s| s.is_finite()) else { return Ok(true) };
        let rows = members.len().max(1);
        let nearer = best
            .as_ref()
            .is_none_or(|b| slack < b.slack || slack.total_cmp(&b.slack).is_eq() && rows > b.rows);
        if let Some(row) = scope.one.filter(|_| nearer) {
            let value = |c: &Column| (column_name(&predicate.scope, c), row.get(c).to_string());
            let values = columns.iter().map(value).collect();
            best = Some(Near { slack, rows, of: eval::named(predicate, key, Some(row)), values });
        }
        Ok(true)
    })
    .ok()?;
    best
}

/// How far a term that is true is from being false; infinite where no number says so, nothing where it is not true.
fn slack(term: &Term, scope: Scope<'_>) -> Option<f64> {
    match term {
        Term::And(two) => Some(slack(&two.0, scope)?.min(slack(&two.1, scope)?)),
        Term::Or(two) => match (slack(&two.0, scope), slack(&two.1, scope)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
        _ if eval::truth(term, scope) != Ok(Some(true)) => None,
        Term::Compare(Compare::Equal, _) => Some(0.0),
        Term::Compare(_, two) => {
            let (a, b) = (eval::value(&two.0, scope).ok()?, eval::value(&two.1, scope).ok()?);
            Some(distance(&a, &b))
        }
        Term::Not(_) | Term::IsNull(_) => Some(f64::INFINITY),
        _ => Some(0.0),
    }
}

fn distance(a: &Value<'_>, b: &Value<'_>) -> f64 {
    match (a, b) {
        // Whole numbers beyond 2^53 are not what they were as others.
        (Value::Int(a), Value::Int(b)) => a.abs_diff(*b) as f64,
        _ => a.number().zip(b.number()).map_or(f64::INFINITY, |(a, b)| (a - b).abs()),
    }
}
