//! The oracle: runs a wanted schedule on the model and says whether it breaks the invariant, how, and where.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use demi_replay::bill::Bill;
use demi_replay::model::DistanceOf;
use demi_replay::names::TextId;
use demi_replay::script::{Act, Script, Want};
use demi_replay::{ActorId, Model, MsgId, Simulator, Violation, World, bill, weight};
use demi_schemas::{NetworkRule, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use super::matcher::{Blocker, Matcher, Policy};
use super::trace_keys::Traces;
use super::witness::{Shared, Witness};
use crate::problem::Problem;
use crate::problem::budget::{Budget, Meter};
use crate::problem::digest::Digests;
use crate::problem::size::{Objective, Size, size};
use crate::problem::text::{Fields, fields_of, to_schedule};

/// Tested candidates remembered, so that none is tested twice.
const MAX_REMEMBERED: usize = 4_000_000;
/// The part of all memory for states that what is kept for one purpose may take.
const PART: usize = 4;

/// Runs candidates for one problem. What only grows with what is read and met is its own: names, texts, actions.
pub struct Engine<M: Model> {
    /// The problem. [`Engine::pose`] poses another one.
    pub problem: Arc<Problem<M>>,
    /// The simulator.
    pub sim: Simulator<M>,
    /// Names and arguments of actions.
    pub actions: Vec<(String, Option<serde_json::Value>)>,
    /// Structured content of messages from outside.
    pub fields: Fields,
    /// The network rule, that of the problem unless a proof is about a weaker one.
    pub rule: NetworkRule,
    /// What counts as smaller in this line of work.
    pub objective: Objective,
    /// Work done and allowed.
    pub meter: Meter,
    /// What was paid for steps of processes; nothing where no process answers.
    bill: Option<Bill>,
    pub(super) digests: Digests,
    pub(crate) traces: Traces,
    tested: FxHashSet<u128>,
    /// Configurations with what was to follow, under which policy, and with how many steps at most it did not violate.
    failed: FxHashMap<u128, usize>,
    found: Vec<Violation>,
    /// How often each message came from outside.
    pub(super) recorded: Recorded,
    /// Whether there is a witness already, so that work may end before there is another one.
    pub(super) begun: bool,
    /// Whether it looks for the first witness, for which there is the time of the whole and no more.
    pub(crate) first: bool,
    /// Acts that are read back from their text as they are.
    pub(super) readable: FxHashSet<Act>,
}

/// How often each message came from outside in the recorded execution, and how often one of each type came to each actor. Contents may become
/// smaller than any that was recorded, but there are never more messages.
#[derive(Default)]
pub(super) struct Recorded {
    messages: FxHashMap<(ActorId, MsgId), u32>,
    types: FxHashMap<(ActorId, TextId), u32>,
}

impl Recorded {
    fn of(acts: &[Act]) -> Recorded {
        let mut all = Recorded::default();
        for (want, message) in from_outside(acts) {
            *all.messages.entry((want.to, message)).or_default() += 1;
            *all.types.entry((want.to, want.type_)).or_default() += 1;
        }
        all
    }

    /// Whether no message comes more often than it was recorded.
    pub(super) fn suffices(&self, acts: &[Act]) -> bool {
        let needed = Recorded::of(acts);
        // Of what was not recorded at all, as an unknown content, nothing is known.
        let most = |known: Option<&u32>, count: u32| known.is_none_or(|known| count <= *known);
        needed.messages.iter().all(|(key, &count)| most(self.messages.get(key), count))
            && needed.types.iter().all(|(key, &count)| most(self.types.get(key), count))
    }
}

fn from_outside(acts: &[Act]) -> impl Iterator<Item = (&Want, MsgId)> {
    acts.iter().filter_map(|act| match act {
        // A copy that the network made came from nowhere.
        Act::Deliver(want) if !want.copy => Some((want, want.external?)),
        _ => None,
    })
}

impl<M: Model> Engine<M> {
    /// An engine for a problem, with a share of the budget.
    #[must_use]
    pub fn new(problem: &Arc<Problem<M>>, share: Budget) -> Self {
        let billed = problem.sim.model().runtime().is_billed();
        let meter = Meter::new(share, problem.options.stop.clone()).within(&problem.deadline);
        Engine {
            problem: problem.clone(),
            sim: problem.sim.clone(),
            actions: problem.script.actions.clone(),
            fields: problem.fields.clone(),
            rule: problem.rule(),
            objective: problem.options.objective,
            meter: if billed { meter.costly(problem.replay_cost()) } else { meter },
            bill: billed.then(|| Bill::after(&problem.paid)),
            digests: Digests::default(),
            traces: Traces::default(),
            tested: FxHashSet::default(),
            failed: FxHashMap::default(),
            found: Vec::new(),
            recorded: Recorded::of(&problem.script.acts),
            begun: problem.begun,
            first: false,
            readable: FxHashSet::default(),
        }
    }

    /// Goes on with another problem about the same acts.
    pub fn pose(&mut self, problem: &Arc<Problem<M>>) {
        if self.problem.question != problem.question {
            self.forget();
        }
        self.problem = problem.clone();
    }

    /// Loads a schedule and verifies it, also where the time has ended since it was found, so that it is not lost; nothing where it does not
    /// violate.
    pub fn recover(&mut self, schedule: &Schedule) -> Option<Shared<M>> {
        let begun = std::mem::replace(&mut self.begun, false);
        let witness = self.restore(schedule);
        self.begun |= begun;
        witness
    }

    /// Loads what a line of work came to and verifies it; nothing where the time ends. One that cannot be read or does not violate is a
    /// defect, as it did violate: it is counted with what failed its strict replay.
    pub fn restore(&mut self, schedule: &Schedule) -> Option<Shared<M>> {
        let known = self.problem.refusals.count();
        let restored = self.load(schedule);
        if restored.is_none() && !self.halted() && self.problem.refusals.count() == known {
            self.problem
                .refusals
                .note("what a line of work came to does not violate when it is run again".to_owned());
        }
        restored
    }

    fn load(&mut self, schedule: &Schedule) -> Option<Shared<M>> {
        let (mut translated, _) = match Script::compile(&mut self.sim, schedule) {
            Ok(translated) => translated,
            Err(why) => {
                self.problem.refusals.note(format!("what a line of work came to cannot be read: {why}"));
                return None;
            }
        };
        self.fields.extend(fields_of(&self.sim, schedule));
        for act in &mut translated.acts {
            if let Act::Action(index) = act {
                let action = translated.actions.get(*index as usize)?;
                let known = self.actions.iter().position(|a| a == action).unwrap_or(self.actions.len());
                if known == self.actions.len() {
                    self.actions.push(action.clone());
                }
                *index = u32::try_from(known).ok()?;
            }
        }
        let policy = Policy::new(Matcher::Payload, Blocker::Skip);
        self.witness(&translated.acts, policy, !schedule.header.exact)
    }

    /// Does some work in which processes may make steps, and pays for them.
    pub fn billed<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        if self.bill.is_none() {
            return work(self);
        }
        let (result, told) = bill::during(|| work(self));
        if let Some(bill) = &mut self.bill {
            self.meter.executed += bill.pay(&told);
        }
        result
    }

    /// What was paid for steps of processes, by what they came to.
    #[must_use]
    pub fn paid(&self) -> Arc<FxHashSet<u128>> {
        self.bill.as_ref().map(Bill::paid).unwrap_or_default()
    }

    /// The account for steps of processes, for a search that pays itself; [`Engine::settle`] takes it back.
    pub(crate) fn account(&mut self) -> Option<Bill> {
        self.bill.take()
    }

    /// Takes back the account.
    pub(crate) fn settle(&mut self, bill: Option<Bill>) {
        self.bill = bill;
    }

    /// Whether nothing more may be run: the time has ended, and there is a witness already.
    pub fn halted(&self) -> bool {
        self.begun && self.meter.late()
    }

    /// The model's own lower bound on the deliveries to the violation.
    pub fn own_bound(&self) -> Option<Arc<DistanceOf<M>>> {
        self.sim.distance(&self.problem.target).map(Arc::new)
    }

    /// A lower bound on the deliveries to the violation: the model's own, or a general one where it knows none.
    pub fn bound(&self) -> Option<Arc<DistanceOf<M>>> {
        self.own_bound().or_else(|| self.problem.pattern_database.clone())
    }

    /// Whether the violation is there, on this configuration alone.
    pub fn violates(&mut self, world: &World<M>) -> bool {
        self.found.clear();
        self.billed(|s| s.sim.check(world, &mut M::History::default(), &mut s.found));
        self.found.iter().any(|v| self.problem.question.counts(&v.fingerprint))
    }

    /// As [`Engine::violates`]; where an invariant panics, the world goes no further.
    pub(super) fn judged(&mut self, world: &mut World<M>) -> bool {
        self.found.clear();
        self.billed(|s| s.sim.judge_step(world, &mut s.found));
        self.found.iter().any(|v| self.problem.question.counts(&v.fingerprint))
    }

    /// The fingerprints of what a witness ends in, those that count.
    pub fn ends_in(&mut self, witness: &Witness<M>) -> Vec<String> {
        let begun = std::mem::replace(&mut self.begun, false);
        let (world, _) = self.world_at(witness, witness.acts.len());
        self.begun = begun;
        self.violates(&world);
        let found = self.found.iter().map(|v| v.fingerprint.clone());
        let mut counting: Vec<String> = found.filter(|f| self.problem.question.counts(f)).collect();
        counting.sort_unstable();
        counting.dedup();
        counting
    }

    /// Executes acts as they stand and cuts them at the first violation.
    pub fn first_witness(&mut self, acts: &[Act], policy: Policy) -> Option<Shared<M>> {
        self.witness(acts, policy, false)
    }

    /// As [`Engine::first_witness`], of acts that logs tell: a failure or a restart among them may only tell what a step before it
    /// brought about ([`ScheduleHeader::exact`](demi_schemas::ScheduleHeader::exact)).
    pub fn first_told(&mut self, acts: &[Act], policy: Policy) -> Option<Shared<M>> {
        self.witness(acts, policy, true)
    }

    fn witness(&mut self, acts: &[Act], policy: Policy, told: bool) -> Option<Shared<M>> {
        let world = self.sim.empty_world();
        let found = self.run_told((world, told), Vec::new(), acts.iter(), policy, usize::MAX)?;
        self.verified(found)
    }

    /// Tests what is left of a witness without the acts for which `removed` says so. The part before the first
    /// removed act happens as it did; the rest is matched by `policy`. Gives the new witness if it is smaller
    /// and strict verification agrees.
    pub fn test(&mut self, witness: &Shared<M>, removed: &[bool], policy: Policy) -> Option<Shared<M>> {
        if !self.remember(asked(witness, removed), policy) {
            return None;
        }
        let removed = &self.allowed(witness, removed)[..];
        let from = removed.iter().position(|&r| r)?;
        let rest = || witness.acts.iter().zip(removed).skip(from).filter(|(_, r)| !**r).map(|(a, _)| a);
        // The same in another order of what is independent has the same key.
        let (before, after) = witness.numbered.split_at(from);
        let after = after.iter().zip(&removed[from..]).filter(|(_, r)| !**r).map(|(n, _)| n);
        let trace = (self.traces.key(before.iter()), self.traces.key(after));
        if !self.remember(trace, policy) {
            return None;
        }
        let (world, prefix) = self.world_at(witness, from);
        let fewer = witness.acts.iter().zip(removed).filter(|(a, r)| **r && a.is_external()).count();
        let limit = self.limit(witness, fewer);
        let acts = self.run(world, prefix, rest(), policy, limit)?;
        self.smaller(size(&acts), witness.size).then(|| self.verified(acts)).flatten()
    }

    /// What may be removed of what is asked: nothing of the start-up, and creations of actors only together with the
    /// faults injected into them.
    fn allowed(&self, witness: &Witness<M>, removed: &[bool]) -> Vec<bool> {
        let mut removed = removed.to_vec();
        removed.iter_mut().take(witness.pinned).for_each(|r| *r = false);
        let creations = witness.acts.iter().filter_map(|act| match act {
            Act::Action(index) => {
                let (name, fields) = self.actions.get(*index as usize)?;
                self.sim.creates(name, fields.as_ref())
            }
            _ => None,
        });
        for actor in creations {
            let pair = |act: &Act| match act {
                Act::Action(index) => self
                    .actions
                    .get(*index as usize)
                    .is_some_and(|(name, f)| self.sim.creates(name, f.as_ref()) == Some(actor)),
                Act::Crash(a) | Act::Isolate(a) | Act::Heal(a) | Act::Stop(a) => *a == actor,
                _ => false,
            };
            let members: Vec<usize> =
                (witness.pinned..witness.acts.len()).filter(|&i| pair(&witness.acts[i])).collect();
            if members.iter().any(|&i| removed[i]) {
                members.iter().for_each(|&i| removed[i] = true);
            }
        }
        removed
    }

    /// Whether `a` is smaller than `b` in this line of work.
    #[must_use]
    pub fn smaller(&self, a: Size, b: Size) -> bool {
        self.objective.smaller(a, b)
    }

    /// How many steps a run may take that is to be smaller than a witness, if it has so many external events `fewer`. Where
    /// these come first it may have more steps.
    #[must_use]
    pub fn limit(&self, witness: &Witness<M>, fewer: usize) -> usize {
        match (self.objective, fewer) {
            (_, 0) => witness.acts.len().saturating_sub(1),
            (Objective::Externals, _) => witness.acts.len() * 2 + 8,
            (Objective::Steps, _) => witness.acts.len(),
        }
    }

    /// Whether the order within channels has a meaning.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.rule != NetworkRule::Unordered
    }

    /// Acts as text.
    #[must_use]
    pub fn to_schedule(&self, acts: &[Act]) -> Schedule {
        to_schedule(&self.sim, acts, &self.actions, &self.fields, self.rule, &self.problem.target)
    }

    /// How many worlds a pass may keep at a time, by what the states of one take.
    #[must_use]
    pub fn worlds_at_most(&self) -> usize {
        let heaviest = self.problem.heaviest.load(Ordering::Relaxed).max(1);
        (self.room() / heaviest).max(1)
    }

    /// Bytes of states that a search may keep: they are divided among the threads.
    #[must_use]
    pub fn room(&self) -> usize {
        weight::room() / PART / self.problem.options.jobs.max(1)
    }

    /// Forgets which candidates were tested.
    pub fn forget(&mut self) {
        self.tested.clear();
    }

    /// Runs wanted acts from a world, like [`Engine::run`], unless they were run from an equal configuration before, be it
    /// reached in another order, and did not violate. Both come with what stands for them: the hash of the configuration,
    /// and one of the acts.
    pub fn run_once(
        &mut self,
        (world, configuration): (&World<M>, u128),
        done: &[Act],
        (acts, rest): (&[Act], u64),
        policy: Policy,
        limit: usize,
    ) -> Option<Vec<Act>> {
        let mut hasher = Xxh3::new();
        (configuration, rest, policy).hash(&mut hasher);
        let (key, room) = (hasher.digest128(), limit.saturating_sub(done.len()));
        if self.failed.get(&key).is_some_and(|failed| *failed >= room) {
            return None;
        }
        let found = self.run(world.clone(), done.to_vec(), acts.iter(), policy, limit);
        if found.is_none() {
            if self.failed.len() >= MAX_REMEMBERED {
                self.failed.clear();
            }
            self.failed.insert(key, room);
        }
        found
    }

    /// Whether what two numbers stand for is new under a policy; it is remembered.
    fn remember(&mut self, what: (u128, u128), policy: Policy) -> bool {
        let mut hasher = Xxh3::new();
        (what, policy).hash(&mut hasher);
        if self.tested.len() >= MAX_REMEMBERED {
            self.tested.clear();
        }
        self.tested.insert(hasher.digest128())
    }

    /// The world before act `at` of a witness, and the acts up to there.
    pub fn world_at(&mut self, witness: &Witness<M>, at: usize) -> (World<M>, Vec<Act>) {
        let every = witness.every;
        let kept = (at / every).min(witness.worlds.len() - 1);
        let mut world = witness.worlds[kept].clone();
        for act in &witness.acts[kept * every..at] {
            let followed = self.follow(&mut world, act);
            debug_assert!(followed || self.halted(), "a witness was verified");
        }
        (world, witness.acts[..at].to_vec())
    }
}

/// What stands for the removal of some acts from a witness: most are asked for again and again, and to put together what
/// would be run costs more.
fn asked<M: Model>(witness: &Witness<M>, removed: &[bool]) -> (u128, u128) {
    let mut hasher = Xxh3::new();
    for part in removed.chunks(64) {
        hasher.write_u64(part.iter().fold(0, |word, &removed| word << 1 | u64::from(removed)));
    }
    (witness.key, hasher.digest128())
}
