//! What an event of a slice says.

/// The content of an event, as logged; absent fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Joins a send to its receive.
    pub msg_id: Option<Box<str>>,
    /// Sender address as logged.
    pub from: Option<Box<str>>,
    /// Receiver address as logged.
    pub to: Option<Box<str>>,
    /// Message type tag.
    pub type_: Option<Box<str>>,
    /// Full content.
    pub payload: Option<Box<str>>,
    /// Structured content, as JSON text.
    pub fields: Option<Box<str>>,
    /// Variables of the actor, as JSON text.
    pub state: Option<Box<str>>,
    /// Wall-clock time as logged.
    pub time: Option<Box<str>>,
    /// Why the event was kept or left out.
    pub reason: Option<Box<str>>,
    /// Whether it came from outside the recorded actors.
    pub external: bool,
    /// File of the raw log line.
    pub source: Option<Box<str>>,
    /// Byte offset of the raw log line.
    pub offset: Option<u64>,
}
