use proptest::prelude::*;

use super::*;
use demi_store::Store;
use demi_store::completeness::completeness;
use demi_store::delta::Gone;
use demi_store::locations::Entry;

/// A step: records of an actor of a system, or a commit, or one of which only the first half is done before all begins anew.
#[derive(Clone, Debug)]
enum Step {
    Record { system: usize, actor: u32, incarnation: u32, seq: u64, digest: u64 },
    Commit,
    Torn,
    Anew,
}

const SYSTEMS: [&str; 2] = ["b", "a"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let record = (0usize..2, 0u32..150, 0u32..2, 1u64..5, 0u64..20).prop_map(
        |(system, actor, incarnation, seq, digest)| Step::Record { system, actor, incarnation, seq, digest },
    );
    let step =
        prop_oneof![60 => record, 1 => Just(Step::Commit), 1 => Just(Step::Torn), 1 => Just(Step::Anew)];
    prop::collection::vec(step, 0..500)
}

/// The systems of a store with what is counted of them, as the committer has them at its start.
fn open(store: &Store, versions: u64, scratch: &std::path::Path) -> (Completeness, Vec<System>) {
    let mut writer = store.completeness_writer().unwrap();
    let now = writer.table.clone();
    let ahead = writer.table.version().unwrap() > versions;
    if ahead {
        writer.runtime().clone().block_on(writer.table.load_version(versions)).unwrap();
    }
    let files = writer.files().unwrap();
    writer.table = now;
    let table = Completeness::new(writer, ahead, files).unwrap();
    let systems = SYSTEMS.map(|name| System::open(store, name, scratch.to_owned()).unwrap());
    (table, systems.into())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]
    /// Whatever comes, and however often it begins anew: the table has the rows that counting anew gives, and duplicates once.
    #[test]
    fn the_table_has_the_rows_of_all_that_came(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("store")).unwrap();
        let first = store.completeness_writer().unwrap().table.version().unwrap();
        let (mut table, mut systems) = open(&store, first, folder.path());
        // By key: sequence numbers with their digests, and duplicates and conflicts; as committed, and as they are.
        type Told = BTreeMap<Key, (BTreeMap<u64, u64>, u64, u64, Option<String>)>;
        let (mut safe, mut now): (Told, Told) = Default::default();
        // The events are in no table: they are offered again when all begins anew.
        let mut good = first;
        for step in steps.into_iter().chain([Step::Commit]) {
            let torn = matches!(step, Step::Torn);
            match step {
                Step::Record { system, actor, incarnation, seq, digest } => {
                    let name = format!("actor-{actor}");
                    let seen = &mut systems[system].known.seen;
                    let source = seen.source("f");
                    seen.offer(&name, incarnation, Entry { seq, digest, offset: 0, source }).unwrap();
                    let row = now.entry((SYSTEMS[system].into(), name, incarnation)).or_default();
                    match row.0.get(&seq) {
                        Some(known) if *known == digest => row.1 += 1,
                        Some(_) => row.2 += 1,
                        None => {
                            row.0.insert(seq, digest);
                            row.3 = Some(format!("{digest}"));
                            seen.note_time(format!("{digest}"));
                        }
                    }
                }
                Step::Commit | Step::Torn => {
                    let slots: Vec<Vec<u32>> = systems.iter().map(|system| system.known.seen.changes()).collect();
                    // Sorted by name.
                    let changes: Vec<_> = systems.iter().zip(slots.iter().map(Vec::as_slice)).rev().collect();
                    table.commit(&changes, &[]).unwrap();
                    if !torn {
                        table.is_ahead = false;
                        systems.iter_mut().for_each(|system| system.known.seen.settle());
                        safe.clone_from(&now);
                        good = table.writer.table.version().unwrap();
                    }
                }
                Step::Anew => {}
            }
            if torn || matches!(step, Step::Anew) {
                (table, systems) = open(&store, good, folder.path());
                now.clone_from(&safe);
                for ((system, actor, incarnation), (seqs, ..)) in &now {
                    let seen = &mut systems[usize::from(system == "a")].known.seen;
                    let source = seen.source("f");
                    for (seq, digest) in seqs {
                        seen.offer(actor, *incarnation, Entry { seq: *seq, digest: *digest, offset: 0, source }).unwrap();
                    }
                    seen.settle();
                }
                for system in &mut systems {
                    table.compare(system).unwrap();
                    let changes = system.known.seen.changes();
                    prop_assert!(changes.is_empty(), "{} rows are not as their events", changes.len());
                }
            }
        }
        let found: Vec<_> = completeness(&store).unwrap().into_iter().map(|row| {
            (owned(row.key()), row.counts.events, row.counts.missing, row.counts.duplicates, row.counts.conflicts, row.last_time)
        }).collect();
        let expected: Vec<_> = now.into_iter().map(|(key, (seqs, duplicates, conflicts, time))| {
            let last = seqs.last_key_value().map_or(0, |(seq, _)| *seq);
            (key, seqs.len() as u64, last - seqs.len() as u64, duplicates, conflicts, time)
        }).collect();
        prop_assert_eq!(found, expected);
        let Rows::Parts(parts) = &table.rows else { panic!("they are in order") };
        prop_assert!(parts.iter().all(|part| part.rows <= MOST_ROWS && part.live));
    }
}

