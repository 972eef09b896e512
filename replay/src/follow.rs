//! An order of a recorded execution that the model can follow.
//!
//! Logs order what one actor does, and each send before its receive. Threads outside the actors, and memory that
//! actors share, make more order than that, which no log tells. Where logs number messages in the order of sending,
//! those numbers and the model together find an order again: no message may be sent later than it was recorded, and
//! none that was not.

use demi_schemas::NetworkRule;
use demi_schemas::event::Via;
use demi_schemas::schedule::{Schedule, Sent, Step, StepKind};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::Model;
use crate::names::{ActorId, OUTSIDE, TextId};
use crate::network;
use crate::script::{Act, Script, Want};
use crate::sim::{Did, MsgId, Simulator};
use crate::world::{Pending, World};

/// Steps of a schedule in an order that the model follows.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Positions in the schedule, and what was performed for each.
    pub acts: Vec<(usize, Act)>,
    /// Whether all steps could be followed; those that could not stand last, in their own order.
    pub complete: bool,
    /// How many messages the model sent that no log has. A log may have been closed before a scheduler's last copies
    /// were sent.
    pub unrecorded: u64,
    /// How many recorded messages the model did not send.
    pub lacking: u64,
}

/// What one message looks like to a log: sender, receiver, content.
type Look = (ActorId, ActorId, TextId);

/// What stands in an actor's log.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// The step of that number.
    Step(usize),
    /// A send of a thread.
    Sent(Look),
}

/// Finds an order of the steps of a schedule lifted from logs; `None` where messages have no numbers.
/// Only schedules in which code outside the actors sends messages are looked at: for others their own order is right.
#[must_use]
pub fn follow<M: Model>(
    sim: &mut Simulator<M>,
    schedule: &Schedule,
    script: &Script,
    rule: NetworkRule,
) -> Option<Followed> {
    if !schedule.header.conformance || script.acts.len() != schedule.steps.len() {
        return None;
    }
    if !script.acts.contains(&Act::Sent) {
        return None;
    }
    let mut exactly = Search::new(sim, schedule, script, rule, false)?;
    exactly.run();
    if exactly.followed.complete {
        return Some(exactly.followed);
    }
    let mut freely = Search::new(sim, schedule, script, rule, true)?;
    freely.run();
    Some(freely.followed)
}

struct Search<'a, M: Model> {
    sim: &'a mut Simulator<M>,
    schedule: &'a Schedule,
    script: &'a Script,
    rule: NetworkRule,
    /// Whether handlers may send what no log has.
    more: bool,
    queues: Vec<VecDeque<Item>>,
    /// By queue: the number of each item's earliest send, or of a later item's.
    deadlines: Vec<VecDeque<u64>>,
    /// The same, of sends that logs can't have put into a wrong place: a scheduler's may stand in any log.
    sure: Vec<VecDeque<u64>>,
    owner: HashMap<ActorId, usize, FxBuildHasher>,
    /// Numbers of the messages of each look, in order.
    recorded: HashMap<Look, Vec<u64>, FxBuildHasher>,
    /// By message: the step that sent it.
    sender: HashMap<u64, usize, FxBuildHasher>,
    /// By message: the step of its receiver that scheduled it.
    claimed: HashMap<u64, usize, FxBuildHasher>,
    done: Vec<bool>,
    known: Known,
    world: World<M>,
    followed: Followed,
}

impl Item {
    fn step(&self) -> Option<usize> {
        match self {
            Item::Step(step) => Some(*step),
            Item::Sent(_) => None,
        }
    }
}

/// What the model has sent so far.
#[derive(Clone, Debug, Default)]
struct Known {
    /// How many of a look's first messages are known to have been sent.
    sent: HashMap<Look, usize, FxBuildHasher>,
    bound: HashMap<u64, MsgId, FxBuildHasher>,
    /// Numbers of messages that the model has not sent.
    open: BTreeSet<u64>,
    /// How many messages were sent that no log has.
    unrecorded: u64,
    /// By queue: sends of threads that the log has later than the model.
    ahead: BTreeMap<usize, Vec<Look>>,
}

