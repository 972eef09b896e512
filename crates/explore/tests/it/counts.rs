//! What explorations come to, number for number, as it is written down in `counts.txt`: a change of the search must not change what is explored.
//! With `DEMI_WRITE` set the file is written anew.

use std::fmt::Write;

use demi_explore::{Bounds, Cost, ExploreOptions, Explored, Scene, Spent, explore};
use demi_included::with_model;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::machine::{simulator, table};

/// Where an exploration begins: with so many messages from outside, or so many deliveries before the end of a fuzzed execution.
#[derive(Clone, Copy)]
enum From {
    Start(u32),
    Around(u64),
}

struct Row<'a>(&'a Scenario, Bounds, From, bool);

impl Visitor for Row<'_> {
    type Output = Option<Explored>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let Row(scenario, bounds, from, all) = self;
        let (scene, first) = match from {
            From::Start(clients) => Scene::of(&mut sim, scenario, Some(clients), 1).unwrap(),
            From::Around(before) => {
                let options = FuzzOptions { at_least: 8, ..FuzzOptions::new(1, 50_000, 400) };
                let found = fuzz(&mut sim, scenario, &options, &mut |_| true).unwrap()?;
                Scene::around(&mut sim, scenario, &found.schedule, found.deliveries.saturating_sub(before))
                    .unwrap()
            }
        };
        let options = ExploreOptions { all, ..ExploreOptions::default() };
        Some(explore(&mut sim, (&scene, first), bounds, options, &mut |_| true).unwrap())
    }
}

/// An exploration in one line, and a line for each finding.
fn told(text: &mut String, what: &str, explored: &Explored) {
    write!(text, "{what}: {:?}, {} configurations;", explored.ended, explored.met).unwrap();
    for level in &explored.levels {
        let demi_explore::Level { moments, steps, known, ends, cut } = *level;
        write!(text, " {moments} {steps} {known} {ends} {cut},").unwrap();
    }
    text.push('\n');
    for finding in &explored.findings {
        let Spent { cost, faults, steps } = finding.spent;
        let names: Vec<&str> = finding.violations.iter().map(|v| v.fingerprint.as_str()).collect();
        writeln!(text, "  {cost} {faults} {steps} {} {:?}", names.join(" "), finding.choices).unwrap();
    }
}

fn scenario(name: &str, edit: &str) -> Scenario {
    let path = format!("{}/../../replay/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::parse(&format!("{edit}\n{}", std::fs::read_to_string(path).unwrap())).unwrap()
}

fn counted() -> String {
    let mut text = String::new();
    let rules = [NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered];
    for (name, depth) in [
        ("raft-45", 16),
        ("raft-46", 16),
        ("raft-66", 14),
        ("spark-9256", 12),
        ("spark-2294", 10),
        ("two-phase", 12),
    ] {
        for rule in rules {
            for (cost, bound, faults) in [
                (Cost::Deviation, 1, 0),
                (Cost::Deviation, 1, 1),
                (Cost::Delay, 3, 0),
                (Cost::Delay, 2, 1),
                (Cost::Preempt, 0, 0),
            ] {
                let mut scenario = scenario(name, "");
                scenario.network = rule;
                scenario.duplicates = faults > 0;
                let steps = if cost == Cost::Preempt { 7 } else { depth - 2 * faults };
                let bounds = Bounds { cost, most: Spent { cost: bound, faults, steps } };
                let explored =
                    with_model(&scenario, Row(&scenario, bounds, From::Start(2), true)).unwrap().unwrap();
                told(&mut text, &format!("{name} {rule} {cost} {bound} {faults} {steps}"), &explored);
            }
        }
    }
    for (name, cost, bound) in
        [("raft-46", Cost::Deviation, 2), ("two-phase", Cost::Delay, 3), ("raft-45", Cost::Deviation, 2)]
    {
        let scenario = scenario(name, "");
        let bounds = Bounds { cost, most: Spent { cost: bound, faults: 0, steps: 40 } };
        let explored = with_model(&scenario, Row(&scenario, bounds, From::Start(4), false)).unwrap().unwrap();
        told(&mut text, &format!("{name} {cost} {bound} whole"), &explored);
    }
    for name in ["raft-46", "raft-58b", "two-phase"] {
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            let scenario = scenario(name, "");
            let bounds = Bounds { cost, most: Spent { cost: 2, faults: 1, steps: 6 } };
            let explored = with_model(&scenario, Row(&scenario, bounds, From::Around(6), true)).unwrap();
            told(&mut text, &format!("{name} {cost} around"), &explored.unwrap());
        }
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..60 {
        let table = table().new_tree(&mut runner).unwrap().current();
        for rule in rules {
            for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
                let (mut scenario, mut sim) = simulator(&table, rule);
                scenario.duplicates = number % 2 == 0;
                let (scene, first) = Scene::of(&mut sim, &scenario, Some(1), 1).unwrap();
                let bounds = Bounds { cost, most: Spent { cost: 2, faults: number % 3, steps: 5 } };
                let options = ExploreOptions { all: true, ..ExploreOptions::default() };
                let explored = explore(&mut sim, (&scene, first), bounds, options, &mut |_| true).unwrap();
                told(&mut text, &format!("table {number} {rule} {cost}"), &explored);
            }
        }
    }
    text
}

#[test]
fn the_same_is_explored_as_ever() {
    let path = format!("{}/tests/it/counts.txt", env!("CARGO_MANIFEST_DIR"));
    let counted = counted();
    if std::env::var_os("DEMI_WRITE").is_some() {
        std::fs::write(&path, &counted).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (counted, expected) in counted.lines().zip(expected.lines()) {
        assert_eq!(counted, expected);
    }
    assert_eq!(counted.lines().count(), expected.lines().count());
}
