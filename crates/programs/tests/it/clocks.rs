//! Time stands still unless a step lets it go on, and every wait ends when its time has come.

use std::sync::Arc;

use demi_programs::{Answer, Process};

use crate::citizens::{SECOND, launch, python};

fn lines(answer: &Answer) -> Vec<&str> {
    answer.lines.iter().map(AsRef::as_ref).collect()
}

/// A program in Python, at its first rest.
fn started(folder: &tempfile::TempDir, text: &str) -> Process {
    Process::start(&launch(folder.path(), text)).unwrap()
}

#[test]
fn a_sleeper_wakes_when_its_clock_goes_on() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text =
        "import time\nwhile True:\n    time.sleep(1.5)\n    print(time.monotonic(), time.time(), flush=True)";
    let mut process = started(&folder, text);
    assert!(process.begun().unwrap().lines.is_empty());
    let first = process.pass_time().unwrap();
    assert!(lines(&first)[0].starts_with("1001.5000"), "{first:?}");
    assert!(first.wakes);
    let second = process.pass_time().unwrap();
    assert!(lines(&second)[0].starts_with("1003.0000"), "{second:?}");
    assert!((3 * SECOND..3 * SECOND + SECOND / 1000).contains(&second.clock), "{second:?}");
}

/// Who sleeps beside its input reads it when it wakes: the clock goes on that far.
#[test]
fn what_comes_for_a_sleeper_is_read_when_it_wakes() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import select, sys, time\nwhile True:\n    time.sleep(2)\n    while select.select([sys.stdin], [], [], 0)[0]:\n        \
                print(sys.stdin.readline().strip(), flush=True)\n        break";
    let mut process = started(&folder, text);
    for (round, line) in ["a", "b", "c"].iter().enumerate() {
        let answer = process.deliver(line).unwrap();
        assert_eq!(lines(&answer), [*line]);
        let woke = (round as u64 + 1) * 2 * SECOND;
        assert!((woke..woke + SECOND / 1000).contains(&answer.clock), "{answer:?}");
    }
}

/// Who looks a thousand times a second is asked some hundred times in a minute, and is late by a 16th at most; a wait beside it ends in time.
#[test]
fn a_silent_minute_of_short_sleeps_costs_few_rounds() {
    if !python() {
        return;
    }
    for nap in ["time.sleep(0.001)", "select.select([sys.stdin], [], [], 0)"] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "import select, sys, time\nrounds, began = 0, time.monotonic()\nwhile time.monotonic() < began + 50:\n    {nap}\n    rounds += 1\n\
             print(rounds, time.monotonic() - began, flush=True)\nsys.stdin.read()"
        );
        let answer = started(&folder, &text).pass_time().unwrap();
        let said: Vec<f64> = lines(&answer)[0].split(' ').map(|number| number.parse().unwrap()).collect();
        assert!(said[0] < 2000.0, "{nap}: {said:?}");
        assert!((50.0..53.2).contains(&said[1]), "{nap}: {said:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import threading, time\ndef naps():\n    while True: time.sleep(0.001)\n\
                threading.Thread(target=naps, daemon=True).start()\ntime.sleep(50)\nprint(time.monotonic(), flush=True)\ntime.sleep(9)";
    let answer = started(&folder, text).pass_time().unwrap();
    assert!(lines(&answer)[0].starts_with("1050.0000"), "{answer:?}");
}

#[test]
fn who_polls_and_never_waits_is_at_rest_all_the_same() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys, select, time\nbegan = time.time()\nwhile True:\n    if select.select([sys.stdin], [], [], 0)[0]:\n        \
                print('read', sys.stdin.readline().strip(), flush=True)\n    elif time.time() - began > 2:\n        began = time.time()\n        \
                print('late', flush=True)";
    let mut process = started(&folder, text);
    let answer = process.deliver("a").unwrap();
    assert_eq!((lines(&answer), answer.clock), (vec!["read a"], 1000));
    let answer = process.pass_time().unwrap();
    assert_eq!(lines(&answer), ["late"]);
    assert!((2 * SECOND..2 * SECOND + SECOND / 8).contains(&answer.clock), "{answer:?}");
    assert_eq!(lines(&process.deliver("b").unwrap()), ["read b"]);
}

