//! The shortest execution over given external events, with its proof; a ledger remembers proofs, in which most of the work of
//! many minimizations is.

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::certificate::Shortest;
use demi_schemas::{NetworkRule, Schedule};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::oracle::witness::Shared;
use crate::plan::{ALL, NEAR, PROOF_PART, SOON, SOON_NEAR, UNBOUNDED};
use crate::problem::size::{Objective, starts_late};
use crate::reduce::reducer::Reducer;
use crate::search::{self, Query, Root, Searched};
use crate::solution::Solution;

/// The phase that looks for the shortest execution over given external events.
const PROOF: &str = "shortest search";
/// What limits the proof of a result in which an actor starts late.
const LATE: &str = "late start";

/// What the ledger keeps of a proof.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// What was found, if it was smaller, or as small and all actors start first.
    schedule: Option<String>,
    replays: u64,
    executed: u64,
    shortest: Option<Shortest>,
}

/// Looks for the shortest execution over the external events of the reducer's witness, on all threads, and proves what it can
/// with not many more than `most` configurations; or takes what that came to from the ledger.
pub fn prove<M: Model>(reducer: &mut Reducer<'_, M>, most: u64) -> Option<Shortest> {
    let problem = reducer.engine.problem.clone();
    let Some(ledger) = &problem.criteria.ledger else { return search_all(reducer, most) };
    if reducer.ended() {
        return None;
    }
    let of = reducer.engine.to_schedule(&reducer.best.acts).to_text();
    // What a budget of replays or states leaves for it limits the proof.
    let left = reducer.engine.meter.left().min(most.saturating_mul(2));
    let key = xxh3_128(format!("{:032x} shortest {most} {left} {of}", problem.digest()).as_bytes());
    let meter = &reducer.engine.meter;
    let before = (meter.replays, meter.executed, reducer.best.clone());
    let known = ledger.start(key).and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    if let Some(kept) = known {
        let schedule = kept.schedule.as_ref().and_then(|text| Schedule::parse(text).ok());
        let found = schedule.and_then(|schedule| reducer.engine.restore(&schedule));
        (reducer.engine.meter.replays, reducer.engine.meter.executed) = (before.0, before.1);
        // A model that is not deterministic may not do it again.
        if found.is_some() == kept.schedule.is_some() {
            reducer.phase(PROOF, |s| {
                s.engine.meter.replays += kept.replays;
                s.engine.meter.executed += kept.executed;
                if let Some(found) = found {
                    s.take(found);
                }
            });
            return kept.shortest;
        }
    }
    let shortest = search_all(reducer, most);
    // A proof that the end of the budget cut short goes farther another time.
    if !reducer.ended() {
        let changed = reducer.best.acts != before.2.acts;
        let kept = Kept {
            schedule: changed.then(|| reducer.engine.to_schedule(&reducer.best.acts).to_text()),
            replays: reducer.engine.meter.replays - before.0,
            executed: reducer.engine.meter.executed - before.1,
            shortest: shortest.clone(),
        };
        ledger.note_start(key, &serde_json::to_string(&kept).unwrap_or_default());
    }
    shortest
}

fn search_all<M: Model>(reducer: &mut Reducer<'_, M>, most: u64) -> Option<Shortest> {
    let jobs = reducer.engine.problem.options.jobs.max(1);
    // Bounds are about executions without faults; and who checks a proof knows the model's own only.
    let faulty = reducer.best.acts.iter().any(Act::is_fault);
    let bound = reducer.engine.own_bound().filter(|_| !faulty);
    let few = UNBOUNDED.min(most);
    let mut shortest = None;
    reducer.phase(PROOF, |s| {
        let witness = s.best.clone();
        let searched = search::prove(&mut s.engine, &witness, bound.as_ref(), (few, most), jobs);
        let Some(searched) = s.searched(searched) else { return };
        let best = searched.found.clone().unwrap_or(witness);
        let (mut at_least, mut states) = (searched.at_least, searched.states);
        let mut starts_at_any_time = !faulty && s.engine.rule != NetworkRule::Fifo;
        if searched.complete && !faulty && s.engine.rule == NetworkRule::Fifo {
            let shorter = best.size.deliveries.saturating_sub(1);
            let (acts, most) = (&best.acts, if bound.is_none() { few } else { most });
            let query = Query::from(Root::Started).over(acts).in_any_order();
            let query = query.deliveries(shorter).states(most).bound(bound.as_ref()).threads(jobs);
            let none = query.run(&mut s.engine);
            if let Some(none) = s.searched(none).filter(Searched::nothing) {
                starts_at_any_time = true;
                (at_least, states) = (shorter + 1, states + none.states);
            }
        }
        if let Some(found) = searched.found {
            s.take(found);
        }
        // What was found starts all actors first; what stays may not, and then is not what the proof is about.
        let meant = starts_at_any_time || !starts_late(&best.acts);
        // Nothing is shorter than what needs no delivery, so nothing was looked at.
        if meant {
            at_least = at_least.min(best.size.deliveries);
        }
        let optimal = at_least == best.size.deliveries && meant;
        let limited_by = (!optimal).then(|| searched.stopped.unwrap_or(LATE));
        shortest = Some(Shortest {
            at_least: at_least as u64,
            optimal,
            externals: Vec::new(),
            states,
            bounded: bound.is_some(),
            starts_at_any_time,
            limited_by: limited_by.map(str::to_owned),
        });
    });
    shortest
}

/// The shortest execution over the external events of a solution, with its proof, where little work gives one. Then only fewer
/// external events are left to look for.
pub fn soon<M: Model>(reducer: &mut Reducer<'_, M>, best: &Solution) -> Option<(Solution, Shortest)> {
    if reducer.engine.problem.options.objective != Objective::Steps {
        return None;
    }
    let witness = reducer.engine.restore(&best.schedule)?;
    shortest(reducer, witness, SOON)
}

/// The shortest execution over all recorded external events, with its proof, where these are few and little work gives one.
pub fn whole<M: Model>(reducer: &mut Reducer<'_, M>, recording: Shared<M>) -> Option<(Solution, Shortest)> {
    let bounded = reducer.engine.own_bound().is_some();
    let objective = reducer.engine.problem.options.objective;
    let few = recording.size.externals <= ALL && objective == Objective::Steps;
    if !bounded || !few || recording.acts.iter().any(Act::is_fault) {
        return None;
    }
    shortest(reducer, recording, SOON_NEAR)
}

/// The shortest execution over the external events of a witness, with its proof, where little work gives one.
fn shortest<M: Model>(
    reducer: &mut Reducer<'_, M>,
    witness: Shared<M>,
    most: u64,
) -> Option<(Solution, Shortest)> {
    let before = std::mem::replace(&mut reducer.best, witness);
    let limits = reducer.engine.meter.narrow(PROOF_PART);
    let mut shortest = prove(reducer, most);
    let near = |s: &Shortest| !s.optimal && s.at_least as usize + NEAR >= reducer.best.size.deliveries;
    if most < SOON_NEAR && shortest.as_ref().is_some_and(near) {
        shortest = prove(reducer, SOON_NEAR);
    }
    reducer.engine.meter.widen(limits);
    let found = std::mem::replace(&mut reducer.best, before);
    let schedule = reducer.engine.to_schedule(&found.acts);
    shortest
        .filter(|s| s.optimal)
        .map(|s| (Solution { schedule, size: found.size, ..Solution::default() }, s))
}
