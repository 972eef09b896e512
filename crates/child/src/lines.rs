//! The lines of the protocol as types: what `schemas/json/model-request.schema.json` and `model-answer.schema.json` are made of.
//!
//! Requests are written as text where they are asked, because a state is text that is passed on as it came. A test reads what was
//! written with these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::{Checked, Hello, Made, Message, Proposed, Reacted};

/// A line that a child gets: a greeting first, then batches of questions.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Request {
    /// The first line.
    Hello {
        /// Number of the request; the answer repeats it.
        id: u64,
        /// What the child must know.
        hello: Greeting,
    },
    /// Any other line.
    Questions {
        /// Number of the request; the answer repeats it.
        id: u64,
        /// The questions.
        requests: Vec<Question>,
    },
}

/// What a child is told at first.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// The version of the protocol: `demi-model/1`.
    pub protocol: String,
    /// What the scenario file says to models.
    pub scenario: Told,
}

/// What the scenario file says to models.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// How many members there are.
    #[serde(default)]
    pub members: Option<u32>,
    /// Names of the invariants to check; all of them where absent.
    #[serde(default)]
    pub invariants: Option<Vec<String>>,
    /// Deviations of the program that are on or off.
    pub switches: BTreeMap<String, bool>,
    /// Other settings.
    pub settings: BTreeMap<String, Value>,
    /// How payloads are written.
    pub payload: BTreeMap<String, bool>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// What an actor does when it starts.
    Start {
        /// The actor.
        actor: String,
        /// The state in which it failed, if the model has a disk; null where it has not failed.
        #[serde(default)]
        disk: Value,
        /// The present time in seconds; null where no schedule tells it.
        now: Option<f64>,
        /// A number of 53 bits that is always the same for the same question.
        random: u64,
    },
    /// What an actor does with a message.
    Deliver {
        /// The actor.
        actor: String,
        /// Of a pure model: the actor's state.
        #[serde(default)]
        state: Value,
        /// The sender; null for timers and messages from outside.
        from: Option<String>,
        /// The message.
        message: Message,
        /// Of a stateful model: the start and all that the actor took since, in order, without the message.
        #[serde(default)]
        calls: Vec<Taken>,
        /// The present time in seconds; null where no schedule tells it.
        now: Option<f64>,
        /// A number of 53 bits that is always the same for the same question.
        random: u64,
    },
    /// Which invariants are broken.
    Check {
        /// What invariants read, by actor.
        seen: BTreeMap<String, Value>,
        /// Actors that have failed.
        failed: Vec<String>,
        /// What the check before remembered; null at first.
        memory: Value,
    },
    /// A random message from outside.
    Client {
        /// Which of them, counted from 0.
        n: u64,
        /// A number of 53 bits.
        random: u64,
    },
    /// The message of which a log tells this.
    External {
        /// Type tag.
        #[serde(rename = "type")]
        type_: String,
        /// Full content.
        payload: String,
        /// Structured content.
        fields: Value,
    },
}

/// What an actor of a stateful model took.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The sender; null for timers and messages from outside.
    pub from: Option<String>,
    /// The message; null for the start, which comes first.
    pub message: Option<Message>,
    /// The random number of that question.
    pub random: u64,
}

/// A line that a child writes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// The answer to the greeting.
    Hello {
        /// Number of the request.
        id: u64,
        /// The greeting.
        hello: Hello,
    },
    /// The answer to questions.
    Answers {
        /// Number of the request.
        id: u64,
        /// One answer for each question, in their order.
        answers: Vec<Answer>,
    },
    /// The child cannot answer.
    Error {
        /// Number of the request.
        id: u64,
        /// Why.
        error: String,
    },
}

/// The answer to a question: which of them it is depends on the question.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    /// To `start` and `deliver`.
    Reacted(Reacted),
    /// To `check`.
    Checked(Checked),
    /// To `client`.
    Proposed(Proposed),
    /// To `external`.
    Made(Made),
}
