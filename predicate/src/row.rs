//! Rows: what a predicate is asked of.

use crate::scope::Scope;
use crate::term::Column;
use crate::value::Value;

/// A state that an actor told of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct State(serde_json::Value);

impl State {
    /// Reads the text of a state record; text that is no JSON is a state without variables.
    #[must_use]
    pub fn parse(text: &str) -> State {
        State(serde_json::from_str(text).unwrap_or_default())
    }

    /// The names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.as_object().into_iter().flat_map(|o| o.keys().map(String::as_str))
    }

    /// A state with these variables.
    #[must_use]
    pub fn new(variables: serde_json::Value) -> State {
        State(variables)
    }

    /// The state as JSON.
    #[must_use]
    pub fn value(&self) -> &serde_json::Value {
        &self.0
    }

    pub(crate) fn get(&self, path: &[String]) -> Value {
        let mut at = &self.0;
        for name in path {
            match at.get(name) {
                Some(inner) => at = inner,
                None => return Value::Null,
            }
        }
        Value::from(at)
    }
}

/// An actor and a state that it told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The actor's name.
    pub actor: &'a str,
    /// The state.
    pub state: &'a State,
}

/// A row: the states of its sides, as the scope of the predicate counts them.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    first: Told<'a>,
    second: Option<Told<'a>>,
}

impl<'a> Row<'a> {
    /// An actor's last state, and the one before it in the same incarnation where there is one. Without a scope a row is that.
    #[must_use]
    pub fn last(now: Told<'a>, before: Option<Told<'a>>) -> Row<'a> {
        Row { first: now, second: before }
    }

    /// A state alone: a row of `EVER`, or of an actor that told one state.
    #[must_use]
    pub fn one(told: Told<'a>) -> Row<'a> {
        Row { first: told, second: None }
    }

    /// Two states: a row of `PAIRS` or `EVER PAIRS`.
    #[must_use]
    pub fn pair(first: Told<'a>, second: Told<'a>) -> Row<'a> {
        Row { first, second: Some(second) }
    }

    pub(crate) fn get(&self, column: &Column) -> Value {
        let told = if column.side == 0 { Some(self.first) } else { self.second };
        match told {
            Some(told) if column.is_actor() => Value::Text(told.actor.to_owned()),
            Some(told) => told.state.get(&column.path),
            None => Value::Null,
        }
    }

    /// Whose row it is, for people.
    pub(crate) fn named(&self, scope: &Scope) -> String {
        let text = |told: &Told<'_>| Value::Text(told.actor.to_owned());
        match (scope.pair(), &self.second) {
            (Some((a, b)), Some(second)) => {
                format!("{a}.actor = {}, {b}.actor = {}", text(&self.first), text(second))
            }
            _ => format!("actor = {}", text(&self.first)),
        }
    }
}
