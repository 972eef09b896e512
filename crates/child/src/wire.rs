//! What a child writes: its greeting, and the answers to questions. `docs/model-protocol.md` tells the same in words.

use std::collections::BTreeMap;

use demi_schemas::scenario::Mask;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The version of the protocol that this program speaks.
pub const VERSION: &str = "demi-model/1";

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Hello {
    /// The version of the protocol: `demi-model/1`.
    pub protocol: String,
    /// Whether states are passed to and fro, or kept by the child.
    #[serde(default)]
    pub kind: ModelKind,
    /// The actors, in the order in which they start.
    pub actors: Vec<String>,
    /// Messages from outside that every run of `fuzz` begins with.
    #[serde(default)]
    pub bootstrap: Vec<Addressed>,
    /// Whether it answers `client`: random messages from outside.
    #[serde(default)]
    pub clients: bool,
    /// Whether it answers `external`: messages from outside, made of what a log tells of them.
    #[serde(default)]
    pub external: bool,
    /// Whether `start` gets the state in which the actor failed, as `disk`. Only for pure models.
    #[serde(default)]
    pub disk: bool,
    /// Whether a failed actor restarts by itself at once.
    #[serde(default)]
    pub restarts: bool,
    /// Rewritings of payloads before they are compared.
    #[serde(default)]
    pub masks: Vec<Mask>,
    /// Types of messages that are delivered once at most, even where the network repeats messages.
    #[serde(default)]
    pub once: Vec<String>,
}

impl Hello {
    /// A name that tells no actor from others: it is empty, or there twice.
    pub(crate) fn unclear_name(&self) -> Option<&str> {
        let unclear = |(at, name): &(usize, &String)| name.is_empty() || self.actors[..*at].contains(name);
        self.actors.iter().enumerate().find(unclear).map(|(_, name)| &**name)
    }
}

/// How a model keeps states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// A state is part of the question and of the answer.
    #[default]
    Pure,
    /// A question tells all calls since the actor started; the answer tells a digest of its state.
    Stateful,
}

/// A message, as a child writes it and gets it back.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Type tag, as the system logs it.
    #[serde(rename = "type")]
    pub type_: String,
    /// Full content, as the system logs it; made of type and data where absent.
    #[serde(default)]
    pub payload: Option<String>,
    /// Anything.
    #[serde(default)]
    pub data: Value,
}

/// A message with its receiver.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Addressed {
    /// The receiver; absent for the outside.
    #[serde(default)]
    pub to: Option<String>,
    /// The message.
    pub message: Message,
    /// In whose name it is sent, if not the actor's own: then on that actor's channel, as a message that is forwarded.
    #[serde(default, rename = "as")]
    pub in_name_of: Option<String>,
}

/// A timer.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimerName {
    /// Its name; an actor has at most one live timer of each name and key.
    pub timer: String,
    /// Tells timers of one name apart.
    #[serde(default)]
    pub key: u64,
    /// It is armed again at once when it fires.
    #[serde(default)]
    pub repeats: bool,
    /// It stays armed when its actor restarts.
    #[serde(default)]
    pub survives: bool,
    /// What it carries; needed where it is set.
    #[serde(default)]
    pub message: Option<Message>,
}

/// Something that a handler asks for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// Sends a message.
    Send(Addressed),
    /// Puts a message back into the own inbox, under the name of the sender of the one that is handled.
    Forward(Message),
    /// Arms a timer; a live one of that name and key is cancelled first.
    Set(TimerName),
    /// Cancels a timer.
    Cancel(TimerName),
    /// Brings an actor into existence.
    Start(String),
    /// Ends an actor for good.
    Stop(String),
    /// The handler fails: what it sent so far stays sent.
    Fail(String),
}

/// What became of a state: the answer to `start` and `deliver`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reacted {
    /// The new state; of a pure model.
    #[serde(default, deserialize_with = "given")]
    pub state: Option<Value>,
    /// A digest of the new state; of a stateful model.
    #[serde(default, deserialize_with = "given")]
    pub digest: Option<Value>,
    /// What invariants read of the state; the state itself, or its digest, where absent.
    #[serde(default, deserialize_with = "given")]
    pub seen: Option<Value>,
    /// For whom the actor waits in that state before it takes anything else. The same state must always wait for the same.
    #[serde(default)]
    pub waits_for: Vec<String>,
    /// What the handler asked for, in order.
    #[serde(default)]
    pub effects: Vec<Wish>,
    /// What the handler raised instead of coming to its end: an exception, with where in the source. Nothing else counts then.
    #[serde(default)]
    pub raised: Option<Raised>,
}

/// An exception.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Raised {
    /// What it says, with its type.
    pub text: String,
    /// Where it was raised, as `FILE:LINE`; absent where nobody knows.
    #[serde(default)]
    pub at: Option<String>,
}

impl Raised {
    /// It in words, as those of a panic are.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.at {
            Some(at) => format!("{} ({at})", self.text),
            None => self.text.clone(),
        }
    }
}

/// `null` is a value like any other.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The answer to `check`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// The invariants that are broken.
    #[serde(default)]
    pub violations: Vec<Broken>,
    /// What invariants remember until the next check.
    #[serde(default)]
    pub memory: Value,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broken {
    /// The invariant's name; more after a colon, such as the actors, tells violations apart.
    pub fingerprint: String,
    /// The actors whose state breaks it.
    #[serde(default)]
    pub affected: Vec<String>,
}

/// An answer to `client`: a random message from outside, if there is one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    /// The message with its receiver.
    #[serde(default)]
    pub proposal: Option<Addressed>,
}

/// An answer to `external`: the message, or why there is none.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// The message.
    #[serde(default)]
    pub message: Option<Message>,
    /// Why there is none.
    #[serde(default)]
    pub unknown: Option<String>,
}

/// An answer to any request but `hello`: one answer for each of its questions, in their order.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Answers {
    /// The answers.
    pub answers: Vec<Value>,
}

/// States by actor, as `check` gets them.
pub type Seen = BTreeMap<String, Value>;
