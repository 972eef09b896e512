//! Standard output that is full, or a terminal.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command in a folder; `{}` in its line is a space within a word.
fn run(folder: &Path, line: &str, full: bool) -> Output {
    let program = assert_cmd::cargo::cargo_bin("demi-lineage");
    let mut command = Command::new(program);
    command.current_dir(folder).args(line.split(' ').map(|word| word.replace("{}", " ")));
    if full {
        command.stdout(Stdio::from(File::options().write(true).open("/dev/full").unwrap()));
    }
    command.output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_to_standard_output_is_an_error_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let log = r#"{"actor":"a\u001b[31mred","seq":1,"kind":"send","msg_id":"m","to":"b"}
{"actor":"b","seq":1,"kind":"receive","msg_id":"m","from":"a\u001b[31mred"}
{"actor":"b","seq":2,"kind":"state","state":{"x":1}}
"#;
    let scenario = "model = \"two-phase\"\nnetwork = \"fifo\"\n[switches]\ncommit_on_timeout = true\n[fuzz]\nclient_messages = 6\n";
    fs::write(folder.path().join("log.jsonl"), log).unwrap();
    fs::write(folder.path().join("bug.toml"), scenario).unwrap();
    for line in [
        "ingest load --store st --system s log.jsonl",
        "build --store st --out ex --system s --violation none",
        "fuzz --scenario bug.toml --seed 1 --out run",
    ] {
        let done = run(folder.path(), line, false);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let lines = [
        "--help",
        "ingest load --help",
        "--version",
        "ingest load --store st --system s log.jsonl",
        "ingest status --store st",
        "ingest status --store st --json",
        "ingest mappings",
        "ingest parse log.jsonl",
        "build --store st --out ex2 --system s --violation none",
        "query st order b/1 b/2",
        "query ex past b/2",
        "query ex path b/1 b/2",
        "query ex --sql select{}*{}from{}events",
        "query ex --sql select{}actor{}from{}events --format csv",
        "export ex --format dot",
        "export ex --format shiviz",
        "infer st",
        "report ex --html page.html",
        "replay run --scenario bug.toml",
        "fuzz --scenario bug.toml --seed 1 --out run2",
        "explore --scenario bug.toml --out explored",
        "completions bash",
    ];
    for line in lines {
        let told = run(folder.path(), line, false);
        assert!(!told.stdout.is_empty(), "{line} says nothing: {}", String::from_utf8_lossy(&told.stderr));
        for made in ["ex2", "run2", "explored", "page.html"] {
            let made = folder.path().join(made);
            let _ = fs::remove_dir_all(&made).or_else(|_| fs::remove_file(&made));
        }
        let full = run(folder.path(), line, true);
        let error = String::from_utf8_lossy(&full.stderr);
        assert_eq!(full.status.code(), Some(2), "{line}: {error}");
        assert!(!error.contains('\u{1b}'), "{line}: {error:?}");
    }
}

#[test]
fn errors_obey_no_name_of_an_actor() {
    let folder = tempfile::tempdir().unwrap();
    let log = "{\"actor\":\"a\\u001b[31mred\",\"seq\":1,\"kind\":\"local\"}\n";
    fs::write(folder.path().join("log.jsonl"), log).unwrap();
    assert!(run(folder.path(), "ingest load --store st --system s log.jsonl", false).status.success());
    let refused = run(folder.path(), "build --store st --out ex --system s", false);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("actors: a\\u{1b}[31mred") && !error.contains('\u{1b}'), "{error:?}");
}
