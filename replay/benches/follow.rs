//! How long it takes to find an order of logs that a model with threads and shared memory follows, and to complete what
//! was kept of them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a benchmark")]

#[path = "../tests/it/recorded.rs"]
mod recorded;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use demi_included::{Visitor, with_model};
use demi_replay::follow::follow;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::kept::complete;
use demi_replay::script::Script;
use demi_replay::{Model, Simulator};
use demi_schemas::{Scenario, Schedule, StepKind};

/// The logs of a run of that many deliveries.
struct Logs(Scenario, u64);

impl Visitor for Logs {
    type Output = Schedule;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Schedule {
        let options = FuzzOptions::new(1, 20, self.1);
        let found = fuzz(&mut sim, &self.0, &options, &mut |_| true).unwrap().unwrap();
        recorded::from_records(found.records.into_iter().map(|(_, records)| records).collect())
    }
}

struct Bench<'a>(&'a mut Criterion, &'a Scenario, &'a Schedule);

impl Visitor for Bench<'_> {
    type Output = ();
    fn visit<M: Model>(self, mut sim: Simulator<M>) {
        let (full, rule) = (self.2, self.1.network);
        let (script, started) = Script::compile(&mut sim, full).unwrap();
        let deliveries = full.steps.iter().filter(|s| s.kind.is_delivery()).count() as u64;
        let mut group = self.0.benchmark_group("logs with threads");
        group.sample_size(10).throughput(Throughput::Elements(deliveries));
        group.bench_function(BenchmarkId::new("follow", deliveries), |b| {
            b.iter(|| assert!(follow(&mut sim, full, &script, rule).unwrap().complete));
        });
        // What a rule that looks at logs alone might keep: half of what each actor took.
        let mut taken = std::collections::BTreeMap::<&str, (usize, usize)>::new();
        for step in full.steps.iter().filter(|s| s.kind == StepKind::Deliver) {
            taken.entry(&step.to).or_default().1 += 1;
        }
        let mut kept = full.clone();
        kept.steps.retain(|step| {
            step.kind != StepKind::Deliver || {
                let (at, all) = taken.get_mut(step.to.as_str()).expect("it was counted");
                *at += 1;
                *at * 2 <= *all
            }
        });
        group.bench_function(BenchmarkId::new("complete", deliveries), |b| {
            b.iter(|| complete(&mut sim, full, (&script, started), &kept, rule).unwrap());
        });
    }
}

fn logs(criterion: &mut Criterion) {
    let mut scenario = Scenario::parse(include_str!("../scenarios/spark-2294.toml")).unwrap();
    for deliveries in [1000, 4000, 16_000] {
        scenario.invariant_check_interval = Some(deliveries);
        let full = with_model(&scenario, Logs(scenario.clone(), u64::from(deliveries))).unwrap();
        with_model(&scenario, Bench(criterion, &scenario, &full)).unwrap();
    }
}

criterion_group!(benches, logs);
criterion_main!(benches);
