//! How messages are written in logs: as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The text of a message.
pub(crate) fn write<T: Serialize>(msg: &T) -> String {
    serde_json::to_string(msg).unwrap_or_default()
}

/// The message of a text.
pub(crate) fn read<T: DeserializeOwned>(payload: &str) -> Result<T, String> {
    serde_json::from_str(payload).map_err(|e| format!("'{payload}': {e}"))
}
