//! Detours: between two places of the witness, the shortest way to what the rest needs (plan neighbourhood graph search; Nakhost and Müller 2010).
//!
//! The rest of a witness does not need the configuration that it began in. It needs, of each actor that still takes something, a state from which
//! the same deliveries bring about what is taken later; and of the actors that the violation is about, a state that ends like theirs. It needs
//! what was pending and is taken later to be pending. All this is asked of one actor at a time, and remembered. So is how many deliveries each
//! state of an actor is away from one that will do, whatever the others do; what all actors are away adds up, since a delivery has one receiver.
//! A way that leads there in fewer deliveries than the witness takes is found layer by layer, and the whole is run again.

use std::collections::VecDeque;

use demi_replay::script::Act;
use demi_replay::{ActorId, Model, Status, World};
use demi_schemas::NetworkRule;
use demi_space::packed;
use demi_space::{Effect, FREE, Reaction, Space};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::oracle::witness::Shared;
use crate::plan::{DETOUR_GOALS, DETOUR_REACTIONS, DETOUR_STATES, DETOUR_WIDTHS};
use crate::reduce::reducer::Reducer;

/// No way that is known.
const NEVER: u16 = u16::MAX;

/// Looks for detours of each width in turn, from the end of the witness to its beginning, with not many more than `most` configurations for each
/// stretch; the wider ones only while they gain or are the first. What follows a stretch is matched by the policies.
pub fn search<M: Model>(reducer: &mut Reducer<'_, M>, most: usize, policies: &[Policy]) {
    let Some(mut space) = Around::new(&mut reducer.engine, &reducer.best) else { return };
    for width in DETOUR_WIDTHS {
        let mut to = reducer.best.acts.len();
        while to > 0 && !reducer.ended() {
            let from = space.begin_of(to, width);
            let found = from.and_then(|from| space.shorter(&mut reducer.engine, (from, to), most, policies));
            if reducer.keep(found) {
                // A space knows messages by the numbers that they had when it began, so that each witness has one of its own.
                let Some(next) = Around::new(&mut reducer.engine, &reducer.best) else { return };
                space = next;
                to = (to + width).min(reducer.best.acts.len());
            } else {
                to -= (width / 4).clamp(1, to);
            }
        }
        if width > reducer.best.acts.len() {
            return;
        }
    }
}

/// A step of the witness.
struct Step {
    /// The entry that is delivered; nothing for another step.
    entry: Option<u32>,
    /// The actor that it happens to.
    actor: Option<ActorId>,
}

/// A witness as numbers, and what is known of the model around it.
struct Around<M: Model> {
    space: Space<M>,
    witness: Shared<M>,
    steps: Vec<Step>,
    /// The configuration before each step, and at the end, without what comes from outside later.
    configurations: Vec<Vec<u32>>,
    /// By cell: the local states that were met, and which of them lead to which by one delivery.
    met: Vec<Vec<u32>>,
    edges: Vec<Vec<(u32, u32)>>,
    /// Whether all that actors can become was met.
    closed: bool,
    /// Cells that the violation is about.
    affected: Vec<usize>,
}

/// What the rest of a witness needs of one cell.
#[derive(Default)]
struct Needs {
    /// What it is given, one after the other, with what each must bring about.
    takes: Vec<(u32, Vec<u32>)>,
    /// The local state that it must have then; nothing where any will do.
    ends: Option<u32>,
    /// Whether it must be just this state, since something else than a delivery happens to it.
    strictly: bool,
}

impl<M: Model> Around<M> {
    /// Around a witness. Nothing where actors share memory or the time ends.
    fn new(engine: &mut Engine<M>, witness: &Shared<M>) -> Option<Self> {
        let mut space = Space::new(engine.sim.clone(), engine.rule);
        let (mut world, mut steps, mut configurations) = (engine.sim.empty_world(), Vec::new(), Vec::new());
        for act in &witness.acts {
            configurations.push(space.pack(&world, None));
            let entry = match act {
                Act::Deliver(want) => match want.external {
                    Some(msg) => {
                        let mut other = world.clone();
                        let at = engine.sim.inject(&mut other, want.to, msg)?;
                        Some(space.entry(&other.pending()[at]))
                    }
                    None => want.find(&engine.sim, &world).map(|at| space.entry(&world.pending()[at])),
                },
                _ => None,
            };
            steps.push(Step { entry, actor: act.actor() });
            if !engine.follow(&mut world, act) {
                return None;
            }
        }
        configurations.push(space.pack(&world, None));
        let cells = configurations.last().map_or(0, |last| packed::places(last));
        let shared = |at: usize| engine.sim.cell_of(ActorId(at as u16)).index() != at;
        if (0..cells).any(shared) {
            return None;
        }
        let mut found = Vec::new();
        engine.sim.check(&world, &mut M::History::default(), &mut found);
        let counts = |fingerprint: &str| engine.problem.question.counts(fingerprint);
        let broken = found.iter().filter(|violation| counts(&violation.fingerprint));
        let affected: Vec<usize> =
            broken.flat_map(|v| v.affected.iter().map(|actor| actor.index())).collect();
        let mut met: Vec<Vec<u32>> = vec![Vec::new(); cells];
        for words in &configurations {
            for (cell, met) in met.iter_mut().enumerate() {
                let local = packed::local(words, cell);
                if local != 0 && !met.contains(&local) {
                    met.push(local);
                }
            }
        }
        let mut around = Around {
            space,
            witness: witness.clone(),
            steps,
            configurations,
            met,
            edges: vec![Vec::new(); cells],
            closed: false,
            affected,
        };
        around.close(engine);
        Some(around)
    }

