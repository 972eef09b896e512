//! Systems of one topology, as their logs: who talks to whom decides how many rounds a past takes.

use std::collections::VecDeque;

use demi_schemas::{EventRecord, Kind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Everybody to anybody.
    Chatty,
    /// One to all, and back.
    Star,
    /// Each to four others.
    Gossip,
    /// One token goes round.
    Ring,
    /// From the first to the last.
    Pipeline,
}

impl Topology {
    pub const ALL: [Topology; 5] =
        [Topology::Chatty, Topology::Star, Topology::Gossip, Topology::Ring, Topology::Pipeline];
}

/// What a network does besides delivering in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub disorder: bool,
    pub loss: f64,
    pub twice: f64,
    pub restart: f64,
}

/// A system that runs, one event after the other.
pub struct Running {
    topology: Topology,
    faults: Faults,
    actors: usize,
    left: u64,
    random: ChaCha8Rng,
    /// By actor: incarnation and sequence number.
    places: Vec<(u32, u64)>,
    /// Messages on their way: id, sender, receiver.
    pending: VecDeque<(u64, usize, usize)>,
    sent: u64,
    token: usize,
    out: VecDeque<EventRecord>,
}

impl Running {
    pub fn new(topology: Topology, actors: usize, events: u64, seed: u64, faults: Faults) -> Running {
        Running {
            topology,
            faults,
            actors,
            left: events,
            random: ChaCha8Rng::seed_from_u64(seed),
            places: vec![(0, 0); actors],
            pending: VecDeque::new(),
            sent: 0,
            token: 0,
            out: VecDeque::new(),
        }
    }

    fn name(actor: usize) -> String {
        format!("a{actor:05}")
    }

    fn log(&mut self, actor: usize, kind: Kind) -> EventRecord {
        let (incarnation, seq) = &mut self.places[actor];
        *seq += 1;
        let mut record = EventRecord::new(Self::name(actor), *seq, kind);
        record.incarnation = *incarnation;
        record
    }

    fn message(&mut self, kind: Kind, id: u64, from: usize, to: usize) {
        let mut record = self.log(if kind == Kind::Send { from } else { to }, kind);
        record.msg_id = Some(format!("m{id}"));
        record.from = Some(Self::name(from));
        record.to = Some(Self::name(to));
        record.type_ = Some("m".into());
        self.out.push_back(record);
    }

    /// Who sends next, and to whom.
    fn next_send(&mut self) -> (usize, usize) {
        let n = self.actors;
        let other = |random: &mut ChaCha8Rng, of: usize| (of + random.random_range(1..n)) % n;
        match self.topology {
            Topology::Chatty => {
                let from = self.random.random_range(0..n);
                (from, other(&mut self.random, from))
            }
            Topology::Star => {
                let leaf = self.random.random_range(1..n);
                if self.random.random_bool(0.5) { (0, leaf) } else { (leaf, 0) }
            }
            Topology::Gossip => {
                let from = self.random.random_range(0..n);
                let step = [1, 2, n / 3 + 1, n / 2 + 1][self.random.random_range(0..4)];
                let to = (from + step) % n;
                (from, if to == from { (from + 1) % n } else { to })
            }
            Topology::Ring => (self.token, (self.token + 1) % n),
            Topology::Pipeline => {
                let from = self.random.random_range(0..n - 1);
                (from, from + 1)
            }
        }
    }

    fn step(&mut self) {
        if self.topology == Topology::Ring {
            let (from, to) = self.next_send();
            self.sent += 1;
            self.message(Kind::Send, self.sent, from, to);
            self.message(Kind::Receive, self.sent, from, to);
            self.token = to;
            return;
        }
        if self.faults.restart > 0.0 && self.random.random_bool(self.faults.restart) {
            let actor = self.random.random_range(0..self.actors);
            let crash = self.log(actor, Kind::Crash);
            self.places[actor] = (self.places[actor].0 + 1, 0);
            let restart = self.log(actor, Kind::Restart);
            self.out.extend([crash, restart]);
        }
        if self.pending.len() < 2 * self.actors && self.random.random_bool(0.6) || self.pending.is_empty() {
            let (from, to) = self.next_send();
            self.sent += 1;
            self.message(Kind::Send, self.sent, from, to);
            if !(self.faults.loss > 0.0 && self.random.random_bool(self.faults.loss)) {
                self.pending.push_back((self.sent, from, to));
            }
            return;
        }
        let at = if self.faults.disorder { self.random.random_range(0..self.pending.len()) } else { 0 };
        let Some((id, from, to)) = self.pending.remove(at) else { return };
        self.message(Kind::Receive, id, from, to);
        if self.faults.twice > 0.0 && self.random.random_bool(self.faults.twice) {
            self.message(Kind::Receive, id, from, to);
        }
    }
}

impl Iterator for Running {
    type Item = EventRecord;

    fn next(&mut self) -> Option<EventRecord> {
        while self.out.is_empty() && self.left > 0 {
            self.step();
        }
        let record = self.out.pop_front()?;
        self.left = self.left.saturating_sub(1);
        Some(record)
    }
}
