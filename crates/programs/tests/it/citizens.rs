//! Programs that do what a scheduled program cannot do: each is told in words that say what to change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use demi_programs::{Fault, Launch, Process, ProgramError, resolve};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Whether there is a Python to run programs with.
pub(crate) fn python() -> bool {
    let there = resolve(&["python3".into()]).is_ok();
    if !there {
        println!("skipped: no python3");
    }
    there
}

/// How a program in Python is started.
pub(crate) fn launch(folder: &Path, text: &str) -> Arc<Launch> {
    let file = folder.join("program.py");
    std::fs::write(&file, text).unwrap();
    Arc::new(Launch {
        command: resolve(&["python3".into(), file.display().to_string()]).unwrap(),
        seed: 1,
        memory: 1 << 30,
        step: Duration::from_secs(3),
        outputs: 100,
        limit: 60 * SECOND,
        quantum: SECOND / 100,
        place: 0,
        synced: false,
    })
}

/// Programs beside each other have numbers of their own, and do not begin in the same nanosecond: identifiers made of these are not equal by chance.
#[test]
fn two_nodes_are_two_programs() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, sys, time\nprint(os.getpid(), time.time_ns(), flush=True)\nfor line in sys.stdin: print(os.getpid(), flush=True)\n";
    let told = |place: u32| -> Vec<u64> {
        let launch = Launch { place, ..Launch::clone(&launch(folder.path(), text)) };
        let mut process = Process::start(&Arc::new(launch)).unwrap();
        let begun = process.begun().unwrap();
        let again = process.deliver("x").unwrap();
        let numbers = begun.lines[0].split(' ').chain([&*again.lines[0]]).map(|text| text.parse().unwrap());
        numbers.collect()
    };
    let (first, second) = (told(0), told(1));
    assert_eq!((first[0], second[0]), (4242, 4242 + 1024));
    assert_eq!((first[0], second[0]), (first[2], second[2]));
    assert_eq!(second[1] - first[1], 1_000_003);
}

/// Why a program ends stands first or last in what it says.
#[test]
fn the_beginning_and_the_end_of_a_long_message_are_shown() {
    if !python() {
        return;
    }
    let text = "import os, sys\nsys.stderr.write('panic: the cause\\n' + 'a frame\\n' * 2000 + 'the end\\n')\nsys.stderr.flush()\n\
                for line in sys.stdin:\n    while True: pass\n";
    match told(text) {
        Err(ProgramError::Step { stderr, .. }) => {
            assert!(
                stderr.starts_with("panic: the cause\n") && stderr.ends_with("a frame\nthe end"),
                "{stderr}"
            );
            assert!(stderr.contains("\n…\n") && stderr.len() < 3000);
        }
        other => panic!("{other:?}"),
    }
}

/// What a program does with one line.
fn told(text: &str) -> Result<Vec<Arc<str>>, ProgramError> {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&launch(folder.path(), text))?;
    let answer = process.deliver("hello")?;
    Ok(answer.lines)
}

