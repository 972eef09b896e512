//! Beam searches from the initial configuration, over the external events of a result and over neighbouring sets of them.
//!
//! What is found depends on the external events, the rule and the violation alone, not on the order in which things were
//! recorded: results of different recordings of one bug that end at different places meet here. A model that gives a
//! bound says which configurations of a layer are nearest to the violation; without one there is nothing to go by.

use std::sync::Arc;

use demi_replay::Model;
use demi_replay::model::Bound;
use demi_replay::script::Act;
use xxhash_rust::xxh3::xxh3_128;

use crate::budget::Budget;
use crate::search::Lead::{self, Light, Nearest};
use crate::search::{self, Beam};
use crate::sets::{self, CHOICES, Set};
use crate::stage::Stage;
use crate::start::Start;
use crate::starts::{Common, Purse, restore, side_by_side};
use crate::witness::{Objective, Size, WORTH};

/// Over which sets to search, and how.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Deliveries that are made in a layer.
    width: u64,
    /// From which configurations.
    lead: Lead,
    /// Over how many of the sets to choose from.
    choices: usize,
    /// Over how many of the others, the nearest first.
    near: usize,
}

const fn reach(width: u64, lead: Lead, choices: usize, near: usize) -> Reach {
    Reach { width, lead, choices, near }
}

/// What is tried, one after the other.
pub const REACHES: [Reach; 17] = [
    reach(3_200, Nearest, 0, usize::MAX),
    reach(3_200, Light(4), CHOICES, 0),
    reach(3_200, Light(2), 0, usize::MAX),
    reach(3_200, Nearest, CHOICES, 0),
    reach(24_000, Nearest, 0, 2),
    reach(24_000, Light(4), 0, 2),
    reach(24_000, Light(4), CHOICES, 0),
    reach(24_000, Nearest, CHOICES, 0),
    reach(24_000, Light(2), 0, 40),
    reach(100_000, Nearest, 0, 2),
    reach(24_000, Nearest, 0, 40),
    reach(100_000, Nearest, CHOICES, 4),
    reach(100_000, Light(4), CHOICES, 4),
    reach(24_000, Nearest, 0, usize::MAX),
    reach(100_000, Light(2), 0, 24),
    reach(100_000, Nearest, 0, 24),
    reach(400_000, Nearest, 0, 2),
];
/// What comes before walks: what is near a recording leads to other results than what is far better.
pub const NARROW: &[Reach] = REACHES.split_at(1).0;
/// What is tried around a result over whose external events nothing is shorter: others may be worth more.
pub const OTHERS: [Reach; 3] =
    [reach(3_200, Light(4), CHOICES, 0), reach(3_200, Nearest, CHOICES, 0), reach(100_000, Nearest, 0, LESS)];
/// How many sets hold what has an actor or an event less.
const LESS: usize = 8;
/// Deliveries that an execution with fewer external events may have more than the result it is to replace.
const MORE: usize = 15;
/// The width of what was searched to the end.
const WHOLE: u64 = u64::MAX;
/// Searches between two times of going on from what is better.
const ROUND: usize = 8;

/// A set that was searched over, with which limit and width, and from which configurations.
pub struct Tried {
    set: Set,
    limit: usize,
    width: u64,
    lead: Lead,
}

impl Tried {
    /// Whether another search finds nothing that this one does not.
    fn covers(&self, other: &Tried) -> bool {
        let same = self.set.form == other.set.form && self.set.choice == other.set.choice;
        let led = self.width == WHOLE || self.lead == other.lead && self.width >= other.width;
        same && self.limit >= other.limit && led
    }
}

