//! Recorded runs as schedules: the logs of a fuzzed run, brought into one order.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::fuzz::Found;
use demi_schemas::event::{ENVIRONMENT, MONITOR, Via};
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{EventRecord, Kind};

/// A step with what it sent.
struct Block<'a> {
    step: &'a EventRecord,
    sends: Vec<&'a EventRecord>,
}

fn step_kind(record: &EventRecord) -> Option<StepKind> {
    match record.kind {
        Kind::Receive => Some(StepKind::Deliver),
        Kind::TimerFire => Some(StepKind::Timer),
        Kind::Start => Some(StepKind::Start),
        Kind::Crash => Some(StepKind::Crash),
        Kind::Restart => Some(StepKind::Restart),
        _ => None,
    }
}

/// The channel on which a message keeps its order, if on any.
fn channel(send: &EventRecord) -> Option<(&str, &str)> {
    matches!(send.via, None | Some(Via::Forward))
        .then_some((send.from.as_deref().unwrap(), send.to.as_deref().unwrap()))
}

fn step(record: &EventRecord) -> Step {
    let mut step = Step::new(step_kind(record).unwrap(), record.actor.clone());
    step.external = record.external;
    if step.kind.is_delivery() {
        step.from.clone_from(&record.from);
        step.type_.clone_from(&record.type_);
        step.payload.clone_from(&record.payload);
        step.fields.clone_from(&record.fields);
    }
    step
}

/// One order of all that the logs tell which keeps each log's own order, sends before receives, and messages of a
/// channel in the order in which they were received.
pub fn schedule(found: &Found) -> Schedule {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut after: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (actor, records) in &found.records {
        let mut last = None;
        for record in records.iter().filter(|_| actor != MONITOR && actor != ENVIRONMENT) {
            if step_kind(record).is_some() {
                after.extend(last.map(|l| (l, blocks.len())));
                last = Some(blocks.len());
                blocks.push(Block { step: record, sends: Vec::new() });
            } else if record.kind == Kind::Send {
                blocks[last.unwrap()].sends.push(record);
            }
        }
    }
    let sent: BTreeMap<&str, (usize, &EventRecord)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(at, b)| b.sends.iter().map(move |s| (s.msg_id.as_deref().unwrap(), (at, *s))))
        .collect();
    let mut newest: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut received = BTreeSet::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, b)| b.step.kind == Kind::Receive) {
        let id = block.step.msg_id.as_deref().unwrap();
        let Some(&(sender, send)) = sent.get(id) else { continue };
        received.insert(id);
        after.insert((sender, at));
        if let Some(before) = channel(send).and_then(|channel| newest.insert(channel, sender)) {
            after.insert((before, sender));
        }
    }
    for (id, (sender, send)) in &sent {
        if let Some(&before) = channel(send).filter(|_| !received.contains(id)).and_then(|c| newest.get(&c)) {
            after.insert((before, *sender));
        }
    }
    after.retain(|(a, b)| a != b);
    let mut left: BTreeSet<usize> = (0..blocks.len()).collect();
    let mut steps = Vec::new();
    loop {
        let ready = |b: &&usize| !after.iter().any(|&(x, y)| y == **b && left.contains(&x));
        // What is sent to an actor before it starts is lost, so starts come first.
        let order = |b: &&usize| (blocks[**b].step.kind != Kind::Start, **b);
        let Some(&next) = left.iter().filter(ready).min_by_key(order) else { break };
        left.remove(&next);
        steps.push(step(blocks[next].step));
    }
    assert!(left.is_empty(), "the logs contradict themselves");
    let mut schedule = Schedule::new(steps);
    schedule.header.violation.clone_from(&found.violation);
    schedule.header.affected.clone_from(&found.affected);
    schedule
}
