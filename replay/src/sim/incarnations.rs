//! Actors start, fail, begin anew, are cut off and end.

use std::sync::Arc;

use super::{Did, Simulator};
use crate::guard::{self, Panic};
use crate::model::{Ctx, Model, Status};
use crate::names::{ActorId, OUTSIDE};
use crate::vet::{Vet, begun};
use crate::watchdog;
use crate::world::World;

impl<M: Model> Simulator<M> {
    /// Starts an actor; one that runs already is left as it is.
    pub fn start(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = None;
        self.start_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    pub(super) fn start_now(&mut self, world: &mut World<M>, actor: ActorId) {
        if world.panic.is_some() || matches!(world.status(actor), Status::Running | Status::Isolated) {
            return;
        }
        let cell = self.cell_of(actor);
        world.grow(actor.max(cell));
        let failed = world.status(actor) == Status::Crashed;
        world.set_status(actor, Status::Running);
        self.did.push(Did::Started(actor));
        let last = world.cells[cell.index()].clone();
        let mut ctx = Ctx {
            me: actor,
            from: OUTSIDE,
            effects: &mut self.effects,
            names: &mut self.names,
            crash_reason: &mut self.crash_reason,
        };
        let asked = ctx.effects.len();
        if watchdog::watched() {
            watchdog::handling(ctx.names.get(actor), "its start", "its start");
        }
        let mut vetted = self.vet.as_mut().map(|vet| (Vet::start(actor, last.as_deref(), failed), vet));
        let started = guard::guarded(|| {
            if let Some((call, vet)) = &mut vetted {
                vet.ask(call, ctx.names).unwrap_or_else(|how| guard::raise(how));
            }
            let mut state = begun(&self.model, (actor, cell), last, failed);
            self.model.start(Arc::make_mut(&mut state), &mut ctx);
            state
        });
        match started {
            Ok(state) => {
                if let Some((call, vet)) = vetted {
                    vet.made(call, &*state, &self.effects[asked..]);
                }
                world.cells[cell.index()] = Some(state);
            }
            Err(message) => {
                self.effects.truncate(asked);
                // Nobody runs without a state.
                world.set_status(actor, Status::Absent);
                world.panic = Panic::shared(actor, "start".to_owned(), message);
            }
        }
    }

    /// Makes an actor fail, as an injected fault.
    pub fn crash(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = Some("injected".into());
        world.grow(actor);
        self.crash_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    pub(super) fn crash_now(&mut self, world: &mut World<M>, actor: ActorId) {
        if !matches!(world.status(actor), Status::Running | Status::Isolated) {
            return;
        }
        self.did.push(Did::Crashed(actor));
        if self.model.runtime().restarts_by_itself() {
            self.restart_now(world, actor);
        } else {
            world.set_status(actor, Status::Crashed);
            world.pending.retain(|p| p.to != actor || !p.kind.is_timer() || p.survives);
        }
    }

    /// Begins the next incarnation of an actor; its inbox is kept.
    pub fn restart(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = None;
        world.grow(actor);
        self.restart_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    fn restart_now(&mut self, world: &mut World<M>, actor: ActorId) {
        world.pending.retain(|p| p.to != actor || !p.kind.is_timer() || p.survives);
        // Who runs fails first; who has failed stays so until it starts.
        if matches!(world.status(actor), Status::Running | Status::Isolated) {
            world.set_status(actor, Status::Crashed);
        }
        self.did.push(Did::Restarted(actor));
        self.start_now(world, actor);
    }

    /// Cuts an actor off: nothing it sends from now on, and nothing sent to it, becomes pending.
    pub fn isolate(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        if world.status(actor) == Status::Running {
            world.set_status(actor, Status::Isolated);
        }
    }

    /// Brings an actor that was cut off back on the network. What was sent meanwhile is lost.
    pub fn heal(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        if world.status(actor) == Status::Isolated {
            world.set_status(actor, Status::Running);
        }
    }

    /// Ends an actor for good, with everything pending for it.
    pub fn stop(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.stop_now(world, actor);
    }

    pub(super) fn stop_now(&mut self, world: &mut World<M>, actor: ActorId) {
        world.grow(actor);
        world.set_status(actor, Status::Stopped);
        world.pending.retain(|p| p.to != actor);
    }
}
