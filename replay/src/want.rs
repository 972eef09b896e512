//! What a step wants delivered, and which pending entry that is.

use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Step, StepKind};

use crate::model::{ExternalMessage, Model};
use crate::names::{ActorId, OUTSIDE, TextId};
use crate::network;
use crate::pending::{Pending, PendingKind};
use crate::queue::Place;
use crate::sim::{MsgId, MsgInfo, Simulator};
use crate::world::World;

/// Which message or timer a step wants delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Want {
    /// The sender it names; not compared for timers.
    pub from: ActorId,
    /// The receiver.
    pub to: ActorId,
    /// Type tag.
    pub type_: TextId,
    /// What its message has in common with those of other types that may come in its place.
    pub role: Option<TextId>,
    /// Full content.
    pub payload: TextId,
    /// Content under the masks.
    pub fingerprint: TextId,
    /// Whether it is a timer.
    pub timer: bool,
    /// For timers: the name, where several of the actor's timers look alike. Where none has it another one serves.
    pub which: Option<TextId>,
    /// For messages from outside: the message, injected if it is not pending.
    pub external: Option<MsgId>,
    /// Whether it is the copy of a message that the network made. Another of the same content serves where there is none.
    pub copy: bool,
    /// How the message's clock stood to the receiver's: −1 older, 0 same, 1 newer, if both have one.
    pub clock: Option<i8>,
}

/// Why an act could not be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What is wanted is not pending.
    NotPending,
    /// The receiver of this pending entry does not take it.
    NotTaken(usize),
    /// The network holds this pending entry back.
    Held(usize),
    /// The model refuses the action.
    Action(String),
    /// The model's code panicked; the world goes no further ([`World::panic`]).
    Panicked,
}

fn message_of(step: &Step) -> ExternalMessage<'_> {
    let type_ = step.type_.as_deref().unwrap_or("");
    let payload = step.payload.as_deref().unwrap_or("");
    ExternalMessage { type_, payload, fields: step.fields.as_ref() }
}

pub(crate) fn sends_itself<M: Model>(sim: &Simulator<M>, step: &Step) -> bool {
    sim.model().logs().sends_itself(message_of(step))
}

pub(crate) fn external_message<M: Model>(sim: &mut Simulator<M>, step: &Step) -> Result<MsgId, String> {
    let message = message_of(step);
    let msg = told(sim, message)?;
    Ok(sim.intern_outside(msg, message.fields))
}

/// The message from outside that a schedule or log describes.
pub(crate) fn told<M: Model>(sim: &mut Simulator<M>, message: ExternalMessage<'_>) -> Result<M::Msg, String> {
    let model = sim.model().clone();
    model.logs().external(message, sim.names_mut()).or_else(|reason| {
        let proposed = model.workload().bootstrap(sim.names()).into_iter().map(|proposal| proposal.msg);
        let is_it = |msg: &M::Msg| model.logs().payload(msg, sim.names()) == message.payload;
        proposed.into_iter().find(is_it).ok_or(reason)
    })
}

/// What a `deliver`, `timer` or `duplicate` step at an actor wants.
pub(crate) fn want<M: Model>(sim: &mut Simulator<M>, step: &Step, to: ActorId) -> Result<Want, String> {
    let type_text = step.type_.as_deref().unwrap_or("");
    let payload_text = step.payload.as_deref().unwrap_or("");
    let timer = step.kind == StepKind::Timer;
    let from = match step.from.as_deref() {
        Some(name) => sim.names_mut().id(name),
        None if timer => to,
        None => OUTSIDE,
    };
    let external = if step.external == Some(true) && !timer && !sends_itself(sim, step) {
        Some(external_message(sim, step)?)
    } else {
        None
    };
    let masked = step.fingerprint.as_deref().unwrap_or(payload_text);
    let name = step.timer.as_ref().filter(|_| timer).and_then(|timer| timer.name.as_deref());
    let which = name.map(|name| sim.intern_text(name));
    Ok(Want {
        from,
        to,
        type_: sim.intern_text(type_text),
        role: sim.role(type_text, payload_text),
        payload: sim.intern_text(payload_text),
        fingerprint: sim.fingerprint(type_text, masked),
        timer,
        which,
        external,
        copy: step.copy,
        clock: None,
    })
}

/// Whether an entry is the copy of a message that the network made.
fn is_copy(entry: &Pending) -> bool {
    let free = entry.kind == PendingKind::Message && !network::ordered(entry);
    free && entry.from != OUTSIDE && entry.via.is_none()
}

