//! Copies of processes: made without a start, apart from each other, and only where nothing is shared.

use std::sync::Arc;

use demi_programs::{Input, Launch, Local, Nodes, Process};

use crate::citizens::{launch, python};

const COUNTS: &str = "import random, sys, time\nseen = []\nfor line in sys.stdin:\n    seen.append(line.strip())\n    print(seen, random.random(), \
                      time.time(), file=sys.stderr, flush=True)\n    print(seen, random.random(), time.time(), flush=True)";

fn lines(process: &mut Process, line: &str) -> Vec<Arc<str>> {
    process.deliver(line).unwrap().lines
}

#[test]
fn a_copy_goes_on_by_itself() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&launch(folder.path(), COUNTS)).unwrap();
    lines(&mut process, "a");
    let mut copies: Vec<Process> = (0..5).map(|_| process.copy().unwrap()).collect();
    let mut again = copies[0].copy().unwrap();
    for (n, copy) in copies.iter_mut().enumerate() {
        assert!(lines(copy, &n.to_string())[0].starts_with(&format!("['a', '{n}'] ")));
    }
    // What was copied, a copy, and a copy of a copy answer alike, random numbers and time included.
    let answer = process.deliver("b").unwrap();
    assert!(answer.lines[0].starts_with("['a', 'b'] "));
    assert_eq!(again.deliver("b").unwrap(), answer);
    assert!(again.deliver("c").unwrap().stderr.starts_with("['a', 'b', 'c'] "));
    drop(process);
    assert!(lines(&mut copies[1], "d")[0].starts_with("['a', '1', 'd'] "), "copies outlive what was copied");
}

#[test]
fn a_copy_sleeps_and_polls_in_its_own_time() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import select, sys, time\nwhile True:\n    if select.select([sys.stdin], [], [], 0)[0]:\n        print(sys.stdin.readline().strip(), flush=True)\n    \
                elif time.time() % 3 > 2.9:\n        print(time.time(), flush=True)\n        time.sleep(0.5)";
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    let first = process.pass_time().unwrap();
    let mut copy = process.copy().unwrap();
    let mut sleeper = copy.copy().unwrap();
    assert_eq!(copy.pass_time().unwrap(), process.pass_time().unwrap());
    assert_eq!(lines(&mut sleeper, "x"), [Arc::from("x")]);
    assert!(sleeper.deliver("y").unwrap().clock > first.clock, "it slept until it read");
}