/// One tried step.
struct Trial<M: Model> {
    queue: usize,
    step: usize,
    act: Act,
    known: Known,
    world: World<M>,
    deadline: u64,
    /// Whether it changes nothing.
    idle: bool,
    /// If it sends the earliest message that was not sent, or stands before the step whose log says so: the latest
    /// that it sends.
    next: Option<u64>,
}

fn number(text: Option<&String>) -> Option<u64> {
    text?.parse().ok()
}

impl<'a, M: Model> Search<'a, M> {
    fn new(
        sim: &'a mut Simulator<M>,
        schedule: &'a Schedule,
        script: &'a Script,
        rule: NetworkRule,
        more: bool,
    ) -> Option<Self> {
        let world = sim.empty_world();
        let starts: Vec<Did> = sim.did().to_vec();
        let mut search = Search {
            world,
            sim,
            schedule,
            script,
            rule,
            more,
            queues: vec![VecDeque::new()],
            deadlines: Vec::new(),
            sure: Vec::new(),
            owner: HashMap::default(),
            recorded: HashMap::default(),
            sender: HashMap::default(),
            claimed: HashMap::default(),
            done: vec![false; schedule.steps.len()],
            known: Known::default(),
            followed: Followed::default(),
        };
        for (index, step) in schedule.steps.iter().enumerate() {
            search.read(index, step)?;
        }
        for ids in search.recorded.values_mut() {
            ids.sort_unstable();
            ids.dedup();
            search.known.open.extend(ids.iter().copied());
        }
        search.deadlines = search.queues.iter().map(|q| search.deadlines_of(q, |_, _| true)).collect();
        let sure = |step: &Step, sent: &Sent| sent.via != Some(Via::Scheduler) || sent.to == step.to;
        search.sure = search.queues.iter().map(|q| search.deadlines_of(q, sure)).collect();
        let mut known = std::mem::take(&mut search.known);
        search.note(&mut known, &starts, None)?;
        search.known = known;
        Some(search)
    }

    /// Takes one step of the schedule into the tables.
    fn read(&mut self, index: usize, step: &Step) -> Option<()> {
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let from = step.from.clone().unwrap_or_default();
        let own = (from, step.to.clone(), text(&step.type_), text(&step.payload));
        match step.kind {
            StepKind::Send => {
                let look = self.look(step.via, &own.0, &own.1, &own.2, &own.3);
                self.recorded.entry(look).or_default().push(number(step.msg_id.as_ref())?);
                let queue = self.queue(look.0);
                self.queues[queue].push_back(Item::Sent(look));
            }
            StepKind::External | StepKind::Deliver => {
                let look = self.look(step.via, &own.0, &own.1, &own.2, &own.3);
                self.recorded.entry(look).or_default().push(number(step.msg_id.as_ref())?);
                if step.kind == StepKind::Deliver || self.script.acts[index] != Act::Sent {
                    let queue = if step.kind == StepKind::Deliver { self.queue(look.1) } else { 0 };
                    self.queues[queue].push_back(Item::Step(index));
                }
            }
            _ => {
                let actor = self.script.acts[index].actor();
                let queue = actor.map_or(0, |actor| self.queue(actor));
                self.queues[queue].push_back(Item::Step(index));
            }
        }
        for sent in &step.sends {
            let from = sent.from.as_deref().unwrap_or(&step.to);
            let type_ = sent.type_.as_deref().unwrap_or("");
            let look = self.look(sent.via, from, &sent.to, type_, &sent.payload);
            let id = number(sent.msg_id.as_ref())?;
            self.recorded.entry(look).or_default().push(id);
            self.sender.insert(id, index);
            if sent.via == Some(Via::Scheduler) && sent.to == step.to {
                self.claimed.insert(id, index);
            }
        }
        Some(())
    }

    fn look(&mut self, via: Option<Via>, from: &str, to: &str, type_: &str, payload: &str) -> Look {
        // What a scheduler sends has no sender, whatever name the log gives it.
        let nobody = via == Some(Via::Scheduler);
        let from = if nobody { OUTSIDE } else { self.sim.names_mut().id(from) };
        (from, self.sim.names_mut().id(to), self.sim.fingerprint(type_, payload))
    }