    /// Meets what actors become by whatever is ever sent to them, as far as the limits go.
    fn close(&mut self, engine: &mut Engine<M>) {
        let mut tried: FxHashMap<u32, usize> = FxHashMap::default();
        let mut reactions = 0;
        loop {
            let mut grown = false;
            for cell in 0..self.met.len() {
                let mut at = 0;
                while at < self.met[cell].len() {
                    let local = self.met[cell][at];
                    let entries = self.space.cells().len();
                    let from = std::mem::replace(tried.entry(local).or_default(), entries);
                    for entry in from..entries {
                        if usize::from(self.space.hot(entry as u32).cell) != cell {
                            continue;
                        }
                        grown = true;
                        reactions += 1;
                        if reactions > DETOUR_REACTIONS || engine.meter.late() || engine.meter.left() == 0 {
                            engine.meter.executed += reactions as u64;
                            return;
                        }
                        if let Some((next, _)) = engine.billed(|_| self.react(local, entry as u32))
                            && next != local
                        {
                            self.edges[cell].push((local, next));
                            if !self.met[cell].contains(&next) {
                                if self.met[cell].len() == DETOUR_STATES {
                                    engine.meter.executed += reactions as u64;
                                    return;
                                }
                                self.met[cell].push(next);
                            }
                        }
                    }
                    at += 1;
                }
            }
            if !grown {
                self.closed = true;
                engine.meter.executed += reactions as u64;
                return;
            }
        }
    }

    /// What an entry makes of a local state, and the number of the reaction; nothing where it is refused or does more than that.
    fn react(&mut self, local: u32, entry: u32) -> Option<(u32, u32)> {
        let number = self.space.react(local, entry);
        match self.space.reaction(number) {
            Reaction::Plain { next, .. } => Some((*next, number)),
            Reaction::Refused | Reaction::Panics { .. } | Reaction::Lives => None,
        }
    }

    /// Where a stretch of so many deliveries begins that ends before step `to`; nothing where it is shorter than two: no other step may be in it,
    /// and nothing of the start-up.
    fn begin_of(&self, to: usize, width: usize) -> Option<usize> {
        let mut from = to;
        while from > self.witness.pinned && to - from < width && self.steps[from - 1].entry.is_some() {
            from -= 1;
        }
        (to - from >= 2).then_some(from)
    }

    /// What the steps from `to` on need of each cell, and what they need to be pending.
    fn needs(&mut self, to: usize) -> (Vec<Needs>, FxHashMap<u32, usize>) {
        let mut needs: Vec<Needs> = (0..self.met.len()).map(|_| Needs::default()).collect();
        let mut pending: FxHashMap<u32, usize> = FxHashMap::default();
        // What was brought about and not taken yet: by which cell, in which of its steps.
        let mut made: FxHashMap<u32, VecDeque<(usize, usize)>> = FxHashMap::default();
        let mut other: Vec<bool> = vec![false; self.met.len()];
        for at in to..self.steps.len() {
            let Some(entry) = self.steps[at].entry else {
                // Something else than a delivery: until here its state must be what it was.
                if let Some(cell) =
                    self.steps[at].actor.map(|actor| actor.index()).filter(|c| *c < other.len())
                    && !other[cell]
                {
                    other[cell] = true;
                    needs[cell].ends = Some(packed::local(&self.configurations[at], cell));
                    needs[cell].strictly = true;
                }
                continue;
            };
            match made.get_mut(&entry).and_then(VecDeque::pop_front) {
                Some((cell, nth)) if !other[cell] => needs[cell].takes[nth].1.push(entry),
                Some(_) => {}
                None => *pending.entry(entry).or_default() += 1,
            }
            let cell = usize::from(self.space.hot(entry).cell);
            if cell >= needs.len() || other[cell] {
                continue;
            }
            needs[cell].takes.push((entry, Vec::new()));
            let nth = needs[cell].takes.len() - 1;
            if self.space.hot(entry).repeats {
                made.entry(entry).or_default().push_back((cell, nth));
            }
            if let Some((_, reaction)) = self.react(packed::local(&self.configurations[at], cell), entry) {
                for new in brought_about(self.space.reaction(reaction)) {
                    made.entry(new).or_default().push_back((cell, nth));
                }
            }
        }
        let last = self.configurations.len() - 1;
        for cell in self.affected.clone() {
            if cell < needs.len() && !other[cell] {
                needs[cell].ends = Some(packed::local(&self.configurations[last], cell));
            }
        }
        (needs, pending)
    }

