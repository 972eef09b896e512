//! Beam searches from the initial configuration, over the external events of a result and over neighbouring sets of them.
//!
//! What is found depends on the external events, the rule and the violation alone, not on the order in which things were
//! recorded: results of different recordings of one bug that end at different places meet here. A model that gives a
//! bound says which configurations of a layer are nearest to the violation; without one those come first that are unlike
//! what was there before.

use std::sync::Arc;

use demi_replay::Model;
use demi_replay::model::DistanceOf;
use demi_replay::script::Act;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use super::event_sets::{self, Set};
use crate::archive::Archive;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::oracle::witness::Shared;
use crate::plan::{BEAM_JOBS, BEAM_PART, FEWER, MORE, Reach, Reaches};
use crate::problem::Problem;
use crate::problem::budget::Budget;
use crate::problem::size::{Objective, Size};
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share, Site};
use crate::search::{Lead, Query, Root};
use crate::solution::Solution;

/// The width of what was searched to the end.
const WHOLE: u64 = u64::MAX;

/// How far a beam search goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beam {
    /// Most deliveries of an execution.
    pub(super) deliveries: usize,
    /// Deliveries made in each layer, not many more.
    pub(super) width: u64,
    /// From which configurations.
    pub(super) lead: Lead,
    /// Most messages from outside that are taken, if it is the search's choice which.
    pub(super) outside: Option<usize>,
}

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

/// Searches around the external events of a result as some of [`Reach`] say, goes on from what is better and ends when
/// nothing is. What was `tried` is not searched again.
pub struct Beams<'t, M: Model> {
    reaches: &'static [Reach],
    next: usize,
    best: Solution,
    around: Vec<Set>,
    pool: Vec<Act>,
    bound: Option<Arc<DistanceOf<M>>>,
    /// What was searched over, last the batch that is under way, and how many are in that.
    tried: &'t mut Vec<Tried>,
    under_way: usize,
}

impl<'t, M: Model> Beams<'t, M> {
    /// Beams around a solution.
    pub fn new(
        problem: &Arc<Problem<M>>,
        reaches: Reaches,
        best: &Solution,
        tried: &'t mut Vec<Tried>,
    ) -> Self {
        let bound = Engine::new(problem, Budget::Replays(u64::MAX)).bound();
        // Without a bound beams are led by what they have not seen yet.
        let reaches = if bound.is_some() { reaches.led } else { reaches.blind };
        let pool = problem.pool();
        let around = event_sets::around(problem, best, &pool);
        Beams { reaches, next: 0, best: best.clone(), around, pool, bound, tried, under_way: 0 }
    }

    /// Takes in what the last batch came to.
    fn learn(&mut self, archive: &Archive<'_, M>) {
        let found = archive.last();
        // What was searched to the end is not searched more widely; results come one for each search, unless all ended.
        if found.len() == self.under_way {
            let first = self.tried.len() - self.under_way;
            for (tried, found) in self.tried[first..].iter_mut().zip(found) {
                tried.width = if found.whole { WHOLE } else { tried.width };
            }
        }
        let sizes = std::iter::once(self.best.size).chain(found.iter().map(|s| s.size));
        if let Some(better) = archive.objective().least(sizes).filter(|at| *at > 0) {
            self.best = found[better - 1].clone();
            self.around = event_sets::around(&archive.site.problem, &self.best, &self.pool);
            self.next = 0;
        }
        self.under_way = 0;
    }
}

impl<M: Model> Strategy<M> for Beams<'_, M> {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        if self.under_way > 0 {
            self.learn(archive);
        }
        let bound = &self.bound;
        while let Some(&reach) = self.reaches.get(self.next) {
            let work = work(archive.objective(), (&self.best, &self.around), reach, self.tried);
            if work.is_empty() {
                self.next += 1;
                continue;
            }
            self.under_way = work.len();
            let from = xxh3_128(self.best.schedule.to_text().as_bytes());
            let job = |Tried { set, limit, width, lead }: &Tried| {
                let key = format!("beam {width} {lead:?} {limit} {:?} {from:032x} {}", set.choice, set.told);
                let beam = Beam { deliveries: *limit, width: *width, lead: *lead, outside: set.choice };
                let (best, set, bound) = (self.best.clone(), set.clone(), bound.clone());
                let share = Share { part: BEAM_PART, of: work.len() };
                Job {
                    key,
                    share,
                    work: Box::new(move |site, share| one(site, &best, (&set, bound.as_ref()), beam, share)),
                }
            };
            let jobs = work.iter().map(job).collect();
            self.tried.extend(work);
            return jobs;
        }
        Vec::new()
    }
}

