//! The order index against a transitive closure by brute force, on random systems with loss, duplicates, restarts,
//! missing logs and missing ids.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{CutSpec, Query, Relation};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::{EventRecord, Kind, Via};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

/// Names joined by a message: the sender's event, the receiver's, and whether it is certain.
fn messages(exec: &Path) -> Vec<(String, String, bool)> {
    let file = std::fs::File::open(exec.join("messages.parquet")).unwrap();
    let mut all = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let name = |side: &str, row: usize| {
            let text = batch.column_by_name(&format!("{side}_actor")).unwrap().as_string::<i32>();
            let incarnation =
                batch.column_by_name(&format!("{side}_incarnation")).unwrap().as_primitive::<Int32Type>();
            let seq = batch.column_by_name(&format!("{side}_seq")).unwrap().as_primitive::<Int64Type>();
            text.is_valid(row).then(|| match incarnation.value(row) {
                0 => format!("{}/{}", text.value(row), seq.value(row)),
                incarnation => format!("{}/{incarnation}/{}", text.value(row), seq.value(row)),
            })
        };
        let certain = batch.column_by_name("certain").unwrap().as_boolean();
        for row in 0..batch.num_rows() {
            if let (Some(send), Some(receive)) = (name("send", row), name("receive", row)) {
                all.push((send, receive, certain.value(row)));
            }
        }
    }
    all
}

fn alone(r: &EventRecord) -> bool {
    r.actor == "_environment" || (matches!(r.kind, Kind::Send | Kind::TimerSet) && r.via == Some(Via::Thread))
}

/// The closure, from the logs and the messages that were matched.
struct Closure {
    names: Vec<String>,
    number: HashMap<String, usize>,
    past: Vec<BTreeSet<usize>>,
    alone: Vec<bool>,
    actor: Vec<String>,
    edges: Vec<(usize, usize)>,
}

fn closure(records: &[EventRecord], messages: &[(String, String, bool)], certain: bool) -> Closure {
    let mut sorted: Vec<&EventRecord> = records.iter().collect();
    sorted.sort_by_key(|r| r.id());
    sorted.dedup_by_key(|r| r.id());
    let names: Vec<String> = sorted.iter().map(|r| r.id().to_string()).collect();
    let number: HashMap<String, usize> = names.iter().enumerate().map(|(i, n)| (n.clone(), i)).collect();
    let mut causes: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, r) in sorted.iter().enumerate() {
        if !alone(r) {
            causes[i].extend(last.insert(&r.actor, i));
        }
    }
    let mut edges = Vec::new();
    for (send, receive, sure) in messages {
        if *sure || !certain {
            causes[number[receive]].push(number[send]);
            edges.push((number[send], number[receive]));
        }
    }
    // Depth first; executions have no cycles.
    let mut past: Vec<Option<BTreeSet<usize>>> = vec![None; names.len()];
    for start in 0..names.len() {
        let mut stack = vec![start];
        while let Some(&e) = stack.last() {
            let open: Vec<usize> = causes[e].iter().copied().filter(|&c| past[c].is_none()).collect();
            if past[e].is_some() || open.is_empty() {
                stack.pop();
                let mut set = BTreeSet::new();
                for &c in &causes[e] {
                    set.insert(c);
                    set.extend(past[c].as_ref().unwrap().iter().copied());
                }
                past[e].get_or_insert(set);
            } else {
                stack.extend(open);
            }
        }
    }
    Closure {
        number,
        past: past.into_iter().map(Option::unwrap).collect(),
        alone: sorted.iter().map(|r| alone(r)).collect(),
        actor: sorted.iter().map(|r| r.actor.clone()).collect(),
        names,
        edges,
    }
}

fn mix() -> impl Strategy<Value = Mix> {
    let share = || prop_oneof![Just(0.0), 0.0..0.3];
    let ids = || prop_oneof![Just(1.0), Just(0.0), 0.0..1.0];
    let shape = (any::<u64>(), 1..7_u32, 5..90_u64, any::<bool>(), 0..6_u32);
    (shape, ids(), [share(), share(), share(), share(), share(), share(), share()]).prop_map(
        |(
            (seed, actors, events, in_order, contents),
            ids,
            [loss, duplicate, restart, forward, timer, environment, thread],
        )| Mix {
            seed,
            actors,
            events,
            ids,
            loss,
            duplicate,
            restart: restart / 3.0,
            forward,
            timer,
            environment,
            thread,
            in_order,
            contents,
            ..Mix::default()
        },
    )
}

