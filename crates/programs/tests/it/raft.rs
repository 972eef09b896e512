//! Maelstrom's own Raft in Python, with a node that votes twice in a term: long, so only where it is asked for.

use std::time::{Duration, Instant};

use crate::citizens::python;
use crate::mutants;
use crate::registers::brute_force;
use crate::workloads::{Search, scenario};
use demi_programs::{Action, Done, Fate, History, Interval, Told, WithPrograms};
use demi_replay::Registry;
use demi_replay::registry::NoModels;
use serde_json::Value;

/// The program, if it is there and there is time.
fn raft() -> Option<String> {
    let corpus = std::env::var_os("DEMI_CORPUS").map(std::path::PathBuf::from);
    let text =
        corpus.and_then(|corpus| std::fs::read_to_string(corpus.join("maelstrom/demo/python/raft.py")).ok());
    if std::env::var_os("DEMI_LONG").is_none() || text.is_none() || !python() {
        println!(
            "skipped: DEMI_LONG and DEMI_CORPUS ask for it, with a folder that has maelstrom/demo/python/raft.py"
        );
        return None;
    }
    text
}

#[test]
fn two_votes_in_a_term_are_found() {
    let Some(text) = raft() else { return };
    let vote = "elif self.voted_for is not None:";
    assert!(text.contains(vote), "the program has changed");
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &text.replace(vote, "elif False:"), "lin-kv", "unordered", "");
    let mut found = 0;
    let seeds: u64 = std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10);
    for seed in 1..=seeds {
        let began = Instant::now();
        let registry = WithPrograms::new(NoModels);
        let violation = registry
            .visit(&scenario, Search { scenario: &scenario, seed, runs: 400, deliveries: 120 })
            .unwrap();
        assert_eq!(registry.fault(), None);
        println!(
            "seed {seed}: {violation:?} after {:.1} s, {:?}",
            began.elapsed().as_secs_f64(),
            registry.programs()
        );
        found += u64::from(violation == Some(vec!["lin-kv/not linearizable".to_owned()]));
    }
    assert!(found * 10 >= seeds * 9, "{found} of {seeds}");
}

/// From the seeded fault to the shortest schedule within a minute each, and the same bytes when it is replayed twice.
#[test]
fn two_votes_in_a_term_come_to_a_short_schedule() {
    let Some(text) = raft() else { return };
    let vote = "elif self.voted_for is not None:";
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &text.replace(vote, "elif False:"), "lin-kv", "unordered", "");
    let seeds = mutants::number("DEMI_CASES", 10);
    let first = mutants::number("DEMI_SEED", 1);
    let mut steps = Vec::new();
    for seed in first..first + seeds {
        let registry = WithPrograms::new(NoModels);
        let began = Instant::now();
        let time = Duration::from_secs(mutants::number("DEMI_SECONDS", 60));
        let search = mutants::Search { scenario: &scenario, seed, time };
        let (found, executed) = registry.visit(&scenario, search).unwrap();
        let took = began.elapsed().as_secs_f64();
        let Some(found) = found else {
            println!("seed {seed}: not in {took:.1} s and {executed} deliveries");
            continue;
        };
        let time = Duration::from_secs(mutants::number("DEMI_MINIMIZE", 60));
        let shortest = registry.visit(&scenario, mutants::Shortest(&scenario, &found, time)).unwrap();
        let told: Vec<String> = (0..2)
            .map(|_| {
                Told::of(&scenario, &shortest.schedule).map(|told| told.script() + &told.history()).unwrap()
            })
            .collect();
        assert_eq!(told[0], told[1]);
        println!(
            "seed {seed}: found after {took:.1} s and {executed} deliveries; {} steps to {}; {:?}",
            found.schedule.steps.len(),
            shortest.schedule.steps.len(),
            registry.programs()
        );
        if mutants::number("DEMI_SHOW", 0) > 0 {
            println!("{}", shortest.schedule.to_text());
        }
        steps.push(shortest.schedule.steps.len());
    }
    println!("{steps:?}");
}

/// The operations of a history on a register, as brute force takes them.
fn intervals(all: &[Done]) -> Vec<Interval> {
    let of = |one: &Done| {
        let read = match &one.fate {
            Fate::Done(value) => Some(value[1].clone()),
            Fate::Refused(_) => return None,
            Fate::Unknown(_) => None,
        };
        let action = match one.f.as_str() {
            "read" => Action::Read(read?),
            "write" => Action::Write(one.value[1].clone()),
            _ => Action::Swap(one.value[1][0].clone(), one.value[1][1].clone()),
        };
        Some(Interval { action, begin: one.begin, end: one.end })
    };
    all.iter().filter_map(of).collect()
}

/// The program keeps its votes and its log in memory alone: who is killed has forgotten them. What a search gives is refused by brute force too.
#[test]
fn what_a_killed_node_promised_is_forgotten() {
    let Some(text) = raft() else { return };
    let folder = tempfile::tempdir().unwrap();
    let faults = "processes = 3\n[fuzz]\nweight_crash = 1.0\nweight_restart = 1.0\n";
    let scenario = scenario(folder.path(), &text, "lin-kv", "unordered", faults);
    let limit = Duration::from_secs(mutants::number("DEMI_SECONDS", 300));
    let found = (1..=3).find_map(|seed| {
        let began = Instant::now();
        let registry = WithPrograms::new(NoModels);
        let search = mutants::Search { scenario: &scenario, seed, time: limit };
        let (found, executed) = registry.visit(&scenario, search).unwrap();
        assert_eq!(registry.fault(), None);
        let took = began.elapsed().as_secs_f64();
        println!(
            "seed {seed}: {:?} after {took:.1} s, {executed} deliveries",
            found.as_ref().map(|one| &one.violation)
        );
        Some((registry, found.filter(|one| one.violation == ["lin-kv/not linearizable"])?))
    });
    let (registry, found) = found.expect("a violation");
    let time = Duration::from_secs(mutants::number("DEMI_MINIMIZE", 60));
    let shortest = registry.visit(&scenario, mutants::Shortest(&scenario, &found, time)).unwrap();
    println!(
        "{} steps to {}, 1-minimal {}; {:?}",
        found.schedule.steps.len(),
        shortest.schedule.steps.len(),
        shortest.summary.one_minimal,
        registry.programs()
    );
    let text = shortest.schedule.to_text();
    println!("{text}");
    assert!(text.contains("\"kind\":\"crash\"") || text.contains("kill_after_writes"), "{text}");
    let told = Told::of(&scenario, &shortest.schedule).unwrap();
    println!("{}", told.history());
    let history = History::parse(&told.history()).unwrap();
    let all = intervals(history.operations());
    assert!(!brute_force(&all, &Value::Null, &mut vec![false; all.len()]), "{}", told.history());
}
