//! Order from vector clocks: against the truth on random executions, and refused where clocks contradict.

use std::path::Path;

use demi_lineage::generate::write_store_file;
use demi_lineage::{BuildOptions, build};
use demi_schemas::summary::BuildSummary;
use demi_schemas::{EventRecord, Kind};
use proptest::prelude::*;

#[path = "../../../tests/it/third_party/order.rs"]
mod order;

use order::Order;

fn event(host: usize, seq: u64, clock: &[u64], line: u64) -> EventRecord {
    let mut record = EventRecord::new(format!("h{host}"), seq, Kind::Local);
    let named = clock.iter().enumerate().filter(|(_, n)| **n > 0);
    record.vector_clock = Some(named.map(|(h, &n)| (format!("h{h}"), n)).collect());
    record.source = Some("clocks.log".into());
    record.line = Some(line);
    record
}

fn try_build(dir: &Path, records: Vec<EventRecord>) -> Result<BuildSummary, String> {
    let file = dir.join("store.parquet");
    let mut actors: Vec<String> = records.iter().map(|r| r.actor.clone()).collect();
    actors.sort();
    actors.dedup();
    write_store_file(&file, records).unwrap();
    let violation = format!("actors:{}", actors.join(",")).parse().unwrap();
    let options = BuildOptions { system: "clocks".into(), violation, copy: true, ..BuildOptions::default() };
    build(&[file.into()], &options, &dir.join("exec"), &mut |_| {}).map_err(|e| e.to_string())
}

/// A random execution: each step is an event of a host, and takes over the clocks of up to two earlier events.
fn execution(hosts: usize, steps: &[(usize, usize, usize, u8)]) -> Vec<(usize, Vec<u64>)> {
    let mut now = vec![vec![0_u64; hosts]; hosts];
    let mut log: Vec<(usize, Vec<u64>)> = Vec::new();
    for &(host, one, two, receives) in steps {
        let host = host % hosts;
        for from in [one, two].into_iter().take(usize::from(receives % 3)) {
            if !log.is_empty() {
                let clock = log[from % log.len()].1.clone();
                now[host].iter_mut().zip(clock).for_each(|(a, b)| *a = b.max(*a));
            }
        }
        now[host][host] += 1;
        log.push((host, now[host].clone()));
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_order_is_that_of_the_clocks(
        hosts in 1usize..6,
        steps in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<usize>(), any::<u8>()), 1..50),
        shift in any::<usize>(),
    ) {
        let log = execution(hosts, &steps);
        let mut records: Vec<EventRecord> = log
            .iter()
            .enumerate()
            .map(|(i, (host, clock))| event(*host, clock[*host], clock, i as u64 + 1))
            .collect();
        // Files need not be in order.
        let by = shift % records.len();
        records.rotate_left(by);
        let dir = tempfile::tempdir().unwrap();
        let summary = try_build(dir.path(), records).unwrap();
        let order = Order::read(&dir.path().join("exec"));
        let find = |i: usize| order.find(&(format!("h{}", log[i].0), log[i].1[log[i].0]));
        for i in 0..log.len() {
            for j in 0..log.len() {
                let (a, b) = (&log[i], &log[j]);
                let truly = i != j && b.1[a.0] >= a.1[a.0];
                prop_assert_eq!(order.before(find(i), find(j)), truly, "{:?} {:?}", a, b);
            }
        }
        // What was added is what covers, and nothing else.
        prop_assert_eq!(order.covering().len() as u64, summary.clock_edges);
        prop_assert_eq!(order.edges.len() as u64, summary.clock_edges);
    }

    /// Clocks beside messages that have ids: the same order, and no edge is told twice.
    #[test]
    fn messages_and_clocks_agree(
        hosts in 2usize..5,
        steps in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 1..50),
    ) {
        let mut now = vec![vec![0_u64; hosts]; hosts];
        let mut records = Vec::new();
        let mut sent: Vec<(usize, u64, Vec<u64>)> = Vec::new();
        for (step, &(host, other, receives)) in steps.iter().enumerate() {
            let host = host % hosts;
            let pending = sent.iter().position(|(to, ..)| *to == host).filter(|_| receives);
            if let Some(at) = pending {
                let (_, id, clock) = sent.remove(at);
                now[host].iter_mut().zip(&clock).for_each(|(a, b)| *a = (*b).max(*a));
                now[host][host] += 1;
                let mut record = event(host, now[host][host], &now[host], step as u64);
                (record.kind, record.msg_id) = (Kind::Receive, Some(id.to_string()));
                record.from = Some("*".into());
                records.push(record);
            } else {
                let to = (host + 1 + other % (hosts - 1)) % hosts;
                now[host][host] += 1;
                let mut record = event(host, now[host][host], &now[host], step as u64);
                (record.kind, record.msg_id) = (Kind::Send, Some(step.to_string()));
                record.to = Some(format!("h{to}"));
                records.push(record);
                sent.push((to, step as u64, now[host].clone()));
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let matched = records.iter().filter(|r| r.kind == Kind::Receive).count() as u64;
        let summary = try_build(dir.path(), records).unwrap();
        prop_assert_eq!((summary.matched, summary.clock_edges), (matched, 0), "{:?}", summary.warnings);
        prop_assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    }
}

#[test]
fn clocks_that_contradict_are_refused_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |clocks: &[(usize, u64, &[u64])]| {
        let records =
            clocks.iter().zip(1..).map(|((host, seq, clock), line)| event(*host, *seq, clock, line));
        try_build(dir.path(), records.collect()).unwrap_err()
    };
    // No own entry.
    let error = refused(&[(0, 1, &[1, 0]), (1, 1, &[1, 0])]);
    assert!(error.contains("clocks.log:2: event h1/1: its clock has no entry of its own"), "{error}");
    // Knowledge is lost, by a smaller count and by a missing entry.
    let error = refused(&[(1, 1, &[0, 1]), (1, 2, &[0, 2]), (0, 1, &[1, 2]), (0, 2, &[2, 1])]);
    assert!(error.contains("clocks.log:4: event h0/2: its clock says 1 for 'h1', after 2"), "{error}");
    let error = refused(&[(1, 1, &[0, 1]), (0, 1, &[1, 1]), (0, 2, &[2, 0])]);
    assert!(error.contains("clocks.log:3: event h0/2: its clock lacks entries"), "{error}");
    // Two events before each other.
    let error = refused(&[(0, 1, &[1, 1]), (1, 1, &[1, 1])]);
    assert!(error.contains("h0/1: it knows of h1/1, whose clock knows of it"), "{error}");
    // Knows of an event, but not of what that knew.
    let error = refused(&[(2, 1, &[0, 0, 1]), (1, 1, &[0, 1, 1]), (0, 1, &[1, 1, 0])]);
    assert!(
        error.contains("clocks.log:3: event h0/1: it knows of h1/1, but of 1 events of 'h2' only 0"),
        "{error}"
    );
    // The own entry falls although the position grows.
    let error = refused(&[(0, 1, &[2, 0]), (0, 2, &[1, 0]), (1, 1, &[0, 1])]);
    assert!(error.contains("its own entry is 1, after 2"), "{error}");
}

