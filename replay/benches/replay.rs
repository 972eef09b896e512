//! Deliveries a second through the full simulator: find the wanted message by content, check the network rule,
//! deliver, intern what was sent. Without invariants, and with every invariant after each delivery.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use demi_included::{Visitor, with_model};
use demi_replay::script::{Act, Want};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Scenario};

const DELIVERIES: usize = 2000;

struct Bench<'a>(&'a mut Criterion);

impl Visitor for Bench<'_> {
    type Output = ();

    fn visit<M: Model>(self, mut sim: Simulator<M>) {
        let rule = NetworkRule::Fifo;
        let mut world = sim.empty_world();
        for actor in sim.model().actors().to_vec() {
            sim.start(&mut world, actor);
        }
        for proposal in sim.model().workload().bootstrap(sim.names()) {
            let msg = sim.intern(proposal.msg);
            sim.inject(&mut world, proposal.to, msg);
        }
        let first = world.clone();
        // A reproducible random run (xorshift).
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut acts = Vec::new();
        while acts.len() < DELIVERIES {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let index = (random % world.pending().len() as u64) as usize;
            if sim.deliverable(&world, index, rule) {
                acts.push(Act::Deliver(Want::of(&sim, &world, &world.pending()[index])));
                sim.deliver(&mut world, index, rule);
            }
        }
        let mut group = self.0.benchmark_group("replay raft-45");
        group.throughput(Throughput::Elements(DELIVERIES as u64));
        for (name, check) in [("invariants off", false), ("invariants after every delivery", true)] {
            group.bench_function(name, |b| {
                b.iter(|| {
                    let mut world = first.clone();
                    let mut found = Vec::new();
                    for act in &acts {
                        let Act::Deliver(want) = act else { continue };
                        let index = want.find(&sim, &world).unwrap();
                        assert!(sim.deliverable(&world, index, rule));
                        sim.deliver(&mut world, index, rule);
                        if check {
                            sim.check(&world, &mut M::History::default(), &mut found);
                        }
                    }
                    (world.deliveries(), found.len())
                });
            });
        }
        group.finish();
    }
}

fn replay(c: &mut Criterion) {
    let scenario = Scenario::parse(include_str!("../scenarios/raft-45.toml")).unwrap();
    with_model(&scenario, Bench(c)).unwrap();
}

criterion_group!(benches, replay);
criterion_main!(benches);
