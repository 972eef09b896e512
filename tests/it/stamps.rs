//! Logs whose stamps run against their order: how files are ordered, what is said of stamps that run backwards, and what is refused.

use std::fs;
use std::io::Read;
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

const MAPPING: &str = r#"name = "lines"
description = "stamp, node, text"
[input]
container = "text"
patterns = ['^(?<time>\S+) (?<node>\S+) (?<text>.*)$']
[event]
actor = "{node}"
payload = "{text}"
time = "{time}"
[[rule]]
when = { text = '^send (?<m>.*) to (?<peer>\S+)$' }
emit = [{ kind = "send", to = "{peer}", payload = "{m}" }]
[[rule]]
when = { text = '^recv (?<m>.*) from (?<peer>\S+)$' }
emit = [{ kind = "receive", from = "{peer}", payload = "{m}" }]
"#;

/// The newest line first.
const EXPORT: &str = "2024-05-01T10:00:06Z a done
2024-05-01T10:00:05Z a recv pong from b
2024-05-01T10:00:04Z b send pong to a
2024-05-01T10:00:02Z b recv ping from a
2024-05-01T10:00:01Z a send ping to b
";

fn demi(dir: &TempDir, line: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demi-lineage")).args(line).current_dir(dir.path()).output().unwrap()
}

fn ends(dir: &TempDir, status: i32, line: &[&str]) -> (String, String) {
    let output = demi(dir, line);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{line:?}: {out}{err}");
    (out, err)
}

