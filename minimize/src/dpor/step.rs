//! Steps of an exploration, worlds in which each pending entry has a name of its own, and when two steps depend on
//! each other.

use demi_replay::script::Act;
use demi_replay::{ActorId, Did, Model, Pending, PendingKind, Simulator, Status, World, network};
use demi_schemas::NetworkRule;

/// A delivery that can happen, named by what sent it and as the how manieth: the same in all orders in which what
/// happened before it at its sender is the same. Each happens at most once.
pub type Proc = u64;

/// What is there from the beginning was sent by nobody.
pub const NOBODY: Proc = 0;

/// The name of the `k`-th thing that `creator` brought about.
pub fn named(creator: Proc, k: u64) -> Proc {
    let z = (creator.rotate_left(29) ^ k).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)).max(1)
}

/// A step that was made, or is known from another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Which.
    pub proc: Proc,
    /// What made it possible.
    pub creator: Proc,
    /// The cell it works on.
    pub place: u16,
    /// Whether an invariant may look different after it.
    pub visible: bool,
    /// Whether it starts, stops or cuts off actors, ends that, or runs outside of them: its order to everything matters.
    pub global: bool,
}

impl Step {
    /// Whether the order of two steps that are both possible matters: they work on the same cell, or an invariant
    /// that reads both could tell.
    #[must_use]
    pub fn conflicts(&self, other: &Step) -> bool {
        self.place == other.place || (self.visible && other.visible) || self.global || other.global
    }

    /// Whether one must stay before the other, be it that it made it possible.
    #[must_use]
    pub fn depends(&self, other: &Step) -> bool {
        self.conflicts(other) || self.creator == other.proc || other.creator == self.proc
    }
}

/// A world whose pending entries have names.
#[derive(Debug)]
pub struct Tracked<M: Model> {
    /// The world.
    pub world: World<M>,
    /// The name and the creator of each pending entry.
    pub names: Vec<(Proc, Proc)>,
    /// How many of the faults have happened.
    pub faults: usize,
}

impl<M: Model> Clone for Tracked<M> {
    fn clone(&self) -> Self {
        Tracked { world: self.world.clone(), names: self.names.clone(), faults: self.faults }
    }
}

/// A pending entry with its name and that of its creator.
pub type Named = (Pending, (Proc, Proc));

impl<M: Model> Tracked<M> {
    /// What is pending, with names.
    pub fn named(&self) -> impl Iterator<Item = Named> {
        self.world.pending().iter().copied().zip(self.names.iter().copied())
    }
}

/// A step that is possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Deliver the pending entry of that index.
    Deliver(usize),
    /// Let the next fault happen.
    Fault,
}

/// What steps are made with.
pub struct Ground<'a, M: Model> {
    /// The simulator.
    pub sim: &'a mut Simulator<M>,
    /// The rule.
    pub rule: NetworkRule,
    /// Faults, actions and starts, which happen in this order among themselves, at any time.
    pub faults: &'a [Act],
    /// Names and arguments of the actions.
    pub actions: &'a [(String, Option<serde_json::Value>)],
}

