//! Executions that refer to a store's rows against those that hold a copy: every answer is the same, also when the store is gone.

use std::path::{Path, PathBuf};

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{CutSpec, Query};
use demi_lineage::{BuildOptions, ViolationSpec, build, execution, export};
use demi_schemas::EventRecord;
use demi_sql::{OutputFormat, write};
use proptest::prelude::*;

/// A store of several files with rows in any order, some of them twice, and two executions of it.
struct Case {
    dir: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Case {
    fn new(mut records: Vec<EventRecord>, files: usize, shuffle: u64, again: usize) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let n = records.len();
        if shuffle != 0 {
            (0..n).for_each(|i| records.swap(i, (shuffle.wrapping_mul(i as u64 * 2 + 1) >> 7) as usize % n));
        } else {
            records.sort_by_key(|r| (r.actor.clone(), r.incarnation, r.seq));
        }
        records.extend(records[..again.min(n)].to_vec());
        let parts = records.chunks(records.len().div_ceil(files)).enumerate();
        let files = parts.map(|(number, part)| {
            let file = dir.path().join(format!("store-{number}.parquet"));
            write_store_file(&file, part.to_vec()).unwrap();
            file
        });
        let files = files.collect();
        Case { dir, files }
    }

    fn build(&self, name: &str, options: &BuildOptions) -> PathBuf {
        let exec = self.dir.path().join(name);
        let files: Vec<_> = self.files.iter().cloned().map(Into::into).collect();
        build(&files, options, &exec, &mut |_| {}).unwrap();
        exec
    }
}

fn mix() -> impl Strategy<Value = Mix> {
    (
        any::<u64>(),
        1..6_u32,
        5..300_u64,
        0.0..1.0_f64,
        0.0..0.2_f64,
        0.0..0.1_f64,
        0.0..0.3_f64,
        any::<bool>(),
    )
        .prop_map(|(seed, actors, events, ids, loss, duplicate, timer, in_order)| Mix {
            seed,
            actors,
            events,
            ids,
            loss,
            duplicate,
            restart: 0.02,
            timer,
            environment: 0.05,
            thread: 0.05,
            in_order,
            contents: 5,
            ..Mix::default()
        })
}

fn answer(exec: &Path, sql: &str) -> String {
    let query = Query::open(exec, false).unwrap();
    let mut out = Vec::new();
    write(&mut crate::select(&query, sql).unwrap(), OutputFormat::JsonLines, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What an execution says, by name of the question.
fn said(exec: &Path, event: &str) -> Vec<(String, String)> {
    let actors = &Query::open(exec, false).unwrap().index().header().actors.clone();
    let (from, to) = (&actors[actors.len() - 1].name, &actors[actors.len() / 2].name);
    let order = "ORDER BY actor, incarnation, seq";
    let sent = "ORDER BY send, receive, msg_id, type";
    let mut said: Vec<(String, String)> = [
        format!("SELECT * FROM events {order}"),
        format!("SELECT event, depth FROM events WHERE kept AND depth > 3 AND reason <> 'all' {order}"),
        "SELECT count(*) AS n FROM events".to_owned(),
        "SELECT kind, count(*) AS n, max(\"order\") AS last FROM events GROUP BY kind ORDER BY kind"
            .to_owned(),
        format!("SELECT * FROM messages {sent}"),
        format!("SELECT send, receive, status, reason FROM messages WHERE certain {sent}"),
        format!("SELECT event, state, \"order\" FROM past('{event}') {order}"),
        format!("SELECT * FROM concurrent('{event}') {order}"),
        format!("SELECT event FROM future('{event}') WHERE depth > 5 {order}"),
        format!("SELECT * FROM channel('{from}', '{to}') {sent}"),
        format!("SELECT event FROM cut('2026-01-01T00:00:00.1Z') {order}"),
    ]
    .into_iter()
    .map(|sql| (sql.clone(), answer(exec, &sql)))
    .collect();
    let query = Query::open(exec, false).unwrap();
    let mut say = |name: &str, text: String| said.push((name.to_owned(), text));
    say("stats", format!("{:?}", query.stats().unwrap()));
    let at = query.index().event(event).unwrap();
    say("state", format!("{:?}", query.state_of(&CutSpec::default(), &[at]).unwrap()));
    for kept in [true, false] {
        say("schedule", execution::load_schedule(exec, kept).unwrap().to_text());
    }
    let mut text = Vec::new();
    execution::write_schedule(exec, &std::env::temp_dir(), &mut text, exec).unwrap();
    say("written schedule", String::from_utf8(text).unwrap());
    let skeleton = export::skeleton(exec).unwrap();
    say("skeleton", format!("{skeleton:?}"));
    let mut contents = Vec::new();
    // They come as they are stored.
    export::contents(
        exec,
        |_| true,
        |rank, content| {
            contents.push((rank, format!("{content:?}")));
            Ok::<(), demi_lineage::LineageError>(())
        },
    )
    .unwrap();
    contents.sort();
    say("contents", format!("{contents:?}"));
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_referred_to_says_what_a_copy_says(
        mix in mix(), files in 1..5_usize, shuffle in prop_oneof![Just(0_u64), any::<u64>()],
        again in prop_oneof![2 => Just(0_usize), 1 => 1..4_usize], readable: bool,
    ) {
        let records: Vec<EventRecord> = Generator::new(&mix).map(|g| g.record).collect();
        let event = records[records.len() / 2].id().to_string();
        let affected = vec![records[0].actor.clone()];
        let case = Case::new(records, files, shuffle, again);
        let violation = match affected[0].starts_with("actor") {
            true => ViolationSpec::Actors(affected),
            false => ViolationSpec::None,
        };
        let readable = if readable { 100_000 } else { 0 };
        let options = BuildOptions { violation, readable, ..BuildOptions::default() };
        let refers = case.build("refers", &options);
        let copy = case.build("copy", &BuildOptions { copy: true, ..options });
        prop_assert!(!refers.join("events.parquet").exists() && copy.join("events.parquet").exists());
        for name in ["summary.json", "schedule.jsonl"] {
            let text = |exec: &Path| std::fs::read_to_string(exec.join(name)).unwrap_or_default();
            prop_assert_eq!(text(&refers), text(&copy), "{}", name);
        }
        let index = std::fs::read_dir(copy.join("index")).unwrap();
        for name in index.map(|entry| entry.unwrap().file_name()) {
            let bytes = |exec: &Path| std::fs::read(exec.join("index").join(&name)).unwrap();
            prop_assert!(bytes(&refers) == bytes(&copy), "{:?}", name);
        }
        // Nothing is lost when the store merges or deletes its files.
        case.files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        let expected = said(&copy, &event);
        for _ in 0..2 {
            for ((name, one), (_, other)) in said(&refers, &event).into_iter().zip(&expected) {
                prop_assert_eq!(&one, other, "{}", name);
            }
        }
        prop_assert!(refers.join("tables/messages.parquet").is_file(), "what was made is kept");
    }
}