    /// Whether a local state does for the rest.
    fn does(&mut self, local: u32, needs: &Needs) -> bool {
        let mut local = local;
        for (entry, effects) in &needs.takes {
            let Some((next, reaction)) = self.react(local, *entry) else { return false };
            let mut left = effects.clone();
            if self.space.hot(*entry).repeats
                && let Some(at) = left.iter().position(|needed| needed == entry)
            {
                left.swap_remove(at);
            }
            for new in brought_about(self.space.reaction(reaction)) {
                if let Some(at) = left.iter().position(|needed| *needed == new) {
                    left.swap_remove(at);
                }
            }
            if !left.is_empty() {
                return false;
            }
            local = next;
        }
        match needs.ends {
            None => true,
            Some(wanted) if wanted == local => true,
            Some(_) if needs.strictly || local == 0 => false,
            Some(wanted) => {
                let watch = |local: u32| self.space.watch(local);
                wanted != 0 && watch(wanted).is_some() && watch(wanted) == watch(local)
            }
        }
    }

    /// How many deliveries each local state of a cell is away from one that does, as far as is known.
    fn distances(&mut self, cell: usize, needs: &Needs) -> FxHashMap<u32, u16> {
        let mut away: FxHashMap<u32, u16> = FxHashMap::default();
        let mut queue = VecDeque::new();
        for local in self.met[cell].clone() {
            if self.does(local, needs) {
                away.insert(local, 0);
                queue.push_back(local);
            }
        }
        let mut before: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        self.edges[cell].iter().for_each(|(from, to)| before.entry(*to).or_default().push(*from));
        while let Some(local) = queue.pop_front() {
            let steps = away[&local];
            for from in before.get(&local).into_iter().flatten() {
                if !away.contains_key(from) {
                    away.insert(*from, steps + 1);
                    queue.push_back(*from);
                }
            }
        }
        away
    }

    /// A witness that is shorter by a detour between two steps, if one is found.
    fn shorter(
        &mut self,
        engine: &mut Engine<M>,
        (from, to): (usize, usize),
        most: usize,
        policies: &[Policy],
    ) -> Option<Shared<M>> {
        let limit = to - from - 1;
        let (needs, pending) = self.needs(to);
        let away: Vec<FxHashMap<u32, u16>> =
            (0..needs.len()).map(|cell| self.distances(cell, &needs[cell])).collect();
        let lacking = vec![false; needs.len()];
        let mut goal = Goal { needs, pending, away, known: FxHashMap::default(), lacking };
        // What comes from outside later may be taken at any time.
        let (mut world, prefix) = engine.world_at(&self.witness.clone(), from);
        for act in &self.witness.acts[from..] {
            if let Act::Deliver(want) = act
                && let Some(msg) = want.external
            {
                engine.sim.inject(&mut world, want.to, msg);
            }
        }
        let root = self.space.pack(&world, None);
        if goal.missing(self, &root) as usize > limit {
            return None;
        }
        // Parent and index of each way.
        let mut ways: Vec<(u32, u32)> = vec![(0, 0)];
        let mut layer: Vec<(Vec<u32>, u32)> = vec![(root, 0)];
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        let mut goals = 0;
        for depth in 1..=limit {
            let mut next = Vec::new();
            for (words, way) in &layer {
                if engine.meter.ended().is_some() || ways.len() > most {
                    return None;
                }
                let first = packed::first_pending(words);
                for index in 0..words.len() - first {
                    let Some(after) = engine.billed(|_| self.after(words, index)) else { continue };
                    engine.meter.executed += 1;
                    if !seen.insert(self.space.hash(&after)) {
                        continue;
                    }
                    let missing = goal.missing(self, &after) as usize;
                    if depth + missing > limit {
                        continue;
                    }
                    ways.push((*way, index as u32));
                    let number = ways.len() as u32 - 1;
                    if missing == 0 {
                        goals += 1;
                        let path = path(&ways, number);
                        let found = self.whole(engine, (&world, &prefix), (&path, to), policies);
                        if found.is_some() || goals == DETOUR_GOALS {
                            return found;
                        }
                    }
                    next.push((after, number));
                }
            }
            layer = next;
        }
        None
    }