    fn queue(&mut self, actor: ActorId) -> usize {
        *self.owner.entry(actor).or_insert_with(|| {
            self.queues.push(VecDeque::new());
            self.queues.len() - 1
        })
    }

    fn deadlines_of(&self, queue: &VecDeque<Item>, counts: fn(&Step, &Sent) -> bool) -> VecDeque<u64> {
        let mut deadline = u64::MAX;
        let mut all: VecDeque<u64> = VecDeque::with_capacity(queue.len());
        for item in queue.iter().rev() {
            if let Item::Step(index) = item {
                let step = &self.schedule.steps[*index];
                let sends = step.sends.iter().filter(|sent| counts(step, sent));
                deadline = sends.filter_map(|s| number(s.msg_id.as_ref())).fold(deadline, u64::min);
            }
            all.push_front(deadline);
        }
        all
    }

    /// Follows steps until none is left, or none can be followed.
    fn run(&mut self) {
        loop {
            self.pass_sent();
            let mut best: Option<Trial<M>> = None;
            for queue in 0..self.queues.len() {
                let Some(trial) = self.attempt(queue) else { continue };
                if trial.idle {
                    best = Some(trial);
                    break;
                }
                // What comes from outside comes when nothing inside is left to do before.
                let key = |t: &Trial<M>| (t.next.unwrap_or(u64::MAX), t.queue == 0, t.deadline);
                if best.as_ref().is_none_or(|b| key(&trial) < key(b)) {
                    best = Some(trial);
                }
            }
            let Some(trial) = best else { break };
            self.world = trial.world;
            self.known = trial.known;
            self.queues[trial.queue].pop_front();
            self.deadlines[trial.queue].pop_front();
            self.sure[trial.queue].pop_front();
            self.done[trial.step] = true;
            self.followed.acts.push((trial.step, trial.act));
        }
        self.followed.complete = self.queues.iter().all(VecDeque::is_empty);
        self.followed.unrecorded = self.known.unrecorded;
        self.followed.lacking = self.known.open.len() as u64;
        let mut left: Vec<usize> = self.queues.iter().flatten().filter_map(Item::step).collect();
        left.sort_unstable();
        self.followed.acts.extend(left.into_iter().map(|step| (step, self.script.acts[step])));
    }

    /// Leaves behind the sends of threads that the model has made.
    fn pass_sent(&mut self) {
        for (queue, items) in self.queues.iter_mut().enumerate() {
            while let Some(Item::Sent(look)) = items.front() {
                let Some(ahead) = self.known.ahead.get_mut(&queue) else { break };
                let Some(at) = ahead.iter().position(|l| l == look) else { break };
                ahead.remove(at);
                items.pop_front();
                self.deadlines[queue].pop_front();
                self.sure[queue].pop_front();
            }
        }
    }

    /// Tries the next step of a queue; nothing if it can't be the next one of the execution.
    fn attempt(&mut self, queue: usize) -> Option<Trial<M>> {
        let Some(&Item::Step(step)) = self.queues[queue].front() else { return None };
        let logged = &self.schedule.steps[step];
        let mut world = self.world.clone();
        let mut act = self.script.acts[step];
        let mut known = self.known.clone();
        if let Act::Deliver(want) = &act {
            let id = number(logged.msg_id.as_ref())?;
            // A scheduler's copy may be pending in the model before the step that logged it.
            if self.sender.get(&id).is_some_and(|step| !self.done[*step]) {
                return None;
            }
            let msg = *self.known.bound.get(&id)?;
            let fits = |p: &Pending| p.msg == msg && p.to == want.to && p.from == want.from;
            let index = world.pending().iter().position(fits)?;
            if !self.sim.takes(&world, &world.pending()[index])
                || !network::allows(self.rule, world.pending(), index)
            {
                return None;
            }
            act = Act::Deliver(Want::of(self.sim, &world, &world.pending()[index]));
            self.sim.deliver(&mut world, index, self.rule);
        } else {
            act.perform(self.sim, &mut world, &self.script.actions, self.rule).ok()?;
            if let Act::Inject(_, msg) = act {
                let id = number(logged.msg_id.as_ref())?;
                known.bound.insert(id, msg);
                known.open.remove(&id);
            }
        }
        let did = self.sim.did().to_vec();
        if !self.sends_as_logged(logged, &did) {
            return None;
        }
        let hides = did.iter().any(|d| match d {
            Did::Sent(p) => self.hidden(p),
            _ => false,
        });
        let first = self.known.open.first().copied();
        self.note(&mut known, &did, Some(step))?;
        let last = logged.sends.iter().filter_map(|s| number(s.msg_id.as_ref())).max().unwrap_or(0);
        if known.open.first().is_some_and(|open| *open <= last) {
            return None;
        }
        let deadline = self.deadlines[queue].front().copied().unwrap_or(u64::MAX);
        let next = first.filter(|id| self.sure[queue].front() == Some(id) || !known.open.contains(id));
        Some(Trial {
            queue,
            step,
            act,
            idle: act.is_delivery() && !hides && world.same_states(&self.world),
            next: next.map(|id| self.latest(&known, id)),
            known,
            world,
            deadline,
        })
    }

