//! Calls of a model's code that survive its panics.
//!
//! Models are written by users, so any of their functions may panic. Each is called through here. What the panic
//! means is for the caller to say; nothing is printed.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use crate::names::ActorId;
use crate::watchdog;

thread_local! {
    /// Whether this thread is in a guarded call, so that the hook stays silent.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Where the last guarded panic happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

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
    let before = GUARDED.replace(true);
    let watched = !before && watchdog::watched();
    if watched {
        watchdog::enter();
    }
    // What the call may have left half done is not used again: the caller breaks the world or takes a default.
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
    if watched {
        watchdog::leave();
    }
    outcome.map_err(|payload| {
        let said = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        let place = PLACE.take();
        if place.is_empty() { said } else { format!("{said} ({place})") }
    })
}

/// Ends the call of a handler as a panic does that says this: for models whose code runs elsewhere and failed there. Nothing is printed.
pub fn raise(text: String) -> ! {
    panic::resume_unwind(Box::new(text))
}

/// Calls the model's code; what it is taken to have said where it panics.
pub fn or<T>(default: T, call: impl FnOnce() -> T) -> T {
    guarded(call).unwrap_or(default)
}

/// Makes the process's panic hook pass over panics in guarded calls; all others reach the hook that was there.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
                PLACE.set(place.unwrap_or_default());
            } else {
                other(info);
            }
        }));
    });
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
    fn a_panic_becomes_what_it_said_and_where() {
        install();
        let said = guarded(|| -> u8 { panic!("no {}", 7) }).unwrap_err();
        assert!(said.starts_with("no 7 (") && said.contains("guard.rs:"), "{said}");
        assert_eq!(guarded(|| 3), Ok(3));
        assert_eq!(or(5, || panic!("x")), 5);
        let nested = guarded(|| or(1, || panic!("inner")) + 1);
        assert_eq!(nested, Ok(2), "a guarded call within another leaves it guarded");
        assert!(!GUARDED.get());
    }
}
