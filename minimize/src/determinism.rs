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

/// Runs a script twice, step by step, and compares after each what the step did and what became of its actor, as far as there is time. Gives
/// how long a step took.
///
/// # Errors
/// At the first step that did not do the same.
pub fn check<M: Model>(
    sim: &Simulator<M>,
    script: &Script,
    rule: NetworkRule,
    meter: &Meter,
) -> Result<Duration, Box<Parted>> {
    let began = Instant::now();
    let step = |made: usize| began.elapsed() / (2 * made.max(1)) as u32;
    let mut sims = [sim.clone(), sim.clone()];
    let mut worlds = sims.each_mut().map(Simulator::empty_world);
    for (at, act) in script.acts.iter().enumerate() {
        if meter.gone(PART) {
            return Ok(step(at));
        }
        let mut done = Vec::with_capacity(2);
        for (sim, world) in sims.iter_mut().zip(&mut worlds) {
            let followed = act.perform(sim, world, &script.actions, rule);
            // What it says may have addresses in it.
            let said = |panic| sim.crashed(panic).map_or_else(String::new, |crash| crash.fingerprint);
            done.push((followed.is_ok(), did(sim), world.panic().map(said)));
        }
        let actor = act.actor();
        let state =
            |which: usize| actor.and_then(|actor| sims[which].view(&worlds[which]).state(actor).cloned());
        let same = match actor {
            Some(_) => state(0) == state(1),
            None => worlds[0].cells() == worlds[1].cells(),
        };
        if same && done[0] == done[1] {
            if worlds.iter().any(|world| world.panic().is_some()) {
                return Ok(step(at + 1));
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
    Ok(step(script.acts.len()))
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
