//! What one actor does with one entry, apart from any world: for searches that remember reactions instead of
//! running the handler again.

use super::Simulator;
use crate::guard::{self, Panic};
use crate::model::{Ctx, Effect, Model};
use crate::names::{ActorId, Names, OUTSIDE};
use crate::pending::{Pending, PendingKind};
use crate::vet::Vet;
use crate::watchdog;

/// Something a handler asked for, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A message, which becomes pending unless its receiver or sender is gone or cut off.
    Send(Pending),
    /// A timer, in place of a live one with its actor and number.
    SetTimer(Pending),
    /// The timer of this number ends, if it is live.
    CancelTimer(ActorId, u16),
}

/// What a handler asked for, before a simulator has given numbers to its messages and timers.
#[derive(Debug)]
pub struct Asked<Msg>(Vec<Effect<Msg>>);

/// Runs handlers beside a simulator that only looks on, so that several threads can do so at a time.
#[derive(Clone)]
pub struct Reactor<M: Model> {
    model: M,
    names: Names,
}

impl<M: Model> Reactor<M> {
    /// Runs the handler of an entry of a simulator on the state of its receiver's cell. Nothing where the [simulator](Simulator::react) has to run it
    /// itself: where it met actors that have no names yet, and where handlers run elsewhere first.
    ///
    /// # Errors
    /// When the handler panics. The state is left half done.
    pub fn react(
        &mut self,
        sim: &Simulator<M>,
        state: &mut M::State,
        entry: &Pending,
    ) -> Result<Option<Asked<M::Msg>>, Panic> {
        if sim.vet.is_some() {
            return Ok(None);
        }
        if self.names.len() != sim.names.len() {
            self.names = sim.names.clone();
        }
        sim.announce(entry);
        let msg = &sim.infos[entry.msg.0 as usize].msg;
        let (mut effects, mut crash_reason) = (Vec::new(), None);
        let mut ctx = Ctx {
            me: entry.to,
            from: entry.from,
            effects: &mut effects,
            names: &mut self.names,
            crash_reason: &mut crash_reason,
        };
        let delivered = guard::guarded(|| self.model.deliver(state, msg, &mut ctx));
        if self.names.len() != sim.names.len() {
            return Ok(None);
        }
        match delivered {
            Ok(()) => Ok(Some(Asked(effects))),
            Err(message) => Err(Panic { actor: entry.to, doing: sim.handling(entry), message }),
        }
    }
}

impl<M: Model> Simulator<M> {
    /// Whether the receiver of an entry, in that state, would take it.
    #[must_use]
    pub fn accepts(&self, state: &M::State, entry: &Pending) -> bool {
        let msg = &self.infos[entry.msg.0 as usize].msg;
        guard::or(false, || self.model.runtime().accepts(state, entry.to, entry.from, msg))
    }

    /// Runs the handler of an entry on the state of its receiver's cell alone and gives what it asked for.
    ///
    /// Nothing where it starts, stops or fails an actor: what follows from that depends on the world, and the entry
    /// has to be [delivered](Simulator::deliver) there. The state is then of no use.
    ///
    /// # Errors
    /// When the handler panics. The entry cannot be delivered, and the state is left half done.
    pub fn react(&mut self, state: &mut M::State, entry: &Pending) -> Result<Option<Vec<Op>>, Panic> {
        self.crash_reason = None;
        self.announce(entry);
        self.tell_outside(entry.msg, None);
        let mut ctx = Ctx {
            me: entry.to,
            from: entry.from,
            effects: &mut self.effects,
            names: &mut self.names,
            crash_reason: &mut self.crash_reason,
        };
        let msg = &self.infos[entry.msg.0 as usize].msg;
        let mut vetted =
            self.vet.as_mut().map(|vet| (Vet::deliver((entry.to, entry.from), &*state, msg), vet));
        let delivered = guard::guarded(|| {
            if let Some((call, vet)) = &mut vetted {
                vet.ask(call, ctx.names).unwrap_or_else(|how| guard::raise(how));
            }
            self.model.deliver(state, msg, &mut ctx);
        });
        if let Err(message) = delivered {
            self.effects.clear();
            return Err(Panic { actor: entry.to, doing: self.handling(entry), message });
        }
        if let Some((call, vet)) = vetted {
            vet.made(call, &*state, &self.effects);
        }
        let asked = Asked(std::mem::take(&mut self.effects));
        Ok(self.ops(asked))
    }

    /// What can run handlers beside this simulator, on a thread of its own.
    #[must_use]
    pub fn reactor(&self) -> Reactor<M> {
        Reactor { model: self.model.clone(), names: self.names.clone() }
    }

    /// What a handler asked for, in terms of entries. Nothing where it starts, stops or fails an actor.
    pub fn ops(&mut self, asked: Asked<M::Msg>) -> Option<Vec<Op>> {
        let ops = asked.0.into_iter().map(|effect| self.op(effect)).collect::<Option<Vec<Option<Op>>>>();
        ops.map(|ops| ops.into_iter().flatten().collect())
    }

    /// Tells the watchdog, where there is one, which handler runs next.
    pub(super) fn announce(&self, entry: &Pending) {
        if watchdog::watched() {
            let info = &self.infos[entry.msg.0 as usize];
            watchdog::handling(self.names.get(entry.to), self.text(info.type_), self.text(info.payload));
        }
    }

    /// An effect in terms of entries: nothing at all for what leaves the system, `None` where it depends on the world.
    fn op(&mut self, effect: Effect<M::Msg>) -> Option<Option<Op>> {
        Some(match effect {
            Effect::Send { to: OUTSIDE, .. } => None,
            Effect::Send { from, channel, to, msg, via, external } => {
                let kind = if external { PendingKind::External } else { PendingKind::Message };
                let msg = self.intern(msg);
                Some(Op::Send(Pending { from, to, channel, msg, kind, timer: 0, survives: false, via }))
            }
            Effect::SetTimer { timer, to, msg } => Some(Op::SetTimer(self.armed(timer, to, msg)?)),
            Effect::CancelTimer { timer, to } => Some(Op::CancelTimer(to, self.timer_number(timer)?)),
            Effect::Start(_) | Effect::Stop(_) | Effect::Crash => return None,
        })
    }
}