#[test]
fn what_copies_would_share_is_not_copied() {
    if !python() {
        return;
    }
    let read = "import sys, threading, os\n";
    let wait = "\nfor line in sys.stdin:\n    print(line.strip(), flush=True)";
    for (what, shared) in [
        ("a file", "open('log', 'w').write('x')"),
        ("an open file", "log = open('/dev/full', 'w')"),
        ("half a pipe", "ends = os.pipe(); os.close(ends[1])"),
        ("memory", "import mmap; pages = mmap.mmap(-1, 4096)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(&launch(folder.path(), &format!("{read}{shared}{wait}"))).unwrap();
        lines(&mut process, "a");
        assert!(process.copy().is_none(), "{what}");
        assert_eq!(lines(&mut process, "b"), [Arc::from("b")], "{what}");
    }
}

/// Of a file that is only read each copy has its own place: it reads on where the other was.
#[test]
fn copies_read_on_by_themselves() {
    if !python() {
        return;
    }
    let text = "import os, sys\nfile = os.open(sys.argv[0], os.O_RDONLY)\n\
                for line in sys.stdin:\n    print(os.read(file, 3).decode(), flush=True)\n";
    let folder = tempfile::tempdir().unwrap();
    let mut first = Process::start(&launch(folder.path(), text)).unwrap();
    assert_eq!(lines(&mut first, "a"), [Arc::from("imp")]);
    let mut second = first.copy().unwrap();
    assert_eq!(lines(&mut second, "b"), [Arc::from("ort")]);
    assert_eq!(lines(&mut second, "b"), [Arc::from(" os")]);
    assert_eq!(lines(&mut first, "c"), [Arc::from("ort")]);
}

/// Addresses are numbers that programs use, as seeds and as identifiers.
#[test]
fn what_a_copy_takes_of_memory_is_where_a_process_that_was_started_has_it() {
    if !python() {
        return;
    }
    let text = "import ctypes, sys, threading\ndone = threading.Event()\nthreading.Thread(target=done.wait, daemon=True).start()\nkept = []\n\
                for line in sys.stdin:\n    thread = threading.Thread(target=lambda: kept.append(threading.get_ident()))\n    thread.start()\n    thread.join()\n    \
                kept.append(ctypes.create_string_buffer(300000))\n    kept.append(ctypes.create_string_buffer(3000))\n    \
                print([one if isinstance(one, int) else ctypes.addressof(one) for one in kept], flush=True)";
    let folder = tempfile::tempdir().unwrap();
    let mut started = Process::start(&launch(folder.path(), text)).unwrap();
    let mut copied = Process::start(&launch(folder.path(), text)).unwrap();
    for line in ["a", "b", "c", "d"] {
        assert_eq!(lines(&mut started, line), lines(&mut copied, line), "{line}");
        copied = copied.copy().unwrap();
    }
}

/// Threads that wait for each other, for time and for descriptors: in a copy each goes on where it was, and neither sees what the other does.
#[test]
fn threads_go_on_in_copies() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
import os, queue, select, sys, threading, time
work, done, local = queue.Queue(), queue.Queue(), threading.local()
read, write = os.pipe()
poll = select.epoll()
poll.register(read, select.EPOLLIN)
lock, count = threading.Condition(), [0]
def worker():
    local.seen = []
    while True:
        local.seen.append(work.get())
        done.put(list(local.seen))
def ticker():
    while True:
        time.sleep(1)
        with lock:
            count[0] += 1
            lock.notify_all()
def waiter():
    with lock:
        while True:
            lock.wait()
            print("tick", count[0], threading.get_native_id(), flush=True)
def reader():
    while True:
        for fd, _ in poll.poll():
            done.put(os.read(fd, 100).decode())
for run in (worker, ticker, waiter, reader):
    threading.Thread(target=run, daemon=True).start()
for line in sys.stdin:
    work.put(line.strip())
    first = done.get()
    os.write(write, line.strip().encode())
    print(first, done.get(), time.time(), flush=True)
"#;
    let mut process = Process::start(&launch(folder.path(), text)).unwrap();
    process.deliver("a").unwrap();
    process.pass_time().unwrap();
    let mut copies: Vec<Process> = (0..4).map(|_| process.copy().expect("a copy")).collect();
    let mut again = copies[0].copy().expect("a copy of a copy");
    for (n, copy) in copies.iter_mut().enumerate() {
        let line = n.to_string();
        assert!(lines(copy, &line)[0].starts_with(&format!("['a', '{n}'] {n} ")));
        assert!(copy.pass_time().unwrap().lines[0].starts_with("tick 2 "));
    }
    let mut third = again.copy().expect("a copy of a copy of a copy");
    let steps = |process: &mut Process| {
        [process.deliver("b").unwrap(), process.pass_time().unwrap(), process.deliver("c").unwrap()]
    };
    let answers = steps(&mut process);
    assert_eq!(steps(&mut again), answers);
    drop(process);
    assert_eq!(steps(&mut third), answers);
}

