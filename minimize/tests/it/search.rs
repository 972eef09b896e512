//! The exhaustive search: the same for any number of threads, and the same lengths whether or not configurations that
//! differ in names count once.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::sync::Arc;

use demi_akka_raft::AkkaRaft;
use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::oracle::witness::Shared;
use demi_minimize::search::{Lead, Query, Root, Searched};
use demi_minimize::{Budget, Objective, Problem};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::names::Names;
use demi_replay::script::{Act, Script};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Scenario};

const RULES: [NetworkRule; 2] = [NetworkRule::Fifo, NetworkRule::Unordered];

/// The first find of a seed, as a witness under a rule that is no stricter than its own.
fn witness(scenario: &str, seed: u64, rule: NetworkRule) -> (Engine<AkkaRaft>, Shared<AkkaRaft>) {
    let scenario = Scenario::parse(scenario).unwrap();
    let mut names = Names::default();
    let model = AkkaRaft::new(&scenario, &mut names).unwrap();
    let mut sim = Simulator::new(model, names, &scenario).unwrap();
    let limits = FuzzOptions::new(seed, 10_000, 1_000);
    let found = fuzz(&mut sim.clone(), &scenario, &limits, &mut |_| true).unwrap().unwrap();
    let (script, _) = Script::compile(&mut sim, &crate::recorded::schedule(&found)).unwrap();
    let problem = Problem::plain(sim, script.clone(), rule, found.violation.clone(), Objective::Steps);
    let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
    let witness = engine.first_witness(&script.acts, EXACT).unwrap();
    (engine, witness)
}

const RAFT_45: &str = include_str!("../../../replay/scenarios/raft-45.toml");
const RAFT_46: &str = include_str!("../../../replay/scenarios/raft-46.toml");
const RAFT_42: &str = include_str!("../../../replay/scenarios/raft-42.toml");
const RAFT_58B: &str = include_str!("../../../replay/scenarios/raft-58b.toml");

#[test]
fn threads_change_nothing() {
    for rule in RULES {
        let (mut engine, witness) = witness(RAFT_46, 1, rule);
        let bound = engine.sim.distance(&engine.problem.target).map(Arc::new);
        let query = Query::from(Root::Started).over(&witness.acts).deliveries(22).bound(bound.as_ref());
        let one = query.clone().run(&mut engine).unwrap();
        let acts = one.found.unwrap().acts.clone();
        assert_eq!((one.at_least, one.complete), (22, true));
        let more = query.threads(3).run(&mut engine).unwrap();
        assert_eq!(more.found.unwrap().acts, acts);
        assert_eq!((more.states, more.at_least), (one.states, one.at_least));
    }
}

#[test]
fn names_change_nothing_but_the_number_of_configurations() {
    for (scenario, seed) in [(RAFT_45, 1), (RAFT_46, 1)] {
        let mut fewer = 0;
        for rule in RULES {
            let (mut engine, witness) = witness(scenario, seed, rule);
            let bound = engine.sim.distance(&engine.problem.target).map(Arc::new);
            let everybody: Vec<&str> =
                engine.sim.model().actors().iter().map(|actor| engine.sim.names().get(*actor)).collect();
            let everybody = everybody.join(" ");
            let query = Query::from(Root::Started).over(&witness.acts).deliveries(22).bound(bound.as_ref());
            let short = query.threads(2).run(&mut engine).unwrap().found.unwrap();
            // From several places on the way, with and without a bound.
            for (at, bound) in [(9, bound.as_ref()), (14, bound.as_ref()), (18, None), (22, None)] {
                let (mut world, _) = engine.world_at(&short, at);
                for act in &short.acts[at..] {
                    if let Act::Deliver(want) = act
                        && let Some(msg) = want.external
                    {
                        engine.sim.inject(&mut world, want.to, msg);
                    }
                }
                let left = short.acts.len() - at;
                let query = Query::from(Root::World(&world)).deliveries(left).bound(bound);
                let with = query.clone().run(&mut engine).unwrap();
                // A target that names everybody lets nobody be renamed.
                let asked = engine.problem.clone();
                let mut all = (*asked).clone();
                all.target.push(everybody.clone());
                engine.pose(&Arc::new(all));
                let without = query.run(&mut engine).unwrap();
                engine.pose(&asked);
                assert_eq!(with.length, without.length);
                assert!(with.length.is_some() && with.states <= without.states, "{with:?} {without:?}");
                fewer += usize::from(with.states < without.states);
            }
        }
        assert!(fewer > 2, "{fewer}");
    }
}

