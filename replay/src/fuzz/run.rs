//! One random run.

use std::sync::atomic::{AtomicBool, Ordering};

use demi_schemas::Scenario;
use demi_schemas::scenario::{FuzzSettings, Strategy};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::candidates::{Candidates, Holds};
use super::choice::{Choice, apply};
use super::order;
use super::program::Program;
use super::strategy::{Order, skip};
use super::{FuzzError, FuzzOptions};
use crate::guard::{self, Panic};
use crate::model::{Model, Status, Violation};
use crate::names::{ActorId, OUTSIDE};
use crate::pending::{Pending, PendingKind};
use crate::sim::Simulator;
use crate::world::World;

/// How often at most a drawn timer is put back before a delivery.
const PUTBACKS: u32 = 16;
/// Random external events a run where there are faults but few client messages.
const FAULTS: u64 = 20;
/// Kills of a run at most, and the deliveries for which who is killed is down.
const KILLS: u64 = 3;
/// Probability that who forgets again and again is killed once it has told something, and how often that happens at most.
const FORGETS: f64 = 0.25;
const KILLS_OF_ONE: u64 = 6;
const DOWN: std::ops::RangeInclusive<u64> = 1..=20;
/// Deliveries for each client message of a model that wants them one by one.
const PACE: u64 = 8;

/// The scenario's settings, checked.
///
/// # Errors
/// When a weight or probability is out of range.
pub fn settings(scenario: &Scenario) -> Result<FuzzSettings, FuzzError> {
    let s = scenario.fuzz.clone().unwrap_or_default();
    let weights = [
        ("weight_client", s.weight_client),
        ("weight_crash", s.weight_crash),
        ("weight_restart", s.weight_restart),
        ("weight_partition", s.weight_partition),
        ("weight_isolate", s.weight_isolate),
        ("weight_duplicate", s.weight_duplicate),
    ];
    for (name, value) in weights {
        if !(0.0..=1e9).contains(&value) {
            return Err(FuzzError::Range(name, value.to_string()));
        }
    }
    if !(1.0..=1e6).contains(&s.clock_drift) {
        return Err(FuzzError::Range("clock_drift", s.clock_drift.to_string()));
    }
    if !(0.0..=1.0).contains(&s.timer_putback) {
        return Err(FuzzError::Range("timer_putback", s.timer_putback.to_string()));
    }
    Ok(s)
}

/// How fast each actor's clock runs, the fastest having 1: evenly spread between `drift` times slower and faster than the
/// middle, on a scale of ratios.
pub(crate) fn clocks(drift: f64, actors: &[ActorId], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut speeds = Vec::new();
    if drift > 1.0 {
        speeds.resize(1 + actors.iter().map(|a| a.index()).max().unwrap_or(0), 1.0);
        actors.iter().for_each(|a| speeds[a.index()] = drift.powf(rng.random_range(-1.0..=1.0)));
        let fastest = actors.iter().map(|a| speeds[a.index()]).fold(f64::MIN, f64::max);
        actors.iter().for_each(|a| speeds[a.index()] = (speeds[a.index()] / fastest).clamp(0.0, 1.0));
    }
    speeds
}

/// Kills of nodes: each hits a node that has just told others something, which it may know of only in memory, and before it hears of anything else.
struct Kills {
    when: KilledWhen,
    /// Who is down, and after how many deliveries it starts again.
    down: Vec<(u64, ActorId)>,
    nodes: Vec<ActorId>,
    /// Whether who is killed starts again.
    back: bool,
}

enum KilledWhen {
    /// Whoever tells something next after so many deliveries; the first is last.
    After(Vec<u64>),
    /// One node, each time with this probability, and so many times at most: it forgets again and again, beside others that do not.
    Again(ActorId, f64, u64),
}

