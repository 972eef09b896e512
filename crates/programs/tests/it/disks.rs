//! What a loss of power leaves of a node's files, and kills between two writes of one step.

use std::sync::Arc;

use demi_programs::{Disk, Input, Launch, Local, Nodes, Process, WithPrograms};
use demi_replay::Registry;
use demi_replay::registry::NoModels;

use crate::citizens::{launch, python};
use crate::workloads::{NODE, Search, scenario};

/// Functions that the patterns are made of.
const FILES: &str = r#"
import os, sys
def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)
def sync(path):
    flags = os.O_RDONLY if os.path.isdir(path) else os.O_WRONLY
    fd = os.open(path, flags)
    os.fsync(fd)
    os.close(fd)
for line in sys.stdin:
    exec(line.replace("; ", "\n"))
    print("done", flush=True)
"#;

/// The files after a kill, of a process that found `old` with the content `1` and did this.
fn left(pattern: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch { synced: true, ..Launch::clone(&launch(folder.path(), FILES)) };
    let nodes = Nodes::new(vec![("n1".to_owned(), launch)]);
    let step = |before: &Arc<Local>, line: &str| nodes.step(0, Some(before), Input::Line(line.into()));
    // The first process makes `old` for good, and the second begins with it.
    let begun = nodes.step(0, None, Input::Begin).unwrap();
    let first = step(&begun, "write('old', '1'); sync('old'); sync('.')").expect("the first");
    let root = Arc::new(nodes.killed(&first, true).unwrap());
    let second = nodes.step_of(&root, None, Input::Line(pattern.into())).expect(pattern);
    assert_eq!(second.answer().lines, [Arc::from("done")], "{}", second.answer().stderr);
    let files = nodes.killed(&second, true).unwrap();
    let files = files.files();
    assert!(nodes.fault().is_none(), "{:?}", nodes.fault());
    files
        .into_iter()
        .map(|(path, bytes)| (path.to_owned(), String::from_utf8(bytes.to_vec()).unwrap()))
        .collect()
}

/// A file's content survives where the file was synced after it was written, its name where the folder was after it got it.
#[test]
fn what_was_not_synced_is_lost() {
    if !python() {
        return;
    }
    let table: [(&str, &[(&str, &str)]); 15] = [
        ("write('new', '2')", &[("old", "1")]),
        ("write('new', '2'); sync('new')", &[("old", "1")]),
        ("write('new', '2'); sync('.')", &[("new", ""), ("old", "1")]),
        ("write('new', '2'); sync('new'); sync('.')", &[("new", "2"), ("old", "1")]),
        ("write('old', '2')", &[("old", "1")]),
        ("write('old', '2', 'a')", &[("old", "1")]),
        ("write('old', '2', 'a'); sync('old')", &[("old", "12")]),
        ("write('old', '2'); sync('old'); write('old', '3')", &[("old", "2")]),
        ("write('new', '2'); sync('new'); os.rename('new', 'old')", &[("old", "1")]),
        ("write('new', '2'); sync('new'); os.rename('new', 'old'); sync('.')", &[("old", "2")]),
        ("write('new', '2'); os.rename('new', 'old'); sync('.')", &[("old", "")]),
        ("os.unlink('old')", &[("old", "1")]),
        ("os.unlink('old'); sync('.')", &[]),
        ("os.mkdir('sub'); write('sub/new', '2'); sync('sub/new'); sync('sub')", &[("old", "1")]),
        (
            "os.mkdir('sub'); write('sub/new', '2'); os.sync(); write('sub/new', '3')",
            &[("old", "1"), ("sub/", ""), ("sub/new", "2")],
        ),
    ];
    for (pattern, expected) in table {
        let expected: Vec<(String, String)> =
            expected.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        assert_eq!(left(pattern), expected, "{pattern}");
    }
    // A number that is free again is given to another file, and writes that wait are not lost.
    let reused = "write('gone', '2'); sync('gone'); sync('.'); os.unlink('gone'); write('other', '3')";
    assert_eq!(left(reused), [("gone".to_owned(), "2".to_owned()), ("old".to_owned(), "1".to_owned())]);
    let waits = "fd = os.open('log', os.O_CREAT | os.O_WRONLY | os.O_DSYNC); os.write(fd, b'2'); sync('.')";
    assert_eq!(left(waits), [("log".to_owned(), "2".to_owned()), ("old".to_owned(), "1".to_owned())]);
}

