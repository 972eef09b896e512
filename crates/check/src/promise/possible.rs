//! What may happen at a point, and what it costs.

use demi_replay::fuzz::Choice;
use demi_replay::script::Act;
use demi_replay::{Model, OUTSIDE, Pending, PendingKind, Simulator, Status};
use demi_schemas::NetworkRule;

use super::{Frame, Point};
use crate::cost::Cost;

/// Something that may happen.
pub(super) struct Event {
    /// What is done for it, one after the other.
    pub choices: Vec<Choice>,
    /// How much of the recording is then done or passed over.
    pub at: usize,
    /// What it costs.
    pub cost: u32,
    /// How many faults it is.
    pub faults: u32,
}

/// All that may happen.
pub(super) fn events<M: Model>(sim: &mut Simulator<M>, frame: &Frame, point: &Point<M>) -> Vec<Event> {
    let world = &point.world;
    if world.panic().is_some() {
        return Vec::new();
    }
    let at = point.at;
    let recorded = recorded_step(sim, frame, point);
    // What is first in the default order stands first: class, and place among what is pending.
    let mut order: Vec<(u8, usize)> = Vec::new();
    for (index, entry) in world.pending().iter().enumerate() {
        let taken = recorded.as_ref().is_some_and(|event| event.choices == [Choice::Deliver(index as u32)]);
        if !taken && sim.deliverable(world, index, frame.rule) {
            let timer = matches!(entry.kind, PendingKind::Timer | PendingKind::Repeating);
            order.push((if timer { 2 } else { 0 }, index));
        }
    }
    if point.open && point.sent < frame.clients.len() {
        order.push((1, 0));
    }
    order.sort_unstable();
    let receiver = |(class, index): (u8, usize)| (class != 1).then(|| world.pending()[index].to);
    let stays = |one| point.last.is_some() && receiver(one) == point.last;
    let could_stay = order.iter().any(|&one| stays(one));
    let mut all = Vec::new();
    let shift = u32::from(recorded.is_some());
    for (place, &one) in order.iter().enumerate() {
        let before = place as u32 + shift;
        let cost = match (frame.cost, &recorded) {
            (Cost::Delay, _) => before,
            (Cost::Deviation, _) | (Cost::Preempt, Some(_)) => before.min(1),
            (Cost::Preempt, None) => u32::from(could_stay && !stays(one)),
        };
        let (choice, faults) = match one {
            (1, _) => (Choice::Client(point.sent as u64, frame.clients[point.sent]), 0),
            (_, index) => (Choice::Deliver(index as u32), lost(frame.rule, world.pending(), index)),
        };
        all.push(Event { choices: vec![choice], at, cost, faults });
    }
    all.extend(recorded);
    let mut fault = |choice| all.push(Event { choices: vec![choice], at, cost: 0, faults: 1 });
    for &actor in sim.model().actors() {
        let status = world.status(actor);
        if status == Status::Crashed {
            fault(Choice::Restart(actor));
        }
        if matches!(status, Status::Running | Status::Isolated) {
            fault(Choice::Crash(actor));
        }
        if status == Status::Running {
            fault(Choice::Isolate(actor));
        }
        if status == Status::Isolated {
            fault(Choice::Heal(actor));
        }
    }
    if frame.repeats {
        for (index, entry) in world.pending().iter().enumerate() {
            if sim.may_repeat(entry) {
                fault(Choice::Duplicate(index as u32));
            }
        }
    }
    all
}

/// How many messages are lost when one overtakes them.
fn lost(rule: NetworkRule, pending: &[Pending], index: usize) -> u32 {
    let entry = &pending[index];
    let in_order = |p: &Pending| p.kind == PendingKind::Message && p.channel != OUTSIDE;
    if rule != NetworkRule::FifoLoss || !in_order(entry) {
        return 0;
    }
    let older = |p: &&Pending| in_order(p) && (p.channel, p.to) == (entry.channel, entry.to);
    pending[..index].iter().filter(older).count() as u32
}

/// The next recorded step that is possible. It costs nothing.
pub(super) fn recorded_step<M: Model>(
    sim: &mut Simulator<M>,
    frame: &Frame,
    point: &Point<M>,
) -> Option<Event> {
    let world = &point.world;
    for (place, &(step, act)) in frame.log.iter().enumerate().skip(point.at) {
        let choices = match act {
            Act::Noted(_) | Act::Sent => continue,
            Act::Deliver(want) => {
                let pending =
                    want.find(sim, world).filter(|&index| sim.deliverable(world, index, frame.rule));
                match pending {
                    Some(index) => vec![Choice::Deliver(index as u32)],
                    None if want.external.is_some() && world.status(want.to) == Status::Running => {
                        vec![Choice::Program(step), Choice::Deliver(world.pending().len() as u32)]
                    }
                    None => continue,
                }
            }
            Act::Crash(actor) if !matches!(world.status(actor), Status::Running | Status::Isolated) => {
                continue;
            }
            Act::Crash(_) => vec![Choice::Program(step)],
            _ => {
                let mut tried = world.clone();
                if frame.program.perform(sim, &mut tried, step, frame.rule).is_err() {
                    continue;
                }
                vec![Choice::Program(step)]
            }
        };
        return Some(Event { choices, at: place + 1, cost: 0, faults: 0 });
    }
    None
}
