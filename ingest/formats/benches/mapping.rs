//! How fast mappings turn lines into event records, storing nothing.

use std::fmt::Write;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use demi_formats::mapping::{Mapper, Mapping};

/// Events of each log.
const EVENTS: usize = 100_000;

/// A log of ten hosts in rounds, each hearing of the one before it.
fn shiviz() -> String {
    let mut out = String::new();
    let mut clocks = [[0_u64; 10]; 10];
    for i in 0..EVENTS {
        let host = i % 10;
        if i > 0 {
            let before = clocks[(host + 9) % 10];
            clocks[host].iter_mut().zip(before).for_each(|(a, b)| *a = b.max(*a));
        }
        clocks[host][host] += 1;
        let known = clocks[host].iter().enumerate().filter(|(_, n)| **n > 0);
        let clock: Vec<String> = known.map(|(h, n)| format!("\"host-{h}\":{n}")).collect();
        let _ = writeln!(out, "host-{host} {{{}}}\nReceived token {i}", clock.join(", "));
    }
    out
}

fn json_lines() -> String {
    let mut out = String::new();
    for i in 0..EVENTS {
        let (a, b) = (i % 10, (i + 1) % 10);
        let _ = match i % 2 {
            0 => writeln!(
                out,
                "{{\"node\":\"n{a}\",\"kind\":\"send\",\"msg_id\":\"{i}\",\"to\":\"n{b}\",\"msg\":\"Vote({i})\",\"ts\":{i}}}"
            ),
            _ => writeln!(
                out,
                "{{\"node\":\"n{a}\",\"kind\":\"receive\",\"msg_id\":\"{}\",\"from\":\"n{b}\",\"msg\":\"Vote({i})\",\"ts\":{i}}}",
                i - 1
            ),
        };
    }
    out
}

fn akka() -> String {
    let mut out = String::new();
    for i in 0..EVENTS {
        let _ = writeln!(
            out,
            "[DEBUG] [03/01/2024 10:00:00.003] [sys-akka.actor.default-dispatcher-5] [akka://sys/user/a{}] received handled message Ball({i}) from Actor[akka://sys/user/a{}#-1712]",
            i % 10,
            (i + 1) % 10
        );
    }
    out
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("mapping");
    group.sample_size(10);
    for (name, log) in [("shiviz", shiviz()), ("json", json_lines()), ("akka", akka())] {
        let mapping = Mapping::named(name).unwrap_or_else(|e| unreachable!("{e}"));
        group.throughput(Throughput::Elements(EVENTS as u64));
        group.bench_function(name, |b| {
            b.iter(|| Mapper::new(&mapping).map(|mut m| m.map_text("bench.log", log.as_bytes()).len()));
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
