//! The functions and aggregates, by name.

use demi_common::hint::did_you_mean;

use crate::term::{Aggregate, Call, Sum, Term};

/// Functions: name, meaning, how many arguments. The first name of a meaning is printed.
pub(crate) const CALLS: [(&str, Call, usize); 8] = [
    ("length", Call::Length, 1),
    ("len", Call::Length, 1),
    ("cardinality", Call::Length, 1),
    ("last", Call::Last, 1),
    ("head", Call::Head, 2),
    ("item", Call::Item, 2),
    ("starts_with", Call::StartsWith, 2),
    ("contains", Call::Contains, 2),
];

/// Aggregates: name and meaning. The first name of a meaning is printed.
pub(crate) const SUMS: [(&str, Sum); 13] = [
    ("count", Sum::Count),
    ("sum", Sum::Total),
    ("avg", Sum::Mean),
    ("min", Sum::Least),
    ("max", Sum::Most),
    ("every", Sum::Every),
    ("bool_and", Sum::Every),
    ("some", Sum::Some),
    ("any", Sum::Some),
    ("bool_or", Sum::Some),
    ("prefixes", Sum::Prefixes),
    ("aligned", Sum::Aligned),
    ("disjoint", Sum::Disjoint),
];

/// A call as it stands in the text.
#[derive(Default)]
pub(crate) struct CallSyntax {
    /// What stands in the brackets.
    pub(crate) arguments: Vec<Term>,
    /// Whether that is `*`, all rows.
    pub(crate) rows: bool,
    pub(crate) distinct: bool,
    /// What stands after FILTER.
    pub(crate) filter: Option<Term>,
}

impl CallSyntax {
    /// The function or aggregate of a name, called in this way.
    ///
    /// # Errors
    /// When there is none of the name, or it is called in another way.
    // Together with the reader it is a function over which LLVM's elimination of conditions takes minutes.
    #[inline(never)]
    pub(crate) fn term(mut self, name: &str) -> Result<Term, String> {
        let name = name.to_lowercase();
        let called = CALLS.iter().find(|(word, ..)| *word == name);
        let Some(expected) = called.map(|c| c.2).or_else(|| sum(&name).map(|_| 1)) else {
            let words: Vec<&str> = CALLS.iter().map(|c| c.0).chain(SUMS.iter().map(|s| s.0)).collect();
            let hint = did_you_mean(&name, words.iter().copied());
            return Err(format!("there is no '{name}'{hint}; there are {}", words.join(", ")));
        };
        let given = self.arguments.len() + usize::from(self.rows);
        if given != expected || (self.rows && name != "count") {
            let count = if expected == 1 { "one argument" } else { "two arguments" };
            return Err(format!("{name} takes {count}"));
        }
        if let Some((_, call, _)) = called {
            if self.distinct || self.filter.is_some() {
                return Err(format!("{name} is about one row: it takes no DISTINCT and no FILTER"));
            }
            return Ok(Term::Call(*call, self.arguments));
        }
        let Some(sum) = sum(&name) else { return Err(format!("there is no '{name}'")) };
        if self.arguments.iter().chain(&self.filter).any(Term::has_aggregate) {
            return Err(format!("an aggregate stands inside {name}"));
        }
        let (distinct, of, filter) = (self.distinct, self.arguments.pop(), self.filter);
        Ok(Term::Aggregate(Box::new(Aggregate { sum, distinct, of, filter })))
    }
}

fn sum(name: &str) -> Option<Sum> {
    SUMS.iter().find(|(word, _)| *word == name).map(|(_, sum)| *sum)
}
