//! Logs of which the beginning is known, that of the first incarnation: what was counted in them, or is equal in content, was counted from the first on.

use demi_schemas::Kind;

use crate::read::{COUNTED, Events};

/// Complete logs: they begin with a start, and nothing is missing behind it.
pub(crate) struct CompleteLogs {
    /// By actor: the end of that part of its log; empty where nobody asks.
    end: Vec<u32>,
}

impl CompleteLogs {
    /// Of all logs.
    pub(crate) fn of(events: &Events) -> CompleteLogs {
        let end = |actor: u32| {
            let range = events.of_actor(actor);
            if events.kind[range.start as usize] != Kind::Start {
                return range.start;
            }
            let first = range.start;
            let (mut last, mut stopped) = ((0, 0), false);
            let follows = |e: &u32| {
                let here = events.places.get(*e);
                // What an incarnation wrote before it died may be lost, unless it says that it was its end.
                let next = stopped && here.0 == last.0 + 1 && here.1 == 1;
                // A start in the middle is that of another life, though nobody says so.
                let begins = events.kind[*e as usize] == Kind::Start && *e != first;
                let follows = here.0 == last.0 && here.1 == last.1 + 1 && (!begins || stopped);
                let is_next = follows || next;
                (last, stopped) = (here, events.kind[*e as usize] == Kind::Stop);
                is_next
            };
            first + range.take_while(follows).count() as u32
        };
        CompleteLogs { end: (0..events.actors.len() as u32).map(end).collect() }
    }

    /// Of all logs, if messages were counted in any.
    pub(crate) fn of_counted(events: &Events) -> CompleteLogs {
        match (0..events.len() as u32).any(|e| events.has(e, COUNTED)) {
            true => CompleteLogs::of(events),
            false => CompleteLogs { end: Vec::new() },
        }
    }

    /// Whether nothing is missing in the event's log up to it.
    pub(crate) fn until(&self, events: &Events, e: u32) -> bool {
        self.end.get(events.actor[e as usize] as usize).is_some_and(|end| e < *end)
    }
}