/// Compares all that the index says of an execution with the closure; pairs of events are all compared.
fn check(records: &[EventRecord], certain: bool) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    write_store_file(&file, records.to_vec()).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, copy: true, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    let query = Query::open(&exec, certain).unwrap();
    let mut prepared = Query::open(&exec, certain).unwrap();
    prepared.prepare_for_many(u64::MAX).unwrap();
    let truth = closure(records, &messages(&exec), certain);
    let n = truth.names.len();
    prop_assert_eq!(query.index().header().events as usize, n);
    let events: Vec<u32> = truth.names.iter().map(|name| query.index().event(name).unwrap()).collect();
    let mut future_size = vec![0_u64; n];
    for (i, &event) in events.iter().enumerate() {
        prop_assert_eq!(query.index().name(event).unwrap().to_string(), truth.names[i].clone());
        truth.past[i].iter().for_each(|&p| future_size[p] += 1);
    }
    for i in 0..n {
        let past = query.past(events[i]).unwrap();
        prop_assert_eq!(past.size, truth.past[i].len() as u64, "past of {}", truth.names[i]);
        let outside = truth.past[i].iter().filter(|&&p| truth.alone[p]).count() as u64;
        prop_assert_eq!(past.outside, outside, "outside before {}", truth.names[i]);
        let mut frontier: BTreeMap<String, String> = BTreeMap::new();
        for &p in truth.past[i].iter().chain([&i]).filter(|&&p| !truth.alone[p]) {
            let last = frontier.entry(truth.actor[p].clone()).or_insert_with(|| truth.names[p].clone());
            if truth.number[last] < p {
                last.clone_from(&truth.names[p]);
            }
        }
        prop_assert_eq!(&past.frontier, &frontier, "frontier of {}", truth.names[i]);
        prop_assert_eq!(prepared.past(events[i]).unwrap(), past, "past of {}, prepared", truth.names[i]);
        let future = query.future(events[i]).unwrap();
        prop_assert_eq!(future.size, future_size[i], "future of {}", truth.names[i]);
        for j in 0..n {
            let expected = match (truth.past[j].contains(&i), truth.past[i].contains(&j)) {
                _ if i == j => Relation::Equal,
                (true, _) => Relation::Before,
                (_, true) => Relation::After,
                _ => Relation::Concurrent,
            };
            let got = query.order(events[i], events[j]).unwrap();
            prop_assert_eq!(got, expected, "{} and {}", truth.names[i], truth.names[j]);
        }
    }
    paths(&query, &truth, &events)?;
    cuts(&query, &truth, records)
}