fn load(dir: &TempDir, more: &[&str]) -> (String, String) {
    let line = ["ingest", "load", "--store", "store", "--system", "s"];
    ends(dir, 0, &[&line[..], more].concat())
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("lines.toml"), MAPPING).unwrap();
    fs::write(dir.path().join("newest.toml"), MAPPING.replace("[input]\n", "[input]\nnewest_first = true\n"))
        .unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn stamps_that_run_backwards_are_named_and_can_be_refused() {
    let dir = folder(&[("export.log", EXPORT)]);
    let (_, said) = load(&dir, &["--mapping", "lines.toml", "export.log"]);
    for what in [
        "the stamps of a run backwards through its log: 2 events are stamped earlier than the event before them, by up to 4 s; \
         first export.log:2: 2024-05-01T10:00:05Z after 2024-05-01T10:00:06Z",
        "the stamps of b run backwards through its log: 1 event is stamped",
        "newest_first = true",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let named = |said: &str| assert!(said.contains("the stamps of a run backwards"), "{said}");
    let build = ["build", "--store", "store", "--violation", "none", "--out", "exec"];
    named(&ends(&dir, 2, &[&build[..], &["--refuse-incomplete"]].concat()).1);
    assert!(!dir.path().join("exec").exists());
    named(&ends(&dir, 0, &build).1);
    for target in ["store", "exec"] {
        named(&ends(&dir, 0, &["query", target, "past", "a/3"]).1);
        named(&ends(&dir, 2, &["query", target, "past", "a/3", "--refuse-incomplete"]).1);
    }
    // Read from its end all is well.
    let (_, said) = ends(
        &dir,
        0,
        &["ingest", "load", "--store", "right", "--system", "s", "--mapping", "newest.toml", "export.log"],
    );
    assert!(!said.contains("backwards"), "{said}");
    let (past, said) = ends(&dir, 0, &["query", "right", "past", "a/3", "--refuse-incomplete"]);
    assert!(!said.contains("backwards"), "{said}");
    assert!(past.contains("4 events happen before a/3") && past.contains("b/2"), "{past}{said}");
}

#[test]
fn records_of_ones_own_are_looked_at_too() {
    let record = |seq: u64, time: &str| {
        format!("{{\"actor\":\"a\",\"seq\":{seq},\"kind\":\"local\",\"time\":{time}}}\n")
    };
    let log = |rows: &[(u64, &str)]| rows.iter().map(|(seq, time)| record(*seq, time)).collect::<String>();
    let said = |rows: &[(u64, &str)]| {
        let dir = folder(&[("a.jsonl", &log(rows))]);
        let (out, said) = load(&dir, &["--json", "a.jsonl"]);
        assert_eq!(out.contains("backwards"), said.contains("backwards"), "{out}{said}");
        said.lines().find(|line| line.contains("backwards")).map(str::to_owned)
    };
    for right in [
        &[(1, "\"2024-05-01T10:00:00Z\""), (2, "\"2024-05-01T10:00:00Z\"")][..],
        // A second is not over before it ends.
        &[
            (1, "\"2024-05-01T10:00:00.9Z\""),
            (2, "\"2024-05-01T10:00:00Z\""),
            (3, "\"2024-05-01T10:00:00.95Z\""),
        ],
        // What counts is the order of the numbers, not that of the lines.
        &[(2, "\"2024-05-01T10:00:02Z\""), (1, "\"2024-05-01T10:00:01Z\""), (3, "\"2024-05-01T10:00:03Z\"")],
        &[(1, "\"2024-05-01T12:00:00+02:00\""), (2, "\"2024-05-01T10:00:01Z\"")],
        &[(1, "\"some time\""), (2, "null"), (3, "\"2024-05-01T10:00:01Z\""), (4, "7")],
        // A clock of the simulation, which passes a number from which on others count milliseconds.
        &[(1, "99999999999"), (2, "100000000001")],
    ] {
        assert_eq!(said(right), None, "{right:?}");
    }
    for (wrong, told) in [
        (
            &[(1, "\"2024-05-01T10:00:01Z\""), (2, "\"2024-05-01T10:00:00Z\"")][..],
            "by up to 1 s; first a.jsonl:2",
        ),
        (&[(1, "\"2024-05-01T10:00:00.250Z\""), (2, "\"2024-05-01T10:00:00.249Z\"")], "by up to 1 ms"),
        (&[(2, "\"2024-05-01T10:00:01Z\""), (1, "\"2024-05-01T10:00:02Z\"")], "first a.jsonl:1"),
        (&[(1, "5"), (2, "null"), (3, "4")], "by up to 1; first a.jsonl:3: 4 after 5"),
    ] {
        let said = said(wrong).unwrap_or_default();
        assert!(said.contains(told) && said.contains("1 event is"), "{wrong:?}: {said}");
    }
}

#[test]
fn a_finding_is_kept_once_and_goes_with_its_events() {
    let dir = folder(&[("export.log", EXPORT)]);
    for _ in 0..2 {
        load(&dir, &["--mapping", "lines.toml", "export.log"]);
    }
    let (_, said) = ends(&dir, 0, &["query", "store", "past", "a/1"]);
    assert!(said.contains("a run backwards through its log: 2 events"), "{said}");
    ends(&dir, 0, &["ingest", "delete", "--store", "store", "--system", "s", "--actor", "a"]);
    let (_, said) = ends(&dir, 0, &["query", "store", "past", "b/1"]);
    assert!(!said.contains("stamps of a ") && said.contains("stamps of b "), "{said}");
}

#[test]
fn the_files_of_one_log_are_read_oldest_first_and_others_are_named() {
    let line = |n: u32| format!("2024-05-01T10:00:0{n}Z raft-1 commit {n}\n");
    let files = [
        ("logs/a.log", line(5)),
        ("logs/a.log.1", line(3) + &line(4)),
        ("logs/a.log.2", line(1) + &line(2)),
        ("logs/notes.txt", String::new()),
    ];
    let dir = folder(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    let commits = |dir: &TempDir| {
        let sql = "SELECT payload FROM events ORDER BY seq";
        ends(dir, 0, &["query", "store", "--sql", sql]).0.matches("commit ").count()
    };
    let (out, said) = load(&dir, &["--mapping", "lines.toml", "logs"]);
    assert!(out.contains("5 records added") && !said.contains("backwards"), "{out}{said}");
    assert!(said.contains("read as one log, oldest first: logs/a.log.2, logs/a.log.1, logs/a.log"), "{said}");
    assert!(said.contains("left out: 1 file that is no log by name: logs/notes.txt"), "{said}");
    assert_eq!(commits(&dir), 5);
    // As a shell gives them.
    let again = folder(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    let (_, said) = load(&again, &["--mapping", "lines.toml", "logs/a.log", "logs/a.log.1", "logs/a.log.2"]);
    assert!(!said.contains("backwards"), "{said}");
    // Numbers in names count as numbers.
    let numbered: Vec<(String, String)> =
        [0, 1, 2, 10, 11].iter().enumerate().map(|(i, n)| (format!("{n}"), line(i as u32))).collect();
    let dir = folder(&numbered.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    let (_, said) = load(&dir, &["--mapping", "lines.toml", "0", "1", "10", "11", "2"]);
    assert!(!said.contains("backwards"), "{said}");
}

#[test]
fn stamps_are_read_alike_wherever_they_are_looked_at() {
    // As a Java program, a Go program, a web server and a clock of milliseconds write them.
    for [first, second, third] in [
        ["2024-05-01 10:00:01,250", "2024-05-01 10:00:02,250", "2024-05-01 10:00:03,250"],
        ["2024/05/01 10:00:01.25", "2024/05/01 10:00:02.25", "2024/05/01 10:00:03.25"],
        ["01/May/2024:10:00:01 +0000", "01/May/2024:10:00:02 +0000", "01/May/2024:10:00:03 +0000"],
        ["1714557601250", "1714557602250", "1714557603250"],
    ] {
        let record = |actor: &str, seq: u64, kind: &str, time: &str| {
            format!(
                "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"{kind}\",\"msg_id\":\"m\",\"from\":\"a\",\"to\":\"b\",\"time\":\"{time}\"}}\n"
            )
        };
        let log = [
            record("a", 1, "send", second),
            record("b", 1, "receive", first),
            record("b", 2, "local", third),
        ];
        let dir = folder(&[("log.jsonl", &log.concat())]);
        load(&dir, &["log.jsonl"]);
        let build = ["build", "--store", "store", "--violation", "none", "--check-stamps", "--out", "exec"];
        let (told, said) = ends(&dir, 0, &build);
        assert!(
            told.contains("stamps: 1 of 1 certain edges run against those of both ends"),
            "{second}: {told}"
        );
        assert!(!said.contains("stamp"), "{second}: {said}");
        let (cut, said) =
            ends(&dir, 0, &["query", "exec", "--sql", "SELECT event FROM cut('2024-05-01T10:00:02.5Z')"]);
        assert!(cut.contains("a/1") && cut.contains("b/1") && !cut.contains("b/2"), "{second}: {cut}");
        assert!(!said.contains("cannot be read"), "{second}: {said}");
    }
}

#[test]
fn that_nothing_can_be_compared_with_stamps_is_said_as_it_is() {
    let record = |actor: &str, time: &str| {
        format!("{{\"actor\":\"{actor}\",\"seq\":1,\"kind\":\"local\",\"time\":\"{time}\"}}\n")
    };
    for (stamp, says) in [
        (
            "2024-05-01T10:00:00Z",
            "of 2 events they can be read, but no certain edge between logs and no step in a log has them at both ends",
        ),
        ("soon", "no event has a readable time stamp"),
    ] {
        let dir = folder(&[("log.jsonl", &[record("a", stamp), record("b", stamp)].concat())]);
        load(&dir, &["log.jsonl"]);
        let build = ["build", "--store", "store", "--violation", "none", "--check-stamps", "--out", "exec"];
        let (_, said) = ends(&dir, 0, &build);
        assert!(said.contains(says), "{stamp}: {said}");
    }
}

#[test]
fn a_page_of_a_store_warns_of_stamps_that_run_backwards() {
    let dir = folder(&[("export.log", EXPORT)]);
    load(&dir, &["--mapping", "lines.toml", "export.log"]);
    ends(&dir, 0, &["build", "--store", "store", "--violation", "none", "--out", "exec"]);
    for input in [&["store"][..], &["store", "--violation", "none"], &["exec"]] {
        ends(&dir, 0, &[&["report"], input, &["--html", "page.html"]].concat());
        let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let packed = STANDARD.decode(data.split_once("</script>").unwrap().0).unwrap();
        let mut data = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut data).unwrap();
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        let warned = data["warnings"].as_array().unwrap();
        let about =
            warned.iter().filter(|text| text.as_str().unwrap().contains("run backwards through its log"));
        assert_eq!(about.count(), 2, "{input:?}: {warned:?}");
    }
}
