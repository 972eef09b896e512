//! What can be said of lists. Elements are compared as JSON values.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::term::Sum;
use crate::value::Value;

/// The elements of a list; nothing of another value.
fn elements<'v>(value: &'v Value<'_>) -> Option<&'v [Json]> {
    match value {
        Value::Json(json) => json.as_array().map(Vec::as_slice),
        _ => None,
    }
}

/// One element of a list; unknown where none is picked.
fn element<'a>(list: Value<'a>, pick: impl FnOnce(&[Json]) -> Option<&Json>) -> Value<'a> {
    match list {
        Value::Json(Cow::Borrowed(Json::Array(all))) => pick(all).map_or(Value::Null, Value::from),
        list => elements(&list).and_then(pick).map_or(Value::Null, |found| Value::from(found).owned()),
    }
}

/// The value as an element of a list is written.
fn json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(n) => Json::from(*n),
        Value::Float(n) => Json::from(*n),
        Value::Text(text) => Json::String(text.clone().into_owned()),
        Value::Json(json) => json.clone().into_owned(),
    }
}

/// The last element of a list; unknown where there is none.
pub(crate) fn last(list: Value<'_>) -> Value<'_> {
    element(list, <[Json]>::last)
}

/// The first `n` elements of a list: all of a shorter one, none where `n` is negative; unknown for another value.
///
/// # Errors
/// When `n` is no whole number.
pub(crate) fn head(list: &Value<'_>, n: &Value<'_>) -> Result<Value<'static>, String> {
    let (Some(all), Some(n)) = (elements(list), whole("head", n)?) else { return Ok(Value::Null) };
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX).min(all.len());
    Ok(Value::Json(Cow::Owned(Json::Array(all[..n].to_vec()))))
}

/// The element of a list with the number `n`, from 0; unknown where there is none.
///
/// # Errors
/// When `n` is no whole number.
pub(crate) fn item<'a>(list: Value<'a>, n: &Value<'_>) -> Result<Value<'a>, String> {
    if elements(&list).is_none() {
        return Ok(Value::Null);
    }
    let n = whole("item", n)?.and_then(|n| usize::try_from(n).ok());
    Ok(element(list, |all| all.get(n?)))
}

fn whole(function: &str, n: &Value<'_>) -> Result<Option<i64>, String> {
    match n {
        Value::Null => Ok(None),
        Value::Int(n) => Ok(Some(*n)),
        other => Err(format!("{function} takes a whole number, and {other} is none")),
    }
}

/// Whether a list begins with all elements of another; unknown unless both are lists.
pub(crate) fn starts_with(list: &Value<'_>, beginning: &Value<'_>) -> Option<bool> {
    Some(elements(list)?.starts_with(elements(beginning)?))
}

/// Whether a value is an element of a list, or all elements of a list are; unknown for what is no list.
pub(crate) fn contains(list: &Value<'_>, what: &Value<'_>) -> Option<bool> {
    let all = elements(list)?;
    match elements(what) {
        Some(wanted) => Some(wanted.iter().all(|element| all.contains(element))),
        None if *what == Value::Null => None,
        None => Some(all.contains(&json(what))),
    }
}

/// What `prefixes`, `aligned` and `disjoint` say of lists; nothing where there is no list.
pub(crate) fn together(sum: Sum, values: &[Value<'_>]) -> Option<bool> {
    let lists: Vec<&[Json]> = values.iter().filter_map(|v| elements(v)).collect();
    let agree: fn(&[Json], &[Json]) -> bool = match sum {
        Sum::Prefixes => |a, b| a.iter().zip(b).all(|(a, b)| a == b),
        Sum::Aligned => aligned,
        _ => |a, b| !a.iter().any(|element| b.contains(element)),
    };
    let pairs = |(i, a): (usize, &&[Json])| lists[i + 1..].iter().all(|b| agree(a, b));
    (!lists.is_empty()).then(|| lists.iter().enumerate().all(pairs))
}

/// Whether two lists that share an element are equal up to it: the log matching of D. Ongaro and J. Ousterhout, "In Search of an
/// Understandable Consensus Algorithm" (2014), figure 3, with elements that carry their term.
fn aligned(a: &[Json], b: &[Json]) -> bool {
    let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    !a[equal..].iter().any(|element| b.contains(element)) && !b[equal..].iter().any(|e| a.contains(e))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(elements: &[u8]) -> Value<'static> {
        Value::Json(Cow::Owned(Json::from(elements.to_vec())))
    }

    #[test]
    fn elements_are_found() {
        let log = list(&[4, 5, 6]);
        assert_eq!(last(log.borrowed()), Value::Int(6));
        assert_eq!(last(list(&[])), Value::Null);
        assert_eq!(head(&log, &Value::Int(2)), Ok(list(&[4, 5])));
        assert_eq!(head(&log, &Value::Int(-1)), Ok(list(&[])));
        assert_eq!(head(&log, &Value::Int(9)), Ok(log.clone()));
        assert_eq!(item(log.borrowed(), &Value::Int(1)), Ok(Value::Int(5)));
        assert_eq!(item(log.borrowed(), &Value::Int(3)), Ok(Value::Null));
        assert!(item(log.borrowed(), &Value::Text("x".into())).is_err());
        assert_eq!(contains(&log, &Value::Int(5)), Some(true));
        assert_eq!(contains(&log, &list(&[6, 4])), Some(true));
        assert_eq!(contains(&log, &list(&[6, 7])), Some(false));
        assert_eq!(contains(&Value::Int(1), &Value::Int(1)), None);
        assert_eq!(starts_with(&log, &list(&[4])), Some(true));
        assert_eq!(starts_with(&log, &list(&[5])), Some(false));
        assert_eq!(together(Sum::Disjoint, &[]), None);
    }

    proptest! {
        /// Against the definitions, element by element.
        #[test]
        fn lists_together(lists in proptest::collection::vec(proptest::collection::vec(0..4_u8, 0..5), 1..4)) {
            let values: Vec<Value<'_>> = lists.iter().map(|l| list(l)).collect();
            let pairs = || (0..lists.len()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| (&lists[i], &lists[j]));
            let prefixes = pairs().all(|(a, b)| a.starts_with(b) || b.starts_with(a));
            prop_assert_eq!(together(Sum::Prefixes, &values), Some(prefixes));
            let disjoint = pairs().all(|(a, b)| a.iter().all(|x| b.iter().all(|y| x != y)));
            prop_assert_eq!(together(Sum::Disjoint, &values), Some(disjoint));
            let aligned = pairs().all(|(a, b)| {
                (0..a.len()).all(|i| (0..b.len()).all(|j| a[i] != b[j] || a[..=i] == b[..=j] || {
                    // The same element may stand twice within the common beginning.
                    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
                    i < common && j < common
                }))
            });
            prop_assert_eq!(together(Sum::Aligned, &values), Some(aligned));
        }
    }
}
