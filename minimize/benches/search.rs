//! The exhaustive search: how fast it visits configurations of akka-raft, and how soon it has its proof.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use demi_minimize::search::{Query, Root};
use demi_schemas::NetworkRule;

use support::Case;

/// The proof that raft-45 takes 22 deliveries: a search of everything with at most 21, with the model's bound; then a
/// search without a bound up to a depth that memory allows.
fn proofs(c: &mut Criterion) {
    for (name, scenario, limit, free) in [
        ("raft-45", include_str!("../../replay/scenarios/raft-45.toml"), 21, 12),
        ("raft-46", include_str!("../../replay/scenarios/raft-46.toml"), 21, 12),
    ] {
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        for rule in [NetworkRule::Fifo, NetworkRule::Unordered] {
            let mut case = Case::new(scenario, rule);
            for (bounded, limit) in [(true, limit), (false, free)] {
                let bound = case.bound.clone().filter(|_| bounded);
                let what = if bounded { "bounded" } else { "unbounded" };
                let mut run = |threads| {
                    let query = Query::from(Root::Started).over(&case.witness.acts).deliveries(limit);
                    query.bound(bound.as_ref()).threads(threads).run(&mut case.engine).unwrap()
                };
                let states = run(1).states;
                group.throughput(Throughput::Elements(states));
                for jobs in [1, 2] {
                    let id = BenchmarkId::new(format!("{rule} {what}"), jobs);
                    group.bench_function(id, |b| b.iter(|| assert_eq!(run(jobs).states, states)));
                }
            }
        }
        group.finish();
    }
}

criterion_group!(benches, proofs);
criterion_main!(benches);