/// A chain is made of edges, and no chain has fewer messages.
fn paths(query: &Query, truth: &Closure, events: &[u32]) -> Result<(), TestCaseError> {
    let n = events.len();
    for (i, j) in (0..n).flat_map(|i| [(i, (i * 7 + 3) % n), (i, (i + n / 2) % n), (i, n - 1 - i)]) {
        let found = query.index().path(events[i], events[j], query.is_certain()).unwrap();
        let before = i == j || truth.past[j].contains(&i);
        prop_assert_eq!(found.is_some(), before, "{} to {}", truth.names[i], truth.names[j]);
        let Some(hops) = found else { continue };
        let mut at = i;
        for hop in &hops {
            prop_assert_eq!(&hop.from, &truth.names[at]);
            let to = truth.number[&hop.to];
            let edge = match hop.is_log() {
                true => truth.actor[at] == truth.actor[to] && truth.past[to].contains(&at),
                false => truth.edges.contains(&(at, to)),
            };
            prop_assert!(edge, "{:?}", hop);
            at = to;
        }
        prop_assert_eq!(at, j);
        // Fewest messages by relaxing over all events: order in a log is free.
        let mut least = vec![usize::MAX; n];
        least[i] = 0;
        loop {
            let mut changed = false;
            for &(send, receive) in &truth.edges {
                let near = (0..n)
                    .filter(|&e| least[e] != usize::MAX)
                    .filter(|&e| e == send || (same_log(truth, e, send) && e < send))
                    .map(|e| least[e] + 1)
                    .min();
                if let Some(cost) = near.filter(|&c| c < least[receive]) {
                    least[receive] = cost;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let here = (0..n)
            .filter(|&e| least[e] != usize::MAX && (e == j || (same_log(truth, e, j) && e < j)))
            .map(|e| least[e])
            .min();
        prop_assert_eq!(Some(hops.iter().filter(|h| !h.is_log()).count()), here, "{:?}", hops);
    }
    Ok(())
}

fn same_log(truth: &Closure, a: usize, b: usize) -> bool {
    truth.actor[a] == truth.actor[b] && !truth.alone[a] && !truth.alone[b]
}

/// Cuts through the middle of logs, and causal pasts.
fn cuts(query: &Query, truth: &Closure, records: &[EventRecord]) -> Result<(), TestCaseError> {
    let mut logs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    (0..truth.names.len()).for_each(|i| logs.entry(&truth.actor[i]).or_default().push(i));
    let kinds: HashMap<String, Kind> = records.iter().map(|r| (r.id().to_string(), r.kind)).collect();
    for turn in 0..truth.names.len().min(24) {
        let mut cut = CutSpec::default();
        let mut inside: BTreeSet<usize> = BTreeSet::new();
        for (k, (actor, log)) in logs.iter().enumerate() {
            let take = (turn * 5 + k * 3 + turn * k) % (log.len() + 1);
            if *actor == "_environment" || take == 0 {
                continue;
            }
            cut.add(query, &truth.names[log[take - 1]]).unwrap();
            inside.extend(log[..take].iter().filter(|&&e| !truth.alone[e]));
        }
        let answer = query.cut(&cut).unwrap();
        let lacks = |set: &BTreeSet<usize>| {
            set.iter().any(|&e| truth.past[e].iter().any(|p| !truth.alone[*p] && !set.contains(p)))
        };
        prop_assert_eq!(answer.consistent, !lacks(&inside), "{:?}", answer);
        if let Some(missing) = &answer.missing {
            let (event, before) = (truth.number[&missing.event], truth.number[&missing.before]);
            prop_assert!(!inside.contains(&event) && truth.past[before].contains(&event), "{:?}", missing);
            prop_assert!(inside.contains(&before), "{:?}", missing);
        } else if !query.is_certain() {
            let flying = truth.edges.iter().filter(|(s, r)| {
                let timer = kinds[&truth.names[*r]] == Kind::TimerFire;
                inside.contains(s) && !inside.contains(r) && !truth.alone[*r] && !timer
            });
            prop_assert_eq!(answer.in_flight, Some(flying.count() as u64));
        }
        prop_assert_eq!(answer.ground_state, answer.in_flight == Some(0));
    }
    for i in (0..truth.names.len()).step_by(7) {
        let answer = query.cut_of(&[query.index().event(&truth.names[i]).unwrap()]).unwrap();
        prop_assert!(answer.consistent, "{:?}", answer.missing);
    }
    Ok(())
}

/// Half of the cases a minute that continuous integration can spare; `DEMI_CASES=10000` for the whole.
fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_the_closure(
        mix in mix(), gone in prop_oneof![Just(0_u32), 0..4_u32], holes in prop_oneof![Just(0.0), 0.0..0.2_f64], certain: bool,
    ) {
        let mut random = mix.seed | 1;
        let mut chance = |share: f64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) as f64) / f64::from(1_u32 << 31) < share
        };
        let missing: Vec<String> = (0..gone).map(|a| format!("actor-{:05}", a * 2)).collect();
        let records: Vec<EventRecord> = Generator::new(&mix)
            .map(|g| g.record)
            .filter(|r| !missing.contains(&r.actor) && !chance(holes))
            .collect();
        prop_assume!(!records.is_empty());
        check(&records, certain)?;
    }
}