#[test]
fn who_polls_is_not_kept_waiting_by_others_that_sleep() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import select, sys, threading, time\ndef sleeps():\n    while True: time.sleep(0.1)\n\
                threading.Thread(target=sleeps, daemon=True).start()\nbegan = time.monotonic()\n\
                while time.monotonic() < began + 1: select.select([], [], [], 0)\nprint('late', flush=True)\nsys.stdin.read()";
    let answer = started(&folder, text).pass_time().unwrap();
    assert_eq!(lines(&answer), ["late"]);
    assert!((SECOND..SECOND + SECOND / 16).contains(&answer.clock), "{answer:?}");
}

#[test]
fn threads_with_timers_beside_one_that_reads() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys, threading, time\ndef tick():\n    while True:\n        time.sleep(1)\n        print('tick', flush=True)\n\
                threading.Thread(target=tick, daemon=True).start()\nfor line in sys.stdin:\n    print('read', line.strip(), flush=True)";
    let mut process = started(&folder, text);
    for round in 0..20 {
        let answer = process.deliver(&round.to_string()).unwrap();
        assert_eq!(lines(&answer), [format!("read {round}")]);
        assert_eq!(lines(&process.pass_time().unwrap()), ["tick"], "{round}");
    }
    assert_eq!(process.threads(), 2);
}

#[test]
fn conditions_queues_and_executors_end_in_their_own_time() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import asyncio, queue, sys, threading\n\
                inbox = queue.Queue()\n\
                def worker():\n    while True:\n        try:\n            item = inbox.get(timeout=5)\n            print('got', item, flush=True)\n        \
                except queue.Empty:\n            print('nothing', flush=True)\n\
                threading.Thread(target=worker, daemon=True).start()\n\
                async def main():\n    loop = asyncio.get_event_loop()\n    while True:\n        line = await loop.run_in_executor(None, sys.stdin.readline)\n        \
                inbox.put(line.strip())\n\
                asyncio.run(main())";
    let mut process = started(&folder, text);
    for round in 0..10 {
        assert_eq!(lines(&process.deliver(&round.to_string()).unwrap()), [format!("got {round}")]);
    }
    let answer = process.pass_time().unwrap();
    assert_eq!(lines(&answer), ["nothing"], "{answer:?}");
    assert!((5 * SECOND..6 * SECOND).contains(&answer.clock), "{answer:?}");
}

#[test]
fn random_numbers_hashes_and_clocks_are_the_same_in_every_process() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, random, sys, time, uuid\nfor line in sys.stdin:\n    print(random.random(), uuid.uuid4(), os.urandom(4).hex(), os.getpid(), \
                hash(line), list({'a', 'b', 'c', line}), time.time(), id(line) % 4096, flush=True)";
    let run = || {
        let mut process = started(&folder, text);
        (0..5).map(|n| process.deliver(&n.to_string()).unwrap()).collect::<Vec<_>>()
    };
    let first = run();
    assert_eq!(first, run());
    let apart: std::collections::BTreeSet<&Arc<str>> = first.iter().map(|answer| &answer.lines[0]).collect();
    assert_eq!(apart.len(), 5, "its random numbers differ from one to the next");
}

/// A program whose silence lasts is not asked for the time again.
#[test]
fn a_clock_that_brings_nothing_is_silent() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut process = started(&folder, "import time\nwhile True:\n    time.sleep(7)");
    let answer = process.pass_time().unwrap();
    assert!(answer.lines.is_empty() && !answer.wakes, "{answer:?}");
    assert!(answer.clock > 50 * SECOND, "{answer:?}");
}

/// How long the processor worked is no answer that could be given twice.
#[test]
fn time_of_the_processor_is_the_clock_of_the_program() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import resource, sys, time\nfor line in sys.stdin:\n    for i in range(100000): pass\n    \
                used = resource.getrusage(resource.RUSAGE_SELF)\n    \
                print(used.ru_utime, used.ru_stime, used.ru_minflt, used.ru_nvcsw, time.process_time(), flush=True)\n";
    let mut process = started(&folder, text);
    for told in ["1e-06 0.0 0 0 1e-06", "2e-06 0.0 0 0 2e-06"] {
        assert_eq!(lines(&process.deliver("now").unwrap()), [told]);
    }
}
