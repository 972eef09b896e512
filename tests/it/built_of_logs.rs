//! `build LOG..` reads logs without a store, and gives what a store of the same logs gives.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// An event that comes again, one that contradicts, a gap, a line that is no record, and stamps that run backwards.
const MESSY: &str = r#"{"actor":"a","seq":1,"kind":"send","to":"b","type":"X","msg_id":"1","time":"2026-01-01T00:00:09Z"}
{"actor":"a","seq":1,"kind":"send","to":"b","type":"X","msg_id":"1","time":"2026-01-01T00:00:09Z"}
nonsense
{"actor":"a","seq":2,"kind":"send","to":"b","type":"Y","msg_id":"2","time":"2026-01-01T00:00:01Z"}
{"actor":"a","seq":2,"kind":"local","type":"other"}
{"actor":"a","seq":9,"kind":"local","type":"end"}
"#;
const OTHER: &str = r#"{"actor":"b","seq":1,"kind":"receive","from":"a","type":"Y","msg_id":"2","time":"2026-02-01T00:00:00Z"}
{"actor":"b","seq":2,"kind":"receive","from":"a","type":"X","msg_id":"1"}
{"actor":"_monitor","seq":1,"kind":"violation","fields":{"fingerprints":["Late:b"],"affected":["b"]}}
"#;
/// Two executions, with a delimiter between them.
const TWO: &str = "=== one ===\na sends m to b\nb got m from a\n=== two ===\na sends n to b\n";
const MAPPING: &str = r#"name = "two"
description = "two executions"
[input]
container = "text"
patterns = ['^(?<who>\w+) (?<what>sends|got) (?<id>\w+) (to|from) (?<peer>\w+)$']
[execution]
delimiter = '^=== (?<trace>\w+) ===$'
[event]
actor = "{who}"
msg_id = "{id}"
[[rule]]
when = { what = "sends" }
emit = [{ kind = "send", to = "{peer}" }]
[[rule]]
when = { what = "got" }
emit = [{ kind = "receive", from = "{peer}" }]
"#;

fn desk() -> TempDir {
    let desk = tempfile::tempdir().unwrap();
    fs::create_dir(desk.path().join("logs")).unwrap();
    fs::write(desk.path().join("logs/a.jsonl"), MESSY).unwrap();
    fs::write(desk.path().join("logs/b.jsonl"), OTHER).unwrap();
    desk
}

fn demi(desk: &TempDir, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
        .args(line.split_whitespace())
        .current_dir(desk.path())
        .env_remove("DEMI_STORE")
        .output()
        .unwrap()
}

/// What a command prints and says; it ends with this status.
fn ends(desk: &TempDir, status: i32, line: &str) -> (String, String) {
    let output = demi(desk, line);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{line}: {out}{err}");
    (out, err)
}

