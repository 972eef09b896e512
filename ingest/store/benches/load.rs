//! Records a second: parsing alone, a load into an empty store, and the same load again.

#![expect(clippy::panic, reason = "a measurement that fails has no result")]

mod support;

use std::hint::black_box;
use std::io::Cursor;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use demi_formats::{Source, Sources, record_digest};
use demi_schemas::EventRecord;
use demi_store::{LoadOptions, Store, load};

const RECORDS: u64 = 1_000_000;

/// Bytes shared by all rounds.
#[derive(Clone)]
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn run(store: &mut Store, input: &Shared) -> u64 {
    let sources = Sources(vec![Source::stream("generated", Box::new(Cursor::new(input.clone())))]);
    match load(store, sources, &LoadOptions::new("bench"), |_| {}) {
        Ok(report) => report.summary.lines,
        Err(error) => panic!("{error}"),
    }
}

fn new_store() -> (tempfile::TempDir, Store) {
    let made =
        tempfile::tempdir().ok().and_then(|dir| Store::create(dir.path()).ok().map(|store| (dir, store)));
    match made {
        Some(made) => made,
        None => panic!("no store in the temporary directory"),
    }
}

fn benches(c: &mut Criterion) {
    let mut input = Vec::new();
    if let Err(error) = support::generate(RECORDS, &mut input) {
        panic!("{error}");
    }
    let input = Shared(Arc::new(input));

    let mut group = c.benchmark_group("records");
    group.sample_size(10);
    let sample: Vec<&[u8]> = input.0.split(|b| *b == b'\n').take(100_000).collect();
    group.throughput(Throughput::Elements(sample.len() as u64));
    group.bench_function("parse", |b| {
        b.iter(|| sample.iter().filter(|line| black_box(EventRecord::parse(line)).is_ok()).count());
    });
    group.bench_function("parse and digest", |b| {
        b.iter(|| sample.iter().flat_map(|line| EventRecord::parse(line)).map(|r| record_digest(&r)).max());
    });
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("load a million", |b| {
        b.iter_batched(
            new_store,
            |(dir, mut store)| (run(&mut store, &input), store, dir),
            BatchSize::PerIteration,
        );
    });
    let (_dir, mut store) = new_store();
    run(&mut store, &input);
    group.bench_function("load a million again", |b| b.iter(|| run(&mut store, &input)));
    group.finish();
}

criterion_group!(load_benches, benches);
criterion_main!(load_benches);