/// A commit writes what it changes, and the rows beside it: not all there are.
#[test]
fn few_changes_among_many_actors_write_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("store")).unwrap();
    let version = store.completeness_writer().unwrap().table.version().unwrap();
    let (mut table, mut systems) = open(&store, version, folder.path());
    let mut take = |actors: std::ops::Range<u32>, table: &mut Completeness| {
        let seen = &mut systems[1].known.seen;
        let source = seen.source("f");
        for n in actors {
            let seq = seen.incarnations() as u64 + 1;
            seen.offer(&format!("actor-{n:05}"), 0, Entry { seq, digest: 1, offset: 0, source }).unwrap();
        }
        let slots = systems[1].known.seen.changes();
        table.commit(&[(&systems[1], &slots)], &[]).unwrap();
        systems[1].known.seen.settle();
        table.written()
    };
    assert_eq!(take(0..5000, &mut table), 5000);
    assert!(take(700..703, &mut table) <= 2 * MOST_ROWS);
    assert_eq!(take(0..0, &mut table), 0);
    assert_eq!(completeness(&store).unwrap().len(), 5000);
}

/// A table that an earlier version wrote, by system in the order of its configuration: its rows are kept.
#[test]
fn rows_in_no_order_are_brought_into_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("store")).unwrap();
    let row = |system: &str, actor: &str| CompletenessRow {
        system: system.into(),
        counts: demi_schemas::summary::ActorCompleteness {
            actor: actor.into(),
            incarnation: 0,
            events: 1,
            first_seq: 1,
            last_seq: 1,
            gaps: Vec::new(),
            missing: 0,
            duplicates: 7,
            conflicts: 0,
        },
        last_time: None,
    };
    let rows = [row("b", "x"), row("b", "y"), row("c", "x"), row("a", "y")];
    let mut writer = store.completeness_writer().unwrap();
    writer.write(completeness::batch(&rows).unwrap()).unwrap();
    writer.commit(&[], Gone::Everything).unwrap();
    let files = writer.files().unwrap();
    let mut table = Completeness::new(writer, false, files).unwrap();
    let mut system = System::open(&store, "b", folder.path().to_owned()).unwrap();
    let source = system.known.seen.source("f");
    for _ in 0..2 {
        system.known.seen.offer("y", 0, Entry { seq: 1, digest: 1, offset: 0, source }).unwrap();
    }
    table.compare(&mut system).unwrap();
    let slots = system.known.seen.changes();
    table.commit(&[(&system, &slots)], &[]).unwrap();
    let left: Vec<_> = completeness(&store).unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|row| (row.system.as_str(), row.counts.actor.as_str(), row.counts.duplicates))
        .collect();
    // Of 'b/x' no event is there.
    assert_eq!(left, [("a", "y", 7), ("b", "y", 8), ("c", "x", 7)]);
}
