//! Strict verification of what a test found, by code that shares nothing with matching.

use std::hash::Hash;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use demi_replay::script::{Act, Script, Want};
use demi_replay::{Model, OUTSIDE, Pending, PendingKind, Simulator, World, weight};
use demi_schemas::NetworkRule;
use xxhash_rust::xxh3::Xxh3;

use super::engine::Engine;
use super::trace_keys::Numbered;
use super::witness::{Checkpoints, Shared, Witness};
use crate::problem::size::size;

/// Witnesses among which all worlds may be divided, at most: some for each thread.
const WITNESSES: usize = 64;

impl<M: Model> Engine<M> {
    /// Re-runs executed acts from the beginning, step by step, with rules of its own: every step pending with
    /// exactly this content, first of its channel where the rule says so, and the violation at the end. Shares nothing
    /// with matching. Gives the witness with its worlds.
    ///
    /// What is asked besides is judged here too: repeated runs, and systems that must not break.
    pub(crate) fn verified(&mut self, acts: Vec<Act>) -> Option<Shared<M>> {
        if !self.recorded.suffices(&acts) {
            return None;
        }
        let repeat = self.problem.criteria.repeat;
        let (mut found, mut violating) = (None, 0);
        for left in (1..=repeat.runs).rev() {
            if violating >= repeat.least || violating + left < repeat.least {
                break;
            }
            if let Some(witness) = self.rerun(acts.clone()) {
                found = Some(witness);
                violating += 1;
            }
        }
        found.filter(|_| violating >= repeat.least && self.suits_others(&acts))
    }

    /// Whether no system that must not break does on the same schedule, and all that must do.
    fn suits_others(&self, acts: &[Act]) -> bool {
        let criteria = &self.problem.criteria;
        if criteria.also.is_empty() && criteria.still.is_empty() {
            return true;
        }
        let mut schedule = self.to_schedule(acts);
        schedule.header.exact = true;
        !criteria.breaks(&schedule, self.rule) && criteria.holds(&schedule, self.rule)
    }

    fn rerun(&mut self, acts: Vec<Act>) -> Option<Shared<M>> {
        match self.steps_through(acts) {
            Ok(witness) => {
                self.begun = true;
                Some(witness)
            }
            // Whoever asks for several runs knows that they differ.
            Err(Some(why)) if self.problem.criteria.repeat.runs == 1 => {
                self.problem.refusals.note(why);
                None
            }
            Err(_) => None,
        }
    }

    /// The witness of acts that all happen as they stand, also when they are read from their text, and end in the violation; or why they
    /// are none. Where there is a witness already and the time ends nothing is said.
    fn steps_through(&mut self, acts: Vec<Act>) -> Result<Shared<M>, Option<String>> {
        let began = Instant::now();
        let mut world = self.sim.empty_world();
        let mut along = Checkpoints::new(acts.len(), weight::room() / WITNESSES);
        let mut pinned = 0;
        for (at, act) in acts.iter().enumerate() {
            along.pass(at, &world, self.sim.model());
            if self.sim.starting_up(&world) {
                pinned = at + 1;
            }
            if self.halted() || self.first && self.meter.over() {
                return Err(None);
            }
            let refused = if !self.reads_back(act) {
                "it is read as another step"
            } else if let Act::Deliver(want) = act
                && want.external.is_none()
                && !in_order(&self.sim, &world, want, self.rule)
            {
                "it is not pending, or not the first of its channel"
            } else if !self.follow(&mut world, act) {
                if self.halted() {
                    return Err(None);
                }
                "it cannot be made"
            } else {
                continue;
            };
            let step = self.step_text(act);
            return Err(Some(format!("step {} of {}: {refused}: {step}", at + 1, acts.len())));
        }
        if !self.violates(&world) {
            return Err(Some(format!("after {} steps the invariant holds", acts.len())));
        }
        let numbered = self.traces.numbered(&acts);
        let key = sequence_key(&numbered);
        let took = began.elapsed();
        self.problem.heaviest.fetch_max(along.largest, Ordering::Relaxed);
        let Checkpoints { worlds, every, .. } = along;
        Ok(Rc::new(Witness { size: size(&acts), took, pinned, acts, worlds, every, numbered, key }))
    }

    /// Whether an act is what its text is read as. A schedule of such acts, written as exact, is read as these acts.
    fn reads_back(&mut self, act: &Act) -> bool {
        if self.readable.contains(act) {
            return true;
        }
        let mut schedule = self.to_schedule(std::slice::from_ref(act));
        schedule.header.exact = true;
        let read = Script::compile(&mut self.sim, &schedule);
        let same = read.is_ok_and(|(script, _)| match (&script.acts[..], act) {
            ([Act::Deliver(a)], Act::Deliver(b)) => Want { clock: b.clock, ..*a } == *b,
            ([Act::Duplicate(a)], Act::Duplicate(b)) => Want { clock: b.clock, copy: b.copy, ..*a } == *b,
            ([Act::Action(a)], Act::Action(b)) => {
                script.actions.get(*a as usize) == self.actions.get(*b as usize)
            }
            (read, act) => read == std::slice::from_ref(act),
        });
        if same {
            self.readable.insert(*act);
        }
        same
    }

    /// A step as a schedule has it.
    fn step_text(&self, act: &Act) -> String {
        let text = self.to_schedule(std::slice::from_ref(act)).to_text();
        text.lines().nth(1).unwrap_or_default().to_owned()
    }
}

/// What tells a sequence of steps from others.
fn sequence_key(steps: &[Numbered]) -> u128 {
    let mut hasher = Xxh3::new();
    steps.hash(&mut hasher);
    hasher.digest128()
}

/// The verifier's own reading of channel order: nothing older may wait on the channel of what is delivered.
fn in_order<M: Model>(sim: &Simulator<M>, world: &World<M>, want: &Want, rule: NetworkRule) -> bool {
    let Some(index) = want.find(sim, world) else { return false };
    let entry = world.pending()[index];
    // A second copy has no place in the order of the channel.
    let free = |p: &Pending| p.channel == OUTSIDE && p.msg == entry.msg && want.same_place(p);
    if rule != NetworkRule::Fifo || want.timer || world.pending().iter().any(free) {
        return true;
    }
    world.pending()[..index].iter().all(|older| {
        older.to != entry.to || older.channel != entry.channel || !matches!(older.kind, PendingKind::Message)
    })
}