impl Kills {
    /// In three of four runs of those that take turns, where nodes fail: a few kills of anybody, or more of one.
    fn new(
        settings: &FuzzSettings,
        (strategy, nodes): (Strategy, &[ActorId]),
        deliveries: u64,
        rng: &mut ChaCha8Rng,
    ) -> Option<Kills> {
        if strategy != Strategy::Mixed || settings.weight_crash <= 0.0 || nodes.is_empty() {
            return None;
        }
        let when = match rng.random_range(0..4) {
            0 => return None,
            1 => {
                let count = rng.random_range(1..=KILLS);
                let mut at: Vec<u64> = (0..count).map(|_| rng.random_range(0..deliveries.max(1))).collect();
                at.sort_unstable_by(|a, b| b.cmp(a));
                KilledWhen::After(at)
            }
            _ => KilledWhen::Again(nodes[rng.random_range(0..nodes.len())], FORGETS, KILLS_OF_ONE),
        };
        Some(Kills { when, down: Vec::new(), nodes: nodes.to_vec(), back: settings.weight_restart > 0.0 })
    }
}

/// A run that is being made.
pub(crate) struct Run<'a, M: Model> {
    sim: &'a mut Simulator<M>,
    scenario: &'a Scenario,
    settings: &'a FuzzSettings,
    program: &'a Program,
    /// How many steps of the program are done.
    done: usize,
    actors: Vec<ActorId>,
    world: World<M>,
    rng: ChaCha8Rng,
    order: Order,
    candidates: Candidates,
    holds: Holds,
    kills: Option<Kills>,
    choices: Vec<Choice>,
    limit: u64,
    /// Client messages sent, and how many there are to be.
    clients: (u64, u64),
    /// For each actor, how fast its clock runs: 1 for the fastest. Empty where all run alike.
    clocks: Vec<f64>,
    /// Probability of a random external event before a delivery.
    event_rate: f64,
    /// Whether the condition that client messages wait for has held.
    open: bool,
    watched: Vec<Option<u64>>,
    dirty: bool,
    history: M::History,
}

impl<'a, M: Model> Run<'a, M> {
    pub(crate) fn new(
        sim: &'a mut Simulator<M>,
        scenario: &'a Scenario,
        (settings, program): (&'a FuzzSettings, &'a Program),
        options: &FuzzOptions,
        number: u64,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        rng.set_stream(number);
        let paced = sim.model().workload().paced();
        let usual = if paced { Strategy::Mixed } else { Strategy::Random };
        let strategy = settings.strategy.unwrap_or(usual);
        let nodes = order::nodes(sim);
        let kills = Kills::new(settings, (strategy, &nodes), options.deliveries, &mut rng);
        let order = Order::new(settings, (strategy, nodes), number, options.deliveries, &mut rng);
        let usual = u64::from(settings.client_messages());
        let more = paced && settings.client_messages.is_none();
        let usual = if more { usual.max(options.deliveries / PACE) } else { usual };
        let total = options.externals.map_or(usual, u64::from);
        // Kills at chosen times are no random events.
        let chosen = if kills.is_some() { 0.0 } else { settings.weight_crash + settings.weight_restart };
        let faults = chosen
            + settings.weight_partition
            + settings.weight_isolate
            + if scenario.duplicates { settings.weight_duplicate } else { 0.0 };
        let clocks = clocks(settings.clock_drift, sim.model().actors(), &mut rng);
        // With faults, so many events a run that about all client messages find a place among them.
        let event_rate = if faults > 0.0 {
            let share =
                if settings.weight_client > 0.0 { 1.0 + faults / settings.weight_client } else { 1.0 };
            (total.max(FAULTS) as f64 * share / options.deliveries.max(1) as f64).min(0.5)
        } else if paced && settings.weight_client > 0.0 {
            (total as f64 / options.deliveries.max(1) as f64).min(0.5)
        } else {
            0.0
        };
        Run {
            kills,
            actors: sim.model().actors().to_vec(),
            world: sim.empty_world(),
            sim,
            scenario,
            settings,
            program,
            clocks,
            done: 0,
            rng,
            order,
            candidates: Candidates::default(),
            holds: Holds::default(),
            choices: Vec::new(),
            limit: options.deliveries,
            clients: (0, total),
            event_rate,
            open: false,
            watched: Vec::new(),
            dirty: true,
            history: M::History::default(),
        }
    }

