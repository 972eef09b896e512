//! What can go wrong with a child.

use std::fmt;

/// Longest part of a request that an error shows, in bytes.
const SHOWN: usize = 600;

/// A child did not do what the protocol says.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the model's process: {problem}{}{}", Request(.request), Stderr(.stderr))]
pub struct ChildError {
    /// What went wrong.
    pub problem: Problem,
    /// The request that caused it; empty where there was none.
    pub request: String,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It could not be started, or nobody listens on the socket.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It ended, or closed its output.
    #[error("it ended before it answered{0}")]
    Ended(String),
    /// It took too long.
    #[error("it did not answer within {0} s (timeout_seconds in the scenario)")]
    Late(u64),
    /// A line that is no JSON.
    #[error("it wrote what is no JSON: {0}")]
    Garbage(String),
    /// A line without an end.
    #[error("it wrote a line of more than {0} bytes")]
    Endless(usize),
    /// An answer to another request.
    #[error("it answered request {got}, but was asked request {asked}")]
    WrongId {
        /// The number of the request.
        asked: u64,
        /// The number of the answer, as written.
        got: String,
    },
    /// Another version of the protocol.
    #[error("it speaks '{0}', this program speaks 'demi-model/1'")]
    Version(String),
    /// A whole number that does not fit into 64 bits.
    #[error(
        "it wrote {0}, a whole number of more than 64 bits, which would be read as another number: write it as text"
    )]
    Wide(String),
    /// An answer that is not of the form that the protocol asks for.
    #[error("it answered in a form that the protocol does not know: {0}")]
    Form(String),
    /// It says itself that it failed.
    #[error("it reports: {0}")]
    Said(String),
    /// The same question was answered in two ways.
    #[error("it is not deterministic: asked the same twice, it answered {0} and then {1}")]
    Differs(String, String),
}

struct Request<'a>(&'a str);

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "\n  request: {}", cut(self.0)) }
    }
}

struct Stderr<'a>(&'a str);

impl fmt::Display for Stderr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.trim().is_empty() {
            Ok(())
        } else {
            write!(f, "\n  its standard error ends: {}", self.0.trim_end())
        }
    }
}

/// The beginning of a text, as far as an error shows it.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let mut end = SHOWN;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes)", &text[..end], text.len())
}
