//! What is redacted is written nowhere: not in the spool, not in the store, not in quarantine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::support::kill::daemon::Daemon;
use crate::support::run::demi;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use assert_cmd::Command;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// What must not be written.
const SECRETS: [&str; 3] = ["hunter2", "4111111111111111", "ada@example.org"];

const LOG: &str = r#"{"actor":"a","seq":1,"kind":"send","to":"b","type":"Login","payload":"ada@example.org pays with 4111111111111111","fields":{"password":"hunter2"}}
{"actor":"a","seq":2,"kind":"send","to":"b","type":"Login","payload":"ada@example.org","fields":{"password":"hunter2"}}
{"actor":"a","seq":2,"kind":"send","to":"b","type":"Login","payload":"ada@example.org again","fields":{"password":"hunter2"}}
{"actor":"b","seq":1,"kind":"receive","from":"a","to":"b","type":"Login","payload":"ada@example.org pays with 4111111111111111"}
{"actor":"a","seq":"ada@example.org","kind":"send"}
no record of hunter2, 4111111111111111
"#;

/// The table of rules, with a key in the folder.
fn rules(folder: &Path) -> String {
    let key = folder.join("key");
    fs::write(&key, "a key of enough bytes\n").unwrap();
    format!(
        "[redact]\nkey_file = {key:?}\n[[redact.rules]]\nfield = \"fields.password\"\n\
         [[redact.rules]]\npattern = '\\b\\d{{13,16}}\\b'\nreplace = \"<card>\"\n\
         [[redact.rules]]\npattern = '[\\w.]+@[\\w.]+'\nhash = true\n"
    )
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

/// All bytes below a folder, and all texts of tables.
fn written(folder: &Path) -> String {
    let (mut all, mut text) = (Vec::new(), String::new());
    files(folder, &mut all);
    for path in all {
        text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        if path.extension().is_none_or(|e| e != "parquet") {
            continue;
        }
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path).unwrap()).unwrap();
        for batch in reader.build().unwrap().map(Result::unwrap) {
            for column in batch.columns() {
                for row in (0..column.len()).filter(|&row| column.is_valid(row)) {
                    if let Some(texts) = column.as_string_opt::<i32>() {
                        text.push_str(texts.value(row));
                    } else if let Some(bytes) = column.as_binary_opt::<i32>() {
                        text.push_str(&String::from_utf8_lossy(bytes.value(row)));
                    }
                    text.push('\n');
                }
            }
        }
    }
    text
}

fn has_no_secrets(text: &str, what: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} has {secret}");
    }
}

#[test]
fn a_load_writes_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("a.jsonl"), LOG).unwrap();
    fs::write(at("redact.toml"), rules(folder.path())).unwrap();
    let load = |store: &str, more: &[&str]| {
        demi(
            &[&["ingest", "load", "--store", store, "--system", "s", &at("a.jsonl"), "--json"], more]
                .concat(),
        )
    };
    load(&at("open"), &[]);
    let open = written(Path::new(&at("open")));
    assert!(SECRETS.iter().all(|secret| open.contains(secret)), "the check finds nothing");

    let more = ["--redact", &at("redact.toml")];
    let loaded = load(&at("store"), &more);
    assert_eq!(
        (&loaded["added"], &loaded["conflicts"], &loaded["quarantined"]),
        (&3.into(), &1.into(), &3.into())
    );
    let text = written(Path::new(&at("store")));
    has_no_secrets(&text, "the store");
    assert!(text.contains("pays with <card>") && text.contains("h:"), "{text}");
    // What is read again is known, and both ends of a message still have the same content.
    assert_eq!(load(&at("store"), &more)["added"], 0);
    let built = demi(&[
        "build",
        "--store",
        &at("store"),
        "--system",
        "s",
        "--violation",
        "actors:b",
        "--out",
        &at("exec"),
        "--json",
    ]);
    assert_eq!(built["matched"], 1, "{built}");

    for (file, word) in [("missing.toml", "missing.toml"), ("a.jsonl", "a.jsonl")] {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args([
            "ingest",
            "load",
            "--store",
            &at("none"),
            "--system",
            "s",
            &at("a.jsonl"),
            "--redact",
            &at(file),
        ]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(word));
    }
}

