//! States and messages of a child, as the simulator holds them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use demi_replay::ActorId;
use serde_json::Value;

use crate::values::{Canonical, mixed, quoted};
use crate::wire::Message;

/// The state of one actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is about to start, with what was on its disk.
    New(Option<Arc<Known>>),
    /// What the child said.
    At(Arc<Known>),
    /// Nobody knows, because the child failed. Nothing that is in such a state breaks an invariant.
    Lost,
}

impl State {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let text = match self {
            State::New(disk) => disk.as_ref().map_or(0, |disk| disk.bytes()),
            State::At(known) => known.bytes(),
            State::Lost => 0,
        };
        size_of::<State>() + text
    }
}

/// A state that a child told.
#[derive(Clone, Debug)]
pub struct Known {
    /// The state of a pure model, the digest of a stateful one.
    pub(crate) state: Canonical,
    /// What invariants read of it.
    pub(crate) seen: Canonical,
    /// For whom the actor waits.
    pub(crate) waits: Vec<ActorId>,
    /// Of a stateful model: the calls that led here.
    pub(crate) calls: Option<Arc<Call>>,
}

impl Known {
    fn bytes(&self) -> usize {
        let seen = if Arc::ptr_eq(&self.state.text, &self.seen.text) { 0 } else { self.seen.text.len() };
        size_of::<Known>() + self.state.text.len() + seen
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.state.hash(state);
    }
}

/// A call of a stateful model, and those before it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) text: String,
    pub(crate) before: Option<Arc<Call>>,
}

impl Call {
    /// All calls as a JSON list, from the first on.
    pub(crate) fn list(last: Option<&Arc<Call>>) -> String {
        let mut texts = Vec::new();
        let mut next = last;
        while let Some(call) = next {
            texts.push(call.text.as_str());
            next = call.before.as_ref();
        }
        texts.reverse();
        format!("[{}]", texts.join(","))
    }
}

/// One after the other: a chain of a million calls would end the stack.
impl Drop for Call {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(call) = next {
            next = Arc::try_unwrap(call).ok().and_then(|mut call| call.before.take());
        }
    }
}

/// A message. Equal messages have the same type, payload and data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Msg(pub(crate) Arc<Written>);

/// A message and its text.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) type_: String,
    pub(crate) payload: String,
    pub(crate) data: Value,
    /// The name of the timer that carries it, which logs tell.
    pub(crate) timer: Option<&'static str>,
    /// All of it, as the child gets it.
    pub(crate) text: Canonical,
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Written {}

impl Hash for Written {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl From<Message> for Msg {
    fn from(message: Message) -> Msg {
        let data = Canonical::of(&message.data);
        let payload = message.payload.unwrap_or_else(|| match &message.data {
            Value::Null => message.type_.clone(),
            _ => format!("{}({})", message.type_, data.text),
        });
        let text = format!(
            "{{\"data\":{},\"payload\":{},\"type\":{}}}",
            data.text,
            quoted(&payload),
            quoted(&message.type_)
        );
        let text = Canonical::text(&text);
        Msg(Arc::new(Written { type_: message.type_, payload, data: message.data, timer: None, text }))
    }
}

impl Msg {
    /// About how many bytes it takes: its text, and its content once more as a value.
    pub(crate) fn bytes(&self) -> usize {
        3 * self.0.text.text.len()
    }

    /// A message that a timer carries.
    pub(crate) fn carried(message: Message, timer: &'static str) -> Msg {
        let Msg(written) = message.into();
        let Written { type_, payload, data, text, .. } = &*written;
        let hash = mixed(&[text.hash, Canonical::text(timer).hash]);
        let text = Canonical { text: Arc::clone(&text.text), hash };
        let (type_, payload, data) = (type_.clone(), payload.clone(), data.clone());
        Msg(Arc::new(Written { type_, payload, data, timer: Some(timer), text }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_payload_is_made_of_type_and_data() {
        let made = |type_: &str, payload: Option<&str>, data: Value| {
            Msg::from(Message { type_: type_.into(), payload: payload.map(str::to_owned), data })
        };
        assert_eq!(made("Ping", None, Value::Null).0.payload, "Ping");
        let vote = made("Vote", None, json!({"b": 1, "a": [2]}));
        assert_eq!(vote.0.payload, r#"Vote({"a":[2],"b":1})"#);
        assert_eq!(vote, made("Vote", Some(r#"Vote({"a":[2],"b":1})"#), json!({"a": [2], "b": 1})));
        assert_ne!(vote, made("Vote", Some("Vote"), json!({"a": [2], "b": 1})));
    }

    #[test]
    fn calls_are_listed_from_the_first_and_long_chains_end() {
        let mut last = None;
        for n in 0..1_000_000 {
            last = Some(Arc::new(Call { text: n.to_string(), before: last.take() }));
        }
        assert!(Call::list(last.as_ref()).starts_with("[0,1,2,"));
        drop(last);
    }
}
