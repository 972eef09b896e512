//! What a handler asked for happens: messages, timers, incarnations of actors.

use std::borrow::Cow;
use std::hash::Hash;

use demi_schemas::event::Via;
use xxhash_rust::xxh3::Xxh3;

use super::{Did, Simulator};

use crate::guard;
use crate::model::{Duplicates, Effect, Model, Status, Timer};
use crate::names::{ActorId, OUTSIDE};
use crate::pending::{Pending, PendingKind};
use crate::queue::Place;
use crate::world::World;

/// How many timers, told apart by name and key, one simulator has at most: their numbers have 16 bits.
const MOST_TIMERS: usize = 65_000;

/// How a timer of a name and a key is called.
pub(super) fn named((name, key): (&'static str, u64)) -> Cow<'static, str> {
    match key {
        0 => Cow::Borrowed(name),
        key => Cow::Owned(format!("{name}/{key}")),
    }
}

impl<M: Model> Simulator<M> {
    /// Applies the effects of a handler of `actor`, in order; those of actors it starts follow.
    pub(super) fn apply(&mut self, world: &mut World<M>, actor: ActorId) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { from, channel, to, msg, via, external } => {
                    self.sent(world, (from, channel, to), msg, via, external);
                }
                Effect::SetTimer { timer, to, msg } => match self.armed(timer, to, msg) {
                    Some(entry) => {
                        self.cancel(world, to, entry.timer);
                        world.pending.push(entry);
                        self.did.push(Did::TimerSet(entry));
                    }
                    None => {
                        self.crash_reason = Some(format!("there are more than {MOST_TIMERS} timers"));
                        self.crash_now(world, actor);
                    }
                },
                Effect::CancelTimer { timer, to } => {
                    if let Some(timer) = self.timer_number(timer) {
                        self.cancel(world, to, timer);
                    }
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

    /// Leaves a second copy of `pending[index]` among the pending ones and gives its index; `None` where that is no message
    /// that one actor sent another. A copy has no place in the order of its channel: what is sent again may come at any
    /// time.
    pub fn duplicate(&mut self, world: &mut World<M>, index: usize) -> Option<usize> {
        let original = *world.pending.get(index).filter(|p| p.kind == PendingKind::Message)?;
        let copy = Pending { channel: OUTSIDE, via: None, ..original };
        self.did.clear();
        self.crash_reason = None;
        self.did.push(Did::Sent(copy));
        world.pending.push(copy);
        Some(world.pending.len() - 1)
    }

    /// Whether a network that repeats messages may repeat this entry.
    #[must_use]
    pub fn may_repeat(&self, entry: &Pending) -> bool {
        let repeats = || {
            let (from, to, msg) = (entry.from, entry.to, &self.info(entry.msg).msg);
            self.model.runtime().duplicates_between(from, to, msg) == Duplicates::Any
        };
        entry.kind == PendingKind::Message && entry.via != Some(Via::Scheduler) && guard::or(false, repeats)
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

    /// The entry that stands for a timer while it is live; `None` where there are too many timers.
    pub(super) fn armed(&mut self, timer: Timer, to: ActorId, msg: M::Msg) -> Option<Pending> {
        let number = self.timer_number(timer)?;
        let msg = self.intern(msg);
        let kind = if timer.repeats { PendingKind::Repeating } else { PendingKind::Timer };
        let survives = timer.survives;
        Some(Pending { from: to, to, channel: to, msg, kind, timer: number, survives, via: None })
    }

    /// The number of a timer's name and key, which is given if they are new.
    pub(super) fn timer_number(&mut self, timer: Timer) -> Option<u16> {
        self.number_of((timer.name, timer.key))
    }

    /// The number of a name and a key.
    pub(super) fn number_of(&mut self, of: (&'static str, u64)) -> Option<u16> {
        let next = self.timers.len();
        if let Some(number) = self.timer_numbers.get(&of) {
            return Some(*number);
        }
        let number = u16::try_from(next).ok().filter(|_| next < MOST_TIMERS)?;
        self.timers.push(of);
        let mut key = Xxh3::new();
        of.hash(&mut key);
        self.timer_keys.push(key.digest128());
        let name = named(of);
        self.timer_texts.push(self.texts.intern(&name));
        self.timer_numbers.insert(of, number);
        Some(number)
    }

    fn cancel(&mut self, world: &mut World<M>, actor: ActorId, timer: u16) {
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
