//! Many places to start from, worked on side by side: the recorded schedule with different policies first, then
//! what [`crate::rounds`] makes of it. Each start has its share of the budget, whatever the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use demi_replay::model::Bound;
use demi_replay::script::{Act, Script};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Schedule};
use xxhash_rust::xxh3::xxh3_128;

use crate::budget::{Budget, Meter, StopFlag};
use crate::engine::{EXACT, Engine, Shared};
use crate::matcher::{Blocker, Matcher, Policy};
use crate::oracle::{Match, Oracle};
use crate::pipeline::Progress;
use crate::stage::Stage;
use crate::start::Start;
use crate::witness::{Fields, Objective, fields_of};

/// What all starts have in common.
pub struct Common<'a, M: Model> {
    /// The simulator, with everything interned that the acts below need.
    pub sim: Simulator<M>,
    /// The recorded schedule.
    pub script: &'a Script,
    /// The prepared witness.
    pub prepared: Vec<Act>,
    /// The witness as recorded, cut at the violation.
    pub raw: Vec<Act>,
    /// Content of external messages.
    pub fields: Fields,
    /// A bound where the model knows none.
    pub partition: Option<Arc<Bound<M>>>,
    /// The rule.
    pub rule: NetworkRule,
    /// The violation that searches look for.
    pub target: Vec<String>,
    /// Fingerprints by which violations count ([`Engine::accepted`]).
    pub accepted: Vec<String>,
    /// What else is asked.
    pub oracle: Oracle<M>,
    /// Which violations count until [`Common::settle`], and by which fingerprints.
    pub asked: (Match, Vec<String>),
    /// What counts as smaller in the end.
    pub objective: Objective,
    /// The policies, in order.
    pub policies: &'a [Policy],
    /// Threads.
    pub jobs: usize,
    /// To end early.
    pub stop: StopFlag,
    /// A digest of all of the above that results depend on.
    pub digest: u128,
    /// Whoever watches.
    pub tell: &'a (dyn Fn(&Progress) + Sync),
}

/// The budget of the whole minimization, and what of it was spent.
#[derive(Clone, Copy, Debug)]
pub struct Purse {
    /// The whole.
    pub budget: Budget,
    /// Since when.
    pub began: Instant,
    /// Schedules tested so far.
    pub spent: u64,
    /// Deliveries executed so far.
    pub executed: u64,
}

/// How much of a budget starts may use up; the rest is for the checks of 1-minimality, the proof and smaller contents.
const SEARCHED: f64 = 0.8;

/// One of `count` shares of a part of what starts may still use.
fn part_of(whole: u64, spent: u64, part: f64, count: usize) -> u64 {
    let left = (whole as f64 * SEARCHED - spent as f64).max(0.0);
    (left * part / count as f64) as u64
}

impl Purse {
    /// The purse after some starts.
    #[must_use]
    pub fn after(self, starts: &[Start]) -> Purse {
        let spent = self.spent + starts.iter().map(Start::replays).sum::<u64>();
        let executed = self.executed + starts.iter().map(Start::executed).sum::<u64>();
        Purse { spent, executed, ..self }
    }

    /// The purse with a part of the budget only, so that something is left for what comes after.
    #[must_use]
    pub fn within(self, part: f64) -> Purse {
        let of = |n: u64| (n as f64 * part) as u64;
        let budget = match self.budget {
            Budget::Seconds(s) => Budget::Seconds(s * part),
            Budget::Replays(n) => Budget::Replays(of(n)),
            Budget::States(n) => Budget::States(of(n)),
        };
        Purse { budget, ..self }
    }

    /// The share of each of `count` starts if all of them may use `part` of what is left.
    pub fn share(self, part: f64, count: usize, jobs: usize) -> Budget {
        match self.budget {
            Budget::Seconds(s) => {
                let left = (s * SEARCHED - self.began.elapsed().as_secs_f64()).max(0.0);
                Budget::Seconds(left * part * jobs.clamp(1, count) as f64 / count as f64)
            }
            Budget::Replays(n) => Budget::Replays(part_of(n, self.spent, part, count)),
            Budget::States(n) => Budget::States(part_of(n, self.executed, part, count)),
        }
    }
}

