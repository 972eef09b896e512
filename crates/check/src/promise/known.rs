//! Points that were gone on from, compared themselves: no hash decides that two are equal.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use demi_replay::{ActorId, Model, Pending, Simulator, World};

use super::{Frame, Point};
use crate::cost::Cost;

/// An entry with the number of its content, which is the same for equal contents. Of timers that counts which a log shows: a model may
/// number them.
type Entry = (bool, Pending, u128);

/// All that the rest of an execution depends on besides states.
#[derive(PartialEq, Eq, Hash)]
struct Rest {
    pending: Vec<Entry>,
    /// Whether nothing comes after it because a handler panicked.
    panicked: bool,
    done: usize,
    sent: usize,
    at: usize,
    open: bool,
    /// Only where the cost depends on it.
    last: Option<ActorId>,
    /// Only where the test driver may wait for it.
    deliveries: u64,
}

/// A point, and what executions had spent that came to it: no two where one is less in everything.
struct Met<M: Model> {
    world: World<M>,
    rest: Rest,
    spent: Vec<(u32, u32)>,
}

/// The points.
pub(super) struct Known<M: Model> {
    buckets: HashMap<u64, Vec<Met<M>>>,
    count: u64,
}

impl<M: Model> Default for Known<M> {
    fn default() -> Self {
        Known { buckets: HashMap::new(), count: 0 }
    }
}

impl<M: Model> Known<M> {
    /// How many points there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether no execution came to the point before that had spent as little; from now on one has. Executions come in the order of their
    /// steps, so that earlier ones have not more of them.
    pub(super) fn is_new(
        &mut self,
        sim: &Simulator<M>,
        frame: &Frame,
        point: &Point<M>,
        spent: (u32, u32),
    ) -> bool {
        let rest = rest(sim, frame, point);
        let mut hasher = DefaultHasher::new();
        rest.hash(&mut hasher);
        point.world.cells().hash(&mut hasher);
        let bucket = self.buckets.entry(hasher.finish()).or_default();
        let same = |met: &&mut Met<M>| met.rest == rest && met.world.same_states(&point.world);
        let Some(met) = bucket.iter_mut().find(same) else {
            self.count += 1;
            bucket.push(Met { world: point.world.clone(), rest, spent: vec![spent] });
            return true;
        };
        if met.spent.iter().any(|less| less.0 <= spent.0 && less.1 <= spent.1) {
            return false;
        }
        met.spent.retain(|more| more.0 < spent.0 || more.1 < spent.1);
        met.spent.push(spent);
        true
    }
}

fn rest<M: Model>(sim: &Simulator<M>, frame: &Frame, point: &Point<M>) -> Rest {
    let mut pending: Vec<Entry> = Vec::with_capacity(point.world.pending().len());
    for entry in point.world.pending() {
        let timer = entry.kind.is_timer();
        pending.push((timer, Pending { msg: demi_replay::MsgId(0), ..*entry }, sim.content(entry)));
    }
    // Messages come before timers in every order, whatever was first.
    pending.sort_by_key(|(timer, ..)| *timer);
    Rest {
        pending,
        panicked: point.world.panic().is_some(),
        done: point.done,
        sent: point.sent,
        at: point.at,
        open: point.open,
        last: point.last.filter(|_| frame.cost == Cost::Preempt),
        deliveries: if frame.program.is_over(point.done) { 0 } else { point.world.deliveries() },
    }
}