    /// The configuration after the delivery of a pending entry, if that is possible.
    fn after(&mut self, words: &[u32], index: usize) -> Option<Vec<u32>> {
        let first = packed::first_pending(words);
        let entry = words[first + index];
        let of = *self.space.hot(entry);
        let before = &words[first..first + index];
        let hidden = match of.channel {
            channel if channel != FREE && self.space.rule() == NetworkRule::Fifo => {
                before.iter().any(|other| self.space.hot(*other).channel == channel)
            }
            _ => before.contains(&entry),
        };
        let running = match packed::status(words, of.to) {
            Status::Running => true,
            Status::Isolated => !of.external,
            _ => false,
        };
        if hidden || !running {
            return None;
        }
        let (_, number) = self.react(packed::local(words, usize::from(of.cell)), entry)?;
        let Reaction::Plain { next, effects, .. } = self.space.reaction(number) else { return None };
        let mut after = Vec::with_capacity(words.len() + effects.len());
        self.space.delivered(words, index, (*next, effects), &mut after);
        Some(after)
    }

    /// The witness with a way in place of a stretch, run as a whole.
    fn whole(
        &self,
        engine: &mut Engine<M>,
        (world, prefix): (&World<M>, &[Act]),
        (path, to): (&[usize], usize),
        policies: &[Policy],
    ) -> Option<Shared<M>> {
        let (mut world, mut acts) = (world.clone(), prefix.to_vec());
        for index in path {
            if *index >= world.pending().len() {
                return None;
            }
            engine.deliver(&mut world, *index, &mut acts);
        }
        acts.extend_from_slice(&self.witness.acts[to..]);
        let size = self.witness.size;
        std::iter::once(EXACT).chain(policies.iter().copied()).find_map(|policy| {
            engine.first_witness(&acts, policy).filter(|found| engine.smaller(found.size, size))
        })
    }
}

/// What a stretch must lead to.
struct Goal {
    needs: Vec<Needs>,
    pending: FxHashMap<u32, usize>,
    away: Vec<FxHashMap<u32, u16>>,
    /// Of states that were not met before: whether they do.
    known: FxHashMap<(usize, u32), bool>,
    /// Which cells must still send or arm something.
    lacking: Vec<bool>,
}

impl Goal {
    /// How many deliveries are missing at least.
    fn missing<M: Model>(&mut self, around: &mut Around<M>, words: &[u32]) -> u16 {
        self.lacking.fill(false);
        let there = &words[packed::first_pending(words)..];
        for (entry, count) in &self.pending {
            if there.iter().filter(|other| *other == entry).count() < *count {
                let of = around.space.hot(*entry);
                let sender = if of.timer != 0 { usize::from(of.cell) } else { usize::from(of.sender) };
                match self.lacking.get_mut(sender) {
                    Some(lacking) => *lacking = true,
                    // Nobody here can send it again.
                    None => return NEVER,
                }
            }
        }
        let mut sum = 0_u16;
        for (cell, lacking) in self.lacking.iter().enumerate() {
            let local = packed::local(words, cell);
            let away = match self.away[cell].get(&local) {
                Some(away) => *away,
                None if local == 0 => 0,
                None if around.met[cell].contains(&local) && around.closed => return NEVER,
                None => {
                    let known = self.known.get(&(cell, local)).copied();
                    let does = known.unwrap_or_else(|| around.does(local, &self.needs[cell]));
                    self.known.insert((cell, local), does);
                    u16::from(!does)
                }
            };
            sum = sum.saturating_add(away.max(u16::from(*lacking)));
        }
        sum
    }
}

/// What a reaction makes pending.
fn brought_about(reaction: &Reaction) -> Vec<u32> {
    let Reaction::Plain { effects, .. } = reaction else { return Vec::new() };
    let new = |effect: &Effect| match effect {
        Effect::Send(entry) | Effect::Arm(entry) => Some(*entry),
        Effect::Disarm(_) => None,
    };
    effects.iter().filter_map(new).collect()
}

/// The indexes of a way, from its beginning.
fn path(ways: &[(u32, u32)], last: u32) -> Vec<usize> {
    let mut path = Vec::new();
    let mut at = last;
    while at != 0 {
        let (parent, index) = ways[at as usize];
        path.push(index as usize);
        at = parent;
    }
    path.reverse();
    path
}