/// What a beam search over the external events of some acts comes to.
fn beam(
    engine: &mut Engine<AkkaRaft>,
    acts: &[Act],
    (deliveries, width, lead): (usize, u64, Lead),
    outside: Option<usize>,
    threads: usize,
) -> Searched<AkkaRaft> {
    let bound = Arc::new(engine.sim.distance(&engine.problem.target).unwrap());
    let query = Query::from(Root::Started).over(acts).deliveries(deliveries).bound(Some(&bound));
    query.beam(width, lead).choosing(outside).threads(threads).run(engine).unwrap()
}

#[test]
fn a_beam_takes_no_more_messages_from_outside_than_it_may() {
    let (mut engine, witness) = witness(RAFT_45, 2, NetworkRule::Fifo);
    let mut taken = Vec::new();
    for most in 0..5 {
        let found = beam(&mut engine, &witness.acts, (40, 20_000, Lead::Nearest), Some(most), 2).found;
        let outside =
            |f: &Shared<AkkaRaft>| f.acts.iter().filter(|act| act.is_delivery() && act.is_external()).count();
        taken.push(found.as_ref().map(outside));
        assert!(found.is_none_or(|f| outside(&f) <= most));
    }
    // Each of two leaders needs a configuration of its own; what is found takes all that it may.
    assert_eq!(taken, [None, None, Some(2), Some(3), Some(4)]);
}

#[test]
fn a_beam_finds_nothing_shorter_and_a_wide_one_the_shortest() {
    for (scenario, shortest_of) in [(RAFT_45, 22), (RAFT_46, 22)] {
        for rule in RULES {
            let (mut engine, witness) = witness(scenario, 2, rule);
            let limit = witness.size.deliveries;
            let mut lengths = Vec::new();
            let leads = [Lead::Nearest, Lead::Light(2)];
            for (width, lead) in
                [1, 500, 20_000].into_iter().flat_map(|width| leads.map(|lead| (width, lead)))
            {
                let found = beam(&mut engine, &witness.acts, (limit, width, lead), None, 1).found;
                let again = beam(&mut engine, &witness.acts, (limit, width, lead), None, 3).found;
                assert_eq!(found.as_ref().map(|f| &f.acts), again.as_ref().map(|f| &f.acts));
                lengths.push(found.map(|f| f.size.deliveries));
            }
            assert!(lengths.iter().flatten().all(|length| *length >= shortest_of), "{lengths:?}");
            for lead in leads {
                let mut whole =
                    |deliveries| beam(&mut engine, &witness.acts, (deliveries, u64::MAX, lead), None, 2);
                assert_eq!(whole(shortest_of).found.unwrap().size.deliveries, shortest_of);
                assert!(whole(shortest_of - 1).nothing());
            }
        }
    }
}

/// Three members with configurations, among them the one that lacks what is committed, and a command to another of them.
#[test]
fn what_lies_about_leads_a_beam_where_the_bound_leaves_the_choice_to_hashes() {
    let (mut engine, witness) = witness(RAFT_42, 1, NetworkRule::Fifo);
    let externals: Vec<Act> = witness.acts.iter().filter(|act| act.is_external()).copied().collect();
    let starts: Vec<Act> = externals.iter().filter(|act| !act.is_delivery()).copied().collect();
    let to = |start: &Act, at: usize| {
        let own = |act: &&Act| act.is_delivery() && act.actor() == start.actor();
        externals.iter().filter(own).nth(at).copied()
    };
    let lacks = |start: &Act| {
        start.actor().is_some_and(|actor| engine.problem.target[0].ends_with(engine.sim.names().get(actor)))
    };
    let (lacking, others): (Vec<Act>, Vec<Act>) = starts.iter().copied().partition(lacks);
    let (lacking, mut lengths, mut by_hash) = (lacking[0], Vec::new(), Vec::new());
    for untold in &others {
        for leader in others.iter().filter(|other| *other != untold) {
            let Some(command) = to(leader, 1) else { continue };
            let told = starts.iter().filter(|start| *start != untold).filter_map(|start| to(start, 0));
            let set: Vec<Act> = starts.iter().copied().chain(told).chain([command]).collect();
            assert!(set.contains(&lacking) && set.len() == 8, "{set:?}");
            let searched = beam(&mut engine, &set, (30, 12_800, Lead::Light(2)), None, 2);
            assert!(!searched.complete);
            lengths.push(searched.found.map(|f| f.size.deliveries));
            let by_bound = beam(&mut engine, &set, (30, 12_800, Lead::Nearest), None, 2).found;
            by_hash.push(by_bound.map(|f| f.size.deliveries));
        }
    }
    assert!(by_hash.iter().any(|length| *length != Some(28)), "{by_hash:?}");
    assert!(lengths.len() > 1 && lengths.iter().all(|length| *length == Some(28)), "{lengths:?}");
}

