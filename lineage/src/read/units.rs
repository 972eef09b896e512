//! Units: what happens as one step. A handler is atomic: its delivery with everything the actor logged until the next.
//!
//! A message reaches a unit only at its head, so the order of units is as free of cycles as the order of events is.

use demi_schemas::{Kind, Via};

use super::events::Events;
use super::intern::NONE;

/// The role of an event in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitRole {
    /// Begins a unit: a delivery, or a change of an actor's incarnation.
    Head,
    /// Belongs to the unit begun before it.
    Member,
    /// A unit by itself, with no cause in the log around it: of the environment, or of a thread outside the handlers.
    Alone,
}

/// The role of an event.
pub(crate) fn role(kind: Kind, via: Option<Via>, in_environment: bool) -> UnitRole {
    match kind {
        _ if in_environment => UnitRole::Alone,
        Kind::Send | Kind::TimerSet if via == Some(Via::Thread) => UnitRole::Alone,
        Kind::Start
        | Kind::Receive
        | Kind::TimerFire
        | Kind::Crash
        | Kind::Restart
        | Kind::Stop
        | Kind::Isolate
        | Kind::Heal
        | Kind::Action => UnitRole::Head,
        _ => UnitRole::Member,
    }
}

/// The units of all events, numbered in the order of their first events.
pub(crate) struct Units {
    /// By event: its unit.
    of: Vec<u32>,
    /// By unit: its first event.
    first: Vec<u32>,
    /// By unit: the next one in the actor's order, or [`NONE`]; always `NONE` for units alone.
    next: Vec<u32>,
    /// By unit: whether it has no cause in the log around it.
    alone: Vec<bool>,
}

impl Units {
    /// The unit of an event.
    pub(crate) fn unit_of(&self, event: u32) -> u32 {
        self.of[event as usize]
    }

    /// The first event of a unit.
    pub(crate) fn first(&self, unit: u32) -> u32 {
        self.first[unit as usize]
    }

    /// The next unit in the actor's order, or [`NONE`]; always `NONE` for units alone.
    pub(crate) fn next(&self, unit: u32) -> u32 {
        self.next[unit as usize]
    }

    /// Whether a unit has no cause in the log around it.
    pub(crate) fn is_alone(&self, unit: u32) -> bool {
        self.alone[unit as usize]
    }
}

impl Units {
    /// Cuts all logs into units. `causes` says which events have causes beside a message they received, sorted: each begins a unit.
    pub(crate) fn new(events: &Events, causes: &[(u32, u32)]) -> Units {
        let caused = |e: u32| causes.binary_search_by_key(&e, |c| c.1).is_ok();
        let mut units =
            Units { of: vec![NONE; events.len()], first: Vec::new(), next: Vec::new(), alone: Vec::new() };
        for actor in 0..events.actors.len() as u32 {
            let mut open = NONE;
            for e in events.of_actor(actor) {
                let role = match role(events.kind[e as usize], events.via(e), events.in_environment(e)) {
                    UnitRole::Member if !causes.is_empty() && caused(e) => UnitRole::Head,
                    role => role,
                };
                let unit = if role == UnitRole::Member && open != NONE {
                    open
                } else {
                    let unit = units.first.len() as u32;
                    units.first.push(e);
                    units.next.push(NONE);
                    units.alone.push(role == UnitRole::Alone);
                    if role != UnitRole::Alone {
                        if open != NONE {
                            units.next[open as usize] = unit;
                        }
                        open = unit;
                    }
                    unit
                };
                units.of[e as usize] = unit;
            }
        }
        units
    }

    /// Whether any unit has no cause in the log around it.
    pub(crate) fn some_alone(&self) -> bool {
        self.alone.contains(&true)
    }

    /// How many units there are.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// The events of a unit, in order.
    pub(crate) fn events<'a>(&'a self, events: &Events, unit: u32) -> impl Iterator<Item = u32> + use<'a> {
        let first = self.first[unit as usize];
        let end = if self.alone[unit as usize] {
            first + 1
        } else {
            match self.next[unit as usize] {
                NONE => events.first[events.actor[first as usize] as usize + 1],
                next => self.first[next as usize],
            }
        };
        (first..end).filter(move |&e| self.of[e as usize] == unit)
    }
}
