//! Looking at a world: for invariants, bounds and matching.

use std::borrow::Cow;

use super::Simulator;
use super::effects::named;
use crate::guard::{self, Panic};
use crate::model::{DistanceOf, Model, View, Violation, Waiting};
use crate::names::{ActorId, OUTSIDE, TextId};
use crate::pending::Pending;
use crate::world::World;

impl<M: Model> Simulator<M> {
    /// The name of a timer entry, which its key is part of unless it is 0. Unique within its actor.
    #[must_use]
    pub fn timer_name(&self, entry: &Pending) -> Cow<'static, str> {
        self.timers.get(usize::from(entry.timer)).copied().map_or(Cow::Borrowed(""), named)
    }

    /// The id of the [name](Simulator::timer_name) of a timer entry.
    #[must_use]
    pub fn timer_text(&self, entry: &Pending) -> Option<TextId> {
        self.timer_texts.get(usize::from(entry.timer)).filter(|_| entry.kind.is_timer()).copied()
    }

    /// A number for the timer of an entry: equal timers have equal ones in any simulator. 0 for messages.
    #[must_use]
    pub fn timer_key(&self, entry: &Pending) -> u128 {
        let timer = entry.kind.is_timer().then(|| self.timer_keys.get(usize::from(entry.timer)));
        timer.flatten().copied().unwrap_or_default()
    }

    /// What invariants and conditions may look at.
    #[must_use]
    pub fn view<'a>(&'a self, world: &'a World<M>) -> View<'a, M::State> {
        View::new(world, &self.model, &self.names)
    }

    /// The cell of memory that an actor works on.
    #[must_use]
    pub fn cell_of(&self, actor: ActorId) -> ActorId {
        guard::or(actor, || self.model.runtime().cell(actor))
    }

    /// What is pending, as [estimates](crate::model::Estimate) see it.
    #[must_use]
    pub fn waiting<'a>(&'a self, world: &'a World<M>) -> Vec<Waiting<'a, M::Msg>> {
        let entry = |p: &'a Pending| Waiting { from: p.from, to: p.to, msg: &self.info(p.msg).msg };
        world.pending().iter().map(entry).collect()
    }

    /// How many deliveries are missing at least from a world to a violation; 0, which is always right, where the bound
    /// panics.
    #[must_use]
    pub fn lower_bound(&self, world: &World<M>, distance: &DistanceOf<M>) -> usize {
        guard::or(0, || (distance.lower_bound)(&self.view(world), &self.waiting(world)))
    }

    /// Whether the system is still starting up by itself.
    #[must_use]
    pub fn starting_up(&self, world: &World<M>) -> bool {
        let cell = self.cell_of(OUTSIDE).index();
        world
            .cells
            .get(cell)
            .and_then(Option::as_ref)
            .is_some_and(|state| guard::or(false, || self.model.runtime().starting_up(state)))
    }

    /// Checks the invariants on one configuration, with what earlier checks remembered. Where the step that led here was a
    /// [crash](Simulator::crashed), that is found; where an invariant panics, nothing.
    pub fn check(&self, world: &World<M>, history: &mut M::History, found: &mut Vec<Violation>) {
        // Who has to know why asks `judge`.
        let _ = self.judge(world, history, found);
    }

    /// As [`Simulator::check`].
    ///
    /// # Errors
    /// When an invariant panics, or the step that led here did and is no violation.
    pub fn judge(
        &self,
        world: &World<M>,
        history: &mut M::History,
        found: &mut Vec<Violation>,
    ) -> Result<(), Panic> {
        if let Some(panic) = world.panic() {
            // A handler that fails is a finding; where invariants fail nobody knows.
            return self.crashed(panic).map(|crash| found.push(crash)).ok_or_else(|| panic.clone());
        }
        let before = found.len();
        guard::guarded(|| self.model.check(&self.view(world), history, found)).map_err(|message| {
            found.truncate(before);
            Panic { actor: OUTSIDE, doing: "an invariant".to_owned(), message }
        })?;
        self.asserted.check(&self.model, &self.view(world), found).map_err(|message| {
            found.truncate(before);
            Panic { actor: OUTSIDE, doing: "an invariant".to_owned(), message }
        })?;
        if self.stuck_counts {
            self.stuck(world, found);
        }
        // Who cannot go on gets nowhere anyway.
        if found.len() == before {
            self.nowhere(world, found);
        }
        Ok(())
    }

    /// Checks the invariants on a configuration alone. Where one panics the world goes no further.
    pub fn judge_step(&self, world: &mut World<M>, found: &mut Vec<Violation>) {
        if let Err(panic) = self.judge(world, &mut M::History::default(), found) {
            world.panic = Some(std::sync::Arc::new(panic));
        }
    }

    /// What the handler of an entry is doing, for people.
    pub(super) fn handling(&self, entry: &Pending) -> String {
        let payload = self.text(self.info(entry.msg).payload);
        if entry.kind.is_timer() {
            format!("timer {} ({payload})", self.timer_name(entry))
        } else {
            payload.to_owned()
        }
    }

    /// A panic in words: in whose step, at what, and what it said.
    #[must_use]
    pub fn explain(&self, panic: &Panic) -> String {
        match panic.actor {
            OUTSIDE => format!("panic in {}: {}", panic.doing, panic.message),
            actor => format!("panic in {} at {}: {}", self.names().get(actor), panic.doing, panic.message),
        }
    }

    /// The number that changes when anything changes that an invariant reads of the cell that `actor` works on;
    /// `None` where the model does not say.
    #[must_use]
    pub fn watch(&self, world: &World<M>, actor: ActorId) -> Option<u64> {
        world.cells[self.cell_of(actor).index()].as_ref().and_then(|state| self.watch_state(state))
    }

    /// How an actor's clock stands to a message's when it would be delivered now: −1 the message is older, 0 the
    /// same, 1 newer; `None` where either has no clock.
    #[must_use]
    pub fn relative_clock(&self, world: &World<M>, entry: &Pending) -> Option<i8> {
        let message = self.infos[entry.msg.0 as usize].clock?;
        let cell = world.cells[self.cell_of(entry.to).index()].as_ref()?;
        let actor = self.actor_clock(cell)?;
        Some(message.cmp(&actor) as i8)
    }
}