impl<M: Model> Ground<'_, M> {
    /// A world to begin with, in which what is pending was sent by nobody.
    #[must_use]
    pub fn begin(&self, world: World<M>) -> Tracked<M> {
        let names = (0..world.pending().len()).map(|k| (named(NOBODY, k as u64), NOBODY)).collect();
        Tracked { world, names, faults: 0 }
    }

    /// What is possible, with names.
    pub fn possible(&self, at: &Tracked<M>, into: &mut Vec<(Proc, Choice)>) {
        into.clear();
        for index in 0..at.world.pending().len() {
            if self.sim.deliverable(&at.world, index, self.rule) {
                into.push((at.names[index].0, Choice::Deliver(index)));
            }
        }
        if let Some(act) = self.faults.get(at.faults)
            && self.can_fail(&at.world, act)
        {
            into.push((self.fault_name(at.faults), Choice::Fault));
        }
    }

    fn can_fail(&self, world: &World<M>, act: &Act) -> bool {
        match act {
            Act::Crash(a) => matches!(world.status(*a), Status::Running | Status::Isolated),
            Act::Restart(a) => world.status(*a) == Status::Crashed,
            Act::Heal(a) => world.status(*a) == Status::Isolated,
            Act::Duplicate(want) => want.find(self.sim, world).is_some(),
            _ => true,
        }
    }

    fn fault_name(&self, at: usize) -> Proc {
        named(u64::MAX, at as u64)
    }

    /// What a choice would be as a step, if that is known before it is made: all but `visible` and `global` of
    /// deliveries.
    fn outline(&self, at: &Tracked<M>, choice: Choice) -> Step {
        match choice {
            Choice::Deliver(index) => {
                let (proc, creator) = at.names[index];
                let place = self.place(at.world.pending()[index].to);
                Step { proc, creator, place, visible: false, global: false }
            }
            Choice::Fault => {
                let act = &self.faults[at.faults];
                let creator = if at.faults == 0 { NOBODY } else { self.fault_name(at.faults - 1) };
                let place = act.actor().map_or(0, |actor| self.place(actor));
                // Who fails while it is cut off can be sent to again, so to all who send the order matters.
                let cut_off = act.actor().is_some_and(|a| at.world.status(a) == Status::Isolated);
                let local = matches!(act, Act::Crash(_) | Act::Restart(_)) && !cut_off;
                Step { proc: self.fault_name(at.faults), creator, place, visible: true, global: !local }
            }
        }
    }

    fn place(&self, actor: ActorId) -> u16 {
        self.sim.cell_of(actor).0
    }

    /// Makes a step; gives it with what is pending no more because of it. Nothing if the choice turns out to be
    /// impossible.
    pub fn make(&mut self, at: &mut Tracked<M>, choice: Choice) -> Option<(Step, Vec<Named>)> {
        let mut step = self.outline(at, choice);
        let before: Vec<Named> = at.named().collect();
        match choice {
            Choice::Deliver(index) => {
                let was = at.world.clone();
                let entry = before[index].0;
                let overtaken = |other: usize, pending: &Pending| {
                    self.rule == NetworkRule::FifoLoss
                        && other < index
                        && network::same_channel(pending, &entry)
                };
                let stays =
                    |(other, (pending, _)): &(usize, Named)| *other != index && !overtaken(*other, pending);
                let mut kept: Vec<Named> =
                    before.iter().copied().enumerate().filter(stays).map(|(_, named)| named).collect();
                if entry.kind == PendingKind::Repeating {
                    kept.push((entry, (named(step.proc, u64::MAX), step.proc)));
                }
                self.sim.deliver(&mut at.world, index, self.rule);
                step.global = self.sim.did().iter().any(|d| d.failed().is_some());
                step.visible = step.global || self.looks_different(&was, &at.world, entry.to);
                self.rename(at, kept, step.proc);
            }
            Choice::Fault => {
                let kept = before.clone();
                let act = self.faults[at.faults];
                act.perform(self.sim, &mut at.world, self.actions, self.rule).ok()?;
                at.faults += 1;
                self.rename(at, kept, step.proc);
            }
        }
        // What is left of it is still in its order.
        let mut still = at.names.iter().peekable();
        let gone = |named: &Named| named.1.0 != step.proc && still.next_if(|n| **n == named.1).is_none();
        let mut lost = before;
        lost.retain(gone);
        Some((step, lost))
    }

    fn looks_different(&self, before: &World<M>, after: &World<M>, actor: ActorId) -> bool {
        let (was, is) = (self.sim.watch(before, actor), self.sim.watch(after, actor));
        match (was, is) {
            (Some(was), Some(is)) => was != is,
            _ => {
                let cell = usize::from(self.place(actor));
                before.cells().get(cell) != after.cells().get(cell)
            }
        }
    }

    /// Names what is pending after a step: what was there keeps its name, the rest was created by `creator`.
    fn rename(&self, at: &mut Tracked<M>, mut kept: Vec<Named>, creator: Proc) {
        for did in self.sim.did() {
            if let Did::TimerCancelled(gone) = did
                && let Some(index) = kept
                    .iter()
                    .position(|(p, _)| p.to == gone.to && p.kind.is_timer() && p.timer == gone.timer)
            {
                kept.remove(index);
            }
        }
        let mut kept = kept.into_iter().peekable();
        let mut fresh = 0;
        at.names.clear();
        for pending in at.world.pending() {
            // What is gone otherwise went with the incarnation of an actor.
            while kept.peek().is_some_and(|(p, _)| p != pending) {
                kept.next();
            }
            let name = kept.next().map(|(_, name)| name).unwrap_or_else(|| {
                fresh += 1;
                (named(creator, fresh - 1), creator)
            });
            at.names.push(name);
        }
    }

    /// A delivery as a step, as far as it is known before it happens.
    #[must_use]
    pub fn outlined(&self, (entry, (proc, creator)): &Named) -> Step {
        Step { proc: *proc, creator: *creator, place: self.place(entry.to), visible: false, global: false }
    }

    /// What a delivery would be as a step if it happened in the world `before` an earlier step at the same place.
    /// Nothing where it would not be taken there.
    pub fn instead(&mut self, before: &World<M>, entry: &Pending, step: Step) -> Option<Step> {
        if !matches!(before.status(entry.to), Status::Running | Status::Isolated) {
            return None;
        }
        let state = before.cells().get(usize::from(step.place))?.as_ref()?;
        if !self.sim.accepts(state, entry) {
            return None;
        }
        let mut after = M::State::clone(state);
        let global = self.sim.react(&mut after, entry).ok()?.is_none();
        let watch = |state: &M::State| self.sim.watch_state(state);
        let differs = match (watch(state), watch(&after)) {
            (Some(was), Some(is)) => was != is,
            _ => **state != after,
        };
        Some(Step { visible: global || differs, global, ..step })
    }
}
