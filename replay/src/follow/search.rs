//! The search: tries the heads of all logs on the model and takes the best.

use demi_schemas::NetworkRule;
use demi_schemas::event::Via;
use demi_schemas::schedule::{Schedule, Sent, Step};

use super::known::{Known, News, hidden};
use super::record::{Item, Record, number};
use super::{Followed, Trust};
use crate::model::Model;
use crate::names::OUTSIDE;
use crate::network;
use crate::pending::Pending;
use crate::script::{Act, Script, Want};
use crate::sim::{Did, Simulator};
use crate::world::World;

pub(super) struct Search<'a, M: Model> {
    sim: &'a mut Simulator<M>,
    schedule: &'a Schedule,
    script: &'a Script,
    rule: NetworkRule,
    trust: Trust,
    record: Record,
    known: Known,
    done: Vec<bool>,
    world: World<M>,
    followed: Followed,
}

/// One tried step.
struct Trial<M: Model> {
    queue: usize,
    step: usize,
    act: Act,
    news: News,
    world: World<M>,
    deadline: u64,
    /// Whether it changes nothing.
    idle: bool,
    /// If it sends the earliest message that was not sent, or stands before the step whose log says so: the latest
    /// that it sends.
    next: Option<u64>,
}

impl<'a, M: Model> Search<'a, M> {
    pub(super) fn new(
        sim: &'a mut Simulator<M>,
        schedule: &'a Schedule,
        script: &'a Script,
        rule: NetworkRule,
        trust: Trust,
    ) -> Option<Self> {
        let world = sim.empty_world();
        let starts: Vec<Did> = sim.did().to_vec();
        let mut record = Record::new(sim, schedule, script)?;
        let mut known = Known::new(&mut record);
        let mut news = News::default();
        known.note(sim, &record, &mut news, (&starts, None, OUTSIDE), trust)?;
        known.take(news);
        let done = vec![false; schedule.steps.len()];
        let followed = Followed::default();
        Some(Search { sim, schedule, script, rule, trust, record, known, done, world, followed })
    }

    /// Follows steps until none is left, or none can be followed.
    pub(super) fn run(mut self) -> Followed {
        loop {
            self.pass_sent();
            let mut best: Option<Trial<M>> = None;
            for queue in 0..self.record.queues.len() {
                let Some(trial) = self.attempt(queue) else { continue };
                let put_off = |t: &Trial<M>| self.trust == Trust::Sparing && t.news.unrecorded > 0;
                if trial.idle && !put_off(&trial) {
                    best = Some(trial);
                    break;
                }
                // What comes from outside comes when nothing inside is left to do before.
                let key = |t: &Trial<M>| (put_off(t), t.next.unwrap_or(u64::MAX), t.queue == 0, t.deadline);
                if best.as_ref().is_none_or(|b| key(&trial) < key(b)) {
                    best = Some(trial);
                }
            }
            let Some(trial) = best else { break };
            self.world = trial.world;
            self.known.take(trial.news);
            self.record.queues[trial.queue].pass();
            self.done[trial.step] = true;
            self.followed.acts.push((trial.step, trial.act));
        }
        let left = self.record.queues.iter().flat_map(|queue| queue.rest());
        self.followed.complete = left.clone().next().is_none();
        (self.followed.unrecorded, self.followed.withheld) = (self.known.unrecorded, self.known.withheld);
        self.followed.lacking = self.known.open.len() as u64;
        let steps = left.filter_map(|item| match item {
            Item::Step(step) => Some(*step),
            Item::Sent(_) => None,
        });
        let mut steps: Vec<usize> = steps.collect();
        steps.sort_unstable();
        self.followed.left = steps.len();
        self.followed.acts.extend(steps.into_iter().map(|step| (step, self.script.acts[step])));
        self.followed
    }

