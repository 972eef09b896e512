//! A model and what its environment may do, as a system that can be searched: what may happen next, what it costs, and what comes of it.
//!
//! The default order is: messages, the oldest first; then the next message from outside; then timers, the one that was armed first. Under
//! the cost of preemptions, what the actor may take that took something last comes before the rest. Around a recorded execution its next step
//! that is possible comes before everything, at any cost.
//!
//! Configurations are those of a [`Space`], so that a delivery is a look-up. What is not known to it, and what has to happen in a world, happens
//! between two batches.

use std::hint::black_box;
use std::sync::Arc;

use demi_replay::fuzz::{self, Choice};
use demi_replay::guard::{self, Panic};
use demi_replay::{ActorId, Model, OUTSIDE, Pending, PendingKind, Simulator, Status, Violation, World};
use demi_schemas::NetworkRule;
use demi_space::FREE;
use demi_space::packed::{self as words, Mixed};
use demi_space::{After, Child, Crew, Item, Pace, Reaction, Space, Spent, System, side_by_side};

use crate::cost::Cost;
use crate::log::Next;
use crate::moment::Moment;
use crate::scene::{Scene, SceneError};
use crate::step::Step;

/// Configurations that a thread takes at a time.
const PIECE: usize = 16;

/// Numbers of a cache line.
const LINE: usize = 16;

/// A point of an execution, with all that its future depends on.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The configuration.
    words: Box<[u32]>,
    deliveries: u32,
    /// How many steps of the test driver's program are done.
    done: u32,
    /// How many messages from outside were sent.
    sent: u32,
    /// How much of the recorded execution is done or passed over.
    at: u32,
    /// Whether messages from outside may come.
    open: bool,
    /// Who took something last.
    last: Option<ActorId>,
    /// Set where the model's code panicked on the way, after which nothing comes: what that violates.
    failed: Option<Failed>,
}

/// What a panic violates; a single word, for there are millions of configurations.
type Failed = Arc<Vec<Violation>>;

/// Something that may happen.
#[derive(Clone, Copy, Debug)]
struct Offer {
    choice: Choice,
    /// Who takes something.
    who: Option<ActorId>,
    /// The number of what comes of a delivery, where that is known.
    number: Option<u32>,
    cost: u32,
    faults: u32,
}

/// Room for a thread's work.
#[derive(Default)]
struct Room {
    /// Per channel, the last configuration in which its head was met.
    heads: Vec<u64>,
    now: u64,
    offers: Vec<Offer>,
    timers: Vec<Offer>,
    after: Vec<u32>,
}

/// What became of a configuration that a thread looked at.
enum Look<'a, M: Model> {
    Done(Result<After<Packed<'a, M>>, SceneError>),
    /// Handlers have to run first.
    Unknown,
    /// Something of it has to happen in a world.
    Slow,
}

/// A model in a scene.
pub(crate) struct Packed<'a, M: Model> {
    space: Space<M>,
    scene: &'a Scene,
    cost: Cost,
    first: State,
    /// The messages from outside that may come, with their receivers; nothing where the model panics when it is asked for one.
    clients: Vec<Option<Option<(ActorId, u32)>>>,
    crew: Crew<M>,
    rooms: Vec<Room>,
    pace: Pace,
}

