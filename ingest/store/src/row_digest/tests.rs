use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;

use demi_formats::read::parse::Parser;
use demi_formats::{Fate, Source, Sources, record_digest};
use demi_schemas::summary::LoadSummary;
use demi_schemas::tables::{TABLES_VERSION, TABLES_WITH_DIGESTS};
use demi_schemas::{EventRecord, Kind, TimerInfo};
use proptest::prelude::*;
use serde_json::{Map, Number};

use super::*;
use crate::columns::{EventColumns, EventRow};
use crate::delta::{SmallFiles, merge};
use crate::scan::scan;
use crate::{LoadOptions, Store, load};

/// Cases of a property: those of the environment, or so many.
fn cases(usual: u32) -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,3}",
        any::<String>(),
        prop_oneof![
            Just("5"),
            Just("5.0"),
            Just("null"),
            Just("true"),
            Just("\"x\""),
            Just("{}"),
            Just(" 7 "),
            Just("-0"),
            Just("1e999"),
            Just("2024-05-15T00:00:00Z"),
            Just("\u{feff}1"),
            Just("\u{0}")
        ]
        .prop_map(str::to_owned),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-d]{1,2}",
        1 => any_text(),
        2 => prop_oneof![
            Just("key"), Just("gaps"), Just("line"), Just("logged_source"), Just("logged_offset"), Just("name"), Just("actor"),
            Just("$serde_json::private::RawValue"), Just("$serde_json::private::Number")
        ]
        .prop_map(str::to_owned),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<u64>()
            .prop_map(|bits| Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)),
        prop_oneof![Just(0.1), Just(-0.0), Just(1e21), Just(5e-324), Just(f64::MAX), Just(5.0)]
            .prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_name(), inner), 0..4)
                .prop_map(|all| Value::from(all.into_iter().collect::<Map<_, _>>())),
        ]
    });
    (nested, prop_oneof![9 => Just(0), 1 => 60..200_usize])
        .prop_map(|(value, deep)| (0..deep).fold(value, |inner, _| Value::from(vec![inner])))
}

/// A record as any mapping could make it.
fn any_record() -> impl Strategy<Value = EventRecord> {
    let value = || prop::option::weighted(0.3, any_value());
    let text = || prop::option::weighted(0.5, any_text());
    let named = prop_oneof![1..9_u64, (1_u64 << 60)..(1 << 60) + 9, Just(i64::MAX as u64)];
    let key = (any_text(), 0..3_u32, named, 0..Kind::ALL.len());
    let timer = (
        text(),
        text(),
        any::<Option<bool>>(),
        any::<Option<u64>>(),
        prop::collection::btree_map(any_name(), any_value(), 0..2),
    );
    let texts = prop::collection::vec(text(), 8);
    let clock = prop::option::weighted(0.3, prop::collection::btree_map(any_text(), any::<u64>(), 0..3));
    let rest = (any::<Option<bool>>(), any::<Option<u64>>(), 0..5_usize, prop::option::weighted(0.3, timer));
    let attrs = prop::collection::btree_map(any_name(), any_value(), 0..3);
    (key, texts, [value(), value(), value()], clock, rest, attrs).prop_map(
        |(
            (actor, incarnation, seq, kind),
            mut texts,
            [fields, state, time],
            vector_clock,
            (external, offset, via, timer),
            attrs,
        )| {
            let mut text = || texts.pop().flatten();
            EventRecord {
                incarnation,
                msg_id: text(),
                from: text(),
                to: text(),
                type_: text(),
                payload: text(),
                fingerprint: text(),
                source: text(),
                offset,
                via: ["forward", "scheduler", "thread", "ask"]
                    .get(via)
                    .and_then(|name| demi_schemas::Via::from_name(name)),
                timer: timer.map(|(name, message, repeat, generation, attrs)| TimerInfo {
                    name,
                    message,
                    repeat,
                    generation,
                    attrs,
                }),
                external,
                fields,
                state,
                time,
                vector_clock,
                attrs,
                ..EventRecord::new(actor, seq, Kind::ALL[kind])
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2000)))]
    /// What a row tells is the digest of the record that it was made of.
    #[test]
    fn a_row_tells_the_digest_of_its_record(record in any_record()) {
        let digest = record_digest(&record);
        let Fate::Row(row) = Parser::new("s").record(record.clone()) else { return Ok(()) };
        prop_assert_eq!(row.digest, digest);
        let kept = if row.told { TOLD } else { digest };
        let mut columns = EventColumns::default();
        columns.push(&row.record, &EventRow { system: "s", date: None, source: "f", offset: 7, digest: kept });
        let batch = columns.finish().unwrap();
        let places: Vec<usize> = COLUMNS.iter().map(|(name, _)| batch.schema().index_of(name).unwrap()).collect();
        let batch = batch.project(&places).unwrap();
        let found = RowDigests::new(&batch).of(0, &mut Digester::default(), Path::new("f"));
        prop_assert_eq!(found.unwrap(), digest);
    }
}

