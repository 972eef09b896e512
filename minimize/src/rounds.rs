//! Rounds of starts near what was found: random walks over its external events, and iterated local search.
//!
//! Searches take turns between three leads: what is the result now, what has the fewest external events, and what has
//! the fewest deliveries. Each start has its share of the budget and the rounds do not depend on the number of threads.

use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::Schedule;
use demi_schemas::summary::PhaseSummary;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_128;

use crate::account::Cost;
use crate::budget::Budget;
use crate::engine::Shared;
use crate::explore::Explorer;
use crate::nearby;
use crate::stage::{Stage, phase_line};
use crate::start::Start;
use crate::starts::{Common, Purse, restore, side_by_side};
use crate::witness::{Objective, Size};

/// Starts of one round.
const ROUND: usize = 8;
/// What each start of a round does: from which of the leads, and whether it walks at random or searches near it.
const TURNS: [(usize, bool); ROUND] =
    [(0, true), (1, true), (0, false), (1, false), (2, true), (0, true), (2, false), (0, true)];
/// How much is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds in a row without gain after which there are no more.
    patience: usize,
    /// Deliveries that the walks or the local search of one start may execute.
    walked: u64,
    /// Most rounds.
    rounds: usize,
    /// Part of the time that is left which one round may take.
    part: f64,
}

/// What finds a result that is not far off.
pub const QUICK: Effort = Effort { patience: 1, walked: 700_000, rounds: 2, part: 0.15 };
/// What looks around a good one.
pub const LITTLE: Effort = Effort { patience: 2, walked: 700_000, rounds: 12, part: 0.25 };

/// Violating walks of one start that are reduced.
const FINDS: usize = 12;

/// What a search starts from, and what counts as smaller there.
#[derive(Clone, Debug)]
struct Lead {
    size: Size,
    schedule: Schedule,
    objective: Objective,
    /// Whether it is compared as finished results are.
    settling: bool,
}

impl Lead {
    fn key(&self, size: Size) -> (usize, usize) {
        if self.settling { self.objective.settled(size) } else { self.objective.key(size) }
    }

    /// Goes on from the smallest of what was found, the first of equals, if it is smaller. Says whether it is.
    fn follow(&mut self, found: &[Start]) -> bool {
        let best = found.iter().enumerate().min_by_key(|(i, s)| (self.key(s.size), *i)).map(|(_, s)| s);
        let Some(best) = best.filter(|s| self.key(s.size) < self.key(self.size)) else { return false };
        (self.size, self.schedule) = (best.size, best.schedule.clone());
        true
    }
}

/// Rounds of random walks and of searches near what was found, until they gain nothing.
pub fn explored<M: Model>(
    common: &Common<'_, M>,
    best: &Start,
    mut purse: Purse,
    effort: Effort,
) -> Vec<Start> {
    let pool: Vec<Act> = common.raw.iter().filter(|a| a.is_external()).copied().collect();
    let mut all: Vec<Start> = Vec::new();
    let lead =
        |objective, settling| Lead { size: best.size, schedule: best.schedule.clone(), objective, settling };
    let mut leads =
        [lead(common.objective, true), lead(Objective::Externals, false), lead(Objective::Deliveries, false)];
    let mut idle = 0;
    for round in 0..effort.rounds {
        let share = purse.share(effort.part, ROUND, common.jobs);
        let found = side_by_side(common, ROUND, |index| {
            let seed = (round * ROUND + index) as u64;
            let (lead, walk) = TURNS[index % TURNS.len()];
            let lead = &leads[lead];
            let what = format!(
                "round {round} {index} {} {:032x}",
                effort.walked,
                xxh3_128(lead.schedule.to_text().as_bytes())
            );
            common.remembered(&what, share, || match walk {
                true => walks(common, &pool, &lead.schedule, (seed, effort.walked), share),
                false => neighbourhood(common, &pool, lead, (seed, effort.walked), share),
            })
        });
        idle += 1;
        purse.spent += found.iter().map(Start::replays).sum::<u64>();
        purse.executed += found.iter().map(Start::executed).sum::<u64>();
        for lead in &mut leads {
            if lead.follow(&found) {
                idle = 0;
            }
        }
        let ended = found.is_empty() || idle >= effort.patience || common.stop.is_set();
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
    lead: &Lead,
    (seed, walked): (u64, u64),
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, lead.objective);
    engine.settling = lead.settling;
    let base = restore(&mut engine, &lead.schedule)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut stage = Stage::new(engine, base, common.tell);
    stage.phase("nearby", |s| nearby::search(s, pool, common.policies, walked, &mut rng));
    stage.reduce(common.policies);
    Some(common.done(stage))
}

/// One start by walks: each violating walk is swept, the best of them reduced.
fn walks<M: Model>(
    common: &Common<'_, M>,
    pool: &[Act],
    base: &Schedule,
    (seed, walked): (u64, u64),
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, common.objective);
    let base = restore(&mut engine, base)?;
    let given = base.size;
    let mut explorer = Explorer::new(pool, &base, seed);
    let began = Instant::now();
    let (mut best, mut finds): (Option<Shared<M>>, usize) = (None, 0);
    while finds < FINDS && engine.meter.executed < walked && engine.meter.ended().is_none() {
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
