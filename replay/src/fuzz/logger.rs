//! Makes a run again and writes what each actor would have logged.

use std::collections::VecDeque;

use demi_schemas::event::{DEAD_LETTERS, ENVIRONMENT, MONITOR, TimerInfo};
use demi_schemas::{EventRecord, Kind, NetworkRule, Step, StepKind, Via};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use serde_json::{Value, json};

use super::choice::{Choice, apply, proposals};
use super::program::Program;
use crate::guard;
use crate::model::Model;
use crate::names::{ActorId, OUTSIDE};
use crate::network::same_channel;
use crate::pending::{Pending, PendingKind};
use crate::sim::{Did, MsgId, Simulator};
use crate::want::Want;
use crate::world::World;

/// The log of one actor, and where the next record goes.
#[derive(Clone, Debug, Default)]
struct Log {
    incarnation: u32,
    seq: u64,
    records: Vec<EventRecord>,
}

/// Makes a run and keeps the logs.
pub(crate) struct Logger<'a, M: Model> {
    sim: &'a mut Simulator<M>,
    program: &'a Program,
    rule: NetworkRule,
    world: World<M>,
    logs: Vec<Log>,
    environment: Vec<EventRecord>,
    /// The run itself, in the order in which it happened.
    steps: Vec<Step>,
    ids: u64,
    /// Numbers of messages that are pending: equal entries leave in the order in which they came.
    sent: HashMap<Pending, VecDeque<u64>, FxBuildHasher>,
    /// Numbers of timers that are armed and have not fired.
    armed: HashMap<(ActorId, u16), u64, FxBuildHasher>,
    /// Structured content of messages from outside.
    fields: HashMap<(ActorId, MsgId), Value, FxBuildHasher>,
    externals: u64,
    /// What each actor told of its state, where states are told.
    told: Option<Vec<Option<Value>>>,
}

impl<'a, M: Model> Logger<'a, M> {
    /// With `states`, an actor's log tells its state at the end of each handler that changed it.
    pub(crate) fn new(
        sim: &'a mut Simulator<M>,
        program: &'a Program,
        rule: NetworkRule,
        states: bool,
    ) -> Self {
        let mut logger = Logger {
            world: sim.empty_world(),
            sim,
            program,
            rule,
            logs: Vec::new(),
            environment: Vec::new(),
            steps: Vec::new(),
            ids: 0,
            sent: HashMap::default(),
            armed: HashMap::default(),
            fields: HashMap::default(),
            externals: 0,
            told: states.then(Vec::new),
        };
        // What the system did when it started by itself.
        logger.log_effects(OUTSIDE, false);
        logger
    }

    /// The name of an actor.
    pub(crate) fn name(&self, actor: ActorId) -> &str {
        self.sim.names().get(actor)
    }

    /// The network rule of the run.
    pub(crate) fn rule(&self) -> NetworkRule {
        self.rule
    }

