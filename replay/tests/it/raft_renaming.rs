//! Members of the Raft model have no names that matter: what a delivery does to a renamed configuration is what it does
//! to the configuration, renamed, and so is what the invariants say.

use std::fmt::Write;

use demi_akka_raft::{AkkaRaft, config::Switches};
use demi_replay::names::Names;
use demi_replay::{ActorId, Model, Pending, Simulator, World};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn simulator(on: &[bool], members: u32) -> Simulator<AkkaRaft> {
    let mut text =
        format!("model = \"akka-raft\"\nmembers = {members}\nnetwork = \"unordered\"\n[switches]\n");
    for (name, _) in Switches::NAMES.iter().zip(on).filter(|(_, on)| **on) {
        writeln!(text, "{name} = true").unwrap();
    }
    let scenario = Scenario::parse(&text).unwrap();
    let mut names = Names::default();
    let model = AkkaRaft::new(&scenario, &mut names).unwrap();
    Simulator::new(model, names, &scenario).unwrap()
}

/// The world with its actors in each other's places; nothing where the model cannot say.
fn renamed(
    sim: &mut Simulator<AkkaRaft>,
    world: &World<AkkaRaft>,
    to: &dyn Fn(ActorId) -> ActorId,
) -> Option<World<AkkaRaft>> {
    let mut cells = vec![None; world.actors()];
    let mut status: Vec<_> = (0..world.actors()).map(|_| world.status(ActorId(0))).collect();
    for (place, cell) in world.cells().iter().enumerate() {
        let actor = ActorId(place as u16);
        status[to(actor).index()] = world.status(actor);
        if let Some(state) = cell {
            cells[to(actor).index()] = Some(sim.model().symmetry()?.state(state, to)?.into());
        }
    }
    let mut pending = Vec::new();
    for p in world.pending() {
        let msg = sim.model().symmetry()?.message(&sim.info(p.msg).msg, to)?;
        let msg = sim.intern(msg);
        pending.push(Pending { from: to(p.from), to: to(p.to), channel: to(p.channel), msg, ..*p });
    }
    Some(World::assemble(cells, status, pending))
}

fn hash(sim: &Simulator<AkkaRaft>, world: &World<AkkaRaft>) -> u128 {
    world.configuration_hash(true, |p| sim.content(p))
}

fn violations(sim: &Simulator<AkkaRaft>, world: &World<AkkaRaft>) -> bool {
    let mut found = Vec::new();
    sim.check(world, &mut Default::default(), &mut found);
    !found.is_empty()
}

/// Walks at random, in a configuration and in the renamed one; gives how many deliveries were compared, and how many
/// violations.
fn walk(on: &[bool], members: u32, seed: u64, rule: NetworkRule) -> Result<(usize, usize), TestCaseError> {
    let mut sim = simulator(on, members);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut world = sim.empty_world();
    let actors = sim.model().actors().to_vec();
    actors.iter().for_each(|&actor| sim.start(&mut world, actor));
    for proposal in sim.model().workload().bootstrap(sim.names()) {
        let msg = sim.intern(proposal.msg);
        sim.inject(&mut world, proposal.to, msg);
    }
    for n in 0..rng.random_range(0..5u64) {
        let proposal = sim.model().workload().client_message(n, rng.random(), sim.names()).unwrap();
        let msg = sim.intern(proposal.msg);
        sim.inject(&mut world, proposal.to, msg);
    }
    let mut places = actors.clone();
    places.shuffle(&mut rng);
    let to = |actor: ActorId| actors.iter().position(|a| *a == actor).map_or(actor, |at| places[at]);
    let (mut compared, mut met) = (0, 0);
    for _ in 0..200 {
        let ready: Vec<usize> =
            (0..world.pending().len()).filter(|&i| sim.deliverable(&world, i, rule)).collect();
        if ready.is_empty() {
            break;
        }
        let index = ready[rng.random_range(0..ready.len())];
        let Some(mut other) = renamed(&mut sim, &world, &to) else { return Ok((compared, met)) };
        prop_assert!(sim.deliverable(&other, index, rule));
        sim.deliver(&mut world, index, rule);
        sim.deliver(&mut other, index, rule);
        let Some(expected) = renamed(&mut sim, &world, &to) else { return Ok((compared, met)) };
        prop_assert_eq!(hash(&sim, &other), hash(&sim, &expected));
        prop_assert_eq!(violations(&sim, &other), violations(&sim, &world));
        compared += 1;
        met += usize::from(violations(&sim, &world));
    }
    Ok((compared, met))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn deliveries_do_not_depend_on_names(
        on in proptest::collection::vec(any::<bool>(), Switches::NAMES.len()),
        seed: u64,
        members in 3..6u32,
        rule in prop_oneof![Just(NetworkRule::Unordered), Just(NetworkRule::Fifo), Just(NetworkRule::FifoLoss)],
    ) {
        walk(&on, members, seed, rule)?;
    }
}

#[test]
fn walks_go_far_enough() {
    let (mut compared, mut met) = (0, 0);
    for seed in 0..30 {
        let on: Vec<bool> = Switches::NAMES.iter().map(|name| *name == "vote_ignores_log").collect();
        compared += walk(&on, 4, seed, NetworkRule::Fifo).unwrap().0;
        // With nearly everything broken some member fails soon.
        let on: Vec<bool> = Switches::NAMES.iter().map(|name| *name != "raft62_restart").collect();
        met += walk(&on, 4, seed, NetworkRule::Unordered).unwrap().1;
    }
    assert!(compared > 4_000 && met > 0, "{compared} {met}");
}
