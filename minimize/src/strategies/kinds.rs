//! Searches near the results, over the kinds of their deliveries or along them: wider for what is better, and wider each time that nothing is
//! found.

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::Schedule;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use crate::archive::{Archive, pareto};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::plan::{KINDS_LEADS, KINDS_PART, KINDS_WITHOUT, Near};
use crate::problem::budget::Budget;
use crate::problem::size::Objective;
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share, Site};
use demi_space::Unsearchable;

use crate::search::{Lead, Query, Root, Searched};
use crate::solution::Solution;

/// Searches over kinds, ring by ring.
pub struct OverKinds<'t> {
    rings: &'static [Near],
    /// Digests of what was searched: of a ring and a lead.
    tried: &'t mut FxHashSet<u128>,
}

impl<'t> OverKinds<'t> {
    /// Searches in these rings around the results. What was `tried` is not searched again.
    pub fn new(rings: &'static [Near], tried: &'t mut FxHashSet<u128>) -> Self {
        OverKinds { rings, tried }
    }
}

impl<M: Model> Strategy<M> for OverKinds<'_> {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        let mut leads = pareto(archive.results.clone());
        let objective = archive.objective();
        leads.sort_by_key(|solution| objective.key(solution.size));
        leads.truncate(KINDS_LEADS);
        let mut jobs = Vec::new();
        for lead in leads {
            let from = xxh3_128(lead.schedule.to_text().as_bytes());
            let key = |ring: &Near| format!("kinds {ring:?} {from:032x}");
            let is_new = |ring: &&Near| self.tried.insert(xxh3_128(key(ring).as_bytes()));
            let Some(ring) = self.rings.iter().find(is_new).copied() else { continue };
            jobs.push((key(&ring), lead.schedule, ring));
        }
        let share = Share { part: KINDS_PART, of: jobs.len() };
        let job = |(key, lead, ring): (String, Schedule, Near)| Job {
            key,
            share,
            work: Box::new(move |site: &Site<'_, M>, share| one(site, &lead, ring, objective, share)),
        };
        jobs.into_iter().map(job).collect()
    }
}

/// One search near a result, and the reduction of what it finds; again near that, as long as it finds anything.
pub(super) fn one<M: Model>(
    site: &Site<'_, M>,
    lead: &Schedule,
    near: Near,
    objective: Objective,
    share: Budget,
) -> Option<Solution> {
    let policies = Policy::portfolio(site.problem.rule());
    let mut engine = Engine::new(&site.problem, share);
    if engine.meter.ended().is_some() {
        return None;
    }
    engine.objective = objective;
    let given = engine.restore(lead)?;
    let mut reducer = Reducer::new(engine, given, site.tell);
    while round(&mut reducer, near, site.threads) {
        reducer.reduce(&policies);
    }
    Some(Solution::of(reducer))
}

/// Searches near the witness, with all of its external events and without each; says whether something was found.
fn round<M: Model>(reducer: &mut Reducer<'_, M>, near: Near, threads: usize) -> bool {
    let mut found = false;
    reducer.phase(if near.in_order { "trails" } else { "kinds" }, |s| {
        let witness = s.best.clone();
        let messages = (0..witness.acts.len()).rev().filter(|at| !matches!(witness.acts[*at], Act::Start(_)));
        // A trail passes over messages from outside by itself.
        let most = if near.in_order { 0 } else { KINDS_WITHOUT };
        let outside = messages.filter(|at| witness.acts[*at].is_external()).take(most);
        for without in [None].into_iter().chain(outside.map(Some)) {
            let searched = nearby(&mut s.engine, &witness, (near, threads), without);
            let shorter = s.searched(searched).and_then(|searched| searched.found);
            found = s.keep(shorter);
            if found || s.ended() {
                return;
            }
        }
    });
    found
}

/// A violating execution with fewer deliveries than a witness, none of a kind more often than the witness has it, but for those
/// [`beyond`](Near::beyond), and without one of its external events.
fn nearby<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    (near, threads): (Near, usize),
    without: Option<usize>,
) -> Result<Searched<M>, Unsearchable> {
    let left = witness.acts.iter().enumerate().filter(|(at, _)| Some(*at) != without);
    let left: Vec<Act> = left.map(|(_, act)| *act).collect();
    let bound = engine.bound();
    let shorter = witness.size.deliveries.saturating_sub(1);
    let query = Query::from(Root::Started).over(&left).deliveries(shorter).states(near.states);
    let query = match near.in_order {
        true => query.in_order(&witness.acts, near.alike, near.beyond),
        false => query.kinds(&witness.acts, near.alike, near.beyond),
    };
    let query = query.bound(bound.as_ref()).threads(threads);
    let query = match near.width {
        Some(width) => query.beam(width, Lead::Rare),
        None => query,
    };
    // So that a budget of replays ends where all of them find nothing.
    engine.meter.replays += 1;
    query.run(engine)
}
