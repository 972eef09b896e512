//! Rows: what a predicate is asked of.

use std::borrow::Cow;
use std::sync::Arc;

use crate::scope::{Scope, TELLS, TYPE};
use crate::state::State;
use crate::term::Column;
use crate::value::Value;

/// A state that an actor reported.
#[derive(Clone, Copy, Debug)]
pub struct ReportedState<'a> {
    /// The actor's name.
    pub actor: &'a str,
    /// The state.
    pub state: &'a State,
}

/// An actor, and a state that it had: the one after a handler, without variables where it had reported none, or one of the past.
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
    first: ReportedState<'a>,
    second: Option<ReportedState<'a>>,
    more: RowExtras<'a>,
}

/// The content of a row besides two states.
#[derive(Clone, Copy, Debug)]
enum RowExtras<'a> {
    Nothing,
    Message(&'a Delivered),
    /// The links of a chain, the last first.
    Chain(&'a [Link]),
}

impl<'a> Row<'a> {
    /// An actor's last state, and the one before it in the same incarnation where there is one. Without a scope a row is that.
    #[must_use]
    pub fn last(now: ReportedState<'a>, before: Option<ReportedState<'a>>) -> Row<'a> {
        Row { first: now, second: before, more: RowExtras::Nothing }
    }

    /// A state alone: a row of `EVER`, or of an actor that told one state.
    #[must_use]
    pub fn one(told: ReportedState<'a>) -> Row<'a> {
        Row { first: told, second: None, more: RowExtras::Nothing }
    }

    /// Two states: a row of `PAIRS` or `EVER PAIRS`.
    #[must_use]
    pub fn pair(first: ReportedState<'a>, second: ReportedState<'a>) -> Row<'a> {
        Row { first, second: Some(second), more: RowExtras::Nothing }
    }

    /// A message: a row of `MESSAGES`. Nothing where it has no sender.
    #[must_use]
    pub fn message(delivered: &'a Delivered) -> Option<Row<'a>> {
        let [receiver, sender, ..] = delivered.links.as_slice() else { return None };
        Some(Row { first: told(sender), second: Some(told(receiver)), more: RowExtras::Message(delivered) })
    }

    /// A chain of so many states that ends with a message: a row of `CHAIN`. Nothing where that is longer than what led to the message.
    #[must_use]
    pub fn chain(delivered: &'a Delivered, length: usize) -> Option<Row<'a>> {
        let links = delivered.links.get(..length)?;
        let first = told(links.last()?);
        Some(Row { first, second: None, more: RowExtras::Chain(links) })
    }

    pub(crate) fn get(&self, column: &Column) -> Value<'a> {
        let told = match (self.more, column.side) {
            (RowExtras::Message(delivered), TYPE) => return Value::Text(Cow::Borrowed(&delivered.kind)),
            (RowExtras::Message(delivered), TELLS) => return delivered.message.get(column),
            (RowExtras::Message(delivered), 2) => match (&delivered.before, self.second) {
                (Some(state), Some(receiver)) => Some(ReportedState { actor: receiver.actor, state }),
                _ => None,
            },
            (RowExtras::Chain(links), side) => links.iter().rev().nth(side).map(told),
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
        let text = |told: &ReportedState<'a>| Value::Text(Cow::Borrowed(told.actor));
        match (self.more, &self.second) {
            (RowExtras::Message(delivered), Some(receiver)) => {
                let kind = Value::Text(Cow::Borrowed(&delivered.kind));
                let (sender, receiver) = (text(&self.first), text(receiver));
                return format!("sender.actor = {sender}, receiver.actor = {receiver}, type = {kind}");
            }
            (RowExtras::Chain(links), _) => {
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

fn told(link: &Link) -> ReportedState<'_> {
    ReportedState { actor: &link.0, state: &link.1 }
}