    /// Leaves behind the sends of threads that the model has made.
    fn pass_sent(&mut self) {
        for (number, queue) in self.record.queues.iter_mut().enumerate() {
            while let Some(Item::Sent(look)) = queue.front() {
                if !self.known.was_sent(number, look) {
                    break;
                }
                queue.pass();
            }
        }
    }

    /// Tries the next step of a queue; nothing if it can't be the next one of the execution.
    fn attempt(&mut self, queue: usize) -> Option<Trial<M>> {
        let Some(Item::Step(step)) = self.record.queues[queue].front() else { return None };
        let logged = &self.schedule.steps[step];
        let mut act = self.script.acts[step];
        let mut news = News::default();
        let mut world;
        if let Act::Deliver(want) = &act {
            let index = self.wanted(logged, want)?;
            world = self.world.clone();
            act = Act::Deliver(Want::of(self.sim, &world, &world.pending()[index]));
            self.sim.deliver(&mut world, index, self.rule);
        } else {
            world = self.world.clone();
            act.perform(self.sim, &mut world, &self.script.actions, self.rule).ok()?;
            if let Act::Inject(_, msg) = act {
                news.injected(number(logged.msg_id.as_ref())?, *self.record.injected.get(&step)?, msg);
            }
        }
        // To put a message or a copy of one among the pending ones is no step that does anything.
        let did = if matches!(act, Act::Inject(..) | Act::Duplicate(_)) { &[] } else { self.sim.did() };
        if !self.sends_as_logged(logged, did) {
            return None;
        }
        let hides = did.iter().any(|d| match d {
            Did::Sent(p) => hidden(self.sim, p),
            _ => false,
        });
        let first = self.known.open.first().copied();
        self.known.note(
            self.sim,
            &self.record,
            &mut news,
            (did, Some(step), act.actor().unwrap_or(OUTSIDE)),
            self.trust,
        )?;
        let last = logged.sends.iter().filter_map(|s| number(s.msg_id.as_ref())).max().unwrap_or(0);
        let open = self.known.first_open(&news);
        if open.is_some_and(|open| open <= last) {
            return None;
        }
        let log = &self.record.queues[queue];
        let next = first.filter(|id| log.sure() == *id || open != Some(*id));
        Some(Trial {
            queue,
            step,
            act,
            idle: act.is_delivery() && !hides && world.same_states(&self.world),
            next: next.map(|id| news.latest(id)),
            news,
            world,
            deadline: log.deadline(),
        })
    }

    /// Index of the pending message that a step delivers, if it may be delivered now.
    fn wanted(&self, logged: &Step, want: &Want) -> Option<usize> {
        let id = number(logged.msg_id.as_ref())?;
        // A scheduler's copy may be pending in the model before the step that logged it.
        if self.record.sender.get(&id).is_some_and(|step| !self.done[*step]) {
            return None;
        }
        let msg = *self.known.bound.get(&id)?;
        let pending = self.world.pending();
        let fits = |p: &Pending| p.msg == msg && p.to == want.to && p.from == want.from;
        let index = pending.iter().position(fits)?;
        let may = self.sim.takes(&self.world, &pending[index]) && network::allows(self.rule, pending, index);
        may.then_some(index)
    }

    /// Whether the handler sent what its log says. Threads and schedulers have their own times.
    fn sends_as_logged(&self, logged: &Step, did: &[Did]) -> bool {
        let own = |via: Option<Via>| !matches!(via, Some(Via::Thread | Via::Scheduler));
        let mut got = did.iter().filter_map(|d| match d {
            Did::Sent(p) if own(p.via) => Some(p),
            _ => None,
        });
        let mut want = logged.sends.iter().filter(|s| own(s.via));
        let alike = |got: &Pending, want: &Sent| {
            self.sim.names().get(got.to) == want.to && self.sim.logs_as(got.msg, want)
        };
        if self.trust.allows_more() {
            return want.all(|sent| got.any(|got| alike(got, sent)));
        }
        want.all(|sent| got.next().is_some_and(|got| alike(got, sent))) && got.next().is_none()
    }
}