    /// Makes the run; gives the violation it ends with, or nothing. Where `stop` is set nobody wants to know, and it ends.
    pub(crate) fn go(&mut self, stop: &AtomicBool) -> Result<Vec<Violation>, FuzzError> {
        let starts = if self.sim.model().runtime().starts_by_itself() { 0 } else { self.actors.len() };
        for at in 0..starts {
            self.apply(Choice::Start(self.actors[at]));
            // Nothing comes after a handler that fails, not even another start.
            if let Some(findings) = self.panicked() {
                return Ok(findings);
            }
        }
        self.apply(Choice::Bootstrap);
        if let Some(findings) = self.panicked() {
            return Ok(findings);
        }
        let interval = u64::from(self.scenario.invariant_check_interval.unwrap_or(1)).max(1);
        while self.world.deliveries() < self.limit && !stop.load(Ordering::Relaxed) {
            self.events()?;
            if let Some(findings) = self.panicked() {
                return Ok(findings);
            }
            self.candidates.find(self.sim, &self.world, self.scenario.network, &mut self.holds);
            if self.candidates.is_empty() {
                if self.unblock() { continue } else { break }
            }
            let index = self.draw();
            let entry = self.world.pending()[index];
            self.apply(Choice::Deliver(index as u32));
            if let Some(findings) = self.panicked() {
                return Ok(findings);
            }
            self.holds.delivered(&entry);
            self.touched(entry.to);
            let told = self.sim.did().iter().any(|did| matches!(did, crate::sim::Did::Sent(_)));
            if self.world.deliveries().is_multiple_of(interval) {
                let violations = self.check();
                if !violations.is_empty() {
                    return Ok(violations);
                }
            }
            self.kill(told.then_some(entry.to));
            if let Some(findings) = self.panicked() {
                return Ok(findings);
            }
        }
        Ok(self.check())
    }

    fn apply(&mut self, choice: Choice) {
        apply(self.sim, &mut self.world, self.program, choice, self.scenario.network);
        self.choices.push(choice);
        if !matches!(choice, Choice::Deliver(_)) {
            self.dirty = true;
        }
    }

    /// Notes that the state of an actor may have changed.
    fn touched(&mut self, actor: ActorId) {
        let watch = self.sim.watch(&self.world, actor);
        let cell = self.sim.cell_of(actor).index();
        if self.watched.len() <= cell {
            self.watched.resize(cell + 1, None);
        }
        let last = &mut self.watched[cell];
        // A handler that starts, stops or fails an actor changes more than its own state.
        let more = self.sim.did().iter().any(|did| {
            use crate::sim::Did::{Crashed, Restarted, Started};
            matches!(did, Crashed(_) | Restarted(_) | Started(_))
        });
        self.dirty |=
            watch.is_none() || watch != *last || more || self.world.status(actor) != Status::Running;
        *last = watch;
    }

    /// What is found where the last step ended in a panic; the run ends then.
    fn panicked(&self) -> Option<Vec<Violation>> {
        self.world.panic().map(|panic| self.findings(panic))
    }

    /// What a panic is: of a handler a crash, unless that counts as no violation.
    fn findings(&self, panic: &Panic) -> Vec<Violation> {
        let outside = || Violation { fingerprint: self.sim.explain(panic), affected: Vec::new() };
        let found = self.sim.crashed(panic).or_else(|| (panic.actor == OUTSIDE).then(outside));
        found.into_iter().collect()
    }

    fn check(&mut self) -> Vec<Violation> {
        let mut found = Vec::new();
        if std::mem::take(&mut self.dirty)
            && let Err(panic) = self.sim.judge(&self.world, &mut self.history, &mut found)
        {
            return self.findings(&panic);
        }
        if !found.is_empty() {
            let mut alone = Vec::new();
            self.sim.check(&self.world, &mut M::History::default(), &mut alone);
            found.retain(|v| alone.iter().any(|a| a.fingerprint == v.fingerprint));
        }
        found
    }