/// Searches around the external events of a result as some of [`REACHES`] say, goes on from what is better and ends when
/// nothing is. Gives every result on the way. What was `tried` is not searched again.
pub fn searched<M: Model>(
    common: &Common<'_, M>,
    best: &Start,
    mut purse: Purse,
    reaches: &[Reach],
    tried: &mut Vec<Tried>,
) -> Vec<Start> {
    let Some(bound) = common.engine(Budget::Replays(u64::MAX), common.objective).bound() else {
        return Vec::new();
    };
    let pool: Vec<Act> = common.raw.iter().filter(|a| a.is_external()).copied().collect();
    let mut best = best.clone();
    let mut all: Vec<Start> = Vec::new();
    let from_first = || reaches.iter().copied();
    let mut reaches = from_first();
    let mut next = reaches.next();
    let mut around = sets::around(common, &best, &pool);
    while let Some(reach) = next.filter(|_| !common.stop.is_set()) {
        let Reach { width, lead, .. } = reach;
        let work = work(common.objective, (&best, &around), reach, tried);
        if work.is_empty() {
            next = reaches.next();
            continue;
        }
        let share = purse.share(0.4, work.len(), common.jobs);
        let found = side_by_side(common, work.len(), |at| {
            let Tried { set, limit, .. } = &work[at];
            let from = xxh3_128(best.schedule.to_text().as_bytes());
            let what = format!("beam {width} {lead:?} {limit} {:?} {from:032x} {}", set.choice, set.told);
            let beam = Beam { deliveries: *limit, width, lead, outside: set.choice };
            common.remembered(&what, share, || one(common, &best, (set, &bound), beam, share))
        });
        // What was searched to the end is not searched more widely; results come one for each search, unless all ended.
        let all_there = found.len() == work.len();
        tried.extend(work.into_iter().enumerate().map(|(at, set)| {
            let whole = all_there && found[at].whole;
            Tried { width: if whole { WHOLE } else { set.width }, ..set }
        }));
        purse = purse.after(&found);
        let sizes = std::iter::once(best.size).chain(found.iter().map(|s| s.size));
        if let Some(better) = common.objective.choose(sizes).filter(|at| *at > 0) {
            best = found[better - 1].clone();
            around = sets::around(common, &best, &pool);
            reaches = from_first();
            next = reaches.next();
        }
        all.extend(found);
    }
    all
}

/// The next sets to search around a result, with their limits.
fn work(
    objective: Objective,
    (best, around): (&Start, &[Set]),
    Reach { width, lead, choices, near }: Reach,
    tried: &[Tried],
) -> Vec<Tried> {
    let with_limit = |set: &Set| {
        let externals =
            set.choice.map_or(set.externals.len(), |most| sets::starts(&set.externals).len() + most);
        let limit = limit(objective, best.size, externals)?;
        Some(Tried { set: set.clone(), limit, width, lead })
    };
    let known = |new: &Tried| tried.iter().any(|old| old.covers(new));
    let (to_choose, others): (Vec<&Set>, Vec<&Set>) = around.iter().partition(|set| set.choice.is_some());
    let next = to_choose.into_iter().take(choices).chain(others.into_iter().take(near));
    next.filter_map(with_limit).filter(|new| !known(new)).take(ROUND).collect()
}

/// One search, and the reduction of what it finds; the result as it was if it finds nothing better; nothing where the
/// budget has ended.
fn one<M: Model>(
    common: &Common<'_, M>,
    best: &Start,
    (set, bound): (&Set, &Arc<Bound<M>>),
    beam: Beam,
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, common.objective);
    // A result that is still long costs more to restore than a search.
    if engine.meter.ended().is_some() {
        return None;
    }
    engine.settling = true;
    let given = restore(&mut engine, &best.schedule)?;
    let mut stage = Stage::new(engine, given, common.tell);
    let mut whole = false;
    let found = stage.phase("beams", |s| {
        let found;
        (found, whole) = search::beam(&mut s.engine, &set.externals, bound, beam, 1);
        s.keep(found);
    });
    if found {
        stage.reduce(common.policies);
    }
    Some(Start { whole, ..common.done(stage) })
}

/// With how many deliveries an execution over so many external events is smaller than a result; nothing if with none.
fn limit(objective: Objective, best: Size, externals: usize) -> Option<usize> {
    let limit = match objective {
        Objective::Externals => {
            let worth = best.deliveries + WORTH * best.externals;
            let fewer = usize::from(externals >= best.externals);
            worth.checked_sub(WORTH * externals + fewer)?.min(best.deliveries + MORE)
        }
        Objective::Deliveries => best.deliveries.saturating_sub(1),
    };
    (limit > 0).then_some(limit)
}
