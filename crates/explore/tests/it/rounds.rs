//! Rounds that a livelock goes through, against a search by hand.

use demi_replay::{ActorId, Ctx, Model, Runtime, Simulator, View, Violation, World};
use demi_schemas::NetworkRule;
use proptest::prelude::*;

use crate::livelock::simulator;

/// A token that goes round a ring, by timers and messages as a table says; actors are unfinished in some states.
#[derive(Clone, Debug)]
struct Ring {
    actors: Vec<ActorId>,
    /// By state: the next one, whether a timer is set, and to which other actor something is sent.
    rules: Vec<(u8, bool, u8)>,
    busy: u8,
}

impl Model for Ring {
    type State = u8;
    type Msg = ();
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> u8 {
        0
    }

    fn start(&self, _: &mut u8, ctx: &mut Ctx<'_, ()>) {
        ctx.set_timer("t", ());
    }

    fn deliver(&self, state: &mut u8, (): &(), ctx: &mut Ctx<'_, ()>) {
        let (next, timer, to) = self.rules[usize::from(*state)];
        *state = next;
        if timer {
            ctx.set_timer("t", ());
        }
        if let Some(&to) = self.actors.get(usize::from(to)) {
            ctx.send(to, ());
        }
    }

    fn check(&self, _: &View<'_, u8>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<u8, ()> {
        self
    }
}

impl Runtime<u8, ()> for Ring {
    fn unfinished(&self, state: &u8, _: ActorId) -> bool {
        self.busy & (1 << *state) != 0
    }
}

/// The states of the actors, and what is pending: from whom, to whom, whether it is a timer.
type Content = (Vec<Option<u8>>, Vec<(ActorId, ActorId, bool)>);

/// States and what is pending, by content.
fn content(sim: &Simulator<Ring>, world: &World<Ring>) -> Content {
    let view = sim.view(world);
    let states = sim.model().actors.iter().map(|&actor| view.state(actor).copied()).collect();
    (states, world.pending().iter().map(|p| (p.channel, p.to, p.kind.is_timer())).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is said of a round is so, and where nothing is said there is none.
    #[test]
    fn a_round_is_one(
        rules in prop::collection::vec((0..3_u8, any::<bool>(), 0..4_u8), 3),
        busy in 1..8_u8,
        path in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (_, mut sim) = simulator(|names| {
            Ring { actors: ["a", "b"].map(|name| names.id(name)).to_vec(), rules, busy }
        });
        let mut world = sim.empty_world();
        for actor in sim.model().actors.clone() {
            sim.start(&mut world, actor);
        }
        for choice in path {
            let possible: Vec<usize> =
                (0..world.pending().len()).filter(|&i| sim.deliverable(&world, i, NetworkRule::Fifo)).collect();
            if possible.is_empty() {
                break;
            }
            sim.deliver(&mut world, *choice.get(&possible), NetworkRule::Fifo);
            let said = sim.livelock(&world);
            // The same by hand: all are always taken here, so that the oldest is the first.
            let begin = content(&sim, &world);
            let is_busy = |states: &[Option<u8>], at: usize| states[at].is_some_and(|s| busy & (1 << s) != 0);
            let mut still = [is_busy(&begin.0, 0), is_busy(&begin.0, 1)];
            let mut at = world.clone();
            let mut length = None;
            for n in 1..=256 {
                if at.pending().is_empty() {
                    break;
                }
                sim.deliver(&mut at, 0, NetworkRule::Fifo);
                let now = content(&sim, &at);
                still = [0, 1].map(|actor| still[actor] && is_busy(&now.0, actor));
                if now == begin {
                    length = Some(n);
                    break;
                }
            }
            let expected = length.filter(|_| still != [false, false]);
            prop_assert_eq!(said.as_ref().map(|livelock| livelock.round.len()), expected);
            if let Some(livelock) = said {
                let actors: Vec<ActorId> =
                    (0..2).filter(|&n| still[n]).map(|n| sim.model().actors[n]).collect();
                prop_assert_eq!(livelock.actors, actors);
            }
        }
    }
}