    fn draw(&mut self) -> usize {
        let mut index = 0;
        for _ in 0..PUTBACKS {
            index = order::draw(&mut self.order, &self.candidates, (self.sim, &self.world), &mut self.rng);
            let Pending { kind, to, .. } = self.world.pending()[index];
            if self.candidates.len() == 1 || !self.put_back(kind, to) {
                break;
            }
        }
        skip(self.scenario.network, self.world.pending(), index, &mut self.rng)
    }

    /// Whether a drawn entry waits longer: a timer that is not due yet, on a clock that runs slower than others or at all.
    fn put_back(&mut self, kind: PendingKind, to: ActorId) -> bool {
        let slow = match self.clocks.get(to.index()) {
            Some(speed) if kind.is_timer() => self.rng.random_bool(1.0 - speed),
            _ => false,
        };
        slow || kind == PendingKind::Timer && self.rng.random_bool(self.settings.timer_putback)
    }

    /// Injects client messages and faults that are due.
    fn events(&mut self) -> Result<(), FuzzError> {
        while let (done, Some(act)) = self.program.due(self.sim, &self.world, self.done)? {
            self.done = done;
            self.apply(Choice::Program(act));
        }
        if !self.open {
            self.open = match &self.settings.wait_for {
                None => true,
                Some(name) => {
                    let view = self.sim.view(&self.world);
                    guard::guarded(|| self.sim.model().workload().condition(name, &view))
                        .unwrap_or_else(|message| Err(format!("'{name}' panicked: {message}")))
                        .map_err(FuzzError::Condition)?
                }
            };
            while self.open && self.event_rate == 0.0 && self.client() {}
        }
        if self.event_rate > 0.0 && self.rng.random_bool(self.event_rate) {
            self.event();
        }
        Ok(())
    }

    /// Sends the next client message, if there is one left.
    fn client(&mut self) -> bool {
        let (sent, total) = self.clients;
        if sent < total {
            let choice = self.rng.random();
            self.clients.0 += 1;
            self.apply(Choice::Client(sent, choice));
        }
        sent < total
    }

    fn with_status(&self, status: Status) -> Vec<ActorId> {
        self.actors.iter().copied().filter(|&a| self.world.status(a) == status).collect()
    }

    /// One random external event.
    fn event(&mut self) {
        let (mut running, crashed) = (self.with_status(Status::Running), self.with_status(Status::Crashed));
        running.retain(|&actor| self.sim.model().runtime().fails(actor));
        let cut_off = self.with_status(Status::Isolated);
        let repeatable = if self.scenario.duplicates { self.repeatable() } else { Vec::new() };
        let s = self.settings;
        let when = |possible: bool, weight: f64| if possible { weight } else { 0.0 };
        let weights = [
            when(self.open && self.clients.0 < self.clients.1, s.weight_client),
            when(running.len() > 1 && self.kills.is_none(), s.weight_crash),
            when(!crashed.is_empty(), s.weight_restart),
            when(self.actors.len() > 1, s.weight_partition),
            when(running.len() > 1 || !cut_off.is_empty(), s.weight_isolate),
            when(!repeatable.is_empty(), s.weight_duplicate),
        ];
        let mut at = self.rng.random::<f64>() * weights.iter().sum::<f64>();
        let kind = weights.iter().position(|&w| {
            at -= w;
            w > 0.0 && at < 0.0
        });
        match kind {
            Some(0) => {
                self.client();
            }
            Some(1) => {
                let one = running[self.rng.random_range(0..running.len())];
                self.apply(Choice::Crash(one));
            }
            Some(2) => {
                let one = crashed[self.rng.random_range(0..crashed.len())];
                self.apply(Choice::Restart(one));
            }
            Some(3) if self.holds.far.is_empty() => self.partition(),
            Some(3) => self.holds.far.clear(),
            // As often back as away, so that a run is not mostly about who is alone.
            Some(5) => {
                let one = repeatable[self.rng.random_range(0..repeatable.len())];
                self.apply(Choice::Duplicate(one));
            }
            Some(_) if running.len() < 2 || !cut_off.is_empty() && self.rng.random_bool(0.5) => {
                let one = cut_off[self.rng.random_range(0..cut_off.len())];
                self.apply(Choice::Heal(one));
            }
            Some(_) => {
                let one = running[self.rng.random_range(0..running.len())];
                self.apply(Choice::Isolate(one));
            }
            None => {}
        }
    }

