//! What a handler asked for happens: messages, timers, lives of actors.

use demi_schemas::event::Via;

use super::{Did, Simulator};
use crate::model::{Effect, Model};
use crate::names::{ActorId, OUTSIDE};
use crate::queue::Place;
use crate::world::{Pending, PendingKind, Status, World};

impl<M: Model> Simulator<M> {
    /// Applies the effects of a handler of `actor`, in order; those of actors it starts follow.
    pub(super) fn apply(&mut self, world: &mut World<M>, actor: ActorId) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { from, channel, to, msg, via, external } => {
                    self.sent(world, (from, channel, to), msg, via, external);
                }
                Effect::SetTimer { name, to, msg, repeats, survives } => {
                    let timer = self.timer_index(name);
                    self.cancel(world, to, timer);
                    let msg = self.intern(msg);
                    let kind = if repeats { PendingKind::Repeating } else { PendingKind::Timer };
                    let entry = Pending { from: to, to, channel: to, msg, kind, timer, survives, via: None };
                    world.pending.push(entry);
                    self.did.push(Did::TimerSet(entry));
                }
                Effect::CancelTimer { name, to } => {
                    let timer = self.timer_index(name);
                    self.cancel(world, to, timer);
                }
                Effect::Start(actor) => self.start_now(world, actor),
                Effect::Stop(actor) => self.stop_now(world, actor),
                Effect::Crash => self.crash_now(world, actor),
            }
        }
        // A started actor's own effects were collected in a new list.
        if self.effects.is_empty() {
            self.effects = effects;
        } else {
            self.apply(world, OUTSIDE);
        }
    }

    fn sent(
        &mut self,
        world: &mut World<M>,
        (from, channel, to): (ActorId, ActorId, ActorId),
        msg: M::Msg,
        via: Option<Via>,
        external: bool,
    ) {
        // What is sent to the outside leaves the system and is never recorded.
        if to == OUTSIDE {
            return;
        }
        let reaches = match world.status(to) {
            Status::Absent | Status::Stopped => return,
            Status::Isolated => false,
            Status::Running | Status::Crashed => world.status(channel) != Status::Isolated,
        };
        let msg = self.intern(msg);
        let kind = if external { PendingKind::External } else { PendingKind::Message };
        let entry = Pending { from, to, channel, msg, kind, timer: 0, survives: false, via };
        if reaches {
            world.pending.push(entry);
        }
        self.did.push(Did::Sent(entry));
    }

    pub(super) fn timer_index(&mut self, name: &'static str) -> u8 {
        let at = self.timers.iter().position(|&t| std::ptr::eq(t, name) || t == name).unwrap_or_else(|| {
            self.timers.push(name);
            self.timers.len() - 1
        });
        u8::try_from(at).unwrap_or(u8::MAX)
    }

    fn cancel(&mut self, world: &mut World<M>, actor: ActorId, timer: u8) {
        let is_it = |p: &Pending| p.to == actor && p.kind.is_timer() && p.timer == timer;
        let live = world.pending.at(Place::timers(actor)).find(|&at| is_it(&world.pending[at]));
        if let Some(at) = live {
            let entry = world.pending.remove(at);
            // A timer set and cancelled within one step never becomes visible.
            if let Some(set) = self.did.iter().rposition(|d| *d == Did::TimerSet(entry)) {
                self.did.remove(set);
            } else {
                self.did.push(Did::TimerCancelled(entry));
            }
        }
    }
}
