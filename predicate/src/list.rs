//! What can be said of lists. Elements are compared as JSON values.

use serde_json::Value as Json;

use crate::term::Sum;
use crate::value::Value;

/// The elements of a list; nothing of another value.
fn elements(value: &Value) -> Option<&[Json]> {
    match value {
        Value::Json(Json::Array(all)) => Some(all),
        _ => None,
    }
}

/// The value as an element of a list is written.
fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(n) => Json::from(*n),
        Value::Float(n) => Json::from(*n),
        Value::Text(text) => Json::String(text.clone()),
        Value::Json(json) => json.clone(),
    }
}

/// The last element of a list; unknown where there is none.
pub(crate) fn last(list: &Value) -> Value {
    elements(list).and_then(<[Json]>::last).map_or(Value::Null, Value::from)
}

/// The first `n` elements of a list: all of a shorter one, none where `n` is negative; unknown for another value.
///
/// # Errors
/// When `n` is no whole number.
pub(crate) fn head(list: &Value, n: &Value) -> Result<Value, String> {
    let (Some(all), Some(n)) = (elements(list), whole("head", n)?) else { return Ok(Value::Null) };
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX).min(all.len());
    Ok(Value::Json(Json::Array(all[..n].to_vec())))
}

/// The element of a list with the number `n`, from 0; unknown where there is none.
///
/// # Errors
/// When `n` is no whole number.
pub(crate) fn item(list: &Value, n: &Value) -> Result<Value, String> {
    let (Some(all), Some(n)) = (elements(list), whole("item", n)?) else { return Ok(Value::Null) };
    Ok(usize::try_from(n).ok().and_then(|n| all.get(n)).map_or(Value::Null, Value::from))
}

fn whole(function: &str, n: &Value) -> Result<Option<i64>, String> {
    match n {
        Value::Null => Ok(None),
        Value::Int(n) => Ok(Some(*n)),
        other => Err(format!("{function} takes a whole number, and {other} is none")),
    }
}

/// Whether a list begins with all elements of another; unknown unless both are lists.
pub(crate) fn starts_with(list: &Value, beginning: &Value) -> Option<bool> {
    Some(elements(list)?.starts_with(elements(beginning)?))
}

/// Whether a value is an element of a list, or all elements of a list are; unknown for what is no list.
pub(crate) fn contains(list: &Value, what: &Value) -> Option<bool> {
    let all = elements(list)?;
    match elements(what) {
        Some(wanted) => Some(wanted.iter().all(|element| all.contains(element))),
        None if *what == Value::Null => None,
        None => Some(all.contains(&json(what))),
    }
}

/// What `prefixes`, `aligned` and `disjoint` say of lists; nothing where there is no list.
pub(crate) fn together(sum: Sum, values: &[Value]) -> Option<bool> {
    let lists: Vec<&[Json]> = values.iter().filter_map(elements).collect();
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

    fn list(elements: &[u8]) -> Value {
        Value::Json(Json::from(elements.to_vec()))
    }

    #[test]
    fn elements_are_found() {
        let log = list(&[4, 5, 6]);
        assert_eq!(last(&log), Value::Int(6));
        assert_eq!(last(&list(&[])), Value::Null);
        assert_eq!(head(&log, &Value::Int(2)), Ok(list(&[4, 5])));
        assert_eq!(head(&log, &Value::Int(-1)), Ok(list(&[])));
        assert_eq!(head(&log, &Value::Int(9)), Ok(log.clone()));
        assert_eq!(item(&log, &Value::Int(1)), Ok(Value::Int(5)));
        assert_eq!(item(&log, &Value::Int(3)), Ok(Value::Null));
        assert!(item(&log, &Value::Text("x".into())).is_err());
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
            let values: Vec<Value> = lists.iter().map(|l| list(l)).collect();
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