impl<'a, M: Model> Packed<'a, M> {
    /// A model, from a point of its executions on.
    pub fn new(sim: Simulator<M>, (scene, first): (&'a Scene, &Moment<M>), cost: Cost, jobs: usize) -> Self {
        let mut space = Space::new(sim, scene.rule).exact(!scene.log.is_empty());
        let client = |(n, &random): (usize, &u64)| {
            let sim = space.sim();
            let ask = || sim.model().workload().client_message(n as u64, random, sim.names());
            let proposal = guard::guarded(ask).ok()?;
            Some(proposal.map(|proposal| {
                let (from, channel, to) = (OUTSIDE, OUTSIDE, proposal.to);
                let msg = space.sim_mut().intern_outside(proposal.msg, Some(&proposal.fields));
                let kind = PendingKind::External;
                let entry = Pending { from, to, channel, msg, kind, timer: 0, survives: false, via: None };
                (to, space.entry(&entry))
            }))
        };
        let clients = scene.clients.iter().enumerate().map(client).collect();
        let failed = first.world.panic().is_some().then(|| Arc::new(broken(space.sim(), &first.world)));
        let state = State {
            words: space.pack(&first.world, None).into(),
            deliveries: first.world.deliveries().try_into().unwrap_or(u32::MAX),
            done: first.done as u32,
            sent: first.sent as u32,
            at: first.at as u32,
            open: first.open,
            last: None,
            failed,
        };
        let rooms = (0..jobs.max(1)).map(|_| Room::default()).collect();
        let (crew, pace) = (Crew::of(jobs), Pace::default());
        Packed { space, scene, cost, first: state, clients, crew, rooms, pace }
    }

    /// The simulator, with the names of all actors that came up.
    pub fn into_sim(self) -> Simulator<M> {
        self.space.into_sim()
    }

    /// Where an execution ends in a livelock: the deliveries after which everything is as it was before.
    pub fn round(&mut self, path: &[Step]) -> Result<Vec<String>, SceneError> {
        if !self.space.sim().livelock_counts() {
            return Ok(Vec::new());
        }
        let mut state = self.first.clone();
        for step in path {
            state = self.make(&state, &step.alone())?.0;
        }
        let livelock = match state.failed {
            Some(_) => None,
            None => self.space.sim().livelock(&self.world(&state)),
        };
        Ok(livelock.map(|livelock| livelock.round).unwrap_or_default())
    }

    fn world(&self, state: &State) -> World<M> {
        self.space.unpack(&state.words).after(state.deliveries.into())
    }

    /// What a configuration breaks in which nothing has panicked.
    fn broken(&self, words: &[u32], deliveries: u32) -> Vec<Violation> {
        if self.space.sim().stuck_counts() {
            // What is pending decides too.
            return broken(self.space.sim(), &self.space.unpack(words).after(deliveries.into()));
        }
        let mut found = Vec::new();
        if let Err(message) = self.space.broken(words, &mut found) {
            let panic = Panic { actor: OUTSIDE, doing: "an invariant".to_owned(), message };
            return vec![Violation { fingerprint: self.space.sim().explain(&panic), affected: Vec::new() }];
        }
        found.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
        found
    }

    /// Whether messages from outside may come in a configuration.
    fn opens(&self, words: &[u32]) -> Result<bool, SceneError> {
        let Some(name) = self.scene.waits_for() else { return Ok(true) };
        let open = self.space.view(words, |view| Scene::condition(self.space.sim(), name, view));
        Ok(open?)
    }

    /// Fills a room with what may happen next, the default first; faults come last. What costs more than is left may be missing.
    fn offer(&self, room: &mut Room, state: &State, left: Spent, logged: Option<&Next>) {
        room.offers.clear();
        room.timers.clear();
        if state.failed.is_some() {
            return;
        }
        let (space, rule, faults) = (&self.space, self.scene.rule, left.faults);
        // Most configurations have nothing left to spend: of them only the default is asked for. Where messages are lost on the way, what comes first may
        // be a fault that is not left.
        let most = match self.cost {
            Cost::Deviation if left.cost == 0 => 1,
            Cost::Delay => left.cost.saturating_add(1) as usize,
            Cost::Deviation | Cost::Preempt => usize::MAX,
        };
        let most = if rule == NetworkRule::FifoLoss || logged.is_some() { usize::MAX } else { most };
        room.now += 1;
        room.heads.resize(space.channels().max(room.heads.len()), 0);
        let all = &state.words[..];
        let first = words::first_pending(all);
        let pending = &all[first..];
        for (index, &entry) in pending.iter().enumerate() {
            if room.offers.len() >= most {
                break;
            }
            let of = space.hot(entry);
            if of.channel != FREE && rule == NetworkRule::Fifo {
                let head = &mut room.heads[of.channel as usize];
                if std::mem::replace(head, room.now) == room.now {
                    continue;
                }
            }
            if of.timer != 0 && room.timers.len() >= most {
                continue;
            }
            if !matches!(words::status(all, of.to), Status::Running | Status::Isolated) {
                continue;
            }
            let local = words::local(all, usize::from(of.cell));
            let number = space.number(local, entry);
            let accepted = match number {
                Some(number) => !matches!(space.reaction(number), Reaction::Refused),
                None => space.accepts(local, entry),
            };
            if !accepted {
                continue;
            }
            let (choice, who) = (Choice::Deliver(index as u32), Some(ActorId(of.to)));
            let mut offer = Offer { choice, who, number, cost: 0, faults: 0 };
            if of.timer != 0 {
                room.timers.push(offer);
                continue;
            }
            if rule == NetworkRule::FifoLoss && of.channel != FREE {
                let older = pending[..index].iter().filter(|older| space.hot(**older).channel == of.channel);
                offer.faults = older.count() as u32;
            }
            room.offers.push(offer);
        }
        let other = |choice| Offer { choice, who: None, number: None, cost: 0, faults: 0 };
        if let Some(&random) = self.scene.clients.get(state.sent as usize).filter(|_| state.open) {
            room.offers.push(other(Choice::Client(state.sent.into(), random)));
        }
        room.offers.append(&mut room.timers);
        if let Some(next) = logged {
            // The recorded step comes first, and is not offered a second time.
            room.offers.retain(|offer| next.then.is_some() || offer.choice != next.choice);
            let number = None;
            room.offers.insert(0, Offer { choice: next.choice, who: next.who, number, cost: 0, faults: 0 });
        }
        let stays =
            |offer: &Offer| self.cost == Cost::Preempt && offer.who.is_some() && offer.who == state.last;
        let goes_on = logged.is_none() && room.offers.iter().any(stays);
        if goes_on {
            room.offers.sort_by_key(|offer| !stays(offer));
        }
        for (at, offer) in room.offers.iter_mut().enumerate() {
            offer.cost = match self.cost {
                Cost::Deviation => u32::from(at > 0),
                Cost::Delay => at as u32,
                Cost::Preempt if logged.is_some() => u32::from(at > 0),
                Cost::Preempt => u32::from(goes_on && !stays(offer)),
            };
        }
        room.offers.retain(|offer| offer.faults <= faults);
        if faults > 0 {
            let failures = self.failures(state).into_iter();
            room.offers.extend(failures.map(|choice| Offer { faults: 1, ..other(choice) }));
        }
    }

    /// The faults that are possible.
    fn failures(&self, state: &State) -> Vec<Choice> {
        let (space, sim) = (&self.space, self.space.sim());
        let mut all = Vec::new();
        for &actor in sim.model().actors() {
            match words::status(&state.words, actor.0) {
                Status::Running if !sim.model().runtime().fails(actor) => {}
                Status::Running => all.extend([Choice::Crash(actor), Choice::Isolate(actor)]),
                Status::Isolated => all.extend([Choice::Crash(actor), Choice::Heal(actor)]),
                Status::Crashed => all.push(Choice::Restart(actor)),
                Status::Absent | Status::Stopped => {}
            }
        }
        if self.scene.repeats {
            let pending = &state.words[words::first_pending(&state.words)..];
            // Copies of one message are alike.
            let what = |at: usize| {
                let entry = space.pending(pending[at]);
                (entry.from, entry.to, entry.msg)
            };
            let first = |at: &usize| (0..*at).all(|other| what(other) != what(*at));
            let may = (0..pending.len()).filter(|at| sim.may_repeat(space.pending(pending[*at])));
            all.extend(may.filter(first).map(|at| Choice::Duplicate(at as u32)));
        }
        all
    }

    /// What comes after a configuration, where the space knows all that it takes; what it does not know goes into `unknown`.
    fn look(
        &self,
        room: &mut Room,
        (state, spent, most): (&State, Spent, Spent),
        unknown: &mut Vec<(u32, u32)>,
    ) -> Look<'a, M> {
        if !self.scene.log.is_empty() || !self.scene.program.is_over(state.done as usize) {
            return Look::Slow;
        }
        let left = Spent { cost: most.cost - spent.cost, faults: most.faults - spent.faults, steps: 0 };
        self.offer(room, state, left, None);
        if room.offers.is_empty() {
            return Look::Done(Ok(After::End));
        }
        if spent.steps >= most.steps {
            return Look::Done(Ok(After::Cut));
        }
        room.offers.retain(|offer| spent.cost + offer.cost <= most.cost);
        let (mut slow, mut known) = (false, true);
        for offer in &room.offers {
            match (offer.choice, offer.number) {
                (Choice::Deliver(_), Some(number)) => {
                    slow |= matches!(self.space.reaction(number), Reaction::Lives);
                }
                (Choice::Deliver(index), None) => {
                    let entry = state.words[words::first_pending(&state.words) + index as usize];
                    let cell = usize::from(self.space.hot(entry).cell);
                    unknown.push((words::local(&state.words, cell), entry));
                    known = false;
                }
                (Choice::Client(n, _), _) => slow |= self.clients[n as usize].is_none(),
                _ => slow = true,
            }
        }
        match (slow, known) {
            (true, _) => return Look::Slow,
            (false, false) => return Look::Unknown,
            (false, true) => {}
        }
        let mut children = Vec::with_capacity(room.offers.len());
        let mut after = std::mem::take(&mut room.after);
        for offer in &room.offers {
            let mut child = State { words: Box::default(), ..state.clone_but_words() };
            let visible = match (offer.choice, offer.number) {
                (Choice::Client(n, _), _) => {
                    self.client(&state.words, n, &mut after);
                    child.sent += 1;
                    false
                }
                (Choice::Deliver(index), Some(number)) => {
                    child.last = offer.who;
                    child.deliveries = child.deliveries.saturating_add(1);
                    let (visible, failed) = self.deliver(&state.words, index as usize, number, &mut after);
                    child.failed = failed;
                    visible
                }
                _ => return Look::Slow,
            };
            child.words = after.as_slice().into();
            let stuck = self.space.sim().stuck_counts();
            let violations = match &child.failed {
                Some(violations) => violations.to_vec(),
                None if visible || stuck => self.broken(&child.words, child.deliveries),
                None => Vec::new(),
            };
            let spent = spent + Spent { cost: offer.cost, faults: offer.faults, steps: 1 };
            if violations.is_empty() && !child.open {
                match self.opens(&child.words) {
                    Ok(open) => child.open = open,
                    Err(error) => return Look::Done(Err(error)),
                }
            }
            let key = if violations.is_empty() { self.key(&child, spent) } else { 0 };
            let choice = Step::new(offer.choice, None, state.at as usize);
            children.push(Child { state: child, choice, spent, key, violations });
        }
        room.after = after;
        Look::Done(Ok(After::Children(children)))
    }