    /// The latest message that is sent in `known` and not yet now, from one that is.
    fn latest(&self, known: &Known, from: u64) -> u64 {
        self.known.open.range(from..).rfind(|id| !known.open.contains(id)).copied().unwrap_or(from)
    }

    /// Whether logs do not show all of a message.
    fn hidden(&self, entry: &Pending) -> bool {
        let info = self.sim.info(entry.msg);
        info.fingerprint != info.shown
    }

    /// Whether the handler sent what its log says. Threads and schedulers have their own times.
    fn sends_as_logged(&self, logged: &Step, did: &[Did]) -> bool {
        let own = |via: Option<Via>| !matches!(via, Some(Via::Thread | Via::Scheduler));
        let got = did.iter().filter_map(|d| match d {
            Did::Sent(p) if own(p.via) => Some((p.to, self.sim.info(p.msg).payload)),
            _ => None,
        });
        let got = got.map(|(to, payload)| (self.sim.names().get(to), self.sim.text(payload)));
        let want = logged.sends.iter().filter(|s| own(s.via)).map(|s| (s.to.as_str(), s.payload.as_str()));
        if !self.more {
            return got.eq(want);
        }
        let mut got = got;
        want.into_iter().all(|sent| got.any(|g| g == sent))
    }

    /// Notes what was sent; nothing if a message was that never was recorded.
    fn note(&self, known: &mut Known, did: &[Did], step: Option<usize>) -> Option<()> {
        for entry in did.iter().filter_map(|d| match d {
            Did::Sent(entry) => Some(entry),
            _ => None,
        }) {
            let info = self.sim.info(entry.msg);
            let look = (entry.from, entry.to, info.shown);
            let hidden = self.hidden(entry);
            let ids = self.recorded.get(&look).map_or(&[][..], Vec::as_slice);
            let passed = known.sent.entry(look).or_default();
            while ids.get(*passed).is_some_and(|id| known.bound.contains_key(id)) {
                *passed += 1;
            }
            let mut left = ids[*passed..].iter().filter(|id| !known.bound.contains_key(*id));
            // What a step's own log has is its own. Of others it takes the oldest, but where messages differ in what
            // logs do not show, not one that another step's log claims.
            let claimed = |id: &u64| self.claimed.get(id).copied();
            let own = left.clone().find(|id| step.is_some() && claimed(id) == step);
            match own.or_else(|| left.find(|id| !hidden || claimed(id).is_none())) {
                Some(id) => {
                    known.bound.insert(*id, entry.msg);
                    known.open.remove(id);
                }
                None if entry.via == Some(Via::Scheduler)
                    || (self.more && entry.via != Some(Via::Thread)) =>
                {
                    known.unrecorded += 1;
                }
                None => return None,
            }
            if entry.via == Some(Via::Thread)
                && let Some(queue) = self.owner.get(&entry.from)
            {
                known.ahead.entry(*queue).or_default().push(look);
            }
        }
        Some(())
    }
}
