//! Many places to start from, worked on side by side: the recorded schedule with different policies first, then
//! random walks. Each start has its share of the budget and the rounds do not depend on the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use demi_replay::script::{Act, Script};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::PhaseSummary;
use demi_schemas::{NetworkRule, Schedule};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_128;

use crate::account::Cost;
use crate::budget::{Budget, Meter, StopFlag};
use crate::engine::{EXACT, Engine, Shared};
use crate::explore::Explorer;
use crate::matcher::{Blocker, Matcher, Policy};
use crate::nearby;
use crate::oracle::Oracle;
use crate::pipeline::Progress;
use crate::stage::{Stage, phase_line};
use crate::start::Start;
use crate::witness::{Fields, Objective, Size, fields_of};

/// Starts of one round of walks.
const ROUND: usize = 8;
/// What each start of a round does: from which of the leads, and whether it walks at random or searches near it.
const TURNS: [(usize, bool); ROUND] =
    [(0, true), (1, true), (0, false), (1, false), (2, true), (0, true), (2, false), (0, false)];
/// Rounds of walks in a row without gain after which there are no more.
const PATIENCE: usize = 3;
/// Most rounds of walks.
const MAX_ROUNDS: usize = 12;
/// Deliveries that the walks of one start may execute.
const WALKED: u64 = 4_000_000;
/// Violating walks of one start that are reduced.
const FINDS: usize = 12;

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
    /// The rule.
    pub rule: NetworkRule,
    /// The violation.
    pub target: Vec<String>,
    /// What else is asked.
    pub oracle: Oracle<M>,
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
    /// The share of each of `count` starts if all of them may use `part` of what is left.
    fn share(self, part: f64, count: usize, jobs: usize) -> Budget {
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
pub fn recorded<M: Model>(common: &Common<'_, M>, purse: Purse) -> Vec<Start> {
    let starts = 2 * common.policies.len().min(6);
    let share = purse.share(0.35, starts, common.jobs);
    side_by_side(common, starts, |index| {
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

/// Rounds of random walks over the external events of the best so far, and of searches near it, until they gain
/// nothing.
pub fn explored<M: Model>(common: &Common<'_, M>, best: &Start, mut purse: Purse) -> Vec<Start> {
    let pool: Vec<Act> = common.raw.iter().filter(|a| a.is_external()).copied().collect();
    let mut all: Vec<Start> = Vec::new();
    // Searches take turns between what is the result now, what has the fewest external events, and what has the
    // fewest deliveries.
    let lead = |size: Size, objective: Objective| (size, best.schedule.clone(), objective);
    let mut leads = [
        lead(best.size, common.objective),
        lead(best.size, Objective::Externals),
        lead(best.size, Objective::Deliveries),
    ];
    let mut idle = 0;
    for round in 0..MAX_ROUNDS {
        let share = purse.share(0.25, ROUND, common.jobs);
        let found = side_by_side(common, ROUND, |index| {
            let seed = (round * ROUND + index) as u64;
            let (lead, walk) = TURNS[index % TURNS.len()];
            let (_, base, objective) = &leads[lead];
            let what = format!("round {round} {index} {:032x}", xxh3_128(base.to_text().as_bytes()));
            common.remembered(&what, share, || match walk {
                true => walks(common, &pool, base, seed, share),
                false => neighbourhood(common, &pool, base, (seed, *objective), share),
            })
        });
        idle += 1;
        purse.spent += found.iter().map(Start::replays).sum::<u64>();
        purse.executed += found.iter().map(Start::executed).sum::<u64>();
        for (at, (size, schedule, objective)) in leads.iter_mut().enumerate() {
            let sizes = std::iter::once(*size).chain(found.iter().map(|s| s.size));
            let better = match at {
                0 => common.objective.choose(sizes).and_then(|i| i.checked_sub(1)),
                _ => sizes
                    .enumerate()
                    .min_by_key(|(i, s)| (objective.key(*s), *i))
                    .and_then(|(i, _)| i.checked_sub(1)),
            };
            if let Some(better) = better {
                (*size, *schedule, idle) = (found[better].size, found[better].schedule.clone(), 0);
            }
        }
        let ended = found.is_empty() || idle >= PATIENCE || common.stop.is_set();
        all.extend(found);
        if ended {
            break;
        }
    }
    all
}

/// One start near what was found: a search by disturbances, and the passes that cost more on what it comes to.
fn neighbourhood<M: Model>(
    common: &Common<'_, M>,
    pool: &[Act],
    base: &Schedule,
    (seed, objective): (u64, Objective),
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, objective);
    engine.generous = false;
    let base = restore(&mut engine, base)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut stage = Stage::new(engine, base, common.tell);
    stage.phase("nearby", |s| nearby::search(s, pool, common.policies, WALKED, &mut rng));
    stage.reduce(common.policies);
    Some(common.done(stage))
}

/// One start by walks: each violating walk is swept, the best of them reduced.
fn walks<M: Model>(
    common: &Common<'_, M>,
    pool: &[Act],
    base: &Schedule,
    seed: u64,
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, common.objective);
    let base = restore(&mut engine, base)?;
    let given = base.size;
    let mut explorer = Explorer::new(pool, &base, seed);
    let began = Instant::now();
    let (mut best, mut finds): (Option<Shared<M>>, usize) = (None, 0);
    while finds < FINDS && engine.meter.executed < WALKED && engine.meter.ended().is_none() {
        let Some(witness) = explorer.walk(&mut engine) else { continue };
        finds += 1;
        let mut stage = Stage::new(engine, witness, common.tell);
        stage.sweep(common.policies);
        engine = stage.engine;
        if best.as_ref().is_none_or(|b| common.objective.smaller(stage.best.size, b.size)) {
            best = Some(stage.best);
        }
    }
    let walked = PhaseSummary {
        replays: engine.meter.replays,
        executed: engine.meter.executed,
        seconds: began.elapsed().as_secs_f64(),
        ..phase_line("walks", &best.as_ref()?.acts)
    };
    let mut stage = Stage::new(engine, best?, common.tell);
    let cost = Cost { replays: walked.replays, executed: walked.executed, seconds: walked.seconds };
    let size = stage.best.size;
    let won = if common.objective.smaller(size, given) { size } else { given };
    stage.account.note("walks", cost, given, won);
    stage.phases.push(walked);
    stage.reduce(common.policies);
    Some(common.done(stage))
}

impl<M: Model> Common<'_, M> {
    fn engine(&self, share: Budget, objective: Objective) -> Engine<M> {
        let meter = Meter::new(share, self.stop.clone());
        let (sim, target) = (self.sim.clone(), self.target.clone());
        let mut engine = Engine::new(sim, self.script, self.rule, target, objective, meter);
        engine.fields.clone_from(&self.fields);
        engine.oracle.clone_from(&self.oracle);
        engine
    }

    /// Does a piece of work, or takes its result from the ledger, where it was finished before.
    fn remembered(&self, what: &str, share: Budget, work: impl FnOnce() -> Option<Start>) -> Option<Start> {
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

    fn done(&self, stage: Stage<'_, M>) -> Start {
        let (engine, cut) = (&stage.engine, stage.ended());
        Start {
            schedule: engine.to_schedule(&stage.best.acts),
            size: stage.best.size,
            phases: stage.phases,
            curve: stage.curve,
            account: stage.account,
            without: Vec::new(),
            cut,
        }
    }
}

/// Does `count` pieces of work on the threads there are; the results come in the order of their numbers.
fn side_by_side<M: Model>(
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