/// The next sets to search around a result, with their limits.
fn work(
    objective: Objective,
    (best, around): (&Solution, &[Set]),
    Reach { width, lead, choices, near }: Reach,
    tried: &[Tried],
) -> Vec<Tried> {
    let with_limit = |set: &Set| {
        let externals =
            set.choice.map_or(set.externals.len(), |most| event_sets::starts(&set.externals).len() + most);
        let limit = limit(objective, best.size, &set.externals, externals)?;
        Some(Tried { set: set.clone(), limit, width, lead })
    };
    let known = |new: &Tried| tried.iter().any(|old| old.covers(new));
    let (to_choose, others): (Vec<&Set>, Vec<&Set>) = around.iter().partition(|set| set.choice.is_some());
    let next = to_choose.into_iter().take(choices).chain(others.into_iter().take(near));
    next.filter_map(with_limit).filter(|new| !known(new)).take(BEAM_JOBS).collect()
}

/// One search, and the reduction of what it finds; the result as it was if it finds nothing better; nothing where the
/// budget has ended.
pub(super) fn one<M: Model>(
    site: &Site<'_, M>,
    best: &Solution,
    (set, bound): (&Set, Option<&Arc<DistanceOf<M>>>),
    beam: Beam,
    share: Budget,
) -> Option<Solution> {
    let mut engine = Engine::new(&site.problem, share);
    // A result that is still long costs more to restore than a search.
    if engine.meter.ended().is_some() {
        return None;
    }
    // What has fewer external events belongs to the Pareto front, though it may have more steps.
    if beam.outside.map_or(set.externals.len(), |most| event_sets::starts(&set.externals).len() + most)
        < best.size.externals
    {
        engine.objective = Objective::Externals;
    }
    let given = engine.restore(&best.schedule)?;
    let mut reducer = Reducer::new(engine, given, site.tell);
    let mut whole = false;
    let found = reducer.phase("beams", |s| {
        let query = Query::from(Root::Started).over(&set.externals).deliveries(beam.deliveries);
        let query = query.bound(bound).threads(site.threads);
        let searched = query.beam(beam.width, beam.lead).choosing(beam.outside).run(&mut s.engine);
        // Where no layer was left before its end a wider beam finds nothing shorter; and where nothing can be searched neither can it.
        let searched = s.searched(searched);
        whole = searched.as_ref().is_none_or(|searched| searched.complete);
        let found = searched.and_then(|searched| searched.found);
        let found = found.map(|found| without_idle(&mut s.engine, found));
        s.keep(found);
    });
    if found {
        reducer.reduce(&Policy::portfolio(site.problem.rule()));
    }
    Some(Solution { whole, ..Solution::of(reducer) })
}

/// Leaves out the starts of actors that take nothing.
fn without_idle<M: Model>(engine: &mut Engine<M>, found: Shared<M>) -> Shared<M> {
    let takes = |actor| found.acts.iter().any(|act| act.is_delivery() && act.actor() == actor);
    let needed = |act: &&Act| !matches!(act, Act::Start(_)) || takes(act.actor());
    let rest: Vec<Act> = found.acts.iter().filter(needed).copied().collect();
    let shorter = (rest.len() < found.acts.len()).then(|| engine.first_witness(&rest, EXACT)).flatten();
    shorter.unwrap_or(found)
}

/// With how many deliveries an execution over a set, of which it takes so many external events, is smaller than a result, or
/// has fewer external events and not many more steps; nothing if with none.
fn limit(objective: Objective, best: Size, set: &[Act], externals: usize) -> Option<usize> {
    let others = set.iter().filter(|act| !act.is_delivery()).count();
    let steps = match (objective, externals < best.externals) {
        (_, true) => best.steps + (FEWER * (best.externals - externals)).min(MORE),
        (Objective::Steps, false) => best.steps.saturating_sub(1),
        (Objective::Externals, false) if externals == best.externals => best.steps.saturating_sub(1),
        (Objective::Externals, false) => return None,
    };
    steps.checked_sub(others).filter(|limit| *limit > 0)
}