/// The recorded schedule with another policy first each time: half of the starts begin with what preparation
/// left, half with the raw schedule and coarse cuts.
///
/// Those of the `first` wave are a third of them, the others follow in a second one.
pub fn recorded<M: Model>(common: &Common<'_, M>, purse: Purse, first: bool) -> Vec<Start> {
    let starts = 2 * common.policies.len().min(6);
    let share = purse.share(if first { 0.15 } else { 0.25 }, starts, common.jobs);
    let wave: Vec<usize> = (0..starts).filter(|i| (i % (starts / 2) < 2) == first).collect();
    side_by_side(common, wave.len(), |at| {
        let index = wave[at];
        common.remembered(&format!("recorded {index}"), share, || {
            let mut order = common.policies.to_vec();
            order.rotate_left(index % (starts / 2));
            let (from, cuts) =
                if index < starts / 2 { (&common.prepared, false) } else { (&common.raw, true) };
            let objective = if cuts { Objective::Externals } else { common.objective };
            let mut engine = common.engine(share, objective);
            let witness = engine.first_witness(from, EXACT)?;
            let mut stage = Stage::new(engine, witness, common.tell);
            if cuts {
                stage.subsets(common.policies);
            }
            stage.reduce(&order);
            Some(common.done(stage))
        })
    })
}

impl<M: Model> Common<'_, M> {
    /// An engine with a share of the budget.
    pub fn engine(&self, share: Budget, objective: Objective) -> Engine<M> {
        let meter = Meter::new(share, self.stop.clone());
        let (sim, target) = (self.sim.clone(), self.target.clone());
        let mut engine = Engine::new(sim, self.script, self.rule, target, objective, meter);
        engine.fields.clone_from(&self.fields);
        engine.oracle.clone_from(&self.oracle);
        engine.partition.clone_from(&self.partition);
        engine.accepted.clone_from(&self.accepted);
        engine
    }

    /// Does a piece of work, or takes its result from the ledger, where it was finished before.
    pub fn remembered(
        &self,
        what: &str,
        share: Budget,
        work: impl FnOnce() -> Option<Start>,
    ) -> Option<Start> {
        let Some(ledger) = &self.oracle.ledger else { return work() };
        // A share of seconds is another one each time, so only work that came to its own end is kept.
        let share = match share {
            Budget::Replays(n) | Budget::States(n) => n,
            Budget::Seconds(_) => 0,
        };
        let key = xxh3_128(format!("{:032x} {share} {what}", self.digest).as_bytes());
        if let Some(start) = ledger.start(key).as_deref().and_then(Start::from_json) {
            return Some(start);
        }
        let start = work()?;
        if !self.stop.is_set() && (share > 0 || !start.cut) {
            ledger.note_start(key, &start.to_json());
        }
        Some(start)
    }

    /// What a stage came to.
    pub fn done(&self, stage: Stage<'_, M>) -> Start {
        let (engine, cut) = (&stage.engine, stage.ended());
        Start {
            schedule: engine.to_schedule(&stage.best.acts),
            size: stage.best.size,
            phases: stage.phases,
            curve: stage.curve,
            account: stage.account,
            without: Vec::new(),
            cut,
            whole: false,
        }
    }
}

/// Does `count` pieces of work on the threads there are; the results come in the order of their numbers.
pub fn side_by_side<M: Model>(
    common: &Common<'_, M>,
    count: usize,
    work: impl Fn(usize) -> Option<Start> + Sync,
) -> Vec<Start> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Start>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..common.jobs.clamp(1, count) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || common.stop.is_set() {
                        return;
                    }
                    let result = work(index);
                    if let Ok(mut results) = results.lock() {
                        results[index] = result;
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

/// Brings a start's result into another simulator.
pub fn restore<M: Model>(engine: &mut Engine<M>, result: &Schedule) -> Option<Shared<M>> {
    let (mut translated, _) = Script::compile(&mut engine.sim, result).ok()?;
    engine.fields.extend(fields_of(result));
    for act in &mut translated.acts {
        if let Act::Action(index) = act {
            let action = translated.actions.get(*index as usize)?;
            let known = engine.actions.iter().position(|a| a == action).unwrap_or(engine.actions.len());
            if known == engine.actions.len() {
                engine.actions.push(action.clone());
            }
            *index = u32::try_from(known).ok()?;
        }
    }
    engine.first_witness(&translated.acts, Policy::new(Matcher::Payload, Blocker::Skip))
}
