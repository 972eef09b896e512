//! Beam searches from the initial configuration, over the external events of a result and over neighbouring sets of them.
//!
//! What is found depends on the external events, the rule and the violation alone, not on the order in which things were
//! recorded: results of different recordings of one bug that end at different places meet here. A model that gives a
//! bound says which configurations of a layer are nearest to the violation; without one there is nothing to go by.

use std::sync::Arc;

use demi_replay::model::Bound;
use demi_replay::names::TextId;
use demi_replay::script::Act;
use demi_replay::{ActorId, Model};

use crate::budget::Budget;
use crate::explore::same_event;
use crate::search;
use crate::stage::Stage;
use crate::start::Start;
use crate::starts::{Common, Purse, restore, side_by_side};
use crate::witness::{Objective, Size, WORTH};

/// Deliveries that are made in a layer, and over how many of the sets: first few, and where that finds nothing more.
const WIDTHS: [(u64, usize); 3] = [(3_200, usize::MAX), (24_000, usize::MAX), (100_000, 12)];
/// Deliveries that an execution with fewer external events may have more than the result it is to replace.
const MORE: usize = 15;

/// Searches between two times of going on from what is better.
const ROUND: usize = 8;

/// A set of external events to search over, with which limit and width.
struct Tried {
    externals: Vec<Act>,
    limit: usize,
    width: u64,
}

impl Tried {
    /// Whether another search finds nothing that this one does not.
    fn covers(&self, other: &Tried) -> bool {
        self.limit >= other.limit && self.width >= other.width && alike(&self.externals, &other.externals)
    }
}

/// Searches around the external events of a result, goes on from what is better, and ends when nothing is. Gives every
/// result on the way.
pub fn searched<M: Model>(common: &Common<'_, M>, best: &Start, mut purse: Purse) -> Vec<Start> {
    let Some(bound) = common.sim.model().bound(&common.target, common.sim.names()).map(Arc::new) else {
        return Vec::new();
    };
    let pool: Vec<Act> = common.raw.iter().filter(|a| a.is_external()).copied().collect();
    let mut best = best.clone();
    let (mut all, mut tried): (Vec<Start>, Vec<Tried>) = (Vec::new(), Vec::new());
    let mut widths = WIDTHS.into_iter();
    let mut next = widths.next();
    while let Some((width, most)) = next.filter(|_| !common.stop.is_set()) {
        let work = work(common, (&best, &pool), (width, most), &tried);
        if work.is_empty() {
            next = widths.next();
            continue;
        }
        let share = purse.share(0.3, ROUND, common.jobs);
        let found = side_by_side(common, work.len(), |at| {
            let Tried { externals, limit, .. } = &work[at];
            let what = format!("beam {width} {limit} {:x?}", told(common, externals));
            common
                .remembered(&what, share, || one(common, &best, (externals, &bound), (*limit, width), share))
        });
        tried.extend(work);
        purse = purse.after(&found);
        let sizes = std::iter::once(best.size).chain(found.iter().map(|s| s.size));
        if let Some(better) = common.objective.choose(sizes).filter(|at| *at > 0) {
            best = found[better - 1].clone();
            widths = WIDTHS.into_iter();
            next = widths.next();
        }
        all.extend(found);
    }
    all
}

/// The next sets to search around a result, with their limits.
fn work<M: Model>(
    common: &Common<'_, M>,
    (best, pool): (&Start, &[Act]),
    (width, most): (u64, usize),
    tried: &[Tried],
) -> Vec<Tried> {
    let with_limit = |externals: Vec<Act>| {
        let limit = limit(common.objective, best.size, externals.len())?;
        Some(Tried { externals, limit, width })
    };
    let known = |new: &Tried| tried.iter().any(|old| old.covers(new));
    let sets = sets(common, best, pool).into_iter().take(most);
    sets.filter_map(with_limit).filter(|new| !known(new)).take(ROUND).collect()
}