    /// Steps so far.
    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Deliveries and external events so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.world.deliveries(), self.externals)
    }

    /// Makes one choice happen and logs it.
    pub(crate) fn apply(&mut self, choice: &Choice) {
        match *choice {
            Choice::Bootstrap | Choice::Client(..) => self.inject(*choice),
            Choice::Start(actor) | Choice::Crash(actor) | Choice::Restart(actor) => {
                self.externals += 1;
                let kind = match choice {
                    Choice::Start(_) => StepKind::Start,
                    Choice::Crash(_) => StepKind::Crash,
                    _ => StepKind::Restart,
                };
                let step = Step::new(kind, self.sim.names().get(actor));
                self.steps.push(Step { external: Some(true), ..step });
                apply(self.sim, &mut self.world, self.program, *choice, self.rule);
                self.log_effects(actor, true);
            }
            Choice::Isolate(actor) | Choice::Heal(actor) => {
                self.externals += 1;
                let (step, kind) = match choice {
                    Choice::Isolate(_) => (StepKind::Isolate, Kind::Isolate),
                    _ => (StepKind::Heal, Kind::Heal),
                };
                let step = Step::new(step, self.sim.names().get(actor));
                self.steps.push(Step { external: Some(true), ..step });
                apply(self.sim, &mut self.world, self.program, *choice, self.rule);
                let record = self.with_external(kind, true);
                self.push(actor, record);
            }
            Choice::Duplicate(index) => self.duplicate(index as usize),
            Choice::Program(act) => self.program(act),
            Choice::Deliver(index) => {
                let entry = self.world.pending()[index as usize];
                self.log_delivery(index as usize, &entry);
                apply(self.sim, &mut self.world, self.program, *choice, self.rule);
                self.log_effects(entry.to, false);
            }
        }
    }

    /// The logs, in the order of the actors' names, closed by the monitor's finding; and the steps of the run.
    pub(crate) fn finish(
        mut self,
        violation: &[String],
        affected: &[String],
    ) -> (Vec<(String, Vec<EventRecord>)>, Vec<Step>) {
        let mut all = vec![(ENVIRONMENT.to_owned(), self.environment)];
        if !violation.is_empty() {
            let mut finding = EventRecord::new(MONITOR, 1, Kind::Violation);
            finding.type_ = violation.first().and_then(|v| v.split(':').next()).map(str::to_owned);
            finding.fields = Some(json!({ "fingerprints": violation, "affected": affected }));
            all.push((MONITOR.to_owned(), vec![finding]));
        }
        for (index, log) in self.logs.iter_mut().enumerate() {
            let name = self.sim.names().get(ActorId(index as u16)).to_owned();
            all.push((name, std::mem::take(&mut log.records)));
        }
        all.retain(|(_, records)| !records.is_empty());
        all.sort_by(|a, b| a.0.cmp(&b.0));
        (all, self.steps)
    }

    fn inject(&mut self, choice: Choice) {
        // A workload that panicked when the run was made proposes nothing here either.
        for proposal in guard::or(Vec::new(), || proposals(self.sim, &self.world, choice)) {
            let msg = self.sim.intern_outside(proposal.msg, Some(&proposal.fields));
            self.inject_one(proposal.to, msg, proposal.fields);
        }
    }

    fn inject_one(&mut self, to: ActorId, msg: MsgId, fields: Value) {
        let Some(at) = self.sim.inject(&mut self.world, to, msg) else { return };
        let entry = self.world.pending()[at];
        if !fields.is_null() {
            self.fields.insert((to, msg), fields);
        }
        let id = self.sent(entry);
        let record = self.filled(self.blank(Kind::Send), &entry, Some(id));
        self.step(StepKind::External, &entry, &record);
        self.push(OUTSIDE, record);
    }

    /// A step of the run, with what its record says.
    fn step(&mut self, kind: StepKind, entry: &Pending, record: &EventRecord) {
        // A name only where it tells timers apart.
        let which = Want::of(self.sim, &self.world, entry).which;
        let timer = which
            .map(|name| TimerInfo { name: Some(self.sim.text(name).to_owned()), ..TimerInfo::default() });
        self.steps.push(Step {
            from: record.from.clone(),
            type_: record.type_.clone(),
            payload: record.payload.clone(),
            external: record.external,
            fields: record.fields.clone(),
            timer,
            ..Step::new(kind, self.sim.names().get(entry.to))
        });
    }

    /// Does an act of the program and logs it: code and messages as the environment's, faults as their actor's.
    fn program(&mut self, act: u32) {
        if let Some((to, msg)) = self.program.message(&self.world, act) {
            let fields = self.program.steps.get(act as usize).and_then(|step| step.fields.clone());
            return self.inject_one(to, msg, fields.unwrap_or_default());
        }
        if let Some(index) = self.program.repeats(self.sim, &self.world, act) {
            return self.duplicate(index);
        }
        if self.program.perform(self.sim, &mut self.world, act, self.rule).is_err() {
            return;
        }
        self.externals += 1;
        let step = self.program.steps.get(act as usize);
        self.steps.extend(step.cloned());
        let kind = match step.map(|s| s.kind) {
            Some(StepKind::Action) => Kind::Action,
            Some(StepKind::Isolate) => Kind::Isolate,
            Some(StepKind::Heal) => Kind::Heal,
            Some(StepKind::Stop) => Kind::Stop,
            // The effects tell of others.
            _ => return self.log_effects(self.program.actor(act).unwrap_or(OUTSIDE), true),
        };
        let (type_, fields) = step.map(|s| (s.type_.clone(), s.fields.clone())).unwrap_or_default();
        let record = EventRecord { type_, fields, ..self.with_external(kind, true) };
        self.push(self.program.actor(act).unwrap_or(OUTSIDE), record);
        self.log_effects(OUTSIDE, false);
    }

    /// Makes a second copy of a pending entry. No log tells of it: it is delivered under the number of the first.
    fn duplicate(&mut self, index: usize) {
        let entry = self.world.pending()[index];
        let Some(copy) = self.sim.duplicate(&mut self.world, index) else { return };
        let id = self.sent.get(&entry).and_then(VecDeque::front).copied();
        self.sent.entry(self.world.pending()[copy]).or_default().extend(id);
        self.externals += 1;
        let record = self.filled(self.blank(Kind::Receive), &entry, id);
        self.step(StepKind::Duplicate, &entry, &EventRecord { external: None, ..record });
    }

    /// A new number for a message that becomes pending.
    fn sent(&mut self, entry: Pending) -> u64 {
        self.ids += 1;
        self.sent.entry(entry).or_default().push_back(self.ids);
        self.ids
    }

    /// The number of a message that leaves.
    fn leaves(&mut self, entry: &Pending) -> Option<u64> {
        self.sent.get_mut(entry).and_then(VecDeque::pop_front)
    }

    fn log_delivery(&mut self, index: usize, entry: &Pending) {
        if self.rule == NetworkRule::FifoLoss {
            let lost: Vec<Pending> =
                self.world.pending()[..index].iter().filter(|p| same_channel(p, entry)).copied().collect();
            lost.iter().for_each(|p| {
                self.leaves(p);
            });
        }
        let (kind, id) = if entry.kind.is_timer() {
            (Kind::TimerFire, self.armed.remove(&(entry.to, entry.timer)))
        } else {
            (Kind::Receive, self.leaves(entry))
        };
        self.externals += u64::from(entry.kind == PendingKind::External);
        let record = self.filled(self.blank(kind), entry, id);
        let step = if entry.kind.is_timer() { StepKind::Timer } else { StepKind::Deliver };
        self.step(step, entry, &record);
        self.push(entry.to, record);
    }

    /// Logs what the last step of an actor did.
    fn log_effects(&mut self, actor: ActorId, injected: bool) {
        let done = self.sim.did().to_vec();
        for (at, did) in done.iter().enumerate() {
            match did {
                Did::Sent(entry) => {
                    let id = self.sent(*entry);
                    let mut record = self.filled(self.blank(Kind::Send), entry, Some(id));
                    record.via = entry.via;
                    // Threads have a place of their own in the log of the actor they belong to.
                    let own = entry.via.is_none() || entry.via == Some(Via::Thread);
                    self.push(if own { entry.from } else { actor }, record);
                }
                Did::TimerSet(entry) => {
                    self.ids += 1;
                    self.armed.insert((entry.to, entry.timer), self.ids);
                    let record = self.filled(self.blank(Kind::TimerSet), entry, Some(self.ids));
                    self.push(entry.to, record);
                }
                Did::TimerCancelled(entry) => {
                    let id = self.armed.remove(&(entry.to, entry.timer));
                    let record = self.filled(self.blank(Kind::TimerCancel), entry, id);
                    self.push(entry.to, record);
                }
                Did::Crashed(who) => {
                    let record = self.with_external(Kind::Crash, injected);
                    self.push(*who, record);
                }
                Did::Restarted(who) => {
                    if let Some(told) = self.told.as_mut().and_then(|t| t.get_mut(who.index())) {
                        *told = None;
                    }
                    // A member that restarts by itself after an injected crash does so on its own account.
                    let log = self.log(*who);
                    (log.incarnation, log.seq) = (log.incarnation + 1, 0);
                    let record = self.with_external(Kind::Restart, injected && at == 0);
                    self.push(*who, record);
                }
                // A restart is followed by a start of its own, which its record stands for.
                Did::Started(who) if at > 0 && done[at - 1] == Did::Restarted(*who) => {}
                // Of a system that starts by itself nobody logs that its actors do.
                Did::Started(_) if self.sim.model().runtime().starts_by_itself() => {}
                Did::Started(who) => {
                    let record = self.with_external(Kind::Start, injected);
                    self.push(*who, record);
                }
            }
        }
        self.tell(actor);
    }

    /// Logs the states of the actors that the last step of an actor can have changed.
    fn tell(&mut self, actor: ActorId) {
        if self.told.is_none() {
            return;
        }
        let mut actors = vec![actor];
        actors.extend(self.sim.did().iter().filter_map(|did| match did {
            Did::Started(who) | Did::Restarted(who) => Some(*who),
            _ => None,
        }));
        actors.sort_unstable_by_key(|a| a.index());
        actors.dedup();
        for actor in actors.into_iter().filter(|a| *a != OUTSIDE) {
            let Some(state) = self.sim.view(&self.world).state(actor) else { continue };
            let model = self.sim.model();
            let names = self.sim.names();
            let state = guard::guarded(|| model.logs().describe(state, names))
                .unwrap_or_else(|_| Value::String(format!("{state:?}")));
            let Some(told) = &mut self.told else { return };
            if told.len() <= actor.index() {
                told.resize(actor.index() + 1, None);
            }
            if told[actor.index()].as_ref() != Some(&state) {
                told[actor.index()] = Some(state.clone());
                let record = EventRecord { state: Some(state), ..self.blank(Kind::State) };
                self.push(actor, record);
            }
        }
    }

    /// A record that gets its actor and position when it is [pushed](Self::push).
    fn blank(&self, kind: Kind) -> EventRecord {
        EventRecord::new(DEAD_LETTERS, 1, kind)
    }

    fn with_external(&self, kind: Kind, external: bool) -> EventRecord {
        EventRecord { external: Some(external), ..self.blank(kind) }
    }

    /// Completes a record with what the entry says.
    fn filled(&self, record: EventRecord, entry: &Pending, id: Option<u64>) -> EventRecord {
        let info = self.sim.info(entry.msg);
        let external = entry.kind == PendingKind::External;
        let name = |actor| Some(self.sim.names().get(actor).to_owned());
        EventRecord {
            msg_id: id.map(|id| id.to_string()),
            from: name(entry.from),
            to: name(entry.to),
            type_: Some(self.sim.text(info.type_).to_owned()),
            payload: Some(self.sim.text(info.payload).to_owned()),
            external: Some(external),
            fields: if external { self.fields.get(&(entry.to, entry.msg)).cloned() } else { None },
            timer: entry.kind.is_timer().then(|| {
                let mut timer = self.sim.model().logs().timer_info(&info.msg);
                timer.name.get_or_insert_with(|| self.sim.timer_name(entry).into_owned());
                timer
            }),
            ..record
        }
    }

    fn log(&mut self, actor: ActorId) -> &mut Log {
        if self.logs.len() <= actor.index() {
            self.logs.resize(actor.index() + 1, Log::default());
        }
        &mut self.logs[actor.index()]
    }

    /// Appends to the log of an actor, or of the environment.
    fn push(&mut self, actor: ActorId, mut record: EventRecord) {
        if actor == OUTSIDE {
            ENVIRONMENT.clone_into(&mut record.actor);
            record.seq = self.environment.len() as u64 + 1;
            return self.environment.push(record);
        }
        record.actor = self.sim.names().get(actor).to_owned();
        let log = self.log(actor);
        log.seq += 1;
        (record.seq, record.incarnation) = (log.seq, log.incarnation);
        log.records.push(record);
    }
}
