//! What one step does to a configuration; each handler runs once for each local state and message.

use std::sync::Arc;

use demi_replay::Status;
use demi_replay::model::Configuration as Look;
use demi_replay::script::Act;
use demi_replay::sim::{Did, Op};
use demi_replay::{ActorId, Model, OUTSIDE, Simulator, View, Violation};
use demi_replay::{Pending, PendingKind, World};
use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Step, StepKind};
use rustc_hash::FxHashMap;

use super::configuration::{Configuration, Id, Life};
use super::recorded::{Move, Recorded};

/// What a handler did: the new state, and what it asked for.
type Reaction = Option<(Id, Arc<[Op]>)>;

/// The model, and tables of everything that was met.
pub(super) struct Handlers<M: Model> {
    sim: Simulator<M>,
    rule: NetworkRule,
    target: Vec<String>,
    actors: usize,
    /// States by their numbers; the first stands for none.
    states: Vec<Option<Arc<M::State>>>,
    state_ids: FxHashMap<Arc<M::State>, Id>,
    entries: Vec<Pending>,
    entry_ids: FxHashMap<Pending, Id>,
    reactions: FxHashMap<(Id, Id), Reaction>,
    starts: FxHashMap<(ActorId, Id), Reaction>,
    verdicts: FxHashMap<(Vec<Life>, Vec<Id>), bool>,
}

/// A configuration as invariants see it.
struct Seen<'a, M: Model>(&'a Configuration, &'a [Option<Arc<M::State>>]);

impl<M: Model> Look<M::State> for Seen<'_, M> {
    fn status(&self, actor: ActorId) -> Status {
        match self.0.lives.get(actor.index()) {
            None | Some(Life::Absent | Life::Missed) => Status::Absent,
            Some(Life::Running) => Status::Running,
            Some(Life::Crashed) => Status::Crashed,
        }
    }

    fn cell(&self, cell: ActorId) -> Option<&M::State> {
        self.1[*self.0.states.get(cell.index())? as usize].as_deref()
    }

    fn actors(&self) -> usize {
        self.0.lives.len()
    }
}

impl<M: Model> Handlers<M> {
    pub(super) fn new(sim: Simulator<M>, rule: NetworkRule, target: &[String]) -> Self {
        let model = sim.model();
        let cells = model.actors().iter().flat_map(|&a| [a, model.runtime().cell(a)]);
        let actors = 1 + cells.map(ActorId::index).max().unwrap_or(0);
        Handlers {
            sim,
            rule,
            target: target.to_vec(),
            actors,
            states: vec![None],
            state_ids: FxHashMap::default(),
            entries: Vec::new(),
            entry_ids: FxHashMap::default(),
            reactions: FxHashMap::default(),
            starts: FxHashMap::default(),
            verdicts: FxHashMap::default(),
        }
    }

    pub(super) fn actors(&self) -> usize {
        self.actors
    }

    fn state_id(&mut self, state: Arc<M::State>) -> Id {
        if let Some(&id) = self.state_ids.get(&state) {
            return id;
        }
        let id = self.states.len() as Id;
        self.states.push(Some(Arc::clone(&state)));
        self.state_ids.insert(state, id);
        id
    }

    fn entry_id(&mut self, entry: Pending) -> Id {
        *self.entry_ids.entry(entry).or_insert_with(|| {
            self.entries.push(entry);
            self.entries.len() as Id - 1
        })
    }

    fn cell(&self, actor: ActorId) -> usize {
        self.sim.cell_of(actor).index()
    }

    /// Whether an entry stands in a channel that the network keeps in order.
    fn in_order(&self, entry: &Pending) -> bool {
        self.rule == NetworkRule::Fifo && entry.kind == PendingKind::Message && entry.channel != OUTSIDE
    }

    /// What is pending and may be delivered now.
    pub(super) fn deliverable(&mut self, now: &Configuration) -> Vec<Id> {
        let mut found: Vec<Id> = Vec::new();
        let mut last = None;
        for &id in &now.pending {
            let entry = self.entries[id as usize];
            let channel = self.in_order(&entry).then_some((entry.channel, entry.to));
            let behind =
                channel.is_some() && channel == last || channel.is_none() && found.last() == Some(&id);
            last = channel;
            if !behind && now.life(entry.to) == Life::Running {
                found.push(id);
            }
        }
        found
    }