#[test]
fn a_process_is_killed_after_as_many_writes_as_it_is_told() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, sys\nfor line in sys.stdin:\n    open('a', 'w').write('1')\n    print('said', flush=True)\n    os.rename('a', 'b')\n    \
                print('half', end='', flush=True)\n    print(' a line', flush=True)\n    print('not counted', file=sys.stderr, flush=True)";
    let disk = |process: &Process| -> Vec<String> {
        process.disk().unwrap().files().into_keys().map(str::to_owned).collect()
    };
    let none: &[&str] = &[];
    for (writes, said, files) in [
        (1, none, ["a"].as_slice()),
        (2, none, &["a"]),
        (3, &["said"], &["a"]),
        (4, &["said"], &["b"]),
        (5, &["said"], &["b"]),
        (6, &["said", "half a line"], &["b"]),
    ] {
        let mut process = Process::start(&launch(folder.path(), text)).unwrap();
        process.kill_after(writes).unwrap();
        let answer = process.deliver("x").unwrap();
        let lines: Vec<&str> = answer.lines.iter().map(|line| &**line).collect();
        assert_eq!(
            (lines.as_slice(), disk(&process).as_slice()),
            (said, files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>().as_slice()),
            "{writes}"
        );
        assert!(answer.ended.unwrap().starts_with("signal: 9"), "{writes}");
    }
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    process.kill_after(7).unwrap();
    assert_eq!(process.deliver("x").unwrap().ended, None);
    let _: Disk = process.disk().unwrap();
}

/// A register of one node that keeps its value in a file: as a file should be replaced, or in one of the ways that lose something.
fn stored(save: &str) -> String {
    let rest = format!(
        r#"
import os
def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
def save(text):
{save}
values = json.load(open("state")) if os.path.exists("state") and os.path.getsize("state") else {{}}
def handle(message, body, kind):
    key = str(body.get("key"))
    if kind == "write":
        values[key] = body["value"]
        save(json.dumps(values))
        reply(message, {{"type": "write_ok"}})
    elif kind == "cas":
        reply(message, {{"type": "error", "code": 10, "text": "not supported"}})
    elif key in values:
        reply(message, {{"type": "read_ok", "value": values[key]}})
    else:
        reply(message, {{"type": "error", "code": 20, "text": "nothing"}})
run(handle)"#
    );
    format!("{NODE}{rest}")
}

fn broken(program: &str, disk: &str, runs: u64) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let more = format!(
        "processes = 2\n[process]\ndisk = {disk:?}\n[fuzz]\nweight_crash = 1.0\nweight_restart = 2.0\n"
    );
    let mut scenario = scenario(folder.path(), program, "lin-kv", "unordered", &more);
    if let demi_schemas::ModelRef::Child(child) = &mut scenario.model {
        child.nodes = Some(demi_schemas::ProgramNodes::Count(1));
    }
    let registry = WithPrograms::new(NoModels);
    let found =
        registry.visit(&scenario, Search { scenario: &scenario, seed: 1, runs, deliveries: 80 }).unwrap();
    assert_eq!(registry.fault(), None);
    found
}

/// A loss of power finds what is not synced, a kill within a step what is not replaced at once; who does it right loses nothing.
#[test]
fn files_that_are_written_carelessly_lose_what_was_acknowledged() {
    if !python() {
        return;
    }
    let right = "    with open('new', 'w') as file:\n        file.write(text)\n        file.flush()\n        os.fsync(file.fileno())\n    os.rename('new', 'state')\n    sync('.')";
    let unsynced =
        "    with open('new', 'w') as file:\n        file.write(text)\n    os.rename('new', 'state')";
    let in_place = "    with open('state', 'w') as file:\n        file.flush()\n        os.fsync(file.fileno())\n        file.write(text)\n        file.flush()\n        os.fsync(file.fileno())\n    sync('.')";
    let lost = Some(vec!["lin-kv/not linearizable".to_owned()]);
    assert_eq!(broken(&stored(right), "synced", 6), None);
    assert_eq!(broken(&stored(unsynced), "synced", 40), lost);
    // Without a loss of power that is enough.
    assert_eq!(broken(&stored(unsynced), "kept", 6), None);
    // Between emptying the file and writing it there is one write.
    assert_eq!(broken(&stored(in_place), "synced", 300), lost);
}
