//! Threads that end, signals between threads, and standard output under other numbers: each has its place in the order of turns, however long it takes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use demi_programs::{Answer, Process};
use serde_json::{Value, json};

use crate::citizens::{SECOND, launch, python};

fn lines(answer: &Answer) -> Vec<&str> {
    answer.lines.iter().map(AsRef::as_ref).collect()
}

/// What a thread does when it ends is a part of the step: it holds locks of the program and of the C library. The next thread has its stack.
#[test]
fn a_thread_has_its_turn_until_it_is_gone() {
    for kind in ["-DOF_POSIX", "-DOF_C"] {
        ends_in_its_turn(kind);
    }
}

fn ends_in_its_turn(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("thread-ends").display().to_string();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/thread_ends.c");
    match Command::new("cc").args(["-O2", "-pthread", kind, "-o"]).arg(&program).arg(&source).output() {
        Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
        Err(_) => return println!("skipped: no cc"),
    }
    let mut launch = launch(folder.path(), "").as_ref().clone();
    launch.command = vec![program];
    launch.step = std::time::Duration::from_secs(60);
    let mut process = Process::start(&Arc::new(launch)).unwrap();
    let line = |body: Value| json!({ "src": "c1", "dest": "n1", "body": body }).to_string();
    process
        .deliver(&line(json!({ "type": "init", "msg_id": 0, "node_id": "n1", "node_ids": ["n1"] })))
        .unwrap();
    for id in 1..5 {
        let answer =
            process.deliver(&line(json!({ "type": "echo", "msg_id": id, "echo": "again" }))).unwrap();
        let [told] = lines(&answer)[..] else { panic!("{answer:?}") };
        let told: Value = serde_json::from_str(told).unwrap();
        assert_eq!((&told["body"]["in_reply_to"], &told["body"]["stacks"]), (&json!(id), &json!(1)));
    }
}

/// A signal that one thread sends another, or the process, ends a wait as it does without a scheduler.
#[test]
fn a_signal_wakes_a_thread_that_waits() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, signal, sys, threading, time\n\
                def told(number, frame): print('signal', number, flush=True)\n\
                signal.signal(signal.SIGUSR1, told)\n\
                main = threading.main_thread().ident\n\
                def reads():\n    \
                    for line in sys.stdin:\n        \
                        if line.strip() == 'thread': signal.pthread_kill(main, signal.SIGUSR1)\n        \
                        else: os.kill(os.getpid(), signal.SIGUSR1)\n\
                threading.Thread(target=reads, daemon=True).start()\n\
                while True: time.sleep(1000)\n";
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    for (line, clock) in [("thread", 1000), ("process", 2000), ("thread", 3000), ("process", 4000)] {
        let answer = process.deliver(line).unwrap();
        assert_eq!((lines(&answer), answer.clock), (vec!["signal 10"], clock), "{line}");
    }
}

/// A step of the clock ends with what was written, also where the scheduler took that before the program waits again.
#[test]
fn standard_output_under_another_number_ends_a_step_too() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, time\nfd = os.dup(1)\nn = 0\nwhile True:\n    time.sleep(1)\n    n += 1\n    os.write(fd, b'tick %d\\n' % n)\n    \
                for i in range(1000000): pass\n";
    let mut launch = launch(folder.path(), text).as_ref().clone();
    launch.step = std::time::Duration::from_secs(60);
    let mut process = Process::start(&Arc::new(launch)).unwrap();
    for n in 1..4 {
        let answer = process.pass_time().unwrap();
        assert_eq!(lines(&answer), [format!("tick {n}")]);
        assert!((n * SECOND..n * SECOND + SECOND / 1000).contains(&answer.clock), "{answer:?}");
    }
}