    /// The next message from outside becomes pending.
    fn client(&self, before: &[u32], n: u64, after: &mut Vec<u32>) {
        after.clear();
        after.extend_from_slice(before);
        if let Some(Some(Some((to, entry)))) = self.clients.get(n as usize)
            && matches!(words::status(before, to.0), Status::Running | Status::Crashed)
        {
            after.push(*entry);
        }
    }

    /// A delivery of which it is known what comes of it, and that does not have to happen in a world. Says whether an invariant may look different
    /// now, and what it violates if a handler panics.
    fn deliver(
        &self,
        before: &[u32],
        index: usize,
        number: u32,
        after: &mut Vec<u32>,
    ) -> (bool, Option<Failed>) {
        match self.space.reaction(number) {
            Reaction::Plain { next, effects, visible } => {
                self.space.delivered(before, index, (*next, effects), after);
                (*visible, None)
            }
            Reaction::Panics { next, crash } => {
                self.space.delivered(before, index, (*next, &[]), after);
                (true, Some(Arc::new(crash.iter().cloned().collect())))
            }
            Reaction::Refused | Reaction::Lives => unreachable!("these happen in a world"),
        }
    }

    /// Makes one choice happen.
    fn choose(&mut self, state: &mut State, choice: Choice) {
        match choice {
            Choice::Client(n, _) => {
                state.sent += 1;
                if self.clients.get(n as usize).is_some_and(Option::is_some) {
                    let mut after = Vec::new();
                    self.client(&state.words, n, &mut after);
                    state.words = after.into();
                    return;
                }
            }
            Choice::Deliver(index) => {
                let at = words::first_pending(&state.words) + index as usize;
                let Some(&entry) = state.words.get(at) else { return };
                let of = *self.space.hot(entry);
                state.last = Some(ActorId(of.to));
                let local = words::local(&state.words, usize::from(of.cell));
                let number = if local == 0 { None } else { Some(self.space.react(local, entry)) };
                let plain = |number: &u32| {
                    !matches!(self.space.reaction(*number), Reaction::Refused | Reaction::Lives)
                };
                if let Some(number) = number.filter(plain) {
                    let mut after = Vec::new();
                    state.deliveries = state.deliveries.saturating_add(1);
                    state.failed = self.deliver(&state.words, index as usize, number, &mut after).1;
                    state.words = after.into();
                    return;
                }
            }
            _ => {}
        }
        let mut world = self.world(state);
        fuzz::apply(self.space.sim_mut(), &mut world, &self.scene.program, choice, self.scene.rule);
        self.take(state, &world);
    }

