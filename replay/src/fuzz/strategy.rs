//! How the next delivery is drawn from those that are possible.

use demi_schemas::NetworkRule;
use demi_schemas::scenario::{FuzzSettings, Strategy};
use hashbrown::HashMap;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxBuildHasher;

use super::candidates::Candidates;
use crate::names::{ActorId, OUTSIDE};
use crate::network::same_channel;
use crate::pending::{MsgId, Pending, PendingKind};

/// Probability that a lossy network skips the oldest message of the channel drawn.
const SKIP: f64 = 0.1;
/// Probability that a strategy that favours something draws freely.
const FREE: f64 = 0.05;
/// Longest stretch for which something is favoured.
const STRETCH: u32 = 80;

/// How far the clock of an actor has gone on, where it has one.
pub(crate) type Clock<'a> = &'a dyn Fn(ActorId) -> Option<u64>;

/// The order of deliveries within one run.
pub(crate) enum Order {
    Random,
    Priorities(Priorities),
    Bursts(Burst),
    Apart(Apart),
}

impl Order {
    /// The order of a run. Of those that take turns, half keep actors apart where it is known between whom messages may be late.
    pub(crate) fn new(
        settings: &FuzzSettings,
        (strategy, nodes): (Strategy, Vec<ActorId>),
        run: u64,
        deliveries: u64,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let run = match strategy {
            Strategy::Mixed if !nodes.is_empty() && run.is_multiple_of(2) => {
                let holds = rng.random();
                return Order::Apart(Apart {
                    nodes,
                    left: 0,
                    late: Vec::new(),
                    silent: None,
                    holds,
                    patient: false,
                    asked: None,
                    lasted: HashMap::default(),
                    drawn: 0,
                    held: HashMap::default(),
                });
            }
            _ if nodes.is_empty() => run,
            _ => run / 2,
        };
        let strategy = match (strategy, run % 3) {
            (Strategy::Mixed, 0) => Strategy::Random,
            (Strategy::Mixed, 1) => Strategy::Priorities,
            (Strategy::Mixed, _) => Strategy::Bursts,
            (other, _) => other,
        };
        match strategy {
            Strategy::Random | Strategy::Mixed => Order::Random,
            Strategy::Priorities => {
                let last = deliveries.max(1);
                let changes = (0..settings.priority_changes).map(|_| rng.random_range(0..last)).collect();
                Order::Priorities(Priorities { of: HashMap::default(), changes })
            }
            Strategy::Bursts => Order::Bursts(Burst { left: 0, favour: Favour::Nothing }),
        }
    }

