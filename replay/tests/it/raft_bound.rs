//! The bounds of the Raft model never say more than is needed: along any walk they fall by at most one a delivery,
//! and are at most one before the violation. From both follows that they are never above the true distance.

use std::fmt::Write;

use demi_akka_raft::{AkkaRaft, config::Switches, message::Msg};
use demi_replay::names::Names;
use demi_replay::{ActorId, Model, Simulator, World};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const INVARIANTS: &str = "\"ElectionSafety\", \"LogMatch\", \"LeaderCompleteness\", \"Crash\"";
/// The kinds of violations that there are bounds for.
const KINDS: [&str; 5] =
    ["ElectionSafety", "LogMatch", "LogMatchNotLongEnough", "LeaderCompleteness", "Crash"];

fn simulator(on: &[bool], members: u32) -> Simulator<AkkaRaft> {
    let mut text = format!(
        "model = \"akka-raft\"\nmembers = {members}\nnetwork = \"unordered\"\ninvariants = [{INVARIANTS}]\n[switches]\n"
    );
    for (name, _) in Switches::NAMES.iter().zip(on).filter(|(_, on)| **on) {
        writeln!(text, "{name} = true").unwrap();
    }
    let scenario = Scenario::parse(&text).unwrap();
    let mut names = Names::default();
    let model = AkkaRaft::new(&scenario, &mut names).unwrap();
    Simulator::new(model, names, &scenario).unwrap()
}

/// Walks at random and compares the bound before and after each delivery; gives how often the violation was met.
fn walk(
    sim: &mut Simulator<AkkaRaft>,
    (seed, kind): (u64, &str),
    rule: NetworkRule,
    steps: usize,
) -> Result<usize, TestCaseError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut world = sim.empty_world();
    let members = sim.model().actors().to_vec();
    // Who has not started by now never does.
    let started = if rng.random_ratio(1, 2) { 1.0 } else { 0.8 };
    for &member in &members {
        if rng.random_bool(started) {
            sim.start(&mut world, member);
        }
    }
    // Some members may have to ask a leader for their configuration.
    let told = if rng.random_ratio(1, 2) { 1.0 } else { 0.7 };
    for proposal in sim.model().workload().bootstrap(sim.names()) {
        if !rng.random_bool(told) {
            continue;
        }
        let msg = sim.intern(proposal.msg);
        sim.inject(&mut world, proposal.to, msg);
    }
    for n in 0..rng.random_range(0..6u64) {
        if let Some(proposal) = sim.model().workload().client_message(n, rng.random(), sim.names()) {
            let msg = sim.intern(proposal.msg);
            sim.inject(&mut world, proposal.to, msg);
        }
    }
    let name = |i: usize| sim.names().get(members[i]).to_owned();
    let (a, b) = (rng.random_range(0..members.len() - 1), members.len() - 1);
    let target = match kind {
        "LeaderCompleteness" | "Crash" => vec![format!("{kind}:{}", name(a))],
        _ => vec![format!("{kind}:{}:{}", name(a), name(b))],
    };
    let bound = sim.model().guidance().distance(&target, sim.names()).unwrap();
    let (mut met, timers) = (0, rng.random_range(1..=10));
    let mut before = sim.lower_bound(&world, &bound);
    for _ in 0..steps {
        let weight = |i: usize| if world.pending()[i].kind.is_timer() { timers } else { 10 };
        let ready: Vec<(usize, u32)> = (0..world.pending().len())
            .filter(|&i| sim.deliverable(&world, i, rule))
            .map(|i| (i, weight(i)))
            .collect();
        let total: u32 = ready.iter().map(|(_, w)| w).sum();
        let mut draw = rng.random_range(0..total.max(1));
        let Some(&(index, _)) = ready.iter().find(|(_, w)| {
            let here = draw < *w;
            draw = draw.saturating_sub(*w);
            here
        }) else {
            break;
        };
        let leader = members
            .iter()
            .copied()
            .find(|m| sim.view(&world).state(*m).is_some_and(|m| m.role.name() == "Leader"));
        if let Some(leader) = leader.filter(|_| kind != "ElectionSafety" && rng.random_ratio(1, 8)) {
            // Commands that nobody but a leader takes.
            let msg = sim.intern(Msg::ClientMessage { word: rng.random_range(100..110) });
            sim.inject(&mut world, leader, msg);
        }
        let entry = world.pending()[index];
        let states = |sim: &Simulator<AkkaRaft>, world: &World<AkkaRaft>| -> Vec<String> {
            let state = |m: &ActorId| {
                let m = sim.view(world).state(*m)?;
                Some(format!(
                    "{} {} {:?} {:?} {:?} {}",
                    m.role.name(),
                    m.term,
                    m.votes,
                    m.tally,
                    m.log,
                    m.committed
                ))
            };
            members.iter().filter_map(state).collect()
        };
        let was = states(sim, &world);
        sim.deliver(&mut world, index, rule);
        let mut found = Vec::new();
        sim.check(&world, &mut Default::default(), &mut found);
        let there = found.iter().any(|v| target.contains(&v.fingerprint));
        met += usize::from(there);
        let least = sim.lower_bound(&world, &bound);
        // What a search goes by says no less, and something of every configuration that may lead there.
        let toward = bound.heuristic.as_ref().map(|toward| toward(&sim.view(&world), &sim.waiting(&world)));
        if let Some(toward) = toward.filter(|_| kind != "Crash") {
            prop_assert!(toward >= least && toward < least.max(200) + 200, "{least}, toward {toward}");
        }
        if there && kind == "Crash" {
            prop_assert_eq!((least, toward.unwrap_or(0)), (0, 0));
        }
        if there && kind == "ElectionSafety" {
            prop_assert_eq!(least, 0);
        }
        let after = if there { 0 } else { least };
        prop_assert!(
            before <= after + 1,
            "{before} to {after} by {} at {}: {was:?} to {:?}, {target:?}",
            sim.text(sim.info(entry.msg).payload),
            sim.names().get(entry.to),
            states(sim, &world)
        );
        before = least;
    }
    Ok(met)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn it_falls_by_at_most_one(
        on in proptest::collection::vec(any::<bool>(), Switches::NAMES.len()),
        seed: u64,
        kind in proptest::sample::select(&KINDS[..]),
        members in 3..6u32,
        rule in prop_oneof![Just(NetworkRule::Unordered), Just(NetworkRule::Fifo), Just(NetworkRule::FifoLoss)],
    ) {
        walk(&mut simulator(&on, members), (seed, kind), rule, 150)?;
    }
}

