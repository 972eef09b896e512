//! Who sent a message, as its receiver logs it.

use demi_schemas::Via;
use demi_schemas::event::DEAD_LETTERS;

use crate::read::{Events, NONE};

/// The sender's name as receivers log it: messages put through a scheduler come from nobody.
pub(crate) fn sender_name(events: &Events, send: u32, dead_letters: u32) -> u32 {
    match events.via(send) {
        Some(Via::Scheduler) => dead_letters,
        _ => match events.from[send as usize] {
            NONE => events.actors[events.actor[send as usize] as usize],
            from => from,
        },
    }
}

/// The name for messages that no actor sent.
pub(crate) fn dead_letters(events: &Events) -> u32 {
    events.names.find(DEAD_LETTERS).unwrap_or(NONE - 1)
}
