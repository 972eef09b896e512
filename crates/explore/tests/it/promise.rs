//! What is found within a bound is what a search of all interleavings finds that cost no more, and nothing else.

use std::cell::Cell;
use std::collections::BTreeMap;

use demi_explore::{Bounds, Cost, Ended, ExploreOptions, Origin, Promise, Scene, Spent, explore};
use demi_replay::fuzz::{Made, written};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Model, MsgId, PendingKind, Proposal, Simulator, Status, World};
use demi_schemas::NetworkRule;
use demi_schemas::summary::Verdict;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::machine::{Machine, Table, simulator, table};

/// By fingerprints: cost, faults and steps of the least execution.
type Least = BTreeMap<Vec<String>, (u32, u32, u32)>;

/// All interleavings up to some steps, whatever they cost, without a cache: the least that each violation costs.
struct All<'a> {
    sim: &'a mut Simulator<Machine>,
    rule: NetworkRule,
    cost: Cost,
    clients: Vec<(ActorId, MsgId)>,
    most: (u32, u32),
    least: Least,
}

impl All<'_> {
    fn go(&mut self, world: &World<Machine>, sent: usize, last: Option<ActorId>, spent: (u32, u32, u32)) {
        let mut found = Vec::new();
        self.sim.check(world, &mut (), &mut found);
        if !found.is_empty() {
            let mut names: Vec<String> = found.into_iter().map(|v| v.fingerprint).collect();
            names.sort();
            let least = self.least.entry(names).or_insert(spent);
            *least = spent.min(*least);
            return;
        }
        let (cost, faults, steps) = spent;
        if steps == self.most.1 {
            return;
        }
        // Everything that could happen, by its place in the default order: messages, then the environment, then timers.
        let mut possible: Vec<(u8, usize)> = Vec::new();
        for (index, entry) in world.pending().iter().enumerate() {
            if self.sim.deliverable(world, index, self.rule) {
                possible.push((if entry.kind.is_timer() { 2 } else { 0 }, index));
            }
        }
        if sent < self.clients.len() {
            possible.push((1, 0));
        }
        possible.sort();
        let to = |&(class, index): &(u8, usize)| (class != 1).then(|| world.pending()[index].to);
        let could_stay = possible.iter().any(|one| last.is_some() && to(one) == last);
        for one in &possible {
            let before = possible.iter().filter(|other| other < &one).count() as u32;
            let price = match self.cost {
                Cost::Deviation => before.min(1),
                Cost::Delay => before,
                Cost::Preempt => u32::from(could_stay && to(one) != last),
            };
            let mut after = world.clone();
            let mut lost = 0;
            if one.0 == 1 {
                let (to, msg) = self.clients[sent];
                self.sim.inject(&mut after, to, msg);
            } else {
                let entry = world.pending()[one.1];
                if self.rule == NetworkRule::FifoLoss && entry.kind == PendingKind::Message {
                    let older = world.pending()[..one.1].iter();
                    lost = older
                        .filter(|p| p.kind == entry.kind && (p.channel, p.to) == (entry.channel, entry.to))
                        .count() as u32;
                }
                self.sim.deliver(&mut after, one.1, self.rule);
            }
            if faults + lost <= self.most.0 {
                let (sent, last) = if one.0 == 1 { (sent + 1, last) } else { (sent, to(one)) };
                self.go(&after, sent, last, (cost + price, faults + lost, steps + 1));
            }
        }
        if faults < self.most.0 {
            for actor in self.sim.model().actors().to_vec() {
                for fault in 0..4 {
                    let status = world.status(actor);
                    let mut after = world.clone();
                    match (fault, status) {
                        (0, Status::Running | Status::Isolated) => self.sim.crash(&mut after, actor),
                        (1, Status::Crashed) => self.sim.restart(&mut after, actor),
                        (2, Status::Running) => self.sim.isolate(&mut after, actor),
                        (3, Status::Isolated) => self.sim.heal(&mut after, actor),
                        _ => continue,
                    }
                    self.go(&after, sent, last, (cost, faults + 1, steps + 1));
                }
            }
        }
    }
}

