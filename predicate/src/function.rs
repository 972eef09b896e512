//! The functions and aggregates, by name.

use demi_common::hint::did_you_mean;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned,
};

use crate::error::Wrong;
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

/// Reads the call of a function or aggregate; `term` reads what stands in it.
pub(crate) fn call(
    function: &Function,
    mut term: impl FnMut(&Expr) -> Result<Term, Wrong>,
) -> Result<Term, Wrong> {
    let name = function.name.to_string().to_lowercase();
    let wrong = |reason: String| Wrong { reason, at: Some(function.name.span().start) };
    let called = CALLS.iter().find(|(word, ..)| *word == name);
    let summed = SUMS.iter().find(|(word, _)| *word == name);
    if called.is_none() && summed.is_none() {
        let words: Vec<&str> = CALLS.iter().map(|c| c.0).chain(SUMS.iter().map(|s| s.0)).collect();
        let hint = did_you_mean(&name, words.iter().copied());
        return Err(wrong(format!("there is no '{name}'{hint}; there are {}", words.join(", "))));
    }
    let expected = match called.map_or(1, |c| c.2) {
        1 => "one argument",
        _ => "two arguments",
    };
    let FunctionArguments::List(list) = &function.args else {
        return Err(wrong(format!("{name} takes {expected} in brackets")));
    };
    let mut arguments = Vec::new();
    let mut rows = false;
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.push(term(expr)?),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" => rows = true,
            _ => return Err(wrong(format!("{name} takes {expected}"))),
        }
    }
    if arguments.len() + usize::from(rows) != called.map_or(1, |c| c.2) {
        return Err(wrong(format!("{name} takes {expected}")));
    }
    if function.over.is_some() || !function.within_group.is_empty() || !list.clauses.is_empty() {
        return Err(wrong(format!("{name} takes no OVER and no order")));
    }
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let filter = function.filter.as_ref().map(|f| term(f)).transpose()?;
    if let Some((_, call, _)) = called {
        if distinct || filter.is_some() {
            return Err(wrong(format!("{name} is about one row: it takes no DISTINCT and no FILTER")));
        }
        return Ok(Term::Call(*call, arguments));
    }
    let Some(&(_, sum)) = summed else { return Err(wrong(format!("there is no '{name}'"))) };
    if arguments.iter().chain(&filter).any(Term::has_aggregate) {
        return Err(wrong(format!("an aggregate stands inside {name}")));
    }
    Ok(Term::Aggregate(Box::new(Aggregate { sum, distinct, of: arguments.pop(), filter })))
}
