//! `demi-lineage query` as a person or a script uses it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

/// A store with a small system: a client asks a leader, which asks two others; both take themselves for the leader in the end.
struct Case {
    dir: tempfile::TempDir,
}

const CLIENT: [&str; 3] = [
    r#"{"actor":"client","seq":1,"kind":"send","msg_id":"q1","to":"n1","type":"Put","time":"2026-03-01T10:00:00.000Z"}"#,
    r#"{"actor":"client","seq":2,"kind":"receive","msg_id":"r1","from":"n1","type":"Done","time":"2026-03-01T10:00:00.090Z"}"#,
    r#"{"actor":"client","seq":3,"kind":"send","to":"n2","type":"Put","time":"2026-03-01T10:00:01.000Z"}"#,
];
const N1: [&str; 8] = [
    r#"{"actor":"n1","seq":1,"kind":"start","state":{"role":"Leader","term":1,"log":0},"time":"2026-03-01T10:00:00.001Z"}"#,
    r#"{"actor":"n1","seq":2,"kind":"receive","msg_id":"q1","from":"client","type":"Put","time":"2026-03-01T10:00:00.010Z"}"#,
    r#"{"actor":"n1","seq":3,"kind":"send","msg_id":"a1","to":"n2","type":"Append","time":"2026-03-01T10:00:00.020Z"}"#,
    r#"{"actor":"n1","seq":4,"kind":"send","msg_id":"a2","to":"n3","type":"Append","time":"2026-03-01T10:00:00.021Z"}"#,
    r#"{"actor":"n1","seq":5,"kind":"receive","msg_id":"k1","from":"n2","type":"Ack","time":"2026-03-01T10:00:00.080Z"}"#,
    r#"{"actor":"n1","seq":6,"kind":"state","state":{"role":"Leader","term":1,"log":1},"time":"2026-03-01T10:00:00.081Z"}"#,
    r#"{"actor":"n1","seq":7,"kind":"send","msg_id":"r1","to":"client","type":"Done","time":"2026-03-01T10:00:00.082Z"}"#,
    r#"{"actor":"n1","seq":8,"kind":"local","type":"tick","state":{"role":"Leader","term":2,"log":1}}"#,
];
const N2: [&str; 7] = [
    r#"{"actor":"n2","seq":1,"kind":"start","state":{"role":"Follower","term":1,"log":0},"time":"2026-03-01T10:00:00.001Z"}"#,
    r#"{"actor":"n2","seq":2,"kind":"receive","msg_id":"a1","from":"n1","type":"Append","time":"2026-03-01T10:00:00.040Z"}"#,
    r#"{"actor":"n2","seq":3,"kind":"state","state":{"role":"Follower","term":1,"log":1},"time":"2026-03-01T10:00:00.041Z"}"#,
    r#"{"actor":"n2","seq":4,"kind":"send","msg_id":"k1","to":"n1","type":"Ack","time":"2026-03-01T10:00:00.042Z"}"#,
    r#"{"actor":"n2","seq":5,"kind":"timer_set","msg_id":"t1","type":"Election"}"#,
    r#"{"actor":"n2","seq":6,"kind":"timer_fire","msg_id":"t1","type":"Election","state":{"role":"Leader","term":2,"log":1}}"#,
    r#"{"actor":"n2","seq":7,"kind":"receive","from":"client","type":"Put"}"#,
];
const N3: [&str; 1] =
    [r#"{"actor":"n3","seq":1,"kind":"start","state":{"role":"Follower","term":1,"log":0}}"#];

impl Case {
    fn new() -> Case {
        let case = Case { dir: tempfile::tempdir().unwrap() };
        for (name, lines) in [("client", &CLIENT[..]), ("n1", &N1), ("n2", &N2), ("n3", &N3)] {
            std::fs::create_dir_all(case.dir.path().join("logs")).unwrap();
            let file = case.dir.path().join("logs").join(format!("{name}.jsonl"));
            std::fs::write(file, lines.join("\n") + "\n").unwrap();
        }
        case.load("logs");
        case
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.dir.path().join(name), text).unwrap();
        self.path(name)
    }

    fn load(&self, from: &str) {
        let store = self.path("store");
        demi(&["ingest", "load", "--store", &store, "--system", "kv", &self.path(from)], "");
    }

    fn built(&self) -> String {
        let (store, out) = (self.path("store"), self.path("exec"));
        let violation = "event:n1/8";
        let output = demi(
            &["build", "--store", &store, "--system", "kv", "--violation", violation, "--out", &out],
            "",
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }
}

fn demi(args: &[&str], input: &str) -> Output {
    let mut command = assert_cmd::Command::cargo_bin("demi-lineage").unwrap();
    command.args(args).write_stdin(input).output().unwrap()
}

/// What a question answers, with its exit status where that is not 0.
fn asked(target: &str, args: &[&str], input: &str) -> String {
    let output = demi(&[&["query", target], args].concat(), input);
    let mut text = String::from_utf8(output.stdout).unwrap();
    match output.status.code() {
        Some(0) => {}
        Some(1) => text.push_str("exit status 1\n"),
        other => panic!("{args:?}: {other:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
    text
}

fn refused(target: &str, args: &[&str], input: &str) -> String {
    let output = demi(&[&["query", target], args].concat(), input);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn people_ask_one_thing_at_a_time() {
    let case = Case::new();
    let exec = case.built();
    let mut all = String::new();
    for args in [
        &["past", "n2/6"][..],
        &["future", "n1/3"],
        &["order", "client/1", "n2/3"],
        &["order", "n2/3", "client/1"],
        &["order", "n1/4", "n2/2"],
        &["order", "n1/4", "n1/0/4"],
        &["path", "client/1", "client/2"],
        &["path", "n2/7", "n1/1"],
        &["cut", "client/2", "n1/8", "n2/4"],
        &["cut", "client/2", "n1/4"],
        &["cut", "--at", "n1/6", "--state"],
        &["cut", "client/1", "n1/2"],
        &["check", "count(*) FILTER (WHERE role = 'Leader') <= 2"],
        &["check", "WHERE role = 'Leader' GROUP BY term HAVING count(*) <= 1"],
        &["check", "log >= 1"],
        &["stats"],
        &["--certain", "path", "client/3", "n2/7"],
        &["path", "client/3", "n2/7"],
    ] {
        writeln!(all, "$ query {}\n{}", args.join(" "), asked(&exec, args, "")).unwrap();
    }
    insta::assert_snapshot!("questions", all);
}

#[test]
fn machines_ask_many_things_at_once() {
    let case = Case::new();
    let exec = case.built();
    let pairs = case.write("pairs", "client/1 n2/3\n[\"n2/3\",\"client/1\"]\n\nn1/4\tn2/2\nn3/1 n3/1\n");
    let orders = |text: &str| -> Vec<String> {
        lines(text).iter().map(|l| l["order"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ["before", "after", "concurrent", "equal"];
    assert_eq!(orders(&asked(&exec, &["order", "--pairs", &pairs, "--json"], "")), expected);
    let input = std::fs::read_to_string(&pairs).unwrap();
    assert_eq!(orders(&asked(&exec, &["order", "--pairs", "-", "--json"], &input)), expected);
    assert_eq!(asked(&exec, &["order", "--pairs", "-"], "client/1 n2/3\n"), "client/1\tbefore\tn2/3\n");

    let past = lines(&asked(&exec, &["past", "--events", "-", "--json"], "n2/4\nn3/1\n"));
    assert_eq!(past.len(), 2);
    assert_eq!(past[0]["size"], 7);
    assert_eq!(past[0]["frontier"], json!({"client": "client/1", "n1": "n1/3", "n2": "n2/4"}));
    assert_eq!(past[1]["size"], 0);
    let future = lines(&asked(&exec, &["future", "n1/7", "--json"], ""));
    assert_eq!((future[0]["size"].as_u64(), &future[0]["frontier"]["client"]), (Some(4), &json!("client/2")));

    let cuts = "{\"client\":1,\"n1\":4,\"n2\":0}\nclient/1 n1/2\n{\"n2\":\"0/4\"}\n";
    let cuts = lines(&asked(&exec, &["cut", "--cuts", "-", "--json"], cuts));
    let told: Vec<_> = cuts.iter().map(|c| (c["consistent"].clone(), c["ground_state"].clone())).collect();
    assert_eq!(told, [(json!(true), json!(false)), (json!(true), json!(true)), (json!(false), json!(false))]);
    assert_eq!(cuts[2]["missing"]["before"], "n2/2");

    let check = asked(&exec, &["check", "count(*) FILTER (WHERE role = 'Leader') <= 1", "--json"], "");
    let (answer, status) = check.split_once('\n').unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(status, "exit status 1\n");
    assert_eq!((&answer["holds"], &answer["failures"][0]["from"]), (&json!(false), &json!("n2/6")));
    assert_eq!(answer["first"]["states"]["n1"]["state"]["role"], "Leader");
}

#[test]
fn sql_is_answered_in_every_format() {
    let case = Case::new();
    let exec = case.built();
    let sql = |text: &str, format: &str| asked(&exec, &["--sql", text, "--format", format], "");
    let by_type = "SELECT m.type, count(*) AS n FROM messages m JOIN past('n1/6') p ON m.receive = p.event \
                   GROUP BY m.type ORDER BY m.type";
    let mut all = String::new();
    for format in ["table", "csv", "jsonl"] {
        writeln!(all, "-- {format}\n{}", sql(by_type, format)).unwrap();
    }
    for text in [
        "SELECT event, depth, kept, reason FROM events ORDER BY \"order\"",
        "SELECT event FROM concurrent('n2/6') ORDER BY event",
        "SELECT event FROM between('client/1', 'n1/6') ORDER BY \"order\"",
        "SELECT step, from_event, to_event, reason FROM path('client/1', 'n1/6')",
        "SELECT event FROM cut('2026-03-01T10:00:00.041Z') ORDER BY event",
        "SELECT send, receive, status FROM channel('n1', 'n2')",
        "SELECT actor, events, first, last FROM actors",
        "SELECT * FROM completeness",
        "SELECT count(*) AS n FROM (SELECT event FROM past('n1/2') UNION ALL SELECT event FROM future('n1/2')) u",
    ] {
        writeln!(all, "-- {text}\n{}", sql(text, "csv")).unwrap();
    }
    insta::assert_snapshot!("sql", all);

    let foreign = case.write("foreign.csv", "who,n\nn1,3\n");
    let join = format!("SELECT f.n FROM read_csv('{foreign}') f JOIN actors a ON a.actor = f.who");
    assert_eq!(asked(&exec, &["--sql", &join, "--allow-files", "--format", "csv"], ""), "n\n3\n");
    assert!(refused(&exec, &["--sql", &join], "").contains("'read_csv' is none of the tables"));

    let file: PathBuf = case.dir.path().join("answer.parquet");
    let name = file.display().to_string();
    asked(&exec, &["--sql", by_type, "--format", "parquet", "--out", &name], "");
    let table = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        std::fs::File::open(&file).unwrap(),
    );
    let rows: usize = table.unwrap().build().unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(rows, 3);
    let arrow = demi(&["query", &exec, "--sql", by_type, "--format", "arrow"], "").stdout;
    assert_eq!(&arrow[..6], b"ARROW1");
}

#[test]
fn a_store_is_built_when_asked_and_again_when_events_came() {
    let case = Case::new();
    let store = case.path("store");
    let ask = |args: &[&str]| {
        let output = demi(&[&["query", &store], args].concat(), "");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (answer, said) = ask(&["past", "n2/6"]);
    assert!(answer.starts_with("9 events happen before n2/6") && said.contains("built"), "{answer}{said}");
    let (_, said) = ask(&["past", "n2/6"]);
    assert_eq!(said, "");
    let more = [
        r#"{"actor":"n3","seq":2,"kind":"receive","msg_id":"a2","from":"n1","type":"Append"}"#,
        r#"{"actor":"n3","seq":3,"kind":"send","msg_id":"k2","to":"n1","type":"Ack"}"#,
        r#"{"actor":"n1","seq":9,"kind":"receive","msg_id":"k2","from":"n3","type":"Ack"}"#,
    ];
    case.write("more.jsonl", &(more.join("\n") + "\n"));
    case.load("more.jsonl");
    let (answer, said) = ask(&["path", "client/1", "n3/3"]);
    assert!(answer.contains("n1/4 -> n3/2") && answer.contains("n3/2 -> n3/3"), "{answer}");
    assert!(said.contains("of all events: some messages have no ids"), "{said}");
    let (answer, said) = ask(&["cut", "n1/4", "client/1", "n2/1", "n3/2"]);
    assert!(answer.contains("1 messages in flight") && said.is_empty(), "{answer}{said}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_reason() {
    let case = Case::new();
    let exec = case.built();
    for (args, why) in [
        (&["past", "n2/99"][..], "goes from n2/1 to n2/7"),
        (&["past", "m2/1"], "n2"),
        (&["order", "n1/1"], "2"),
        (&["cut", "n1/x"], "n1/x"),
        (&["check", "rle = 'Leader'"], "'role' is near"),
        (&["check", "count("], "no predicate"),
        (&["--sql", "SELECT nothing FROM events"], "nothing"),
        (&["--sql", "SELECT * FROM past(12)"], "quoted texts"),
        (&["--sql", "SELECT 1", "stats"], "cannot be combined"),
        (&["--sql", "SELECT * FROM read_csv('/etc/hostname')"], "--allow-files"),
        (&[], "nothing is asked"),
    ] {
        let error = refused(&exec, args, "");
        assert!(error.contains(why), "{args:?}: {error}");
    }
    let error = refused(&exec, &["order", "--pairs", "-"], "n1/1 n1/2\nn1/1\n");
    assert!(error.contains("standard input:2: 'n1/1' is not a pair of events"), "{error}");
    let error = refused(&case.path("logs"), &["stats"], "");
    assert!(error.contains("is a folder of logs") && error.contains("demi-lineage build"), "{error}");
    // A file of the index that was cut short is told, and nothing else happens.
    let file = std::path::Path::new(&exec).join("index/orders.bin");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let error = refused(&exec, &["stats"], "");
    assert!(error.contains("orders.bin") && error.contains("build it again"), "{error}");
}