    /// Takes in the world that a configuration became.
    fn take(&mut self, state: &mut State, world: &World<M>) {
        state.deliveries = world.deliveries().try_into().unwrap_or(u32::MAX);
        state.failed = world.panic().is_some().then(|| Arc::new(broken(self.space.sim(), world)));
        state.words = self.space.pack(world, Some(&state.words)).into();
    }
}

impl State {
    /// The rest of it.
    fn clone_but_words(&self) -> State {
        let State { deliveries, done, sent, at, open, last, .. } = *self;
        State { words: Box::default(), deliveries, done, sent, at, open, last, failed: None }
    }
}

impl<'a, M: Model> System for Packed<'a, M> {
    type State = State;
    type Choice = Step;
    type Error = SceneError;

    fn first(&mut self) -> Result<State, SceneError> {
        Ok(self.first.clone())
    }

    fn menu(&mut self, state: &State, faults: u32) -> Result<Vec<Item<Step>>, SceneError> {
        if state.failed.is_some() {
            return Ok(Vec::new());
        }
        let logged = match self.scene.log.is_empty() {
            true => None,
            false => {
                let world = self.world(state);
                let driver = (&self.scene.program, self.scene.rule);
                self.scene.log.next(self.space.sim_mut(), &world, state.at as usize, driver)
            }
        };
        let mut room = std::mem::take(&mut self.rooms[0]);
        self.offer(&mut room, state, Spent { cost: u32::MAX, faults, steps: 0 }, logged.as_ref());
        let item = |(place, offer): (usize, &Offer)| {
            let next = logged.filter(|_| place == 0);
            let (then, at) = next.map_or((None, state.at as usize), |next| (next.then, next.at + 1));
            let spends = Spent { cost: offer.cost, faults: offer.faults, steps: 1 };
            Item { choice: Step::new(offer.choice, then, at), spends }
        };
        let items = room.offers.iter().enumerate().map(item).collect();
        self.rooms[0] = room;
        Ok(items)
    }

