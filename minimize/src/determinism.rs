//! Whether the model does the same twice: the recorded schedule is run two times side by side before anything else, because
//! nothing that is said of a model that rolls dice can be relied on.

use std::time::{Duration, Instant};

use demi_replay::script::{Act, Script};
use demi_replay::{Did, Model, Simulator};
use demi_schemas::NetworkRule;

use crate::problem::budget::Meter;

/// Where two runs of one schedule parted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model is not deterministic at step {step}: {actor}, {message}: once {first}; then {second}")]
pub struct Parted {
    /// The step, from 1.
    pub step: usize,
    /// The actor whose step it is.
    pub actor: String,
    /// What it took.
    pub message: String,
    /// What came of it the first time.
    pub first: String,
    /// What came of it the second time.
    pub second: String,
}

/// Characters of an outcome that are told; states may be large.
const TOLD: usize = 400;

/// Part of the seconds there are that the comparison may take: steps may be slow.
const PART: f64 = 0.1;
/// Steps by which it is known how long one takes. A model in a process of its own starts with the first ones.
const ENOUGH: usize = 8;
/// Part of the seconds that it may take before so many were made.
const MORE: f64 = 0.3;

/// How long a step takes, by how long some took: without the longest of them, in which processes start and files are read for the first time.
fn usual(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    let longest = (took.len() / 8).max(2).min(took.len() / 2);
    took.truncate(took.len() - longest);
    took.iter().sum::<Duration>() / took.len().max(1) as u32
}

/// Runs a script twice, step by step, and compares after each what the step did and what became of its actor, as far as there is time. Gives
/// how long a step takes.
///
/// # Errors
/// At the first step that did not do the same.
pub fn check<M: Model>(
    sim: &Simulator<M>,
    script: &Script,
    rule: NetworkRule,
    meter: &Meter,
) -> Result<Duration, Box<Parted>> {
    let mut took: Vec<Duration> = Vec::with_capacity(script.acts.len());
    let mut sims = [sim.clone(), sim.clone()];
    let mut worlds = sims.each_mut().map(Simulator::empty_world);
    for (at, act) in script.acts.iter().enumerate() {
        if meter.gone(MORE) || meter.gone(PART) && at >= ENOUGH {
            return Ok(usual(took));
        }
        let began = Instant::now();
        let mut done = Vec::with_capacity(2);
        for (sim, world) in sims.iter_mut().zip(&mut worlds) {
            let followed = act.perform(sim, world, &script.actions, rule);
            // What it says may have addresses in it.
            let said = |panic| sim.crashed(panic).map_or_else(String::new, |crash| crash.fingerprint);
            done.push((followed.is_ok(), did(sim), world.panic().map(said)));
        }
        took.push(began.elapsed() / 2);
        let actor = act.actor();
        let state =
            |which: usize| actor.and_then(|actor| sims[which].view(&worlds[which]).state(actor).cloned());
        let same = match actor {
            Some(_) => state(0) == state(1),
            None => worlds[0].cells() == worlds[1].cells(),
        };
        if same && done[0] == done[1] {
            if worlds.iter().any(|world| world.panic().is_some()) {
                return Ok(usual(took));
            }
            continue;
        }
        let outcome = |which: usize| {
            let (followed, did, panic) = &done[which];
            let text = match (panic, followed) {
                (Some(panic), _) => format!("it panicked: {panic}"),
                (None, false) => "it could not be taken".to_owned(),
                (None, true) => format!("state {:?}, {}", state(which), did.join(", ")),
            };
            text.chars().take(TOLD).collect()
        };
        return Err(Box::new(Parted {
            step: at + 1,
            actor: actor.map_or("outside", |actor| sims[0].names().get(actor)).to_owned(),
            message: message(&sims[0], act),
            first: outcome(0),
            second: outcome(1),
        }));
    }
    Ok(usual(took))
}

/// What the last step did, in words: numbers mean nothing in another simulator.
fn did<M: Model>(sim: &Simulator<M>) -> Vec<String> {
    let name = |actor| sim.names().get(actor);
    let of = |did: &Did| match did {
        Did::Sent(entry) => format!("sent {} to {}", sim.text(sim.info(entry.msg).payload), name(entry.to)),
        Did::TimerSet(entry) => format!("set {}", sim.text(sim.info(entry.msg).payload)),
        Did::TimerCancelled(entry) => format!("cancelled {}", sim.text(sim.info(entry.msg).payload)),
        Did::Crashed(actor) => format!("{} failed", name(*actor)),
        Did::Restarted(actor) => format!("{} began anew", name(*actor)),
        Did::Started(actor) => format!("{} started", name(*actor)),
    };
    sim.did().iter().map(of).collect()
}

fn message<M: Model>(sim: &Simulator<M>, act: &Act) -> String {
    match act {
        Act::Deliver(want) => sim.text(want.payload).to_owned(),
        Act::Start(_) => "its start".to_owned(),
        Act::Restart(_) => "its restart".to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_with_the_first_steps_counts_for_none() {
        let steps = |some: &[u64]| some.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
        assert_eq!(usual(steps(&[600, 500, 2, 2, 2, 2, 2, 2, 2])), Duration::from_millis(2));
        assert_eq!(usual(steps(&[100; 20])), Duration::from_millis(100), "slow steps are slow");
        assert_eq!(usual(steps(&[40])), Duration::from_millis(40));
        assert_eq!(usual(Vec::new()), Duration::ZERO);
    }
}
