//! What may happen next, in the default order, with what each choice costs.
//!
//! The default order is: messages, the oldest first; then the next message from outside; then timers, the one that was armed first. Under
//! the cost of preemptions, what the actor may take that took something last comes before the rest. Around a recorded execution its next step
//! that is possible comes before everything, at any cost.

use demi_replay::fuzz::Choice;
use demi_replay::network::same_channel;
use demi_replay::{ActorId, Model, Simulator, Status};
use demi_schemas::NetworkRule;

use crate::cost::{Cost, Spent};
use crate::moment::Moment;
use crate::scene::Scene;

/// A choice and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What happens.
    pub choice: Choice,
    /// What happens right after it, without a choice.
    pub then: Option<Choice>,
    /// How much of the recorded execution is then done or passed over.
    pub at: usize,
    /// What it adds to what the execution has spent.
    pub spends: Spent,
}

/// All choices at a moment, the default one first; faults come last, and only where `faults` of them are left.
#[must_use]
pub fn menu<M: Model>(
    sim: &mut Simulator<M>,
    scene: &Scene,
    moment: &Moment<M>,
    cost: Cost,
    faults: u32,
) -> Vec<Item> {
    let world = &moment.world;
    if world.panic().is_some() {
        return Vec::new();
    }
    // By choice: who takes something, and the messages that are lost by it.
    let mut first: Vec<(Choice, Option<ActorId>, u32)> = Vec::new();
    let mut timers = Vec::new();
    for (index, entry) in world.pending().iter().enumerate() {
        if !sim.deliverable(world, index, scene.rule) {
            continue;
        }
        let choice = Choice::Deliver(index as u32);
        if entry.kind.is_timer() {
            timers.push((choice, Some(entry.to), 0));
        } else {
            let lost = match scene.rule {
                NetworkRule::FifoLoss => {
                    world.pending()[..index].iter().filter(|older| same_channel(older, entry)).count()
                }
                _ => 0,
            };
            first.push((choice, Some(entry.to), lost as u32));
        }
    }
    if let Some(&random) = scene.clients.get(moment.sent).filter(|_| moment.open) {
        first.push((Choice::Client(moment.sent as u64, random), None, 0));
    }
    first.extend(timers);
    let logged = scene.log.next(sim, world, moment.at, (&scene.program, scene.rule));
    if let Some(next) = &logged {
        // The recorded step comes first, and is not offered a second time.
        first.retain(|(choice, ..)| next.then.is_some() || *choice != next.choice);
        first.insert(0, (next.choice, next.who, 0));
    }
    let stays = |who: Option<ActorId>| cost == Cost::Preempt && who.is_some() && who == moment.last;
    let goes_on = logged.is_none() && first.iter().any(|(_, who, _)| stays(*who));
    if goes_on {
        first.sort_by_key(|(_, who, _)| !stays(*who));
    }
    let mut items: Vec<Item> = first
        .iter()
        .enumerate()
        .map(|(at, &(choice, who, lost))| {
            let cost = match cost {
                Cost::Deviation => u32::from(at > 0),
                Cost::Delay => at as u32,
                Cost::Preempt if logged.is_some() => u32::from(at > 0),
                Cost::Preempt => u32::from(goes_on && !stays(who)),
            };
            let then = logged.as_ref().filter(|_| at == 0).map(|next| (next.then, next.at + 1));
            let (then, at) = then.unwrap_or((None, moment.at));
            Item { choice, then, at, spends: Spent { cost, faults: lost, steps: 1 } }
        })
        .filter(|item| item.spends.faults <= faults)
        .collect();
    if faults > 0 {
        let spends = Spent { cost: 0, faults: 1, steps: 1 };
        let (then, at) = (None, moment.at);
        items.extend(failures(sim, moment, scene.repeats).into_iter().map(|choice| Item {
            choice,
            then,
            at,
            spends,
        }));
    }
    items
}

/// The faults that are possible.
fn failures<M: Model>(sim: &Simulator<M>, moment: &Moment<M>, repeats: bool) -> Vec<Choice> {
    let mut all = Vec::new();
    for &actor in sim.model().actors() {
        match moment.world.status(actor) {
            Status::Running => all.extend([Choice::Crash(actor), Choice::Isolate(actor)]),
            Status::Isolated => all.extend([Choice::Crash(actor), Choice::Heal(actor)]),
            Status::Crashed => all.push(Choice::Restart(actor)),
            Status::Absent | Status::Stopped => {}
        }
    }
    if repeats {
        let pending = moment.world.pending();
        // Copies of one message are alike.
        let what = |at: usize| (pending[at].from, pending[at].to, pending[at].msg);
        let first = |at: usize| (0..at).all(|other| what(other) != what(at));
        let entries = pending.iter().enumerate();
        let may = entries.filter(|(at, entry)| first(*at) && sim.may_repeat(entry));
        all.extend(may.map(|(at, _)| Choice::Duplicate(at as u32)));
    }
    all
}