    fn make(&mut self, before: &State, step: &Step) -> Result<(State, Step), SceneError> {
        let mut state = before.clone();
        for choice in step.chosen() {
            self.choose(&mut state, choice);
        }
        state.at = step.at() as u32;
        let settled = state.open && self.scene.program.is_over(state.done as usize);
        let mut driven = Vec::new();
        if !settled && state.failed.is_none() && self.violations(&state).is_empty() {
            let mut moment = Moment {
                world: self.world(&state),
                done: state.done as usize,
                sent: state.sent as usize,
                at: state.at as usize,
                open: state.open,
            };
            self.scene.settle(self.space.sim_mut(), &mut moment, &mut driven)?;
            (state.done, state.open) = (moment.done as u32, moment.open);
            if !driven.is_empty() {
                self.take(&mut state, &moment.world);
            }
        }
        Ok((state, step.driven(&driven)))
    }

    fn key(&self, state: &State, spent: Spent) -> u128 {
        let mut key = self.space.key(&state.words);
        // What led here may have left its state half done.
        let flags = u128::from(state.open) | u128::from(state.failed.is_some()) << 1;
        key.add(
            u128::from(state.done) << 96 | u128::from(state.sent) << 64 | u128::from(state.at) << 32 | flags,
        );
        key.add(spent.faults.into());
        if !self.scene.program.is_over(state.done as usize) {
            key.add(state.deliveries.into());
        }
        if self.cost == Cost::Preempt {
            key.add(state.last.map_or(u128::MAX, |actor| actor.0.into()));
        }
        Mixed::end(key)
    }

