//! Paths into a record, and what of a record no path led to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::formats::Record;

/// A step of a path that was gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To a member of an object, or to a part of a line.
    Key(String),
    /// To an element of an array; it may have been found by the value of one of its members.
    Item { index: usize, by: Option<String> },
}

/// The steps from a record to a value; none lead to the whole record.
pub(crate) type Steps = Vec<Step>;

/// The value at a path: `a.b.0`, `tags.[key=span.kind].value` for the first element of an array whose `key` is that, or a JSON pointer where it begins
/// with a slash; `.` is the whole. The steps that lead there are added to `trail`.
pub(crate) fn find<'a>(value: &'a Value, path: &str, trail: Option<&mut Steps>) -> Option<&'a Value> {
    if path == "." {
        return Some(value);
    }
    if let Some(pointer) = path.strip_prefix('/') {
        let names = pointer.split('/').map(|name| Cow::Owned(name.replace("~1", "/").replace("~0", "~")));
        return descend(value, names, false, trail);
    }
    by_names(value, path, trail)
}

/// The value at names with dots between them. A key may itself hold dots.
fn by_names<'a>(value: &'a Value, path: &str, trail: Option<&mut Steps>) -> Option<&'a Value> {
    if let Some(found) = value.get(path) {
        if let Some(trail) = trail {
            trail.push(Step::Key(path.to_owned()));
        }
        return Some(found);
    }
    let steps = || parts(path).map(Cow::Borrowed);
    let Some(trail) = trail else {
        return descend(value, steps(), true, None).or_else(|| dotted(value, path, None));
    };
    let before = trail.len();
    if let Some(found) = descend(value, steps(), true, Some(trail)) {
        return Some(found);
    }
    trail.truncate(before);
    dotted(value, path, Some(trail))
}

/// The value at a path some of whose keys hold dots.
fn dotted<'a>(value: &'a Value, path: &str, mut trail: Option<&mut Steps>) -> Option<&'a Value> {
    path.match_indices('.').find_map(|(dot, _)| {
        let (key, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
        let inner = value.get(key)?;
        let Some(trail) = trail.as_deref_mut() else { return by_names(inner, rest, None) };
        let before = trail.len();
        trail.push(Step::Key(key.to_owned()));
        let found = by_names(inner, rest, Some(&mut *trail));
        if found.is_none() {
            trail.truncate(before);
        }
        found
    })
}

/// Goes from value to value by the parts of a path. Where `conditions` may stand, `[key=value]` is one.
pub(crate) fn descend<'a, 'p>(
    value: &'a Value,
    parts: impl Iterator<Item = Cow<'p, str>>,
    conditions: bool,
    mut trail: Option<&mut Steps>,
) -> Option<&'a Value> {
    let mut at = value;
    for part in parts {
        let condition = if conditions { condition(&part) } else { None };
        let (next, step) = match (at, condition) {
            (Value::Array(items), Some((key, wanted))) => {
                let is = |item: &Value| item.get(key).and_then(text_of).as_deref() == Some(wanted);
                let index = items.iter().position(is)?;
                (items.get(index)?, Step::Item { index, by: Some(key.to_owned()) })
            }
            (Value::Object(map), _) => (map.get(part.as_ref())?, Step::Key(part.into_owned())),
            (Value::Array(items), None) => {
                let index = part.parse::<usize>().ok()?;
                (items.get(index)?, Step::Item { index, by: None })
            }
            _ => return None,
        };
        if let Some(trail) = trail.as_deref_mut() {
            trail.push(step);
        }
        at = next;
    }
    Some(at)
}