    /// Draws one of the candidates, of which there is at least one.
    pub(crate) fn draw(
        &mut self,
        candidates: &Candidates,
        pending: &[Pending],
        (now, clock): (u64, Clock<'_>),
        actors: &[ActorId],
        rng: &mut ChaCha8Rng,
    ) -> usize {
        match self {
            Order::Random => random(candidates, rng),
            Order::Priorities(priorities) => priorities.draw(candidates, pending, now, rng),
            Order::Bursts(burst) => burst.draw(candidates, pending, actors, rng),
            Order::Apart(apart) => apart.draw(candidates, pending, clock, rng),
        }
    }
}

/// Timers and messages from outside in proportion to their number, otherwise any channel alike.
fn random(candidates: &Candidates, rng: &mut ChaCha8Rng) -> usize {
    let (loose, messages) = (&candidates.loose, &candidates.messages);
    let all = loose.len() + candidates.all_messages;
    let from = if messages.is_empty() || (!loose.is_empty() && rng.random_range(0..all) < loose.len()) {
        loose
    } else {
        messages
    };
    from[rng.random_range(0..from.len())] as usize
}

/// Sometimes goes on to a younger message of the channel, for networks that lose what is overtaken.
pub(crate) fn skip(rule: NetworkRule, pending: &[Pending], index: usize, rng: &mut ChaCha8Rng) -> usize {
    let mut at = index;
    while rule == NetworkRule::FifoLoss && pending[at].kind == PendingKind::Message && rng.random_bool(SKIP) {
        let younger = (at + 1..pending.len()).find(|&i| same_channel(&pending[at], &pending[i]));
        match younger {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// Every channel, timer and receiver of outside messages has a random priority, the highest goes first, and at a few
/// random points the one that is first becomes last (after PCT, as applied to message passing by trace-aware testing).
pub(crate) struct Priorities {
    of: HashMap<(ActorId, ActorId, u16), u64, FxBuildHasher>,
    changes: Vec<u64>,
}

impl Priorities {
    fn draw(
        &mut self,
        candidates: &Candidates,
        pending: &[Pending],
        now: u64,
        rng: &mut ChaCha8Rng,
    ) -> usize {
        if rng.random_bool(FREE) {
            return random(candidates, rng);
        }
        let source = |index: usize| {
            let entry = &pending[index];
            let timer = if entry.kind.is_timer() { 1 + entry.timer } else { 0 };
            (entry.channel, entry.to, timer)
        };
        let mut best = (0, candidates.get(0));
        for index in candidates.iter() {
            let priority = *self.of.entry(source(index)).or_insert_with(|| rng.random_range(1..u64::MAX));
            if priority > best.0 {
                best = (priority, index);
            }
        }
        // A timer that fires goes to a new place, for one that is armed again at once would starve all others.
        if self.changes.contains(&now) {
            self.of.insert(source(best.1), 0);
        } else if pending[best.1].kind.is_timer() {
            self.of.insert(source(best.1), rng.random_range(1..u64::MAX));
        }
        best.1
    }
}

/// What is favoured for a while.
enum Favour {
    Nothing,
    /// The timers of one actor.
    Timers(ActorId),
    /// What is not a timer.
    Messages,
    /// What some actors send to each other, their timers, and what they get from outside.
    Side(Vec<ActorId>),
    /// Everything but what one actor receives.
    Without(ActorId),
}

/// Stretches in which something is favoured.
pub(crate) struct Burst {
    left: u32,
    favour: Favour,
}

impl Burst {
    fn draw(
        &mut self,
        candidates: &Candidates,
        pending: &[Pending],
        actors: &[ActorId],
        rng: &mut ChaCha8Rng,
    ) -> usize {
        if self.left == 0 {
            self.left = rng.random_range(1..=STRETCH);
            self.favour = Self::next(actors, rng);
        }
        self.left -= 1;
        if rng.random_bool(FREE) {
            return random(candidates, rng);
        }
        // A few draws find a favoured candidate where there are many; else the stretch goes on without.
        for _ in 0..8 {
            let index = random(candidates, rng);
            if self.likes(&pending[index]) {
                return index;
            }
        }
        let liked = candidates.iter().filter(|&i| self.likes(&pending[i])).count();
        match liked {
            0 => random(candidates, rng),
            n => {
                let n = rng.random_range(0..n);
                let at = candidates.iter().filter(|&i| self.likes(&pending[i])).nth(n);
                at.unwrap_or_else(|| candidates.get(0))
            }
        }
    }

    fn next(actors: &[ActorId], rng: &mut ChaCha8Rng) -> Favour {
        let Some(last) = actors.len().checked_sub(1) else { return Favour::Nothing };
        let one = actors[rng.random_range(0..=last)];
        match rng.random_range(0..8) {
            0 | 1 => Favour::Nothing,
            2 => Favour::Timers(one),
            3 => Favour::Messages,
            4 | 5 => Favour::Without(one),
            _ => Favour::Side(actors.iter().copied().filter(|_| rng.random_bool(0.6)).collect()),
        }
    }

    fn likes(&self, entry: &Pending) -> bool {
        match &self.favour {
            Favour::Nothing => true,
            Favour::Timers(actor) => entry.kind.is_timer() && entry.to == *actor,
            Favour::Messages => !entry.kind.is_timer(),
            Favour::Without(actor) => entry.to != *actor,
            Favour::Side(side) => {
                side.contains(&entry.to) && (entry.channel == OUTSIDE || side.contains(&entry.channel))
            }
        }
    }
}

/// What is young goes first, timers fire now and then, and for long stretches two actors hear nothing of each other, or one of nobody, and the timers of
/// one are silent: so two come to act alone, beside the others. In every second of such runs single messages come late, when what was sent after them is long
/// there. In every second stretch only the clock goes on of who acts by itself after the shortest time: who wants to lead comes to lead, and stays leader
/// for a while, as where those that would take its place still wait.
pub(crate) struct Apart {
    nodes: Vec<ActorId>,
    left: u32,
    /// From whom to whom messages are late; nobody stands for all.
    late: Vec<(Option<ActorId>, ActorId)>,
    silent: Option<ActorId>,
    /// Whether single messages come late.
    holds: bool,
    /// Whether only the clock goes on of who acts by itself after the shortest time.
    patient: bool,
    /// Whose clock was to go on last, and what it showed.
    asked: Option<(ActorId, u64)>,
    /// By actor, how long its clock went on until it last acted by itself.
    lasted: HashMap<ActorId, u64, FxBuildHasher>,
    /// How often something was drawn.
    drawn: u64,
    /// By message, until when it is held; those that were seen and are not held are there too.
    held: HashMap<(ActorId, ActorId, MsgId), u64, FxBuildHasher>,
}

/// Messages that are young.
const YOUNG: usize = 6;
/// Probability that a message is held, and the draws for which it is.
const HELD: f64 = 0.1;
const HELD_FOR: std::ops::RangeInclusive<u64> = 10..=100;

impl Apart {
    fn next(&mut self, rng: &mut ChaCha8Rng) {
        let longest = (3 * STRETCH) >> rng.random_range(0..4_u32);
        self.left = rng.random_range(longest / 4..=longest);
        self.patient = rng.random();
        let count = self.nodes.len();
        let (one, other) = (rng.random_range(0..count), rng.random_range(0..count));
        let (one, other) = (self.nodes[one], self.nodes[other]);
        self.late = match rng.random_range(0..8) {
            0 => Vec::new(),
            1 => vec![(None, one)],
            // Nobody hears of it either.
            2 | 3 => {
                let others = self.nodes.iter().filter(|node| **node != one);
                others.map(|&other| (Some(one), other)).chain([(None, one)]).collect()
            }
            _ if one == other => Vec::new(),
            _ => vec![(Some(one), other), (Some(other), one)],
        };
        let rest: Vec<ActorId> =
            self.nodes.iter().copied().filter(|node| *node != one && *node != other).collect();
        self.silent = match rng.random_range(0..3) {
            0 => None,
            1 if !rest.is_empty() => Some(rest[rng.random_range(0..rest.len())]),
            _ => Some(self.nodes[rng.random_range(0..count)]),
        };
    }

    fn key(entry: &Pending) -> (ActorId, ActorId, MsgId) {
        (entry.channel, entry.to, entry.msg)
    }

    /// Holds some of the messages between nodes that were not there before.
    fn hold(&mut self, candidates: &Candidates, pending: &[Pending], rng: &mut ChaCha8Rng) {
        for entry in candidates.messages.iter().map(|&at| &pending[at as usize]) {
            if self.nodes.contains(&entry.channel) && self.nodes.contains(&entry.to) {
                let drawn = self.drawn;
                self.held.entry(Apart::key(entry)).or_insert_with(|| match rng.random_bool(HELD) {
                    true => drawn + rng.random_range(HELD_FOR),
                    false => 0,
                });
            }
        }
    }

    fn allows(&self, entry: &Pending) -> bool {
        if entry.kind.is_timer() {
            return self.silent != Some(entry.to);
        }
        if self.held.get(&Apart::key(entry)).is_some_and(|until| *until > self.drawn) {
            return false;
        }
        let from = |one: Option<ActorId>| match one {
            Some(one) => entry.channel == one,
            None => self.nodes.contains(&entry.channel),
        };
        !self.late.iter().any(|(one, to)| entry.to == *to && from(*one))
    }

    /// Notes how long the clock went on that was asked to last.
    fn note(&mut self, clock: Clock<'_>) {
        let Some((actor, before)) = self.asked.take() else { return };
        let lasted = clock(actor).and_then(|now| now.checked_sub(before)).filter(|lasted| *lasted > 0);
        self.lasted.extend(lasted.map(|lasted| (actor, lasted)));
    }

    /// Of timers, those of who acts by itself after the shortest time, which may be none. Timers of who has no clock stay.
    fn shortest(&self, mut timers: Vec<usize>, pending: &[Pending], clock: Clock<'_>) -> Vec<usize> {
        let least = self.lasted.values().min();
        timers.retain(|&at| {
            let to = pending[at].to;
            least.is_none() || self.lasted.get(&to) == least || clock(to).is_none()
        });
        timers
    }

    fn draw(
        &mut self,
        candidates: &Candidates,
        pending: &[Pending],
        clock: Clock<'_>,
        rng: &mut ChaCha8Rng,
    ) -> usize {
        if self.left == 0 {
            self.next(rng);
        }
        self.left -= 1;
        self.drawn += 1;
        self.note(clock);
        if self.holds {
            self.hold(candidates, pending, rng);
        }
        let allowed = |all: &[u32], timers: bool| -> Vec<usize> {
            let all = all.iter().map(|&index| index as usize);
            all.filter(|&at| self.allows(&pending[at]) && pending[at].kind.is_timer() == timers).collect()
        };
        let messages = allowed(&candidates.messages, false);
        let young = messages[messages.len().saturating_sub(YOUNG)..].to_vec();
        let (mut timers, outside) = (allowed(&candidates.loose, true), allowed(&candidates.loose, false));
        if self.patient && !rng.random_bool(FREE) {
            timers = self.shortest(timers, pending, clock);
        }
        let order = match rng.random_range(0..100) {
            // Messages take far less time than clocks.
            0..98 if self.patient => [young, outside, messages, timers],
            0..15 => [timers, young, outside, messages],
            15..35 => [outside, young, messages, timers],
            35..90 => [young, outside, timers, messages],
            90..98 => [messages, outside, timers, young],
            _ => Default::default(),
        };
        let drawn = match order.iter().find(|all| !all.is_empty()) {
            Some(all) => all[rng.random_range(0..all.len())],
            None => random(candidates, rng),
        };
        let entry = pending[drawn];
        self.asked = clock(entry.to).filter(|_| entry.kind.is_timer()).map(|now| (entry.to, now));
        drawn
    }
}
