//! What may be delivered next.

use demi_schemas::NetworkRule;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use crate::model::{Model, Status};
use crate::names::ActorId;
use crate::network::ordered;
use crate::pending::{Pending, PendingKind};
use crate::sim::{MsgId, Simulator};
use crate::world::World;
use demi_schemas::event::Via;

/// What holds entries back besides the network rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// Repeating timers that fired since anything else was delivered.
    pub(crate) repeated: Vec<(ActorId, u16)>,
    /// Messages of a scheduler that were delivered since anything else was: their next copies wait.
    pub(crate) again: Vec<(ActorId, MsgId)>,
    /// For each actor whether it is on the far side of the partition; empty where there is none.
    pub(crate) far: Vec<bool>,
    /// Who is on both sides.
    pub(crate) free: Vec<ActorId>,
}

impl Holds {
    fn repeated(&self, entry: &Pending) -> bool {
        let timer = entry.kind == PendingKind::Repeating && self.repeated.contains(&(entry.to, entry.timer));
        timer || (entry.via == Some(Via::Scheduler) && self.again.contains(&(entry.to, entry.msg)))
    }

    /// Whether the entry has to cross the partition.
    fn cut(&self, entry: &Pending) -> bool {
        if self.far.is_empty() || !ordered(entry) || entry.via == Some(Via::Forward) {
            return false;
        }
        let far = |actor: ActorId| self.far.get(actor.index()).copied().unwrap_or(false);
        let free = self.free.contains(&entry.channel) || self.free.contains(&entry.to);
        !free && far(entry.channel) != far(entry.to)
    }

    fn clear(&mut self) {
        self.repeated.clear();
        self.again.clear();
    }

    /// Notes a delivery.
    pub(crate) fn delivered(&mut self, entry: &Pending) {
        if entry.kind == PendingKind::Repeating {
            self.repeated.push((entry.to, entry.timer));
        } else if entry.via == Some(Via::Scheduler) {
            self.again.push((entry.to, entry.msg));
        } else {
            self.clear();
        }
    }
}

/// Indices into the pending entries, found anew before each delivery.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// Deliverable timers and messages from outside.
    pub(crate) loose: Vec<u32>,
    /// Deliverable messages: the oldest of each channel, or all where there is no order.
    pub(crate) messages: Vec<u32>,
    /// Messages that would be deliverable if they were the oldest of their channel, those included.
    pub(crate) all_messages: usize,
    seen: HashSet<(ActorId, ActorId), FxBuildHasher>,
}

impl Candidates {
    /// Looks through what is pending.
    pub(crate) fn find<M: Model>(
        &mut self,
        sim: &Simulator<M>,
        world: &World<M>,
        rule: NetworkRule,
        holds: &mut Holds,
    ) {
        self.scan(sim, world, rule, holds);
        if self.is_empty() && !(holds.repeated.is_empty() && holds.again.is_empty()) {
            holds.clear();
            self.scan(sim, world, rule, holds);
        }
    }

    fn scan<M: Model>(&mut self, sim: &Simulator<M>, world: &World<M>, rule: NetworkRule, holds: &Holds) {
        self.loose.clear();
        self.messages.clear();
        self.seen.clear();
        self.all_messages = 0;
        for (index, entry) in world.pending().iter().enumerate() {
            let in_order = rule != NetworkRule::Unordered && ordered(entry);
            let blocked = in_order && !self.seen.insert((entry.channel, entry.to));
            // A schedule says when a message from outside is taken, not when it arrived: to who is cut off it cannot come.
            let cut_off = entry.kind == PendingKind::External && world.status(entry.to) == Status::Isolated;
            if cut_off || !sim.takes(world, entry) || holds.cut(entry) || holds.repeated(entry) {
                continue;
            }
            if entry.kind != PendingKind::Message || entry.via == Some(Via::Scheduler) {
                self.loose.push(index as u32);
                continue;
            }
            self.all_messages += 1;
            if !blocked {
                self.messages.push(index as u32);
            }
        }
    }

    /// Whether nothing may be delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.messages.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.loose.len() + self.messages.len()
    }

    /// The `n`-th of them all.
    pub(crate) fn get(&self, n: usize) -> usize {
        let index = match self.loose.get(n) {
            Some(&index) => index,
            None => self.messages[n - self.loose.len()],
        };
        index as usize
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.loose.iter().chain(&self.messages).map(|&index| index as usize)
    }
}