#[test]
fn walks_of_the_known_bugs_meet_the_violation() {
    let mut met = 0;
    for bug in ["raft45_duplicate_votes", "raft46_stale_votes", "raft56_forget_votes"] {
        let mut common: Vec<&str> =
            vec!["candidate_votes_in_place", "vote_ignores_log", "vote_keeps_timer", "term_from_log"];
        common.push(bug);
        let on: Vec<bool> = Switches::NAMES.iter().map(|name| common.contains(name)).collect();
        for seed in 0..400 {
            met +=
                walk(&mut simulator(&on, 4), (seed, "ElectionSafety"), NetworkRule::Unordered, 300).unwrap();
        }
    }
    assert!(met > 0, "walks that never get there show nothing");
}

#[test]
fn walks_of_the_bugs_of_logs_meet_their_violations() {
    let switches =
        |names: &[&str]| -> Vec<bool> { Switches::NAMES.iter().map(|name| names.contains(name)).collect() };
    let of_58b = switches(&[
        "raft58b_zero_indexed_log",
        "raft58a_late_leader_init",
        "raft66_truncate",
        "candidate_votes_in_place",
        "vote_ignores_log",
        "vote_keeps_timer",
        "term_from_log",
    ]);
    let of_42 = switches(&["raft42_mode_quorum", "raft66_truncate", "term_from_log"]);
    let of_66 = switches(&["raft66_truncate", "term_from_log"]);
    let of_58a =
        switches(&["raft58a_late_leader_init", "raft66_truncate", "vote_ignores_log", "term_from_log"]);
    for (on, kind) in [
        (of_58b, "LogMatch"),
        (of_42, "LeaderCompleteness"),
        (of_66, "LeaderCompleteness"),
        (of_58a, "Crash"),
    ] {
        let mut met = 0;
        for seed in 0..1500 {
            met += walk(&mut simulator(&on, 4), (seed, kind), NetworkRule::Unordered, 400).unwrap();
        }
        assert!(met > 0, "walks that never get to {kind} show nothing");
    }
}
