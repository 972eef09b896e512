//! All events of a system, column-wise and in each actor's own order: about 70 bytes an event.

use demi_schemas::event::ENVIRONMENT;
use demi_schemas::{EventId, Kind, Via};

use crate::intern::{Interner, NONE};

/// Bits of [`Events::flags`].
pub(crate) const EXTERNAL: u8 = 1;
/// The record says that the message is not external.
pub(crate) const INTERNAL: u8 = 2;
/// The record has a `msg_id`.
pub(crate) const HAS_ID: u8 = 4;
const VIA_SHIFT: u8 = 3;

/// The flag bits of a `via`.
pub(crate) fn via_bits(via: Option<Via>) -> u8 {
    let code = match via {
        None => 0,
        Some(Via::Forward) => 1,
        Some(Via::Scheduler) => 2,
        Some(Via::Thread) => 3,
        Some(Via::Ask) => 4,
    };
    code << VIA_SHIFT
}

/// Events sorted by actor name, life and position; an event is known by its index.
#[derive(Default)]
pub(crate) struct Events {
    /// Actor names, addresses and types.
    pub(crate) names: Interner,
    /// Name of each actor that has a log, sorted by text.
    pub(crate) actors: Vec<u32>,
    /// First event of each actor; one more entry closes the last.
    pub(crate) first: Vec<u32>,
    /// By name: the actor's number, or [`NONE`] where no log has that owner.
    pub(crate) actor_of_name: Vec<u32>,
    /// Number of the actor.
    pub(crate) actor: Vec<u32>,
    /// Life of the actor.
    pub(crate) life: Vec<u32>,
    /// Position in the log of that life.
    pub(crate) seq: Vec<u64>,
    /// What it was.
    pub(crate) kind: Vec<Kind>,
    /// External or not, whether there is an id, and how it was sent.
    pub(crate) flags: Vec<u8>,
    /// Name of the sender as logged.
    pub(crate) from: Vec<u32>,
    /// Name of the receiver as logged.
    pub(crate) to: Vec<u32>,
    /// Message type.
    pub(crate) type_: Vec<u32>,
    /// 128-bit hash of the message id; emptied after matching.
    pub(crate) id: Vec<u128>,
    /// 128-bit hash of the fingerprint, else of the payload; emptied after matching.
    pub(crate) content: Vec<u128>,
    /// Number of the actor named `_environment`, or [`NONE`].
    pub(crate) environment: u32,
    /// `fields` of `violation` records, by event.
    pub(crate) violations: Vec<(u32, Option<String>)>,
}

impl Events {
    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.kind.len()
    }

    /// How the message was sent, where that is special.
    pub(crate) fn via(&self, e: u32) -> Option<Via> {
        match self.flags[e as usize] >> VIA_SHIFT {
            1 => Some(Via::Forward),
            2 => Some(Via::Scheduler),
            3 => Some(Via::Thread),
            4 => Some(Via::Ask),
            _ => None,
        }
    }

    /// Whether the event's record has a flag.
    pub(crate) fn has(&self, e: u32, flag: u8) -> bool {
        self.flags[e as usize] & flag != 0
    }

    /// Whether the event is in the environment's log.
    pub(crate) fn in_environment(&self, e: u32) -> bool {
        self.actor[e as usize] == self.environment
    }

    /// The events of an actor.
    pub(crate) fn of_actor(&self, actor: u32) -> std::ops::Range<u32> {
        self.first[actor as usize]..self.first[actor as usize + 1]
    }

    /// The actor's name.
    pub(crate) fn actor_name(&self, actor: u32) -> &str {
        self.actors.get(actor as usize).map_or("", |&name| self.names.text(name))
    }

    /// The number of the actor of that name, if it has a log.
    pub(crate) fn find_actor(&self, name: &str) -> Option<u32> {
        let actor = self.actor_of_name[self.names.find(name)? as usize];
        (actor != NONE).then_some(actor)
    }

    /// The event of that name, if there is one.
    pub(crate) fn find(&self, id: &EventId) -> Option<u32> {
        let range = self.of_actor(self.find_actor(&id.actor)?);
        let key = (id.incarnation, id.seq);
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.life[middle as usize], self.seq[middle as usize]) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < range.end && (self.life[low as usize], self.seq[low as usize]) == key).then_some(low)
    }

    /// The event's name.
    pub(crate) fn name(&self, e: u32) -> EventId {
        let e = e as usize;
        EventId {
            actor: self.actor_name(self.actor[e]).to_owned(),
            incarnation: self.life[e],
            seq: self.seq[e],
        }
    }

    /// Names of the actors that are no mere recorders.
    pub(crate) fn ordinary_actors(&self) -> impl Iterator<Item = &str> {
        self.actors
            .iter()
            .map(|&n| self.names.text(n))
            .filter(|n| *n != ENVIRONMENT && *n != demi_schemas::event::MONITOR)
    }

    /// The actor's name among receivers: who a message to that address reaches, or [`NONE`].
    pub(crate) fn receiver(&self, e: u32) -> u32 {
        match self.to[e as usize] {
            NONE => NONE,
            name => self.actor_of_name[name as usize],
        }
    }
}

/// Whether events of this kind put a message or timer on its way.
pub(crate) fn is_send(kind: Kind) -> bool {
    matches!(kind, Kind::Send | Kind::TimerSet)
}
