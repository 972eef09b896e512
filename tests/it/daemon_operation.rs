//! The daemon's configuration as it is shipped, and lines of the quarantine that are read again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;
use crate::support::tls;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use demi_store::Store;
use kill::check::rows;
use predicates::str::contains;
use tls::Authority;

#[test]
fn the_example_configuration_is_valid_and_slips_are_named() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("ingest/daemon/dist/demi.toml");
    let validate = |path: &Path| {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", "validate"]).arg(path);
        command
    };
    validate(&example).assert().success().stdout(contains("fine; sources: http"));
    // What is commented out is valid too, and is the default. Files of secrets are looked into.
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.sign().write(dir.path(), "cert");
    fs::rename(dir.path().join("cert.key"), dir.path().join("key.pem")).unwrap();
    authority.write(&dir.path().join("clients.pem"));
    authority.write(&dir.path().join("ca.pem"));
    fs::write(dir.path().join("redact.key"), "0123456789abcdef\n").unwrap();
    fs::write(dir.path().join("tokens"), "token\n").unwrap();
    let invariants = "schema = \"demi-invariants/1\"\n[[invariant]]\nholds = \"term >= prev.term\"\n";
    fs::write(dir.path().join("invariants.toml"), invariants).unwrap();
    fs::write(dir.path().join("scenario.toml"), "model = \"akka-raft\"\n").unwrap();
    let text = fs::read_to_string(&example)
        .unwrap()
        .replace("/etc/demi-lineage/", &format!("{}/", dir.path().display()));
    let path = dir.path().join("demi.toml");
    let uncommented: String = text
        .lines()
        .map(|line| {
            let rest = line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('['));
            rest.unwrap_or(line)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&path, uncommented).unwrap();
    validate(&path).assert().success().stdout(contains("logs (system prod), queue (system prod), tcp ("));
    fs::write(&path, text.replace("[admin]", "[admn]")).unwrap();
    validate(&path).assert().code(2).stderr(contains("unknown key 'admn': did you mean 'admin'?"));
    fs::write(&path, text.replace("127.0.0.1:9465", "0.0.0.0:9465")).unwrap();
    validate(&path).assert().code(2).stderr(contains("0.0.0.0:9465 is not a loopback address"));
    validate(&dir.path().join("nowhere.toml"))
        .assert()
        .code(2)
        .stderr(contains("nowhere.toml: cannot be read"));
}

#[test]
fn quarantined_lines_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, log, map) = (dir.path().join("store"), dir.path().join("a.log"), dir.path().join("m.toml"));
    fs::write(
        &log,
        "node=a n=1 did=start\nnode=a n=2 did=start\nnoise\n{\"actor\":\"b\",\"seq\":1,\"kind\":\"start\"}\n",
    )
    .unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", args[0], "--store"]).arg(&store).args(["--system", "s"]).args(&args[1..]);
        command.assert()
    };
    run(&["load", log.to_str().unwrap()]).success();
    run(&["requeue"]).success().stdout(contains(
        "3 lines in quarantine; 0 events added, 0 there already, 0 lines that are none, 3 stay",
    ));
    fs::write(
        &map,
        "name = \"m\"\ndescription = \"test\"\n[input]\ncontainer = \"logfmt\"\n[event]\nactor = \"{node}\"\nseq = \"{n}\"\nkind = \"{did}\"\n",
    )
    .unwrap();
    let again = ["requeue", "--mapping", map.to_str().unwrap()];
    run(&again).success().stdout(contains("2 events added, 0 there already, 0 lines that are none, 1 stay"));
    run(&again).success().stdout(contains("1 lines in quarantine; 0 events added"));
    let opened = Store::open(&store).unwrap();
    assert_eq!(rows(&opened.event_files("s").unwrap()), 3);
    assert_eq!(rows(&opened.quarantine_files("s").unwrap()), 1);
}

/// More files than may be open: all are read, in turn, and a line added later too.
#[test]
fn more_files_than_descriptors_are_read_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path().display();
    fs::create_dir(dir.path().join("logs")).unwrap();
    let line = |file: u32, seq: u32| format!("{{\"actor\":\"a{file}\",\"seq\":{seq},\"kind\":\"local\"}}\n");
    for file in 0..400 {
        let text = line(file, 1) + &line(file, 2);
        fs::write(dir.path().join(format!("logs/{file}.jsonl")), text).unwrap();
    }
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*\"]\npoll_millis = 20\nscan_millis = 200\n"
    );
    let path = dir.path().join("c.toml");
    fs::write(&path, config).unwrap();
    let program = env!("CARGO_BIN_EXE_demi-lineage");
    let mut daemon = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" ingest serve --config \"$1\" 2> \"$2\"", program])
        .args([&path, &dir.path().join("log")])
        .spawn()
        .unwrap();
    let stored = || {
        let store = Store::open(dir.path().join("store")).ok()?;
        Some(rows(&store.event_files("s").ok()?))
    };
    let wait_for = |expected: u64| {
        let begin = std::time::Instant::now();
        while stored() != Some(expected) && begin.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        stored()
    };
    let all = wait_for(800);
    for file in [3, 399] {
        let path = dir.path().join(format!("logs/{file}.jsonl"));
        let mut log = fs::OpenOptions::new().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut log, line(file, 3).as_bytes()).unwrap();
    }
    let more = wait_for(802);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!((all, more), (Some(800), Some(802)), "{log}");
    assert_eq!(log.matches("read in turn").count(), 1, "{log}");
}