/// The parts of a path; a dot in brackets or braces is none between two of them.
pub(crate) fn parts(path: &str) -> impl Iterator<Item = &str> {
    let (mut inside, mut braces) = (false, 0_usize);
    path.split(move |c| {
        inside = c == '[' || inside && c != ']';
        match c {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        c == '.' && !inside && braces == 0
    })
}

/// What `[key=value]` asks of an element of an array.
fn condition(part: &str) -> Option<(&str, &str)> {
    part.strip_prefix('[')?.strip_suffix(']')?.split_once('=')
}

/// A value as text: strings as they are, everything else as JSON; `null` is no text.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// What is left of a record without the values that steps lead to; nothing where that is all of it.
///
/// An object or array of which nothing is left is left out itself. An element of an array that was used by its place leaves a `null`, so that
/// the others keep theirs. One that was found by a member is left out with that member.
pub(crate) fn left(record: &Record<'_>, used: &[Steps]) -> Option<Value> {
    let used: Vec<&[Step]> = used.iter().map(Vec::as_slice).collect();
    match record {
        Record::Json(value) => left_of(value, &used),
        Record::Parts(_) if used.iter().any(|steps| steps.is_empty()) => None,
        Record::Parts(_) => {
            let is_used =
                |name: &str| used.iter().any(|s| matches!(s.first(), Some(Step::Key(k)) if k == name));
            let members = record.members(|name| !is_used(name));
            (!members.is_empty()).then_some(Value::Object(members))
        }
    }
}

fn left_of(value: &Value, used: &[&[Step]]) -> Option<Value> {
    if used.iter().any(|steps| steps.is_empty()) {
        return None;
    }
    if used.is_empty() {
        return Some(value.clone());
    }
    match value {
        Value::Object(map) => {
            let mut rest = Map::new();
            for (name, value) in map {
                let within: Vec<&[Step]> = used
                    .iter()
                    .filter_map(|steps| match steps.split_first() {
                        Some((Step::Key(key), behind)) if key == name => Some(behind),
                        _ => None,
                    })
                    .collect();
                rest.extend(left_of(value, &within).map(|value| (name.clone(), value)));
            }
            (!rest.is_empty()).then_some(Value::Object(rest))
        }
        Value::Array(items) => {
            let mut rest = Vec::new();
            // Behind the last one that is left there are no places to keep.
            let mut end = 0;
            for (i, item) in items.iter().enumerate() {
                let (mut within, mut key) = (Vec::new(), None);
                let mut placed = false;
                for steps in used {
                    if let Some((Step::Item { index, by }, behind)) = steps.split_first()
                        && *index == i
                    {
                        within.push(behind);
                        key = key.or(by.as_deref());
                        placed |= by.is_none();
                    }
                }
                let left = left_of(item, &within).filter(|left| !is_only(left, key));
                match left {
                    Some(left) => {
                        rest.push(left);
                        end = rest.len();
                    }
                    None if placed => rest.push(Value::Null),
                    None => {}
                }
            }
            rest.truncate(end);
            (end > 0).then_some(Value::Array(rest))
        }
        other => Some(other.clone()),
    }
}

/// Whether an object has that one member and no other.
fn is_only(value: &Value, key: Option<&str>) -> bool {
    key.is_some_and(|key| value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key(key)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn left_by(value: &Value, paths: &[&str]) -> Option<Value> {
        let steps = paths.iter().filter_map(|path| {
            let mut trail = Vec::new();
            find(value, path, Some(&mut trail)).map(|_| trail)
        });
        left(&Record::Json(value.clone()), &steps.collect::<Vec<_>>())
    }

    #[test]
    fn what_was_used_goes_and_nothing_else() {
        let record = json!({"a": {"b": 1, "c": 2}, "d.e": 3, "l": [1, 2, {"x": 4}], "n": null,
            "t": [{"k": "u", "v": 5}, {"k": "w", "v": 6, "type": "int"}, {"k": "z", "v": 7}]});
        let without = |paths: &[&str]| left_by(&record, paths).unwrap();
        assert_eq!(without(&[]), record);
        assert_eq!(without(&["a.b"])["a"], json!({"c": 2}));
        assert_eq!(without(&["/a/b", "a.c"]).get("a"), None);
        assert_eq!(without(&["d.e"]).get("d.e"), None);
        assert_eq!(without(&["l.0"])["l"], json!([null, 2, {"x": 4}]), "the others keep their places");
        assert_eq!(without(&["l.0", "l.1", "l.2.x"]).get("l"), None);
        assert_eq!(
            without(&["t.[k=u].v", "t.[k=w].v"])["t"],
            json!([{"k": "w", "type": "int"}, {"k": "z", "v": 7}]),
        );
        assert_eq!(without(&["zz", "a.zz"]), record, "what is not there was not used");
        assert_eq!(left_by(&record, &["."]), None);
    }

    /// Leaves of a value, each with its path.
    fn leaves(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
        let under = |name: String| if path.is_empty() { name } else { format!("{path}.{name}") };
        match value {
            Value::Object(map) => map.iter().for_each(|(k, v)| leaves(v, &under(k.clone()), all)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| leaves(v, &under(i.to_string()), all))
            }
            other => all.push((path.to_owned(), other.clone())),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = (0..9_u8).prop_map(|n| json!(n));
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
                proptest::collection::btree_map("[abc]", inner, 1..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Each leaf is in the rest or was used, never both, and stands where it stood.
        #[test]
        fn a_leaf_is_left_or_was_used(
            value in proptest::collection::btree_map("[abc]", values(), 1..4),
            which in proptest::collection::vec(any::<bool>(), 64),
        ) {
            let value = Value::Object(value.into_iter().collect());
            let mut all = Vec::new();
            leaves(&value, "", &mut all);
            let used: Vec<&str> = all.iter().zip(&which).filter(|(_, u)| **u).map(|((p, _), _)| p.as_str()).collect();
            let rest = left_by(&value, &used).unwrap_or(json!({}));
            for (path, leaf) in &all {
                let found = find(&rest, path, None).filter(|found| !found.is_null());
                let expected = (!used.contains(&path.as_str())).then_some(leaf);
                prop_assert_eq!(found, expected, "{} of {} without {:?}", path, value, used);
            }
        }
    }
}