#[test]
fn a_mapped_load_writes_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let lines =
        "a {\"a\":1}\nhunter2 of ada@example.org\na {\"a\":2}\nhunter2\nneither: 4111111111111111\n\n";
    fs::write(at("a.log"), lines).unwrap();
    let patterns = rules(folder.path()).replace("field = \"fields.password\"", "pattern = \"hunter2\"");
    fs::write(at("redact.toml"), patterns).unwrap();
    let (log, rules) = (at("a.log"), at("redact.toml"));
    let load = |store: &str, more: &[&str]| {
        let arguments =
            ["ingest", "load", "--store", store, "--system", "s", &log, "--mapping", "govector", "--json"];
        demi(&[&arguments, more].concat())
    };
    let open = load(&at("open"), &[]);
    let text = written(Path::new(&at("open")));
    assert!(SECRETS.iter().all(|secret| text.contains(secret)), "the check finds nothing");
    let loaded = load(&at("store"), &["--redact", &rules]);
    assert_eq!((&loaded["added"], &loaded["quarantined"]), (&open["added"], &open["quarantined"]));
    assert!(loaded["quarantined"].as_u64() > Some(0), "{loaded}");
    has_no_secrets(&written(Path::new(&at("store"))), "the store");
}

#[test]
fn a_daemon_spools_no_secrets() {
    for redacts in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let d = folder.path().display();
        let rules = if redacts { rules(folder.path()) } else { String::new() };
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n{rules}\
             [admin]\nlisten = \"127.0.0.1:0\"\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*\"]\npoll_millis = 20\nscan_millis = 50\n\
             [sources.tcp]\ntype = \"tcp\"\nsystem = \"t\"\nlisten = \"127.0.0.1:0\"\n"
        );
        fs::create_dir_all(folder.path().join("logs")).unwrap();
        let mut daemon = Daemon::with_config(folder.path(), &config);
        daemon.start();
        let mut tcp = TcpStream::connect(daemon.addresses().get("tcp").unwrap()).unwrap();
        tcp.write_all(LOG.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&tcp).read_line(&mut answer).unwrap();
        fs::write(folder.path().join("logs/a.jsonl"), LOG).unwrap();
        daemon.wait_for(3);
        daemon.wait_until("quarantine", || daemon.get("/metrics").contains("reason=\"conflict\"} 2"));
        daemon.stop();
        let (spool, store) = (written(&folder.path().join("spool")), written(&folder.path().join("store")));
        if !redacts {
            assert!(SECRETS.iter().all(|s| store.contains(s)), "the check finds nothing");
            assert!(spool.contains("hunter2"), "the check finds nothing in the spool");
            continue;
        }
        has_no_secrets(&spool, "the spool");
        has_no_secrets(&store, "the store");
        // A later load under the same rules finds everything there.
        fs::write(folder.path().join("redact.toml"), &rules).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let loaded = demi(&[
            "ingest",
            "load",
            "--store",
            &at("store"),
            "--system",
            "t",
            &at("logs/a.jsonl"),
            "--redact",
            &at("redact.toml"),
            "--json",
        ]);
        assert_eq!((&loaded["added"], &loaded["duplicates"]), (&0.into(), &3.into()), "{loaded}");
    }
}

/// Who may write the rules or their key decides what is hidden: files that others may write are refused by name, by every command that
/// reads them.
#[test]
fn rules_that_others_may_write_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("a.jsonl"), LOG).unwrap();
    fs::write(at("rules.toml"), rules(folder.path())).unwrap();
    let load = |store: &str| {
        let store = at(store);
        let arguments = [
            "ingest",
            "load",
            &at("a.jsonl"),
            "--store",
            &store,
            "--system",
            "s",
            "--redact",
            &at("rules.toml"),
            "-q",
        ];
        let (status, _, said) = crate::support::run::output(&arguments);
        (status, said, Path::new(&store).exists())
    };
    let mode = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    for name in ["rules.toml", "key"] {
        mode(name, 0o666);
        let (status, said, written) = load(&format!("store of {name}"));
        assert_eq!((status, written), (2, false), "{name}: {said}");
        assert!(said.contains(name) && said.contains("can be written by every user"), "{name}: {said}");
        mode(name, 0o600);
    }
    let (status, said, written) = load("store");
    assert!(status == 0 && written, "{said}");
}