    /// The configuration after a step; nothing where it is not possible.
    pub(super) fn apply(
        &mut self,
        now: &Configuration,
        step: Move,
        recorded: &Recorded,
    ) -> Option<Configuration> {
        let mut after = now.clone();
        after.begun |= !matches!(step, Move::Start(_));
        match step {
            Move::Start(actor) => self.start(&mut after, actor)?,
            Move::Fault(at) => {
                after.fault = at + 1;
                match recorded.faults[at as usize] {
                    Act::Crash(actor) if now.life(actor) == Life::Running => {
                        after.lives[actor.index()] = Life::Crashed;
                        self.disarm(&mut after, actor);
                    }
                    Act::Restart(actor) if now.life(actor) == Life::Crashed => {
                        self.start(&mut after, actor)?
                    }
                    _ => return None,
                }
            }
            Move::External(at) => {
                let (to, msg) = recorded.messages[at as usize];
                if let Some((place, _)) = recorded.limits[at as usize] {
                    after.used[place] += 1;
                }
                let kind = PendingKind::External;
                let (from, channel) = (OUTSIDE, OUTSIDE);
                let id = self.entry_id(Pending {
                    from,
                    to,
                    channel,
                    msg,
                    kind,
                    timer: 0,
                    survives: false,
                    via: None,
                });
                self.react(&mut after, id)?;
            }
            Move::Deliver(id) => {
                let place = after.pending.iter().position(|&p| p == id)?;
                if self.entries[id as usize].kind != PendingKind::Repeating {
                    after.pending.remove(place);
                }
                self.react(&mut after, id)?;
            }
        }
        let mut pending: Vec<_> = after.pending.iter().map(|&id| (self.place(id), id)).collect();
        pending.sort_by_key(|p| p.0);
        after.pending = pending.into_iter().map(|p| p.1).collect();
        Some(after)
    }

    /// By what pending entries are sorted: those of one channel keep their order.
    fn place(&self, id: Id) -> (ActorId, ActorId, Id) {
        let entry = &self.entries[id as usize];
        if self.in_order(entry) { (entry.channel, entry.to, 0) } else { (OUTSIDE, OUTSIDE, id) }
    }

    fn disarm(&self, after: &mut Configuration, actor: ActorId) {
        after.pending.retain(|&id| {
            let entry = &self.entries[id as usize];
            entry.to != actor || !entry.kind.is_timer()
        });
    }

    /// An actor begins a life.
    fn start(&mut self, after: &mut Configuration, actor: ActorId) -> Option<()> {
        after.lives[actor.index()] = Life::Running;
        let cell = self.sim.cell_of(actor);
        let shared = if cell == actor { 0 } else { after.states[cell.index()] };
        let reaction = match self.starts.get(&(actor, shared)) {
            Some(known) => known.clone(),
            None => {
                let found = self.begin(actor, shared);
                self.starts.insert((actor, shared), found.clone());
                found
            }
        };
        self.happen(after, actor, reaction)
    }

    /// Runs the start of an actor in a world in which all others run, so that nothing it sends is lost.
    fn begin(&mut self, actor: ActorId, shared: Id) -> Reaction {
        let mut cells: Vec<Option<Arc<M::State>>> = vec![None; self.actors];
        cells[self.cell(actor)].clone_from(&self.states[shared as usize]);
        let mut world = World::assemble(cells, vec![Status::Running; self.actors], Vec::new());
        self.sim.restart(&mut world, actor);
        let state = Arc::clone(world.cells()[self.cell(actor)].as_ref()?);
        let ops = self.sim.did().iter().filter_map(|did| match did {
            Did::Sent(entry) => Some(Op::Send(*entry)),
            Did::TimerSet(entry) => Some(Op::SetTimer(*entry)),
            _ => None,
        });
        let ops = ops.collect();
        Some((self.state_id(state), ops))
    }

