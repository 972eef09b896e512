//! Runs a wanted schedule on the model, one policy for what does not match.

use std::hash::{Hash, Hasher};

use demi_replay::network::{self, Heads};
use demi_replay::script::{Act, OwnFailures, Want};
use demi_replay::{Model, Pending, PendingKind, Status, World};
use demi_schemas::NetworkRule;
use xxhash_rust::xxh3::Xxh3;

use super::engine::Engine;
use super::matcher::{Blocker, Policy};
use crate::ledger::Attempt;

/// Deliveries that one flush may cost before the step is given up.
const MAX_FLUSH: usize = 64;
/// Steps from which on a test is worth a line in the ledger.
const LEDGER_STEPS: usize = 128;
/// A test of one candidate failed, or it violates with these acts.
pub(super) type Found = Option<Vec<Act>>;

impl<M: Model> Engine<M> {
    /// Runs wanted acts from a world; gives what was executed up to the first violation, or nothing if there is
    /// none within `limit` steps in all.
    pub fn run<'a>(
        &mut self,
        world: World<M>,
        done: Vec<Act>,
        acts: impl Iterator<Item = &'a Act>,
        policy: Policy,
        limit: usize,
    ) -> Found {
        self.run_told((world, false), done, acts, policy, limit)
    }

    /// As [`Engine::run`]; with `told` a failure or a restart may only tell what happened already.
    pub(super) fn run_told<'a>(
        &mut self,
        (world, told): (World<M>, bool),
        done: Vec<Act>,
        acts: impl Iterator<Item = &'a Act>,
        policy: Policy,
        limit: usize,
    ) -> Found {
        self.meter.replays += 1;
        let Some(ledger) = self.problem.criteria.ledger.clone() else {
            return self.execute((world, told), done, acts, policy, limit);
        };
        let acts: Vec<&Act> = acts.collect();
        if acts.len() < LEDGER_STEPS {
            return self.execute((world, told), done, acts.into_iter(), policy, limit);
        }
        let mut hasher = Xxh3::new();
        self.digests.add(&self.sim, &self.actions, done.iter(), &mut hasher);
        hasher.write_u8(0xff);
        self.digests.add(&self.sim, &self.actions, acts.iter().copied(), &mut hasher);
        (policy, limit, self.rule, told, &self.problem.question).hash(&mut hasher);
        let key = hasher.digest128();
        if let Some(known) = ledger.attempt(key).filter(|a| !a.violates) {
            self.meter.executed += known.executed;
            return None;
        }
        let before = self.meter.executed;
        let found = self.execute((world, told), done, acts.into_iter(), policy, limit);
        let mut hasher = Xxh3::new();
        if let Some(acts) = &found {
            self.digests.add(&self.sim, &self.actions, acts.iter(), &mut hasher);
        }
        let digest = if found.is_some() { hasher.digest128() } else { 0 };
        let executed = self.meter.executed - before;
        ledger.note_attempt(key, Attempt { violates: found.is_some(), executed, digest });
        found
    }

    fn execute<'a>(
        &mut self,
        (mut world, told): (World<M>, bool),
        mut done: Vec<Act>,
        acts: impl Iterator<Item = &'a Act>,
        policy: Policy,
        limit: usize,
    ) -> Found {
        let mut own = OwnFailures::default();
        // Without this the first run could not be made where a budget is short.
        let timed = !done.is_empty() || self.begun;
        for act in acts {
            if timed && self.meter.late() || self.first && self.meter.over() {
                return None;
            }
            let Act::Deliver(want) = act else {
                // Code outside the actors may not be possible yet.
                let passes = told && own.told_by(act) || matches!(act, Act::Noted(_) | Act::Sent);
                let Some(act) = self.adapted(&world, act, policy).filter(|_| !passes) else { continue };
                if self.follow(&mut world, &act) {
                    own.note(&act, self.sim.did());
                    if !matches!(act, Act::Inject(..)) {
                        done.push(act);
                        // A fault may break an invariant by itself: a restart, for instance.
                        if self.judged(&mut world) {
                            return (done.len() <= limit).then_some(done);
                        }
                        if world.panic().is_some() {
                            return None;
                        }
                    }
                }
                continue;
            };
            let mut flushed = 0;
            loop {
                let (index, again) = match self.choose(&mut world, want, policy) {
                    Choice::Deliver(index) => (index, false),
                    Choice::Flush(index) if flushed < MAX_FLUSH => (index, true),
                    Choice::Fail => return None,
                    Choice::Skip | Choice::Flush(_) => break,
                };
                done.push(Act::Deliver(Want::of(&self.sim, &world, &world.pending()[index])));
                if self.delivered(&mut world, index) {
                    return (done.len() <= limit).then_some(done);
                }
                own.note(act, self.sim.did());
                if done.len() >= limit || world.panic().is_some() {
                    return None;
                }
                if !again {
                    break;
                }
                flushed += 1;
            }
        }
        None
    }

    /// What stands for an act in a world: of the message that the network is to repeat, the one that the policy finds; for the restart of
    /// who was never there, a start.
    fn adapted(&self, world: &World<M>, act: &Act, policy: Policy) -> Option<Act> {
        let want = match act {
            Act::Restart(actor) if world.status(*actor) == Status::Absent => {
                return Some(Act::Start(*actor));
            }
            Act::Duplicate(want) => want,
            act => return Some(*act),
        };
        let message = |_, p: &Pending| p.kind == PendingKind::Message;
        let found = policy.matcher.find(&self.sim, world, want, message)?;
        // Whether the message itself or a copy of it is repeated makes no difference.
        Some(Act::Duplicate(Want { copy: false, ..Want::of(&self.sim, world, &world.pending()[found]) }))
    }

    /// What to do about a wanted delivery.
    fn choose(&mut self, world: &mut World<M>, want: &Want, policy: Policy) -> Choice {
        let (sim, rule) = (&self.sim, self.rule);
        let pending = world.pending();
        let found = if policy.blocker == Blocker::Flush {
            policy.matcher.find(sim, world, want, |_, p| sim.takes(world, p) && reaches(world, p))
        } else {
            let heads = Heads::new(rule, pending);
            let usable = |i: usize, p: &Pending| sim.takes(world, p) && reaches(world, p) && heads.allow(i);
            policy.matcher.find(sim, world, want, usable)
        };
        match found {
            Some(index) if rule == NetworkRule::Fifo && policy.blocker == Blocker::Flush => {
                match network::blocker(pending, index) {
                    None => Choice::Deliver(index),
                    Some(before) => Choice::Flush(before),
                }
            }
            Some(index) => Choice::Deliver(index),
            None => match want.external {
                Some(msg) => match self.sim.inject(world, want.to, msg) {
                    Some(index) if self.sim.takes(world, &world.pending()[index]) => Choice::Deliver(index),
                    _ => Choice::Skip,
                },
                None if policy.blocker == Blocker::Fail => Choice::Fail,
                None => Choice::Skip,
            },
        }
    }

    /// Whether an entry may be delivered next, in a step that a schedule can have: a message from outside is sent where it is taken, and
    /// nothing from outside reaches who is cut off.
    pub fn deliverable(&self, world: &World<M>, index: usize) -> bool {
        reaches(world, &world.pending()[index]) && self.sim.deliverable(world, index, self.rule)
    }

    /// Delivers an entry, notes it, and says whether the violation is there now. Once the time has ended nothing is delivered.
    pub fn deliver(&mut self, world: &mut World<M>, index: usize, done: &mut Vec<Act>) -> bool {
        let entry = world.pending()[index];
        done.push(Act::Deliver(Want::of(&self.sim, world, &entry)));
        !self.halted() && self.delivered(world, index)
    }

    /// Delivers an entry, and says whether the violation is there now.
    fn delivered(&mut self, world: &mut World<M>, index: usize) -> bool {
        let entry = world.pending()[index];
        let before = self.sim.watch(world, entry.to);
        let rule = self.rule;
        self.billed(|s| s.sim.deliver(world, index, rule));
        self.meter.executed += 1;
        let unchanged = before.is_some() && before == self.sim.watch(world, entry.to);
        let faults = self.sim.did().iter().any(|d| d.failed().is_some());
        (!unchanged || faults || world.panic().is_some()) && self.judged(world)
    }

    /// Follows one act exactly; says whether it could. Used for what was verified before. Once the time has ended nothing is followed.
    pub fn follow(&mut self, world: &mut World<M>, act: &Act) -> bool {
        if self.halted() {
            return false;
        }
        self.meter.executed += u64::from(act.is_delivery());
        self.billed(|s| act.perform(&mut s.sim, world, &s.actions, s.rule).is_ok())
    }
}

/// Whether an entry could be sent now, if it comes from outside.
fn reaches<M: Model>(world: &World<M>, entry: &Pending) -> bool {
    entry.kind != PendingKind::External || world.status(entry.to) != Status::Isolated
}

/// What to do about a wanted delivery.
enum Choice {
    /// Deliver this entry.
    Deliver(usize),
    /// Deliver this entry, which stands before the wanted one, and look again.
    Flush(usize),
    /// Leave the step out.
    Skip,
    /// Give up the candidate.
    Fail,
}
