//! What an event costs the thread that logs it.

#![allow(missing_docs, clippy::print_stderr, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracing_subscriber::prelude::*;

fn overhead(criterion: &mut Criterion) {
    // Nothing is dropped: the writer keeps up with a sink that costs nothing.
    let (layer, guard) = demi_log::Builder::new().to_writer(std::io::sink()).expect("a log");
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).expect("the first");
    let mut group = criterion.benchmark_group("event");
    group.throughput(Throughput::Elements(1));
    group.bench_function("send", |b| {
        b.iter(|| {
            demi_log::send!("raft-member-1", "raft-member-2", "RequestVote", payload = "RequestVote(term 3)")
        });
    });
    let id = demi_log::MsgId::next();
    group.bench_function("receive", |b| {
        b.iter(|| {
            demi_log::receive!(
                "raft-member-2",
                "raft-member-1",
                "RequestVote",
                id,
                payload = "RequestVote(term 3)"
            )
        });
    });
    group.bench_function("state", |b| {
        b.iter(|| demi_log::state!("raft-member-2", term = 3, role = "follower"))
    });
    let member: std::collections::BTreeMap<String, u64> = (0..20).map(|n| (format!("v{n}"), n)).collect();
    group.bench_function("state_of 20 variables", |b| {
        b.iter(|| demi_log::state_of!("raft-member-2", member));
    });
    group.finish();
    eprintln!("events dropped: {}", guard.dropped());
}

criterion_group!(benches, overhead);
criterion_main!(benches);
