//! Random systems whose truth is known, against brute force.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use demi_lineage::generate::{Generated, Generator, Mix, write_sorted_file, write_store_file};
use demi_lineage::{BuildOptions, ViolationSpec, build, execution};
use demi_schemas::summary::{BuildSummary, ProvenanceRule};
use demi_schemas::{EventRecord, Kind, Via};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

/// What `events.parquet` says of an event.
#[derive(Debug)]
struct Found {
    kept: bool,
    reason: String,
    depth: i64,
    order: i64,
}

fn rows(path: &Path) -> Vec<arrow_array::RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect()
}

fn name(batch: &arrow_array::RecordBatch, prefix: &str, row: usize) -> Option<String> {
    let column = |n: &str| batch.column_by_name(&format!("{prefix}{n}")).unwrap();
    let actor = column("actor");
    if actor.is_null(row) {
        return None;
    }
    let incarnation = column("incarnation").as_primitive::<Int32Type>().value(row) as u32;
    let seq = column("seq").as_primitive::<Int64Type>().value(row) as u64;
    let actor = actor.as_string::<i32>().value(row).to_owned();
    Some(demi_schemas::EventId { actor, incarnation, seq }.to_string())
}

fn found(exec: &Path) -> HashMap<String, Found> {
    let mut all = HashMap::new();
    for batch in rows(&exec.join(execution::EVENTS)) {
        for row in 0..batch.num_rows() {
            let long = |n: &str| batch.column_by_name(n).unwrap().as_primitive::<Int64Type>().value(row);
            let kept = batch.column_by_name("kept").unwrap().as_boolean().value(row);
            let reason = batch.column_by_name("reason").unwrap().as_string::<i32>().value(row).to_owned();
            let event = Found { kept, reason, depth: long("depth"), order: long("order") };
            all.insert(name(&batch, "", row).unwrap(), event);
        }
    }
    all
}

/// Receive to send, as found.
fn matches(exec: &Path) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for batch in rows(&exec.join(execution::MESSAGES)) {
        for row in 0..batch.num_rows() {
            if let (Some(send), Some(receive)) = (name(&batch, "send_", row), name(&batch, "receive_", row)) {
                all.insert(receive, send);
            }
        }
    }
    all
}

fn run(dir: &Path, records: Vec<EventRecord>, options: &BuildOptions) -> (BuildSummary, PathBuf) {
    let file = dir.join("store.parquet");
    write_store_file(&file, records).unwrap();
    let exec = dir.join("exec");
    (build(&[file.into()], options, &exec, &mut |_| {}).unwrap(), exec)
}

fn records(events: &[Generated]) -> Vec<EventRecord> {
    events.iter().map(|g| g.record.clone()).collect()
}

fn alone(r: &EventRecord) -> bool {
    r.actor == "_environment" || (r.kind == Kind::Send && r.via == Some(Via::Thread))
}

/// Direct causes of each event, by place in the global order. Of the receives of a message by one actor, only the first has its send as cause.
fn causes(events: &[Generated]) -> Vec<Vec<usize>> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut received = BTreeSet::new();
    let mut all = Vec::new();
    for (i, g) in events.iter().enumerate() {
        let mut direct = Vec::new();
        if !alone(&g.record) {
            direct.extend(last.insert(&g.record.actor, i));
        }
        if let Some(send) = g.cause
            && received.insert((send, &g.record.actor))
        {
            direct.push(send as usize);
        }
        direct.extend(g.spans.iter().map(|place| *place as usize));
        all.push(direct);
    }
    all
}

fn past(causes: &[Vec<usize>]) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<BTreeSet<usize>> = Vec::new();
    for direct in causes {
        let mut set = BTreeSet::new();
        for &d in direct {
            set.insert(d);
            set.extend(all[d].iter().copied());
        }
        all.push(set);
    }
    all
}