/// Programs in all languages that there are: a copy answers as that of which it is one.
#[test]
fn copies_answer_alike_in_every_language() {
    let folder = tempfile::tempdir().unwrap();
    let only = std::env::var("DEMI_ONLY").unwrap_or_default();
    let all = crate::strangers::built(folder.path()).into_iter().chain(crate::strangers::of_maelstrom());
    for (name, workload, command) in all.filter(|(name, ..)| name.contains(&only)) {
        let scenario = crate::strangers::scenario(workload, &command);
        let launches = demi_programs::launches(scenario.model.child().unwrap(), &scenario).unwrap();
        let workload = demi_programs::Workload::new(scenario.workload.as_ref().unwrap()).unwrap();
        let lines: Vec<String> = crate::strangers::requests(&workload, 12);
        let mut process = Process::start(&Arc::new(launches[0].1.clone())).unwrap();
        let mut copied = 0;
        let mut copies: Vec<(usize, Process)> = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            let answer = process.deliver(line).unwrap();
            let rested = if n % 3 == 2 && answer.wakes { Some(process.pass_time().unwrap()) } else { None };
            for (_, copy) in &mut copies {
                assert_eq!(copy.deliver(line).unwrap(), answer, "{name}: {line}");
                if let Some(rested) = &rested {
                    assert_eq!(copy.pass_time().unwrap(), *rested, "{name} after {line}");
                }
            }
            if n % 4 == 1 {
                let from = copies.last_mut().map_or(&mut process, |(_, copy)| copy);
                let copy = from.copy();
                copied += usize::from(copy.is_some());
                copies.extend(copy.map(|copy| (n, copy)));
            }
        }
        println!("{name}: {copied} of 3 copies, {} threads", process.threads());
    }
}

/// How many processes of this program there are.
fn alive(folder: &std::path::Path) -> usize {
    let program = folder.display().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&program)
    })
    .count()
}

/// Every history of a node that takes three inputs of two kinds: what has one beginning goes on from copies.
fn every_history(nodes: &Nodes, depth: u32, before: Option<&Arc<Local>>) -> u32 {
    if depth == 0 {
        return 1;
    }
    let inputs = ["x", "y"].map(|line| Input::Line(line.into()));
    inputs
        .into_iter()
        .map(|input| every_history(nodes, depth - 1, Some(&nodes.step(0, before, input).unwrap())))
        .sum()
}

fn nodes(folder: &std::path::Path, text: &str) -> Nodes {
    let launch = Launch::clone(&launch(folder, text));
    Nodes::new(vec![("n1".into(), launch)])
}

#[test]
fn histories_with_one_beginning_need_few_starts_and_leave_no_process() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let nodes = nodes(folder.path(), COUNTS);
    for _ in 0..3 {
        assert_eq!(every_history(&nodes, 5, None), 32);
        assert!(nodes.fault().is_none(), "{:?}", nodes.fault());
    }
    let work = nodes.work();
    assert_eq!((work.asked, work.new), (3 * 62, 62));
    // One, those that compare, and those in reserve; every branch would need one of its own without copies.
    assert!(work.starts <= 10, "{work:?}");
    assert!(work.copies >= 10, "{work:?}");
    drop(nodes);
    assert_eq!(alive(folder.path()), 0);
}

#[test]
fn a_program_that_begins_to_write_files_is_taken_apart() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, sys\ncount = 0\nfor line in sys.stdin:\n    count += 1\n    if count == 3:\n        open('seen', 'a').write(line)\n    \
                print(count, sorted(os.listdir('.')), open('seen').read() if os.path.exists('seen') else '', flush=True)";
    let nodes = nodes(folder.path(), text);
    assert_eq!(every_history(&nodes, 5, None), 32);
    assert_eq!(every_history(&nodes, 5, None), 32);
    assert!(nodes.fault().is_none(), "{:?}", nodes.fault());
    let step =
        |before: &Arc<Local>, line: &str| nodes.step(0, Some(before), Input::Line(line.into())).unwrap();
    let first = nodes.step(0, None, Input::Line("x".into())).unwrap();
    let third = step(&step(&first, "y"), "y");
    assert_eq!(third.answer().lines[0].as_ref(), "3 ['seen'] y");
    assert_eq!(step(&third, "x").answer().lines[0].as_ref(), "4 ['seen'] y");
}
