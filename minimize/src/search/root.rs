//! Where a search begins: who has started, and which messages from outside may be taken.

use std::sync::Arc;

use demi_replay::script::Act;
use demi_replay::{ActorId, Model, MsgId, OUTSIDE, Pending, PendingKind, Status, World};

use crate::oracle::engine::Engine;
use crate::oracle::witness::Witness;
use demi_space::{Faults, Unsearchable};

/// Where a search begins. The first three are about the external events of some acts, which need not violate.
pub enum Root<'q, M: Model> {
    /// All actors have started, and all messages from outside are pending.
    Started,
    /// Nobody has started, all messages from outside are pending, and actors start at any time. What is sent to an actor that has
    /// not started is lost, which under fifo is the only way to be rid of a message that stands before another one.
    Nobody,
    /// Only the actors of these starts have started, and nobody else will. All messages from outside are pending. Faults do not
    /// happen.
    Only(&'q [Act]),
    /// A place on a witness, from which another ending is looked for (suffix search).
    Before {
        /// The witness.
        witness: &'q Witness<M>,
        /// How many of its acts have happened. Nobody may start after them.
        at: usize,
        /// The place of a message from outside that is left out.
        without: Option<usize>,
    },
    /// A configuration. Nothing happens but deliveries of what is pending in it and what these send.
    World(&'q World<M>),
}

impl<M: Model> Clone for Root<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Model> Copy for Root<'_, M> {}

/// A beginning.
pub struct Beginning<M: Model> {
    /// The first configuration.
    pub world: World<M>,
    /// The acts that lead there, where they are known.
    pub acts: Option<Vec<Act>>,
    /// What may happen on the way besides deliveries.
    pub faults: Faults,
}

impl<M: Model> Root<'_, M> {
    /// The beginning over the external events of some acts.
    ///
    /// # Errors
    /// Where these have others than a search knows ([`Faults::of`]), a handler panics before, or the time ends.
    pub fn begin(self, engine: &mut Engine<M>, acts: &[Act]) -> Result<Beginning<M>, Unsearchable> {
        let (world, acts, faults) = match self {
            Root::Started => {
                let faults = Faults::of(acts)?;
                let (starts, world) = started(engine, acts);
                (world, Some(starts), faults)
            }
            Root::Nobody => {
                let faults = Faults::with_starts(acts)?;
                let world = engine.sim.empty_world();
                (with_outside(engine, &world, acts), Some(Vec::new()), faults)
            }
            Root::Only(starts) => {
                let mut world = engine.sim.empty_world();
                for act in starts {
                    engine.follow(&mut world, act);
                }
                (with_outside(engine, &world, acts), Some(starts.to_vec()), Faults::default())
            }
            Root::Before { witness, at, without } => {
                let rest = witness.acts.get(at..).ok_or(Unsearchable::NoPlace)?;
                if rest.iter().any(|act| matches!(act, Act::Start(_))) {
                    return Err(Unsearchable::StartsLater);
                }
                let faults = Faults::of(rest)?;
                let (mut world, acts) = engine.world_at(witness, at);
                let left = rest.iter().enumerate().filter(|(behind, _)| Some(at + behind) != without);
                for (to, msg) in outside(left.map(|(_, act)| act)) {
                    engine.sim.inject(&mut world, to, msg);
                }
                // What comes before is run again.
                engine.meter.replays += 1;
                (world, Some(acts), faults)
            }
            Root::World(world) => (world.clone(), None, Faults::default()),
        };
        // Nothing comes after a handler that panicked; and where the time ended the world is not the one that was to be made.
        match (engine.halted(), world.panic()) {
            (true, _) => Err(Unsearchable::TimeOver),
            (_, Some(_)) => Err(Unsearchable::Panicked),
            _ => Ok(Beginning { world, acts, faults }),
        }
    }

    /// Whether it is a place on a witness: a search from there proves nothing of whole executions.
    pub fn is_suffix(&self) -> bool {
        matches!(self, Root::Before { .. })
    }
}

/// All actors of some acts started and all their messages from outside pending, and the starts.
pub fn started<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> (Vec<Act>, World<M>) {
    let starts: Vec<Act> = acts.iter().filter(|a| matches!(a, Act::Start(_))).copied().collect();
    let mut world = engine.sim.empty_world();
    for act in &starts {
        engine.follow(&mut world, act);
    }
    for (to, msg) in outside(acts.iter()) {
        engine.sim.inject(&mut world, to, msg);
    }
    (starts, world)
}

/// The messages from outside among some acts, with their receivers.
fn outside<'a>(acts: impl Iterator<Item = &'a Act>) -> impl Iterator<Item = (ActorId, MsgId)> {
    acts.filter_map(|act| match act {
        Act::Deliver(want) => want.external.map(|msg| (want.to, msg)),
        _ => None,
    })
}

/// A world with all messages from outside pending, whether their receivers have started or not.
fn with_outside<M: Model>(engine: &Engine<M>, world: &World<M>, acts: &[Act]) -> World<M> {
    let entry = |(to, msg)| Pending {
        from: OUTSIDE,
        to,
        channel: OUTSIDE,
        msg,
        kind: PendingKind::External,
        timer: 0,
        survives: false,
        via: None,
    };
    let pending = world.pending().iter().copied().chain(outside(acts.iter()).map(entry)).collect();
    let actors = acts.iter().filter_map(Act::actor);
    let places = actors.flat_map(|actor| [actor, engine.sim.cell_of(actor)]).map(|actor| actor.index() + 1);
    let size = places.chain([world.actors(), world.cells().len()]).max().unwrap_or(0);
    let mut cells: Vec<Option<Arc<M::State>>> = world.cells().to_vec();
    let mut status: Vec<Status> = (0..world.actors()).map(|at| world.status(ActorId(at as u16))).collect();
    cells.resize_with(size, || None);
    status.resize(size, Status::Absent);
    World::assemble(cells, status, pending)
}
