//! What can go wrong while a slice is chosen or written.

use demi_schemas::event_id::EventIdError;

use crate::error::LineageError;

/// An error of exporting.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The execution cannot be read.
    #[error(transparent)]
    Lineage(#[from] LineageError),
    /// The text names no event.
    #[error(transparent)]
    EventName(#[from] EventIdError),
    /// There is no such event.
    #[error("no event '{name}': {has}")]
    NoEvent {
        /// The name given.
        name: String,
        /// What there is.
        has: String,
    },
    /// There is no such actor.
    #[error("no actor '{name}'; actors: {actors}")]
    NoActor {
        /// The name given.
        name: String,
        /// Who there is, at most twenty.
        actors: String,
    },
    /// The events are not one before the other.
    #[error("{from} does not happen before {to}: nothing lies between them")]
    NotBefore {
        /// The first event.
        from: String,
        /// The second.
        to: String,
    },
    /// The slice is empty.
    #[error("no event is left of the {0} of the execution")]
    Nothing(usize),
    /// The output could not be written.
    #[error("writing: {0}")]
    Io(#[from] std::io::Error),
    /// A value could not be written as JSON.
    #[error("writing: {0}")]
    Json(#[from] serde_json::Error),
}
