//! How the variables of actors changed along an execution.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::columns::Texts;
use crate::data::{Changes, NOTHING};

/// Collects changes: states go in, what differs from the state before comes out.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    texts: Texts,
    /// By actor: its variables as last seen.
    now: FxHashMap<u32, Vec<(u32, u32)>>,
    rows: Vec<(u32, u32, u32, i64)>,
}

impl Timeline {
    /// Notes the state of an actor after an event. What is no object is one variable named `state`; null is no state at
    /// all.
    pub(crate) fn note(&mut self, event: u32, actor: u32, state: &Value) {
        let mut after: Vec<(u32, u32)> = match state {
            Value::Null => Vec::new(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (self.texts.number(name), self.texts.number(&plain(value))))
                .collect(),
            other => vec![(self.texts.number("state"), self.texts.number(&plain(other)))],
        };
        after.sort_unstable();
        let before = self.now.entry(actor).or_default();
        for &(variable, value) in &after {
            if !before.contains(&(variable, value)) {
                self.rows.push((event, actor, variable, i64::from(value)));
            }
        }
        for &(variable, _) in before.iter() {
            if !after.iter().any(|a| a.0 == variable) {
                self.rows.push((event, actor, variable, NOTHING));
            }
        }
        *before = after;
    }

    /// The changes, in the order of the events.
    pub(crate) fn finish(mut self) -> Changes {
        self.rows.sort_by_key(|r| (r.0, r.1));
        let mut changes = Changes { texts: self.texts.texts, ..Changes::default() };
        for (event, actor, variable, value) in self.rows {
            changes.event.push(event);
            changes.actor.push(actor);
            changes.variable.push(variable);
            changes.value.push(value);
        }
        changes
    }
}

/// A value as people read it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_noted() {
        let mut timeline = Timeline::default();
        timeline.note(0, 3, &json!({"role": "Init", "term": 0}));
        timeline.note(5, 3, &json!({"role": "Leader", "term": 0}));
        timeline.note(9, 3, &Value::Null);
        let changes = timeline.finish();
        assert_eq!(changes.event, [0, 0, 5, 9, 9]);
        let text = |n: i64| changes.texts.get(n as usize).map(String::as_str);
        assert_eq!(text(changes.value[2]), Some("Leader"));
        assert_eq!(changes.value[3..], [NOTHING, NOTHING]);
    }
}