fn fault(text: &str) -> Fault {
    match told(text) {
        Err(ProgramError::Step { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_scheduled_is_named() {
    if !python() {
        return;
    }
    let read = "import sys, os, time\nline = sys.stdin.readline()\n";
    assert!(matches!(fault(&format!("{read}while True: pass")), Fault::Computes(_)));
    assert_eq!(
        fault(&format!("{read}\ntry:\n    os.fork()\nexcept OSError:\n    pass\nsys.stdin.readline()")),
        Fault::Forks
    );
    let connects = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9))\nexcept OSError:\n    pass\nsys.stdin.readline()";
    assert_eq!(fault(&format!("{read}{connects}")), Fault::Connects);
    assert_eq!(
        fault(&format!("{read}print('half', end='', flush=True)\nsys.stdin.readline()")),
        Fault::Half("half".into())
    );
    let wide = "print('{\"n\": -36893488147419103232}', flush=True)";
    assert_eq!(fault(&format!("{read}{wide}")), Fault::Wide("-36893488147419103232".into()));
    // Two such lines would be read as one text, and what differs in them would be equal.
    let bytes =
        "sys.stdout.buffer.write(b'{\"id\": \"\\xff1\"}\\n'); sys.stdout.flush(); sys.stdin.readline()";
    assert!(matches!(fault(&format!("{read}{bytes}")), Fault::NotText(text) if text.contains("\u{fffd}1")));
    assert!(matches!(
        fault(&format!("{read}while True: print('x' * 1000, flush=True)")),
        Fault::Floods(100, _)
    ));
    // Long lines and a line without an end are too much long before there are many.
    assert!(matches!(
        fault(&format!("{read}while True: print('x' * 1000000, flush=True)")),
        Fault::Floods(..)
    ));
    assert!(matches!(
        fault(&format!("{read}while True: sys.stdout.write('x' * 1000000)")),
        Fault::Floods(..)
    ));
    // It took the line, and what comes next is never read.
    let waits = "import sys, threading\nsys.stdin.readline()\nthreading.Event().wait()\n";
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&launch(folder.path(), waits)).unwrap();
    assert!(process.deliver("hello").unwrap().lines.is_empty());
    assert!(matches!(process.deliver("more"), Err(ProgramError::Step { fault: Fault::Unread, .. })));
    assert_eq!(
        fault(&format!(
            "{read}import subprocess\ntry:\n    subprocess.run(['true'])\nexcept OSError:\n    pass\nsys.stdin.readline()"
        )),
        Fault::Forks
    );
    assert_eq!(fault(&format!("{read}os.execv('/bin/cat', ['cat'])")), Fault::Replaced);
    let sends = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n";
    assert_eq!(fault(&format!("{read}{sends}")), Fault::Connects);
    let closes = "import os, sys, time\nsys.stdin.readline()\nos.close(0)\ntime.sleep(1e9)\n";
    let mut process = Process::start(&launch(folder.path(), closes)).unwrap();
    process.deliver("hello").unwrap();
    assert!(matches!(process.deliver("more"), Err(ProgramError::Step { fault: Fault::Closed, .. })));
    assert!(matches!(fault(&format!("{read}while True: os.write(2, b'x' * 1000000)")), Fault::Noisy(64)));
    assert_eq!(
        fault(&format!("{read}import signal\nos.kill(int(os.readlink('/proc/self')), signal.SIGSTOP)\n")),
        Fault::Stopped
    );
}

/// A thread that logs by its timer, beside one that reads: its lines go where nobody takes them for messages, and nothing waits for it.
#[test]
fn what_logs_by_a_timer_is_scheduled() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys, threading, time\ndef log():\n    while True:\n        time.sleep(1)\n        print('alive', time.time(), file=sys.stderr, flush=True)\n\
                threading.Thread(target=log, daemon=True).start()\nfor line in sys.stdin:\n    print(line.strip(), flush=True)";
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    for round in 0..10 {
        let answer = process.deliver(&round.to_string()).unwrap();
        // A microsecond passes with each line.
        assert_eq!((answer.lines, answer.clock), (vec![Arc::from(round.to_string())], 1000 * (round + 1)));
    }
    let answer = process.pass_time().unwrap();
    assert!(answer.lines.is_empty() && !answer.wakes, "a minute of logging is silence");
    assert!(answer.stderr.contains("alive"));
}

#[test]
fn what_ends_says_how() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys\nsys.stdin.readline()\nprint('last', flush=True)\nraise KeyError('b')";
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    let answer = process.deliver("hello").unwrap();
    assert_eq!(answer.lines, [Arc::from("last")]);
    assert!(answer.ended.is_some_and(|how| how.contains('1')));
    assert!(process.stderr().contains("KeyError: 'b'"), "{}", process.stderr());
}

#[test]
fn a_line_longer_than_a_pipe_is_read_and_a_long_answer_is_taken() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1], flush=True)";
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    let long = format!("{}y", "x".repeat(300_000));
    let answer = process.deliver(&long).unwrap();
    assert_eq!(answer.lines.len(), 1);
    assert_eq!(answer.lines[0].len(), long.len());
    assert!(answer.lines[0].starts_with("yx"));
}
