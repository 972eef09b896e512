//! Threads change nothing in what a search comes to, and no handler waits for another one's.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use demi_replay::{ActorId, Ctx, Model, Names, OUTSIDE, Simulator, View, Violation, World};
use demi_schemas::{NetworkRule, Scenario};
use demi_space::{End, Ended, Faults, Kinds, Layers, Limits};

const SCENARIO: &str = "model = 'm'\nnetwork = 'fifo'";

/// Searches all that can come of messages to some actors.
fn searched<M: Model>(
    model: impl FnOnce(&mut Names) -> M,
    messages: &[(usize, M::Msg)],
    (target, threads): (&str, usize),
) -> (Ended, usize) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut names = Names::default();
    let model = model(&mut names);
    let mut sim = Simulator::new(model, names, &scenario).unwrap();
    let mut world: World<M> = sim.empty_world();
    let actors = sim.model().actors().to_vec();
    actors.iter().for_each(|actor| sim.start(&mut world, *actor));
    for (to, msg) in messages {
        let msg = sim.intern(msg.clone());
        sim.inject(&mut world, actors[*to], msg);
    }
    let parts = (Vec::new(), Faults::default(), Kinds::default());
    let target = vec![target.to_owned()];
    let layers = Layers::new(sim, &world, NetworkRule::Fifo, target, None, parts, threads);
    let limits = Limits { deliveries: 12, states: 100_000, width: None, outside: None };
    let ended = layers.search(limits, &());
    let length = if let End::Found(path) = &ended.end { path.len() } else { 0 };
    (ended, length)
}

/// Actors whose second messages are handled at a time, or never.
#[derive(Clone)]
struct Meeting {
    actors: Vec<ActorId>,
    /// How many are in their handlers, and the most there were at a time.
    inside: Arc<(Mutex<(usize, usize)>, Condvar)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Word {
    /// It takes so long that it is worth while to handle several at a time.
    Begin,
    Meet,
}

/// It is never waited for so long where handlers run side by side.
const LONG: Duration = Duration::from_secs(20);

impl Model for Meeting {
    type State = u8;
    type Msg = Word;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> u8 {
        0
    }

    fn deliver(&self, state: &mut u8, word: &Word, ctx: &mut Ctx<'_, Word>) {
        *state += 1;
        match word {
            Word::Begin => {
                std::thread::sleep(Duration::from_millis(20));
                self.actors.iter().for_each(|actor| ctx.send(*actor, Word::Meet));
            }
            Word::Meet if *state > 1 => {}
            Word::Meet => {
                let (count, changed) = &*self.inside;
                let mut count = count.lock().unwrap();
                count.0 += 1;
                count.1 = count.1.max(count.0);
                changed.notify_all();
                let (mut count, _) = changed.wait_timeout_while(count, LONG, |count| count.1 < 2).unwrap();
                count.0 -= 1;
            }
        }
    }

    fn check(&self, _: &View<'_, u8>, (): &mut (), _: &mut Vec<Violation>) {}
}

#[test]
fn handlers_of_two_actors_run_at_a_time() {
    let inside: Arc<(Mutex<(usize, usize)>, Condvar)> = Arc::default();
    let model = |names: &mut Names| Meeting {
        actors: ["a", "b", "c"].map(|name| names.id(name)).to_vec(),
        inside: Arc::clone(&inside),
    };
    searched(model, &[(0, Word::Begin)], ("none", 2));
    assert_eq!(inside.0.lock().unwrap().1, 2, "each of two threads ran a handler");
}

/// Actors that speak of others, whose names come up on the way.
#[derive(Clone)]
struct Gossip(Vec<ActorId>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct About(ActorId, u8);

impl Model for Gossip {
    type State = Vec<(ActorId, u8)>;
    type Msg = About;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Self::State {
        Vec::new()
    }

    fn deliver(&self, state: &mut Self::State, About(who, hops): &About, ctx: &mut Ctx<'_, About>) {
        state.push((*who, *hops));
        let Some(hops) = hops.checked_sub(1) else { return };
        let name = format!("heard-{}-{}", ctx.me().0, state.len());
        let new = ctx.names().id(&name);
        let me = ctx.me();
        for actor in self.0.iter().filter(|actor| **actor != me) {
            ctx.send(*actor, About(new, hops));
        }
    }

    fn check(&self, view: &View<'_, Self::State>, (): &mut (), found: &mut Vec<Violation>) {
        let heard = |actor: &ActorId| view.state(*actor).is_some_and(|state| state.len() == 3);
        if self.0.iter().all(heard) {
            found.push(Violation { fingerprint: "all".to_owned(), affected: Vec::new() });
        }
    }
}

#[test]
fn names_that_come_up_are_the_same_for_any_number_of_threads() {
    let model = |names: &mut Names| Gossip(["a", "b", "c"].map(|name| names.id(name)).to_vec());
    let messages = [(0, About(OUTSIDE, 2)), (1, About(OUTSIDE, 2))];
    for target in ["all", "none"] {
        let told = |threads| {
            let (ended, length) = searched(model, &messages, (target, threads));
            (ended.states, length)
        };
        let alone = told(1);
        assert!(alone.0 > 300, "{alone:?}");
        assert_eq!(alone.1 > 0, target == "all");
        for threads in [2, 8] {
            assert_eq!(told(threads), alone, "{threads}");
        }
    }
}