/// Three of four members with configurations, and two commands to one of them: all must vote, twice.
#[test]
fn what_leads_to_logs_that_do_not_match_leads_a_narrow_beam() {
    let (mut engine, witness) = witness(RAFT_58B, 1, NetworkRule::Fifo);
    let externals: Vec<Act> = witness.acts.iter().filter(|act| act.is_external()).copied().collect();
    let (messages, starts): (Vec<Act>, Vec<Act>) = externals.iter().partition(|act| act.is_delivery());
    let to = |start: &Act| {
        let own = |act: &&Act| act.actor() == start.actor();
        messages.iter().filter(own).copied().collect::<Vec<Act>>()
    };
    // Who is named in every fingerprint has to be there.
    let named = |start: &Act| {
        let name = start.actor().map_or("", |actor| engine.sim.names().get(actor));
        engine.problem.target.iter().all(|fingerprint| fingerprint.contains(name))
    };
    let needed: Vec<Act> = starts.iter().copied().filter(named).collect();
    assert_eq!(needed.len(), 1);
    let mut lengths = Vec::new();
    for absent in &starts {
        let there: Vec<Act> = starts.iter().filter(|start| *start != absent).copied().collect();
        for leader in &there {
            let told = there.iter().filter_map(|start| to(start).first().copied());
            let commands: Vec<Act> = to(leader).into_iter().skip(1).take(2).collect();
            if commands.len() < 2 {
                continue;
            }
            let set: Vec<Act> = there.iter().copied().chain(told).chain(commands).collect();
            let searched = beam(&mut engine, &set, (30, 3_200, Lead::Nearest), None, 2);
            let wanted = if needed.contains(absent) { (None, true) } else { (Some(28), false) };
            assert_eq!((searched.found.map(|f| f.size.deliveries), searched.complete), wanted);
            lengths.push(wanted);
        }
    }
    assert!(lengths.len() > 8, "{lengths:?}");
}

/// Without order a member less costs one delivery more: what replaces a result that is proven over all four.
#[test]
fn a_beam_finds_what_three_of_four_members_suffice_for() {
    for seed in 1..=3 {
        let (mut engine, witness) = witness(RAFT_46, seed, NetworkRule::Unordered);
        let externals: Vec<Act> = witness.acts.iter().filter(|act| act.is_external()).copied().collect();
        let is_named =
            |actor| engine.problem.target.iter().any(|told| told.contains(engine.sim.names().get(actor)));
        let absent: Vec<_> =
            externals.iter().filter(|act| !act.is_delivery()).filter_map(Act::actor).collect();
        let absent: Vec<_> = absent.into_iter().filter(|actor| !is_named(*actor)).collect();
        assert_eq!(absent.len(), 2);
        for absent in absent {
            let set: Vec<Act> = externals.iter().filter(|act| act.actor() != Some(absent)).copied().collect();
            assert_eq!(set.len(), 6);
            let found = beam(&mut engine, &set, (37, 100_000, Lead::Nearest), None, 2).found;
            assert_eq!(found.map(|found| found.size.deliveries), Some(23));
            assert!(beam(&mut engine, &set, (22, u64::MAX, Lead::Nearest), None, 2).nothing());
        }
    }
}