fn mix() -> impl Strategy<Value = Mix> {
    let share = || prop_oneof![Just(0.0), 0.0..0.3];
    (any::<u64>(), 1..6_u32, 5..120_u64, share(), share(), share(), share(), share(), share(), any::<bool>())
        .prop_map(|(seed, actors, events, loss, restart, forward, timer, environment, thread, in_order)| {
            Mix {
                seed,
                actors,
                events,
                loss,
                restart: restart / 3.0,
                forward,
                timer,
                environment,
                thread,
                in_order,
                ..Mix::default()
            }
        })
}

fn some_duplicates() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..0.2_f64]
}

fn targets(events: &[Generated]) -> Vec<usize> {
    let known: BTreeSet<&str> =
        events.iter().map(|g| g.record.actor.as_str()).filter(|a| a.starts_with("actor")).collect();
    let last = |actor: &str| events.iter().rposition(|g| g.record.actor == actor);
    known.into_iter().filter(|a| *a < "actor-00002").filter_map(last).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn order_depth_and_provenance_agree_with_brute_force(mix in mix(), strict: bool, duplicate in some_duplicates()) {
        let mix = Mix { duplicate, ..mix };
        let events: Vec<Generated> = Generator::new(&mix).collect();
        let targets = targets(&events);
        prop_assume!(!targets.is_empty());
        let names: Vec<String> = events.iter().map(|g| g.record.id().to_string()).collect();
        let affected = targets.iter().map(|&t| events[t].record.actor.clone()).collect();
        let rule = if strict { ProvenanceRule::Strict } else { ProvenanceRule::Inclusive };
        let options = BuildOptions { violation: ViolationSpec::Actors(affected), rule, copy: true, ..BuildOptions::default() };
        let dir = tempfile::tempdir().unwrap();
        let (summary, exec) = run(dir.path(), records(&events), &options);
        let found = found(&exec);
        prop_assert_eq!(found.len(), events.len());
        // Channels that are out of order (second deliveries are) but look in order for a while are found out later,
        // with a note. Nothing else may be said, and nothing at all where the network keeps order.
        let keeps_order = mix.in_order && duplicate == 0.0;
        let guessed = |w: &str| !keeps_order && w.contains("fit no in-order channel");
        let other = summary.warnings.iter().filter(|w| !guessed(w)).count();
        prop_assert_eq!(other, 0, "{:?}", summary.warnings);
        prop_assert!(!keeps_order || summary.channels_in_order);

        // Causes come first, and depth is the longest chain.
        let causes = causes(&events);
        let mut depth = vec![1_i64; events.len()];
        for (i, direct) in causes.iter().enumerate() {
            for &d in direct {
                prop_assert!(found[&names[d]].order < found[&names[i]].order);
                depth[i] = depth[i].max(depth[d] + 1);
            }
            prop_assert_eq!(found[&names[i]].depth, depth[i], "{}", names[i]);
        }
        let orders: BTreeSet<i64> = found.values().map(|f| f.order).collect();
        prop_assert_eq!(orders, (1..=events.len() as i64).collect::<BTreeSet<_>>());

        // The causal past.
        let past = past(&causes);
        let delivery = |e: usize| events[e].record.kind.is_delivery();
        let aims: Vec<usize> = if strict {
            let last = |t: usize| (0..=t).rev().find(|&e| {
                delivery(e) && events[e].record.actor == events[t].record.actor
            });
            targets.iter().filter_map(|&t| last(t)).collect()
        } else {
            targets.clone()
        };
        for e in (0..events.len()).filter(|&e| delivery(e)) {
            let expected = aims.iter().any(|&a| past[a].contains(&e) || (!strict && a == e));
            let got = &found[&names[e]];
            prop_assert_eq!(got.kept, expected, "{} {:?}", names[e], got);
        }
        if !strict {
            for &a in &aims {
                prop_assert_eq!(&found[&names[a]].reason, "affected");
                for &e in &past[a] {
                    prop_assert!(found[&names[e]].kept, "{} {:?}", names[e], found[&names[e]]);
                }
            }
        }
        let after: BTreeSet<usize> =
            (0..events.len()).filter(|&e| aims.iter().any(|a| past[e].contains(a))).collect();
        for e in (0..events.len()).filter(|&e| !found[&names[e]].kept && !aims.contains(&e)) {
            let expected = if after.contains(&e) { "after" } else { "concurrent" };
            prop_assert_eq!(&found[&names[e]].reason, expected, "{}", names[e]);
        }
        let kept = execution::load_schedule(&exec, true).unwrap();
        prop_assert_eq!(kept.deliveries() as u64, summary.kept_deliveries);
        // A schedule that is not written is composed from the tables, and is the same.
        let text = std::fs::read_to_string(exec.join(execution::SCHEDULE)).unwrap();
        let options = BuildOptions { readable: 0, ..options };
        let other = tempfile::tempdir().unwrap();
        let (_, long) = run(other.path(), records(&events), &options);
        prop_assert_eq!(long.join(execution::SCHEDULE).exists(), summary.kept_deliveries == 0);
        let mut written = Vec::new();
        execution::write_schedule(&long, other.path(), &mut written, &long).unwrap();
        prop_assert_eq!(String::from_utf8(written).unwrap(), text);
        prop_assert_eq!(execution::load_schedule(&long, true).unwrap().to_text(), kept.to_text());
    }

    #[test]
    fn clocks_multicast_and_spans_give_the_order_in_which_they_were_made(
        mix in mix(), clocks: bool, multicast in 0.0..0.4_f64, spans in prop_oneof![Just(0.0), 0.1..0.6_f64],
    ) {
        let mix = Mix { clocks, multicast, spans, ..mix };
        let events: Vec<Generated> = Generator::new(&mix).collect();
        let options = BuildOptions { violation: ViolationSpec::None, copy: true, ..BuildOptions::default() };
        let dir = tempfile::tempdir().unwrap();
        let (summary, exec) = run(dir.path(), records(&events), &options);
        let found = found(&exec);
        prop_assert_eq!(found.len(), events.len());
        // What threads send has no clock, so those that receive it know less than their ids say.
        let said = summary.warnings.iter().find(|w| !w.contains("fit no in-order channel"));
        prop_assert!(said.is_none(), "{:?}", summary.warnings);
        let name = |place: usize| events[place].record.id().to_string();
        let mut depth = vec![1_i64; events.len()];
        for (place, direct) in causes(&events).iter().enumerate() {
            for &cause in direct {
                prop_assert!(found[&name(cause)].order < found[&name(place)].order);
                depth[place] = depth[place].max(depth[cause] + 1);
            }
            prop_assert_eq!(found[&name(place)].depth, depth[place], "{}", name(place));
        }
    }

    #[test]
    fn without_ids_in_order_channels_are_matched_in_truth(
        seed: u64, actors in 1..5_u32, events in 5..200_u64, contents in 0..4_u32, mixed: bool,
    ) {
        let ids = if mixed { 0.5 } else { 0.0 };
        let mix = Mix { seed, actors, events, ids, contents, ..Mix::default() };
        let events: Vec<Generated> = Generator::new(&mix).collect();
        let affected = vec![events[0].record.actor.clone()];
        let options = BuildOptions { violation: ViolationSpec::Actors(affected), copy: true, ..BuildOptions::default() };
        let dir = tempfile::tempdir().unwrap();
        let (summary, exec) = run(dir.path(), records(&events), &options);
        let got = matches(&exec);
        let receives: Vec<&Generated> = events.iter().filter(|g| g.cause.is_some()).collect();
        prop_assert_eq!(got.len(), receives.len());
        for g in receives {
            let send = events[g.cause.unwrap() as usize].record.id().to_string();
            prop_assert_eq!(&got[&g.record.id().to_string()], &send);
        }
        prop_assert!(summary.channels_in_order);
        prop_assert_eq!(summary.unmatched.lost, 0);
    }

    #[test]
    fn rows_in_any_order_give_the_same_bytes(mix in mix(), ids in 0.0..1.0_f64, cut in 0.0..1.0_f64, shuffle: u64) {
        let mix = Mix { ids, contents: 3, duplicate: 0.1, ..mix };
        let events: Vec<Generated> = Generator::new(&mix).collect();
        let affected = vec![events[0].record.actor.clone()];
        prop_assume!(affected[0].starts_with("actor"));
        let options = BuildOptions { violation: ViolationSpec::Actors(affected), copy: true, ..BuildOptions::default() };
        let dir = tempfile::tempdir().unwrap();
        let straight = records(&events);
        let (_, exec) = run(dir.path(), straight.clone(), &options);
        let mut mixed = straight;
        let n = mixed.len();
        (0..n).for_each(|i| mixed.swap(i, (shuffle.wrapping_mul(i as u64 * 2 + 1) >> 7) as usize % n));
        let rest = mixed.split_off((n as f64 * cut) as usize);
        let files = [dir.path().join("b.parquet"), dir.path().join("a.parquet")];
        write_store_file(&files[0], mixed).unwrap();
        write_store_file(&files[1], rest).unwrap();
        let again = dir.path().join("again");
        build(&files.map(Into::into), &options, &again, &mut |_| {}).unwrap();
        // Files that say that they are in order are read in one pass, in whatever order they come.
        let mut sorted = records(&events);
        sorted.sort_by_key(|r| (r.actor.clone(), r.incarnation, r.seq));
        let rest = sorted.split_off((n as f64 * cut) as usize);
        let files = [dir.path().join("d.parquet"), dir.path().join("c.parquet")];
        write_sorted_file(&files[0], rest.clone()).unwrap();
        write_sorted_file(&files[1], sorted.clone()).unwrap();
        let once = dir.path().join("once");
        build(&files.map(Into::into), &options, &once, &mut |_| {}).unwrap();
        // One that says so and is not is read all the same.
        let files = [dir.path().join("f.parquet"), dir.path().join("e.parquet")];
        rest.iter().rev().for_each(|r| sorted.insert(sorted.len() / 2, r.clone()));
        write_sorted_file(&files[0], sorted).unwrap();
        write_sorted_file(&files[1], []).unwrap();
        let wrong = dir.path().join("wrong");
        build(&files.map(Into::into), &options, &wrong, &mut |_| {}).unwrap();
        for file in [execution::EVENTS, execution::MESSAGES, execution::SCHEDULE, execution::SUMMARY] {
            let bytes = |exec: &Path| std::fs::read(exec.join(file)).unwrap();
            for other in [&again, &once, &wrong] {
                prop_assert!(bytes(&exec) == bytes(other), "{} {file}", other.display());
            }
        }
    }

    #[test]
    fn the_full_schedule_can_be_replayed_channel_by_channel(mix in mix()) {
        let mix = Mix { in_order: true, loss: 0.0, ..mix };
        let events: Vec<Generated> = Generator::new(&mix).collect();
        let affected = vec![events[0].record.actor.clone()];
        prop_assume!(affected[0].starts_with("actor"));
        let options = BuildOptions { violation: ViolationSpec::Actors(affected), copy: true, ..BuildOptions::default() };
        let dir = tempfile::tempdir().unwrap();
        let (summary, exec) = run(dir.path(), records(&events), &options);
        prop_assert!(summary.channels_in_order, "{:?}", summary.warnings);
        crate::common::replay(&execution::load_schedule(&exec, false).unwrap(), &sends_outside_steps(&events));
    }
}

/// Sends that no step of a schedule makes: logged before the actor's first step.
fn sends_outside_steps(events: &[Generated]) -> Vec<(String, String, String)> {
    let mut begun = BTreeSet::new();
    let mut sends = Vec::new();
    for r in events.iter().map(|g| &g.record).filter(|r| r.actor.starts_with("actor")) {
        if r.kind == Kind::Send && !begun.contains(&r.actor) {
            sends.push((r.actor.clone(), r.to.clone().unwrap(), r.payload.clone().unwrap()));
        } else if r.kind != Kind::TimerSet {
            begun.insert(r.actor.clone());
        }
    }
    sends
}