    /// Kills who has just told others something, if its time has come, and starts again who has been down for long enough.
    fn kill(&mut self, told: Option<ActorId>) {
        let now = self.world.deliveries();
        let Some(kills) = &mut self.kills else { return };
        if let Some(at) = kills.down.iter().position(|(until, _)| *until <= now) {
            let (_, actor) = kills.down.swap_remove(at);
            if self.world.status(actor) == Status::Crashed {
                self.apply(Choice::Restart(actor));
            }
            return;
        }
        let Some(actor) = told.filter(|actor| kills.nodes.contains(actor)) else { return };
        if self.world.status(actor) != Status::Running {
            return;
        }
        match &mut kills.when {
            KilledWhen::After(at) if at.last().is_some_and(|at| *at <= now) => {
                at.pop();
            }
            KilledWhen::Again(one, part, left)
                if *one == actor && *left > 0 && self.rng.random_bool(*part) =>
            {
                *left -= 1;
            }
            _ => return,
        }
        let back = kills.back.then(|| match self.rng.random_bool(0.5) {
            true => 0,
            false => self.rng.random_range(DOWN),
        });
        self.apply(Choice::Crash(actor));
        match (back, &mut self.kills) {
            (Some(0), _) => self.apply(Choice::Restart(actor)),
            (Some(later), Some(kills)) => kills.down.push((now + later, actor)),
            _ => {}
        }
    }

    /// Pending entries that the network may repeat.
    fn repeatable(&self) -> Vec<u32> {
        let pending = self.world.pending().iter().enumerate();
        pending.filter(|(_, entry)| self.sim.may_repeat(entry)).map(|(index, _)| index as u32).collect()
    }

    /// Divides the actors in two sides at random. What has to cross waits until the partition heals.
    fn partition(&mut self) {
        let n = 1 + self.actors.iter().map(|a| a.index()).max().unwrap_or(0);
        self.holds.far = vec![false; n];
        for at in 0..self.actors.len() {
            self.holds.far[self.actors[at].index()] = self.rng.random_bool(0.5);
        }
        let runtime = self.sim.model().runtime();
        self.holds.free = self.actors.iter().copied().filter(|&actor| !runtime.fails(actor)).collect();
    }

    /// When nothing can be delivered: heals the partition, or brings the next client message or restart.
    fn unblock(&mut self) -> bool {
        if !self.holds.far.is_empty() {
            self.holds.far.clear();
            return true;
        }
        if self.event_rate > 0.0 && self.settings.weight_client > 0.0 && self.client() {
            return true;
        }
        if let Some(&actor) =
            self.with_status(Status::Isolated).first().filter(|_| self.settings.weight_isolate > 0.0)
        {
            self.apply(Choice::Heal(actor));
            return true;
        }
        match self.with_status(Status::Crashed).first() {
            Some(&actor) if self.settings.weight_restart > 0.0 => {
                self.apply(Choice::Restart(actor));
                true
            }
            _ => false,
        }
    }

    pub(crate) fn deliveries(&self) -> u64 {
        self.world.deliveries()
    }

    pub(crate) fn into_choices(self) -> Vec<Choice> {
        self.choices
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn clocks_run_apart_as_far_as_they_may() {
        let actors: Vec<ActorId> = (1..=5).map(ActorId).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!(clocks(1.0, &actors, &mut rng).is_empty(), "all run alike");
        for drift in [1.5, 4.0, 100.0] {
            let speeds = clocks(drift, &actors, &mut rng);
            let of: Vec<f64> = actors.iter().map(|a| speeds[a.index()]).collect();
            assert!(
                of.contains(&1.0) && of.iter().all(|s| (1.0 / drift.powi(2)..=1.0).contains(s)),
                "{of:?}"
            );
            assert!(of.iter().any(|s| *s < 1.0), "{of:?}");
        }
    }
}
