//! Sets that grow: what is read was added, once, and in the end everything that was acknowledged is there.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::anomaly::{Anomaly, canonical};
use crate::history::{Done, Fate};

/// Checks a set; `add` is what adding is called.
pub(crate) fn set(operations: &[Done], add: &str) -> Vec<Anomaly> {
    let mut found = Vec::new();
    // When each element was first added, and whether that was acknowledged.
    let mut added: FxHashMap<String, usize> = FxHashMap::default();
    let mut acknowledged: Vec<(&Value, usize)> = Vec::new();
    for one in operations.iter().filter(|one| one.f == add) {
        let begin = added.entry(canonical(&one.value)).or_insert(one.begin);
        *begin = (*begin).min(one.begin);
        if let (Fate::Done(_), Some(end)) = (&one.fate, one.end) {
            acknowledged.push((&one.value, end));
        }
    }
    for one in operations.iter().filter(|one| one.f == "read") {
        let Fate::Done(value) = &one.fate else { continue };
        let Some(elements) = value.as_array() else {
            found.push(Anomaly::new("a read that is no list", format!("{} reads {value}", one.told())));
            continue;
        };
        let mut seen = FxHashSet::default();
        for element in elements {
            let key = canonical(element);
            match added.get(&key) {
                Some(begin) if one.end.is_none_or(|end| *begin < end) => {}
                _ => {
                    let told = format!("{} reads {element}", one.told());
                    found.push(Anomaly::new("an element that nobody added", told));
                }
            }
            if !seen.insert(key) {
                found.push(Anomaly::new("an element twice", format!("{} reads {element} twice", one.told())));
            }
        }
        if one.is_final {
            let lost = acknowledged.iter().filter(|(_, end)| *end < one.begin);
            for (element, _) in lost.filter(|(element, _)| !seen.contains(&canonical(element))) {
                let told = format!("{element} was acknowledged, and {} lacks it", one.told());
                found.push(Anomaly::new("an element is lost", told));
            }
        }
    }
    found
}
