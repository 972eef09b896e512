//! What logs tell of an execution: each log's items in order, and the numbers of all messages.

use std::collections::BTreeSet;

use demi_schemas::event::Via;
use demi_schemas::schedule::{Schedule, Sent, Step, StepKind};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::model::Model;
use crate::names::{ActorId, OUTSIDE, TextId};
use crate::script::{Act, Script};
use crate::sim::Simulator;

/// What one message looks like to a log: sender, receiver, content.
pub(super) type Look = (ActorId, ActorId, TextId);

/// What stands in an actor's log.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// The step of that number.
    Step(usize),
    /// A send of a thread.
    Sent(Look),
}

/// A log, and how far it has been followed. The first is of what comes from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    items: Vec<Item>,
    /// By item: the number of its earliest send, or of a later item's.
    deadlines: Vec<u64>,
    /// The same, of sends that logs can't have put into a wrong place: a scheduler's may stand in any log.
    sure: Vec<u64>,
    at: usize,
}

impl Queue {
    /// The next item.
    pub(super) fn front(&self) -> Option<Item> {
        self.items.get(self.at).copied()
    }

    /// What is left.
    pub(super) fn rest(&self) -> &[Item] {
        &self.items[self.at..]
    }

    /// The number of the earliest send that is left.
    pub(super) fn deadline(&self) -> u64 {
        self.deadlines.get(self.at).copied().unwrap_or(u64::MAX)
    }

    /// The same, of sends whose place in the log is certain.
    pub(super) fn sure(&self) -> u64 {
        self.sure.get(self.at).copied().unwrap_or(u64::MAX)
    }

    /// Leaves the next item behind.
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }
}

/// All logs.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) queues: Vec<Queue>,
    owner: HashMap<ActorId, usize, FxBuildHasher>,
    /// Numbers of the messages of each look.
    pub(super) numbers: HashMap<Look, BTreeSet<u64>, FxBuildHasher>,
    /// By step: how the message that it puts among the pending ones looks.
    pub(super) injected: HashMap<usize, Look, FxBuildHasher>,
    /// By message: the step that sent it.
    pub(super) sender: HashMap<u64, usize, FxBuildHasher>,
    /// By step: what it scheduled for its own receiver.
    claims: HashMap<usize, Vec<(Look, u64)>, FxBuildHasher>,
    claimed: BTreeSet<u64>,
}

/// The number of a message, in the order of sending.
pub(super) fn number(text: Option<&String>) -> Option<u64> {
    text?.parse().ok()
}

impl Record {
    /// Reads a schedule lifted from logs; nothing where a message has no number.
    pub(super) fn new<M: Model>(
        sim: &mut Simulator<M>,
        schedule: &Schedule,
        script: &Script,
    ) -> Option<Record> {
        let mut record = Record { queues: vec![Queue::default()], ..Record::default() };
        for (index, step) in schedule.steps.iter().enumerate() {
            record.read(sim, &script.acts[index], index, step)?;
        }
        let sure = |step: &Step, sent: &Sent| sent.via != Some(Via::Scheduler) || sent.to == step.to;
        for queue in &mut record.queues {
            queue.deadlines = deadlines(schedule, &queue.items, |_, _| true);
            queue.sure = deadlines(schedule, &queue.items, sure);
        }
        Some(record)
    }

    /// Takes one step of the schedule into the tables.
    fn read<M: Model>(&mut self, sim: &mut Simulator<M>, act: &Act, index: usize, step: &Step) -> Option<()> {
        match step.kind {
            StepKind::Send | StepKind::External | StepKind::Deliver => {
                let text = |t: &Option<String>| t.clone().unwrap_or_default();
                let from = step.from.as_deref().unwrap_or("");
                let look = look(sim, step.via, from, &step.to, &text(&step.type_), &text(&step.payload));
                self.numbers.entry(look).or_default().insert(number(step.msg_id.as_ref())?);
                match step.kind {
                    StepKind::Send => self.push(look.0, Item::Sent(look)),
                    StepKind::Deliver => self.push(look.1, Item::Step(index)),
                    _ if *act == Act::Sent => {}
                    _ => {
                        self.injected.insert(index, look);
                        self.queues[0].items.push(Item::Step(index));
                    }
                }
            }
            _ => match act.actor() {
                Some(actor) => self.push(actor, Item::Step(index)),
                None => self.queues[0].items.push(Item::Step(index)),
            },
        }
        for sent in &step.sends {
            let from = sent.from.as_deref().unwrap_or(&step.to);
            let type_ = sent.type_.as_deref().unwrap_or("");
            let look = look(sim, sent.via, from, &sent.to, type_, &sent.payload);
            let id = number(sent.msg_id.as_ref())?;
            self.numbers.entry(look).or_default().insert(id);
            self.sender.insert(id, index);
            if sent.via == Some(Via::Scheduler) && sent.to == step.to {
                self.claims.entry(index).or_default().push((look, id));
                self.claimed.insert(id);
            }
        }
        Some(())
    }

    fn push(&mut self, actor: ActorId, item: Item) {
        let queue = *self.owner.entry(actor).or_insert_with(|| {
            self.queues.push(Queue::default());
            self.queues.len() - 1
        });
        self.queues[queue].items.push(item);
    }

    /// The log of an actor, if there is one.
    pub(super) fn queue_of(&self, actor: ActorId) -> Option<usize> {
        self.owner.get(&actor).copied()
    }

    /// Messages of that look that a step's own log says it scheduled.
    pub(super) fn claims(&self, step: usize, look: Look) -> impl Iterator<Item = u64> {
        let all = self.claims.get(&step).map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |(l, _)| *l == look).map(|(_, id)| *id)
    }

    /// Whether some step's own log says that it scheduled that message.
    pub(super) fn claimed(&self, id: u64) -> bool {
        self.claimed.contains(&id)
    }
}

fn look<M: Model>(
    sim: &mut Simulator<M>,
    via: Option<Via>,
    from: &str,
    to: &str,
    type_: &str,
    payload: &str,
) -> Look {
    // What a scheduler sends has no sender, whatever name the log gives it.
    let nobody = via == Some(Via::Scheduler);
    let from = if nobody { OUTSIDE } else { sim.names_mut().id(from) };
    (from, sim.names_mut().id(to), sim.fingerprint(type_, payload))
}

fn deadlines(schedule: &Schedule, items: &[Item], counts: fn(&Step, &Sent) -> bool) -> Vec<u64> {
    let mut deadline = u64::MAX;
    let mut all: Vec<u64> = items
        .iter()
        .rev()
        .map(|item| {
            if let Item::Step(index) = item {
                let step = &schedule.steps[*index];
                let sends = step.sends.iter().filter(|sent| counts(step, sent));
                deadline = sends.filter_map(|s| number(s.msg_id.as_ref())).fold(deadline, u64::min);
            }
            deadline
        })
        .collect();
    all.reverse();
    all
}
