//! A solution that was loaded into an oracle: verified steps, and worlds along them to start tests from.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use demi_replay::script::Act;
use demi_replay::{Model, World};

use super::trace_keys::Numbered;
use crate::problem::size::Size;

/// How many acts lie between two kept worlds of a witness, at least.
const CHECKPOINT_EVERY: usize = 16;
/// How many worlds of a witness are kept, at most.
const CHECKPOINTS: usize = 1_024;

/// A schedule that was verified to break the invariant, with worlds along it to start tests from.
#[derive(Debug)]
pub struct Witness<M: Model> {
    /// The steps, each exactly as it happened.
    pub acts: Vec<Act>,
    /// Its size.
    pub size: Size,
    /// How long its strict verification took.
    pub took: Duration,
    /// How many of the first acts happened while the system started up by itself; none of them may be left out.
    pub pinned: usize,
    /// The world before act `i * every`.
    pub(crate) worlds: Vec<World<M>>,
    /// How many acts lie between two of them.
    pub(crate) every: usize,
    /// The acts by number.
    pub(crate) numbered: Vec<Numbered>,
    /// What tells the sequence from others.
    pub(crate) key: u128,
}

/// A witness shared between passes.
pub type Shared<M> = Rc<Witness<M>>;

/// How many acts lie between two kept worlds of a witness with so many. A world of a long execution may hold thousands of
/// pending messages, and tests of it run so many steps that a few more do not count.
pub(crate) fn checkpoint_every(acts: usize) -> usize {
    acts.div_ceil(CHECKPOINTS).max(CHECKPOINT_EVERY)
}

/// Worlds along a run, in bounded memory: where their states take more, every other one is left out.
pub(crate) struct Checkpoints<M: Model> {
    pub(crate) worlds: Vec<World<M>>,
    pub(crate) every: usize,
    /// Bytes of the states of each that the one before has not got.
    bytes: Vec<usize>,
    most: usize,
    /// Bytes of the largest state.
    pub(crate) largest: usize,
}

impl<M: Model> Checkpoints<M> {
    /// For a run of so many acts, with states of so many bytes at most.
    pub(crate) fn new(acts: usize, most: usize) -> Self {
        let every = checkpoint_every(acts);
        let worlds = Vec::with_capacity(acts / every + 1);
        Checkpoints { worlds, every, bytes: Vec::new(), most, largest: 0 }
    }

    /// Takes in the world before an act, where its turn is.
    pub(crate) fn pass(&mut self, at: usize, world: &World<M>, model: &M) {
        if !at.is_multiple_of(self.every) {
            return;
        }
        let (bytes, largest) = new_bytes(self.worlds.last(), world, model);
        self.largest = self.largest.max(largest);
        self.worlds.push(world.clone());
        self.bytes.push(bytes);
        while self.bytes.iter().sum::<usize>() > self.most && self.worlds.len() > 1 {
            let mut place = 0;
            self.worlds.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
            let before = |at: usize| at.checked_sub(1).map(|at| &self.worlds[at]);
            let worlds = self.worlds.iter().enumerate();
            self.bytes = worlds.map(|(at, world)| new_bytes(before(at), world, model).0).collect();
        }
    }
}

/// Bytes of the states that a world has not got from another, and of the largest of them.
fn new_bytes<M: Model>(before: Option<&World<M>>, world: &World<M>, model: &M) -> (usize, usize) {
    let known = |at: usize| before.and_then(|before| before.cells().get(at)?.as_ref());
    let new = world.cells().iter().enumerate().filter_map(|(at, state)| {
        let state = state.as_ref()?;
        (!known(at).is_some_and(|old| Arc::ptr_eq(old, state))).then(|| model.bytes(state))
    });
    new.fold((0, 0), |(sum, largest), bytes| (sum + bytes, largest.max(bytes)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
mod tests {
    use demi_replay::{ActorId, Ctx, Names, Simulator, View, Violation};
    use demi_schemas::Scenario;

    use super::*;

    /// An actor whose state changes with each message, and takes a megabyte.
    #[derive(Clone)]
    struct Large(Vec<ActorId>);

    impl Model for Large {
        type State = Vec<u64>;
        type Msg = ();
        type History = ();

        fn actors(&self) -> &[ActorId] {
            &self.0
        }

        fn initial(&self, _: ActorId) -> Vec<u64> {
            vec![0; 125_000]
        }

        fn start(&self, _: &mut Vec<u64>, ctx: &mut Ctx<'_, ()>) {
            ctx.send(ctx.me(), ());
        }

        fn deliver(&self, state: &mut Vec<u64>, (): &(), ctx: &mut Ctx<'_, ()>) {
            state[0] += 1;
            ctx.send(ctx.me(), ());
        }

        fn check(&self, _: &View<'_, Vec<u64>>, (): &mut (), _: &mut Vec<Violation>) {}
    }

    #[test]
    fn worlds_along_a_run_take_no_more_than_they_may() {
        let scenario = Scenario::parse("model = 'large'\nnetwork = 'unordered'").unwrap();
        let mut names = Names::default();
        let id = names.id("a");
        let mut sim = Simulator::new(Large(vec![id]), names, &scenario).unwrap();
        let mut world = sim.empty_world();
        sim.start(&mut world, id);
        let mut along = Checkpoints::new(500, 10_000_000);
        for at in 0..500 {
            along.pass(at, &world, sim.model());
            sim.deliver(&mut world, 0, scenario.network);
        }
        assert!(along.bytes.iter().sum::<usize>() <= 10_000_000);
        assert!((4..=10).contains(&along.worlds.len()), "{} worlds", along.worlds.len());
        assert!((1_000_000..1_100_000).contains(&along.largest));
        // Each stands where it says.
        for (number, world) in along.worlds.iter().enumerate() {
            assert_eq!(world.cells()[id.index()].as_ref().unwrap()[0], (number * along.every) as u64);
        }
    }
}
