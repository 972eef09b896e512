//! Keeping the tables: what SQL makes of the events is what the order index makes of them, and adding gives what making anew gives.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use arrow_array::Array;
use arrow_cast::cast;
use arrow_schema::DataType;
use demi_lineage::generate::Mix;
use demi_plans::{ColumnType, Dialect, Engine, EngineKind, Files, KEY, Small, Step, explained, logs};
use demi_schemas::tables;
use demi_store::LineageTable;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Made, engine, generated, has};
use crate::topologies::{Faults, Running, Topology};

/// Rows of numbers, in any order.
type Rows = BTreeSet<Vec<i64>>;

/// These columns of the files, flags as 0 and 1.
fn read(files: &[PathBuf], columns: &[&str]) -> Rows {
    let mut rows = Rows::new();
    for path in files {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
        for batch in reader {
            let batch = batch.unwrap();
            let columns: Vec<arrow_array::Int64Array> = columns
                .iter()
                .map(|name| {
                    let column = cast(batch.column_by_name(name).unwrap(), &DataType::Int64).unwrap();
                    column.as_any().downcast_ref::<arrow_array::Int64Array>().unwrap().clone()
                })
                .collect();
            rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row)).collect()));
        }
    }
    rows
}

const MESSAGES: [&str; 6] = ["key", "ra", "rp", "sa", "sp", "alone"];
const CHECKPOINTS: [&str; 4] = ["key", "ra", "sa", "sp"];

fn table(made: &Made, table: LineageTable, columns: &[&str]) -> Rows {
    let files = made.store.lineage_files(table, "s").unwrap();
    read(&files.iter().map(|file| file.path().to_owned()).collect::<Vec<_>>(), columns)
}

const ACTORS: &[(&str, ColumnType)] = &[
    ("actor", ColumnType::Text),
    ("number", ColumnType::Long),
    ("last_ord", ColumnType::Long),
    ("block", ColumnType::Long),
];

/// Runs the statements that make the tables.
fn by_sql(made: &Made, engine: &mut dyn Engine) -> (Rows, Rows, Vec<Vec<i64>>) {
    let scratch = made.scratch();
    let columns =
        |names: &[(&str, ColumnType)]| names.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect::<Vec<_>>();
    let events: Vec<(String, ColumnType)> = tables::store_events()
        .fields()
        .iter()
        .filter(|field| !["system", "date"].contains(&field.name().as_str()))
        .map(|field| {
            let kind = match field.data_type() {
                DataType::Int64 => ColumnType::Long,
                DataType::Int32 => ColumnType::Int,
                DataType::Boolean => ColumnType::Flag,
                _ => ColumnType::Text,
            };
            (field.name().clone(), kind)
        })
        .collect();
    let files = made.store.event_files("s").unwrap().iter().map(|file| file.path().to_owned()).collect();
    engine.open(&[Files { name: "events", columns: events, files }]).unwrap();
    let mut actors = Small::new("actors", ACTORS);
    for log in logs(&made.store, "s").unwrap() {
        let numbers = [log.number, log.last_ord, log.block].map(demi_plans::Cell::from);
        actors.push(std::iter::once(log.actor.as_str().into()).chain(numbers).collect());
    }
    engine.put(&[actors]).unwrap();
    let positions = engine.save(Step::Positions, &scratch.path().join("positions.parquet")).unwrap().files;
    let told = [
        ("actor", ColumnType::Text),
        ("number", ColumnType::Long),
        ("block", ColumnType::Long),
        ("incarnation", ColumnType::Int),
        ("seq", ColumnType::Long),
        ("kind", ColumnType::Text),
        ("msg_id", ColumnType::Text),
        ("from", ColumnType::Text),
        ("to", ColumnType::Text),
        ("ord", ColumnType::Long),
        ("alone", ColumnType::Flag),
    ];
    engine.open(&[Files { name: "positions", columns: columns(&told), files: positions }]).unwrap();
    let matched = engine.save(Step::Matched, &scratch.path().join("matched.parquet")).unwrap().files;
    let flagged = [
        ("key", ColumnType::Long),
        ("ra", ColumnType::Long),
        ("rp", ColumnType::Long),
        ("sa", ColumnType::Long),
        ("sp", ColumnType::Long),
        ("alone", ColumnType::Flag),
    ];
    engine.open(&[Files { name: "messages", columns: columns(&flagged), files: matched.clone() }]).unwrap();
    let blocks = engine.save(Step::Blocks, &scratch.path().join("blocks.parquet")).unwrap().files;
    let channels = engine.query(Step::Channels, &[]).unwrap().rows;
    (read(&matched, &MESSAGES), read(&blocks, &CHECKPOINTS), channels)
}

