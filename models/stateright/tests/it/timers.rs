//! Timers, choices, what is kept on a disk, and the boundary.

use std::borrow::Cow;

use demi_replay::OUTSIDE;
use stateright::actor::{
    Actor, ActorModel, ActorModelAction, ActorModelState, Id, Network, Out, model_timeout,
};
use stateright::{Expectation, Model as _};

use crate::common::{minimized, scenario, shortest, simulator, violating};

/// How often an actor wakes up at most.
const WAKES: u8 = 2;

/// Wakes up by a timer, tosses a coin, and tells the next one what it showed.
#[derive(Clone, Debug)]
pub struct Sleeper(usize);

/// What a sleeper is woken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alarm {
    Early,
    Late,
}

/// What a sleeper knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dream {
    wakes: u8,
    heard: u8,
}

impl Actor for Sleeper {
    type Msg = u8;
    type Timer = Alarm;
    type State = Dream;
    type Storage = u8;
    type Random = u8;

    fn on_start(&self, _: Id, disk: &Option<u8>, out: &mut Out<Self>) -> Dream {
        out.set_timer(Alarm::Early, model_timeout());
        Dream { wakes: 0, heard: disk.unwrap_or_default() }
    }

    fn on_msg(&self, _: Id, state: &mut Cow<'_, Dream>, _: Id, msg: u8, out: &mut Out<Self>) {
        if msg > state.heard {
            state.to_mut().heard = msg;
            out.save(msg);
            out.cancel_timer(Alarm::Late);
        }
    }

    fn on_timeout(&self, _: Id, state: &mut Cow<'_, Dream>, alarm: &Alarm, out: &mut Out<Self>) {
        if state.wakes == WAKES {
            out.set_timer(*alarm, model_timeout()); // nothing but the same again is no step
            return;
        }
        state.to_mut().wakes += 1;
        out.choose_random("coin", vec![1, 2]);
        if *alarm == Alarm::Early {
            out.set_timer(Alarm::Early, model_timeout());
            out.set_timer(Alarm::Late, model_timeout());
        } else {
            out.remove_random("coin");
        }
    }

    fn on_random(&self, me: Id, _: &mut Cow<'_, Dream>, value: &u8, out: &mut Out<Self>) {
        out.send(Id::from((usize::from(me) + 1) % self.0), *value);
    }
}

/// So many sleepers in a circle.
pub fn sleepers(count: usize) -> ActorModel<Sleeper> {
    ActorModel::new((), ())
        .actors((0..count).map(|_| Sleeper(count)))
        .init_network(Network::new_unordered_nonduplicating([]))
        .within_boundary(|(), state: &ActorModelState<Sleeper>| {
            state.actor_states.iter().map(|s| usize::from(s.wakes)).sum::<usize>() <= 2
                && state.network.len() < 5
        })
        .property(Expectation::Always, "few wake-ups", |_, _| true)
        .property(Expectation::Sometimes, "heard a two", |_, state| {
            state.actor_states.iter().any(|s| s.heard == 2)
        })
        .property(Expectation::Eventually, "rests", |_, _| true)
}

#[test]
fn a_target_behind_timers_and_choices_is_reached_as_soon_as_it_can_be() {
    let scenario = scenario("unordered", "invariants = ['heard a two']");
    let sim = simulator(sleepers(2), &scenario);
    let found = violating(&sim, &scenario, 1_000).unwrap();
    let result = minimized(&sim, &scenario, &found).schedule;
    assert_eq!(result.steps.len(), 3, "{}", result.to_text());
    assert_eq!(shortest(sleepers(2), "heard a two"), Some(3));
}

#[test]
fn a_failed_actor_begins_again_with_what_it_saved() {
    let system = sleepers(1);
    let scenario = scenario("unordered", "");
    let mut sim = simulator(sleepers(1), &scenario);
    let mut world = sim.empty_world();
    let mut expected = system.init_states().remove(0);
    let actor = sim.names().find("actor-0").unwrap();
    let all = [
        ("Early", ActorModelAction::Timeout(Id::from(0), Alarm::Early)),
        ("coin = 2", ActorModelAction::SelectRandom { actor: Id::from(0), key: "coin".into(), random: 2 }),
        ("2", ActorModelAction::Deliver { src: Id::from(0), dst: Id::from(0), msg: 2 }),
    ];
    for (payload, action) in all {
        let text = |id| sim.text(sim.info(id).payload).to_owned();
        let at = world.pending().iter().position(|p| text(p.msg) == payload).unwrap();
        sim.deliver(&mut world, at, scenario.network);
        expected = system.next_state(&expected, action).unwrap();
        assert!(world.cells()[OUTSIDE.index()].as_ref().unwrap().system() == &expected);
    }
    sim.crash(&mut world, actor);
    assert!(world.pending().is_empty());
    sim.restart(&mut world, actor);
    for action in [ActorModelAction::Crash(Id::from(0)), ActorModelAction::Recover(Id::from(0))] {
        expected = system.next_state(&expected, action).unwrap();
    }
    let state = world.cells()[OUTSIDE.index()].clone().unwrap();
    assert!(state.system() == &expected);
    assert_eq!(state.system().actor_states[0].heard, 2);
    assert_eq!(world.pending().len(), 1);
}