/// One search, and the reduction of what it finds; the result as it was if it finds nothing better.
fn one<M: Model>(
    common: &Common<'_, M>,
    best: &Start,
    (externals, bound): (&[Act], &Arc<Bound<M>>),
    (limit, width): (usize, u64),
    share: Budget,
) -> Option<Start> {
    let mut engine = common.engine(share, common.objective);
    engine.settling = true;
    let given = restore(&mut engine, &best.schedule)?;
    let mut stage = Stage::new(engine, given, common.tell);
    let found = stage.phase("beams", |s| {
        let found = search::beam(&mut s.engine, externals, bound, (limit, width), 1);
        s.keep(found);
    });
    if std::env::var("DEMI_TELL").is_ok() {
        eprintln!(
            "width {width} limit {limit} externals {} best {:?} executed {} -> {:?}",
            externals.len(),
            best.size,
            stage.engine.meter.executed,
            stage.best.size
        );
    }
    if found {
        stage.reduce(common.policies);
    }
    Some(common.done(stage))
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

/// The external events of a result, and sets with a little less, a little more, or something else.
fn sets<M: Model>(common: &Common<'_, M>, best: &Start, pool: &[Act]) -> Vec<Vec<Act>> {
    let mut engine = common.engine(Budget::Replays(u64::MAX), common.objective);
    let Some(witness) = restore(&mut engine, &best.schedule) else { return Vec::new() };
    let own: Vec<Act> = witness.acts.iter().filter(|a| a.is_external()).copied().collect();
    let mut all = vec![own.clone()];
    let without: Vec<Vec<Act>> = (0..own.len())
        .filter(|&at| own[at].is_delivery())
        .map(|at| own.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, act)| *act).collect())
        .collect();
    // An actor less, with all that it is told.
    let actors = own.iter().filter(|act| matches!(act, Act::Start(_))).filter_map(Act::actor);
    let smaller = actors.map(|actor| own.iter().filter(|act| act.actor() != Some(actor)).copied().collect());
    let fewer = without.iter().flat_map(|set: &Vec<Act>| {
        let last = |at: &usize| set[*at].is_delivery();
        (0..set.len())
            .rev()
            .filter(last)
            .map(|at| set.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, act)| *act).collect())
    });
    let fewer: Vec<Vec<Act>> = fewer.collect();
    // One message more, of each receiver and sort the first that is not there.
    let mut more: Vec<Act> = Vec::new();
    for act in pool.iter().filter(|act| act.is_delivery()) {
        let known = |other: &Act| same_event(other, act);
        let alike = |other: &Act| sort(other) == sort(act);
        let there = own.iter().any(|a| a.actor() == act.actor() && matches!(a, Act::Start(_)));
        if there && !own.iter().any(known) && !more.iter().any(alike) {
            more.push(*act);
        }
    }
    let with = |set: &[Act], extra: &Act| set.iter().chain([extra]).copied().collect::<Vec<Act>>();
    let larger: Vec<Vec<Act>> = more.iter().map(|extra| with(&own, extra)).collect();
    let other: Vec<Vec<Act>> =
        without.iter().flat_map(|set| more.iter().map(|extra| with(set, extra))).collect();
    // An actor more, with what it is told first.
    let absent = pool.iter().filter(|act| matches!(act, Act::Start(_)) && !own.contains(act));
    let joined = absent.map(|start| {
        let first = pool.iter().find(|act| act.is_delivery() && act.actor() == start.actor());
        [*start].into_iter().chain(own.iter().copied()).chain(first.copied()).collect::<Vec<Act>>()
    });
    for set in smaller.chain(joined).chain(without.clone()).chain(fewer).chain(larger).chain(other) {
        if !all.iter().any(|known| alike(known, &set)) {
            all.push(set);
        }
    }
    all
}

/// Receiver and type of a message from outside.
fn sort(act: &Act) -> Option<(ActorId, TextId)> {
    match act {
        Act::Deliver(want) => Some((want.to, want.type_)),
        _ => None,
    }
}

/// Whether two sets have as many messages of each sort.
fn alike(a: &[Act], b: &[Act]) -> bool {
    let sorts = |set: &[Act]| {
        let mut sorts: Vec<_> = set.iter().map(|act| (sort(act), act.actor())).collect();
        sorts.sort_unstable();
        sorts
    };
    a.len() == b.len() && sorts(a) == sorts(b)
}

/// A set as text, for the ledger.
fn told<M: Model>(common: &Common<'_, M>, externals: &[Act]) -> Vec<String> {
    let name = |act: &Act| act.actor().map_or("", |actor| common.sim.names().get(actor)).to_owned();
    let type_ = |act: &Act| sort(act).map_or("", |(_, type_)| common.sim.text(type_)).to_owned();
    externals.iter().map(|act| format!("{} {}", name(act), type_(act))).collect()
}