/// Whether another timer of the same actor carries the same.
fn looks_alike<M: Model>(sim: &Simulator<M>, world: &World<M>, entry: &Pending) -> bool {
    let payload = sim.info(entry.msg).payload;
    let timers = world.pending_at(Place::timers(entry.to)).map(|at| &world.pending()[at]);
    let mut others = timers.filter(|p| p.to == entry.to && p.kind.is_timer() && p.timer != entry.timer);
    others.any(|other| sim.info(other.msg).payload == payload)
}

impl Want {
    /// The want that asks for exactly this pending entry.
    #[must_use]
    pub fn of<M: Model>(sim: &Simulator<M>, world: &World<M>, entry: &Pending) -> Want {
        let info = sim.info(entry.msg);
        Want {
            from: entry.from,
            to: entry.to,
            type_: info.type_,
            role: info.role,
            payload: info.payload,
            fingerprint: info.fingerprint,
            timer: entry.kind.is_timer(),
            which: sim.timer_text(entry).filter(|_| looks_alike(sim, world, entry)),
            external: (entry.kind == PendingKind::External).then_some(entry.msg),
            copy: is_copy(entry),
            clock: sim.relative_clock(world, entry),
        }
    }

    /// Where the entry is pending.
    #[must_use]
    pub fn place(&self) -> Place {
        if self.timer { Place::timers(self.to) } else { Place::between(self.from, self.to) }
    }

    /// Whether the entry is between the same two actors, and of the same sort.
    #[must_use]
    pub fn same_place(&self, entry: &Pending) -> bool {
        self.to == entry.to && self.timer == entry.kind.is_timer() && (self.timer || self.from == entry.from)
    }

    /// Whether the entry is the one of several that look alike: a copy that the network made, where one is wanted, and none where none
    /// is; the timer of that name, where one is named.
    #[must_use]
    pub fn means<M: Model>(&self, sim: &Simulator<M>, entry: &Pending) -> bool {
        is_copy(entry) == self.copy && self.which.is_none_or(|name| sim.timer_text(entry) == Some(name))
    }

    /// Index of the oldest pending entry with exactly this content: of those that are [meant](Want::means), else of others, as far
    /// as there are any.
    #[must_use]
    pub fn find<M: Model>(&self, sim: &Simulator<M>, world: &World<M>) -> Option<usize> {
        let mut other = None;
        for at in world.pending_at(self.place()) {
            let p = &world.pending()[at];
            let info = sim.info(p.msg);
            // What a log does not show is compared where the schedule tells it.
            let alike = self.same_place(p)
                && info.payload == self.payload
                && (info.fingerprint == info.shown || self.fits(info));
            if alike && self.means(sim, p) {
                return Some(at);
            }
            other = other.or(alike.then_some(at));
        }
        other
    }

    /// Whether a message has the wanted fingerprint, which may leave out what logs do not show.
    #[must_use]
    pub fn fits<Msg>(&self, info: &MsgInfo<Msg>) -> bool {
        self.fingerprint == info.fingerprint || self.fingerprint == info.shown
    }

    /// Index of the pending entry to deliver now; a message from outside is put among the pending ones first.
    ///
    /// # Errors
    /// When there is none, or it may not be delivered now.
    pub fn locate<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        world: &mut World<M>,
        rule: NetworkRule,
    ) -> Result<usize, Refusal> {
        let index = match (self.find(sim, world), self.external) {
            (Some(index), _) => index,
            (None, Some(msg)) => sim.inject(world, self.to, msg).ok_or(Refusal::NotPending)?,
            (None, None) => return Err(Refusal::NotPending),
        };
        if !sim.takes(world, &world.pending()[index]) {
            return Err(Refusal::NotTaken(index));
        }
        if network::allows(rule, world.pending(), index) {
            return Ok(index);
        }
        // A second copy has no place in the order of the channel.
        let same = |at: &usize| {
            let (held, other) = (&world.pending()[index], &world.pending()[*at]);
            !network::ordered(other) && held.msg == other.msg && self.same_place(other)
        };
        let copy = world.pending_at(self.place()).find(same);
        copy.ok_or(Refusal::Held(index))
    }

    /// The want as text, for people.
    #[must_use]
    pub fn text<M: Model>(&self, sim: &Simulator<M>) -> String {
        let payload = sim.text(self.payload);
        if self.timer {
            format!("timer {payload} of {}", sim.names().get(self.to))
        } else {
            format!("{} -> {}: {payload}", sim.names().get(self.from), sim.names().get(self.to))
        }
    }
}
