//! Names that live for ever: the simulator wants them for timers.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The one copy of a name that stays. A system has few timers that differ; each takes its text once.
pub(crate) fn kept(name: String) -> &'static str {
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}
