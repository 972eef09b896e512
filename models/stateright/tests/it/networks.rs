//! What can be reached here is what Stateright's checker visits, on each of its networks.

use std::collections::HashSet;

use demi_replay::{Model as _, Names, OUTSIDE, Pending, Simulator, World};
use demi_schemas::{NetworkRule, Scenario};
use demi_stateright::{History, Part, System};
use stateright::actor::{ActorModel, Envelope, Id, LossyNetwork, Network};
use stateright::{Checker, Expectation, Model as _};

use crate::common::{scenario, simulator};
use crate::timers::{Sleeper, sleepers};
use crate::{abd, single_copy};

/// The number of states of the system that deliveries lead to.
fn reached<A: Part, H: History>(mut sim: Simulator<System<A, (), H>>, scenario: &Scenario) -> usize {
    let first = sim.empty_world();
    let (mut seen, mut states, mut open) = (HashSet::new(), HashSet::new(), vec![first]);
    while let Some(world) = open.pop() {
        if !seen.insert(world.configuration_hash(scenario.network == NetworkRule::Fifo, |p| p.msg.0.into())) {
            continue;
        }
        states.insert(world.cells()[OUTSIDE.index()].clone().unwrap());
        for at in 0..world.pending().len() {
            if sim.deliverable(&world, at, scenario.network) {
                let mut next = world.clone();
                sim.deliver(&mut next, at, scenario.network);
                assert!(next.panic().is_none(), "{:?}", next.panic());
                open.push(next);
            }
        }
    }
    // Stateright does not count what lies beyond the boundary.
    let inside = |system| (sim.model().system().within_boundary)(&(), system);
    states.iter().filter(|state| inside(state.system())).count()
}

/// The number of states that Stateright's checker visits.
fn visited<A: Part, H: History>(system: ActorModel<A, (), H>) -> usize {
    let system = system.property(Expectation::Always, "nothing is wrong", |_, _| true);
    system.checker().threads(1).spawn_bfs().join().unique_state_count()
}

fn same<A: Part, H: History>(make: impl Fn() -> ActorModel<A, (), H>, network: &str) -> usize {
    let scenario = scenario(network, "");
    let (here, there) = (reached(simulator(make(), &scenario), &scenario), visited(make()));
    assert_eq!(here, there);
    here
}

#[test]
fn registers_have_the_states_that_stateright_counts() {
    assert_eq!(same(|| single_copy::system(1), "unordered"), 93);
    same(|| single_copy::system(2), "unordered");
    same(|| abd::system(2, false), "unordered");
    same(|| abd::system(2, true), "unordered");
}

#[test]
fn a_network_that_repeats_messages_keeps_them() {
    same(|| single_copy::system(2).init_network(Network::new_unordered_duplicating([])), "unordered");
    same(|| sleepers(1).init_network(Network::new_unordered_duplicating([])), "unordered");
}

#[test]
fn an_ordered_network_keeps_the_order() {
    same(|| single_copy::system(2).init_network(Network::new_ordered([])), "fifo");
    same(|| abd::system(2, true).init_network(Network::new_ordered([])), "fifo");
    same(|| sleepers(1).init_network(Network::new_ordered([])), "fifo");
}

#[test]
fn what_is_on_the_network_at_first_is_delivered() {
    let to = |src: usize, msg| Envelope { src: Id::from(src), dst: Id::from(0), msg };
    let first = || vec![to(1, 1), to(9, 2), to(9, 1), to(8, 1)];
    same(|| sleepers(1).init_network(Network::new_unordered_nonduplicating(first())), "unordered");
    same(|| sleepers(1).init_network(Network::new_unordered_duplicating(first())), "unordered");
    same(|| sleepers(1).init_network(Network::new_ordered(first())), "fifo");
}

#[test]
fn timers_and_choices_are_those_of_stateright() {
    assert!(same(|| sleepers(2), "unordered") > 50);
}

#[test]
fn a_scenario_that_asks_for_what_is_not_there_is_refused() {
    let why = |system: ActorModel<Sleeper, (), ()>, network, rest: &str| {
        System::new(system, &scenario(network, rest), &mut Names::default()).err().unwrap().to_string()
    };
    let ordered = || sleepers(1).init_network(Network::new_ordered([]));
    assert!(why(ordered(), "unordered", "").contains("network = 'fifo'"));
    assert!(why(ordered(), "fifo-loss", "").contains("loses nothing"));
    assert!(
        System::new(
            ordered().lossy_network(LossyNetwork::Yes),
            &scenario("fifo-loss", ""),
            &mut Names::default()
        )
        .is_ok()
    );
    assert!(why(sleepers(1), "unordered", "duplicates = true").contains("leave 'duplicates' out"));
    let misspelt = why(sleepers(1), "unordered", "invariants = ['few wake-up']");
    assert!(misspelt.contains("did you mean 'few wake-ups'"), "{misspelt}");
    assert!(why(sleepers(1), "unordered", "invariants = ['rests']").contains("eventually"));
}

#[test]
fn what_a_later_message_overtakes_is_lost() {
    let to = |msg| Envelope { src: Id::from(1), dst: Id::from(0), msg };
    let scenario = scenario("fifo-loss", "");
    // Sent by an actor where there are two, by somebody outside where there is one.
    for actors in [1, 2] {
        let system = sleepers(actors).init_network(Network::new_ordered([to(1), to(2)]));
        let mut sim = simulator(system.lossy_network(LossyNetwork::Yes), &scenario);
        let mut world = sim.empty_world();
        for actor in sim.model().actors().to_vec() {
            sim.start(&mut world, actor);
        }
        let message = |sim: &Simulator<_>, world: &World<System<Sleeper>>, text: &str| {
            let is = |p: &Pending| format!("{:?}", sim.info(p.msg).msg).contains(text);
            let at = world.pending().iter().position(is)?;
            Some((at, sim.deliverable(world, at, scenario.network)))
        };
        assert!(message(&sim, &world, "msg: 1").is_some_and(|(_, may)| may), "{actors}");
        let (second, may) = message(&sim, &world, "msg: 2").unwrap();
        assert!(may, "{actors}");
        sim.deliver(&mut world, second, scenario.network);
        let state = world.cells()[OUTSIDE.index()].clone().unwrap();
        assert_eq!(state.system().network.len(), 0);
        assert!(message(&sim, &world, "msg: 1").is_none_or(|(_, may)| !may), "{actors}");
    }
}
