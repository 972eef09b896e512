//! Calls of a model's code that survive its panics.
//!
//! Models are written by users, so any of their functions may panic. Each is called through here. What the panic
//! means is for the caller to say; nothing is printed.

use std::panic;
use std::sync::Arc;

use demi_common::panics;

use crate::names::ActorId;
use crate::watchdog;

/// A step in which the model's code panicked. The step cannot be taken: its world goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    /// The actor whose step it was; [`OUTSIDE`](crate::OUTSIDE) for actions and what `fuzz` sends.
    pub actor: ActorId,
    /// Which of the model's functions panicked, with the message that it handled.
    pub doing: String,
    /// What it said, and where in the source.
    pub message: String,
}

/// Calls the model's code.
///
/// # Errors
/// When it panics: what it said, and where in the source. What it was changing must not be used any more.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let watched = !panics::is_catching() && watchdog::watched();
    if watched {
        watchdog::enter();
    }
    // What the call may have left half done is not used again: the caller breaks the world or takes a default.
    let outcome = panics::caught(call);
    if watched {
        watchdog::leave();
    }
    outcome
}

/// Ends the call of a handler as a panic does that says this: for models whose code runs elsewhere and failed there. Nothing is printed.
pub fn raise(text: String) -> ! {
    panic::resume_unwind(Box::new(text))
}

/// Calls the model's code; what it is taken to have said where it panics.
pub fn or<T>(default: T, call: impl FnOnce() -> T) -> T {
    guarded(call).unwrap_or(default)
}

impl Panic {
    pub(crate) fn shared(actor: ActorId, doing: String, message: String) -> Option<Arc<Panic>> {
        Some(Arc::new(Panic { actor, doing, message }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_what_it_is_taken_for() {
        assert_eq!(guarded(|| 3), Ok(3));
        assert_eq!(or(5, || panic!("x")), 5);
        let nested = guarded(|| or(1, || panic!("inner")) + 1);
        assert_eq!(nested, Ok(2), "a guarded call within another leaves it guarded");
    }
}