    fn react(&mut self, after: &mut Configuration, id: Id) -> Option<()> {
        let entry = self.entries[id as usize];
        let cell = self.cell(entry.to);
        let before = after.states[cell];
        let reaction = match self.reactions.get(&(before, id)) {
            Some(known) => known.clone(),
            None => {
                let found = self.run(before, &entry);
                self.reactions.insert((before, id), found.clone());
                found
            }
        };
        self.happen(after, entry.to, reaction)
    }

    fn run(&mut self, before: Id, entry: &Pending) -> Reaction {
        let state = self.states[before as usize].clone()?;
        if !self.sim.accepts(&state, entry) {
            return None;
        }
        let mut new = (*state).clone();
        let ops = self.sim.react(&mut new, entry).ok()??;
        Some((self.state_id(Arc::new(new)), ops.into()))
    }

    fn happen(&mut self, after: &mut Configuration, actor: ActorId, reaction: Reaction) -> Option<()> {
        let (state, ops) = reaction?;
        let cell = self.cell(actor);
        after.states[cell] = state;
        for op in ops.iter() {
            match *op {
                Op::Send(entry) => match after.life(entry.to) {
                    Life::Absent | Life::Missed => after.lives[entry.to.index()] = Life::Missed,
                    Life::Running | Life::Crashed => {
                        let id = self.entry_id(entry);
                        after.pending.push(id);
                    }
                },
                Op::SetTimer(entry) => {
                    self.cancel(after, entry.to, entry.timer);
                    let id = self.entry_id(entry);
                    after.pending.push(id);
                }
                Op::CancelTimer(of, timer) => self.cancel(after, of, timer),
            }
        }
        Some(())
    }

    fn cancel(&self, after: &mut Configuration, actor: ActorId, timer: u16) {
        after.pending.retain(|&id| {
            let entry = &self.entries[id as usize];
            entry.to != actor || !entry.kind.is_timer() || entry.timer != timer
        });
    }

    /// Whether the configuration breaks one of the invariants that count.
    pub(super) fn violates(&mut self, now: &Configuration) -> bool {
        let key = (now.lives.clone(), now.states.clone());
        if let Some(&known) = self.verdicts.get(&key) {
            return known;
        }
        let mut found: Vec<Violation> = Vec::new();
        let seen = Seen::<M>(now, &self.states);
        let view = View::new(&seen, self.sim.model(), self.sim.names());
        self.sim.model().check(&view, &mut M::History::default(), &mut found);
        let counts = found.iter().any(|v| self.target.contains(&v.fingerprint));
        self.verdicts.insert(key, counts);
        counts
    }

    /// A step of the search as a schedule has it.
    pub(super) fn step(&self, step: Move, recorded: &Recorded) -> Step {
        let name = |actor: ActorId| self.sim.names().get(actor);
        let external = |kind, actor| Step { external: Some(true), ..Step::new(kind, name(actor)) };
        let message = |kind, to, msg| {
            let info = self.sim.info(msg);
            let (type_, payload) =
                (self.sim.text(info.type_).to_owned(), self.sim.text(info.payload).to_owned());
            Step { type_: Some(type_), payload: Some(payload), ..Step::new(kind, name(to)) }
        };
        match step {
            Move::Start(actor) => external(StepKind::Start, actor),
            Move::Fault(at) => match recorded.faults[at as usize] {
                Act::Crash(actor) => external(StepKind::Crash, actor),
                ref act => external(StepKind::Restart, act.actor().unwrap_or(OUTSIDE)),
            },
            Move::External(at) => {
                let (to, msg) = recorded.messages[at as usize];
                Step { external: Some(true), ..message(StepKind::Deliver, to, msg) }
            }
            Move::Deliver(id) => {
                let entry = &self.entries[id as usize];
                if entry.kind.is_timer() {
                    return message(StepKind::Timer, entry.to, entry.msg);
                }
                let from = Some(name(entry.from).to_owned());
                Step { from, ..message(StepKind::Deliver, entry.to, entry.msg) }
            }
        }
    }
}
