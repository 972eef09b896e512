//! Logs with offsets, as in Maelstrom's kafka workload and Jepsen's test of Kafka.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::anomaly::{Anomaly, canonical};
use crate::history::{Done, Fate};

/// Messages at an offset of a key.
type Log = BTreeMap<u64, Value>;

/// A number, or the text of one.
fn offset(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn key_of(value: &Value) -> String {
    value.as_str().map_or_else(|| canonical(value), str::to_owned)
}

/// A poll of one key: the key, the offset asked for, and offsets with their messages.
type Poll = (String, Option<u64>, Vec<(u64, Value)>);

/// What one operation saw: sends, and polls with where they began.
struct Seen {
    /// Key, offset and message of what was sent and acknowledged.
    sent: Vec<(String, u64, Value)>,
    /// Key, offset asked for, and messages.
    polled: Vec<Poll>,
}

/// Sends and polls stand in lists, `["send", key, [offset, message]]` and `["poll", {key: [[offset, message], ..]}]`.
fn seen(asked: &Value, done: &Value) -> Seen {
    let mut seen = Seen { sent: Vec::new(), polled: Vec::new() };
    let none = Vec::new();
    let parts = done.as_array().unwrap_or(&none);
    for (at, part) in parts.iter().enumerate() {
        let Some(words) = part.as_array() else { continue };
        match (words.first().and_then(Value::as_str), words.get(1), words.get(2)) {
            (Some("send"), Some(key), Some(Value::Array(pair))) => {
                if let [place, message] = pair.as_slice()
                    && let Some(place) = offset(place)
                {
                    seen.sent.push((key_of(key), place, message.clone()));
                }
            }
            (Some("poll"), Some(Value::Object(keys)), _) => {
                let began = asked.as_array().and_then(|all| all.get(at)?.as_array()?.get(1)?.as_object());
                for (key, messages) in keys {
                    let pairs = messages.as_array().unwrap_or(&none).iter().filter_map(|pair| {
                        let pair = pair.as_array()?;
                        Some((offset(pair.first()?)?, pair.get(1)?.clone()))
                    });
                    let began = began.and_then(|began| offset(began.get(key)?));
                    seen.polled.push((key.clone(), began, pairs.collect()));
                }
            }
            _ => {}
        }
    }
    seen
}

/// Checks logs.
pub(crate) fn kafka(operations: &[Done]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let mut ended: Vec<(&Done, Seen)> = operations
        .iter()
        .filter_map(|one| match &one.fate {
            Fate::Done(value) => Some((one, seen(&one.value, value))),
            _ => None,
        })
        .collect();
    ended.sort_by_key(|(one, _)| one.end);
    let mut logs: BTreeMap<String, Log> = BTreeMap::new();
    let mut places: FxHashMap<(String, String), u64> = FxHashMap::default();
    for (one, seen) in &ended {
        let polled = seen.polled.iter().flat_map(|(key, _, all)| all.iter().map(move |(o, m)| (key, *o, m)));
        for (key, place, message) in seen.sent.iter().map(|(key, o, m)| (key, *o, m)).chain(polled) {
            let known = logs.entry(key.clone()).or_default().entry(place).or_insert_with(|| message.clone());
            if canonical(known) != canonical(message) {
                let told = format!("{}: offset {place} of {key} is {known} and {message}", one.told());
                found.push(Anomaly::new("two messages at one offset", told));
            }
            let known = *places.entry((key.clone(), canonical(message))).or_insert(place);
            if known != place {
                let told = format!("{}: {message} of {key} is at {known} and at {place}", one.told());
                found.push(Anomaly::new("one message at two offsets", told));
            }
        }
    }
    // By process and key: up to where it polled since its last assignment.
    let mut reached: FxHashMap<(i64, String), u64> = FxHashMap::default();
    let mut committed: Vec<(usize, String, u64)> = Vec::new();
    let sent = sent_messages(operations);
    let mut by_begin: Vec<&(&Done, Seen)> = ended.iter().collect();
    by_begin.sort_by_key(|(one, _)| one.begin);
    for (one, seen) in by_begin {
        if matches!(one.f.as_str(), "assign" | "subscribe") {
            reached.retain(|(process, _), _| *process != one.process);
        }
        for (key, began, messages) in &seen.polled {
            let log = logs.get(key);
            let skips = |from: u64, to: u64| {
                log.and_then(|log| log.range(from..to.max(from)).next()).map(|(offset, _)| *offset)
            };
            for (place, message) in messages {
                if sent
                    .get(&(key.clone(), canonical(message)))
                    .is_none_or(|begin| one.end.is_some_and(|end| *begin > end))
                {
                    let told = format!("{} gets {message} of {key} at {place}", one.told());
                    found.push(Anomaly::new("a message that nobody sent", told));
                }
            }
            for pair in messages.windows(2) {
                let ((one_place, _), (next, _)) = (&pair[0], &pair[1]);
                if next <= one_place {
                    let told = format!("{} gets {next} of {key} after {one_place}", one.told());
                    found.push(Anomaly::new("a poll goes back", told));
                } else if let Some(missed) = skips(one_place + 1, *next) {
                    let told =
                        format!("{} gets {next} of {key} after {one_place}, without {missed}", one.told());
                    found.push(Anomaly::new("a poll skips a message", told));
                }
            }
            let Some((first, _)) = messages.first() else { continue };
            let last = messages.last().map_or(*first, |(place, _)| *place);
            let before = reached.insert((one.process, key.clone()), last);
            match (began, before) {
                (Some(began), _) if first < began => {
                    let told = format!("{} asks for {key} from {began} and gets {first}", one.told());
                    found.push(Anomaly::new("a poll begins before what was asked", told));
                }
                (Some(began), _) => {
                    if let Some(missed) = skips(*began, *first) {
                        let told = format!(
                            "{} asks for {key} from {began} and gets {first}, without {missed}",
                            one.told()
                        );
                        found.push(Anomaly::new("a poll skips a message", told));
                    }
                }
                (None, Some(before)) if *first <= before => {
                    let told = format!("{} gets {first} of {key} after {before}", one.told());
                    found.push(Anomaly::new("a poll goes back behind the one before", told));
                }
                (None, Some(before)) => {
                    if let Some(missed) = skips(before + 1, *first) {
                        let told =
                            format!("{} gets {first} of {key} after {before}, without {missed}", one.told());
                        found.push(Anomaly::new("a poll skips a message", told));
                    }
                }
                (None, None) => {}
            }
        }
    }
    for one in operations.iter().filter(|one| one.f == "commit_offsets") {
        if matches!(one.fate, Fate::Refused(_)) {
            continue;
        }
        for (key, place) in one.value.as_object().into_iter().flatten() {
            committed.extend(offset(place).map(|place| (one.begin, key.clone(), place)));
        }
    }
    for one in operations.iter().filter(|one| one.f == "list_committed_offsets") {
        let Fate::Done(Value::Object(offsets)) = &one.fate else { continue };
        for (key, place) in offsets {
            let Some(place) = offset(place) else { continue };
            let before = one.end.unwrap_or(usize::MAX);
            // Nothing committed may be told as 0.
            let most = committed
                .iter()
                .filter(|(begin, of, _)| *begin < before && of == key)
                .map(|(_, _, o)| *o)
                .max();
            if place > most.unwrap_or(0) {
                let highest = most.map_or_else(
                    || "nobody committed any".to_owned(),
                    |most| format!("{most} was the highest"),
                );
                let told = format!("{} is told {place} of {key}, and {highest}", one.told());
                found.push(Anomaly::new("a committed offset that nobody committed", told));
            }
        }
    }
    found
}

/// When each message was sent first, also those that were not acknowledged.
fn sent_messages(operations: &[Done]) -> FxHashMap<(String, String), usize> {
    let mut all = FxHashMap::default();
    for one in operations {
        for part in one.value.as_array().into_iter().flatten() {
            if let Some([f, key, message]) = part.as_array().map(Vec::as_slice)
                && f.as_str() == Some("send")
            {
                let begin = all.entry((key_of(key), canonical(message))).or_insert(one.begin);
                *begin = one.begin.min(*begin);
            }
        }
    }
    all
}
