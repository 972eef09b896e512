//! Calls of code that may panic, of which the panic is an error: models of users, and readers of files that anybody may have changed.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in such a call, so that the hook stays silent.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic in such a call happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Whether this thread is in such a call.
#[must_use]
pub fn is_catching() -> bool {
    CAUGHT.get()
}

/// Calls something. Nothing is printed where it panics.
///
/// # Errors
/// When it panics: what it said, and where in the source. What it was changing must not be used any more.
pub fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    install();
    let before = CAUGHT.replace(true);
    // What the call may have left half done is not used again, which is for the caller to see to.
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    CAUGHT.set(before);
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

/// Makes the process's panic hook pass over panics in such calls; all others reach the hook that was there.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CAUGHT.get() {
                let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
                PLACE.set(place.unwrap_or_default());
            } else {
                other(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_what_it_said_and_where() {
        let said = caught(|| -> u8 { panic!("no {}", 7) }).unwrap_err();
        assert!(said.starts_with("no 7 (") && said.contains("panics.rs:"), "{said}");
        assert_eq!(caught(|| 3), Ok(3));
        let nested = caught(|| caught(|| -> u8 { panic!("inner") }).unwrap_or(1) + 1);
        assert_eq!(nested, Ok(2), "a call within another leaves it guarded");
        assert!(!is_catching());
    }
}