/// Everything that any interleaving violates, with the least it costs.
fn brute(table: &Table, rule: NetworkRule, cost: Cost, most: (u32, u32)) -> Least {
    let (_, mut sim) = simulator(table, rule);
    let mut world = sim.empty_world();
    for actor in sim.model().actors().to_vec() {
        sim.start(&mut world, actor);
    }
    let interned = |sim: &mut Simulator<Machine>, proposal: Proposal<_>| {
        let msg = sim.intern(proposal.msg);
        (proposal.to, msg)
    };
    for proposal in sim.model().workload().bootstrap(sim.names()) {
        let (to, msg) = interned(&mut sim, proposal);
        sim.inject(&mut world, to, msg);
    }
    let proposals: Vec<_> = (0..table.clients.len() as u64)
        .filter_map(|n| sim.model().workload().client_message(n, 0, sim.names()))
        .collect();
    let clients = proposals.into_iter().map(|proposal| interned(&mut sim, proposal)).collect();
    let mut all = All { sim: &mut sim, rule, cost, clients, most, least: Least::new() };
    all.go(&world, 0, None, (0, 0, 0));
    all.least
}

#[test]
fn exactly_what_costs_no_more_is_found() {
    let (found, silent, proven) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let rules = [NetworkRule::Unordered, NetworkRule::Fifo, NetworkRule::FifoLoss];
    let input = (table(), prop::sample::select(rules.to_vec()), 0..2_u32, 0..4_u32);
    let test = |(table, rule, faults, bound): (Table, NetworkRule, u32, u32)| {
        let steps = if faults > 0 { 5 } else { 6 };
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            let mut expected = brute(&table, rule, cost, (faults, steps));
            expected.retain(|_, spent| spent.0 <= bound);
            let (scenario, mut sim) = simulator(&table, rule);
            let (scene, first) = Scene::of(&mut sim, &scenario, None, 1).unwrap();
            let bounds = Bounds { cost, most: Spent { cost: bound, faults, steps } };
            let explored = explore(
                &mut sim,
                (&scene, first.clone()),
                bounds,
                ExploreOptions { all: true, ..ExploreOptions::default() },
                &mut |_| true,
            )
            .unwrap();
            prop_assert_eq!(explored.ended, Ended::Complete);
            let got: Least = explored
                .findings
                .iter()
                .map(|finding| {
                    let names = finding.violations.iter().map(|v| v.fingerprint.clone()).collect();
                    let Spent { cost, faults, steps } = finding.spent;
                    (names, (cost, faults, steps))
                })
                .collect();
            prop_assert_eq!(&got, &expected, "{} {:?}", cost, rule);
            found.set(found.get() + got.len());
            silent.set(silent.get() + usize::from(got.is_empty()));

            // The first is the least of all, and what is promised below it is true.
            let sooner =
                explore(&mut sim, (&scene, first), bounds, ExploreOptions::default(), &mut |_| true).unwrap();
            prop_assert_eq!(sooner.findings.first(), explored.findings.first());
            let promise = Promise::of(&sooner, bounds, rule, Origin::Beginning(table.clients.len()));
            let least = expected.values().map(|spent| spent.0).min();
            let kept = least.map_or(Some(bound), |least| least.checked_sub(1));
            prop_assert_eq!(promise.map(|promise| promise.bound), kept);
            proven.set(proven.get() + usize::from(promise.is_some_and(|p| p.steps.is_none())));

            // What is written is an execution that violates so.
            for finding in &explored.findings {
                let parts = (&scenario, &scene.program);
                let run = written(&mut sim, parts, &finding.choices, &finding.violations, Made::default());
                let options = ReplayOptions { rule, strict: true, interval: 1 };
                let summary = replay(&mut sim, &run.schedule, &options).unwrap();
                let names: Vec<String> = finding.violations.iter().map(|v| v.fingerprint.clone()).collect();
                prop_assert_eq!(summary.verdict, Verdict::Violates);
                prop_assert_eq!(summary.violation, names);
            }
        }
        Ok(())
    };
    TestRunner::new_with_rng(config, rng).run(&input, test).unwrap();
    // The systems are such that there is something to find, and often nothing.
    assert!(found.get() >= 200 && silent.get() >= 200, "{} {}", found.get(), silent.get());
    assert!(proven.get() >= 20, "{}", proven.get());
}