#[test]
fn plain_records_tell_their_digests() {
    for rest in [
        "",
        r#","msg_id":"1","from":"a","to":"b","type":"T","payload":"p","time":1715731200000"#,
        r#","time":"2024-05-15T00:00:00Z","state":{"x":[1,0.5,null]},"fields":{"a":"5"},"host":"h","source":"f","offset":4"#,
        r#","vector_clock":{"a":1},"timer":{"name":"n","q":1},"external":true"#,
    ] {
        let record =
            EventRecord::parse(format!(r#"{{"actor":"a","seq":1,"kind":"local"{rest}}}"#).as_bytes())
                .unwrap();
        assert!(Digester::default().told(&record).1, "{rest}");
    }
}

/// Endings of records, of which many differ in what a row does not show.
const ENDINGS: [&str; 22] = [
    "",
    r#","time":5"#,
    r#","time":"5""#,
    r#","time":5.0"#,
    r#","time":"2024-05-15T00:00:00Z""#,
    r#","time":"null""#,
    r#","time":null"#,
    r#","source":"own""#,
    r#","logged_source":"own""#,
    r#","source":"own","logged_source":"other""#,
    r#","offset":5"#,
    r#","logged_offset":5"#,
    r#","state":{"x":1,"y":[0.1,-0.0]}"#,
    r#","state":{"y":[0.1,-0.0],"x":1}"#,
    r#","state":{"y":[0.1,0.0],"x":1}"#,
    r#","fields":{}"#,
    r#","zone":null"#,
    r#","key":"k","payload":"p""#,
    r#","key":"k","payload":"q""#,
    r#","timer":{"name":"n"}"#,
    r#","timer":{"name":"n","q":18446744073709551615}"#,
    r#","vector_clock":{"a":1}"#,
];

#[derive(Clone, Debug)]
enum Action {
    Load(Vec<(usize, u64, usize)>),
    /// The program is started anew.
    Restart,
    Merge,
    /// A store of the version before becomes one of this.
    Raise,
}

fn any_action() -> impl Strategy<Value = Action> {
    let line = (0..2_usize, 0..5_u64, 0..ENDINGS.len());
    prop_oneof![
        5 => prop::collection::vec(line, 1..12).prop_map(Action::Load),
        1 => Just(Action::Restart),
        1 => Just(Action::Merge),
        1 => Just(Action::Raise),
    ]
}

/// Writes the version into the first commit of the tables.
fn set_version(dir: &Path, version: &str) {
    for table in ["events", "quarantine"] {
        let first = dir.join(table).join("_delta_log/00000000000000000000.json");
        let text = fs::read_to_string(&first)
            .unwrap()
            .replace(TABLES_WITH_DIGESTS, version)
            .replace(TABLES_VERSION, version);
        // Without its digest it is a commit of another program.
        fs::write(&first, text.replace("demiSum", "otherSum")).unwrap();
    }
}

fn store(version: &str) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::create(dir.path()).unwrap());
    set_version(dir.path(), version);
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

/// Actor, incarnation, sequence number and digest.
type Named = (String, u32, u64, u64);

/// All that is in quarantine, and the names of the events with their places and digests.
fn rows(store: &Store) -> (Vec<String>, Vec<Named>, usize) {
    let mut isolated = Vec::new();
    let text = [("reason", DataType::Utf8), ("digest", DataType::Int64)];
    scan(&store.quarantine_files("s").unwrap(), &text, |batch| {
        let (reasons, digests) =
            (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        isolated.extend(
            (0..batch.num_rows()).map(|row| format!("{} {}", reasons.value(row), digests.value(row))),
        );
        Ok(())
    })
    .unwrap();
    isolated.sort();
    let (mut events, mut kept) = (Vec::new(), 0);
    for file in store.known_event_files("s").unwrap() {
        scan(std::slice::from_ref(&file), &COLUMNS, |batch| {
            let digests = RowDigests::new(batch);
            for row in 0..batch.num_rows() {
                let (actor, incarnation) = digests.key(row);
                let digest = digests.of(row, &mut Digester::default(), file.path())?;
                events.push((actor.to_owned(), incarnation, digests.seq(row), digest));
            }
            kept += batch
                .column(18)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .filter(|digest| **digest != 0)
                .count();
            Ok(())
        })
        .unwrap();
    }
    events.sort();
    (isolated, events, kept)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(8)))]
    /// What is new, a duplicate or a conflict is the same with digests in rows, without, and with both.
    #[test]
    fn without_digests_in_rows_the_same_is_found(actions in prop::collection::vec(any_action(), 1..10)) {
        let mut stores = [store(TABLES_WITH_DIGESTS), store(TABLES_VERSION), store(TABLES_WITH_DIGESTS)];
        let mut offset = 0;
        for action in &actions {
            match action {
                Action::Load(lines) => {
                    let text = lines.iter().fold(String::new(), |mut text, (actor, seq, ending)| {
                        let seq = if *seq < 3 { seq + 1 } else { (1 << 60) + seq };
                        let actor = ["a", "b"][*actor];
                        writeln!(text, r#"{{"actor":"{actor}","seq":{seq},"kind":"local"{}}}"#, ENDINGS[*ending]).unwrap();
                        text
                    });
                    offset += 1;
                    let found: Vec<LoadSummary> = stores.iter_mut().map(|(_, store)| {
                        let sources = Sources(vec![Source::stream(format!("f{offset}"), Box::new(Cursor::new(text.clone())))]);
                        load(store, sources, &LoadOptions::new("s"), |_| {}).unwrap().summary
                    }).collect();
                    prop_assert!(found.windows(2).all(|pair| format!("{:?}", pair[0]) == format!("{:?}", pair[1])), "{found:?}");
                }
                Action::Restart => stores.iter_mut().for_each(|(dir, store)| *store = Store::open(dir.path()).unwrap()),
                Action::Merge => {
                    for (dir, store) in &mut stores {
                        let mut table = store.events_writer().unwrap();
                        merge(&mut table, SmallFiles { bytes: 1 << 20, count: 2 }).unwrap();
                        *store = Store::open(dir.path()).unwrap();
                    }
                }
                Action::Raise => {
                    let (dir, store) = &mut stores[2];
                    set_version(dir.path(), TABLES_VERSION);
                    *store = Store::open(dir.path()).unwrap();
                }
            }
        }
        let found: Vec<_> = stores.iter().map(|(_, store)| rows(store)).collect();
        prop_assert!(found.iter().all(|rows| (&rows.0, &rows.1) == (&found[0].0, &found[0].1)), "{found:?}");
        prop_assert_eq!(found[0].2, found[0].1.len(), "a store of the version before has all digests");
    }
}
