//! How logs write what the model does: needed to follow recorded executions, and to read results.

use std::fmt::Debug;

use demi_schemas::event::TimerInfo;
use demi_schemas::scenario::Mask;
use serde_json::Value;

use crate::names::Names;

/// A message from outside, as a schedule or log describes it.
#[derive(Clone, Copy, Debug)]
pub struct ExternalMessage<'a> {
    /// Message type tag.
    pub type_: &'a str,
    /// Full content.
    pub payload: &'a str,
    /// Structured content, where the logger gave it.
    pub fields: Option<&'a Value>,
}

/// How the system's logs write messages, timers and states.
///
/// A model without it logs what `Debug` prints. Its messages from outside are those that
/// [`Workload::bootstrap`](super::Workload::bootstrap) proposes.
pub trait Logs<S: Debug, Msg: Debug> {
    /// Message type tag; for timers, the name of what they carry. By default the first word of what `Debug` prints.
    fn type_name(&self, msg: &Msg) -> String {
        let text = format!("{msg:?}");
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        text[..end].to_owned()
    }

    /// What a message has in common with those of other types that may come in its place in a shorter execution, such as that both answer
    /// a request. Nothing by default: then a step waits for a message of its own type.
    fn role(&self, type_: &str, payload: &str) -> Option<String> {
        let _ = (type_, payload);
        None
    }

    /// Full content of a message, exactly as the system logs it.
    fn payload(&self, msg: &Msg, names: &Names) -> String {
        let _ = names;
        format!("{msg:?}")
    }

    /// Re-creates a message from outside. Those that [`Workload::bootstrap`](super::Workload::bootstrap) proposes
    /// are found by their payload where this fails.
    ///
    /// # Errors
    /// What is missing or not understood.
    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        let _ = names;
        Err(format!("the model does not say how '{}' is re-created (Logs::external)", message.payload))
    }

    /// Whether a message that logs take for one from outside is sent by the model itself, by code of the system
    /// that runs outside its actors.
    fn sends_itself(&self, message: ExternalMessage<'_>) -> bool {
        let _ = message;
        false
    }

    /// What tells messages apart that are logged alike, such as the owner of a piece of code that is scheduled: it
    /// becomes part of their fingerprints.
    fn hidden(&self, msg: &Msg) -> Option<String> {
        let _ = msg;
        None
    }

    /// Rewritings of payloads before they are compared as fingerprints, such as hiding a timer's generation.
    fn masks(&self) -> Vec<Mask> {
        Vec::new()
    }

    /// What handlers read of a timer's message, as text; nothing, the default, stands for all of it. Timers of which they read the same are one to
    /// every search. A model whose timers carry what only tells them apart in logs, such as a generation, says so here; a mask alone does not, since
    /// handlers see what it hides.
    fn read_of_timer(&self, msg: &Msg) -> Option<String> {
        let _ = msg;
        None
    }

    /// What is logged of a timer besides its payload. The simulator fills in the name.
    fn timer_info(&self, msg: &Msg) -> TimerInfo {
        let _ = msg;
        TimerInfo::default()
    }

    /// An actor's variables, for people and for `state` records.
    fn describe(&self, state: &S, names: &Names) -> Value {
        let _ = names;
        Value::String(format!("{state:?}"))
    }
}

impl<S: Debug, Msg: Debug> Logs<S, Msg> for () {}