#[test]
fn what_is_incomplete_is_said_and_still_ordered() {
    let dir = tempfile::tempdir().unwrap();
    // h1's first event and all of h2's log are missing.
    let records = vec![event(1, 2, &[0, 2, 1], 1), event(0, 1, &[1, 2, 1], 2), event(1, 3, &[0, 3, 4], 3)];
    let summary = try_build(dir.path(), records).unwrap();
    let text = summary.warnings.join("\n");
    assert!(text.contains("clocks skip own entries at 1 events (first h1/2)"), "{text}");
    assert!(text.contains("3 clocks name 'h2', which has no log"), "{text}");
    let order = Order::read(&dir.path().join("exec"));
    assert_eq!((order.ordered(), order.edges.len()), (2, 1));
}

#[test]
fn events_that_do_not_tick_are_after_the_one_that_did() {
    let dir = tempfile::tempdir().unwrap();
    // h0 logs two events of one clock; h1 heard of the clock, so of the first of them.
    let records = vec![event(0, 1, &[1, 0], 1), event(0, 2, &[1, 0], 2), event(1, 1, &[1, 1], 3)];
    try_build(dir.path(), records).unwrap();
    let order = Order::read(&dir.path().join("exec"));
    let at = |host: &str, n| order.find(&(host.to_owned(), n));
    assert!(order.before(at("h0", 1), at("h1", 1)));
    assert!(!order.before(at("h0", 2), at("h1", 1)));
}

#[test]
fn one_message_may_reach_several() {
    let dir = tempfile::tempdir().unwrap();
    let line = |actor: &str, seq, kind, other: &str| {
        let mut record = EventRecord::new(actor, seq, kind);
        record.msg_id = Some("m".into());
        if kind == Kind::Send {
            record.to = Some(other.into());
        } else {
            record.from = Some(other.into());
        }
        record
    };
    let records = vec![
        line("a", 1, Kind::Send, "*"),
        line("b", 1, Kind::Receive, "a"),
        line("c", 1, Kind::Receive, "a"),
        line("c", 2, Kind::Receive, "a"),
    ];
    let summary = try_build(dir.path(), records).unwrap();
    assert_eq!((summary.matched, summary.unmatched.duplicate), (2, 1));
    let order = Order::read(&dir.path().join("exec"));
    let at = |host: &str, n| order.find(&(host.to_owned(), n));
    assert!(order.before(at("a", 1), at("b", 1)) && order.before(at("a", 1), at("c", 1)));
    assert_eq!(order.ordered(), 4);
}