    fn violations(&mut self, state: &State) -> Vec<Violation> {
        match &state.failed {
            Some(violations) => violations.to_vec(),
            None => self.broken(&state.words, state.deliveries),
        }
    }

    fn chosen(step: &Step) -> Step {
        step.alone()
    }

    fn told(&self, state: &State, step: &Step) -> String {
        let sim = self.space.sim();
        match step.chosen().next() {
            Some(Choice::Deliver(index)) => {
                let at = words::first_pending(&state.words) + index as usize;
                state.words.get(at).map_or_else(String::new, |entry| sim.told(self.space.pending(*entry)))
            }
            Some(Choice::Client(..)) => "the next client message".to_owned(),
            Some(Choice::Crash(actor)) => format!("{} fails", sim.names().get(actor)),
            Some(Choice::Isolate(actor)) => format!("{} is cut off", sim.names().get(actor)),
            Some(Choice::Heal(actor)) => format!("{} is back on the network", sim.names().get(actor)),
            Some(Choice::Start(actor) | Choice::Restart(actor)) => {
                format!("{} starts", sim.names().get(actor))
            }
            Some(Choice::Duplicate(_)) => "a message is repeated".to_owned(),
            Some(Choice::Bootstrap | Choice::Program(_)) => "the recorded step".to_owned(),
            None => String::new(),
        }
    }

    fn after(&mut self, batch: &[(&State, Spent)], most: Spent) -> Vec<Result<After<Self>, SceneError>> {
        let mut looks = self.looks(batch.to_vec(), most, true);
        let unknown = |look: &Look<'a, M>| matches!(look, Look::Unknown);
        let again: Vec<usize> = (0..looks.len()).filter(|at| unknown(&looks[*at])).collect();
        let late = self.looks(again.iter().map(|at| batch[*at]).collect(), most, false);
        again.into_iter().zip(late).for_each(|(at, look)| looks[at] = look);
        let one = |(look, (state, spent)): (Look<'a, M>, &(&State, Spent))| match look {
            Look::Done(done) => done,
            Look::Unknown | Look::Slow => self.after_one(state, *spent, most),
        };
        looks.into_iter().zip(batch).map(one).collect()
    }
}

impl<'a, M: Model> Packed<'a, M> {
    /// Looks at configurations on all threads, and then runs the handlers that it takes.
    fn looks(&mut self, batch: Vec<(&State, Spent)>, most: Spent, learns: bool) -> Vec<Look<'a, M>> {
        let pieces: Vec<&[(&State, Spent)]> = batch.chunks(PIECE).collect();
        let (mut rooms, mut pace) = (std::mem::take(&mut self.rooms), self.pace);
        let this = &*self;
        let done = side_by_side(&mut rooms, pieces.len(), PIECE, &mut pace, |room, at| {
            let mut unknown = Vec::new();
            // They were made long ago. All of them are brought into the caches at once, and not each when its turn comes.
            let lines = |(state, _): &(&State, Spent)| state.words.iter().step_by(LINE).fold(0, |a, b| a ^ b);
            black_box(pieces[at].iter().map(lines).fold(0, |a, b| a ^ b));
            let look =
                |(state, spent): &(&State, Spent)| this.look(room, (state, *spent, most), &mut unknown);
            let looks: Vec<Look<'a, M>> = pieces[at].iter().map(look).collect();
            (looks, unknown)
        });
        (self.rooms, self.pace) = (rooms, pace);
        let (mut looks, mut unknown) = (Vec::with_capacity(batch.len()), Vec::new());
        for (some, pairs) in done {
            looks.extend(some);
            unknown.extend(pairs);
        }
        if learns && !unknown.is_empty() {
            self.space.learn(&unknown, &mut self.crew, &());
        }
        looks
    }
}

/// What a world breaks by itself, in the order of the fingerprints. A panic of the model is a violation.
fn broken<M: Model>(sim: &Simulator<M>, world: &World<M>) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Err(panic) = sim.judge(world, &mut M::History::default(), &mut found) {
        // A handler's is a violation that was found, or none.
        let outside = || Violation { fingerprint: sim.explain(&panic), affected: Vec::new() };
        return (panic.actor == OUTSIDE).then(outside).into_iter().collect();
    }
    found.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
    found
}