fn same(desk: &TempDir, file: &str, [one, other]: [&str; 2]) {
    let read = |folder: &str| fs::read(desk.path().join(folder).join(file)).unwrap();
    assert!(read(one) == read(other), "{file} of {one} and {other} differ");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn logs_give_what_a_store_of_them_gives() {
    let desk = desk();
    ends(&desk, 0, "ingest load --store store --system s logs");
    for copy in ["", " --copy"] {
        let (told, said) = ends(&desk, 0, &format!("build logs --system s --out own{copy}"));
        let (by_store, said_by_store) =
            ends(&desk, 0, &format!("build --store store --system s --out of{copy}"));
        let (first, rest) = told.split_once('\n').unwrap();
        assert_eq!(
            first,
            "read 6 events in 9 lines of 2 sources, 1 there twice, 1 in conflict, 1 no event records"
        );
        assert_eq!(rest.replace("wrote own", "wrote of"), by_store);
        assert_eq!(said, said_by_store);
        for what in ["6 sequence numbers are missing (a: 6)", "contradicts", "a.jsonl:3", "run backwards"] {
            assert!(said.contains(what), "{what}: {said}");
        }
        same(&desk, "schedule.jsonl", ["own", "of"]);
        let exported = |exec: &str| ends(&desk, 0, &format!("export {exec} --format json")).0;
        assert_eq!(exported("own"), exported("of"));
        let rows = |exec: &str| demi(&desk, &format!("query {exec} past b/2 --json")).stdout;
        assert_eq!(rows("own"), rows("of"));
    }
    same(&desk, "events.parquet", ["own", "of"]);
    assert_eq!(names(desk.path()), ["logs", "of", "own", "store"], "nothing else is left");
    // What it refers to is its own.
    ends(&desk, 0, "build logs --system s --out own");
    fs::remove_dir_all(desk.path().join("logs")).unwrap();
    ends(&desk, 0, "query own past b/2");
    ends(&desk, 0, "export own --format shiviz");
}

#[test]
fn logs_that_are_not_complete_can_be_refused() {
    let desk = desk();
    let (_, said) = ends(&desk, 2, "build logs --out exec --refuse-incomplete");
    for what in ["(a: 6)", "contradicts", "a.jsonl:3"] {
        assert!(said.contains(what), "{what}: {said}");
    }
    fs::write(desk.path().join("none.jsonl"), "nonsense\n").unwrap();
    let (_, said) = ends(&desk, 2, "build none.jsonl --out exec");
    assert!(said.contains("no line of the logs is an event: none.jsonl:1"), "{said}");
    let mut packed = zstd::encode_all(MESSY.as_bytes(), 3).unwrap();
    packed.truncate(packed.len() - 8);
    fs::write(desk.path().join("cut.jsonl.zst"), packed).unwrap();
    let (_, said) = ends(&desk, 2, "build cut.jsonl.zst logs/b.jsonl --out part");
    assert!(said.contains("damaged or cut off"), "{said}");
    assert_eq!(names(desk.path()), ["cut.jsonl.zst", "logs", "none.jsonl", "part"]);
    ends(&desk, 0, "query part past b/1");
}

#[test]
fn one_of_several_executions_is_named() {
    let desk = desk();
    fs::write(desk.path().join("two.log"), TWO).unwrap();
    fs::write(desk.path().join("m.toml"), MAPPING).unwrap();
    let build = "build two.log --mapping m.toml --violation none --out exec";
    let (_, said) = ends(&desk, 2, build);
    assert!(said.contains("several executions; name one with --execution: one, two"), "{said}");
    let (told, _) = ends(&desk, 0, &format!("{build} --execution one"));
    assert!(told.contains("logs/one: 2 events, 1 deliveries"), "{told}");
    let (told, _) = ends(&desk, 0, &format!("{build} --execution two --system s"));
    assert!(told.contains("s/two: 1 events, 0 deliveries"), "{told}");
    let (_, said) = ends(&desk, 2, &format!("{build} --execution three"));
    assert!(said.contains("no execution 'three'; they hold one, two"), "{said}");
}

#[test]
fn logs_and_stores_are_not_mixed() {
    let desk = desk();
    ends(&desk, 0, "ingest load --store store --system s logs");
    assert!(ends(&desk, 2, "build logs --store store --out exec").1.contains("cannot be used with"));
    assert!(ends(&desk, 2, "build --out exec").1.contains("name logs, or an event store"));
    assert!(ends(&desk, 2, "build --store store --mapping json --out exec").1.contains("is for logs"));
    // The store of the environment is meant where no log is named.
    let by_environment = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
        let command = command.args(line.split_whitespace()).current_dir(desk.path());
        String::from_utf8(command.env("DEMI_STORE", "store").output().unwrap().stdout).unwrap()
    };
    assert!(by_environment("build --out exec").starts_with("s: "));
    assert!(by_environment("build logs --out exec").starts_with("read "));
}

#[test]
fn redaction_comes_before_anything_is_written() {
    let desk = tempfile::tempdir().unwrap();
    let event = r#"{"actor":"a","seq":1,"kind":"local","payload":"card 4711"}"#;
    fs::write(desk.path().join("c.jsonl"), format!("{event}\nno record of 4711\n")).unwrap();
    fs::write(desk.path().join("r.toml"), "[[redact.rules]]\npattern = '4711'\nreplace = \"<card>\"\n")
        .unwrap();
    let (_, said) = ends(&desk, 0, "build c.jsonl --violation none --redact r.toml --copy --out exec");
    let (told, _) = ends(&desk, 0, "export exec --format json");
    assert!(told.contains("card <card>"), "{told}");
    assert!(![said, told].concat().contains("4711"));
}