#[test]
fn sql_makes_the_tables_that_the_order_index_makes() {
    // Executors of Ballista 55 have no `generate_series`.
    let all = [EngineKind::DuckDb, EngineKind::DataFusion, EngineKind::Spark];
    for kind in all.into_iter().filter(|kind| has(*kind)) {
        let mut engine = engine(kind).unwrap();
        for (what, faults) in [
            ("in order", Faults::default()),
            ("faults", Faults { disorder: true, loss: 0.05, twice: 0.0, restart: 0.01 }),
        ] {
            let records: Vec<_> = Running::new(Topology::Chatty, 4, 4000, 9, faults).collect();
            let made = Made::of(&records);
            let (messages, checkpoints, channels) = by_sql(&made, &mut *engine);
            let ours = table(&made, LineageTable::Messages, &MESSAGES);
            assert!(ours.len() > 500, "{what}: {}", ours.len());
            assert_eq!(messages, ours, "{what} on {}", kind.name());
            let ours = table(&made, LineageTable::Checkpoints, &CHECKPOINTS);
            assert!(ours.len() > 10, "{what}: {}", ours.len());
            assert_eq!(checkpoints, ours, "{what} on {}", kind.name());
            if what == "in order" {
                let by_order: Rows = channels.into_iter().collect();
                let by_id: Rows = messages.iter().map(|row| row[1..5].to_vec()).collect();
                assert_eq!(by_order, by_id, "channels deliver in order, and nothing is lost");
            }
        }
    }
}

#[test]
fn every_statement_is_told_in_every_dialect() {
    for dialect in Dialect::ALL {
        for steps in [&Step::TABLES[..], &Step::SLICE, &Step::QUESTIONS] {
            let text = explained(dialect, steps);
            assert!(!text.contains('{'), "{text}");
            for step in steps {
                assert!(text.contains(step.name()), "{}", step.name());
            }
        }
    }
    let round = Step::Round.text(Dialect::Spark, &[KEY, 2 * KEY]);
    assert_eq!(round.matches(" IN (4294967296, 8589934592)").count(), 2, "{round}");
    assert!(!Step::Round.text(Dialect::DuckDb, &[KEY]).contains(" IN "));
}

fn all(made: &Made) -> (Rows, Rows, Rows) {
    (
        table(made, LineageTable::Messages, &["key", "ra", "rp", "sa", "sp", "alone", "certain", "message"]),
        table(made, LineageTable::Checkpoints, &CHECKPOINTS),
        table(made, LineageTable::Runs, &["number", "ord", "incarnation", "seq", "n"]),
    )
}

#[test]
fn adding_gives_what_making_anew_gives() {
    let records: Vec<_> =
        Running::new(Topology::Gossip, 9, 6000, 3, Faults { restart: 0.01, ..Faults::default() }).collect();
    let mut made = Made::new();
    let (early, late) = records.split_at(4000);
    made.load("s", early);
    let first = made.refresh("s", false);
    made.load("s", late);
    let second = made.refresh("s", false);
    assert_eq!((second.changed, second.rewritten), (0, 0), "{second:?}");
    assert_eq!(second.messages_written, second.messages - first.messages, "only what was added is written");
    let added = all(&made);
    assert_eq!(made.refresh("s", false).messages_written, 0, "nothing came since");
    let anew = made.refresh("s", true);
    assert_eq!(anew.messages_written, anew.messages);
    let rebuilt = all(&made);
    assert_eq!((&added.0, &added.1), (&rebuilt.0, &rebuilt.1));
    // Names may be cut into more runs.
    let names = |runs: &Rows| -> Rows {
        runs.iter().flat_map(|r| (0..r[4]).map(move |at| vec![r[0], r[1] + at, r[2], r[3] + at])).collect()
    };
    assert_eq!(names(&added.2), names(&rebuilt.2));
}

#[test]
fn what_comes_late_is_taken_in() {
    let mut records: Vec<_> = Running::new(Topology::Gossip, 9, 3000, 3, Faults::default()).collect();
    let late: Vec<_> = [700, 701].map(|at| records.remove(at)).to_vec();
    let mut made = Made::new();
    made.load("s", &records);
    made.refresh("s", false);
    made.load("s", &late);
    let done = made.refresh("s", false);
    assert!(done.changed > 0, "{done:?}");
    let added = all(&made);
    made.refresh("s", true);
    assert_eq!(added.0, all(&made).0);
    assert_eq!(added.1, all(&made).1);
}

#[test]
fn systems_have_numbers_of_their_own_and_ids_that_are_used_again_are_matched_by_content() {
    let mut made = Made::new();
    for (system, seed) in [("s", 1), ("t", 2)] {
        made.load(system, &generated(&Mix { seed, actors: 5, events: 300, ..Mix::default() }));
        made.refresh(system, false);
    }
    let numbers = |system: &str| {
        logs(&made.store, system).unwrap().iter().map(|log| log.number).collect::<BTreeSet<_>>()
    };
    assert!(numbers("s").is_disjoint(&numbers("t")), "{:?} {:?}", numbers("s"), numbers("t"));
    // Two sends of one id, and the receives in the other order of their contents: by id alone there would be four edges.
    let line = |actor: &str, seq: u64, kind: &str, from: &str, to: &str, payload: &str| {
        let text = serde_json::json!({"actor": actor, "seq": seq, "kind": kind, "from": from, "to": to, "msg_id": "x", "type": "m", "payload": payload});
        demi_schemas::EventRecord::parse(text.to_string().as_bytes()).unwrap()
    };
    let records = [
        line("a", 1, "send", "a", "b", "one"),
        line("a", 2, "send", "a", "b", "two"),
        line("b", 1, "receive", "a", "b", "two"),
        line("b", 2, "receive", "a", "b", "one"),
    ];
    let made = Made::of(&records);
    let edges = table(&made, LineageTable::Messages, &["rp", "sp"]);
    assert_eq!(edges, Rows::from([vec![1, 2], vec![2, 1]]));
}
