//! Terms: what a predicate consists of once it is read.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::instance::{meant, stands_for};
use crate::scope::Scope;
use crate::value::Value;

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// The operation of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    Count,
    Total,
    Mean,
    Least,
    Most,
    Every,
    Some,
    /// Of any two lists one begins the other.
    Prefixes,
    /// Where two lists share an element, they are equal up to it.
    Aligned,
    /// No element stands in two lists.
    Disjoint,
}

/// A function of a list, a text or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Length,
    Last,
    Head,
    Item,
    StartsWith,
    Contains,
}

/// A variable of one side of a row, and what is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Which state of the row, as its scope counts them.
    pub(crate) side: usize,
    /// The variable, and the names inside it; never empty.
    pub(crate) path: Vec<String>,
    /// Where the variable stood among the others when it was last looked up.
    place: Place,
}

/// A guess that makes looking up faster, and is no part of what a column is.
#[derive(Debug, Default)]
struct Place(AtomicUsize);

impl Clone for Place {
    fn clone(&self) -> Place {
        Place(AtomicUsize::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

impl Column {
    pub(crate) fn new(side: usize, path: Vec<String>) -> Column {
        Column { side, path, place: Place::default() }
    }

    /// Where the variable stands among names that are in order.
    pub(crate) fn among<T: AsRef<str>>(&self, names: &[T]) -> Option<usize> {
        let name = self.path[0].as_str();
        // States of one shape come one after the other.
        let guess = self.place.0.load(Ordering::Relaxed);
        if names.get(guess).is_some_and(|known| known.as_ref() == name) {
            return Some(guess);
        }
        let known = names.binary_search_by(|known| known.as_ref().cmp(name)).ok();
        let found = match known {
            None if name.contains('*') => {
                let meant = meant(name, names.iter().map(AsRef::as_ref))?;
                // Whether another fits as well must be asked of each state anew.
                return names.iter().position(|known| known.as_ref() == meant);
            }
            known => known?,
        };
        self.place.0.store(found, Ordering::Relaxed);
        Some(found)
    }

    /// Whether it may stand for a variable.
    pub(crate) fn may_be(&self, variable: &str) -> bool {
        stands_for(&self.path[0], variable)
    }

    /// Whether this is the name of the actor.
    pub(crate) fn is_actor(&self) -> bool {
        self.path.len() == 1 && self.path[0] == ACTOR
    }
}

/// The column with the actor's name.
pub(crate) const ACTOR: &str = "actor";

/// A term.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    Literal(Value<'static>),
    Column(Column),
    Compare(Compare, Box<(Term, Term)>),
    Calculate(char, Box<(Term, Term)>),
    And(Box<(Term, Term)>),
    Or(Box<(Term, Term)>),
    Not(Box<Term>),
    IsNull(Box<Term>),
    OneOf(Box<Term>, Vec<Term>),
    /// A function of one or two arguments.
    Call(Call, Vec<Term>),
    Aggregate(Box<Aggregate>),
}

/// An aggregate: of what, and of which rows. Without a value it is of the rows themselves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) sum: Sum,
    pub(crate) distinct: bool,
    pub(crate) of: Option<Term>,
    pub(crate) filter: Option<Term>,
}

/// A predicate taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    /// What the rows are.
    pub(crate) scope: Scope,
    /// Which rows count.
    pub(crate) filter: Option<Term>,
    /// What rows of one group have in common; absent where each row is for itself.
    pub(crate) groups: Option<Vec<Term>>,
    /// What is to hold.
    pub(crate) holds: Term,
}

impl Parsed {
    /// Calls `f` with all its terms.
    pub(crate) fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Term)) {
        let terms = self.filter.iter().chain(self.groups.iter().flatten()).chain([&self.holds]);
        terms.for_each(|t| t.visit(f));
    }

    /// The conditions of WHERE that read one side of the rows alone.
    pub(crate) fn of_side(&self, side: usize) -> Vec<&Term> {
        fn split<'a>(term: &'a Term, all: &mut Vec<&'a Term>) {
            match term {
                Term::And(two) => [&two.0, &two.1].into_iter().for_each(|term| split(term, all)),
                _ => all.push(term),
            }
        }
        let mut all = Vec::new();
        self.filter.iter().for_each(|filter| split(filter, &mut all));
        all.retain(|term| {
            let (mut own, mut others) = (false, false);
            term.visit(&mut |inner| {
                if let Term::Column(column) = inner {
                    own |= column.side == side;
                    others |= column.side != side;
                }
            });
            own && !others
        });
        all
    }

    /// Whether all rows are one group.
    pub(crate) fn is_of_the_whole(&self) -> bool {
        self.groups.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether it matters how often a row comes that is like another.
    pub(crate) fn counts_rows(&self) -> bool {
        let mut found = false;
        self.visit(&mut |term| {
            if let Term::Aggregate(a) = term {
                found |= matches!(a.sum, Sum::Count | Sum::Total | Sum::Mean | Sum::Disjoint) && !a.distinct;
            }
        });
        found
    }

    /// The columns that it reads, each as often as it does.
    pub(crate) fn columns(&self) -> Vec<&Column> {
        let mut columns = Vec::new();
        self.visit(&mut |term| {
            if let Term::Column(column) = term {
                columns.push(column);
            }
        });
        columns
    }

    /// The names of variables in some of the columns.
    pub(crate) fn variables(&self, among: &dyn Fn(&Column) -> bool) -> BTreeSet<&str> {
        let columns = self.columns().into_iter().filter(|c| among(c));
        columns.map(|c| c.path[0].as_str()).filter(|name| *name != ACTOR).collect()
    }
}

impl Term {
    /// The terms that it is made of.
    fn inner(&self) -> Vec<&Term> {
        match self {
            Term::Literal(_) | Term::Column(_) => Vec::new(),
            Term::Compare(_, two) | Term::Calculate(_, two) | Term::And(two) | Term::Or(two) => {
                vec![&two.0, &two.1]
            }
            Term::Not(one) | Term::IsNull(one) => vec![one],
            Term::OneOf(one, others) => std::iter::once(&**one).chain(others).collect(),
            Term::Call(_, arguments) => arguments.iter().collect(),
            Term::Aggregate(a) => a.of.iter().chain(&a.filter).collect(),
        }
    }

    /// Calls `f` with the term and all in it.
    pub(crate) fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Term)) {
        f(self);
        self.inner().into_iter().for_each(|t| t.visit(f));
    }

    pub(crate) fn has_aggregate(&self) -> bool {
        let mut found = false;
        self.visit(&mut |t| found |= matches!(t, Term::Aggregate(_)));
        found
    }

    /// A column outside all aggregates that is none of `groups`.
    pub(crate) fn loose<'a>(&'a self, groups: &[Term]) -> Option<&'a Column> {
        if groups.contains(self) {
            return None;
        }
        match self {
            Term::Column(column) => Some(column),
            Term::Aggregate(_) => None,
            _ => self.inner().into_iter().find_map(|t| t.loose(groups)),
        }
    }
}
