//! What is pending: a message, a timer or a choice.

use std::fmt::Debug;

use stateright::actor::{Actor, Id};

use crate::names::kept;

/// What is delivered to an actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content<Msg, Timer, Random> {
    /// A message.
    Message {
        /// Its sender.
        from: Id,
        /// What was sent.
        msg: Msg,
    },
    /// A timer.
    Timer(Timer),
    /// One of the values that the actor offered to choose from ([`stateright::actor::Out::choose_random`]).
    Choice {
        /// Which of the actor's choices.
        key: String,
        /// The value.
        value: Random,
    },
}

/// What is delivered to an actor of that type.
pub type ContentOf<A> = Content<<A as Actor>::Msg, <A as Actor>::Timer, <A as Actor>::Random>;

impl<Msg: Debug, Timer: Debug, Random: Debug> Content<Msg, Timer, Random> {
    /// What logs write: what `Debug` prints of the message, the timer or the value.
    pub(crate) fn text(&self) -> String {
        match self {
            Content::Message { msg, .. } => format!("{msg:?}"),
            Content::Timer(timer) => format!("{timer:?}"),
            Content::Choice { key, value } => format!("{key} = {value:?}"),
        }
    }

    /// The type tag: the first word of the text.
    pub(crate) fn type_name(&self) -> String {
        let text = match self {
            Content::Message { .. } => self.text(),
            Content::Timer(_) => return "Timeout".to_owned(),
            Content::Choice { .. } => return "Choice".to_owned(),
        };
        let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if word.is_empty() { "Message".to_owned() } else { word.to_owned() }
    }

    /// The name of the timer that stands for it while it is pending; `None` for messages.
    pub(crate) fn timer(&self) -> Option<&'static str> {
        match self {
            Content::Message { .. } => None,
            Content::Timer(_) | Content::Choice { .. } => Some(kept(self.text())),
        }
    }
}
