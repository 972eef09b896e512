//! The oracle: runs a wanted schedule on the model and says whether it breaks the invariant, how, and where.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use demi_replay::model::Bound;
use demi_replay::network::{self, Heads};
use demi_replay::script::{Act, OwnFailures, Script, Want};
use demi_replay::{Model, Simulator, Violation, World};
use demi_schemas::{NetworkRule, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use crate::budget::Meter;
use crate::digest::Digests;
use crate::ledger::Attempt;
use crate::matcher::{Blocker, Matcher, Policy};
use crate::oracle::Oracle;
use crate::trace::{Numbered, Traces};
use crate::witness::{Fields, Objective, Size, WORTH, size, to_schedule};

/// How many acts lie between two kept worlds of a witness, at least.
const CHECKPOINT_EVERY: usize = 16;
/// How many worlds of a witness are kept, at most.
const CHECKPOINTS: usize = 1_024;
/// Deliveries that one flush may cost before the step is given up.
const MAX_FLUSH: usize = 64;
/// Steps from which on a test is worth a line in the ledger.
const LEDGER_STEPS: usize = 128;
/// Tested candidates remembered, so that none is tested twice.
const MAX_REMEMBERED: usize = 4_000_000;

/// A schedule that was verified to break the invariant, with worlds along it to start tests from.
#[derive(Debug)]
pub struct Witness<M: Model> {
    /// The steps, each exactly as it happened.
    pub acts: Vec<Act>,
    /// Its size.
    pub size: Size,
    /// How many of the first acts happened while the system started up by itself; none of them may be left out.
    pub pinned: usize,
    /// The world before act `i * checkpoint_every(acts)`.
    pub(crate) worlds: Vec<World<M>>,
    /// The acts by number.
    pub(crate) numbered: Vec<Numbered>,
    /// What tells the sequence from others.
    pub(crate) key: u128,
}

/// A witness shared between passes.
pub type Shared<M> = Rc<Witness<M>>;

/// A test of one candidate failed, or it violates with these acts.
type Found = Option<Vec<Act>>;

/// Runs candidates for one violation under one network rule.
pub struct Engine<M: Model> {
    /// The simulator.
    pub sim: Simulator<M>,
    /// Names and arguments of actions.
    pub actions: Vec<(String, Option<serde_json::Value>)>,
    /// Structured content of messages from outside.
    pub fields: Fields,
    /// The rule.
    pub rule: NetworkRule,
    /// The violation that searches, bounds and proofs are about.
    pub target: Vec<String>,
    /// Fingerprints that a violation is compared with to know whether it counts ([`Oracle::matching`]): the recorded ones, even
    /// where searches look for another that counts too.
    pub accepted: Vec<String>,
    /// What else is asked.
    pub oracle: Oracle<M>,
    /// A bound where the model knows none ([`crate::search::partition`]).
    pub partition: Option<Arc<Bound<M>>>,
    /// What counts as smaller.
    pub objective: Objective,
    /// Whether witnesses are compared as finished results are ([`Objective::settled`]), or by the bare objective, so
    /// that an external event less may cost twice the deliveries for now.
    pub settling: bool,
    /// Work done and allowed.
    pub meter: Meter,
    digests: Digests,
    pub(crate) traces: Traces,
    tested: FxHashSet<u128>,
    /// Configurations with what was to follow, under which policy, and with how many steps at most it did not violate.
    failed: FxHashMap<u128, usize>,
    found: Vec<Violation>,
    /// Accepted candidates that strict verification refused; always 0 unless there is a defect.
    pub refused: u64,
}

impl<M: Model> Engine<M> {
    /// An engine for a script's violation.
    pub fn new(
        sim: Simulator<M>,
        script: &Script,
        rule: NetworkRule,
        target: Vec<String>,
        objective: Objective,
        meter: Meter,
    ) -> Self {
        Engine {
            sim,
            actions: script.actions.clone(),
            fields: Fields::new(),
            rule,
            accepted: target.clone(),
            target,
            oracle: Oracle::default(),
            partition: None,
            objective,
            settling: false,
            meter,
            digests: Digests::default(),
            traces: Traces::default(),
            tested: FxHashSet::default(),
            failed: FxHashMap::default(),
            found: Vec::new(),
            refused: 0,
        }
    }

    /// The model's own lower bound on the deliveries to the violation.
    pub fn own_bound(&self) -> Option<Arc<Bound<M>>> {
        self.sim.model().bound(&self.target, self.sim.names()).map(Arc::new)
    }

    /// A lower bound on the deliveries to the violation: the model's own, or a general one where it knows none.
    pub fn bound(&self) -> Option<Arc<Bound<M>>> {
        self.own_bound().or_else(|| self.partition.clone())
    }

    /// Whether the violation is there, on this configuration alone.
    pub fn violates(&mut self, world: &World<M>) -> bool {
        self.found.clear();
        self.sim.check(world, &mut M::History::default(), &mut self.found);
        self.found.iter().any(|v| self.oracle.matching.counts(&self.accepted, &v.fingerprint))
    }

    /// The fingerprints of what a witness ends in, those that count.
    pub fn ends_in(&mut self, witness: &Witness<M>) -> Vec<String> {
        let (world, _) = self.world_at(witness, witness.acts.len());
        self.violates(&world);
        let found = self.found.iter().map(|v| v.fingerprint.clone());
        let mut counting: Vec<String> =
            found.filter(|f| self.oracle.matching.counts(&self.accepted, f)).collect();
        counting.sort_unstable();
        counting.dedup();
        counting
    }

    /// Executes a script as it stands and cuts it at the first violation.
    pub fn first_witness(&mut self, acts: &[Act], policy: Policy) -> Option<Shared<M>> {
        let world = self.sim.empty_world();
        let found = self.run(world, Vec::new(), acts.iter(), policy, usize::MAX)?;
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
                self.sim.model().creates(name, fields.as_ref())
            }
            _ => None,
        });
        for actor in creations {
            let pair = |act: &Act| match act {
                Act::Action(index) => self
                    .actions
                    .get(*index as usize)
                    .is_some_and(|(name, f)| self.sim.model().creates(name, f.as_ref()) == Some(actor)),
                Act::Crash(a) | Act::Isolate(a) | Act::Stop(a) => *a == actor,
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

    /// The number that witnesses are compared by; less is smaller.
    #[must_use]
    pub fn key(&self, size: Size) -> (usize, usize) {
        if self.settling { self.objective.settled(size) } else { self.objective.key(size) }
    }

    /// Whether `a` is smaller than `b`.
    #[must_use]
    pub fn smaller(&self, a: Size, b: Size) -> bool {
        self.key(a) < self.key(b)
    }

    /// How many steps a run may take that is to be smaller than a witness, if it has so many external events `fewer`,
    /// for which the objective may allow more deliveries.
    #[must_use]
    pub fn limit(&self, witness: &Witness<M>, fewer: usize) -> usize {
        match (self.objective, fewer) {
            (_, 0) => witness.acts.len().saturating_sub(1),
            (Objective::Externals, _) if self.settling => witness.acts.len() + WORTH * fewer,
            (Objective::Externals, _) => witness.acts.len() * 2 + 8,
            (Objective::Deliveries, _) => witness.acts.len(),
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
        to_schedule(&self.sim, acts, &self.actions, &self.fields, self.rule, &self.target)
    }

    /// A digest of acts that means the same in another process.
    pub fn digest(&mut self, acts: &[Act]) -> u128 {
        let mut hasher = Xxh3::new();
        self.digests.add(&self.sim, &self.actions, acts.iter(), &mut hasher);
        hasher.digest128()
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
    ) -> Found {
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
        let every = checkpoint_every(witness.acts.len());
        let kept = (at / every).min(witness.worlds.len() - 1);
        let mut world = witness.worlds[kept].clone();
        for act in &witness.acts[kept * every..at] {
            let followed = self.follow(&mut world, act);
            debug_assert!(followed, "a witness was verified");
        }
        (world, witness.acts[..at].to_vec())
    }

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
        self.meter.replays += 1;
        let Some(ledger) = self.oracle.ledger.clone() else {
            return self.execute(world, done, acts, policy, limit);
        };
        let acts: Vec<&Act> = acts.collect();
        if acts.len() < LEDGER_STEPS {
            return self.execute(world, done, acts.into_iter(), policy, limit);
        }
        let mut hasher = Xxh3::new();
        self.digests.add(&self.sim, &self.actions, done.iter(), &mut hasher);
        hasher.write_u8(0xff);
        self.digests.add(&self.sim, &self.actions, acts.iter().copied(), &mut hasher);
        (policy, limit, self.rule, &self.accepted, self.oracle.matching.as_str()).hash(&mut hasher);
        let key = hasher.digest128();
        if let Some(known) = ledger.attempt(key).filter(|a| !a.violates) {
            self.meter.executed += known.executed;
            return None;
        }
        let before = self.meter.executed;
        let found = self.execute(world, done, acts.into_iter(), policy, limit);
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
        mut world: World<M>,
        mut done: Vec<Act>,
        acts: impl Iterator<Item = &'a Act>,
        policy: Policy,
        limit: usize,
    ) -> Found {
        let mut own = OwnFailures::default();
        for act in acts {
            let Act::Deliver(want) = act else {
                // Code outside the actors may not be possible yet.
                let passes = own.told_by(act) || matches!(act, Act::Noted(_) | Act::Sent);
                if !passes && self.follow(&mut world, act) {
                    own.note(act, self.sim.did());
                    if !matches!(act, Act::Inject(..)) {
                        done.push(*act);
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
                if self.deliver(&mut world, index, &mut done) {
                    return (done.len() <= limit).then_some(done);
                }
                own.note(act, self.sim.did());
                if done.len() >= limit {
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

    /// What to do about a wanted delivery.
    fn choose(&mut self, world: &mut World<M>, want: &Want, policy: Policy) -> Choice {
        let (sim, rule) = (&self.sim, self.rule);
        let pending = world.pending();
        let found = if policy.blocker == Blocker::Flush {
            policy.matcher.find(sim, world, want, |_, p| sim.takes(world, p))
        } else {
            let heads = Heads::new(rule, pending);
            policy.matcher.find(sim, world, want, |i, p| sim.takes(world, p) && heads.allow(i))
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

    /// Delivers an entry, notes it, and says whether the violation is there now.
    pub fn deliver(&mut self, world: &mut World<M>, index: usize, done: &mut Vec<Act>) -> bool {
        let entry = world.pending()[index];
        done.push(Act::Deliver(Want::of(&self.sim, world, &entry)));
        let before = self.sim.watch(world, entry.to);
        self.sim.deliver(world, index, self.rule);
        self.meter.executed += 1;
        let unchanged = before.is_some() && before == self.sim.watch(world, entry.to);
        let faults = self.sim.did().iter().any(|d| d.failed().is_some());
        (!unchanged || faults) && self.violates(world)
    }

    /// Follows one act exactly; says whether it could. Used for what was verified before.
    pub fn follow(&mut self, world: &mut World<M>, act: &Act) -> bool {
        self.meter.executed += u64::from(act.is_delivery());
        act.perform(&mut self.sim, world, &self.actions, self.rule).is_ok()
    }
}

/// How many acts lie between two kept worlds of a witness with so many. A world of a long execution may hold thousands of
/// pending messages, and tests of it run so many steps that a few more do not count.
pub(crate) fn checkpoint_every(acts: usize) -> usize {
    acts.div_ceil(CHECKPOINTS).max(CHECKPOINT_EVERY)
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

/// The matcher for exact tests.
pub const EXACT: Policy = Policy::new(Matcher::Exact, Blocker::Skip);
