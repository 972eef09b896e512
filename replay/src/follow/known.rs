//! Which recorded messages the model has sent so far, and as what.

use std::collections::BTreeSet;

use demi_schemas::event::Via;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Trust;
use super::record::{Look, Record};
use crate::model::Model;
use crate::names::ActorId;
use crate::pending::Pending;
use crate::sim::{Did, MsgId, Simulator};

/// What the model has sent so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// By recorded message: what it is in the model.
    pub(super) bound: HashMap<u64, MsgId, FxBuildHasher>,
    /// Numbers of messages that the model has not sent.
    pub(super) open: BTreeSet<u64>,
    /// The same by look.
    open_by_look: HashMap<Look, BTreeSet<u64>, FxBuildHasher>,
    /// How many messages handlers sent that no log has.
    pub(super) unrecorded: u64,
    /// How many copies a scheduler made that no log has.
    pub(super) withheld: u64,
    /// By queue: sends of threads that the log has later than the model.
    ahead: HashMap<usize, Vec<Look>, FxBuildHasher>,
}

/// What one step adds to it.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    bound: Vec<(u64, Look, MsgId)>,
    /// How many messages a handler sent that no log has.
    pub(super) unrecorded: u64,
    withheld: u64,
    ahead: Vec<(usize, Look)>,
}

impl News {
    /// A message from outside is put among the pending ones.
    pub(super) fn injected(&mut self, id: u64, look: Look, msg: MsgId) {
        self.bound.push((id, look, msg));
    }

    fn has(&self, id: u64) -> bool {
        self.bound.iter().any(|(b, _, _)| *b == id)
    }

    /// The latest message from `id` on that is told of; `id` if there is none.
    pub(super) fn latest(&self, id: u64) -> u64 {
        self.bound.iter().map(|(b, _, _)| *b).fold(id, u64::max)
    }
}

impl Known {
    /// Nothing is known.
    pub(super) fn new(record: &mut Record) -> Known {
        let open_by_look = std::mem::take(&mut record.numbers);
        let open = open_by_look.values().flatten().copied().collect();
        Known { open, open_by_look, ..Known::default() }
    }

    /// The earliest message that is not sent, what a step adds being sent.
    pub(super) fn first_open(&self, news: &News) -> Option<u64> {
        self.open.iter().copied().find(|id| !news.has(*id))
    }

    /// Adds to `news` what a step did; nothing if it sent a message that never was recorded, unless it may.
    pub(super) fn note<M: Model>(
        &self,
        sim: &Simulator<M>,
        record: &Record,
        news: &mut News,
        (did, step, at): (&[Did], Option<usize>, ActorId),
        trust: Trust,
    ) -> Option<()> {
        for did in did {
            let Did::Sent(entry) = did else { continue };
            let look = (entry.from, entry.to, sim.info(entry.msg).shown);
            let hidden = hidden(sim, entry);
            // What a step's own log has is its own. Of others it takes the oldest, but where messages differ in what
            // logs do not show, not one that another step's log claims.
            let own = step.into_iter().flat_map(|step| record.claims(step, look));
            let own = own.filter(|id| !self.bound.contains_key(id) && !news.has(*id)).min();
            let itself = step.is_some() && entry.via == Some(Via::Scheduler) && entry.to == at;
            if trust == Trust::Own && hidden && itself && own.is_none() {
                return None;
            }
            let mut open = self.open_by_look.get(&look).into_iter().flatten().copied();
            let free = |id: &u64| !news.has(*id) && (!hidden || !record.claimed(*id));
            let id = own.or_else(|| open.find(free));
            match id {
                Some(id) => news.bound.push((id, look, entry.msg)),
                None if entry.via == Some(Via::Scheduler) => news.withheld += 1,
                None if trust.allows_more() && entry.via != Some(Via::Thread) => news.unrecorded += 1,
                None => return None,
            }
            if entry.via == Some(Via::Thread)
                && let Some(queue) = record.queue_of(entry.from)
            {
                news.ahead.push((queue, look));
            }
        }
        Some(())
    }

    /// Takes what a step adds.
    pub(super) fn take(&mut self, news: News) {
        for (id, look, msg) in news.bound {
            self.bound.insert(id, msg);
            self.open.remove(&id);
            if let Some(open) = self.open_by_look.get_mut(&look) {
                open.remove(&id);
            }
        }
        self.unrecorded += news.unrecorded;
        self.withheld += news.withheld;
        for (queue, look) in news.ahead {
            self.ahead.entry(queue).or_default().push(look);
        }
    }

    /// Whether the model has made that send of a thread, which is then used up.
    pub(super) fn was_sent(&mut self, queue: usize, look: Look) -> bool {
        let Some(ahead) = self.ahead.get_mut(&queue) else { return false };
        let at = ahead.iter().position(|l| *l == look);
        at.map(|at| ahead.remove(at)).is_some()
    }
}

/// Whether logs do not show all of a message.
pub(super) fn hidden<M: Model>(sim: &Simulator<M>, entry: &Pending) -> bool {
    let info = sim.info(entry.msg);
    info.fingerprint != info.shown
}
