//! Programs that are linked statically, as Go's are: no library can be loaded into them, so they are loaded into a process that did.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use demi_programs::{Answer, Fault, Input, Launch, Nodes, Process, ProgramError};

use crate::citizens::{SECOND, launch};

/// A program made of these sources; none where there is no compiler for it.
fn made(folder: &Path, with: &[&str], sources: &[&str]) -> Option<PathBuf> {
    let program = folder.join("guest");
    let of = |name: &&str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let done =
        Command::new(with[0]).args(&with[1..]).arg("-o").arg(&program).args(sources.iter().map(of)).output();
    let Ok(done) = done else {
        println!("skipped: no {}", with[0]);
        return None;
    };
    if !done.status.success() && with.contains(&"-static") {
        println!("skipped: nothing is linked statically here");
        return None;
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

fn of(folder: &Path, command: &[&Path]) -> Arc<Launch> {
    let mut launch = launch(folder, "").as_ref().clone();
    launch.command = command.iter().map(|word| word.display().to_string()).collect();
    Arc::new(launch)
}

/// What Go programs write, line for line, with and without C in them.
fn in_go(sources: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = made(folder.path(), &["go", "build"], sources) else { return };
    let launch = of(folder.path(), &[&program]);
    let told = |process: &mut Process, line: &str| -> Answer {
        let answer = process.deliver(line).unwrap();
        assert_eq!(answer.ended, None, "{line}: {answer:?}");
        answer
    };
    let all = || -> Vec<String> {
        let mut process = Process::start(&launch).unwrap();
        let mut lines = Vec::new();
        for line in ["hello", "fault", "about", "collect", "random", "file", "signal", "threads", "random"] {
            let answer = told(&mut process, line);
            assert_eq!(answer.lines.len(), 1, "{line}: {answer:?}");
            lines.push(answer.lines[0].to_string());
        }
        assert!(told(&mut process, "sleep").lines.is_empty());
        let answer = process.pass_time().unwrap();
        lines.extend(answer.lines.iter().map(ToString::to_string));
        assert!(answer.clock >= 3 * SECOND / 2 && answer.clock < 2 * SECOND, "{answer:?}");
        for (line, steps) in [("many", 1), ("blocks", 4)] {
            lines.extend(told(&mut process, line).lines.iter().map(ToString::to_string));
            for _ in 0..steps {
                lines.extend(process.pass_time().unwrap().lines.iter().map(ToString::to_string));
            }
        }
        lines.push(told(&mut process, "hello").lines[0].to_string());
        lines
    };
    let first = all();
    assert_eq!(first, all());
    assert_eq!(first[0], "echo hello");
    assert_eq!(first[1], "runtime error: invalid memory address or nil pointer dereference");
    let path = program.canonicalize().unwrap();
    assert_eq!(first[2], format!("{} 4242 1 1 22:13:20", path.display()));
    assert_eq!(first[3], "collected true 999");
    assert_ne!(first[4], first[8]);
    let rest = ["slept 22:13:21", "sum 4950", "tick 0", "tick 1", "tick 2", "read", "echo hello"];
    assert_eq!(first[5..8], ["hello <nil>", "user defined signal 1", "threads 6"]);
    assert_eq!(first[9..], rest);
    // A loss of power leaves what was synced.
    let left = |lines: &[&str]| -> Vec<String> {
        let nodes = Nodes::new(vec![("n1".to_owned(), Launch { synced: true, ..Launch::clone(&launch) })]);
        let mut at = nodes.step(0, None, Input::Begin).unwrap();
        for line in lines {
            at = nodes.step(0, Some(&at), Input::Line((*line).into())).unwrap();
        }
        let disk = nodes.killed(&at, true).unwrap();
        disk.files().into_iter().map(|(name, text)| format!("{name} {}", text.len())).collect()
    };
    assert!(left(&["file"]).is_empty());
    assert_eq!(left(&["file", "folder"]), ["kept.txt 5"]);
    // What it may not do is said, and how it ends.
    let fault = |line: &str| match Process::start(&launch).unwrap().deliver(line) {
        Err(ProgramError::Step { fault, .. }) => fault,
        other => panic!("{line}: {other:?}"),
    };
    assert!(matches!(fault("starts"), Fault::Forks));
    assert!(matches!(fault("listens"), Fault::Connects));
    assert!(matches!(fault("dials"), Fault::Connects));
    assert!(matches!(fault("spins"), Fault::Computes(_)));
    for (line, status, says) in [("exits", 3, ""), ("panics", 2, "panic: no"), ("faults", 2, "nil pointer")] {
        let answer = Process::start(&launch).unwrap().deliver(line).unwrap();
        assert_eq!(answer.ended, Some(format!("exit status: {status}")), "{line}");
        assert!(answer.stderr.contains(says), "{answer:?}");
    }
}

#[test]
fn the_runtime_of_go_has_the_schedulers_time() {
    in_go(&["runtime.go"]);
}

#[test]
fn the_runtime_of_go_with_c_in_it_has_the_schedulers_time() {
    in_go(&["runtime.go", "linked.go"]);
}

/// A script that becomes such a program, and one that is started with no script.
#[test]
fn a_shell_becomes_a_program_that_is_linked_statically() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = made(folder.path(), &["cc", "-O2", "-static"], &["descriptors.c"]) else { return };
    let script = folder.path().join("start.sh");
    std::fs::write(&script, format!("cd .\nexec {} \"$@\"\n", program.display())).unwrap();
    let line =
        r#"{"src":"c0","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1","node_ids":["n1"]}}"#;
    let first = Process::start(&of(folder.path(), &[&program])).unwrap().deliver(line).unwrap();
    let second = Process::start(&of(folder.path(), &[Path::new("/bin/sh"), &script])).unwrap().deliver(line);
    assert_eq!(first.lines.len(), 1, "{first:?}");
    assert_eq!(first.lines, second.unwrap().lines);
}
