//! Rows: what a predicate is asked of.

use std::borrow::Cow;
use std::sync::Arc;

use crate::scope::{Scope, TELLS, TYPE};
use crate::state::State;
use crate::term::Column;
use crate::value::Value;

/// An actor and a state that it told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The actor's name.
    pub actor: &'a str,
    /// The state.
    pub state: &'a State,
}

/// What an actor's state was after a handler; a state without variables where it had told none.
pub type Link = (Arc<str>, Arc<State>);

/// A message that was delivered, with the states of those that it concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    /// The type of the message.
    pub kind: Arc<str>,
    /// What it tells of itself.
    pub message: Arc<State>,
    /// The receiver's state before it; absent where it had told none.
    pub before: Option<Arc<State>>,
    /// The receiver with its state after the message, the sender with its state after sending it, the sender of the message which began
    /// what sent it, and so on backward. Behind the receiver and the sender no actor comes again.
    pub links: Vec<Link>,
}

/// A row: the states of its sides, as the scope of the predicate counts them.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    first: Told<'a>,
    second: Option<Told<'a>>,
    more: More<'a>,
}

/// What a row has besides two states.
#[derive(Clone, Copy, Debug)]
enum More<'a> {
    Nothing,
    Message(&'a Delivered),
    /// The links of a chain, the last first.
    Chain(&'a [Link]),
}

impl<'a> Row<'a> {
    /// An actor's last state, and the one before it in the same incarnation where there is one. Without a scope a row is that.
    #[must_use]
    pub fn last(now: Told<'a>, before: Option<Told<'a>>) -> Row<'a> {
        Row { first: now, second: before, more: More::Nothing }
    }

    /// A state alone: a row of `EVER`, or of an actor that told one state.
    #[must_use]
    pub fn one(told: Told<'a>) -> Row<'a> {
        Row { first: told, second: None, more: More::Nothing }
    }

    /// Two states: a row of `PAIRS` or `EVER PAIRS`.
    #[must_use]
    pub fn pair(first: Told<'a>, second: Told<'a>) -> Row<'a> {
        Row { first, second: Some(second), more: More::Nothing }
    }

    /// A message: a row of `MESSAGES`. Nothing where it has no sender.
    #[must_use]
    pub fn message(delivered: &'a Delivered) -> Option<Row<'a>> {
        let [receiver, sender, ..] = delivered.links.as_slice() else { return None };
        Some(Row { first: told(sender), second: Some(told(receiver)), more: More::Message(delivered) })
    }

    /// A chain of so many states that ends with a message: a row of `CHAIN`. Nothing where that is longer than what led to the message.
    #[must_use]
    pub fn chain(delivered: &'a Delivered, length: usize) -> Option<Row<'a>> {
        let links = delivered.links.get(..length)?;
        let first = told(links.last()?);
        Some(Row { first, second: None, more: More::Chain(links) })
    }

    pub(crate) fn get(&self, column: &Column) -> Value<'a> {
        let told = match (self.more, column.side) {
            (More::Message(delivered), TYPE) => return Value::Text(Cow::Borrowed(&delivered.kind)),
            (More::Message(delivered), TELLS) => return delivered.message.get(column),
            (More::Message(delivered), 2) => match (&delivered.before, self.second) {
                (Some(state), Some(receiver)) => Some(Told { actor: receiver.actor, state }),
                _ => None,
            },
            (More::Chain(links), side) => links.iter().rev().nth(side).map(told),
            (_, 0) => Some(self.first),
            (_, _) => self.second,
        };
        match told {
            Some(told) if column.is_actor() => Value::Text(Cow::Borrowed(told.actor)),
            Some(told) => told.state.get(column),
            None => Value::Null,
        }
    }

    /// Whose row it is, for people.
    pub(crate) fn named(&self, scope: &Scope) -> String {
        let text = |told: &Told<'a>| Value::Text(Cow::Borrowed(told.actor));
        match (self.more, &self.second) {
            (More::Message(delivered), Some(receiver)) => {
                let kind = Value::Text(Cow::Borrowed(&delivered.kind));
                let (sender, receiver) = (text(&self.first), text(receiver));
                return format!("sender.actor = {sender}, receiver.actor = {receiver}, type = {kind}");
            }
            (More::Chain(links), _) => {
                let each = links.iter().rev().enumerate();
                let each = each.map(|(i, link)| format!("s{}.actor = {}", i + 1, text(&told(link))));
                return each.collect::<Vec<_>>().join(", ");
            }
            _ => {}
        }
        match (scope.pair(), &self.second) {
            (Some((a, b)), Some(second)) => {
                format!("{a}.actor = {}, {b}.actor = {}", text(&self.first), text(second))
            }
            _ => format!("actor = {}", text(&self.first)),
        }
    }
}

fn told(link: &Link) -> Told<'_> {
    Told { actor: &link.0, state: &link.1 }
}
